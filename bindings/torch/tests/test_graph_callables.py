# SPDX-License-Identifier: Apache-2.0
"""torch.rondo.graph, RondoGraph and make_graphed_callables: conventions of torch.cuda, results of eager calls."""
import contextlib
import copy
import gc
import io
import unittest
import warnings
from unittest import mock

import torch

import rondo_torch  # noqa: F401
from rondo_torch import _C

DEVICE = "rondo"
make = torch.rondo.make_graphed_callables


def settle():
    torch.accelerator.synchronize()


def same(got, want):
    settle()
    torch.testing.assert_close(got.detach().cpu(), want.detach(), rtol=1e-4, atol=1e-5)


class GraphContext(unittest.TestCase):
    def setUp(self):
        self.x = torch.ones(4, device=DEVICE)

    def test_captures_on_a_stream_of_its_own_and_replays(self):
        graph = torch.rondo.RondoGraph()
        before = torch.rondo.current_stream()
        with torch.rondo.graph(graph) as nothing:
            self.assertIsNone(nothing)
            inside = torch.rondo.current_stream()
            self.assertTrue(torch.rondo.is_current_stream_capturing())
            y = self.x * 2
        self.assertEqual(torch.rondo.current_stream(), before)
        self.assertNotEqual(inside, before)
        for value in (1.0, 4.0):
            self.x.fill_(value)
            graph.replay()
            same(y, torch.full((4,), value * 2))
        other = torch.rondo.RondoGraph()
        with torch.rondo.graph(other):
            self.assertEqual(torch.rondo.current_stream(), inside)  # one stream, so that pools can be shared
            _ = self.x + 1

    def test_on_a_given_stream_with_a_given_pool(self):
        graph, stream, pool = torch.rondo.RondoGraph(), torch.Stream(device=DEVICE), torch.rondo.graph_pool_handle()
        with torch.rondo.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            self.assertEqual(torch.rondo.current_stream(), stream)
            y = self.x * 3
        self.assertEqual(graph.pool(), pool)
        graph.replay()
        same(y, torch.full((4,), 3.0))

    def test_captures_into_an_accelerator_graph(self):
        graph, pool = torch.accelerator.Graph(), torch.rondo.graph_pool_handle()
        with torch.rondo.graph(graph, pool=pool, capture_error_mode="relaxed"):
            y = self.x * 3
        self.assertEqual((graph.pool(), graph.capture_error_mode), (pool, "relaxed"))
        graph.replay()
        same(y, torch.full((4,), 3.0))

    def test_the_mode_reaches_the_capture(self):
        graph = torch.rondo.RondoGraph()
        before = torch.rondo.current_stream()
        with self.assertRaisesRegex(RuntimeError, "Unknown capture error mode"):
            with torch.rondo.graph(graph, capture_error_mode="bogus"):
                self.fail("the block must not run")
        self.assertEqual(torch.rondo.current_stream(), before)
        for name in ("global", "thread_local"):
            with mock.patch.object(torch.rondo.RondoGraph, "capture_begin") as begin, \
                    mock.patch.object(torch.rondo.RondoGraph, "capture_end"):
                with torch.rondo.graph(graph, capture_error_mode=name):
                    pass
            begin.assert_called_once_with(pool=None, capture_error_mode=name)

    def test_an_exception_leaves_no_graph_and_the_stream_as_it_was(self):
        graph = torch.rondo.RondoGraph()
        before = torch.rondo.current_stream()
        with self.assertRaisesRegex(ValueError, "mine"):
            with torch.rondo.graph(graph):
                _ = self.x * 2
                raise ValueError("mine")
        self.assertEqual(torch.rondo.current_stream(), before)
        with self.assertRaisesRegex(RuntimeError, r"an exception left the capture \(ValueError: mine\)"):
            graph.replay()

    def test_inside_an_exit_stack(self):
        graph = torch.rondo.RondoGraph()
        with self.assertRaises(ValueError), contextlib.ExitStack() as stack:
            stack.enter_context(torch.rondo.graph(graph))
            _ = self.x * 2
            raise ValueError("mine")
        with self.assertRaisesRegex(RuntimeError, "an exception left the capture"):
            graph.replay()

    def test_refuses_what_is_no_graph(self):
        with self.assertRaisesRegex(TypeError, "captures into a RondoGraph, not a str"):
            torch.rondo.graph("graph")

    def test_garbage_is_collected_only_when_asked(self):
        for wanted in (False, True):
            with mock.patch.object(torch.compiler.config, "force_cudagraph_gc", wanted), \
                    mock.patch.object(gc, "collect") as collect, torch.rondo.graph(torch.rondo.RondoGraph()):
                _ = self.x + 1
            self.assertEqual(collect.called, wanted)

    def test_keep_graph(self):
        graph = torch.rondo.RondoGraph(keep_graph=True)
        with torch.rondo.graph(graph):
            y = self.x * 2
        graph.instantiate()
        graph.instantiate()
        graph.replay()
        same(y, torch.full((4,), 2.0))

    def test_generators(self):
        graph = torch.rondo.RondoGraph()
        generator = torch.Generator(device=DEVICE)
        graph.register_generator_state(generator)
        with self.assertRaisesRegex(ValueError, "no use for a generator of cpu"):
            graph.register_generator_state(torch.Generator())

    @unittest.skipUnless(_C.device_count() > 1, "one device")
    def test_of_another_device(self):
        with torch.rondo.device(1):
            x = torch.ones(4, device="rondo:1")
            graph = torch.rondo.RondoGraph()
            with torch.rondo.graph(graph):
                self.assertEqual(torch.rondo.current_stream().device_index, 1)
                y = x * 2
            graph.replay()
            same(y, torch.full((4,), 2.0))


