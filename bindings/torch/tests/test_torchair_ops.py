# SPDX-License-Identifier: Apache-2.0
"""Every converter against PyTorch's own result; what a converter may do wrong, by the contract that it breaks."""
import os
import unittest

import torch
from functorch.compile import aot_function
from torch.nn import functional as F

import rondo_torch  # noqa: F401
from rondo_torch import torchair
from rondo_torch.torchair import decompositions
from torchair_kit import ROOT, library

import forks

aten = torch.ops.aten


def numbers(*shape):
    return torch.randn(*shape)


def positive(*shape):
    return torch.rand(*shape) + 0.5


def unit(*shape):
    return torch.rand(*shape) * 1.6 - 0.8


def integers(*shape, below=7, dtype=torch.int64):
    return torch.randint(-below, below, shape, dtype=dtype)


def bools(*shape):
    return torch.rand(*shape) > 0.5


UNARY = {
    numbers: ("abs atan ceil cos cosh erf exp exp2 floor neg relu round sigmoid sgn sign sin sinh square tan tanh trunc"
              " isnan isinf logical_not"),
    positive: "log log2 log10 reciprocal rsqrt sqrt",
    unit: "acos asin atanh asinh",
}
ACTIVATIONS = ("gelu silu mish hardswish hardsigmoid elu selu celu leaky_relu relu6 hardtanh softplus softsign logsigmoid"
               " hardshrink softshrink tanhshrink")
BINARY = "add sub mul div maximum minimum eq ne lt le gt ge fmod logical_and logical_or logical_xor"


