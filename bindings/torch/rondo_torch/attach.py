# SPDX-License-Identifier: Apache-2.0
"""Another package's device under Rondo's trees: `rondo_torch.attach("npu", graph_ops=NpuInterface.GraphOps)`.

What the device must supply are the operations of its pools (rondo_torch.interface.GraphOps lists them) and a graph:
one of its own from `create_graph()`, which nobody needs to register, or PyTorch's for a type with an implementation.
Streams and devices come from the interface that the package has registered with Dynamo. The gates, the manager of trees
and the reports are Rondo's; under config.trees = "upstream" the manager is Inductor's own, which finds the operations
in that interface. A device that lacks something is attached all the same: its graphs are skipped, and why.
"""
import contextlib
import functools
import sys
import threading
import types

import torch

from . import _C, config, graphs

POOL_OPERATIONS = ("graph_pool_handle", "begin_allocate_current_thread_to_pool", "end_allocate_to_pool", "release_pool",
                   "get_checkpoint_state", "set_checkpoint_pool_state", "check_pool_live_allocations", "raw_delete")

_lock = threading.RLock()
_attached = {}  # by type of device


_ABSENT = object()


class _Aborted(Exception):
    """Ends the context of a capture that is given up."""


class Attachment:
    """A type of device, and what its package supplies. What is asked of Dynamo is asked at the first use."""

    def __init__(self, device_type, graph_ops):
        self.device_type, self.given = device_type, graph_ops
        self._open = {}  # contexts of captures in progress, by the graph
        self._offered = {}  # what was put on the interface -> what was there before

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

        given = self._package_ops()
        return interface.GraphOps if given is None else _completed(given, interface.GraphOps)

    def _package_ops(self):
        """As the package has them, or None."""
        from . import interface

        if self.given is not None:
            return self.given
        if self._offered:  # what is there now is this attachment's
            return self._was_ops
        return interface.graph_ops_of(self.device_type)

    def has(self, name):
        """Whether the package supplies that operation itself."""
        from . import interface

        mine = getattr(self.ops, name, None)
        default = any(mine is getattr(ops, name, None) for ops in interface.default_graph_ops())
        return mine is not None and not default

    @property
    def has_own_graph(self):
        """Whether graphs are the package's own: where an implementation is registered, too, only by duck typing."""
        return self.has("create_graph") and (config.cuda == "duck" or not graphs.has_graph_impl(self.device_type))

    @property
    def is_capable(self):
        """Whether the device can capture graphs at all: what its interface says, else what else is known of it."""
        from . import interface

        says = getattr(self.interface, "is_graph_capture_supported", None)
        if self._offered:
            return self._was_capable
        if says is None or interface.is_default(says):
            return self.has_own_graph or graphs.has_graph_impl(self.device_type)
        return bool(says())

    @property
    def why_no_trees(self):
        """Why graphs of this device are skipped, or ""."""
        if self.interface is None:
            return f"{self.device_type} has no interface registered with Dynamo"
        if not self.is_capable:
            return (f"{self.device_type} cannot capture graphs: nothing is registered for it, and its interface does "
                    "not say that it can")
        missing = [name for name in POOL_OPERATIONS if not self.has(name)]
        if missing:
            return f"{self.device_type} can capture graphs, but its GraphOps lacks {', '.join(missing)}"
        if not (self.has_own_graph or self.has("make_graph") or graphs.has_graph_impl(self.device_type)):
            return (f"{self.device_type} has no graph: its GraphOps has no create_graph, and no implementation is "
                    "registered")
        return ""

    def on_stream(self, stream):
        """Context manager: the stream is the current one."""
        from . import interface

        ways = getattr(self.interface, "stream", None)
        return stream if ways is None or interface.is_default(ways) else ways(stream)

    # What makes graphs, and what captures: their names, for messages.

    @property
    def graph_maker(self):
        return "GraphOps.create_graph" if self.has_own_graph else "GraphOps.make_graph"

    def capture_member(self, usual):
        return "GraphOps.capture_context" if self.has("capture_context") else f"{usual} of its graph"

    def new_graph(self, pool):
        """An empty graph. The pool is there before it: PyTorch's graphs take it when they are made."""
        return self.ops.create_graph() if self.has_own_graph else self.ops.make_graph(pool)

    def capture(self, graph, stream, pool):
        """Context manager: what is enqueued on the stream becomes the graph."""
        if self.has("capture_context"):
            return self.ops.capture_context(graph, stream=stream, pool=pool, capture_error_mode="thread_local")
        if self.has_own_graph:
            return _capture_own(graph, self.on_stream(stream), pool)
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

    # For Inductor's own trees, which ask the interface.

    def offer(self):
        """Puts on the registered interface what it does not have: the capability bit, and complete operations."""
        from torch._dynamo.device_interface import DeviceInterface

        interface = self.interface
        if interface is None or self._offered or self._is_complete:
            return
        capable, given = self.is_capable, self._package_ops()
        self._was_ops = given  # inherited, too
        ops = DeviceInterface.GraphOps if given is None else _completed(given, DeviceInterface.GraphOps)
        # What is missing has to be seen as missing.
        more = {name: getattr(DeviceInterface.GraphOps, name) for name in POOL_OPERATIONS if not self.has(name)}
        more["capture_context"] = self._capture_context
        if not self.has("bindings"):  # those of torch._C are for CUDA's storages alone, where it was built with CUDA
            more["bindings"] = _C.bindings
        if not self.has_own_graph:
            more["create_graph"] = functools.partial(torch.accelerator.Graph, capture_error_mode="thread_local")
        for name, value in (("is_graph_capture_supported", staticmethod(lambda: capable)),
                            ("GraphOps", _Bound(types.SimpleNamespace(**more), ops))):
            self._offered[name] = vars(interface).get(name, _ABSENT)
            setattr(interface, name, value)
        self._owner, self._was_capable = interface, capable

    @property
    def _is_complete(self):
        """Whether the interface has everything itself."""
        from . import interface

        says = getattr(self.interface, "is_graph_capture_supported", None)
        needed = (*POOL_OPERATIONS, "create_graph", "capture_context") + (("bindings",) if torch.backends.cuda.is_built() else ())
        return self.given is None and says is not None and not interface.is_default(says) and all(map(self.has, needed))

    def withdraw(self):
        """The interface is as it was."""
        while self._offered:
            name, before = self._offered.popitem()
            if before is _ABSENT:
                delattr(self._owner, name)
            else:
                setattr(self._owner, name, before)

    def _capture_context(self, graph, stream, pool=None, capture_error_mode="thread_local"):
        if isinstance(graph, torch.accelerator.Graph):  # it was made without its pool
            graph.graph_pool, graph.capture_error_mode = pool, capture_error_mode
        if self.has("capture_context"):
            return self.ops.capture_context(graph, stream=stream, pool=pool, capture_error_mode=capture_error_mode)
        if self.has_own_graph:
            return _capture_own(graph, self.on_stream(stream), pool, capture_error_mode)
        return self.ops.capture_context(graph, stream, pool)


