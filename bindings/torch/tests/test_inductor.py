# SPDX-License-Identifier: Apache-2.0
"""torch.compile in its default mode on the device: results of operators and whole programs against the CPU.

Compiling is what these tests cost, so operators are compiled many to a function, and where it does not matter what is
computed it is `doubled`, whose kernel is compiled once. RONDO_TORCH_LONG=1 takes each alone, too.
"""
import copy
import math
import os
import threading
import unittest

import torch
import torch.nn.functional as F
from torch._dynamo.utils import counters
from torch._inductor.utils import run_and_get_code
from torch.utils.checkpoint import checkpoint

import rondo_torch  # noqa: F401

DEVICE = "rondo"
LONG = unittest.skipUnless(os.environ.get("RONDO_TORCH_LONG"), "RONDO_TORCH_LONG=1 has more programs compiled")
HALF = (torch.bfloat16, torch.float16)


def leaves(value):
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, (tuple, list)) else [value]


class Case(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)

    def same(self, got, want, rtol=1e-4, atol=1e-5):
        got, want = leaves(got), leaves(want)
        self.assertEqual(len(got), len(want))
        for one, other in zip(got, want):
            loose = other.dtype in HALF
            torch.testing.assert_close(one.detach().cpu(), other.detach(), rtol=2e-2 if loose else rtol,
                                       atol=1e-2 if loose else atol)

    def check(self, function, *inputs, device=DEVICE, **options):
        want = function(*(t.clone() for t in inputs))
        got = torch.compile(function, **options)(*(t.to(device) for t in inputs))
        for tensor in leaves(got):
            self.assertEqual(tensor.device.type, "rondo")
        self.same(got, want)
        return got


def doubled(x):
    return x * 2 + 1


def r(*shape):
    return torch.randn(*shape, generator=r.generator)


r.generator = torch.Generator().manual_seed(7)

# Generated as loops: one kernel.
LOOPS = {
    "pad": (lambda x: F.pad(x, (1, 2), value=3.0), r(3, 4)),
    "softmax": (lambda x: x.softmax(1), r(4, 9)),
    "layer_norm": (lambda x, w: F.layer_norm(x, (8,), w), r(4, 8), r(8)),
    "softmax_bf16": (lambda x: (x * 2).softmax(1), r(4, 9).bfloat16()),
    "softmax_f16": (lambda x: (x * 2).softmax(1), r(4, 9).half()),
    "layer_norm_bf16": (lambda x: F.layer_norm(x + 1, (8,)), r(4, 8).bfloat16()),
    "cat": (lambda x, y: torch.cat([x + 1, y * 2], 1), r(3, 4), r(3, 5)),
    "split_stack": (lambda x: torch.stack([*x.split(2, 1)]).sum(0), r(3, 4)),
    "index": (lambda x, i: x[i] + 1, r(5, 4), torch.tensor([0, 3, 1])),
    "index_put": (lambda x, i: x.index_put((i,), x[:3] * 2, accumulate=True), r(5, 4), torch.tensor([0, 3, 0])),
    "scatter": (lambda x, i: x.scatter(1, i, 2.0), r(5, 4), torch.tensor([[0, 1], [3, 2], [1, 0], [2, 2], [0, 3]])),
    "gather": (lambda x, i: x.gather(1, i) * 2, r(5, 4), torch.tensor([[0, 1], [3, 2], [1, 0], [2, 2], [0, 3]])),
    "argmax": (lambda x: x.argmax(1), r(5, 9)),
    "embedding": (lambda w, i: F.embedding(i, w) + 1, r(10, 4), torch.tensor([[0, 9, 1], [3, 3, 2]])),
    "transposes": (lambda x: (x.permute(2, 0, 1).reshape(4, -1) * 2).t().contiguous(), r(2, 3, 4)),
    "constants": (lambda x: x * torch.tensor([1., 2.]).to(x.device) + torch.arange(2, device=x.device), r(3, 2)),
    "double": (lambda x: x.sin().sum(1), r(3, 4).double()),
    "integers": (lambda x: (x * 3 + 1).sum(0), torch.arange(12).reshape(3, 4)),
    "booleans": (lambda x: (x > 0).any(1), r(3, 4)),
    "var": (lambda x: torch.var(x, 1), r(3, 9)),
    "where": (lambda x: torch.where(x > 0, x, -2 * x).clamp(-0.5, 0.5), r(3, 4)),
    "zero_dim": (lambda x, y: (x.sum() * 2, y + 1), r(3, 4), torch.tensor(3.0)),
    "empty": (lambda x: (x * 2, x.sum(0)), torch.empty(0, 4)),
    "floor_divide": (lambda x, y: (x // y, x % y), torch.arange(12), torch.arange(1, 13)),
    "as_strided": (lambda x: x.as_strided((2, 2), (1, 2), 1) + 1, r(3, 4)),
    "roll_flip": (lambda x: torch.roll(x, 1, 0) + torch.flip(x, [1]) + torch.tril(x), r(4, 4)),
    "pooling": (lambda x: (F.max_pool2d(x + 1, 2), F.avg_pool2d(x, 3, 2, 1)), r(2, 3, 8, 8)),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False), r(1, 2, 4, 4)),
    "batch_norm": (lambda x, m: F.batch_norm(x, m, m.abs() + 1), r(2, 3, 4, 4), r(3)),
    "cross_entropy": (lambda x, t: F.cross_entropy(x, t), r(5, 4), torch.tensor([0, 3, 1, 2, 0])),
}
# Operators that PyTorch calls by name: products, and what has no loops, each between loops.
CALLS = {
    "gelu_mm": (lambda x, y: F.gelu(x @ y), r(5, 9), r(9, 4)),
    "bmm": (lambda x, y: torch.bmm(x, y), r(2, 3, 4), r(2, 4, 5)),
    "addmm": (lambda b, x, y: torch.addmm(b, x, y), r(4), r(5, 9), r(9, 4)),
    "sdpa": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), r(2, 3, 6, 8)),
    "convolution": (lambda x, w, b: F.conv2d(x, w, b, padding=1), r(2, 3, 8, 8), r(4, 3, 3, 3), r(4)),
    "transposed": (lambda x, w: F.conv_transpose2d(x, w), r(2, 3, 8, 8), r(3, 4, 3, 3)),
    "cumsum": (lambda x: torch.cumsum(x, 1), r(3, 9)),
    "sort": (lambda x: torch.sort(x, 1), r(3, 9)),
    "topk": (lambda x: torch.topk(x, 3, 1), r(3, 9)),
    "complex": (lambda x: torch.view_as_real(torch.view_as_complex(x) * 2j), r(3, 2)),
    "fft": (lambda x: torch.fft.fft(x).abs(), r(3, 8)),
    "nonzero": (lambda x: torch.nonzero(x > 0), r(3, 4)),
}


