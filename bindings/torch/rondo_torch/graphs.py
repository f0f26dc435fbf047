# SPDX-License-Identifier: Apache-2.0
"""Graphs for users of `torch.rondo`, and who else can capture. Imports neither Dynamo nor Inductor."""
import json

import torch

from . import _C


def has_graph_impl(device_type=None):
    """Whether a graph implementation is registered for the type of device; None stands for the current accelerator.

    The answer is the registry's: False for CUDA, which has a path of its own and can capture all the same.
    """
    if device_type is None:
        accelerator = torch.accelerator.current_accelerator()
        if accelerator is None:
            raise RuntimeError("Cannot access accelerator device when none is available.")
        device_type = accelerator.type
    return _C.has_graph_impl(device_type)


def install():
    """Binds the question where PyTorch has no such binding yet."""
    if not hasattr(torch._C, "_accelerator_hasGraphImpl"):
        torch._C._accelerator_hasGraphImpl = has_graph_impl


def graph_pool_handle():
    """An id for a pool of one's own, for graphs that share it."""
    return _C.graph_pool_handle()


def memory_snapshot(mempool_id=None):
    """Segments of all devices with their blocks, as dictionaries with PyTorch's field names; or those of one pool."""
    segments = []
    for index in range(_C.device_count()):
        for segment in json.loads(_C.memory_snapshot(index))["segments"]:
            segment["segment_pool_id"] = tuple(segment["segment_pool_id"])
            if mempool_id is None or segment["segment_pool_id"] == tuple(mempool_id):
                segments.append(segment)
    return segments