@functools.lru_cache(maxsize=None)
def _completed(given, defaults):
    if not isinstance(given, type):
        return _Bound(given, defaults)
    return given if issubclass(given, defaults) else type("GraphOps", (given, defaults), {})


class _Bound:
    """Operations that are an object's, with those of another behind it."""

    def __init__(self, given, defaults):
        self._given, self._defaults = given, defaults

    def __getattr__(self, name):
        return getattr(self._given if hasattr(self._given, name) else self._defaults, name)


@contextlib.contextmanager
def _capture_own(graph, on_stream, pool, capture_error_mode="thread_local"):
    """As torch.cuda.graph does with torch.cuda.CUDAGraph; a capture that fails leaves nothing behind."""
    with on_stream:
        graph.capture_begin(pool=pool, capture_error_mode=capture_error_mode)
        try:
            yield
        except BaseException:
            with contextlib.suppress(Exception):
                graph.capture_end()
            with contextlib.suppress(Exception):
                graph.reset()
            raise
        try:
            graph.capture_end()
        except BaseException:
            with contextlib.suppress(Exception):
                graph.reset()
            raise


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
    install()
    return known


def detach(device_type):
    """What was compiled keeps what it has; what is compiled from now on is PyTorch's. False: it was not attached."""
    with _lock:
        known = _attached.pop(torch.device(device_type).type, None)
        if known is None:
            return False
        known.withdraw()
        foreign = sys.modules.get(f"{__package__}.foreign")
        if foreign is not None:
            foreign.forget(known)
        return True


def attached(device_type):
    """The attachment of a type of device, or None."""
    with _lock:
        return _attached.get(device_type)


def attached_types():
    with _lock:
        return tuple(_attached)


def captures_by_itself():
    """Whether an attached device has graphs that torch.accelerator.Graph cannot make."""
    with _lock:
        return any(known.has_own_graph for known in _attached.values())


def install():
    """Puts in place what config.trees says, for what is attached."""
    if not attached_types():
        return
    if config.trees == "rondo":
        from . import gates, trees

        gates.install()
        trees.install()
    elif config.trees == "upstream":
        from . import upstream

        # What is in place stays if it serves: each device making its graphs serves all.
        upstream.install("duck" if captures_by_itself() else upstream.installed())
        with _lock:
            for known in _attached.values():
                known.offer()


class _Module(types.ModuleType):
    def __call__(self, *arguments, **named):
        """`rondo_torch.attach` is the function for who imports the package, whatever else has imported this module."""
        return attach(*arguments, **named)


sys.modules[__name__].__class__ = _Module
