# SPDX-License-Identifier: Apache-2.0
"""What torch.compile(mode="reduce-overhead") promises on an attached device, whoever manages the trees: the tests of
test_attach_trees.py (Rondo's manager) and of test_attach_upstream.py (Inductor's own). The device's own graph objects
are counted: nothing here passes where compiled functions are merely called."""
import copy
import gc
import threading

import second_device

second = second_device.load()

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

import rondo_torch  # noqa: E402
from rondo_torch import graphs  # noqa: E402
from rondo_torch.attach import POOL_OPERATIONS, attached  # noqa: E402
from second import inductor  # noqa: E402

torch.set_num_threads(1)
inductor.register()
gc.collect()
gc.freeze()  # what was imported is not looked at again and again
OVERWRITTEN = "output of CUDAGraphs that has been overwritten by a subsequent run"


def mark():
    torch.compiler.cudagraph_mark_step_begin()


def compiled(function, dynamic=False):
    return torch.compile(function, mode="reduce-overhead", dynamic=dynamic)


class Base:
    """`manager_captures`: captures that a manager makes for itself. `tells_of_replays`: whether outputs of replays that
    were overwritten say so; Inductor's manager tells of those of warm-ups and recordings."""

    manager_captures = 0
    tells_of_replays = True
    graph_ops = second.GraphOps

    def setUp(self):
        self.forget()
        torch.manual_seed(0)
        rondo_torch.attach("second", graph_ops=self.graph_ops)
        self.before = second.counts()

    def tearDown(self):
        self.forget()
        rondo_torch.detach("second")

    def forget(self):
        torch._dynamo.reset()
        counters.clear()
        gc.collect()

    def counted(self, captures, replays):
        """So many graphs of the device's were captured and replayed since the test began, and nothing was skipped."""
        now = [have - had for have, had in zip(second.counts(), self.before)]
        self.assertEqual(now, [captures + self.manager_captures, replays])
        self.assertEqual(counters["inductor"]["cudagraph_skips"], 0)

    def same(self, got, want):
        torch.testing.assert_close(got.detach().cpu(), want.detach(), rtol=1e-4, atol=1e-5)

    def stale(self, use):
        with self.assertRaisesRegex(RuntimeError, OVERWRITTEN) as caught:
            use()
        return str(caught.exception)


