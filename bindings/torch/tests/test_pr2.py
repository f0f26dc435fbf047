# SPDX-License-Identifier: Apache-2.0
"""PR-2: whether a device can capture graphs can be asked from end to end, and CUDA says yes."""
import unittest
from unittest import mock

import torch

import rondo_torch  # noqa: F401
from rondo_torch import upstream


def setUpModule():
    upstream.install("kept")


def tearDownModule():
    upstream.remove()


def interface(device_type):
    from torch._dynamo.device_interface import get_interface_for_device

    return get_interface_for_device(device_type)


class Capability(unittest.TestCase):
    def test_the_registry_answers(self):
        ask = torch._C._accelerator_hasGraphImpl
        self.assertIs(ask(), True)  # the current accelerator
        self.assertIs(ask(None), True)
        self.assertIs(ask("rondo"), True)
        self.assertIs(ask("cpu"), False)
        with self.assertRaises(RuntimeError):
            ask("no such device")
        with mock.patch.object(torch.accelerator, "current_accelerator", return_value=None):
            with self.assertRaisesRegex(RuntimeError, "no|none"):
                ask()

    def test_cuda_is_capable_and_not_registered(self):
        self.assertIs(interface("cuda").is_graph_capture_supported(), True)
        self.assertIs(torch._C._accelerator_hasGraphImpl("cuda"), False)

    def test_the_base_is_not_capable(self):
        from torch._dynamo.device_interface import DeviceInterface

        class Mine(DeviceInterface):
            pass

        self.assertIs(DeviceInterface.is_graph_capture_supported(), False)
        self.assertIs(Mine.is_graph_capture_supported(), False)
        for device_type in ("cpu", "mps"):
            self.assertIs(interface(device_type).is_graph_capture_supported(), False, device_type)

    def test_rondo_asks_the_registry(self):
        self.assertIs(interface("rondo").is_graph_capture_supported(), True)
        self.assertIs(interface("rondo:0").is_graph_capture_supported(), True)

    def test_xpu_asks_the_registry(self):
        for answer in (True, False):
            with mock.patch.object(torch._C, "_accelerator_hasGraphImpl", return_value=answer) as ask:
                self.assertIs(interface("xpu").is_graph_capture_supported(), answer)
                ask.assert_called_once_with("xpu")

    def test_xpu_without_the_binding_is_not_capable(self):
        had = torch._C._accelerator_hasGraphImpl
        del torch._C._accelerator_hasGraphImpl
        try:
            self.assertIs(interface("xpu").is_graph_capture_supported(), False)
        finally:
            torch._C._accelerator_hasGraphImpl = had

    def test_without_way_3_there_is_no_bit(self):
        from torch._dynamo.device_interface import CudaInterface

        upstream.remove()
        try:
            self.assertNotIn("is_graph_capture_supported", vars(CudaInterface))
        finally:
            upstream.install("kept")


if __name__ == "__main__":
    unittest.main()