class Function(unittest.TestCase):
    def test_forward(self):
        w = torch.randn(3, 3)
        on_device = w.to(DEVICE)
        graphed = make(lambda a: torch.tanh(a @ on_device), (torch.zeros(2, 3, device=DEVICE),))
        for _ in range(3):
            x = torch.randn(2, 3)
            same(graphed(x.to(DEVICE)), torch.tanh(x @ w))

    def test_forward_and_backward(self):
        def function(a, b):
            return (a * b).sin().sum(1), b * 2

        sample = tuple(torch.zeros(2, 3, device=DEVICE, requires_grad=True) for _ in range(2))
        graphed = make(function, sample)
        for _ in range(3):
            plain = [torch.randn(2, 3, requires_grad=True) for _ in range(2)]
            moved = [t.detach().to(DEVICE).requires_grad_() for t in plain]
            wants, gots = function(*plain), graphed(*moved)
            scale = torch.randn(2), torch.randn(2, 3)
            for got, want in zip(gots, wants):
                same(got, want)
            torch.autograd.backward(wants, scale)
            torch.autograd.backward(gots, [s.to(DEVICE) for s in scale])
            for got, want in zip(moved, plain):
                same(got.grad, want.grad)
        self.assertTrue(all(t.grad is None for t in sample))  # warm-up accumulates nowhere

    def test_structures_of_arguments_and_results(self):
        def function(pair, named):
            return {"sum": pair[0] + pair[1], "all": [named["x"] * 2, pair[0]]}

        ones = torch.ones(2, device=DEVICE)
        graphed = make(function, ((ones, ones.clone()), {"x": ones.clone()}))
        result = graphed((torch.full((2,), 3.0, device=DEVICE), torch.full((2,), 4.0, device=DEVICE)),
                         {"x": torch.full((2,), 5.0, device=DEVICE)})
        self.assertEqual(sorted(result), ["all", "sum"])
        same(result["sum"], torch.full((2,), 7.0))
        same(result["all"][0], torch.full((2,), 10.0))
        same(result["all"][1], torch.full((2,), 3.0))
        for wrong in (((ones, ones), ones), ((ones,), {"x": ones}), ((ones, ones), {"y": ones}),
                      ((ones, 2.0), {"x": ones})):
            with self.assertRaisesRegex(TypeError, "arguments are not built as sample_args were"):
                graphed(*wrong)

    def test_what_does_not_fit_is_named(self):
        graphed = make(lambda a, b: a + b, (torch.ones(2, device=DEVICE), torch.ones(2, device=DEVICE)))
        good = torch.ones(2, device=DEVICE)
        for wrong, text in ((torch.ones(3, device=DEVICE), r"torch.float32 \(3,\) on rondo:0"),
                            (torch.ones(2, device=DEVICE, dtype=torch.int64), r"torch.int64 \(2,\) on rondo:0"),
                            (torch.ones(2), r"torch.float32 \(2,\) on cpu")):
            with self.assertRaisesRegex(ValueError, rf"leaf 1 is {text}; the graph was captured with torch.float32"):
                graphed(good, wrong)
        same(graphed(good, good), torch.full((2,), 2.0))

    def test_an_argument_that_is_the_fixed_one_is_not_copied(self):
        fixed = torch.ones(4, device=DEVICE)
        graphed = make(lambda a: a * 2, (fixed,))
        fixed.fill_(3.0)
        same(graphed(fixed), torch.full((4,), 6.0))
        other = torch.full((4,), 5.0, device=DEVICE)
        same(graphed(other), torch.full((4,), 10.0))
        same(fixed, torch.full((4,), 5.0))  # the other one was copied into it

    def test_several_callables_share_a_pool_and_chain(self):
        pool = torch.rondo.graph_pool_handle()
        sample = torch.zeros(4, device=DEVICE, requires_grad=True)
        other = sample.detach().clone().requires_grad_()
        first, second = make((lambda a: a * 3, lambda a: a.sin()), ((sample,), (other,)), pool=pool)
        self.assertTrue(torch.rondo.memory_snapshot(pool))
        for _ in range(2):
            plain = torch.randn(4, requires_grad=True)
            moved = plain.detach().to(DEVICE).requires_grad_()
            want, got = (plain * 3).sin(), second(first(moved))
            same(got, want)
            want.sum().backward()
            got.sum().backward()
            same(moved.grad, plain.grad)

    def test_an_input_that_is_not_used(self):
        def function(a, b):
            return a * 2

        sample = tuple(torch.ones(2, device=DEVICE, requires_grad=True) for _ in range(2))
        with self.assertRaisesRegex(RuntimeError, "allow_unused"):
            make(function, sample)
        graphed = make(function, sample, allow_unused_input=True)
        moved = [torch.ones(2, device=DEVICE, requires_grad=True) for _ in range(2)]
        graphed(*moved).sum().backward()
        same(moved[0].grad, torch.full((2,), 2.0))
        self.assertIsNone(moved[1].grad)

    def test_a_result_without_gradient(self):
        def function(a):
            return a * 2, (a > 0).float()

        graphed = make(function, (torch.ones(2, device=DEVICE, requires_grad=True),))
        value, mask = graphed(torch.tensor([1.0, -1.0]).to(DEVICE).requires_grad_())
        self.assertEqual((value.requires_grad, mask.requires_grad), (True, False))
        same(mask, torch.tensor([1.0, 0.0]))

    def test_warm_up_runs_as_often_as_asked(self):
        for times in (0, 1, 3):
            calls = []
            graphed = make(lambda a: (calls.append(1), a + 1)[1], (torch.ones(2, device=DEVICE),),
                           num_warmup_iters=times)
            self.assertEqual(len(calls), times + 1)
            same(graphed(torch.ones(2, device=DEVICE)), torch.full((2,), 2.0))
            self.assertEqual(len(calls), times + 1)
        with self.assertRaisesRegex(ValueError, "num_warmup_iters is a count, not -1"):
            make(lambda a: a, (torch.ones(2, device=DEVICE),), num_warmup_iters=-1)

    def test_random_numbers_are_new_at_each_call(self):
        graphed = make(lambda a: a + torch.rand_like(a), (torch.ones(256, device=DEVICE),))
        x = torch.ones(256, device=DEVICE)
        first = graphed(x).cpu()
        self.assertFalse(first.equal(graphed(x).cpu()))

    def test_refusals(self):
        good = torch.ones(2, device=DEVICE)
        with self.assertRaisesRegex(TypeError, "sample_args must contain only tensors; leaf 1 is a float"):
            make(lambda a, b: a * b, (good, 2.0))
        with self.assertRaisesRegex(TypeError, "sample arguments of a callable are a tuple, not a Tensor"):
            make(lambda a: a, good)
        with self.assertRaisesRegex(ValueError, "2 callables need as many tuples of sample arguments, not 1"):
            make((lambda a: a, lambda a: a), ((good,),))
        with self.assertRaisesRegex(ValueError, "must be on the device rondo; one is on cpu"):
            make(lambda a: a, (torch.ones(2),))
        with self.assertRaisesRegex(TypeError, "returns only tensors; leaf 0 of what it returned is a int"):
            make(lambda a: 1, (good,))
        with torch.autocast("rondo"), self.assertRaisesRegex(RuntimeError, "does not support the autocast caching"):
            make(lambda a: a, (good,))
        with self.assertRaisesRegex(RuntimeError, "item.* cannot be captured"):
            make(lambda a: a * a.sum().item(), (good,))
        same(make(lambda a: a + 1, (good,))(good), torch.full((2,), 2.0))


