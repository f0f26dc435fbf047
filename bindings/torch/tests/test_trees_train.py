# SPDX-License-Identifier: Apache-2.0
"""Graph trees under torch.compile on the device, with gradients: forwards that wait for their backwards, autograd's threads,
gradients in place, and random numbers that a backward draws again."""
import copy
import threading
import unittest

import torch
import torch.utils.checkpoint
from rondo_torch import trees
from trees_kit import DEVICE, TreeTest, warned


def full(value, *shape):
    return torch.full(shape or (4,), float(value), device=DEVICE)


def leaf(value, *shape):
    return full(value, *shape).requires_grad_()


class Steps(TreeTest):
    def model(self):
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))

    def train(self, model, compiled, device, steps, optimizer):
        losses = []
        generator = torch.Generator().manual_seed(3)
        for _ in range(steps):
            x = torch.randn(6, 4, generator=generator).to(device)
            loss = compiled(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def test_forward_backward(self):
        want_model = self.model()
        got_model = copy.deepcopy(want_model).to(DEVICE)
        want = self.train(want_model, want_model, "cpu", 8, torch.optim.SGD(want_model.parameters(), lr=0.1))
        got = self.train(got_model, self.compile(got_model), DEVICE, 8, torch.optim.SGD(got_model.parameters(), lr=0.1))
        self.same(got, want)
        for a, b in zip(got_model.parameters(), want_model.parameters()):
            self.same(a, b)
        info = self.info()
        self.assertEqual((info["roots"], info["recordings"], info["depth"]), (1, 2, 2))
        self.assertEqual(self.skips(), 0)
        self.assertEqual({f["mode"] for f in self.functions()}, {1, 2})

    def test_adam(self):
        want_model = self.model()
        got_model = copy.deepcopy(want_model).to(DEVICE)
        want = self.train(want_model, want_model, "cpu", 6, torch.optim.Adam(want_model.parameters()))
        got = self.train(got_model, self.compile(got_model), DEVICE, 6, torch.optim.Adam(got_model.parameters()))
        self.same(got, want)

    def test_cached_forward_backward(self):
        for _ in range(2):
            self.test_forward_backward()
            torch._dynamo.reset()

    def test_saved_inputs(self):
        """What a forward saves of its own inputs stays where it is only if it does so for the forward: the parameter is
        used where it is, the batch is elsewhere at each step."""
        model = torch.nn.Module()
        model.weight = torch.nn.Parameter(torch.full((4,), 3.0, device=DEVICE))
        f = self.compile(lambda x: x * model.weight)
        kept = [leaf(i) for i in range(6)]
        for i, x in enumerate(kept):
            model.weight.grad = None
            f(x).sum().backward()
            self.same(x.grad, torch.full((4,), 3.0))
            self.same(model.weight.grad, torch.full((4,), float(i)))
        self.assertEqual(self.info("recordings"), 2)
        backward = next(function for function in self.functions() if function["mode"] == 2)
        self.assertIn(backward["copies"], (0, 4 * 2))  # all bound; or the batch and the gradient at each replay

    def test_recurrent(self):
        """LSTM and GRU, eager and graphed. Their backward is given a view of the batch."""
        for kind in (torch.nn.LSTM, torch.nn.GRU):
            torch.manual_seed(0)
            want_model = kind(4, 6)
            got_model = copy.deepcopy(want_model).to(DEVICE)
            kept = [torch.randn(3, 2, 4) for _ in range(5)]

            def step(model, function, x):
                model.zero_grad()
                out, state = function(x.requires_grad_())
                state = state if isinstance(state, tuple) else (state,)
                (out.square().sum() + sum(part.sum() for part in state)).backward()
                return [out, *state, x.grad, *(parameter.grad for parameter in model.parameters())]

            with self.subTest(kind.__name__), torch._dynamo.config.patch(allow_rnn=True):
                compiled = self.compile(got_model)
                moved = [x.to(DEVICE) for x in kept]
                for i, x in enumerate(kept):
                    want = [part.detach().clone() for part in step(want_model, want_model, x.clone())]
                    for got in (step(got_model, got_model, x.to(DEVICE)), step(got_model, compiled, moved[i])):
                        for a, b in zip(got, want):
                            self.same(a, b)
                    del got, a
                self.assertEqual((self.info("recordings"), self.skips()), (2, 0))
            torch._dynamo.reset()

    def test_forward_generation(self):
        """Two forwards, one backward: no step ends before it."""
        f = self.compile(lambda x: x * x)
        g = self.compile(lambda x: x * 2)
        for i in range(4):
            x = leaf(i + 1)
            y = f(x)
            z = g(y)
            self.same(y, torch.full((4,), float((i + 1) ** 2)))
            z.sum().backward()
            self.same(x.grad, torch.full((4,), 4.0 * (i + 1)))
            del y, z
        self.assertEqual(self.info("roots"), 1)

    def test_forward_backward_not_called(self):
        f = self.compile(lambda x: x * x + 1)
        for i in range(6):
            x = leaf(i)
            y = f(x)
            self.same(y, torch.full((4,), i * i + 1.0))
            if i % 2:
                y.sum().backward()
                self.same(x.grad, torch.full((4,), 2.0 * i))
            del y

    def test_warn_on_pending_backward(self):
        f = self.compile(lambda x: x * x)
        kept = []
        with warned() as seen:
            for i in range(5):
                kept.append(f(leaf(i)))
        told = [w for w in seen if "pending, uninvoked backwards" in str(w.message)]
        self.assertEqual(len(told), 1)
        self.assertIn("cudagraph_mark_step_begin", str(told[0].message))
        for i, out in enumerate(kept):
            self.same(out, torch.full((4,), float(i * i)))

    def test_mark_step(self):
        f = self.compile(lambda x: x * x)
        out = None
        with warned() as seen:
            for i in range(6):
                torch.compiler.cudagraph_mark_step_begin()
                out = f(leaf(i))
                self.same(out, torch.full((4,), float(i * i)))
        self.assertFalse([w for w in seen if "uninvoked" in str(w.message)])
        self.assertEqual((self.info("recordings"), self.info("roots")), (1, 1))
        del out

    def test_a_manager_is_asked_for_without_a_device(self):
        """As PyTorch does from 2.14 on, of the current device."""
        def later(device_index=None, create_if_none_exists=True):
            return device_index, create_if_none_exists

        asked = trees._get_manager(later)
        self.assertEqual(asked(create_if_none_exists=False), (None, False))
        self.assertEqual((asked(3), asked(3, False)), ((3, True), (3, False)))
        self.compile(lambda x: x + 1)(full(1))  # with what is in place
        getattr(torch.compiler, "cudagraph_mark_warmup_incomplete", int)()

    def test_a_reset_of_pytorch_s_own_trees(self):
        """It turns the cache of outputs off for all, those that are held among them."""
        compiled = self.compile(lambda x: x * 2)
        for value in range(1, 4):
            self.same(compiled(full(value)), torch.full((4,), value * 2.0))
        torch._C._set_cached_tensors_enabled(False)
        torch._dynamo.reset()
        for value in range(1, 4):
            self.same(compiled(full(value)), torch.full((4,), value * 2.0))

    def test_forward_with_skipped_cudagraphed_backward(self):
        """A backward that is not graphed is one, too: forwards wait no more."""
        @torch._dynamo.override_cudagraphs(bwd=False)
        def function(x):
            return x * x * x
        f = self.compile(function)
        for i in range(6):
            x = leaf(i)
            y = f(x)
            y.sum().backward()
            self.same(x.grad, torch.full((4,), 3.0 * i * i))
        self.assertEqual(self.info("recordings"), 1)
        self.assertGreater(self.info("replays"), 1)

    def test_dynamic_backward(self):
        f = self.compile(lambda x: (x * x.shape[0]).relu(), dynamic=True)
        for _ in range(3):
            for n in (3, 5):
                x = leaf(2, n)
                f(x).sum().backward()
                self.same(x.grad, torch.full((n,), float(n)))

    def test_accumulate_grad(self):
        """A gradient is taken as it is where there was none, and added to in place where there was one."""
        model = torch.nn.Linear(3, 3).to(DEVICE)
        want = copy.deepcopy(model).cpu()
        f = self.compile(model)
        for i in range(5):
            x = torch.full((2, 3), float(i))
            model.zero_grad()
            want.zero_grad()
            model.weight.grad = torch.ones(3, 3, device=DEVICE)
            want.weight.grad = torch.ones(3, 3)
            place = model.weight.grad.data_ptr()
            f(x.to(DEVICE)).sum().backward()
            want(x).sum().backward()
            self.assertEqual(model.weight.grad.data_ptr(), place)
            self.same(model.weight.grad, want.weight.grad)
            self.same(model.bias.grad, want.bias.grad)

    def test_accumulation_over_gradients_of_a_recording(self):
        """A gradient that a backward has made is overwritten by the next one, and the text says what to do about it."""
        model = torch.nn.Linear(3, 3).to(DEVICE)
        f = self.compile(model)
        with self.assertRaisesRegex(RuntimeError, r"(?s)overwritten by a subsequent run.*It is a gradient.*set \.grad to None"):
            for i in range(6):
                f(torch.full((2, 3), float(i), device=DEVICE)).sum().backward()
                [parameter.grad.cpu() for parameter in model.parameters()]

    def test_what_a_forward_has_saved_was_changed(self):
        """Replays tell of it, as every run does: an input, a part of one, an output, an output of another function."""
        square, part, tanh, sine = map(self.compile, (lambda x: x * x, lambda x: x[1:] * x[1:],
                                                      lambda x: (x @ x).tanh(), lambda x: x.sin()))

        def path(x):
            between = sine(x)
            return between, square(between)

        for name, run in (("input", lambda x: (x, square(x))), ("part", lambda x: (x, part(x))),
                          ("output", lambda x: (tanh(x),) * 2), ("path", path)):
            with self.subTest(name):
                for i in range(5):
                    torch.compiler.cudagraph_mark_step_begin()
                    run(leaf(i, 3, 3))[1].sum().backward()
                replays = self.info()["replays"]
                torch.compiler.cudagraph_mark_step_begin()
                changed, y = run(leaf(1, 3, 3))
                self.assertGreater(self.info()["replays"], replays)
                with torch.no_grad():
                    changed.add_(1)
                with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                    y.sum().backward()

    def test_a_backward_of_a_backward_is_refused(self):
        """As every compiled function does; nothing of the gradient is left out without a word."""
        f = self.compile(lambda x: (x * x).sin())
        for i in range(5):
            f(leaf(i)).sum().backward()
        x = leaf(1)
        gradient, = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "does not currently support double backward"):
            torch.autograd.grad(gradient.sum(), x)

    def test_remove_hooks_on_cached_tensors(self):
        f = self.compile(lambda x: x * 2)
        fired = []
        for i in range(6):
            x = leaf(1)
            y = f(x)
            if i == 4:
                y.register_hook(lambda grad: fired.append(i))
            y.sum().backward()
            del y
        self.assertEqual(fired, [4])
        with torch.no_grad():
            g = self.compile(lambda x: x + 3)
            for _ in range(4):
                out = g(full(1))
                del out
            out = g(full(1)).requires_grad_()
            out.register_post_accumulate_grad_hook(lambda t: fired.append("post"))
            del out
            out = g(full(1))
        self.assertIsNone(out._backward_hooks)
        self.assertIsNone(out._post_accumulate_grad_hooks)

    def test_amp_cache_disabled(self):
        """Autocast must not remember the cast of an object that comes again with other values."""
        f = self.compile(lambda x: x + 1)
        weight = torch.eye(4, device=DEVICE)
        inputs = [full(i, 4, 4) for i in range(6)]
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            for i in range(6):
                out = f(inputs[i]).requires_grad_()
                self.same(torch.mm(out, weight).float(), torch.full((4, 4), i + 1.0))
                del out

    def test_two_backwards(self):
        f = self.compile(lambda x: (x * x, x * 3))
        for i in range(5):
            x = leaf(i)
            a, b = f(x)
            a.sum().backward(retain_graph=True)
            b.sum().backward()
            self.same(x.grad, torch.full((4,), 2.0 * i + 3))
            del a, b

    def test_saved_outputs_live_until_the_backward(self):
        f = self.compile(lambda x: torch.exp(x))
        for i in range(5):
            x = leaf(i / 4)
            y = f(x)
            self.assertGreaterEqual(self.info("live"), 1)
            loss = y.sum()
            del y
            self.assertGreaterEqual(self.info("live"), 1)  # the backward needs it
            loss.backward()
            self.same(x.grad, torch.exp(torch.full((4,), i / 4)))
            del loss
            x.grad = None  # an output of the backward
            self.assertEqual(self.info("live"), 0)

    def test_gradients_of_a_thread(self):
        """Two threads that train: each has its forwards and backwards in a tree of its own."""
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 3).to(DEVICE)
        f = self.compile(model)
        f(full(1, 2, 3)).sum().backward()
        failures = []

        def work(number):
            try:
                for i in range(6):
                    x = leaf(number + i, 2, 3)
                    f(x).sum().backward()
                    self.same(x.grad, model.weight.detach().sum(0).expand(2, 3))
            except BaseException as error:  # noqa: BLE001 (told below)
                failures.append(error)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        for manager in self.managers():
            self.assertEqual({f["mode"] for f in manager.functions()}, {1, 2})

    def test_compiled_autograd(self):
        from torch._dynamo import compiled_autograd
        model = torch.nn.Linear(3, 3).to(DEVICE)
        f = self.compile(model)
        with compiled_autograd._enable(torch.compile(options={"triton.cudagraphs": True, "fallback_by_default": True})):
            for i in range(4):
                model.zero_grad()
                f(full(i, 2, 3)).sum().backward()
                self.same(model.weight.grad, torch.full((3, 3), 2.0 * i))
                self.same(model.bias.grad, torch.full((3,), 2.0))

    def test_graph_partition_forward_backward(self):
        def function(x):
            y = x * 2
            z = (y.detach().sum().cpu() + 1).to(DEVICE)
            return (y * z).relu()
        f = self.compile(function, generated=True)
        for i in range(5):
            x = leaf(i + 1)
            f(x).sum().backward()
            self.same(x.grad, torch.full((4,), 2.0 * (8.0 * (i + 1) + 1)))
        self.assertGreaterEqual(self.recordings(), 3)


    def test_graph_partition_backward_cpu_scalar_saved_tensor(self):
        f = self.compile(lambda x, s: (x * s).relu() * s, generated=True)
        for i in range(4):
            x, s = leaf(2), torch.tensor(float(i + 1))
            f(x, s).sum().backward()
            self.same(x.grad, torch.full((4,), float((i + 1) ** 2)))

    def test_right_index_from_the_cache(self):
        index = torch.rondo.device_count() - 1
        for _ in range(2):
            f = self.compile(lambda x: x * x + 1)
            for i in range(4):
                x = torch.full((4,), float(i), device=f"rondo:{index}", requires_grad=True)
                out = f(x)
                out.sum().backward()
                self.assertEqual((out.device.index, x.grad.device.index), (index, index))
                self.same(x.grad, torch.full((4,), 2.0 * i))
                del out
            self.assertEqual([manager.device for manager in self.managers()], [index])
            torch._dynamo.reset()


