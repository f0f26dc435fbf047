# SPDX-License-Identifier: Apache-2.0
"""Graph trees under torch.compile on the device, without gradients: what is recorded, after what, and when anew. Most tests
bear the name of the one of PyTorch's own whose behaviour they hold (docs/trees-tests.md)."""
import unittest

import torch
from torch._inductor import config
from trees_kit import DEVICE, TreeTest


def ones(*shape):
    return torch.ones(*shape, device=DEVICE)


def full(value, *shape):
    return torch.full(shape or (4,), float(value), device=DEVICE)


class Paths(TreeTest):
    def test_run_simple(self):
        f = self.compile(lambda x: x * x * x, dynamic=False)
        for shape in ((5,), (6,)):
            for i in range(4):
                self.same(f(full(i, *shape)), torch.full(shape, float(i) ** 3))
        info = self.info()
        self.assertEqual((info["roots"], info["recordings"], info["warmups"]), (2, 2, 2))
        self.assertEqual(info["replays"], 4)
        self.assertEqual(self.skips(), 0)

    def test_in_a_capture_of_ones_own(self):
        """The program's capture takes the kernels of a compiled function, not a replay."""
        f = self.compile(lambda x: ((x * 2).relu() + 1, x.sum()))
        static = full(1)
        for _ in range(3):
            f(static)
        before = self.info()
        graph = torch.rondo.RondoGraph()
        with torch.rondo.graph(graph):
            y, z = f(static)
            again = f(static)[0] * 3
        for i in (-1.0, 2.0, 5.0):
            static.fill_(i)
            graph.replay()
            torch.rondo.synchronize()
            self.same(y, torch.full((4,), max(2 * i, 0.0) + 1))
            self.same(z, torch.tensor(4 * i))
            self.same(again, torch.full((4,), 3 * max(2 * i, 0.0) + 3))
            self.same(f(static)[1], torch.tensor(4 * i))
        self.assertEqual((self.info("recordings"), self.info("roots")), (before["recordings"], before["roots"]))
        self.assertEqual(self.info("replays"), before["replays"] + 3)

    def test_separate_recordings(self):
        f = self.compile(lambda x: (x + 1, x * 2), dynamic=False)
        for shape in ((3,), (2, 3), (3, 2)):
            for i in range(3):
                a, b = f(full(i, *shape))
                self.same(a, torch.full(shape, i + 1.0))
                self.same(b, torch.full(shape, i * 2.0))
                del a, b
        self.assertEqual(self.info("roots"), 3)

    def test_function_compiled_multiple_times(self):
        """Twice in one step, the first result alive: two recordings one after the other."""
        f = self.compile(lambda x: x * 2 + 1)
        for i in range(5):
            torch.compiler.cudagraph_mark_step_begin()
            first = f(full(i))
            second = f(first)
            third = f(second)
            self.same(first, torch.full((4,), 2.0 * i + 1))
            self.same(second, torch.full((4,), 4.0 * i + 3))
            self.same(third, torch.full((4,), 8.0 * i + 7))
        info = self.info()
        self.assertEqual((info["roots"], info["recordings"], info["depth"]), (1, 3, 3))

    def test_end_recording_early(self):
        """The path ends with its last output: the next call begins anew."""
        f = self.compile(lambda x: x + 1)
        for i in range(4):
            self.same(f(full(i)), torch.full((4,), i + 1.0))
        self.assertEqual(self.info("roots"), 1)
        for _ in range(3):
            torch.compiler.cudagraph_mark_step_begin()
            a = f(full(1))
            b = f(full(2))
            self.same(a, torch.full((4,), 2.0))
            self.same(b, torch.full((4,), 3.0))
            del a, b
        self.assertEqual((self.info("roots"), self.info("recordings")), (1, 2))

    def test_execution_into_recording(self):
        def function(x):
            y = x + x
            if y.sum() > 0:
                return y + 10
            return y - 10
        f = self.compile(function)
        for value in (1, 1, 1, -1, -1, 1, -1):
            self.same(f(full(value)), torch.full((4,), 2.0 * value + (10 if value > 0 else -10)))
        self.assertGreater(self.info("checkpoints"), 0)
        self.assertEqual(self.info("recordings"), 3)

    def test_accumulate_multiple_recordings(self):
        f = self.compile(lambda x: x * 3)
        for count in (1, 2, 3, 2, 1, 3):
            torch.compiler.cudagraph_mark_step_begin()
            kept = [f(full(i)) for i in range(count)]
            for i, out in enumerate(kept):
                self.same(out, torch.full((4,), 3.0 * i))
            self.assertEqual(self.info("live"), count)
            del kept, out
            self.assertEqual(self.info("live"), 0)
        self.assertEqual((self.info("roots"), self.info("recordings")), (1, 3))

    def test_live_outputs_multiple_graphs(self):
        f = self.compile(lambda x: (x + 1, x * 2))
        g = self.compile(lambda a, b: a @ b)
        for i in range(5):
            torch.compiler.cudagraph_mark_step_begin()
            a, b = f(full(i, 3, 3))
            c = g(a, b)
            self.same(c, torch.full((3, 3), 3.0 * (i + 1) * 2 * i))
            self.same(a, torch.full((3, 3), i + 1.0))
        self.assertEqual((self.info("roots"), self.info("recordings"), self.info("checkpoints")), (1, 2, 0))

    def test_aliasing_static_ref(self):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.arange(8.0))

            def forward(self, x):
                return self.weight.view(2, 4), self.weight * x
        m = Module().to(DEVICE)
        f = self.compile(m)
        for i in range(4):
            with torch.no_grad():
                view, product = f(full(i, 1))
            self.assertEqual(view.data_ptr(), m.weight.data_ptr())
            self.same(product, torch.arange(8.0) * i)
            del product
        self.assertEqual(self.info("live"), 0)

    def test_alias_of_parameter(self):
        model = torch.nn.Linear(4, 4).to(DEVICE)
        f = self.compile(lambda x: (model.weight.detach().t(), model(x)))
        with torch.no_grad():
            for i in range(4):
                weight, out = f(full(i, 2, 4))
                self.same(weight, model.weight.t())
                self.same(out, model(full(i, 2, 4)))
                self.assertEqual(self.info("live"), 1)
                del weight, out

    def test_constant_output(self):
        model = torch.nn.Linear(3, 3).to(DEVICE).eval()

        def function(x):
            return model.weight.t(), model(x)
        f = self.compile(function, freezing=True)
        with torch.no_grad():
            for i in range(4):
                weight, out = f(full(i, 2, 3))
                self.same(weight, model.weight.t())
                self.same(out, model(full(i, 2, 3)))
                del weight, out

    def test_aliased_storage_single_weakref(self):
        f = self.compile(lambda x: (lambda y: (y[1:], y))(x + 1))
        g = self.compile(lambda v: (v[1:], v * 2))
        for i in range(4):
            torch.compiler.cudagraph_mark_step_begin()
            view, whole = f(full(i))
            part, product = g(view)
            self.assertEqual(part.untyped_storage().data_ptr(), whole.untyped_storage().data_ptr())
            self.same(part, torch.full((2,), i + 1.0))
            self.same(product, torch.full((3,), 2.0 * (i + 1)))
            del view, whole
            self.same(part, torch.full((2,), i + 1.0))
            del part, product

    def test_frozen_fn(self):
        f = self.compile(lambda x: x + 2)
        for i in range(4):
            f(full(i))
        with torch._dynamo.config.patch(error_on_recompile=True):
            run = torch._dynamo.run(f)
            for i in range(3):
                self.same(run(full(i)), torch.full((4,), i + 2.0))
        self.assertLessEqual(self.info("recordings"), 2)

    def test_checkpointing_resets_persistent_refs(self):
        f = self.compile(lambda x: x + 1)
        g = self.compile(lambda x: x - 1)

        def number():
            out = f(ones(4))
            return id(out)
        for _ in range(3):
            number()
        self.assertEqual(number(), number())
        out = f(ones(4))
        self.assertTrue(torch._C._is_cached_tensor(out))
        g(out)  # a checkpoint: from now on the object is the caller's alone
        self.assertFalse(torch._C._is_cached_tensor(out))
        self.same(out, torch.full((4,), 2.0))
        kept = id(out)
        again = f(ones(4))
        self.assertNotEqual(id(again), kept)
        self.same(again, torch.full((4,), 2.0))

    def test_multiple_insert_removal_caching(self):
        f = self.compile(lambda x: x + 1)
        for _ in range(2):
            for _ in range(4):
                f(ones(4))
            out = f(ones(4))
            self.assertTrue(torch._C._is_cached_tensor(out))
            torch._dynamo.reset()
            self.assertFalse(torch._C._is_cached_tensor(out))
            self.same(out, torch.full((4,), 2.0))
            del out

    def test_single_stream_use(self):
        """All recordings, of whatever caller's stream, are on one stream and in one pool."""
        f = self.compile(lambda x: x * 2)
        for i in range(6):
            with torch.Stream(device=DEVICE) as stream:
                out = f(full(i, 4 + i % 2))
                got = out.cpu()
            stream.synchronize()
            self.same(got, torch.full((4 + i % 2,), 2.0 * i))
        self.assertEqual(len(self.managers()), 1)

    def test_cleanup(self):
        f = self.compile(lambda x: x * 2)
        out = None
        for i in range(4):
            out = None
            out = f(full(i))
        torch._dynamo.reset()
        del f
        self.assertEqual(self.managers(), [])
        self.same(out, torch.full((4,), 6.0))

    def test_meta_tensor(self):
        f = self.compile(lambda x, m: (x * m.shape[0], torch.empty_like(m)))
        for i in range(4):
            out, meta = f(full(i), torch.empty(3, device="meta"))
            self.same(out, torch.full((4,), 3.0 * i))
            self.assertEqual(meta.device.type, "meta")
            del out
        self.assertEqual((self.recordings(), self.skips()), (1, 0))