class Operators(Case):
    def together(self, cases):
        inputs = [tensor for _, *tensors in cases.values() for tensor in tensors]

        def everything(*tensors):
            left = list(tensors)
            return [function(*[left.pop(0) for _ in own]) for function, *own in cases.values()]

        counters.clear()
        want = everything(*inputs)
        got = torch.compile(everything)(*(tensor.to(DEVICE) for tensor in inputs))
        self.assertEqual(sum(counters["graph_break"].values()), 0)
        for name, one, other in zip(cases, got, want):
            with self.subTest(name):
                self.same(one, other)
                self.assertEqual({tensor.device.type for tensor in leaves(one)}, {"rondo"})

    def test_loops(self):
        self.together(LOOPS)

    def test_calls(self):
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            self.together(CALLS)

    @LONG
    def test_each_alone(self):
        for name, (function, *inputs) in (LOOPS | CALLS).items():
            with self.subTest(name):
                torch._dynamo.reset()
                self.check(function, *inputs)

    def test_random_numbers(self):
        function = torch.compile(lambda: (torch.rand(20000, device=DEVICE), torch.randn(20000, device=DEVICE),
                                          F.dropout(torch.ones(20000, device=DEVICE), 0.3)))
        torch.manual_seed(3)
        first, second = function(), function()
        torch.manual_seed(3)
        for one, other, again in zip(first, second, function()):
            self.assertFalse(one.equal(other))
            self.assertTrue(one.equal(again))
        self.assertAlmostEqual(first[0].mean().item(), 0.5, delta=0.02)
        self.assertAlmostEqual(first[1].std().item(), 1, delta=0.03)
        self.assertAlmostEqual((first[2] == 0).float().mean().item(), 0.3, delta=0.02)
        self.assertAlmostEqual(first[2].max().item(), 1 / 0.7, places=5)


