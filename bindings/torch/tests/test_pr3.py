# SPDX-License-Identifier: Apache-2.0
"""PR-3: the gates ask the device's interface, and a backend whose bit is true passes."""
import contextlib
import types
import unittest
from unittest import mock

import torch

import rondo_torch  # noqa: F401
from rondo_torch import upstream

FAKE = "hpu"  # a type that PyTorch knows and nobody here has
UNCACHED = "cudagraph capture requires the caching allocator; current allocator is uncached"


def setUpModule():
    upstream.install("kept")


def tearDownModule():
    upstream.remove()


def node(name="a"):
    return types.SimpleNamespace(name=name, users=())


def mapping(*devices):
    return {torch.device(device): node(device) for device in devices}


@contextlib.contextmanager
def backend(device_type=FAKE, *, capable=True, cached=True, available=True):
    """A backend that has nothing but an interface."""
    from torch._dynamo import device_interface

    class Fake(device_interface.DeviceInterface):
        @classmethod
        def is_graph_capture_supported(cls):
            return capable

        @staticmethod
        def is_available():
            return available

        class GraphOps(device_interface.DeviceInterface.GraphOps):
            @staticmethod
            def caching_allocator_enabled():
                return cached

    device_interface.get_interface_for_device("cpu")  # so that PyTorch's own are registered first
    with mock.patch.dict(device_interface.device_interfaces, {device_type: Fake}):
        yield Fake


def devices_gate(*devices):
    from torch._inductor import cudagraph_utils

    return cudagraph_utils.check_multiple_devices_or_any_cpu_nodes(mapping(*devices))


def allocator_gate(*devices):
    from torch._inductor import cudagraph_utils

    return cudagraph_utils.check_caching_allocator_for_cudagraphs(mapping(*devices) if devices else None)


def both_gates(*devices):
    from torch._inductor import cudagraph_utils

    return cudagraph_utils.check_lowering_disable_cudagraph(mapping(*devices))


class DevicesGate(unittest.TestCase):
    def test_a_fake_backend_whose_bit_is_true_passes(self):
        with backend():
            self.assertIsNone(devices_gate(f"{FAKE}:0"))
            self.assertIsNone(both_gates(f"{FAKE}:0"))

    def test_a_fake_backend_whose_bit_is_false_does_not(self):
        with backend(capable=False):
            self.assertIn(f"multiple devices: device(type='{FAKE}', index=0)", devices_gate(f"{FAKE}:0"))

    def test_a_device_without_an_interface_is_skipped_and_no_error(self):
        self.assertIn("multiple devices", devices_gate("ipu:0"))
        self.assertIn("multiple devices", both_gates("ipu:0"))

    def test_capable_devices(self):
        for device in ("cuda:0", "cuda:1", "rondo:0"):
            self.assertIsNone(devices_gate(device), device)
            self.assertIsNone(devices_gate(device, "meta"), device)

    def test_two_devices_are_two(self):
        self.assertIn("multiple devices", devices_gate("rondo:0", "cuda:0"))
        self.assertIn("multiple devices", devices_gate("rondo:0", "rondo:1"))

    def test_the_host_is_named(self):
        from torch._inductor import cudagraph_utils

        with mock.patch.object(cudagraph_utils, "is_using_cudagraph_partition", return_value=False):
            self.assertIn("cpu device (cpu)", devices_gate("rondo:0", "cpu"))
        with mock.patch.object(cudagraph_utils, "is_using_cudagraph_partition", return_value=True):
            self.assertIsNone(devices_gate("rondo:0", "cpu"))


class AllocatorGate(unittest.TestCase):
    def setUp(self):
        from torch._inductor import cudagraph_utils

        if not hasattr(cudagraph_utils, "check_caching_allocator_for_cudagraphs"):
            self.skipTest("PyTorch has no gate for allocators here (2.12), so way 3 has none to change")

    def test_no_accelerator_passes(self):
        with mock.patch.object(torch.accelerator, "current_accelerator", return_value=None):
            self.assertIsNone(allocator_gate())

    def test_available_and_uncached(self):
        with backend(cached=False):
            self.assertTrue(allocator_gate(f"{FAKE}:0").endswith(UNCACHED))
            self.assertTrue(both_gates(f"{FAKE}:0").endswith(UNCACHED))
            with mock.patch.object(torch.accelerator, "current_accelerator", return_value=torch.device(FAKE)):
                self.assertTrue(allocator_gate().endswith(UNCACHED))

    def test_unavailable_or_cached_passes(self):
        with backend(cached=False, available=False):
            self.assertIsNone(allocator_gate(f"{FAKE}:0"))
        with backend():
            self.assertIsNone(allocator_gate(f"{FAKE}:0"))

    def test_cuda_by_its_own_symbol(self):
        for enabled in (True, False):
            with (mock.patch.object(torch.cuda, "is_available", return_value=True),
                  mock.patch.object(torch._C, "_cuda_cudaCachingAllocator_is_enabled", create=True,
                                    return_value=enabled) as ask):
                reason = allocator_gate("cuda:0")
                self.assertEqual(reason is None, enabled)
                ask.assert_called_once_with()

    def test_another_device_s_allocator_is_not_asked(self):
        """On a machine with CUDA, an uncached allocator there is no reason against a graph here."""
        with (mock.patch.object(torch.cuda, "is_available", return_value=True),
              mock.patch.object(torch._C, "_cuda_cudaCachingAllocator_is_enabled", create=True, return_value=False)):
            self.assertIsNone(allocator_gate("rondo:0"))
            self.assertIsNone(both_gates("rondo:0"))


class Trees(unittest.TestCase):
    def test_capable_without_operations_for_trees_is_skipped_by_name(self):
        """A double of XPU: capable by the registry, without GraphOps."""
        from torch._dynamo.utils import counters
        from upstream_models import graphed

        trees = torch._inductor.cudagraph_trees
        with mock.patch.object(torch._C, "_accelerator_hasGraphImpl", return_value=True):
            self.assertIsNone(devices_gate("xpu:0"))
            counters.clear()
            run = graphed(trees, lambda x: x + 1, [], device=torch.device("xpu", 0))
            with self.assertLogs("torch._inductor", "WARNING") as logged:
                self.assertEqual(run(torch.ones(2))[0].tolist(), [2.0, 2.0])
            self.assertEqual(run(torch.ones(2))[0].tolist(), [2.0, 2.0])
        self.assertEqual(counters["inductor"]["cudagraph_skips"], 1)
        self.assertIn("xpu: its interface has no GraphOps, which graph trees need", logged.output[0])


if __name__ == "__main__":
    unittest.main()