class Overwritten(TreeTest):
    def program(self):
        return self.compile(lambda x: x * x * x)

    def test_error_on_dealloc_use(self):
        """In every phase: after a warm-up, a recording and a replay."""
        f = self.program()
        for _ in range(5):
            torch.compiler.cudagraph_mark_step_begin()
            out = f(ones(4))
            torch.compiler.cudagraph_mark_step_begin()
            other = f(full(2))
            text = self.stale(lambda: out + out)
            self.same(other, torch.full((4,), 8.0))
            self.assertIn("x * x * x", text)

    def test_error_on_dealloc_use2(self):
        f = self.program()
        for _ in range(4):
            torch.compiler.cudagraph_mark_step_begin()
            out = f(ones(4)).detach()
            view = out[1:]
            torch.compiler.cudagraph_mark_step_begin()
            f(full(2))
            for tensor in (out, view):
                self.assertIn("x * x * x", self.stale(lambda tensor=tensor: tensor + tensor))

    def test_stale_input(self):
        """The text is as at any other use: it names who took the memory, not who is called, and its lines are lines."""
        f, g = self.program(), self.compile(lambda x: x + 1)
        for _ in range(4):
            torch.compiler.cudagraph_mark_step_begin()
            out = f(ones(4))
            torch.compiler.cudagraph_mark_step_begin()
            f(full(2))
            text = self.stale(lambda out=out: g(out))
            self.assertIn("from\n  File", text)
            self.assertEqual(text, self.stale(out.cpu))
            g(ones(4))

    def test_storage_access_error(self):
        f = self.program()
        for _ in range(4):
            out = None
            out = f(ones(4))
        torch.compiler.cudagraph_mark_step_begin()
        f(full(2))
        self.stale(lambda: out.untyped_storage().data_ptr())
        self.stale(lambda: out.data_ptr())
        self.stale(lambda: out.cpu())

    def test_unmarked_steps(self):
        """Each call of compiled code is a step of its own; held outputs fail then."""
        f = self.program()
        outs = []
        for i in range(5):
            outs.append(f(full(i)))
            self.same(outs[-1], torch.full((4,), float(i) ** 3))
        for out in outs[:-1]:
            self.stale(lambda out=out: out + 1)

    def test_result_as_input(self):
        """f(f(x)) needs no marks."""
        f = self.program()
        x = full(1.1)
        want = torch.full((4,), 1.1)
        for _ in range(6):
            x, want = f(x), want ** 3
            self.same(x, want)

    def test_chain_of_functions(self):
        f, g = self.program(), self.compile(lambda x: x - 1)
        for i in range(6):
            self.same(g(f(full(i))), torch.full((4,), float(i) ** 3 - 1))