class Module(unittest.TestCase):
    def models(self):
        torch.manual_seed(4)
        plain = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        return plain, copy.deepcopy(plain).to(DEVICE)

    def test_training_equals_the_cpu(self):
        plain, model = self.models()
        caught = self.enterContext(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        returned = make(model, (torch.zeros(16, 4, device=DEVICE),))
        self.assertIs(returned, model)
        steps = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (plain, model)]
        for _ in range(5):
            x = torch.randn(16, 4)
            for m, step, batch in ((plain, steps[0], x), (model, steps[1], x.to(DEVICE))):
                step.zero_grad()
                m(batch).square().mean().backward()
                step.step()
            for got, want in zip(model.parameters(), plain.parameters()):
                same(got.grad, want.grad)
                same(got, want)
        self.assertEqual([str(w.message) for w in caught], [])  # nothing keeps the stream of the capture alive

    def test_the_other_mode_runs_the_module_itself(self):
        plain, model = self.models()
        model.train()
        make(model, (torch.zeros(3, 4, device=DEVICE),))
        x = torch.randn(5, 4)
        with self.assertRaisesRegex(ValueError, r"argument leaf 0 is torch.float32 \(5, 4\)"):
            model(x.to(DEVICE))
        model.eval()
        same(model(x.to(DEVICE)), plain(x))
        model.train()
        x = torch.randn(3, 4)
        same(model(x.to(DEVICE)), plain(x))
        with self.assertRaisesRegex(TypeError, "takes no keyword arguments, got input"):
            model.forward(input=x)

    def test_hooks_and_buffers(self):
        _, model = self.models()
        handle = model.register_forward_hook(lambda *_: None)
        sample = (torch.zeros(3, 4, device=DEVICE),)
        with self.assertRaisesRegex(ValueError, "Sequential: modules must not have hooks when they are passed"):
            make(model, sample)
        handle.remove()
        model.register_buffer("scale", torch.ones(1, device=DEVICE, requires_grad=True))
        with self.assertRaisesRegex(ValueError, "the buffer scale requires grad"):
            make(model, sample)
        del model.scale
        make(model, sample)
        seen = []
        model.register_forward_hook(lambda *_: seen.append(1))
        model(sample[0])
        self.assertEqual(seen, [1])

    def test_a_copy_has_parameters_of_its_own(self):
        _, model = self.models()
        make(model, (torch.zeros(3, 4, device=DEVICE),))
        x = torch.randn(3, 4)
        saved = io.BytesIO()
        torch.save(model, saved)
        saved.seek(0)
        for name, other in (("deepcopy", copy.deepcopy(model)), ("load", torch.load(saved, weights_only=False))):
            with self.subTest(name), torch.no_grad():
                for parameter in other.parameters():
                    parameter.mul_(2)
                plain = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
                plain.load_state_dict(other.state_dict())
                same(other(x.to(DEVICE)), plain(x))
                same(other(x[:2].to(DEVICE)), plain(x[:2]))  # not a graph: any size

    def test_a_forward_that_was_replaced(self):
        _, model = self.models()
        model.forward = lambda x: x + 1
        make(model, (torch.zeros(3, device=DEVICE),))
        same(copy.deepcopy(model)(torch.ones(2, device=DEVICE)), torch.full((2,), 2.0))
        with self.assertRaisesRegex(TypeError, "Sequential: a graphed module whose forward was replaced"):
            torch.save(model, io.BytesIO())

    def test_a_buffer_whose_memory_is_gone_is_refused(self):
        class Shifted(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("shift", torch.ones(4, device=DEVICE))

            def forward(self, x):
                return x + self.shift

        model = Shifted()
        x = torch.zeros(4, device=DEVICE)
        make(model, (x,))
        same(model(x), torch.ones(4))
        model.shift.fill_(2)  # written into, it is seen
        same(model(x), torch.full((4,), 2.0))
        model.shift = torch.full((4,), 5.0, device=DEVICE)
        with self.assertRaisesRegex(RuntimeError, "memory that is gone"):
            model(x)

    def test_a_parameter_that_moved_is_named(self):
        _, model = self.models()
        make(model, (torch.zeros(3, 4, device=DEVICE),))
        kept = model[2].weight.data
        model[2].weight.data = kept.clone()
        with self.assertRaisesRegex(RuntimeError, "Sequential: the parameter 2.weight has other memory than when"):
            model(torch.zeros(3, 4, device=DEVICE))
        model[2].weight.data = kept
        model(torch.zeros(3, 4, device=DEVICE))

    def test_a_module_on_the_cpu(self):
        plain, _ = self.models()
        with self.assertRaisesRegex(ValueError, "Sequential: arguments and parameters must be on the device rondo; one "
                                                "is on cpu"):
            make(plain, (torch.zeros(3, 4, device=DEVICE),))


if __name__ == "__main__":
    unittest.main()
