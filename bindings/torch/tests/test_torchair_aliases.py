# SPDX-License-Identifier: Apache-2.0
"""What goes into compiled graphs and comes out of them: views, aliases, what is written in place, odd layouts, no elements,
whole numbers, bools and plain numbers. Each against eager PyTorch: values, strides, and who shares memory with whom."""
import copy
import unittest

import torch
from torch.nn import functional as F

import rondo_torch  # noqa: F401
from rondo_torch import torchair
from torchair_kit import compiled


def tensors(values):
    return [one for one in torch.utils._pytree.tree_leaves(values) if isinstance(one, torch.Tensor)]


def sharing(values):
    """Who shares memory with whom, and where in it; who is whom."""
    def memory(one):
        return one.untyped_storage()._cdata

    return [[(one is other, memory(one) == memory(other),
              memory(one) == memory(other) and one.data_ptr() - other.data_ptr()) for other in values]
            for one in values]


class Case(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(5)

    def agree(self, got, want):
        leaves, wanted = (torch.utils._pytree.tree_leaves(one) for one in (got, want))
        self.assertEqual(len(leaves), len(wanted))
        for mine, theirs in zip(leaves, wanted):
            if not isinstance(theirs, torch.Tensor):
                self.assertEqual(mine, theirs)
                continue
            self.assertEqual((mine.shape, mine.dtype, mine.stride()), (theirs.shape, theirs.dtype, theirs.stride()))
            torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5, equal_nan=True)

    def same(self, function, *arguments, calls=2, **options):
        """Runs both, each on tensors of its own, which may be written to."""
        torch._dynamo.reset()
        mine, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
        call, backend = compiled(function, **options)
        for _ in range(calls):
            got, want = call(*mine), function(*theirs)
            self.agree(got, want)
            self.agree(mine, theirs)
            self.assertEqual(sharing(tensors((mine, got))), sharing(tensors((theirs, want))))
        return backend


class Views(Case):
    def test_of_inputs(self):
        self.same(lambda x: (x.t(), x[1:], x, x + 1), torch.randn(3, 4))
        self.same(lambda x, y: (x, y, x), torch.randn(3), torch.randn(2))

    def test_of_what_is_made(self):
        def whole(x):
            y = x + 1
            return y, y.t(), y[0], y.view(-1), y[:, ::2]

        def parts(x):
            y = x * 2
            return y[0], y[1:, 1], y.expand(2, 4, 5)

        for function in (whole, parts, lambda x: (x * 2)[0], lambda x: (x * 2)[1:1], lambda x: (x * 2).split(2),
                         lambda x: (x * 2).chunk(2, 1)):
            self.same(function, torch.randn(4, 5))

    def test_in_another_order(self):
        x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
        weight = torch.randn(4, 3, 3, 3)

        def function(x):
            y = F.conv2d(x, weight)
            return y, y.permute(0, 2, 3, 1), y[1]

        self.same(function, x)

    def test_across_partitions(self):
        def before(x):
            y = x * 2
            z = torch.special.i0(y.t())
            return y, y.t(), z, z[1], z[:, 1] + 1

        def behind(x):
            y = torch.special.i0(x)
            return y, y.t(), y.t() + 1, y[0]

        for function in (before, behind):
            backend = self.same(function, torch.randn(4, 5), fullgraph=False)
            self.assertEqual({name for name, *_ in backend.graphs[0].refused.values()}, {"aten.i0.default"})

    def test_with_open_sizes(self):
        def function(x):
            y = x * 2
            return y, y[1:], y.t()

        call, _ = compiled(function, dynamic=True)
        for size in (3, 5, 4):
            x = torch.randn(size, 6)
            got, want = call(x), function(x)
            self.agree(got, want)
            self.assertEqual(sharing(tensors(got)), sharing(tensors(want)))

    def test_writing_to_one_changes_the_other(self):
        def function(x):
            y = x + 1
            return y, y[0]

        call, _ = compiled(function)
        whole, row = call(torch.zeros(2, 3))
        row.fill_(7)
        self.assertEqual(whole.tolist(), [[7] * 3, [1] * 3])

    def test_with_gradients(self):
        def function(x):
            y = torch.tanh(x)
            return y, y.t() * 2, y[0]

        mine, theirs = (torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_() for _ in range(2))
        call, _ = compiled(function)
        for call, x in ((call, mine), (function, theirs)):
            sum(one.square().sum() for one in call(x)).backward()
        self.agree(mine.grad, theirs.grad)


