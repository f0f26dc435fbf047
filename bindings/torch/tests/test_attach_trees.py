# SPDX-License-Identifier: Apache-2.0
"""An attached device under Rondo's manager of trees: torch.compile(mode="reduce-overhead") on the second device."""
import contextlib
import os
import unittest
from unittest import mock

WANTED = os.environ.get("RONDO_TORCH_DEVICE")

import second_device  # noqa: E402  (before PyTorch: it says that the place is not Rondo's)

if WANTED == "sim":
    second_device.leave_out("no device of Rondo's is used here: one run is enough")
import attach_kit  # noqa: E402
import test_trees_random  # noqa: E402
from attach_kit import Base, EndToEnd, compiled, mark, second  # noqa: E402

import torch  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

import rondo_torch  # noqa: E402
from rondo_torch import _C, config, foreign, trees  # noqa: E402

config.trees = "rondo"


class WithRondosTrees(EndToEnd, unittest.TestCase):
    def forget(self):
        super().forget()
        self.assertEqual(_C.tree_managers(), [])

    def test_storages_are_of_the_packages_class(self):
        run = compiled(lambda x: x + 1)
        for step in range(4):
            y = run(torch.ones(4, device="second"))
            if step > 1:
                self.assertTrue(second.has_own_storage(y.untyped_storage()._cdata))

    def test_reset_keeps_outputs_that_are_held(self):
        run = compiled(lambda x: x + 1)
        for _ in range(3):
            y = run(torch.ones(4, device="second"))
        torch._dynamo.reset()
        others = [torch.zeros(4, device="second") for _ in range(8)]
        self.same(y, torch.full((4,), 2.0))
        for _ in range(3):
            z = run(torch.ones(4, device="second"))
        self.same(z, torch.full((4,), 2.0))
        self.same(y, torch.full((4,), 2.0))
        del others

    def test_every_call_waits_for_its_work_when_that_is_asked_for(self):
        with torch._inductor.config.patch("triton.force_cudagraph_sync", True):
            run = compiled(lambda x: x * 3 + 1)
            for _ in range(3):
                run(torch.ones(4, device="second"))
            with mock.patch.object(foreign.Device, "synchronize", autospec=True, side_effect=foreign.Device.synchronize) as waits:
                for number in range(1, 4):
                    self.same(run(torch.ones(4, device="second")), torch.full((4,), 4.0))
                    self.assertEqual(waits.call_count, number)

    def test_messages_name_both_functions(self):
        def producer(x):
            return x + 17.5  # a number that no other test's function has: code of theirs would come with their names

        def taker(x):
            return x * 18.5

        first, then = compiled(producer), compiled(taker)
        for _ in range(4):
            mark()
            kept = first(torch.ones(4, device="second"))
            mark()
            then(torch.ones(4, device="second"))
            text = self.stale(kept.cpu)
            self.assertRegex(text, r"its memory went to 'taker .*It is an output of 'producer ")
            self.assertIn("in producer", text)  # where
            self.assertIn("cudagraph_mark_step_begin", text)

    def test_storages_that_only_python_keeps_are_over(self):
        run = compiled(lambda x: x + 1)
        for _ in range(5):
            y = run(torch.ones(4, device="second"))
            y.untyped_storage()  # makes the storage's Python object, which stays with it
            del y
        (manager,) = _C.tree_managers()
        self.assertEqual(manager.info()["live"], 0)

    def test_outputs_with_other_memory_are_the_users(self):
        """Outputs of a warm-up, a recording and a replay that the user has given other memory: the tree neither takes
        nor frees that."""
        run, before = compiled(lambda x: x + 1), second.live_blocks(0)
        kept = []
        for _ in range(4):
            mark()
            y = run(torch.ones(4, device="second"))
            y.untyped_storage().resize_(4000)
            kept.append(y)
        mark()
        run(torch.zeros(4, device="second"))
        for y in kept:
            self.assertEqual(y.untyped_storage().nbytes(), 4000)
            self.same(y, torch.full((4,), 2.0))
        del y, kept, run
        self.forget()
        self.assertEqual(second.live_blocks(0), before)

    def test_conflicts_by_copy(self):
        with mock.patch.dict(os.environ, RONDO_TORCH_CONFLICT="copy"):
            run, kept = compiled(lambda x: x * 2), []
            for step in range(6):
                mark()
                kept.append(run(torch.full((4,), float(step), device="second")))
            for step, y in enumerate(kept):
                self.same(y, torch.full((4,), step * 2.0))
            (manager,) = _C.tree_managers()
            self.assertGreaterEqual(manager.info()["evacuated"], 4)
        self.counted(captures=1, replays=5)

    def test_the_report(self):
        run = compiled(lambda x: x + 1)
        for _ in range(3):
            run(torch.ones(4, device="second"))
        text = rondo_torch.report()
        self.assertIn("attached: second\n", text)
        self.assertIn("trees of second:0 (attached: storages are watched)", text)
        self.assertIn("1 replayed", text)
        said = rondo_torch.report(json=True)
        self.assertEqual((said["device"], said["attached"], said["trees"][0]["type"]), (None, {"second": ""}, "second"))
        self.assertGreater(said["trees"][0]["pool_reserved"], 0)  # as the package's snapshot says

    def test_without_trees(self):
        """triton.cudagraph_trees=False: one recording, in a pool of its own."""
        run = torch.compile(lambda x: x * 2 + 1, options={"triton.cudagraphs": True, "triton.cudagraph_trees": False})
        for _ in range(4):
            x = torch.randn(4)
            self.same(run(x.to("second")), x * 2 + 1)
        self.counted(captures=1, replays=4)

    def test_a_part_that_cannot_be_captured_is_called_and_the_rest_graphed(self):
        def function(x):
            return (x + 1).cpu().to(x.device) * 2 + x

        run = torch.compile(function, options={"triton.cudagraphs": True, "graph_partition": True})
        for _ in range(4):
            x = torch.randn(4)
            self.same(run(x.to("second")), function(x))
        captures, replays = (now - had for now, had in zip(second.counts(), self.before))
        self.assertIn(captures, (1, 2))  # PyTorch 2.15 makes a part of the copies alone, and graphs what is before and behind
        self.assertEqual(replays, 3 * captures)
        skipped = "a copy between host and device cannot be captured" in "".join(trees.skips())
        self.assertEqual(counters["inductor"]["cudagraph_skips"], int(skipped))
        # PyTorch 2.14 makes a part of the one copy: what is behind it then takes a tensor of the host's.
        self.assertEqual(skipped or "HOST_INPUT" in rondo_torch.report(), captures == 1)

    def test_what_goes_around_each_warm_up_and_recording(self):
        calls = []

        class Ops(second.GraphOps):
            @staticmethod
            @contextlib.contextmanager
            def prepare_for_capture():
                calls.append("begin")
                yield
                calls.append("end")

        rondo_torch.detach("second")
        rondo_torch.attach("second", graph_ops=Ops)
        run = compiled(lambda x: x + 1)
        for _ in range(4):
            self.same(run(torch.ones(4, device="second")), torch.full((4,), 2.0))
        self.assertEqual(calls, ["begin", "end"] * 2)


