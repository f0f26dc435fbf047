# SPDX-License-Identifier: Apache-2.0
"""PR-4: DeviceInterface.GraphOps, symbol by symbol."""
import inspect
import unittest
from unittest import mock

import torch

import rondo_torch  # noqa: F401
from rondo_torch import upstream

# Member -> the callee that CUDA forwards to, and arguments for it.
FORWARDED = {
    "begin_allocate_current_thread_to_pool": ("_cuda_beginAllocateCurrentThreadToPool", (0, (0, 1))),
    "end_allocate_to_pool": ("_cuda_endAllocateToPool", (1, (0, 2))),
    "release_pool": ("_cuda_releasePool", (0, (0, 3))),
    "get_checkpoint_state": ("_cuda_getCheckpointState", (0, (0, 4))),
    "set_checkpoint_pool_state": ("_cuda_setCheckpointPoolState", (0, "state", [1], [2])),
    "check_pool_live_allocations": ("_cuda_checkPoolLiveAllocations", (0, (0, 5), {6, 7})),
    "raw_delete": ("_cuda_cudaCachingAllocator_raw_delete", (4096,)),
    "caching_allocator_enabled": ("_cuda_cudaCachingAllocator_is_enabled", ()),
}
PARAMETERS = {
    "graph_pool_handle": [], "begin_allocate_current_thread_to_pool": ["device", "pool"],
    "end_allocate_to_pool": ["device", "pool"], "release_pool": ["device", "pool"],
    "get_checkpoint_state": ["device", "pool"],
    "set_checkpoint_pool_state": ["device", "state", "stale_storages", "storages_to_add_deleters_to"],
    "check_pool_live_allocations": ["device", "pool", "expected_live_allocations"], "raw_delete": ["ptr"],
}


def setUpModule():
    upstream.install("kept")


def tearDownModule():
    upstream.remove()


def operations(device_type):
    from torch._dynamo.device_interface import DeviceInterface, get_interface_for_device

    return (get_interface_for_device(device_type) if device_type else DeviceInterface).GraphOps


class Cuda(unittest.TestCase):
    def test_plain_functions_are_the_very_objects(self):
        self.assertIs(operations("cuda").graph_pool_handle, torch.cuda.graph_pool_handle)
        self.assertIs(operations("cuda").memory_snapshot, torch.cuda.memory_snapshot)

    def test_late_bound_ones_reach_their_callee(self):
        for name, (callee, arguments) in FORWARDED.items():
            with mock.patch.object(torch._C, callee, create=True, return_value=object()) as double:
                got = getattr(operations("cuda"), name)(*arguments)
                double.assert_called_once_with(*arguments)
                answers = name.startswith(("get", "check", "caching"))
                self.assertIs(got, double.return_value if answers else None, name)

    def test_default_generators_are_the_very_object(self):
        from torch._dynamo.device_interface import CudaInterface

        self.assertIs(CudaInterface.default_generators(), torch.cuda.default_generators)

    def test_preparation_clears_saves_restores_and_clears(self):
        calls = mock.Mock()
        calls.get.return_value = "before"
        with (mock.patch.object(torch._C, "_cuda_clearCublasWorkspaces", calls.clear, create=True),
              mock.patch.object(torch._C, "_cuda_get_conv_benchmark_empty_cache", calls.get, create=True),
              mock.patch.object(torch._C, "_cudnn_set_conv_benchmark_empty_cache", calls.set, create=True)):
            for fails in (False, True):
                calls.reset_mock()
                try:
                    with operations("cuda").prepare_for_capture():
                        calls.body()
                        if fails:
                            raise KeyError
                except KeyError:
                    pass
                self.assertEqual(calls.mock_calls, [mock.call.clear(), mock.call.get(), mock.call.set(False),
                                                    mock.call.body(),
                                                    mock.call.set("before"), mock.call.clear()])

    def test_graphs_by_duck_typing(self):
        with (mock.patch.object(torch.cuda, "CUDAGraph") as made, mock.patch.object(torch.cuda, "graph") as capture):
            graph = operations("cuda").create_graph()
            self.assertIs(graph, made.return_value)
            with operations("cuda").capture_context(graph, "stream", (0, 1), "relaxed"):
                capture.assert_called_once_with(graph, stream="stream", pool=(0, 1), capture_error_mode="relaxed")
                capture.return_value.__exit__.assert_not_called()
            capture.return_value.__exit__.assert_called_once()