class Annotations(TreeTest):
    def run_training(self, function, times=4, **options):
        f = self.compile(function, **options)
        for i in range(times):
            x = leaf(i)
            f(x).sum().backward()
            self.same(x.grad, torch.full((4,), 2.0 * i))

    def modes(self):
        return sorted(f["mode"] for m in self.managers() for f in m.functions() if f["recordings"])

    def test_cudagraph_annotation_disable(self):
        f = self.compile(torch._dynamo.override_cudagraphs(fwd=False)(lambda x: x * 2))
        for i in range(3):
            self.same(f(full(i)), torch.full((4,), 2.0 * i))
        self.assertEqual(self.managers(), [])

    def test_cudagraph_annotation_disable_fwd_bwd(self):
        self.run_training(torch._dynamo.override_cudagraphs(fwd=False, bwd=False)(lambda x: x * x))
        self.assertEqual(self.managers(), [])

    def test_cudagraph_annotation_disable_bwd_only(self):
        self.run_training(torch._dynamo.override_cudagraphs(bwd=False)(lambda x: x * x))
        self.assertEqual(self.modes(), [1])

    def test_cudagraph_annotation_disable_fwd_only(self):
        self.run_training(torch._dynamo.override_cudagraphs(fwd=False)(lambda x: x * x))
        self.assertEqual(self.modes(), [])

    def test_cudagraph_annotation_enable(self):
        f = self.compile(torch._dynamo.override_cudagraphs(fwd=True)(lambda x: x * 2), triton__cudagraphs=None)
        for i in range(4):
            self.same(f(full(i)), torch.full((4,), 2.0 * i))
        self.assertEqual(self.recordings(), 1)

    def test_options_of_the_call_come_after_an_annotation(self):
        f = self.compile(torch._dynamo.override_cudagraphs(fwd=True)(lambda x: x * 3), triton__cudagraphs=False)
        for i in range(4):
            self.same(f(full(i)), torch.full((4,), 3.0 * i))
        self.assertEqual(self.recordings(), 0)

    def test_cudagraph_annotation_enable_fwd_bwd(self):
        self.run_training(torch._dynamo.override_cudagraphs(fwd=True, bwd=True)(lambda x: x * x), triton__cudagraphs=None)
        self.assertEqual(self.modes(), [1, 2])

    def test_cudagraph_annotation_enable_fwd_only(self):
        self.run_training(torch._dynamo.override_cudagraphs(fwd=True)(lambda x: x * x), triton__cudagraphs=None)
        self.assertEqual(self.modes(), [1, 2])

    def test_cudagraph_annotation_context_manager(self):
        def function(x):
            y = x + 1
            torch._dynamo.graph_break()
            with torch._dynamo.override_cudagraphs(fwd=False):
                y = y * 2
                torch._dynamo.graph_break()
                y = y - 3
            torch._dynamo.graph_break()
            return y * 5
        f = self.compile(function)
        for i in range(4):
            self.same(f(full(i)), torch.full((4,), (2.0 * (i + 1) - 3) * 5))
        self.assertGreaterEqual(self.recordings(), 1)

    def test_cudagraph_annotation_enable_context_manager(self):
        def function(x):
            y = x + 1
            torch._dynamo.graph_break()
            with torch._dynamo.override_cudagraphs(fwd=True):
                y = y * 2
            torch._dynamo.graph_break()
            return y - 3
        f = self.compile(function, triton__cudagraphs=None)
        for i in range(4):
            self.same(f(full(i)), torch.full((4,), 2.0 * (i + 1) - 3))

    def test_cudagraph_annotation_module_forward(self):
        class Module(torch.nn.Module):
            @torch._dynamo.override_cudagraphs(fwd=False)
            def forward(self, x):
                return x * 2
        f = self.compile(Module())
        for i in range(3):
            self.same(f(full(i)), torch.full((4,), 2.0 * i))
        self.assertEqual(self.recordings(), 0)

    def test_cudagraph_annotation_graph_break_selective(self):
        @torch._dynamo.override_cudagraphs(fwd=False)
        def plain(x):
            return x * 2

        def function(x):
            y = plain(x)
            torch._dynamo.graph_break()
            return y + 1
        f = self.compile(function)
        for i in range(4):
            self.same(f(full(i)), torch.full((4,), 2.0 * i + 1))
        self.assertEqual(self.recordings(), 1)