def cases():
    """(name, function, arguments)"""
    for make, names in UNARY.items():
        for name in names.split():
            yield name, getattr(torch, name), (make(3, 5),)
    yield "acosh", torch.acosh, (positive(6) + 1,)
    for name in ACTIVATIONS.split():
        yield name, getattr(F, name), (numbers(4, 6) * 3,)
    for name in BINARY.split():
        yield name, getattr(torch, name), (numbers(3, 5), positive(5))
        if name not in ("maximum", "minimum", "logical_and", "logical_or", "logical_xor"):
            yield f"{name} of a number", lambda x, f=getattr(torch, name): f(x, 0.5), (numbers(4),)
            if name != "fmod":
                yield f"{name} of integers", getattr(torch, name), (integers(3, 4), integers(4).abs() + 1)
    yield "add, alpha", lambda x, y: torch.add(x, y, alpha=3) - torch.sub(y, x, alpha=2), (numbers(4), numbers(4))
    yield "rsub", lambda x: 3 - x, (numbers(4),)
    yield "mixed types", lambda x, i, b: x * i + b, (numbers(4), integers(4), bools(4))
    yield "integers and floats", lambda i: i * 0.5 + i / 2, (integers(5),)
    yield "div floor", lambda x, y: torch.div(x, y, rounding_mode="floor"), (numbers(9), positive(9))
    yield "div trunc", lambda x, y: torch.div(x, y, rounding_mode="trunc"), (numbers(9), positive(9))
    yield ("div trunc of integers", lambda x, y: torch.div(x, y, rounding_mode="trunc"),
           (integers(9), integers(9).abs() + 1))
    yield "remainder", torch.remainder, (integers(9), integers(9).abs() + 1)
    # 1 // 0.1 is 9, and the quotient rounds to 10; zeros, infinities, signs.
    x = torch.tensor([7, -7, 1, -1, 5, 0, -0.0, 3, float("inf"), 1, 0.3, 6, -6])
    y = torch.tensor([2, 2, 0.1, 0.1, -3, 4, 4, 0, 2, float("inf"), -0.1, 0.2, 0.2])
    yield "floors and what they leave", lambda x, y: (x // y, x % y, torch.fmod(x, y), x // 0.1, x % -0.3), (x, y)
    i, j = torch.tensor([7, -7, 1, -1, 5, 0, 9]), torch.tensor([2, 2, 3, 3, -3, 4, -9])
    yield "floors of integers", lambda x, y: (x // y, x % y, torch.fmod(x, y), x // 3, x // -2), (i, j)
    for power in (2, 3, 0.5, -0.5, -1, 1.7):
        yield f"pow {power}", lambda x, p=power: x ** p, (positive(5),)
    yield "pow of tensors", torch.pow, (positive(5), numbers(5))
    yield "pow of a number", lambda x: 2.5 ** x, (numbers(5),)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield name, getattr(torch, name), (integers(5), integers(5))
        yield f"{name} of bools", getattr(torch, name), (bools(9), bools(9))
    yield "bitwise_not", torch.bitwise_not, (integers(5),)
    yield "bitwise_not of bools", torch.bitwise_not, (bools(5),)
    yield "where", torch.where, (bools(3, 4), numbers(4), numbers(3, 1))
    yield "where of a number", lambda c, x: torch.where(c, x, -1.0), (bools(3, 4), numbers(4))
    yield "masked_fill", lambda x, m: x.masked_fill(m, float("-inf")), (numbers(3, 4), bools(4))
    yield "clamp", lambda x: x.clamp(-0.5, 0.7) + x.clamp(min=0.1) + x.clamp(max=0.2), (numbers(9),)
    yield "clamp of tensors", torch.clamp, (numbers(9), numbers(9) - 1, numbers(9) + 1)
    yield "threshold", lambda x: F.threshold(x, 0.3, -2), (numbers(9),)
    yield "prelu", F.prelu, (numbers(2, 3, 4), positive(3))
    yield "gelu by tanh", lambda x: F.gelu(x, approximate="tanh"), (numbers(9),)
    yield "softplus, beta", lambda x: F.softplus(x, beta=2), (numbers(9) * 5,)
    yield "addcmul", lambda x, y, z: torch.addcmul(x, y, z, value=0.5), (numbers(4), numbers(4), numbers(3, 4))
    yield "addcdiv", lambda x, y, z: torch.addcdiv(x, y, z, value=2), (numbers(4), numbers(4), positive(3, 4))
    yield "lerp", torch.lerp, (numbers(4), numbers(4), positive(4))
    yield "casts", lambda x: (x.int(), x.long().float() * 2, x.bool(), x.double()), (numbers(3, 4) * 4,)
    yield "glu", F.glu, (numbers(3, 8),)
    yield from of_shapes()
    yield from of_reductions()
    yield from of_indices()
    yield from of_layers()


def of_shapes():
    yield "view", lambda x: x.view(4, 6) + x.reshape(-1, 6), (numbers(2, 2, 6),)
    yield "permute", lambda x: (x.permute(2, 0, 1), x.transpose(0, 1) + 1, x.mT), (numbers(2, 3, 4),)
    yield "t", lambda x: x.t() @ x, (numbers(3, 4),)
    yield "squeeze", lambda x: (x.squeeze() + 1, x.squeeze(1) + 1, x.unsqueeze(0) + 1), (numbers(3, 1, 4),)
    yield "expand", lambda x: x.expand(2, 3, 4) + 1, (numbers(3, 1),)
    yield "repeat", lambda x: x.repeat(2, 3, 1), (numbers(2, 4),)
    yield "slices", lambda x: (x[1:3, ::2] + 1, x[:, -2:] + 1, x[2] + 1, x[..., 1] + 1), (numbers(4, 5),)
    yield ("split", lambda x: [one + 1 for one in (*x.split(2), *x.split([1, 4], 1), *x.chunk(3), *x.unbind(1))],
           (numbers(5, 5),))
    yield ("cat", lambda x, y: (torch.cat([x, y], 1), torch.stack([x, y], 1), torch.cat([x, y.long()])),
           (numbers(3, 4), numbers(3, 4)))
    yield "flip", lambda x: x.flip(0, 2), (numbers(2, 3, 4),)
    yield "roll", lambda x: torch.roll(x, (1, -2), (0, 1)), (numbers(3, 5),)
    yield "pad", lambda x: F.pad(x, (1, 2, 0, 3), value=0.5), (numbers(3, 4),)
    yield "negative pad", lambda x: F.pad(x, (-1, 2)), (numbers(3, 4),)
    yield "reflect", lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"), (numbers(1, 2, 4, 5),)
    yield "replicate", lambda x: F.pad(x, (1, 2), mode="replicate"), (numbers(1, 2, 4),)
    yield "pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), (numbers(2, 8, 3, 3),)
    yield "triangles", lambda x: (x.tril(), x.triu(1), x.tril(-1)), (numbers(4, 5),)
    yield ("made of numbers",
           lambda x: x + torch.arange(4) + torch.full((4,), 2.0) + torch.eye(4) + torch.linspace(0, 1, 4),
           (numbers(4, 4),))
    yield ("made like",
           lambda x: (torch.zeros_like(x) + 1, torch.ones_like(x) * x, torch.full_like(x, 3), x.new_zeros(2) + 1),
           (numbers(3, 4),))
    yield "no elements", lambda x: torch.cat([x[:0], x]) + 1, (numbers(3, 4),)
    yield "a number", lambda x: (x.sum() * 2, x.sum().unsqueeze(0) + 1), (numbers(3, 4),)


def of_reductions():
    for name in ("sum", "mean", "amax", "amin", "logsumexp", "prod"):
        function = getattr(torch, name)
        yield name, lambda x, f=function: (f(x, 1), f(x, -1, keepdim=True)), (numbers(3, 4, 5),)
    yield "sum of axes", lambda x: (x.sum((0, 2)), x.sum(), x.mean((1, 2), keepdim=True), x.mean()), (numbers(3, 4, 5),)
    yield "sum of integers", lambda x: (x.sum(), x.sum(1), x.bool().sum(0)), (integers(3, 4),)
    yield "extrema", lambda x: (*x.max(1), *x.min(0, keepdim=True), x.max(), x.min()), (numbers(3, 4),)
    yield "positions", lambda x: (x.argmax(1), x.argmin(0, keepdim=True), x.argmax(), x.argmin()), (numbers(3, 4),)
    yield "any, all", lambda x: (x.any(), x.all(), x.any(1), x.all(0, keepdim=True)), (bools(3, 4),)
    yield ("var", lambda x: (x.var(1), x.std(0, correction=0), *torch.var_mean(x, (0, 2), keepdim=True)),
           (numbers(3, 4, 5),))
    yield ("norms", lambda x: (x.norm(), x.norm(1, dim=1), torch.linalg.vector_norm(x, float("inf"), 0)),
           (numbers(3, 4),))
    yield "softmax", lambda x: (F.softmax(x, 1), F.log_softmax(x, 0), F.softmax(x, -1)), (numbers(3, 4, 5),)
    yield "running", lambda x: (x.cumsum(1), x.cumsum(-1), x.cumprod(0)), (numbers(3, 4),)
    yield "normalize", lambda x: F.normalize(x, dim=1) + F.cosine_similarity(x, x + 1).unsqueeze(1), (numbers(3, 4),)


def of_indices():
    yield "embedding", F.embedding, (torch.randint(0, 9, (2, 3)), numbers(9, 4))
    yield "index_select", lambda x, i: torch.index_select(x, 1, i), (numbers(3, 4), torch.tensor([2, 0, 2]))
    yield "gather", lambda x, i: x.gather(1, i), (numbers(3, 4), torch.randint(0, 4, (2, 5)))
    yield ("index", lambda x, i, j: (x[i], x[:, j], x[i, j]),
           (numbers(5, 5, 2), torch.tensor([1, -1]), torch.tensor([[0], [3]])))
    yield "index_put", lambda x, i, v: x.index_put((i,), v), (numbers(5, 3), torch.tensor([1, 4]), numbers(2, 3))
    yield ("index_put, sum", lambda x, i, v: x.index_put((i,), v, accumulate=True),
           (numbers(5, 3), torch.tensor([1, 1]), numbers(2, 3)))
    yield ("scatter", lambda x, i, v: (x.scatter(1, i, v), x.scatter(1, i, 2.0)),
           (numbers(3, 5), torch.tensor([[0, 2], [1, 4]]), numbers(3, 4)))
    yield ("scatter_add", lambda x, i, v: x.scatter_add(0, i, v),
           (numbers(3, 5), torch.randint(0, 3, (4, 5)), numbers(4, 5)))
    yield ("parts replaced", lambda x, y: (torch.slice_scatter(x, y, 0, 1, 5, 2), torch.select_scatter(x, x[0], 0, -1),
                                           torch.slice_scatter(x, x, 0), torch.slice_scatter(x, y, 0, -2)),
           (numbers(6, 3), numbers(2, 3)))
    yield ("by steps through memory", lambda x, y: (x.as_strided((2, 3), (1, 2), 1) + 1,
                                                    torch.as_strided_scatter(x, y, (2, 2), (1, 2), 1)),
           (numbers(8), numbers(2, 2)))
    yield "copy", lambda x, y: torch.ops.aten.copy(x, y), (numbers(3, 4), integers(4))
    yield "topk", lambda x: (*x.topk(3, 1), *x.topk(2, 0, largest=False)), (numbers(4, 5),)
    yield "sort", lambda x: (*x.sort(1), *x.sort(0, descending=True), x.argsort(1)), (numbers(4, 5),)


def of_layers():
    yield ("products", lambda x, y: (x @ y, torch.mm(x, y), x @ y[:, 0], x[0] @ y, x[0] @ y[:, 1]),
           (numbers(3, 4), numbers(4, 5)))
    yield "batched product", lambda x, y: x @ y, (numbers(2, 3, 4), numbers(2, 4, 5))
    yield "transposed products", lambda x, y: x.t() @ y.t(), (numbers(4, 3), numbers(5, 4))
    yield "linear", F.linear, (numbers(2, 3, 4), numbers(5, 4), numbers(5))
    yield "linear without bias", F.linear, (numbers(3, 4), numbers(5, 4))
    yield "addmm", lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), (numbers(5), numbers(3, 4), numbers(4, 5))
    yield ("baddbmm", lambda c, a, b: torch.baddbmm(c, a, b, beta=0.5, alpha=2),
           (numbers(2, 3, 5), numbers(2, 3, 4), numbers(2, 4, 5)))
    yield "einsum", lambda a, b: torch.einsum("bij,bkj->bik", a, b), (numbers(2, 3, 4), numbers(2, 5, 4))
    yield ("conv1d", lambda x, w, c: F.conv1d(x, w, c, stride=2, padding=1),
           (numbers(2, 3, 9), numbers(4, 3, 3), numbers(4)))
    yield ("conv2d", lambda x, w, c: F.conv2d(x, w, c, padding=(1, 0)),
           (numbers(2, 3, 7, 8), numbers(4, 3, 3, 3), numbers(4)))
    yield ("conv2d, dilated", lambda x, w: F.conv2d(x, w, stride=2, dilation=2),
           (numbers(1, 3, 9, 9), numbers(4, 3, 3, 3)))
    yield "conv2d, groups", lambda x, w: F.conv2d(x, w, groups=3), (numbers(2, 3, 6, 6), numbers(6, 1, 3, 3))
    yield "conv3d", lambda x, w: F.conv3d(x, w, padding=1), (numbers(1, 2, 4, 5, 5), numbers(3, 2, 3, 3, 3))
    yield "max_pool2d", lambda x: F.max_pool2d(x, 3, 2, 1), (numbers(2, 3, 7, 7),)
    yield "max_pool2d, ceil", lambda x: F.max_pool2d(x, 2, ceil_mode=True), (numbers(3, 7, 7),)
    yield "max_pool2d, positions", lambda x: F.max_pool2d(x, 2, return_indices=True), (numbers(2, 3, 6, 6),)
    yield "max_pool1d", lambda x: F.max_pool1d(x, 2), (numbers(2, 3, 8),)
    yield ("avg_pool", lambda x: (F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, count_include_pad=False)),
           (numbers(2, 3, 8, 8),))
    yield "avg_pool1d", lambda x: F.avg_pool1d(x, 2), (numbers(2, 3, 8),)
    yield ("adaptive_avg_pool2d", lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (2, 4))),
           (numbers(2, 3, 8, 8),))
    yield ("batch_norm", lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b),
           (numbers(2, 3, 4, 4), numbers(3), positive(3), positive(3), numbers(3)))
    yield "batch_norm without weights", F.batch_norm, (numbers(4, 3), numbers(3), positive(3))
    yield ("batch_norm in training", lambda x, w: F.batch_norm(x, None, None, w, training=True),
           (numbers(4, 3, 5), positive(3)))
    yield ("layer_norm", lambda x, w, b: F.layer_norm(x, (4, 5), w, b),
           (numbers(2, 3, 4, 5), numbers(4, 5), numbers(4, 5)))
    yield "layer_norm without weights", lambda x: F.layer_norm(x, (5,)), (numbers(3, 5),)
    yield "group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), (numbers(2, 4, 3, 3), numbers(4), numbers(4))
    yield "instance_norm", F.instance_norm, (numbers(2, 3, 4, 4),)
    yield "rms_norm", lambda x, w: F.rms_norm(x, (5,), w), (numbers(3, 5), numbers(5))
    yield "attention", F.scaled_dot_product_attention, (numbers(2, 2, 5, 4), numbers(2, 2, 7, 4), numbers(2, 2, 7, 4))
    yield ("causal attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
           (numbers(1, 2, 6, 4), numbers(1, 2, 6, 4), numbers(1, 2, 6, 4)))
    yield "cross_entropy", F.cross_entropy, (numbers(4, 5), torch.randint(0, 5, (4,)))
    yield "mse", F.mse_loss, (numbers(4, 5), numbers(4, 5))