class Memory(Case):
    def test_inputs_are_mutated_and_outputs_alias(self):
        def function(x, y):
            x.add_(1)
            y.t()[1].mul_(2)
            return x[1:], x.view(2, 2), x * 2, y

        x, y = r(4), r(3, 3)
        ours = [x.clone().to(DEVICE), y.clone().to(DEVICE)]
        want = function(x, y)
        got = torch.compile(function)(*ours)
        self.same([*got, *ours], [*want, x, y])
        self.assertEqual(got[0].data_ptr(), ours[0].data_ptr() + 4)
        self.assertEqual(got[1].data_ptr(), ours[0].data_ptr())

    def test_views_of_one_storage(self):
        def function(x, y):
            x.mul_(2)
            return x + y

        base = r(8)
        ours = base.clone().to(DEVICE)
        self.same(torch.compile(function)(ours[:4], ours[2:6]), function(base[:4], base[2:6]))
        self.same(ours, base)

    def test_a_number_of_the_host_is_read_when_the_call_is_made(self):
        function = torch.compile(lambda x, s: x * s + 1)
        x, s = torch.ones(4, device=DEVICE), torch.tensor(2.0)
        first = function(x, s)
        s.fill_(100)
        second = function(x, s)
        s.fill_(-1)
        del s
        self.assertEqual((first.cpu().tolist(), second.cpu().tolist()), ([3] * 4, [101] * 4))

    def test_work_is_enqueued(self):
        function = torch.compile(lambda *xs: [x * 2 + i for i, x in enumerate(xs)])
        inputs = [torch.zeros(4, device=DEVICE) for _ in range(70)]  # a call takes 64 words, and this kernel 140
        function(*inputs)
        graph = torch.accelerator.Graph()
        with torch.Stream(), graph:
            outputs = function(*inputs)
        for x in inputs:
            x.fill_(3)
        graph.replay()
        torch.rondo.synchronize()
        self.assertEqual([y.cpu().tolist() for y in outputs], [[6.0 + i] * 4 for i in range(70)])

    def test_on_another_stream(self):
        function = torch.compile(doubled)
        x, stream = torch.ones(4, device=DEVICE), torch.rondo.Stream()
        stream.wait_stream(torch.rondo.current_stream())
        with torch.rondo.stream(stream):
            y = function(x)
        stream.synchronize()
        self.assertEqual(y.cpu().tolist(), [3, 3, 3, 3])


class Devices(Case):
    def test_each_line_names_its_device(self):
        function = torch.compile(lambda x: torch.relu(x @ x + 1).sum(1) + torch.arange(4, device=x.device))
        for index in {0, torch.rondo.device_count() - 1}:
            x = r(4, 4)
            got, code = run_and_get_code(function, x.to(f"rondo:{index}"))
            self.same(got, torch.relu(x @ x + 1).sum(1) + torch.arange(4))
            self.assertEqual(got.device, torch.device("rondo", index))
            body = code[0].split("def call(", 1)[1].split("\nrunner", 1)[0]
            self.assertRegex(body, rf"rondo_launch\(\w+, {index}, ")
            self.assertIn(f"torch.rondo.device({index})", body)
            for line in body.splitlines():
                if "empty_strided(" in line:
                    self.assertIn(f"'rondo:{index}'", line)
                if "rondo_launch(" in line:
                    self.assertRegex(line, rf"rondo_launch\(\w+, {index}, ")

    def test_the_current_device_is_nobodys_business(self):
        if torch.rondo.device_count() < 2:
            self.skipTest("the backend has one device")
        function = torch.compile(lambda x: torch.relu(x @ x + 1).sum(1) + torch.arange(4, device=x.device))
        x = r(4, 4)
        want = torch.relu(x @ x + 1).sum(1) + torch.arange(4)
        for index in (0, 1):
            for current in (1, 0):
                with torch.rondo.device(current):
                    got = function(x.to(f"rondo:{index}"))
                    self.assertEqual((got.device.index, torch.rondo.current_device()), (index, current))
                    self.same(got, want)

    def test_two_devices_in_one_graph(self):
        if torch.rondo.device_count() < 2:
            self.skipTest("the backend has one device")
        x, y = r(4), r(4)
        got = torch.compile(lambda x, y: doubled(x).to(y.device) + doubled(y))(x.to("rondo:0"), y.to("rondo:1"))
        self.assertEqual(got.device.index, 1)
        self.same(got, doubled(x) + doubled(y))

    def test_host_and_device_in_one_graph(self):
        def function(x, y):
            on_host = (x * 2).sum().cpu() + y
            return on_host.to(x.device) * x, on_host

        x, y = r(4), r(4)
        got = torch.compile(function)(x.to(DEVICE), y)
        self.assertEqual([t.device.type for t in got], ["rondo", "cpu"])
        self.same(got, function(x, y))

    def test_functions_of_the_host_go_on(self):
        x = r(9)
        got, code = run_and_get_code(torch.compile(lambda t: t.sin() + t.sum()), x)
        self.same(got, x.sin() + x.sum())
        self.assertNotIn("rondo", code[0].split("def call(")[1])