class Recomputed(TreeTest):
    """Activations that a backward computes again draw the numbers that the forward drew."""

    def function(self):
        def inner(x):
            drawn = torch.rand(4, 4, device=DEVICE)
            return x * drawn, drawn

        def function(x):
            return torch.utils.checkpoint.checkpoint(inner, x, use_reentrant=False)
        return function

    def check(self, x, out, drawn):
        self.same(out, x.detach() * drawn)
        out.sum().backward()
        self.same(x.grad, drawn)

    def test_sac_simple(self):
        f = self.compile(self.function(), generated=True)
        seen = set()
        for _ in range(5):
            x = leaf(2, 4, 4)
            out, drawn = f(x)
            kept = drawn.detach().clone()
            seen.add(tuple(kept.cpu().flatten().tolist()))
            self.check(x, out, kept)
            del out, drawn
        self.assertEqual(len(seen), 5)

    def test_sac_uneven_forward_backward(self):
        f = self.compile(self.function(), generated=True)
        for order in ((0, 1), (1, 0), (0, 1), (1, 0)):
            xs = [leaf(2, 4, 4) for _ in range(2)]
            pairs = [f(x) for x in xs]
            drawn = [pair[1].detach().clone() for pair in pairs]
            for k in order:
                self.check(xs[k], pairs[k][0], drawn[k])
            del pairs

    @torch._functorch.config.patch(donated_buffer=False)
    def test_sac_retain_graph(self):
        f = self.compile(self.function(), generated=True)
        for _ in range(4):
            x = leaf(2, 4, 4)
            out, drawn = f(x)
            kept = drawn.detach().clone()
            out.sum().backward(retain_graph=True)
            self.same(x.grad, kept)
            x.grad = None
            out.sum().backward()
            self.same(x.grad, kept)
            del out, drawn

    def test_recomputed_by_name(self):
        """Random operators that Inductor calls by name are drawn again in the backward, between the graphs, with the
        numbers that eager code has."""
        weights = torch.arange(1.0, 9.0, device=DEVICE)

        def dropout(x):
            return torch.nn.functional.dropout(x.sin(), 0.5).cos()

        def multinomial(x):
            return (x.sin() * torch.multinomial(weights, 8, True)).cos()
        for inner, options in ((dropout, {"fallback_random": True}), (multinomial, {}),
                               (dropout, {"fallback_random": True, "graph_partition": False})):
            def function(x, inner=inner):
                return torch.utils.checkpoint.checkpoint(inner, x, use_reentrant=False)
            runs = []
            for call in (function, self.compile(function, **options)):
                torch.manual_seed(3)
                runs.append([])
                for i in range(4):
                    x = torch.linspace(-1, 1, 8, device=DEVICE).requires_grad_()
                    y = call(x)
                    y.sum().backward()
                    runs[-1].append((y.detach().cpu(), x.grad.cpu()))
                    del y
            with self.subTest(inner.__name__, **options):
                for (y, grad), (want, want_grad) in zip(runs[1], runs[0]):
                    self.same(y, want)
                    self.same(grad, want_grad)
                self.assertEqual(len({tuple(y.tolist()) for y, _ in runs[0]}), 4)
                self.assertEqual(self.skips() > 0, "graph_partition" in options)
            torch._dynamo.reset()

    def test_dropout(self):
        torch.manual_seed(0)
        f = self.compile(lambda x: torch.nn.functional.dropout(x, 0.5), generated=True)
        patterns = set()
        for _ in range(6):
            x = leaf(1, 64)
            y = f(x)
            y.sum().backward()
            self.same(x.grad, y.detach())
            patterns.add(tuple(y.detach().cpu().tolist()))
            del y
        self.assertEqual(len(patterns), 6)


if __name__ == "__main__":
    unittest.main()
