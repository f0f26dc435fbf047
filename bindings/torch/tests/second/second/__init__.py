# SPDX-License-Identifier: Apache-2.0
"""A small device of PyTorch, for tests: it stands for another vendor's package. It uses nothing of Rondo."""
import sys
import types

import torch

torch.utils.rename_privateuse1_backend("second")

from . import _second  # noqa: E402  (it registers allocator, guard, hooks and operators)
from ._second import Graph, counts, has_own_storage, live_blocks, register_graph_impl  # noqa: E402, F401


class device:
    def __init__(self, which):
        self.index = -1 if which is None else which if isinstance(which, int) else torch.device(which).index

    def __enter__(self):
        self.before = _second.current_device()
        if self.index is not None and self.index >= 0:
            _second.set_device(self.index)

    def __exit__(self, *_):
        _second.set_device(self.before)
        return False


def exchange_device(index):
    before = _second.current_device()
    if index >= 0:
        _second.set_device(index)
    return before


def current_stream(which=None):
    return torch.accelerator.current_stream(which)


class GraphOps:
    """What a vendor has: pools, checkpoints, and a graph object of its own that no registry of PyTorch's knows."""

    graph_pool_handle = staticmethod(_second.graph_pool_handle)
    begin_allocate_current_thread_to_pool = staticmethod(_second.begin_allocate_current_thread_to_pool)
    end_allocate_to_pool = staticmethod(_second.end_allocate_to_pool)
    release_pool = staticmethod(_second.release_pool)
    get_checkpoint_state = staticmethod(_second.get_checkpoint_state)
    set_checkpoint_pool_state = staticmethod(_second.set_checkpoint_pool_state)
    check_pool_live_allocations = staticmethod(_second.check_pool_live_allocations)
    raw_delete = staticmethod(_second.raw_delete)
    memory_snapshot = staticmethod(_second.memory_snapshot)
    create_graph = staticmethod(_second.Graph)


def _install():
    module = types.ModuleType("torch.second")
    module.device, module.current_stream = device, current_stream
    module.current_device, module.set_device, module.device_count = (
        _second.current_device, _second.set_device, _second.device_count)
    module.is_available = lambda: True
    module.is_initialized = lambda: True
    module.synchronize = lambda which=None: None
    module.stream = lambda stream: stream
    module.Stream, module.Event = torch.Stream, torch.Event
    module.manual_seed_all = lambda seed: None  # random numbers are drawn on the CPU, by its generator
    module._is_in_bad_fork = lambda: False
    module.get_amp_supported_dtype = lambda: [torch.bfloat16]
    sys.modules["torch.second"] = module
    torch._register_device_module("second", module)
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)


_install()
