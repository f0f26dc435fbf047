# SPDX-License-Identifier: Apache-2.0
"""CUDA through the contract: what `torch.accelerator.Graph` would be for CUDA if CUDA's graphs were registered.

In PyTorch the implementation would be C++ beside torch.cuda.CUDAGraph, and torch.accelerator.Graph would find it. Here
csrc/contract.cpp registers one that goes through Python, and since torch.accelerator.Graph serves the current
accelerator only, the class below is the same facade for a type of device that is named.
"""
import gc

import torch

from .. import _C


class Graph:
    """Eight calls of GraphImplInterface and the context manager of torch.accelerator.Graph, for a named type of
    device."""

    def __init__(self, device_type, keep_graph=False, *, pool=None, capture_error_mode="default"):
        self._graph = _C.DeviceGraph(device_type, keep_graph)
        self._module = torch.get_device_module(device_type)
        self.graph_pool, self.capture_error_mode = pool, capture_error_mode

    def capture_begin(self):
        self._graph.capture_begin(self.graph_pool or (0, 0), self.capture_error_mode)

    def capture_end(self):
        self._graph.capture_end()

    def instantiate(self):
        self._graph.instantiate()

    def replay(self):
        self._graph.replay()

    def reset(self):
        self._graph.reset()

    def pool(self):
        return self._graph.pool()

    def enable_debug_mode(self):
        self._graph.enable_debug_mode()

    def debug_dump(self, path):
        self._graph.debug_dump(path)

    def __enter__(self):
        self._module.synchronize()
        if torch.compiler.config.force_cudagraph_gc:
            gc.collect()
        self._module.empty_cache()
        self.capture_begin()

    def __exit__(self, *exc_info):
        self.capture_end()


def _make_graph(pool):
    return Graph("cuda", pool=pool, capture_error_mode="thread_local")


def install():
    """Registers CUDA's graphs, and lets CUDA's GraphOps make them. The operations are this package's while they are
    here."""
    from torch._dynamo.device_interface import CudaInterface

    _C.register_cuda_graph_impl()
    CudaInterface.GraphOps.make_graph = staticmethod(_make_graph)