class Mutation(TreeTest):
    def test_mutation_on_inp(self):
        def function(x):
            x.add_(2)
            return x * 3
        f = self.compile(function)
        with self.logs() as lines:
            for i in range(4):
                x = full(i)
                self.same(f(x), torch.full((4,), 3.0 * (i + 2)))
                self.same(x, torch.full((4,), i + 2.0))
        self.assertEqual((self.recordings(), self.skips()), (0, 1))
        self.assertEqual(lines.count("skipping cudagraphs due to mutated inputs (1 instances)"), 1)
        self.assertEqual(lines.count("x.add_(2)"), 1)

    def test_mutation_of_a_buffer(self):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("count", torch.zeros(4))

            def forward(self, x):
                self.count.add_(x)
                return x + self.count
        m = Module().to(DEVICE)
        f = self.compile(m)
        total = torch.zeros(4)
        with torch.no_grad():
            for i in range(5):
                total += i
                self.same(f(full(i)), total + i)
                self.same(m.count, total)
        self.assertEqual((self.recordings(), self.skips()), (1, 0))
        self.assertGreater(self.info("replays"), 0)

    def test_mutation_reinplaced(self):
        out = torch.zeros(2, 2, device=DEVICE)

        def function(a, b, into):
            return torch.mm(a, b, out=into) + 1
        f = self.compile(function)
        with self.logs() as lines:
            for i in range(3):
                self.same(f(full(i, 2, 2), full(1, 2, 2), out), torch.full((2, 2), 2.0 * i + 1))
        self.same(out, torch.full((2, 2), 4.0))
        self.assertEqual(self.skips(), 1)
        self.assertEqual(lines.count("skipping cudagraphs due to mutated inputs (1 instances)"), 1)

    def managed(self):
        first = self.compile(lambda x: x + 1)

        def write(x):
            x.mul_(3)
            return x + 10
        return first, self.compile(write)

    def test_mutation_cudagraph_managed_tensors(self):
        f, write = self.managed()
        for i in range(5):
            torch.compiler.cudagraph_mark_step_begin()
            x = f(full(i))
            self.same(write(x), torch.full((4,), 3.0 * (i + 1) + 10))
            self.same(x, torch.full((4,), 3.0 * (i + 1)))
        self.assertEqual((self.recordings(), self.skips()), (2, 0))
        with self.logs() as lines:  # memory that is no tree's any more
            for i in range(2):
                torch.compiler.cudagraph_mark_step_begin()
                own = f(full(i)).clone()
                self.same(write(own), torch.full((4,), 3.0 * (i + 1) + 10))
                self.same(own, torch.full((4,), 3.0 * (i + 1)))
        self.assertEqual(lines.count("mutated inputs"), 1)
        self.assertEqual(self.skips(), 1)

    def test_mutation_cudagraph_managed_tensors_config(self):
        f, write = self.managed()
        with config.patch({"triton.cudagraph_support_input_mutation": False}), self.logs():
            for i in range(3):
                torch.compiler.cudagraph_mark_step_begin()
                self.same(write(f(full(i))), torch.full((4,), 3.0 * (i + 1) + 10))
        self.assertEqual(self.recordings(), 1)

    def test_mutation_cudagraph_managed_tensor_warn_only_once(self):
        f, write = self.managed()
        g = self.compile(lambda x: x - 1)
        with self.logs() as lines:
            for i in range(3):
                for parent in (f, g):
                    torch.compiler.cudagraph_mark_step_begin()
                    write(parent(full(i)).clone())
        self.assertEqual(lines.count("mutated inputs"), 1)
        self.assertEqual(self.skips(), 1)

    def test_tensor_constant_mutation(self):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.tensor = torch.zeros(4, device=DEVICE)

            def forward(self, x):
                self.tensor += x
                return self.tensor * 2
        m = Module()
        # By named operators alone (fallback_by_default) PyTorch 2.14 returns a name from a part that the part has deleted.
        f = self.compile(m, generated=True)
        total = torch.zeros(4)
        for i in range(5):
            total += i
            self.same(f(full(i)), total * 2)
            self.same(m.tensor, total)