class Failing(Base, unittest.TestCase):
    """Every operation of the package's that fails, at its first call or at a later one."""

    def attach(self, graph_ops):
        rondo_torch.detach("second")
        rondo_torch.attach("second", graph_ops=graph_ops)

    def usable(self):
        """What was compiled before and what is compiled now run, with right values."""
        self.attach(second.GraphOps)
        torch._dynamo.reset()
        run, before = compiled(lambda x: x * 5), second.counts()
        for _ in range(4):
            x = torch.randn(4)
            self.same(run(x.to("second")), x * 5)
        self.assertEqual([now - had for now, had in zip(second.counts(), before)], [1, 3])
        self.assertFalse(torch.accelerator.current_stream().is_capturing())

    def steps(self, run, times=4):
        for _ in range(times):
            x = torch.randn(4)
            self.same(run(x.to("second")), x * 2)

    def test_operations_that_fail(self):
        """Where a recording fails, the function is called directly from then on, and the log says why. All else is an
        error."""
        for name, raises in (("create_graph", False), ("graph_pool_handle", True), ("get_checkpoint_state", False),
                             ("begin_allocate_current_thread_to_pool", True), ("end_allocate_to_pool", True)):
            with self.subTest(name):
                def fails(*_, name=name):
                    if name == "end_allocate_to_pool":
                        second.GraphOps.end_allocate_to_pool(*_)
                    raise OSError("no more")

                self.attach(type("Ops", (second.GraphOps,), {name: staticmethod(fails)}))
                self.forget()
                run, says = compiled(lambda x: x * 2), rf"second:0: GraphOps\.{name} raised OSError: no more"
                if raises:
                    with self.assertRaisesRegex(RuntimeError, says):
                        self.steps(run)
                else:
                    with self.assertLogs("torch._inductor.cudagraph_utils", "WARNING") as logged:
                        self.steps(run)
                    self.assertRegex("".join(logged.output), says)
                    self.assertEqual(counters["inductor"]["cudagraph_skips"], 1)
                    self.assertRegex("".join(trees.skips()), says)
                self.usable()

    def test_graphs_that_fail(self):
        for member, raises in (("capture_begin", False), ("capture_end", False), ("replay", True)):
            with self.subTest(member):
                class Graph(second.Graph):
                    fails = True

                def fails(self, *arguments, member=member, **named):
                    if Graph.fails:
                        raise OSError("no more")
                    return getattr(second.Graph, member)(self, *arguments, **named)

                setattr(Graph, member, fails)
                self.attach(type("Ops", (second.GraphOps,), {"create_graph": staticmethod(Graph)}))
                self.forget()
                run = compiled(lambda x: x * 2)
                says = rf"second:0: (Graph\.)?{member}( of its graph)? raised OSError: no more"
                if raises:
                    self.steps(run, 1)
                    for _ in range(2):
                        with self.assertRaisesRegex(RuntimeError, says):
                            self.steps(run, 1)
                    Graph.fails = False
                    self.steps(run)
                    Graph.fails = True  # a replay of what is recorded
                    with self.assertRaisesRegex(RuntimeError, says):
                        self.steps(run, 1)
                    Graph.fails = False
                    self.steps(run)
                else:
                    with self.assertLogs("torch._inductor.cudagraph_utils", "WARNING") as logged:
                        self.steps(run)
                    self.assertRegex("".join(logged.output), says)
                    self.assertEqual(counters["inductor"]["cudagraph_skips"], 1)
                self.usable()

    def test_memory_that_is_short_for_once(self):
        """A recording that finds no memory is tried again."""
        left = [1]

        class Ops(second.GraphOps):
            @staticmethod
            def create_graph():
                if left[0]:
                    left[0] -= 1
                    raise torch.OutOfMemoryError("full")
                return second.Graph()

        self.attach(Ops)
        run = compiled(lambda x: x * 2)
        self.steps(run, 5)
        self.counted(captures=1, replays=3)

    def test_what_is_detached_keeps_what_it_has(self):
        run = compiled(lambda x: x * 2)
        self.steps(run)
        rondo_torch.detach("second")
        self.steps(run)
        self.counted(captures=1, replays=7)
        other = compiled(lambda x: x * 2 + 0)
        self.steps(other)
        self.assertEqual([have - had for have, had in zip(second.counts(), self.before)], [1, 7])
        self.usable()


