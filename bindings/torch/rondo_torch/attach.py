# SPDX-License-Identifier: Apache-2.0
"""Another package's device under Rondo's trees: `rondo_torch.attach("npu", graph_ops=NpuInterface.GraphOps)`.

What the device must supply are the operations of its pools (rondo_torch.interface.GraphOps lists them) and a graph:
one of its own from `create_graph()`, which nobody needs to register, or PyTorch's for a type with an implementation.
Streams and devices come from the interface that the package has registered with Dynamo. The gates, the manager of trees
and the reports are Rondo's. A device that lacks something is attached all the same: its graphs are skipped, and why.
"""
import contextlib
import functools
import importlib
import sys
import threading
import types

import torch

from . import config, graphs

POOL_OPERATIONS = ("graph_pool_handle", "begin_allocate_current_thread_to_pool", "end_allocate_to_pool", "release_pool",
                   "get_checkpoint_state", "set_checkpoint_pool_state", "check_pool_live_allocations", "raw_delete")

_lock = threading.RLock()
_attached = {}  # by type of device


class _Aborted(Exception):
    """Ends the context of a capture that is given up."""


class Attachment:
    """A type of device, and what its package supplies. What is asked of Dynamo is asked at the first use."""

    def __init__(self, device_type, graph_ops):
        self.device_type, self.given = device_type, graph_ops
        self._open = {}  # contexts of captures in progress, by the graph

    def __repr__(self):
        return f"<{self.device_type} attached to rondo_torch: {self.why_no_trees or 'trees'}>"

    @property
    def interface(self):
        """The device's interface for Dynamo, or None."""
        from . import interface

        return interface.interface_of(self.device_type)

    @property
    def ops(self):
        """The graph operations, with the written defaults for what the package does not have."""
        from . import interface

        given = self.given if self.given is not None else interface.graph_ops_of(self.device_type)
        return interface.GraphOps if given is None else _completed(given)

    def has(self, name):
        """Whether the package supplies that operation itself."""
        from . import interface

        default = getattr(interface.GraphOps, name, None)
        mine = getattr(self.ops, name, None)
        return mine is not None and mine is not default and not getattr(mine, "missing", "")

    @property
    def has_own_graph(self):
        """Whether graphs are the package's own: where an implementation is registered, too, only by duck typing."""
        return self.has("create_graph") and (config.cuda == "duck" or not graphs.has_graph_impl(self.device_type))

    @property
    def why_no_trees(self):
        """Why graphs of this device are skipped, or ""."""
        from . import interface

        if self.interface is None:
            return f"{self.device_type} has no interface registered with Dynamo"
        says = getattr(self.interface, "is_graph_capture_supported", None)
        capable = bool(says()) if says else self.has_own_graph or interface.is_graph_capture_supported(self.device_type)
        if not capable:
            return (f"{self.device_type} cannot capture graphs: nothing is registered for it, and its interface does "
                    "not say that it can")
        missing = [name for name in POOL_OPERATIONS if not self.has(name)]
        if missing:
            return f"{self.device_type} can capture graphs, but its GraphOps lacks {', '.join(missing)}"
        if not (self.has_own_graph or self.has("make_graph") or graphs.has_graph_impl(self.device_type)):
            return (f"{self.device_type} has no graph: its GraphOps has no create_graph, and no implementation is "
                    "registered")
        return ""

    def new_graph(self, pool):
        """An empty graph. The pool is there before it: PyTorch's graphs take it when they are made."""
        return self.ops.create_graph() if self.has_own_graph else self.ops.make_graph(pool)

    def capture(self, graph, stream, pool):
        """Context manager: what is enqueued on the stream becomes the graph."""
        if self.has("capture_context"):
            return self.ops.capture_context(graph, stream=stream, pool=pool, capture_error_mode="thread_local")
        if self.has_own_graph:
            return _capture_own(graph, stream, pool)
        return self.ops.capture_context(graph, stream, pool)

    # The same in three calls, for who has no block to put it around.

    def begin_capture(self, graph, stream, pool):
        context = self.capture(graph, stream, pool)
        context.__enter__()
        self._open[id(graph)] = context

    def end_capture(self, graph):
        self._open.pop(id(graph)).__exit__(None, None, None)

    def abort_capture(self, graph):
        """Whatever the package says to it, the capture is over; the graph is not to be used."""
        context = self._open.pop(id(graph), None)
        if context is not None:
            with contextlib.suppress(Exception):
                context.__exit__(_Aborted, _Aborted(), None)


@functools.lru_cache(maxsize=None)
def _completed(given):
    from . import interface

    if not isinstance(given, type):
        return _Bound(given, interface.GraphOps)
    return given if issubclass(given, interface.GraphOps) else type("GraphOps", (given, interface.GraphOps), {})


class _Bound:
    """Operations that are an object's, with the class's defaults behind it."""

    def __init__(self, given, defaults):
        self._given, self._defaults = given, defaults

    def __getattr__(self, name):
        return getattr(self._given if hasattr(self._given, name) else self._defaults, name)


@contextlib.contextmanager
def _capture_own(graph, stream, pool, mode="thread_local"):
    """As torch.cuda.graph does with torch.cuda.CUDAGraph; a capture that fails leaves nothing behind."""
    with stream:
        graph.capture_begin(pool=pool, capture_error_mode=mode)
        try:
            yield
        except BaseException:
            with contextlib.suppress(Exception):
                graph.capture_end()
            with contextlib.suppress(Exception):
                graph.reset()
            raise
        graph.capture_end()


def attach(device_type, graph_ops=None):
    """Makes devices of the type subject to Rondo's gates and trees under torch.compile(mode="reduce-overhead").

    `graph_ops`: a class or an object; None stands for the GraphOps of the interface that is registered with Dynamo.
    The device `npu` of an Ascend package then has Rondo's (rondo_torch.npu), where its own interface has none.
    Imports Inductor. Returns the attachment, whose `why_no_trees` says why graphs are skipped, if they are.
    """
    device = torch.device(device_type)
    if device.index is not None:
        raise ValueError(f"attach takes a type of device, not one device: {device.type!r} rather than {device_type!r}")
    if device.type in ("rondo", "cuda", "cpu", "meta"):
        why = {"rondo": "it is this package's own", "cuda": "it has PyTorch's path"}
        raise ValueError(f"{device.type} cannot be attached: {why.get(device.type, 'it runs no graphs')}")
    if device.type == "npu" and graph_ops is None:
        from . import npu

        if not npu.why_not():
            npu.install()
    with _lock:
        known = _attached.get(device.type)
        if known is not None and known.given is not graph_ops:
            raise ValueError(f"{device.type} is attached already with other graph operations: detach it first")
        if known is None:
            known = _attached[device.type] = Attachment(device.type, graph_ops)
    _install()
    return known


def detach(device_type):
    """What was compiled keeps what it has; what is compiled from now on is PyTorch's. False: it was not attached."""
    with _lock:
        return _attached.pop(torch.device(device_type).type, None) is not None


def attached(device_type):
    """The attachment of a type of device, or None."""
    with _lock:
        return _attached.get(device_type)


def attached_types():
    with _lock:
        return tuple(_attached)


def _install():
    for name in {"rondo": ("gates", "trees"), "upstream": ("upstream",), "off": ()}[config.trees]:
        try:
            module = importlib.import_module(f"{__package__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__package__}.{name}":
                raise
            continue
        module.install()


class _Module(types.ModuleType):
    def __call__(self, *arguments, **named):
        """`rondo_torch.attach` is the function for who imports the package, whatever else has imported this module."""
        return attach(*arguments, **named)


sys.modules[__name__].__class__ = _Module
