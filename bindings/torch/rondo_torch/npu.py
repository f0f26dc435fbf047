# SPDX-License-Identifier: Apache-2.0
"""Graphs for an Ascend package's device `npu`: its interface with graph operations, and NPUGraphImpl
(csrc/npu_graph.cpp).

The package is the one whose module is `torch.npu`; it knows nothing of this one. Everything is bound late, by the
package's own names: the table LATE has them. What a package lacks is the base's, and `missing()` says what that is.

Imports Dynamo.
"""
import os
import sys

import torch
from torch._dynamo import device_interface as stock

from . import _C, graphs, interface

# Operation -> its name in the package: below `torch.npu`, or below the package's `_C`.
LATE = {
    "graph_pool_handle": "npu.graph_pool_handle",
    "begin_allocate_current_thread_to_pool": "_C._npu_beginAllocateCurrentThreadToPool",
    "end_allocate_to_pool": "_C._npu_endAllocateToPool",
    "release_pool": "_C._npu_releasePool",
    "get_checkpoint_state": "_C._npu_getCheckpointState",
    "set_checkpoint_pool_state": "_C._npu_setCheckpointPoolState",
    "check_pool_live_allocations": "_C._npu_checkPoolLiveAllocations",
    "raw_delete": "_C._npu_npuCachingAllocator_raw_delete",
    "memory_snapshot": "npu.memory_snapshot",
    "create_graph": "npu.NPUGraph",
}
STREAM = "_C._npu_getCurrentRawStream"
UNCACHED = "PYTORCH_NO_NPU_MEMORY_CACHING"  # the package's own variable: its allocator gives every block back at once


def _find(name):
    """What the package has by that name, or None."""
    where, _, attribute = name.rpartition(".")
    owner = getattr(torch, "npu", None)
    if where == "_C" and owner is not None:
        owner = getattr(sys.modules.get(owner.__name__.partition(".")[0]), "_C", None)
    return getattr(owner, attribute, None)


def missing():
    """Operations that the package lacks, with its name for each."""
    return {operation: name for operation, name in LATE.items() if _find(name) is None}


def _default(operation):
    """The base's: PyTorch's own where there is one, and it knows the operation."""
    own = getattr(getattr(stock.DeviceInterface, "GraphOps", None), operation, None)
    return getattr(interface._GraphOps, operation) if own is None else own


class _Late:
    """A function of the package's, looked up at each call."""

    def __init__(self, operation, name):
        self.operation, self.name = operation, name

    def __repr__(self):
        return f"<{self.operation}: {self.name}>"

    def __call__(self, *arguments):
        return (_find(self.name) or _default(self.operation))(*arguments)


def _member(operation, name):
    late = _Late(operation, name)
    return property(lambda _: _default(operation) if _find(name) is None else late)


# Who compares an operation with the base's learns that the package lacks it: trees ask so.
_Bound = type("_Bound", (type,), {operation: _member(operation, name) for operation, name in LATE.items()})


class GraphOps(interface.GraphOps, metaclass=_Bound):
    """The package's operations; two ways of making graphs: its own object, or the registered implementation."""

    @staticmethod
    def caching_allocator_enabled():
        return UNCACHED not in os.environ

    @staticmethod
    def make_graph(pool):
        return torch.accelerator.Graph(pool=pool, capture_error_mode="thread_local")

    @staticmethod
    def capture_context(graph, stream, pool=None, capture_error_mode="thread_local"):
        """For graphs of `make_graph`, which have pool and mode since they were made, and of `create_graph`."""
        from .attach import _capture_own

        if isinstance(graph, torch._C._acceleratorGraph):
            return interface._GraphOps.capture_context(graph, stream, pool, capture_error_mode)
        return _capture_own(graph, stream, pool, capture_error_mode)


class Members:
    """What graph capture adds to the interface that the package has registered with Dynamo."""

    @classmethod
    def is_graph_capture_supported(cls):
        return graphs.has_graph_impl("npu")

    @staticmethod
    def default_generators():
        return torch.npu.default_generators

    GraphOps = GraphOps


class NpuInterface(Members, interface.GraphInterface):
    """The contract by itself. A package's device has it in front of the package's own interface (`install`)."""


class _Package:
    """What csrc/npu_graph.cpp asks of the package."""

    graph_pool_handle, end_allocate_to_pool, release_pool = (
        _Late(name, LATE[name]) for name in ("graph_pool_handle", "end_allocate_to_pool", "release_pool"))

    @staticmethod
    def raw_stream(device):
        """The driver's stream that is current. A package that queues launches has handed them on when it answers."""
        return _find(STREAM)(device)

    @staticmethod
    def begin_allocate_current_stream_to_pool(device, pool):
        """By the stream where the package can: a backward allocates on a thread of its own."""
        begin = _find("_C._npu_beginAllocateCurrentStreamToPool") or GraphOps.begin_allocate_current_thread_to_pool
        begin(device, pool)


def use_streams():
    """Has compiled graphs run on the package's current streams. Returns why that cannot be, or ""."""
    if _find(STREAM) is None:
        return f"the package of torch.npu has no {STREAM}: its streams cannot be known"
    _C.use_npu_package(_Package)
    return ""


def why_not():
    """Why nothing can be made of this process's device, or ""."""
    if not hasattr(torch, "npu"):
        return "there is no torch.npu: import the package of the device first"
    if interface.interface_of("npu") is None:
        return "the package of torch.npu has registered no interface with Dynamo"
    if _find(STREAM) is None:
        return f"the package of torch.npu has no {STREAM}: its streams cannot be known"
    return ""


def install():
    """Gives the device what graphs need: an implementation in PyTorch's registry, unless the package has one, and the
    members of Members in its interface, unless the package has them. Returns the interface. Once is enough."""
    why = why_not()
    if why:
        raise RuntimeError(f"rondo_torch.npu: {why}")
    if not graphs.has_graph_impl("npu"):
        _C.register_npu_graph_impl(_Package)
    known = interface.interface_of("npu")
    if issubclass(known, Members) or interface.graph_ops_of("npu") is not None:
        return known
    made = type("NpuInterface", (Members, known), {"__module__": __name__})
    for name in [name for name, of in stock.get_registered_device_interfaces() if of is known]:
        stock.register_interface_for_device(name, made)
    return made