class Rerecord(TreeTest):
    def linear(self):
        torch.manual_seed(0)
        return torch.nn.Linear(4, 4).to(DEVICE)

    def test_multi_dispatch_single_compile_builtin_module(self):
        m = self.linear()
        f = self.compile(m)
        old = m.weight
        new = torch.nn.Parameter(torch.ones_like(old))
        with torch.no_grad():
            for weight in (old, new, old, new):
                m.weight = weight
                for i in range(3):
                    x = full(i, 2, 4)
                    self.same(f(x), torch.nn.functional.linear(x, weight, m.bias))
        self.assertEqual(self.recordings(), 2)

    def test_rerecord_if_static_input_address_changed(self):
        m = self.linear()
        f = self.compile(m)
        with torch.no_grad():
            for i in range(3):
                f(full(i, 2, 4))
            m.weight.data = torch.ones_like(m.weight)
            m.bias.data = torch.ones_like(m.bias)
            with self.logs() as lines:
                for i in range(3):
                    self.same(f(full(i, 2, 4)), torch.full((2, 4), 4.0 * i + 1))
        self.assertEqual(self.recordings(), 2)
        self.assertEqual(lines.count("Re-recording"), 1)
        self.assertEqual(lines.count("static input data pointer changed"), 1)

    def test_multi_dispatch_single_compile_builtin_module_buffers(self):
        m = torch.nn.BatchNorm1d(3).to(DEVICE).eval()
        f = self.compile(m)
        with torch.no_grad():
            for mean in (torch.zeros(3), torch.ones(3), torch.full((3,), 2.0)):
                m.running_mean = mean.to(DEVICE)
                for i in range(3):
                    x = full(i, 2, 3)
                    self.same(f(x), (x.cpu() - mean) / (1 + m.eps) ** 0.5)

    def test_multi_dispatch_child_node(self):
        m = self.linear()
        f = self.compile(lambda x: x * 2)
        g = self.compile(m)
        old = []
        with torch.no_grad():
            for value in (None, 1.0, 2.0):
                if value is not None:
                    old.append(m.weight.data)
                    m.weight.data = torch.full_like(m.weight, value)
                for i in range(3):
                    torch.compiler.cudagraph_mark_step_begin()
                    a = f(full(i, 2, 4))
                    self.same(g(a), m(full(2 * i, 2, 4)))
        self.assertEqual((self.info("roots"), self.info("recordings")), (1, 4))

    def test_multi_dispatch_parent_node(self):
        m = self.linear()
        f = self.compile(m)
        g = self.compile(lambda x: x * 2)
        old = m.weight.data  # or the new one may lie there
        with torch.no_grad():
            for value in (None, 1.0):
                if value is not None:
                    m.weight.data = torch.full_like(m.weight, value)
                for i in range(3):
                    torch.compiler.cudagraph_mark_step_begin()
                    a = f(full(i, 2, 4))
                    self.same(g(a), 2 * m(full(i, 2, 4)))
        self.assertEqual((self.info("roots"), self.info("recordings")), (2, 4))
        del old

    def test_no_rerecord_with_mark_static_address(self):
        m = self.linear()
        f = self.compile(m)
        static = ones(2, 4)
        torch._dynamo.mark_static_address(static)
        with torch.no_grad():
            for i in range(5):
                static.fill_(i)
                self.same(f(static), m(full(i, 2, 4)))
            for i in range(5):
                self.same(f(full(i, 2, 4)), m(full(i, 2, 4)))
        self.assertLessEqual(self.recordings(), 2)

    def test_fallback_to_eager_if_recompiling_too_many_times(self):
        m = self.linear()
        old = []
        with config.patch({"triton.cudagraph_unexpected_rerecord_limit": 0}), self.logs() as lines, torch.no_grad():
            f = self.compile(m)
            for value in (1.0, 2.0, 3.0):
                old.append(m.weight.data)
                m.weight.data = torch.full_like(m.weight, value)
                for i in range(3):
                    self.same(f(full(i, 2, 4)), m(full(i, 2, 4)))
        self.assertEqual((self.recordings(), self.skips()), (1, 1))
        self.assertEqual(lines.count("exceeding max re-recording limit"), 1)
        self.assertEqual(lines.count("static input data pointer changed"), 1)

    def test_not_fallback_to_eager_if_have_not_recompiling_too_many_times(self):
        m = self.linear()
        with config.patch({"triton.cudagraph_unexpected_rerecord_limit": 1}), torch.no_grad():
            f = self.compile(m)
            for value in (1.0, 2.0):
                m.weight.data = torch.full_like(m.weight, value)
                for i in range(3):
                    self.same(f(full(i, 2, 4)), m(full(i, 2, 4)))
        self.assertEqual((self.recordings(), self.skips()), (2, 0))

    def test_tensor_no_longer_in_pool(self):
        f = self.compile(lambda x: x + 1)
        g = self.compile(lambda y: y * 2)
        for i in range(4):
            torch.compiler.cudagraph_mark_step_begin()
            self.same(g(f(full(i))), torch.full((4,), 2.0 * (i + 1)))
        for i in range(3):
            torch.compiler.cudagraph_mark_step_begin()
            y = f(full(i)).clone()
            self.same(g(y), torch.full((4,), 2.0 * (i + 1)))

    def test_rerecording_logs_reason(self):
        m = self.linear()
        f = self.compile(m)
        with torch.no_grad(), self.logs() as lines:
            for value in (1.0, 2.0):
                m.weight.data = torch.full_like(m.weight, value)
                for i in range(3):
                    f(full(i, 2, 4))
        self.assertEqual(lines.count("Recording function="), 1)
        self.assertEqual(lines.count("Re-recording function="), 1)
        self.assertEqual(lines.count("mode=inference"), 2)

    def test_unaligned_static_input(self):
        """The device's kernels ask for no alignment: nothing is copied for it, with trees, without, and without graphs."""
        whole = torch.arange(17.0, device=DEVICE)
        places = whole[1:], whole[:16]
        copies = []
        for static in places:
            torch._dynamo.mark_static_address(static)
            for options in ({}, {"triton__cudagraph_trees": False}, {"triton__cudagraphs": False}):
                f = self.compile(lambda s: s * 2, **options)
                for i in range(4):
                    static.fill_(i)
                    self.same(f(static), torch.full((16,), 2.0 * i))
                copies += [item["copies"] for one in self.managers() for item in one.functions()]
                del f
                torch._dynamo.reset()
        self.assertEqual(copies, [0, 0, 0, 0])


