# SPDX-License-Identifier: Apache-2.0
"""The device's interface for Dynamo and Inductor: every member, the graph operations, and who can capture."""
import contextlib
import inspect
import subprocess
import sys
import unittest
from unittest import mock

import torch

import rondo_torch
from rondo_torch import _C, graphs, interface

RondoInterface = interface.RondoInterface
GraphOps = RondoInterface.GraphOps
LAST = f"rondo:{_C.device_count() - 1}"


class HasGraphImpl(unittest.TestCase):
    ask = staticmethod(torch._C._accelerator_hasGraphImpl)

    def test_none_is_the_current_accelerator(self):
        self.assertEqual(torch.accelerator.current_accelerator().type, "rondo")
        self.assertIs(self.ask(), True)
        self.assertIs(self.ask(None), True)
        with mock.patch.object(torch.accelerator, "current_accelerator", return_value=torch.device("meta")):
            self.assertIs(self.ask(), False)

    def test_none_without_an_accelerator_is_an_error(self):
        with mock.patch.object(torch.accelerator, "current_accelerator", return_value=None):
            with self.assertRaisesRegex(RuntimeError, "Cannot access accelerator device when none is available"):
                self.ask()

    def test_types(self):
        self.assertIs(self.ask("rondo"), True)
        self.assertIs(self.ask(device_type="rondo"), True)
        self.assertIs(self.ask("cpu"), False)
        self.assertIs(self.ask("cuda"), False)

    def test_an_unknown_type_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "bogus"):
            self.ask("bogus")

    def test_cuda_is_not_registered_and_yet_capable(self):
        self.assertIs(self.ask("cuda"), False)
        self.assertIs(interface.is_graph_capture_supported("cuda"), True)

    def test_capability_by_type(self):
        self.assertIs(interface.is_graph_capture_supported("rondo"), True)
        self.assertIs(interface.is_graph_capture_supported("cpu"), False)
        with mock.patch.object(graphs, "has_graph_impl", side_effect=lambda which: which == "xpu"):
            self.assertIs(interface.is_graph_capture_supported("xpu"), True)
            self.assertIs(interface.is_graph_capture_supported("rondo"), False)

    def test_an_interface_that_says_so_itself_is_believed(self):
        class Fake(interface.GraphInterface):
            @classmethod
            def is_graph_capture_supported(cls):
                return True

        with mock.patch.dict(interface.stock.device_interfaces, {"maia": Fake}):
            self.assertIs(interface.is_graph_capture_supported("maia"), True)
        self.assertIs(interface.is_graph_capture_supported("maia"), False)


class Defaults(unittest.TestCase):
    def test_of_the_interface(self):
        base = interface.GraphInterface
        self.assertIs(base.is_graph_capture_supported(), False)
        with self.assertRaises(NotImplementedError):
            base.default_generators()

    def test_of_the_graph_operations(self):
        ops = interface.GraphInterface.GraphOps
        for name, arguments in (("graph_pool_handle", ()), ("begin_allocate_current_thread_to_pool", (0, (0, 1))),
                                ("end_allocate_to_pool", (0, (0, 1))), ("release_pool", (0, (0, 1))),
                                ("get_checkpoint_state", (0, (0, 1))), ("set_checkpoint_pool_state", (0, None, [], [])),
                                ("check_pool_live_allocations", (0, (0, 1), set())), ("raw_delete", (0,)),
                                ("create_graph", ())):
            with self.subTest(name), self.assertRaises(NotImplementedError):
                getattr(ops, name)(*arguments)
        self.assertIs(ops.caching_allocator_enabled(), True)
        self.assertIsNone(ops.memory_snapshot())
        with ops.prepare_for_capture() as nothing:
            self.assertIsNone(nothing)

    def test_make_graph_has_its_pool_and_its_mode(self):
        pool = GraphOps.graph_pool_handle()
        graph = interface.GraphInterface.GraphOps.make_graph(pool)
        self.assertIsInstance(graph, torch.accelerator.Graph)
        self.assertEqual((graph.graph_pool, graph.capture_error_mode), (pool, "thread_local"))

    def test_what_an_interface_has_stays(self):
        class Own(interface.DeviceInterface):
            class GraphOps:
                pass

            @staticmethod
            def default_generators():
                return "mine"

        ops = Own.GraphOps
        interface.complete(Own)
        self.assertIs(Own.GraphOps, ops)
        self.assertEqual(Own.default_generators(), "mine")
        self.assertIs(Own.is_graph_capture_supported(), False)