def flat(values):
    return torch.utils._pytree.tree_leaves(values)


class Converters(unittest.TestCase):
    def test_each_equals_eager(self):
        torch.manual_seed(11)
        config = torchair.CompilerConfig()
        config.fallback = "error"
        compiler = torchair.get_compiler(config)
        from rondo_torch.torchair import converters  # noqa: F401
        table = decompositions.table({})
        seen = set()

        def keep(graph, inputs):
            seen.update(node.target for node in graph.graph.nodes if node.op == "call_function")
            return compiler(graph, inputs)

        for name, function, arguments in cases():
            with self.subTest(case=name), torch.no_grad():
                def call(*given, function=function):
                    return flat(function(*given))

                want = call(*arguments)
                got = aot_function(call, fw_compiler=keep, decompositions=table)(*arguments)
                self.assertEqual(len(got), len(want))
                for mine, theirs in zip(got, want):
                    self.assertEqual((mine.shape, mine.dtype), (theirs.shape, theirs.dtype))
                    if "attention" not in name:  # its own layout is that of one of PyTorch's ways to compute it
                        self.assertEqual(mine.stride(), theirs.stride())
                    torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5, equal_nan=True)
        self.assertGreater(len(seen), 100)


class CustomOperators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torchair.load_operators(library("examples/operators/add_custom.c"))
        cls.domain = torch.library.Library("rondo_custom", "FRAGMENT")
        cls.domain.define("add(Tensor x, Tensor y) -> Tensor")
        cls.domain.impl("add", lambda x, y: torch.empty_like(x), "Meta")  # it accepts more than the implementation

    def convert_with(self, **options):
        def convert(x, y, meta_outputs=None):
            given = {key: value(x, y) if callable(value) else value for key, value in options.items()}
            return torchair.ge.custom_op(given.pop("type", "AddCustom"), **given)

        torchair.register_fx_node_ge_converter(torch.ops.rondo_custom.add.default)(convert)
        torch._dynamo.reset()
        return torch.compile(lambda x, y: torch.ops.rondo_custom.add(x, y) * 2, backend=torchair.get_npu_backend(),
                             fullgraph=True, dynamic=False)

    def test_right(self):
        function = self.convert_with(inputs=lambda x, y: {"x": x, "y": y}, outputs=["z"])
        x, y = torch.randn(8, 2048), torch.randn(8, 2048)
        torch.testing.assert_close(function(x, y), (x + y) * 2, rtol=1e-4, atol=1e-4)

    def test_each_contract(self):
        both, x = (lambda x, y: {"x": x, "y": y}), torch.randn(3, 4)
        wrong = {
            "prototype: there is no operator 'SubCustom'": {"type": "SubCustom", "inputs": both, "outputs": ["z"]},
            "converter: 'my.domain::AddCustom' has the inputs x, y, and none called a":
                {"inputs": lambda x, y: {"a": x, "y": y}, "outputs": ["z"]},
            "converter: .* in this order; the converter gives y, x":
                {"inputs": lambda x, y: {"y": y, "x": x}, "outputs": ["z"]},
            "converter: .* gives no y": {"inputs": lambda x, y: {"x": x}, "outputs": ["z"]},
            "converter: .*has the outputs z, in this order; the converter names out": {"inputs": both, "outputs": ["out"]},
            "converter: .*has the attributes \\(none\\), and none called axis":
                {"inputs": both, "outputs": ["z"], "attrs": {"axis": torchair.ge.attr.Int(1)}},
            "converter: input 'y' of 'my.domain::AddCustom' is a int":
                {"inputs": lambda x, y: {"x": x, "y": 3}, "outputs": ["z"]},
        }
        for text, options in wrong.items():
            with self.subTest(text=text), self.assertRaisesRegex(Exception, text):
                self.convert_with(**options)(x, x)

    def test_meta_that_accepts_too_much(self):
        function = self.convert_with(inputs=lambda x, y: {"x": x, "y": y}, outputs=["z"])
        with self.assertRaisesRegex(Exception, "rondo_custom.add.*x and y differ along axis 1"):
            function(torch.randn(8, 2048), torch.randn(8, 1))

    def test_a_converter_computes_nothing(self):
        torchair.register_fx_node_ge_converter(torch.ops.rondo_custom.add.default)(lambda x, y, meta_outputs: x + y)
        torch._dynamo.reset()
        function = torch.compile(lambda x, y: torch.ops.rondo_custom.add(x, y), backend=torchair.rondo, fullgraph=True)
        with self.assertRaisesRegex(Exception, "converter: a converter describes nodes"):
            function(torch.randn(3), torch.randn(3))
        with self.assertRaisesRegex(RuntimeError, "outside of a converter"):
            torchair.ge.custom_op("AddCustom")
        with self.assertRaisesRegex(TypeError, "has overloads"):
            torchair.register_fx_node_ge_converter(torch.ops.aten.relu)

    def test_the_sample(self):
        done = forks.python([os.path.join(ROOT, "examples", "custom_op_torch", "custom_op_torch.py"),
                             library("examples/operators/add_custom.c")])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("refused by the meta: True", done.stdout)


if __name__ == "__main__":
    unittest.main()