class Sizes(TreeTest):
    def test_dynamic_warmup(self):
        f = self.compile(lambda x: x * x.shape[0], dynamic=True)
        for _ in range(4):
            for n in (3, 5, 7):
                self.same(f(full(2, n)), torch.full((n,), 2.0 * n))
        info = self.info()
        self.assertEqual((info["recordings"], info["roots"], info["warmups"]), (3, 3, 3))
        self.assertEqual(self.functions()[0]["sizes"], 3)

    def test_skip_if_dynamic_shape_limit_reached(self):
        with config.patch({"triton.cudagraph_dynamic_shape_warn_limit": 2}), self.logs() as lines:
            f = self.compile(lambda x: x * 2, dynamic=True)
            for n in range(3, 9):
                for _ in range(3):
                    self.same(f(full(2, n)), torch.full((n,), 4.0))
        self.assertEqual(lines.count("recording a new graph for each distinct input size"), 1)

    def test_cudagraph_capture_sizes(self):
        with config.patch({"triton.cudagraph_capture_sizes": (3, 5)}):
            f = self.compile(lambda x: x * 2, dynamic=True)
            for n in (3, 4, 5, 6, 7):
                for i in range(3):
                    self.same(f(full(i, n)), torch.full((n,), 2.0 * i))
        self.assertEqual(self.recordings(), 2)

    def test_cudagraph_capture_sizes1(self):
        with config.patch({"triton.cudagraph_capture_sizes": ((4, 3), (6, 5))}):  # in the order of the symbols
            f = self.compile(lambda x, y: (x * 2, y + 1), dynamic=True)
            for a, b in ((3, 4), (4, 3), (5, 6), (6, 7)):
                for i in range(3):
                    x, y = f(full(i, a), full(i, b))
                    self.same(x, torch.full((a,), 2.0 * i))
                    self.same(y, torch.full((b,), i + 1.0))
                    del x, y
        self.assertEqual(self.recordings(), 2)

    def test_skip_symbolic(self):
        with config.patch({"triton.cudagraph_skip_dynamic_graphs": True}), self.logs() as lines:
            f = self.compile(lambda x: x * x.shape[0], dynamic=True, graph_partition=False)
            for n in (3, 5):
                for _ in range(3):
                    self.same(f(full(2, n)), torch.full((n,), 2.0 * n))
        self.assertEqual(self.recordings(), 0)
        self.assertEqual(lines.count("graph with symbolic shapes inputs"), 1)
        self.assertEqual(self.skips(), 1)

    def test_integers_are_part_of_a_size(self):
        f = self.compile(lambda x, n: x * n, dynamic=True)
        for _ in range(3):
            for n in (2, 3, 4):
                self.same(f(full(1), n), torch.full((4,), float(n)))


