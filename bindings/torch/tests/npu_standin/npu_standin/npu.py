# SPDX-License-Identifier: Apache-2.0
"""`torch.npu` of the stand-in."""
import torch

from . import _C

Stream, Event = torch.Stream, torch.Event
NPUGraph = _C._NPUGraph
current_device, set_device, device_count = _C._npu_getDevice, _C._npu_setDevice, _C._npu_getDeviceCount
graph_pool_handle, memory_snapshot = _C._graph_pool_handle, _C._npu_memorySnapshot
default_generators = (torch.default_generator,) * device_count()  # numbers are drawn by kernels of the host's


class device:
    def __init__(self, which):
        self.index = -1 if which is None else which if isinstance(which, int) else torch.device(which).index

    def __enter__(self):
        self.before = current_device()
        if self.index is not None and self.index >= 0:
            set_device(self.index)

    def __exit__(self, *_):
        set_device(self.before)
        return False


def exchange_device(index):
    before = current_device()
    if index >= 0:
        set_device(index)
    return before


def current_stream(which=None):
    return torch.accelerator.current_stream(which)


def stream(which):
    return which


def synchronize(which=None):
    torch.accelerator.synchronize(which)


def is_available():
    return True


def is_initialized():
    return True


def manual_seed_all(seed):
    torch.default_generator.manual_seed(seed)


def _is_in_bad_fork():
    return False


def get_amp_supported_dtype():
    return [torch.bfloat16]