class Shapes(Case):
    def test_dynamic(self):
        function = torch.compile(lambda x: (x * x.shape[0]).softmax(0), fullgraph=True)
        counters.clear()
        for n in (5, 7, 9):
            x = r(n, 3)
            y = x.to(DEVICE)
            torch._dynamo.mark_dynamic(y, 0)
            self.same(function(y), (x * n).softmax(0))
        self.assertEqual(counters["stats"]["unique_graphs"], 1)

    @LONG
    def test_automatic(self):
        function = torch.compile(lambda x: x.cumsum(0) + x.mean())
        counters.clear()
        for n in (5, 7, 9, 11):
            x = r(n)
            self.same(function(x.to(DEVICE)), x.cumsum(0) + x.mean())
        self.assertEqual(counters["stats"]["unique_graphs"], 2)

    def test_a_number_that_the_device_computes(self):
        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            function = torch.compile(lambda x, y: y * x.sum().item() + 1, fullgraph=True)
            for _ in range(2):
                x, y = r(4), r(5)
                got, code = run_and_get_code(function, x.to(DEVICE), y.to(DEVICE))
                self.same(got, y * x.sum().item() + 1)
        # The kernel takes it as a number, not as a tensor.
        self.assertTrue(not code or "const float" in code[0].split("cpp_pybinding(")[-1].split("]")[0], code)

    def test_graph_breaks_and_branches(self):
        def function(x):
            y = doubled(x)
            torch._dynamo.graph_break()
            return doubled(y) if y[0] > 0 else y

        compiled = torch.compile(function)
        for x in (torch.ones(4), -torch.ones(4)):
            self.same(compiled(x.to(DEVICE)), function(x))


class Training(Case):
    def pair(self, *layers):
        model = torch.nn.Sequential(*layers)
        return model, copy.deepcopy(model).to(DEVICE)

    def test_convolution_and_batch_norm(self):
        host, ours = self.pair(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
                               torch.nn.MaxPool2d(2))
        compiled = torch.compile(ours)
        for _ in range(3):
            x = r(2, 3, 8, 8)
            for model, where in ((host, "cpu"), (compiled, DEVICE)):
                model(x.to(where)).square().sum().backward()
        self.same([p.grad for p in ours.parameters()], [p.grad for p in host.parameters()], 1e-3, 1e-3)
        self.same(list(ours.buffers()), list(host.buffers()))
        self.assertEqual(ours[1].num_batches_tracked.item(), 3)

    @LONG
    def test_the_optimizer_is_compiled_too(self):
        host, ours = self.pair(torch.nn.Linear(4, 4))
        steps = [torch.optim.Adam(model.parameters(), lr=0.05) for model in (host, ours)]
        compiled = torch.compile(steps[1].step)
        for _ in range(4):
            x = r(3, 4)
            for model, where, step in ((host, "cpu", steps[0].step), (ours, DEVICE, compiled)):
                model(x.to(where)).square().mean().backward()
                step()
                model.zero_grad()
        self.same(list(ours.parameters()), list(host.parameters()))

    def test_checkpoint_draws_the_same_numbers_again(self):
        x = torch.ones(1000, device=DEVICE, requires_grad=True)
        function = torch.compile(lambda x: checkpoint(lambda t: F.dropout(t.sin(), 0.5).sum(), x, use_reentrant=False))
        output = function(x)
        output.backward()
        self.assertAlmostEqual(output.item(), (x.grad != 0).sum().item() * 2 * math.sin(1), delta=0.1)
        self.same(x.grad[x.grad != 0], torch.full(((x.grad != 0).sum().item(),), 2 * math.cos(1)))


class Process(Case):
    def test_two_threads_compile(self):
        wrong = []

        def work(k):
            try:
                function = torch.compile(lambda x: x * k + 1)
                for _ in range(10):
                    x = torch.randn(4)
                    self.same(function(x.to(DEVICE)), x * k + 1)
            except Exception as error:  # noqa: BLE001  (a thread's error is the test's)
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in (2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_reset(self):
        for reset in (torch._dynamo.reset, torch.compiler.reset):
            counters.clear()
            self.same(torch.compile(doubled)(torch.zeros(4, device=DEVICE)), torch.ones(4))
            self.assertEqual(counters["stats"]["unique_graphs"], 1)
            reset()

    def test_another_compiler(self):
        self.check(doubled, r(4), backend="aot_eager")

    def test_export(self):
        model = torch.nn.Linear(4, 3).to(DEVICE)
        x = r(2, 4).to(DEVICE)
        self.same(torch.export.export(model, (x,)).module()(x), model(x).cpu())


if __name__ == "__main__":
    unittest.main()