class Options(TreeTest):
    def test_no_trees(self):
        """The simple path: one recording, the same objects at each call."""
        f = self.compile(lambda x: (x + 1, x * 2), triton__cudagraph_trees=False)
        numbers = set()
        for i in range(5):
            a, b = f(full(i))
            self.same(a, torch.full((4,), i + 1.0))
            self.same(b, torch.full((4,), i * 2.0))
            numbers.add((id(a), id(b)))
        self.assertEqual(len(numbers), 1)
        self.assertEqual(self.recordings(), 1)

    def test_a_forward_without_trees_that_was_run_again(self):
        """Its outputs are written in place: who has saved them for a backward is refused, and gets no other gradient."""
        for function in (lambda x: x * x, lambda x: (x * x).sin()):
            torch._dynamo.reset()
            f = self.compile(function, triton__cudagraph_trees=False)
            for i in range(4):
                x, plain = full(i + 1).requires_grad_(), torch.full((4,), i + 1.0, requires_grad=True)
                f(x).sum().backward()
                function(plain).sum().backward()
                self.same(x.grad, plain.grad)
            a, b = full(2).requires_grad_(), full(0.5).requires_grad_()
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                (f(a).sum() + f(b).sum()).backward()

    def test_a_static_input_that_a_forward_without_trees_saves(self):
        """It is the caller's, and is as it was after another forward."""
        weight = full(3)
        torch._dynamo.mark_static_address(weight)
        f = self.compile(lambda x: x * weight, triton__cudagraph_trees=False)
        for _ in range(3):
            x, y = full(2).requires_grad_(), full(5).requires_grad_()
            (f(x).sum() + f(y).sum()).backward()
            self.same(x.grad, torch.full((4,), 3.0))
            self.same(y.grad, torch.full((4,), 3.0))

    def test_rng_non_trees(self):
        self.check_draws(triton__cudagraph_trees=False)
        torch._dynamo.reset()
        f = self.compile(lambda x: x + torch.rand(4, device=DEVICE), triton__cudagraph_trees=False)
        seen = set()
        f(ones(4))
        for _ in range(2):
            torch.manual_seed(0)
            seen.add(tuple(tuple(f(ones(4)).cpu().tolist()) for _ in range(3)))
        self.assertEqual(len(seen), 1)

    def check_draws(self, **options):
        """One draw a call, as eager code does: by a warm-up, a recording, both of one call, and a replay."""
        f = self.compile(lambda x: x + torch.rand(4, device=DEVICE), fallback_random=True, **options)
        torch.manual_seed(5)
        got = [f(ones(4)).cpu() for _ in range(5)]
        torch.manual_seed(5)
        want = [(ones(4) + torch.rand(4, device=DEVICE)).cpu() for _ in range(5)]
        for a, b in zip(got, want):
            self.same(a, b)
        self.assertEqual(len({tuple(t.tolist()) for t in got}), 5)
        self.assertEqual(self.recordings(), 1)

    def test_rng_trees(self):
        self.check_draws()

    def test_multinomial(self):
        weights = torch.tensor([0.0, 10, 3, 0]).to(DEVICE)
        f = self.compile(lambda w: torch.multinomial(w, 2, replacement=False))
        torch.manual_seed(1)
        got = [f(weights).cpu() for _ in range(4)]
        torch.manual_seed(1)
        for out in got:
            self.same(out, torch.multinomial(weights, 2, replacement=False))

    def test_skip_cudagraph_warmup(self):
        f = self.compile(lambda x: x + 1, triton__skip_cudagraph_warmup=True)
        for i in range(3):
            self.same(f(full(i)), torch.full((4,), i + 1.0))
        info = self.info()
        self.assertEqual((info["warmups"], info["records"], info["replays"]), (0, 1, 2))

    def test_force_cudagraphs_warmup(self):
        f = self.compile(lambda x: x + 1, triton__force_cudagraphs_warmup=True)
        for i in range(4):
            self.same(f(full(i)), torch.full((4,), i + 1.0))
        info = self.info()
        self.assertEqual((info["warmups"], info["records"]), (4, 0))

    def test_force_cudagraph_sync(self):
        f = self.compile(lambda x: x + 1, triton__force_cudagraph_sync=True)
        for i in range(4):
            self.same(f(full(i)), torch.full((4,), i + 1.0))

    def test_slow_path_cudagraph_asserts(self):
        for value in (True, False):
            with config.patch({"triton.slow_path_cudagraph_asserts": value}):
                f = self.compile(lambda x, value=value: x + 1)
                for i in range(4):
                    self.same(f(full(i)), torch.full((4,), i + 1.0))

    def test_cudagraph_or_error(self):
        def function(x):
            x.add_(1)
            return x * 2
        with config.patch({"triton.cudagraph_or_error": True}):
            f = self.compile(function)
            with self.assertRaisesRegex(RuntimeError, "skipping cudagraphs due to mutated inputs"):
                f(full(1))

    def test_indexing_operators(self):
        index = torch.tensor([0, 2, 2])
        source = torch.arange(3.0) + 1
        functions = (lambda x, i, s: x.index_add(0, i, s), lambda x, i, s: x.index_copy(0, i[:2], s[:2]),
                     lambda x, i, s: x.index_fill(0, i, 5.0), lambda x, i, s: x.scatter(0, i[:2], s[:2]),
                     lambda x, i, s: x.scatter_add(0, i, s), lambda x, i, s: x.index_put([i], s, accumulate=True),
                     lambda x, i, s: x.scatter_reduce(0, i, s, "amax"))
        for function in functions:
            f = self.compile(function)
            for k in range(3):
                x = torch.arange(4.0) - k
                self.same(f(x.to(DEVICE), index.to(DEVICE), source.to(DEVICE)), function(x, index, source))
            torch._dynamo.reset()

    def test_policy(self):
        """A policy wraps whole functions; without parts it is as without a policy."""
        from torch._inductor import cudagraph_utils
        if not hasattr(cudagraph_utils, "CUDAGraphPolicy"):
            self.skipTest("this release has no policies")
        seen = []

        class Policy(cudagraph_utils.CUDAGraphPolicy):
            def cudagraphify(self, model, example_inputs, static_input_idxs, **options):
                seen.append(len(example_inputs))
                return super().cudagraphify(model, example_inputs, static_input_idxs, **options)
        with config.patch({"cudagraph_policy": Policy(), "graph_partition": False}):
            f = self.compile(lambda x: x + 1, graph_partition=False)
            for i in range(4):
                self.same(f(full(i)), torch.full((4,), i + 1.0))
        self.assertEqual((seen, self.recordings()), ([1], 1))

    def test_modes_and_inference_mode(self):
        f = self.compile(lambda x: x * 2)
        for i in range(12):
            with (torch.inference_mode(), torch.no_grad(), torch.enable_grad())[i % 3]:
                out = f(full(i))
                self.same(out, torch.full((4,), 2.0 * i))
                del out

    def test_report(self):
        import rondo_torch
        f = self.compile(lambda x: x * 2)
        for i in range(4):
            f(full(i))

        def function(x):
            x.add_(1)
            return x * 2
        g = self.compile(function)
        for i in range(2):
            g(full(i))
        text = rondo_torch.report()
        self.assertIn("trees of rondo:0", text)
        self.assertRegex(text, r"function \d+ '.+ \[\S+\] inference #\d+'")  # by its name, compilation and number
        self.assertIn("skipping cudagraphs due to mutated inputs", text)
        data = rondo_torch.report(json=True)
        self.assertEqual(len(data["trees"]), 1)
        self.assertEqual(data["trees"][0]["records"], 1)
        self.assertTrue(any("mutated inputs" in reason for reason in data["skips"]))
        self.assertIn("trees.cudagraphify", data["patches"])

    def test_generated_kernels(self):
        """With Inductor's own C++ kernels, once."""
        f = torch.compile(lambda x, y: (x * y + 1).relu().sum(1), mode="reduce-overhead")
        for i in range(4):
            x, y = full(i, 3, 5), full(-1, 3, 5)
            self.same(f(x, y), torch.relu(torch.full((3,), (1.0 - i))) * 5)
        self.assertEqual(self.recordings(), 1)
        self.assertGreater(self.info("replays"), 0)


if __name__ == "__main__":
    unittest.main()