class Incomplete(Base, unittest.TestCase):
    def test_without_pool_operations_it_is_skipped_with_the_names_of_all(self):
        rondo_torch.detach("second")

        class Some:
            create_graph = second.GraphOps.create_graph
            raw_delete = second.GraphOps.raw_delete

        rondo_torch.attach("second", graph_ops=Some)
        run = compiled(lambda x: x * 2 + 1)
        with self.assertLogs("torch._inductor.cudagraph_utils", "WARNING") as logged:
            for _ in range(3):
                self.same(run(torch.ones(4, device="second")), torch.full((4,), 3.0))
        self.assertIn("second can capture graphs, but its GraphOps lacks graph_pool_handle, "
                      "begin_allocate_current_thread_to_pool, end_allocate_to_pool, release_pool, get_checkpoint_state, "
                      "set_checkpoint_pool_state, check_pool_live_allocations", "".join(logged.output))
        self.assertEqual(counters["inductor"]["cudagraph_skips"], 1)
        self.assertEqual(second.counts(), self.before)
        self.assertIn("attached: second, without trees: second can capture graphs, but", rondo_torch.report())


class RandomPrograms(test_trees_random.Programs):
    """Those that Rondo's own device runs: on storages that are watched."""

    def setUp(self):
        functions = {name: of for name, of in test_trees_random.FUNCTIONS.items() if name not in
                     test_trees_random.GENERATED}  # it has no kernels that are generated
        for name, value in (("DEVICE", "second"), ("FUNCTIONS", functions)):
            patch = mock.patch.object(test_trees_random, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        rondo_torch.attach("second", graph_ops=second.GraphOps)
        self.addCleanup(rondo_torch.detach, "second")
        super().setUp()

    def test_programs(self):
        super().test_programs()
        self.assertGreater(second.counts()[1], 100)


class XpuDouble(attach_kit.XpuDouble, unittest.TestCase):
    why = "second can capture graphs, but its GraphOps lacks graph_pool_handle, begin_.*, raw_delete"


class ZChoice(Base, unittest.TestCase):
    """The last one, since Inductor's modules are other ones from then on."""

    def test_the_manager_is_chosen_at_any_time(self):
        for number, (chosen, managers) in enumerate((("rondo", 1), ("upstream", 0), ("off", 0), ("rondo", 1))):
            with self.subTest(chosen), mock.patch.object(config, "trees", chosen):
                self.forget()
                run, before = compiled(lambda x, number=number: x * (number + 2)), second.counts()
                for _ in range(4):
                    self.same(run(torch.ones(4, device="second")), torch.full((4,), number + 2.0))
                self.assertEqual(len(_C.tree_managers()), managers)
                self.assertEqual(second.counts()[1] - before[1], 0 if chosen == "off" else 3)

    def test_a_compiled_graph_of_another_time_is_not_taken_from_a_cache(self):
        """It says whether it may be graphed, as it was when it was made: without operations, with them, without."""
        with mock.patch.object(config, "trees", "rondo"):
            for ops, replays in ((None, 0), (second.GraphOps, 4), (None, 0)):
                rondo_torch.detach("second")
                rondo_torch.attach("second", graph_ops=ops)
                self.forget()
                run, before = compiled(lambda x: x * 41.5 - 3), second.counts()
                for _ in range(5):
                    self.same(run(torch.ones(4, device="second")), torch.full((4,), 38.5))
                self.assertEqual(second.counts()[1] - before[1], replays)

    def test_a_device_without_operations_is_skipped_whoever_decided_before(self):
        """Inductor's gates let it through, if they were made device-neutral before: nothing is raised all the same."""
        for chosen in ("upstream", "rondo"):
            with mock.patch.object(config, "trees", chosen):
                rondo_torch.detach("second")
                rondo_torch.attach("second")
                self.forget()
                run = compiled(lambda x: x * 2)
                for _ in range(3):
                    self.same(run(torch.ones(4, device="second")), torch.full((4,), 2.0))
                self.assertEqual(counters["inductor"]["cudagraph_skips"], 1)


if __name__ == "__main__":
    unittest.main()
