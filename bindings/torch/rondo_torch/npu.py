# SPDX-License-Identifier: Apache-2.0
"""Graphs for an Ascend package's device `npu`: its interface with graph operations, and NPUGraphImpl
(csrc/npu_graph.cpp).

The package is the one whose module is `torch.npu`; it knows nothing of this one. Everything is bound late, by the
package's own names: the table LATE has them. What a package lacks keeps the written default, and `missing` of the
operation says what that was.

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
UNCACHED = "PYTORCH_NO_NPU_MEMORY_CACHING"  # the package's own variable: its allocator gives every block back at once


def _find(name):
    """What the package has by that name, or None."""
    where, _, attribute = name.rpartition(".")
    owner = getattr(torch, "npu", None)
    if where == "_C" and owner is not None:
        owner = getattr(sys.modules.get(owner.__name__.partition(".")[0]), "_C", None)
    return getattr(owner, attribute, None)


class Late:
    """A function of the package's, looked up at each call; the default where there is none."""

    def __init__(self, operation, name):
        self.operation, self.name = operation, name
        self.default = getattr(interface.GraphOps, operation, None) or getattr(interface._GraphOps, operation)

    def __repr__(self):
        return f"<{self.operation}: {self.missing or self.name}>"

    @property
    def missing(self):
        """What the package lacks for it, or ""."""
        if _find(self.name) is not None:
            return ""
        return f"the package of torch.npu has no {self.name}" if hasattr(torch, "npu") else "there is no torch.npu"

    def __call__(self, *arguments):
        function = _find(self.name)
        if function is not None:
            return function(*arguments)
        try:
            return self.default(*arguments)
        except NotImplementedError:
            raise NotImplementedError(f"{self.operation}: {self.missing}") from None


class GraphOps(interface.GraphOps):
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


for _operation, _name in LATE.items():
    setattr(GraphOps, _operation, Late(_operation, _name))


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

    graph_pool_handle = GraphOps.graph_pool_handle
    end_allocate_to_pool = GraphOps.end_allocate_to_pool
    release_pool = GraphOps.release_pool

    @staticmethod
    def raw_stream(device):
        """The driver's stream that is current. A package that queues launches has handed them on when it answers."""
        return _find("_C._npu_getCurrentRawStream")(device)

    @staticmethod
    def begin_allocate_current_stream_to_pool(device, pool):
        """By the stream where the package can: a backward allocates on a thread of its own."""
        begin = _find("_C._npu_beginAllocateCurrentStreamToPool") or GraphOps.begin_allocate_current_thread_to_pool
        begin(device, pool)


def why_not():
    """Why nothing can be made of this process's device, or ""."""
    if not hasattr(torch, "npu"):
        return "there is no torch.npu: import the package of the device first"
    if interface.interface_of("npu") is None:
        return "the package of torch.npu has registered no interface with Dynamo"
    if _find("_C._npu_getCurrentRawStream") is None:
        return "the package of torch.npu has no _C._npu_getCurrentRawStream: its streams cannot be known"
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