class Members(unittest.TestCase):
    def test_every_member_of_pytorchs_interface_is_the_devices_own(self):
        for name in dir(interface.DeviceInterface):
            if name.startswith("__"):
                continue
            with self.subTest(name):
                mine = inspect.getattr_static(RondoInterface, name)
                self.assertIsNot(mine, inspect.getattr_static(interface.DeviceInterface, name))

    def test_the_very_functions(self):
        self.assertIs(GraphOps.graph_pool_handle, torch.rondo.graph_pool_handle)
        self.assertIs(GraphOps.memory_snapshot, torch.rondo.memory_snapshot)
        self.assertIs(RondoInterface.device, torch.rondo.device)
        self.assertIs(RondoInterface.synchronize, torch.rondo.synchronize)
        for name in ("begin_allocate_current_thread_to_pool", "end_allocate_to_pool", "release_pool",
                     "get_checkpoint_state", "set_checkpoint_pool_state", "check_pool_live_allocations",
                     "raw_delete"):
            self.assertIs(getattr(GraphOps, name), getattr(_C, name), name)

    def test_devices(self):
        last = _C.device_count() - 1
        self.assertEqual(RondoInterface.device_count(), torch.rondo.device_count())
        self.assertTrue(RondoInterface.is_available())
        with RondoInterface.device(last):
            self.assertEqual(RondoInterface.current_device(), last)
        self.assertEqual(RondoInterface.current_device(), 0)
        self.assertEqual(RondoInterface.exchange_device(last), 0)
        self.assertEqual(RondoInterface.maybe_exchange_device(-1), last)
        self.assertEqual(RondoInterface.maybe_exchange_device(0), last)
        RondoInterface.set_device(LAST)
        self.assertEqual(RondoInterface.current_device(), last)
        RondoInterface.set_device(0)

    def test_streams(self):
        stream = RondoInterface.Stream()
        self.assertIsInstance(stream, torch.Stream)
        with RondoInterface.stream(stream):
            self.assertEqual(RondoInterface.current_stream(), stream)
            self.assertEqual(RondoInterface.get_raw_stream(0), stream.native_handle)
        self.assertNotEqual(RondoInterface.current_stream(), stream)
        before = RondoInterface.current_stream()
        RondoInterface._set_stream_by_id(stream.stream_id, stream.device_index, stream.device_type)
        self.assertEqual(RondoInterface.current_stream(), stream)
        RondoInterface.set_stream(before)
        self.assertEqual(RondoInterface.current_stream(), before)
        self.assertTrue(RondoInterface.exposes_streams())
        self.assertIsInstance(RondoInterface.Event(device="rondo"), torch.Event)

    def test_properties(self):
        index = _C.device_count() - 1
        for which in (index, LAST, torch.device(LAST)):
            properties = RondoInterface.get_device_properties(which)
            self.assertEqual(properties.name, torch.rondo.get_device_name(LAST))
            self.assertGreater(properties.total_memory, 0)
            self.assertGreaterEqual(properties.multi_processor_count, 1)
        count = RondoInterface.get_device_properties().multi_processor_count
        self.assertEqual(RondoInterface.get_multi_processor_count(), count)
        self.assertEqual(RondoInterface.Worker.current_device(), 0)
        try:
            RondoInterface.Worker.set_device(index)
            self.assertEqual(RondoInterface.Worker.current_device(), index)
            self.assertIs(RondoInterface.Worker.get_device_properties(), RondoInterface.get_device_properties(index))
        finally:
            interface.stock.caching_worker_current_devices.pop("rondo", None)

    def test_a_device_that_is_not_there(self):
        with self.assertRaisesRegex(RuntimeError, "there is no device 99"):
            RondoInterface.get_device_properties(99)
        with self.assertRaisesRegex(ValueError, "Expected a rondo device, but got: cpu"):
            RondoInterface.get_device_properties("cpu")

    def test_what_kernels_may_use(self):
        self.assertTrue(RondoInterface.is_bf16_supported())
        self.assertTrue(RondoInterface.is_dtype_supported(torch.bfloat16))
        self.assertFalse(RondoInterface.is_gpu())
        self.assertFalse(RondoInterface.is_triton_capable())
        with self.assertRaisesRegex(RuntimeError, "no Triton"):
            RondoInterface.raise_if_triton_unavailable()
        self.assertEqual(RondoInterface.get_compute_capability(), _C.backend())
        self.assertEqual(RondoInterface.get_cpp_device_options(False, False), ([], [], [], [], [], [], []))
        self.assertEqual(RondoInterface.get_cache_system_info(),
                         {"rondo_torch": rondo_torch.__version__, "backend": _C.backend()})

    def test_memory_and_generators(self):
        before = RondoInterface.memory_allocated()
        x = torch.empty(1024, device="rondo")
        self.assertEqual(RondoInterface.memory_allocated() - before, x.untyped_storage().nbytes())
        generators = RondoInterface.default_generators()
        self.assertEqual([str(g.device) for g in generators], [f"rondo:{i}" for i in range(_C.device_count())])
        generators[0].manual_seed(7)
        first = torch.rand(4, device="rondo:0").cpu()
        torch.rondo.manual_seed(7)
        self.assertTrue(first.equal(torch.rand(4, device="rondo:0").cpu()))

    def test_registration(self):
        self.assertTrue(interface.register())
        known = interface.stock.device_interfaces
        for name in ("rondo", *(f"rondo:{i}" for i in range(_C.device_count()))):
            self.assertIs(known[name], RondoInterface)
        self.assertIs(interface.stock.get_interface_for_device(torch.device("rondo")), RondoInterface)
        size = len(known)
        self.assertTrue(interface.register())
        self.assertEqual(len(known), size)

    def test_importing_the_package_imports_no_dynamo(self):
        code = ("import torch, rondo_torch, sys; "
                "sys.exit('torch._dynamo' in sys.modules or 'torch._inductor' in sys.modules)")
        self.assertEqual(subprocess.run([sys.executable, "-c", code], check=False).returncode, 0)