class InPlace(Case):
    def test_inputs(self):
        def rows(x):
            x[0].add_(1)
            x[:, 1].mul_(2)
            return x.sum()

        def copied(x, y):
            x.copy_(y)
            return y * 2

        def put(x, i):
            x[i] = 0
            return x + 1

        def cut(x):
            x[1:3, ::2] = 5
            x[:, -1] = x[:, 0]
            x[9:] = 3
            return x * 2

        self.same(lambda x: x.mul_(2), torch.randn(3, 4))
        self.same(rows, torch.randn(3, 4))
        self.same(copied, torch.randn(3, 4), torch.randn(4))
        self.same(copied, torch.randn(3, 4), torch.arange(4))
        self.same(put, torch.randn(5, 3), torch.tensor([1, 3]))
        self.same(cut, torch.randn(4, 5))
        self.same(lambda x, out: torch.add(x, 1, out=out), torch.randn(5), torch.empty(5))

    def test_inputs_with_gaps(self):
        mine = torch.randn(6, 8)
        theirs = mine.clone()

        def function(x):
            x.add_(1)
            return x * 2

        self.agree(compiled(function)[0](mine[:, ::2]), function(theirs[:, ::2]))
        self.agree(mine, theirs)

    def test_inputs_that_share_memory(self):
        def function(x, y):
            x.add_(1)
            return y * 2

        for first, second in ((slice(0, 4), slice(2, 6)), (slice(0, 6), slice(0, 6)), (slice(0, 3), slice(3, 6))):
            torch._dynamo.reset()
            mine = torch.randn(6)
            theirs = mine.clone()
            call, _ = compiled(function)
            for _ in range(2):
                self.agree(call(mine[first], mine[second]), function(theirs[first], theirs[second]))
                self.agree(mine, theirs)
        mine = torch.randn(6)
        theirs = mine.clone()
        self.agree(compiled(function)[0](mine, mine), function(theirs, theirs))
        self.agree(mine, theirs)

    def test_buffers_of_a_module(self):
        class Counter(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.BatchNorm1d(3)
                self.register_buffer("count", torch.zeros(()))

            def forward(self, x):
                self.count += 1
                return {"x": self.inner(x), "count": self.count * 2}

        mine = Counter()
        theirs = copy.deepcopy(mine)
        call, backend = compiled(mine)
        with torch.no_grad():
            for _ in range(3):
                x = torch.randn(4, 3)
                self.agree(call(x), theirs(x))
                self.agree(list(mine.buffers()), list(theirs.buffers()))
        self.assertEqual(backend.compilations, 1)


class Layouts(Case):
    def copies(self, x, wanted):
        torch._dynamo.reset()
        call, backend = compiled(lambda x: x * 2 + 1)
        self.agree(call(x), x * 2 + 1)
        self.assertEqual(backend.profile().total["copies"], wanted)

    def test_what_is_copied_first(self):
        self.copies(torch.randn(3, 4), 0)
        self.copies(torch.randn(3, 4).t(), 0)
        self.copies(torch.randn(3, 4)[1:], 0)
        self.copies(torch.randn(3, 1).expand(3, 4), 1)
        self.copies(torch.randn(10).as_strided((4, 4), (2, 1)), 1)
        self.copies(torch.randn(4, 6)[:, ::2], 1)
        self.copies(torch._neg_view(torch.randn(4)), 1)
        self.copies(torch.frombuffer(bytearray(17), dtype=torch.float32, offset=1, count=4), 1)

    def test_no_elements(self):
        def all_of_them(x, y):
            return x @ y, x.sum(1), x.sum(0), x + 1, torch.cat([x, x]), F.softmax(x, 1), F.layer_norm(x, (4,))

        self.same(all_of_them, torch.randn(0, 4), torch.randn(4, 3))
        self.same(lambda x, y: x @ y, torch.randn(3, 0), torch.randn(0, 4))
        self.same(lambda x: (x.sum(), x.prod(), x.mean()), torch.randn(0))
        self.same(F.conv2d, torch.randn(0, 3, 5, 5), torch.randn(2, 3, 3, 3))
        self.same(F.embedding, torch.zeros(0, dtype=torch.int64), torch.randn(5, 3))

    def test_by_steps_through_memory(self):
        self.same(lambda x: x.as_strided((2, 2), (1, 2), 1) + 1, torch.randn(8))
        self.same(lambda x, y: torch.as_strided_scatter(x, y, (2, 2), (1, 2), 1), torch.randn(8), torch.randn(2, 2))
        with self.assertRaisesRegex(Exception, "as_strided.default.*what does not lie there in order"):
            compiled(lambda x: (x.t() + 1).as_strided((3,), (1,)))[0](torch.randn(3, 4))


class Kinds(Case):
    def test_whole_numbers_and_bools(self):
        def whole(x, y):
            return x + y, x // y, x % y, -x, x * 2, x / y, x.float(), x > y, x & y, x.sum(), x.max()

        for dtype in (torch.int64, torch.int32):
            self.same(whole, torch.tensor([7, -7, 5], dtype=dtype), torch.tensor([2, 2, -3], dtype=dtype))
        self.same(lambda x: (x + 1, x * 2, x.sum(), x // 2, x.float() / 255), torch.tensor([7, 250], dtype=torch.uint8))
        self.same(lambda x, y: (x & y, ~x, x.sum(), x.any(), x ^ y, x == y, torch.where(x, 1.0, 2.0)),
                  torch.tensor([True, False, True]), torch.tensor([True, True, False]))

    def test_plain_numbers(self):
        self.same(lambda x, n, s, b: x * n + s if b else x, torch.randn(3), 4, 2.5, True)
        self.same(lambda x, s: x * s, torch.randn(3), torch.tensor(2.0, dtype=torch.float64))
        self.same(lambda x: (x + 1, torch.ones(3), 5, "a", None), torch.randn(3))
        self.same(lambda x: torch.arange(4), torch.randn(3))
        self.same(lambda x: 3, torch.randn(3))
        call, backend = compiled(lambda x, n: x * n, dynamic=None)
        for n in (2, 3, 4, 5):  # the second value that comes leaves it open
            self.agree(call(torch.ones(3), n), torch.full((3,), float(n)))
        self.assertEqual(backend.compilations, 2)

    def test_wide_floats(self):
        self.same(lambda x: (x @ x.t(), torch.softmax(x, 1), F.layer_norm(x, (4,)), torch.sin(x)),
                  torch.randn(3, 4, dtype=torch.float64))

    def test_modes(self):
        model = torch.nn.Linear(3, 4)
        x = torch.randn(2, 3)
        call, backend = compiled(model)
        for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad, torch.no_grad, torch.inference_mode):
            with mode():
                got, want = call(x), model(x)
            self.agree(got, want)
            self.assertEqual((got.requires_grad, got.is_inference()), (want.requires_grad, want.is_inference()))
        self.assertEqual(backend.compilations, 3)


if __name__ == "__main__":
    unittest.main()
