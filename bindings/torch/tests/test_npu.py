# SPDX-License-Identifier: Apache-2.0
"""An Ascend package's device under Rondo: NPUGraphImpl and NpuInterface over a stand-in for the package, on the
simulated libascendcl. The stand-in uses nothing of Rondo."""
import contextlib
import ctypes
import gc
import json
import os
import tempfile
import threading
import unittest
import warnings
from unittest import mock

WANTED = os.environ.get("RONDO_TORCH_DEVICE")

import npu_device  # noqa: E402  (before PyTorch: it says that the place is not Rondo's)
import standins  # noqa: E402

if WANTED == "sim":
    npu_device.leave_out("no device of Rondo's is used here: one run is enough")
npu_standin, simulator = npu_device.load()

import torch  # noqa: E402

import rondo_torch  # noqa: E402
from npu_standin import inductor  # noqa: E402
from rondo_torch import config, graphs, interface, npu, upstream  # noqa: E402
from rondo_torch.attach import Attachment  # noqa: E402

inductor.register()
FOREIGN = inductor.NpuInterface


def values(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class Alone(unittest.TestCase):
    """The stand-in by itself: what the rest of this file stands on. It runs first, before anything is registered."""

    def test_1_nothing_is_there_for_graphs(self):
        self.assertEqual(torch.accelerator.current_accelerator().type, "npu")
        self.assertEqual(rondo_torch.without_device, "RONDO_TORCH_DEVICE is none")
        self.assertIs(graphs.has_graph_impl("npu"), False)
        self.assertIs(interface.is_graph_capture_supported("npu"), False)
        with self.assertRaisesRegex(RuntimeError, "not supported on device type: npu"):
            torch.accelerator.Graph()

    def test_2_installing_adds_what_is_missing(self):
        made = npu.install()
        self.assertTrue(issubclass(made, FOREIGN) and issubclass(made, npu.Members))
        for name in ("npu", "npu:0", "npu:1"):
            self.assertIs(torch._dynamo.device_interface.get_interface_for_device(name), made)
        self.assertIs(npu.install(), made)
        self.assertIs(made.current_device, FOREIGN.current_device)
        self.assertTrue(made.is_graph_capture_supported() and interface.is_graph_capture_supported("npu"))
        self.assertIs(rondo_torch._C.register_npu_graph_impl(None), False)  # it is there already

    def test_training_equals_the_cpu(self):
        standins.compare_training("npu")

    def test_the_packages_own_graph(self):
        x = torch.ones(4, device="npu")
        graph = torch.npu.NPUGraph()
        with torch.Stream(device="npu"):
            graph.capture_begin()
            y = torch.relu(x * 2 - 3)
            graph.capture_end()
        for value in (5.0, 1.0):
            x.fill_(value)
            graph.replay()
            self.assertEqual(y.cpu().tolist(), [max(0.0, 2 * value - 3)] * 4)


# Each member of GraphOps that comes from the package: arguments, and what stands for its result.
BOUND = {
    "graph_pool_handle": ((), (0, 77)),
    "begin_allocate_current_thread_to_pool": ((0, (0, 77)), None),
    "end_allocate_to_pool": ((0, (0, 77)), None),
    "release_pool": ((0, (0, 77)), None),
    "get_checkpoint_state": ((0, (0, 77)), "state"),
    "set_checkpoint_pool_state": ((0, "state", [], [1]), None),
    "check_pool_live_allocations": ((0, (0, 77), {5}), True),
    "raw_delete": ((12345,), None),
    "memory_snapshot": ((), ["segment"]),
    "create_graph": ((), "graph"),
}
NAMES = {  # the package's names, written out a second time: what a package really has
    "graph_pool_handle": (npu_standin.npu, "graph_pool_handle"),
    "begin_allocate_current_thread_to_pool": (npu_standin._C, "_npu_beginAllocateCurrentThreadToPool"),
    "end_allocate_to_pool": (npu_standin._C, "_npu_endAllocateToPool"),
    "release_pool": (npu_standin._C, "_npu_releasePool"),
    "get_checkpoint_state": (npu_standin._C, "_npu_getCheckpointState"),
    "set_checkpoint_pool_state": (npu_standin._C, "_npu_setCheckpointPoolState"),
    "check_pool_live_allocations": (npu_standin._C, "_npu_checkPoolLiveAllocations"),
    "raw_delete": (npu_standin._C, "_npu_npuCachingAllocator_raw_delete"),
    "memory_snapshot": (npu_standin.npu, "memory_snapshot"),
    "create_graph": (npu_standin.npu, "NPUGraph"),
}


class Table(unittest.TestCase):
    """NpuInterface, symbol by symbol."""

    def setUp(self):
        npu.install()
        self.ops = npu.NpuInterface.GraphOps

    def test_the_table_is_whole(self):
        members = {name for name in vars(interface._GraphOps) if not name.startswith("_")}
        own = {"caching_allocator_enabled", "prepare_for_capture", "make_graph", "capture_context"}
        members.discard("bindings")  # storages of any device's, and there with Inductor's own trees alone
        self.assertEqual(members, set(BOUND) | own)
        self.assertEqual(set(npu.LATE), set(BOUND))
        self.assertTrue(issubclass(self.ops, interface.GraphOps))

    def test_each_reaches_the_packages_own(self):
        for name, (arguments, result) in BOUND.items():
            with self.subTest(name):
                owner, attribute = NAMES[name]
                with mock.patch.object(owner, attribute, return_value=result) as callee:
                    self.assertEqual(getattr(self.ops, name)(*arguments), result)
                callee.assert_called_once_with(*arguments)
        self.assertEqual(npu.missing(), {})

    def test_each_is_looked_up_when_it_is_called(self):
        for name, (arguments, result) in BOUND.items():
            with self.subTest(name):
                held = getattr(self.ops, name)
                with mock.patch.object(*NAMES[name], return_value=result) as callee:
                    self.assertEqual(held(*arguments), result)
                callee.assert_called_once_with(*arguments)

    def test_each_has_its_default_where_the_package_has_none(self):
        for name, (arguments, _) in BOUND.items():
            owner, attribute = NAMES[name]
            held, late = getattr(owner, attribute), getattr(self.ops, name)
            with self.subTest(name):
                delattr(owner, attribute)
                try:
                    self.assertEqual(list(npu.missing()), [name])
                    self.assertIs(getattr(self.ops, name), getattr(interface._GraphOps, name))
                    for function in (getattr(self.ops, name), late):
                        if name == "memory_snapshot":
                            self.assertIsNone(function())
                        else:
                            self.assertRaises(NotImplementedError, function, *arguments)
                    self.assertIs(Attachment("npu", self.ops).has(name), False)
                finally:
                    setattr(owner, attribute, held)
                self.assertIs(Attachment("npu", self.ops).has(name), True)

    def test_inductors_own_trees_see_what_is_missing(self):
        upstream.install("kept")
        self.addCleanup(upstream.remove)
        unsupported = torch._inductor.cudagraph_trees._graph_trees_unsupported
        self.assertIsNone(unsupported(torch.device("npu", 0)))
        with mock.patch.object(npu_standin._C, "_npu_getCheckpointState", None):
            self.assertEqual(unsupported(torch.device("npu", 0)), "skipping cudagraphs due to npu: its GraphOps has no "
                             "get_checkpoint_state, which graph trees need")

    def test_a_package_without_a_pool_operation_is_skipped_with_the_reason(self):
        with mock.patch.object(npu_standin._C, "_npu_getCheckpointState", None):
            self.assertEqual(Attachment("npu", None).why_no_trees,
                             "npu can capture graphs, but its GraphOps lacks get_checkpoint_state")
        self.assertEqual(Attachment("npu", None).why_no_trees, "")

    def test_the_members_with_an_answer_of_their_own(self):
        self.assertIs(npu.NpuInterface.is_graph_capture_supported(), True)
        with mock.patch.object(graphs, "has_graph_impl", return_value=False) as asked:
            self.assertIs(npu.NpuInterface.is_graph_capture_supported(), False)
        asked.assert_called_once_with("npu")
        self.assertIs(npu.NpuInterface.default_generators(), torch.npu.default_generators)
        self.assertIs(self.ops.caching_allocator_enabled(), True)
        with mock.patch.dict(os.environ, {"PYTORCH_NO_NPU_MEMORY_CACHING": "1"}):
            self.assertIs(self.ops.caching_allocator_enabled(), False)
        with self.ops.prepare_for_capture() as nothing:
            self.assertIsNone(nothing)
        graph = self.ops.make_graph((0, 99))
        self.assertIs(type(graph), torch.accelerator.Graph)
        self.assertEqual((graph.graph_pool, graph.capture_error_mode), ((0, 99), "thread_local"))

    def test_capture_context_of_both_kinds(self):
        x = torch.ones(4, device="npu")
        for make in (self.ops.create_graph, lambda: self.ops.make_graph(pool)):
            pool = self.ops.graph_pool_handle()
            graph = make()
            with self.ops.capture_context(graph, torch.Stream(device="npu"), pool):
                y = x * 3
            self.assertEqual(graph.pool(), pool)
            graph.replay()
            self.assertEqual(y.cpu().tolist(), [3.0] * 4)

    def test_without_a_package(self):
        with mock.patch.object(npu, "_find", return_value=None):
            self.assertIn("_npu_getCurrentRawStream", npu.why_not())
            with self.assertRaisesRegex(RuntimeError, "its streams cannot be known"):
                npu.install()
        with mock.patch.object(interface, "interface_of", return_value=None):
            self.assertIn("no interface with Dynamo", npu.why_not())

    def test_a_package_with_operations_of_its_own_keeps_them(self):
        known = interface.interface_of("npu")
        own = type("Own", (FOREIGN,), {"GraphOps": type("GraphOps", (), {})})
        with mock.patch.object(interface, "interface_of", return_value=own):
            self.assertIs(npu.install(), own)
        self.assertIs(interface.interface_of("npu"), known)


class Graphs(unittest.TestCase):
    """torch.accelerator.Graph on npu: NPUGraphImpl."""

    def setUp(self):
        npu.install()
        self.x = torch.ones(4, device="npu")
        self.stream = torch.Stream(device="npu")

    def tearDown(self):
        gc.collect()

    def capture(self, **options):
        graph = torch.accelerator.Graph(**options)
        with self.stream, graph:
            y = torch.relu(self.x * 2 - 3)
        return graph, y

    def given_back(self, pool):
        """Nothing is allocated from the pool any more, and the graph has given back its use of it."""
        with self.stream:
            kept = torch.ones(4, device="npu")
        torch.accelerator.synchronize()
        self.assertTrue(npu.GraphOps.check_pool_live_allocations(0, pool, set()))
        with self.assertRaisesRegex(RuntimeError, "the pool was released"):
            npu.GraphOps.release_pool(0, pool)
        del kept

    def check(self, graph, y, stream=contextlib.nullcontext()):
        for value in (5.0, 1.0):
            self.x.fill_(value)
            torch.accelerator.synchronize()
            with stream:
                graph.replay()
                torch.accelerator.synchronize()
            self.assertEqual(y.cpu().tolist(), [max(0.0, 2 * value - 3)] * 4)

    def test_a_replay_is_one_call_of_the_driver(self):
        graph, y = self.capture()
        simulator.clear()
        self.check(graph, y)
        self.assertEqual(simulator.count("aclmdlRIExecuteAsync"), 2)
        simulator.clear()
        for _ in range(5):
            graph.replay()
        torch.accelerator.synchronize()
        self.assertEqual(simulator.count("aclmdlRIExecuteAsync"), 5)
        self.assertEqual(simulator.count("aclrtLaunchKernelWithHostArgs"), 0)

    def test_on_another_stream_and_device(self):
        graph, y = self.capture()
        self.check(graph, y, torch.Stream(device="npu"))
        with torch.npu.device(1):
            x, other = torch.ones(3, device="npu:1"), torch.accelerator.Graph()
            with torch.Stream(device="npu:1"), other:
                z = x + 1
            other.replay()
        self.assertEqual((z.device.index, z.cpu().tolist()), (1, [2.0] * 3))

    def test_pools(self):
        pool = torch.npu.graph_pool_handle()
        graph, y = self.capture(pool=pool)
        self.assertEqual(graph.pool(), pool)
        # Temporaries have gone back to it, what lives is its own.
        self.assertTrue(npu.GraphOps.check_pool_live_allocations(0, pool, {y.data_ptr()}))
        other, z = self.capture()
        self.assertNotIn(other.pool(), (pool, (0, 0)))
        self.assertTrue(npu.GraphOps.check_pool_live_allocations(0, other.pool(), {z.data_ptr()}))
        torch.ones(4, device="npu")  # not in a capture
        self.assertTrue(npu.GraphOps.check_pool_live_allocations(0, pool, {y.data_ptr()}))

    def test_a_backward_inside_takes_its_memory_from_the_pool(self):
        """Autograd runs it on a thread of its own, which is not the one that began the capture."""
        model = torch.nn.Linear(4, 3).to("npu")
        x = values((2, 4), 1)
        inside = x.to("npu")
        model(inside).square().sum().backward()  # warm
        with self.stream:
            model.zero_grad(set_to_none=True)
            graph = torch.accelerator.Graph()
            with graph:
                model(inside).square().sum().backward()
        mine = {block["address"] for segment in torch.npu.memory_snapshot() for block in segment["blocks"]
                if tuple(segment["segment_pool_id"]) == graph.pool()}
        self.assertIn(model.weight.grad.data_ptr(), mine)
        graph.replay()
        plain = torch.nn.Linear(4, 3)
        plain.load_state_dict({name: value.cpu() for name, value in model.state_dict().items()})
        plain(x).square().sum().backward()
        torch.testing.assert_close(model.weight.grad.cpu(), plain.weight.grad)

    def unsafe_call(self):
        memset = simulator.library.aclrtMemset
        memset.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32, ctypes.c_size_t]
        return memset(self.x.data_ptr(), 16, 0, 16)

    def test_a_capture_that_the_driver_breaks(self):
        """As a strict driver does at any call that a mode forbids: the end says which one it was."""
        simulator.set("STRICT", 1)
        self.addCleanup(simulator.set, "STRICT", 0)
        graph = torch.accelerator.Graph()
        with self.assertRaisesRegex(RuntimeError, r"aclmdlRICaptureEnd.*aclrtMemset answered 107030.*\[507903\]"):
            with self.stream, graph:
                _ = self.x * 2
                self.assertEqual(self.unsafe_call(), 107030)
        with self.assertRaisesRegex(RuntimeError, "aclrtMemset answered 107030"):
            graph.replay()
        self.check(*self.capture())

    def test_modes(self):
        """What a mode forbids, to whom: (the capturing thread, another one). ACL's numbers: 0, 0, 1, 2."""
        def unsafe(into):
            simulator.library.aclrtSetDevice(0)
            into.append(self.unsafe_call())

        for mode, want in (("default", [107030, 107030]), ("global", [107030, 107030]), ("thread_local", [107030, 0]),
                           ("relaxed", [0, 0])):
            with self.subTest(mode):
                got = []
                graph = torch.accelerator.Graph(capture_error_mode=mode)
                with self.stream, graph:
                    y = self.x * 2
                    unsafe(got)
                    thread = threading.Thread(target=unsafe, args=(got,))
                    thread.start()
                    thread.join()
                self.assertEqual(got, want)
                graph.replay()
                self.assertEqual(y.cpu().tolist(), (self.x.cpu() * 2).tolist())

    def test_keep_graph_warns_once_and_instantiate_does_nothing(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            graph, y = self.capture(keep_graph=True)
            torch.accelerator.Graph(keep_graph=True)
        self.assertEqual(len([one for one in told if "keep_graph=True has no effect on npu" in str(one.message)]), 1)
        simulator.clear()
        graph.instantiate()
        graph.instantiate()
        self.assertEqual(sum(simulator.count(name) for name in ("aclmdlRICaptureBegin", "aclmdlRIExecuteAsync",
                                                                "aclrtLaunchKernelWithHostArgs")), 0)
        self.check(graph, y)
        self.capture()[0].instantiate()

    def test_reset_gives_everything_back(self):
        gc.collect()
        before = simulator.alive("models")
        graph, y = self.capture()
        pool = graph.pool()
        graph.replay()
        self.assertEqual(simulator.alive("models"), before + 1)
        graph.reset()
        del y
        self.assertEqual(simulator.alive("models"), before)
        self.given_back(pool)
        for call in (graph.replay, graph.pool, graph.instantiate, lambda: graph.debug_dump("x.json")):
            with self.assertRaisesRegex(RuntimeError, "without a preceding successful capture"):
                call()
        with self.stream, graph:
            y = self.x + 1
        graph.replay()
        self.assertEqual(y.cpu().tolist(), [2.0] * 4)
        del graph
        gc.collect()
        self.assertEqual(simulator.alive("models"), before)

    def test_many_captures_leave_nothing(self):
        """Graphs that are made and dropped, some in the middle of a capture, some while they run."""

        def alive():
            gc.collect()
            torch.accelerator.synchronize()
            return {name: simulator.alive(name) for name in ("models", "events", "streams", "memory")}

        pool, before = torch.npu.graph_pool_handle(), None
        npu.GraphOps.begin_allocate_current_thread_to_pool(0, pool)  # a use of it that outlives all graphs here
        npu.GraphOps.end_allocate_to_pool(0, pool)
        for step in range(5000 if os.environ.get("RONDO_TORCH_LONG") else 60):
            graph = torch.accelerator.Graph(pool=pool if step % 3 else None)
            with contextlib.suppress(ValueError), self.stream, graph:
                y = self.x * step
                if step % 5 == 4:
                    raise ValueError
            if step % 5 != 4:
                self.x.fill_(step % 7)
                graph.replay()
                if step % 2:
                    self.assertEqual(y.cpu().tolist(), [float(step * (step % 7))] * 4)
            del graph, y
            torch.accelerator.empty_cache()
            if step == 29:
                before = alive()
        self.assertEqual(alive(), before)
        npu.GraphOps.release_pool(0, pool)

    def test_debug_dump_is_the_drivers(self):
        graph = torch.accelerator.Graph()
        graph.enable_debug_mode()
        with self.stream, graph:
            _ = self.x * 2 + 1
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.json")
            graph.debug_dump(path)
            with open(path, encoding="utf-8") as file:
                tasks = json.load(file)
            with self.assertRaisesRegex(RuntimeError, r"\.json only"):
                graph.debug_dump(os.path.join(folder, "graph.dot"))
        self.assertEqual(len([task for task in tasks if "npu_call" in json.dumps(task)]), 2)

    def test_what_is_out_of_turn(self):
        graph = torch.accelerator.Graph()
        with self.assertRaisesRegex(RuntimeError, r"called capture_end\(\) before capture_begin\(\)"):
            graph.capture_end()
        with self.assertRaisesRegex(RuntimeError, "on a non-default stream"):
            graph.capture_begin()
        with self.stream:
            graph.capture_begin()
            for call, text in ((graph.capture_begin, "while the graph is capturing"),
                               (graph.replay, r"replay\(\) while the graph is capturing")):
                with self.assertRaisesRegex(RuntimeError, text):
                    call()
        with self.assertRaisesRegex(RuntimeError, "ends on the stream that it began on; it goes on"):
            graph.capture_end()
        with self.stream:
            y = self.x + 1
            graph.capture_end()
            with self.assertRaisesRegex(RuntimeError, "already owns a captured graph"):
                graph.capture_begin()
        graph.replay()
        self.assertEqual(y.cpu().tolist(), [2.0] * 4)

    def test_a_fork_that_joins(self):
        side, graph = torch.Stream(device="npu"), torch.accelerator.Graph()
        with self.stream, graph:
            a = self.x * 2
            side.wait_stream(self.stream)
            with side:
                b = a + 1
            c = a * 3
            self.stream.wait_stream(side)
            y = b + c
        for value in (1.0, 4.0):
            self.x.fill_(value)
            graph.replay()
            self.assertEqual(y.cpu().tolist(), [2 * value + 1 + 6 * value] * 4)

    def test_an_illegal_call_is_reported_by_name(self):
        pool = torch.npu.graph_pool_handle()
        graph = torch.accelerator.Graph(pool=pool)
        with self.assertRaisesRegex(RuntimeError, r"aclrtSynchronizeStream.*captured.*\[107027\]"):
            with self.stream, graph:
                (self.x * 2).sum().item()
        with self.assertRaisesRegex(RuntimeError, r"replay\(\) without a preceding successful capture: an exception "
                                                  "left the capture .*aclrtSynchronizeStream.*107027"):
            graph.replay()
        self.assertFalse(self.stream.is_capturing())
        self.given_back(pool)
        graph.graph_pool = None
        with self.stream, graph:  # nothing of it is left
            y = self.x + 1
        graph.replay()
        self.assertEqual(y.cpu().tolist(), [2.0] * 4)

    def test_e16_a_replay_inside_a_capture(self):
        """Drivers do not nest graphs: it is refused by name, and the outer capture comes to nothing."""
        inner, _ = self.capture()
        outer = torch.accelerator.Graph()
        with self.assertRaisesRegex(RuntimeError, "cannot become a part of graph .*drivers do not nest them"):
            with self.stream, outer:
                inner.replay()
        with self.assertRaisesRegex(RuntimeError, "drivers do not nest"):
            outer.replay()
        self.check(*self.capture())

    def test_a_fork_that_does_not_join(self):
        side, pool = torch.Stream(device="npu"), torch.npu.graph_pool_handle()
        graph = torch.accelerator.Graph(pool=pool)
        gc.collect()
        before = simulator.alive("models")
        with self.assertRaisesRegex(RuntimeError, r"aclmdlRICaptureEnd.*\[107025\]"):
            with self.stream, graph:
                side.wait_stream(self.stream)
                with side:
                    self.x.add_(1)
        self.assertEqual(simulator.alive("models"), before)
        self.given_back(pool)
        with self.assertRaisesRegex(RuntimeError, "107025"):
            graph.replay()
        self.check(*self.capture())

    def test_the_driver_refuses(self):
        pool = torch.npu.graph_pool_handle()
        graph = torch.accelerator.Graph(pool=pool)
        simulator.fail("aclmdlRICaptureBegin", 1, 207005)
        with self.assertRaisesRegex(RuntimeError, r"aclmdlRICaptureBegin.*\[207005\]"):
            with self.stream, graph:
                self.x.add_(1)
        self.given_back(pool)
        self.check(*self.capture())

    def test_the_loss_of_a_graph_that_captures(self):
        pool = torch.npu.graph_pool_handle()
        graph = torch.accelerator.Graph(pool=pool)
        with self.stream:
            graph.capture_begin()
            self.x.mul_(2)
            del graph
            self.assertFalse(self.stream.is_capturing())
        self.given_back(pool)
        self.check(*self.capture())


def fresh_model():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


class Compiled(unittest.TestCase):
    """torch.compile(mode="reduce-overhead") on npu: by way 2 and way 3, in the variants kept and duck-typed."""

    def setUp(self):
        torch._dynamo.reset()

    @contextlib.contextmanager
    def chosen(self, way, variant):
        with mock.patch.object(config, "trees", way), mock.patch.object(config, "cuda", variant):
            rondo_torch.attach("npu")
            if way == "upstream":
                upstream.install(variant)
            try:
                yield
            finally:
                torch._dynamo.reset()
                rondo_torch.detach("npu")
                if way == "upstream":
                    upstream.remove()

    def replayed(self, step, times):
        """Results of `times` calls behind the first three, and the calls of the driver that they made."""
        for _ in range(3):
            step()
        simulator.clear()
        results = [step() for _ in range(times)]
        return results, simulator.count("aclmdlRIExecuteAsync")

    def inference(self):
        plain, model = fresh_model(), fresh_model().to("npu")
        compiled = torch.compile(model, mode="reduce-overhead")
        seeds = iter(range(100))

        def step():
            x = values((3, 4), next(seeds))
            with torch.no_grad():
                torch.compiler.cudagraph_mark_step_begin()
                return compiled(x.to("npu")).cpu(), plain(x)

        results, calls = self.replayed(step, 4)
        for got, want in results:
            torch.testing.assert_close(got, want)
        self.assertEqual(calls, 4)

    def training(self):
        models = {"cpu": fresh_model(), "npu": fresh_model().to("npu")}
        steps = {name: torch.optim.SGD(model.parameters(), lr=0.1) for name, model in models.items()}
        run = {"cpu": models["cpu"], "npu": torch.compile(models["npu"], mode="reduce-overhead")}
        seeds = iter(range(100))

        def step():
            x, losses = values((8, 4), next(seeds)), []
            for name in models:
                steps[name].zero_grad()
                loss = run[name](x.to(name)).square().mean()
                loss.backward()
                steps[name].step()
                losses.append(loss.detach().cpu())
            return losses

        results, calls = self.replayed(step, 4)
        for want, got in results:
            torch.testing.assert_close(got, want)
        for want, got in zip(models["cpu"].parameters(), models["npu"].parameters()):
            torch.testing.assert_close(got.detach().cpu(), want.detach())
        self.assertEqual(calls, 8)  # a forward and a backward each


    def test_inference_by_upstream_duck_where_pytorch_was_built_with_cuda(self):
        # The interface then lacks bindings of its own: it is completed, and keeps the operations that it inherits.
        with mock.patch("rondo_torch.attach.Attachment._is_complete", False), self.chosen("upstream", "duck"):
            self.inference()


def _add(way, variant, what):
    def test(self):
        captures, begin = [], torch.npu.NPUGraph.capture_begin
        with self.chosen(way, variant), mock.patch.object(
                npu_standin.npu, "NPUGraph", wraps=torch.npu.NPUGraph, side_effect=lambda: captures.append(1) or
                mock.DEFAULT):
            getattr(self, what)()
        self.assertEqual(bool(captures), variant == "duck")  # else they are torch.accelerator's
        self.assertIs(torch.npu.NPUGraph.capture_begin, begin)

    setattr(Compiled, f"test_{what}_by_{way}_{variant}", test)


for _way in ("rondo", "upstream"):
    for _variant in ("kept", "duck"):
        for _what in ("inference", "training"):
            _add(_way, _variant, _what)


if __name__ == "__main__":
    unittest.main()