class EndToEnd(Base):
    def test_inference(self):
        def function(x, w):
            return torch.relu(x @ w) + 1, x.sum()

        run = compiled(function)
        for _ in range(6):
            x, w = torch.randn(3, 4), torch.randn(4, 4)
            for got, want in zip(run(x.to("second"), w.to("second")), function(x, w)):
                self.assertEqual(got.device, torch.device("second", 0))
                self.same(got, want)
        self.counted(captures=1, replays=5)

    def test_static_inputs_are_used_in_place(self):
        model = torch.nn.Linear(4, 4)
        mine = copy.deepcopy(model).to("second")
        run = compiled(mine)
        with torch.no_grad():
            for step in range(6):
                x = torch.randn(2, 4)
                self.same(run(x.to("second")), model(x))
                for one in (model, mine):  # a replay sees it, and copies nothing of it
                    one.weight.add_(step)
            self.counted(captures=1, replays=5)
            mine.weight.data = mine.weight.data.clone()  # elsewhere: recorded anew, once
            for _ in range(3):
                x = torch.randn(2, 4)
                self.same(run(x.to("second")), model(x))
        self.counted(captures=2, replays=8)

    def test_mutated_parameters_and_buffers(self):
        class Counting(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("seen", torch.zeros(3))

            def forward(self, x):
                self.seen.add_(x)
                return self.seen * 2

        model, mine = Counting(), Counting().to("second")
        run = compiled(mine)
        for _ in range(5):
            x = torch.randn(3)
            self.same(run(x.to("second")), model(x))
            self.same(mine.seen, model.seen)
        self.counted(captures=1, replays=4)

    def test_an_input_of_the_users_that_is_written_is_not_graphed(self):
        run = compiled(lambda x: x.add_(1) * 2)
        x = torch.zeros(3, device="second")
        for step in range(1, 4):
            self.same(run(x), torch.full((3,), step * 2.0))
            self.same(x, torch.full((3,), float(step)))
        self.assertEqual(counters["inductor"]["cudagraph_skips"], 1)
        self.assertEqual(second.counts()[1], self.before[1])

    def test_an_output_of_the_tree_that_is_written_is_graphed(self):
        first, then = compiled(lambda x: x * 3), compiled(lambda y: y.add_(1) * 2)
        for _ in range(5):
            mark()
            x = torch.randn(4)
            y = first(x.to("second"))
            self.same(then(y), (x * 3 + 1) * 2)
            self.same(y, x * 3 + 1)
        self.counted(captures=2, replays=8)

    def test_outputs_held_and_dropped(self):
        run, held = compiled(lambda x: (x + 1, x * 2)), []
        for step in range(6):
            x = torch.randn(4)
            a, b = run(x.to("second"))
            self.same(a, x + 1)
            self.same(b, x * 2)
            if step % 2:
                held.append(a)
            else:
                held.append(None)
            del a, b
        for value in held[1:-1:2] if self.tells_of_replays else held[1:2]:
            self.stale(value.cpu)
            self.stale(lambda value=value: value + 1)
        self.same(held[-1], x + 1)
        self.counted(captures=1, replays=5)

    def test_an_overwritten_output_cannot_be_an_input(self):
        run = compiled(lambda x: x + 1)
        for _ in range(3 if self.tells_of_replays else 2):
            old = run(torch.ones(4, device="second"))
        mark()
        new = run(torch.zeros(4, device="second"))
        self.stale(lambda: run(old))
        self.same(new, torch.ones(4))
        self.same(run(torch.ones(4, device="second")), torch.full((4,), 2.0))

    def test_a_marked_step_ends_what_was_made_before_it(self):
        run = compiled(lambda x: x * 2)
        for step in range(5 if self.tells_of_replays else 2):
            mark()
            y = run(torch.ones(4, device="second"))
            z = run(y)  # in the same step: y stays
            self.same(y, torch.full((4,), 2.0))
            self.same(z, torch.full((4,), 4.0))
        mark()
        run(torch.ones(4, device="second"))
        self.stale(y.cpu)
        self.stale(z.cpu)

    def test_shapes_have_graphs_of_their_own(self):
        for dynamic, captures in ((False, 2), (True, 2)):
            with self.subTest(dynamic=dynamic):
                self.forget()
                self.before = second.counts()
                run = compiled(lambda x: torch.relu(x) * 2, dynamic)
                for step in range(8):
                    x = torch.randn(2 + step % 2, 4)
                    self.same(run(x.to("second")), torch.relu(x) * 2)
                self.counted(captures=captures, replays=6)

    def test_inputs_of_any_layout(self):
        def function(*inputs):
            return [value * 2 + 1 for value in inputs]

        run = compiled(function)
        for mode in (torch.no_grad, torch.inference_mode, torch.no_grad):
            for _ in range(4):
                base = torch.randn(4, 6)
                inputs = [base, base.t(), base[::2, 1::3], base[:1].expand(3, 6), base[2:2], base[0, 0], base > 0]
                with mode():
                    moved = base.to("second")
                    mine = [moved, moved.t(), moved[::2, 1::3], moved[:1].expand(3, 6), moved[2:2], moved[0, 0],
                            moved > 0]
                    for got, want in zip(run(*mine), function(*inputs)):
                        self.assertEqual((got.shape, got.is_inference()), (want.shape, mode is torch.inference_mode))
                        self.same(got, want)
        self.assertGreaterEqual(second.counts()[1] - self.before[1], 8)
        self.assertEqual(counters["inductor"]["cudagraph_skips"], 0)

    def test_outputs_that_alias(self):
        def function(x, w):
            y = torch.tanh(x)
            return y, y[1:], y.view(2, 2), w

        run = compiled(function)
        w = torch.nn.Parameter(torch.randn(2), requires_grad=False).to("second")
        for _ in range(5):
            x = torch.randn(4)
            y, part, view, same = run(x.to("second"), w)
            for got, want in zip((y, part, view), function(x, None)):
                self.same(got, want)
            self.assertIs(same, w)
            self.assertEqual(part.untyped_storage().data_ptr(), y.untyped_storage().data_ptr())
            y.add_(1)
            self.same(view, torch.tanh(x).view(2, 2) + 1)
        self.counted(captures=1, replays=4)

    def test_a_branch_restores_the_pool(self):
        first = compiled(lambda x: (x + 1, x * 2))
        ways = [compiled(lambda a: a - 3), compiled(lambda a: a * a)]
        for step in range(10):
            mark()
            x = torch.randn(4)
            a, b = first(x.to("second"))
            got = ways[step % 2](a)
            self.same(got, x - 2 if step % 2 == 0 else (x + 1) * (x + 1))
            self.same(a, x + 1)
            self.same(b, x * 2)
        self.assertGreaterEqual(second.counts()[1] - self.before[1], 12)

    def test_training(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        mine = copy.deepcopy(model).to("second")
        run = compiled(mine)
        steps = [torch.optim.Adam(one.parameters()) for one in (model, mine)]
        batch = torch.empty(8, 4, device="second")
        for _ in range(6):
            x = torch.randn(8, 4)
            batch.copy_(x)
            losses = []
            for call, step, value in ((model, steps[0], x), (run, steps[1], batch)):
                step.zero_grad()
                loss = call(value).square().mean()
                loss.backward()
                step.step()
                losses.append(loss.detach())
            self.same(losses[1], losses[0])
        for got, want in zip(mine.parameters(), model.parameters()):
            self.same(got, want)
        self.counted(captures=2, replays=10)

    def test_the_other_device(self):
        run = compiled(lambda x: x * 2 + 1)
        for _ in range(4):
            x = torch.randn(4)
            got = run(x.to("second:1"))
            self.assertEqual(got.device, torch.device("second", 1))
            self.same(got, x * 2 + 1)
            self.assertEqual(torch.second.current_device(), 0)
        self.counted(captures=1, replays=3)

    def test_a_stream_of_the_users(self):
        run, stream = compiled(lambda x: x * 2), torch.Stream(device="second")
        for step in range(5):
            x = torch.randn(4)
            if step % 2:
                with stream:
                    self.same(run(x.to("second")), x * 2)
                    self.assertEqual(torch.accelerator.current_stream(), stream)
            else:
                self.same(run(x.to("second")), x * 2)
        self.counted(captures=1, replays=4)

    def test_another_thread_has_trees_of_its_own(self):
        run, found = compiled(lambda x: x - 7), []
        for _ in range(3):
            run(torch.zeros(4, device="second"))

        def work():
            try:
                for _ in range(4):
                    x = torch.randn(4)
                    self.same(run(x.to("second")), x - 7)
                found.append("good")
            except Exception as error:  # said by the test's thread
                found.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        self.assertEqual(found, ["good"])

    def test_memory_is_given_back(self):
        before = second.live_blocks(0)
        run = compiled(lambda x: (x + 1, x * 2))
        for step in range(12):
            kept = run(torch.ones(256, device="second"))
            if step == 3:
                middle = second.live_blocks(0)
        self.assertEqual(second.live_blocks(0), middle)
        del run, kept
        self.forget()
        self.assertEqual(second.live_blocks(0), before)


class XpuDouble(Base):
    """The device is in PyTorch's registry of graphs, as XPU is. What is registered stays: the last of a process."""

    graph_ops = None
    why = None  # a pattern

    def setUp(self):
        if not graphs.has_graph_impl("second"):
            second.register_graph_impl()
        super().setUp()

    def test_without_operations_it_is_skipped_with_the_reason(self):
        self.assertIs(torch._C._accelerator_hasGraphImpl("second"), True)
        self.assertTrue(attached("second").is_capable)
        run = compiled(lambda x: x * 2)
        with self.assertLogs("torch._inductor.cudagraph_utils", "WARNING") as logged:
            for _ in range(3):
                self.same(run(torch.ones(4, device="second")), torch.full((4,), 2.0))
        self.assertRegex("".join(logged.output), self.why)
        self.assertEqual(counters["inductor"]["cudagraph_skips"], 1)
        self.assertEqual(second.counts(), self.before)

    def test_with_operations_of_pools_alone_pytorchs_graphs_are_taken(self):
        rondo_torch.detach("second")
        rondo_torch.attach("second", graph_ops=type("Pools", (), {
            name: staticmethod(getattr(second.GraphOps, name)) for name in POOL_OPERATIONS}))
        self.assertEqual((attached("second").why_no_trees, attached("second").has_own_graph), ("", False))
        run = compiled(lambda x: x * 2)
        for _ in range(4):
            x = torch.randn(4)
            self.same(run(x.to("second")), x * 2)
        self.counted(captures=1, replays=3)
