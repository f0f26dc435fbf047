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

import second
from second import _second


class SecondInterface(DeviceInterface):
    device = second.device
    Event = torch.Event
    Stream = torch.Stream

    class Worker:
        set_device = staticmethod(_second.set_device)
        current_device = staticmethod(_second.current_device)

        @staticmethod
        def get_device_properties(device=None):
            return types.SimpleNamespace(name="second", multi_processor_count=1)

    current_device = staticmethod(_second.current_device)
    set_device = staticmethod(_second.set_device)
    device_count = staticmethod(_second.device_count)
    is_available = staticmethod(lambda: True)
    exchange_device = staticmethod(second.exchange_device)
    maybe_exchange_device = staticmethod(second.exchange_device)
    stream = staticmethod(lambda stream: stream)
    current_stream = staticmethod(second.current_stream)
    set_stream = staticmethod(torch.accelerator.set_stream)
    get_raw_stream = staticmethod(lambda index: torch.accelerator.current_stream(index).stream_id)
    synchronize = staticmethod(lambda device=None: None)
    memory_allocated = staticmethod(lambda device=None: 0)
    is_bf16_supported = staticmethod(lambda including_emulation=False: True)
    is_graph_capture_supported = staticmethod(lambda: True)

    @staticmethod
    def _set_stream_by_id(stream_id, device_index, device_type):
        stream = torch.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)
        torch.accelerator.set_stream(stream)


class Overrides(DeviceOpOverrides):
    def import_get_raw_stream_as(self, name):
        return f"def {name}(index): return 0"

    def set_device(self, device_idx):
        return f"torch.second.set_device({device_idx})"

    def synchronize(self):
        return "pass"

    def device_guard(self, device_idx):
        return f"torch.second.device({device_idx})"


def register():
    for name in ("second", *(f"second:{index}" for index in range(_second.device_count()))):
        register_interface_for_device(name, SecondInterface)
    register_device_op_overrides("second", Overrides())
    register_backend_for_device("second", CppScheduling, PythonWrapperCodegen)
    config.fallback_by_default = True