class Base(unittest.TestCase):
    def test_what_a_device_must_have_is_not_implemented(self):
        for name, parameters in PARAMETERS.items():
            member = getattr(operations(None), name)
            self.assertEqual(list(inspect.signature(member).parameters), parameters, name)
            with self.assertRaises(NotImplementedError):
                member(*parameters)
        with self.assertRaises(NotImplementedError):
            operations(None).create_graph()

    def test_the_rest_has_defaults(self):
        self.assertIs(operations(None).caching_allocator_enabled(), True)
        self.assertIsNone(operations(None).memory_snapshot())
        with operations(None).prepare_for_capture() as nothing:
            self.assertIsNone(nothing)

    def test_a_graph_is_the_accelerator_s(self):
        pool = operations("rondo").graph_pool_handle()
        graph = operations(None).make_graph(pool)
        self.assertIs(type(graph), torch.accelerator.Graph)
        self.assertEqual((graph.graph_pool, graph.capture_error_mode), (pool, "thread_local"))

    def test_a_capture_enters_stream_then_graph(self):
        order = []

        class Entered:
            def __init__(self, name):
                self.name = name

            def __enter__(self):
                order.append(f"+{self.name}")

            def __exit__(self, *_):
                order.append(f"-{self.name}")

        with operations(None).capture_context(Entered("graph"), Entered("stream")):
            order.append("body")
        self.assertEqual(order, ["+stream", "+graph", "body", "-graph", "-stream"])

    def test_xpu_has_the_bit_and_not_the_operations(self):
        self.assertIs(operations("xpu"), operations(None))


class Rondo(unittest.TestCase):
    def test_every_member_is_its_own(self):
        base = operations(None)
        for name in (*PARAMETERS, "memory_snapshot", "create_graph", "capture_context"):
            self.assertIsNot(getattr(operations("rondo"), name), getattr(base, name), name)

    def test_a_pool_from_its_handle_to_its_release(self):
        ops = operations("rondo")
        pool = ops.graph_pool_handle()
        self.assertNotEqual(pool, ops.graph_pool_handle())
        ops.begin_allocate_current_thread_to_pool(0, pool)
        inside = torch.ones(1000, device="rondo:0")
        ops.end_allocate_to_pool(0, pool)
        outside = torch.ones(1000, device="rondo:0")
        self.assertTrue(ops.check_pool_live_allocations(0, pool, {inside.data_ptr()}))
        self.assertFalse(ops.check_pool_live_allocations(0, pool, {inside.data_ptr(), outside.data_ptr()}))
        segments = [segment for segment in ops.memory_snapshot() if segment["segment_pool_id"] == pool]
        blocks = [block for segment in segments for block in segment["blocks"]]
        self.assertEqual(sum(block["state"] == "active_allocated" for block in blocks), 1)
        state = ops.get_checkpoint_state(0, pool)
        address = inside.data_ptr()
        del inside
        self.assertTrue(ops.check_pool_live_allocations(0, pool, set()))
        ops.set_checkpoint_pool_state(0, state, [], [])
        self.assertTrue(ops.check_pool_live_allocations(0, pool, {address}))
        ops.raw_delete(address)
        self.assertTrue(ops.check_pool_live_allocations(0, pool, set()))
        ops.release_pool(0, pool)


if __name__ == "__main__":
    unittest.main()
