# SPDX-License-Identifier: Apache-2.0
"""The device's interface for Dynamo, and its part in Inductor: every operator stays a call of ATen's."""
import types

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device
from torch._inductor import config
from torch._inductor.codegen.common import (DeviceOpOverrides, register_backend_for_device,
                                            register_device_op_overrides)
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.codegen.wrapper import PythonWrapperCodegen

from . import _C, npu


class NpuInterface(DeviceInterface):
    """What a package has for Dynamo today: nothing of graphs."""

    device = npu.device
    Event = npu.Event
    Stream = npu.Stream

    class Worker:
        set_device = staticmethod(npu.set_device)
        current_device = staticmethod(npu.current_device)

        @staticmethod
        def get_device_properties(device=None):
            return types.SimpleNamespace(name="npu", multi_processor_count=1)

    current_device = staticmethod(npu.current_device)
    set_device = staticmethod(npu.set_device)
    device_count = staticmethod(npu.device_count)
    is_available = staticmethod(npu.is_available)
    exchange_device = staticmethod(npu.exchange_device)
    maybe_exchange_device = staticmethod(npu.exchange_device)
    stream = staticmethod(npu.stream)
    current_stream = staticmethod(npu.current_stream)
    set_stream = staticmethod(torch.accelerator.set_stream)
    get_raw_stream = staticmethod(_C._npu_getCurrentRawStream)
    synchronize = staticmethod(npu.synchronize)
    memory_allocated = staticmethod(lambda device=None: 0)
    is_bf16_supported = staticmethod(lambda including_emulation=False: True)

    @staticmethod
    def _set_stream_by_id(stream_id, device_index, device_type):
        stream = torch.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)
        torch.accelerator.set_stream(stream)


class Overrides(DeviceOpOverrides):
    def import_get_raw_stream_as(self, name):
        return f"def {name}(index): return 0"

    def set_device(self, device_idx):
        return f"torch.npu.set_device({device_idx})"

    def synchronize(self):
        return "torch.npu.synchronize()"

    def device_guard(self, device_idx):
        return f"torch.npu.device({device_idx})"


def register():
    for name in ("npu", *(f"npu:{index}" for index in range(npu.device_count()))):
        register_interface_for_device(name, NpuInterface)
    register_device_op_overrides("npu", Overrides())
    register_backend_for_device("npu", CppScheduling, PythonWrapperCodegen)
    config.fallback_by_default = True