class Pools(unittest.TestCase):
    """The operations of pools, each for what it does to the allocator."""

    def setUp(self):
        self.pool = GraphOps.graph_pool_handle()

    @contextlib.contextmanager
    def diverted(self, index=0):
        GraphOps.begin_allocate_current_thread_to_pool(index, self.pool)
        try:
            yield
        finally:
            GraphOps.end_allocate_to_pool(index, self.pool)

    def segments(self):
        return [s for s in GraphOps.memory_snapshot() if s["segment_pool_id"] == self.pool]

    def test_a_handle_has_one_part(self):
        other = GraphOps.graph_pool_handle()
        self.assertNotEqual(self.pool, other)
        self.assertEqual((self.pool[0], other[0]), (0, 0))
        self.assertGreater(self.pool[1], 0)

    def test_diversion_ends_and_its_pool_is_released(self):
        with self.diverted():
            x = torch.empty(16, device="rondo")
        y = torch.empty(16, device="rondo")
        segments = self.segments()
        self.assertEqual(len(segments), 1)
        start, end = segments[0]["address"], segments[0]["address"] + segments[0]["total_size"]
        self.assertTrue(start <= x.data_ptr() < end)
        self.assertFalse(start <= y.data_ptr() < end)
        live = [b["state"] for b in segments[0]["blocks"]]
        self.assertEqual(live, ["active_allocated", "inactive"])
        self.assertEqual(graphs.memory_snapshot(self.pool), segments)
        del x
        GraphOps.release_pool(0, self.pool)
        self.assertEqual(self.segments(), [])
        with self.assertRaisesRegex(RuntimeError, "released"):
            GraphOps.begin_allocate_current_thread_to_pool(0, self.pool)

    def test_diversion_is_of_one_device(self):
        if _C.device_count() < 2:
            self.skipTest("one device")
        with self.diverted(1):
            x, y = torch.empty(16, device="rondo:0"), torch.empty(16, device="rondo:1")
        self.assertTrue(GraphOps.check_pool_live_allocations(1, self.pool, {y.data_ptr()}))
        self.assertEqual([s["device"] for s in self.segments()], [1])
        self.assertNotEqual(x.data_ptr(), y.data_ptr())

    def test_wrong_order(self):
        with self.diverted():
            with self.assertRaisesRegex(RuntimeError, "records already: end that first"):
                GraphOps.begin_allocate_current_thread_to_pool(0, self.pool)
        with self.assertRaisesRegex(RuntimeError, "does not record"):
            GraphOps.end_allocate_to_pool(0, self.pool)
        with self.assertRaisesRegex(RuntimeError, "there is no pool .* never begun"):
            GraphOps.get_checkpoint_state(0, GraphOps.graph_pool_handle())
        with self.assertRaisesRegex(RuntimeError, "there is no device 99"):
            GraphOps.begin_allocate_current_thread_to_pool(99, self.pool)

    def test_live_allocations(self):
        with self.diverted():
            x, y = torch.empty(16, device="rondo"), torch.empty(16, device="rondo")
        both = {x.data_ptr(), y.data_ptr()}
        self.assertTrue(GraphOps.check_pool_live_allocations(0, self.pool, both))
        self.assertFalse(GraphOps.check_pool_live_allocations(0, self.pool, {x.data_ptr()}))
        self.assertFalse(GraphOps.check_pool_live_allocations(0, self.pool, both | {1}))
        del y
        self.assertTrue(GraphOps.check_pool_live_allocations(0, self.pool, {x.data_ptr()}))

    def test_a_checkpoint_restores_the_layout_and_deleters(self):
        with self.diverted():
            x, y = torch.empty(16, device="rondo"), torch.empty(16, device="rondo")
        state = GraphOps.get_checkpoint_state(0, self.pool)
        addresses = x.data_ptr(), y.data_ptr()
        del x, y
        self.assertTrue(GraphOps.check_pool_live_allocations(0, self.pool, set()))
        # What a replay leaves: a storage over the block that owns nothing. It owns the block from the restore on.
        storage = torch._C._construct_storage_from_data_pointer(addresses[0], torch.device("rondo", 0), 64)
        GraphOps.set_checkpoint_pool_state(0, state, [], [storage._cdata])
        self.assertTrue(GraphOps.check_pool_live_allocations(0, self.pool, set(addresses)))
        del storage
        self.assertTrue(GraphOps.check_pool_live_allocations(0, self.pool, {addresses[1]}))
        GraphOps.raw_delete(addresses[1])
        self.assertTrue(GraphOps.check_pool_live_allocations(0, self.pool, set()))

    def test_a_stale_storage_loses_its_deleter(self):
        with self.diverted():
            pass
        state = GraphOps.get_checkpoint_state(0, self.pool)
        with self.diverted():
            x = torch.empty(16, device="rondo")
        GraphOps.set_checkpoint_pool_state(0, state, [x.untyped_storage()._cdata], [])
        self.assertTrue(GraphOps.check_pool_live_allocations(0, self.pool, set()))
        with self.diverted():
            y = torch.empty(16, device="rondo")
        del x  # its deleter would free the block of y
        self.assertTrue(GraphOps.check_pool_live_allocations(0, self.pool, {y.data_ptr()}))

    def test_raw_delete_finds_the_device(self):
        for index in range(_C.device_count()):
            with self.diverted(index):
                x = torch.empty(16, device=f"rondo:{index}")
            state = GraphOps.get_checkpoint_state(index, self.pool)
            address = x.data_ptr()
            del x
            GraphOps.set_checkpoint_pool_state(index, state, [], [])
            GraphOps.raw_delete(address)
            self.assertTrue(GraphOps.check_pool_live_allocations(index, self.pool, set()))
        with self.assertRaisesRegex(RuntimeError, "0x40 is not the start of a live allocation"):
            GraphOps.raw_delete(64)


if __name__ == "__main__":
    unittest.main()
