# SPDX-License-Identifier: Apache-2.0
"""Eager operators against the CPU: kinds of tensors, copies, views, training, precision; what is refused by name."""

import copy
import unittest
import warnings

import torch
import torch.nn.functional as F

import rondo_torch  # noqa: F401

DEVICE = "rondo"


def put(thing, device):
    return torch.utils._pytree.tree_map(lambda t: t.to(device) if isinstance(t, torch.Tensor) else t, thing)


class Case(unittest.TestCase):
    def same(self, got, want, **options):
        got = put(got, "cpu")
        options = {"rtol": 1e-4, "atol": 1e-5, "equal_nan": True, **options}
        torch.testing.assert_close(got, want, **options)

    def both(self, function, *inputs, **options):
        """The function of the inputs on both devices gives the same, and leaves the inputs the same."""
        cpu, device = copy.deepcopy(inputs), put(inputs, DEVICE)
        self.same(function(*device), function(*cpu), **options)
        self.same(device, cpu)


class Tensors(Case):
    def test_dtypes(self):
        x = torch.tensor([0.0, 1.0, 2.5, -3.0, 100.0])
        for to in (
            torch.float64,
            torch.float16,
            torch.bfloat16,
            torch.int8,
            torch.int16,
            torch.int32,
            torch.int64,
            torch.bool,
            torch.complex64,
            torch.complex128,
            torch.float8_e4m3fn,
        ):
            self.assertTrue(
                x.to(DEVICE).to(to).cpu().equal(x.to(to))
                if to != torch.float8_e4m3fn
                else x.to(DEVICE).to(to).float().cpu().equal(x.to(to).float())
            )
            self.assertTrue(
                x.to(DEVICE, to)
                .to("cpu", torch.float32 if to.is_complex is False else to)
                .equal(x.to(to).to(torch.float32 if to.is_complex is False else to))
            )
        unsigned = torch.tensor([0, 1, 2, 3], dtype=torch.uint16)
        self.assertTrue(unsigned.to(DEVICE).to(torch.int32).cpu().equal(unsigned.to(torch.int32)))

    def test_promotion(self):
        kinds = (
            torch.arange(3),
            torch.arange(3.0),
            torch.ones(3, dtype=torch.float64),
            torch.ones(3, dtype=torch.float16),
            torch.tensor([True, False, True]),
            torch.tensor(2),
            torch.tensor(2.0, dtype=torch.float64),
        )
        for a in kinds:
            for b in kinds:
                for function in (torch.add, torch.mul, torch.div, torch.maximum, torch.eq, torch.pow):
                    try:
                        want = function(a, b)
                    except RuntimeError:
                        with self.assertRaises(RuntimeError):
                            function(a.to(DEVICE), b.to(DEVICE))
                            torch.rondo.synchronize()
                        continue
                    self.same(function(a.to(DEVICE), b.to(DEVICE)), want)
                    if b.dim() == 0:
                        self.same(function(a.to(DEVICE), b), want)  # a number of the CPU's
        self.both(lambda t: (t + 0.1 == 1.1, t * 1.5, 3 - t, t // 2, -t), torch.tensor(1.0))
        self.both(lambda t: (t + 0.5, t * True, t / 2), torch.arange(3))

    def test_empty_and_zero_size(self):
        for function in (
            lambda t: t + 1,
            lambda t: t.sum(),
            lambda t: t.sum(0),
            lambda t: t.t() @ t,
            lambda t: torch.cat([t, t]),
            lambda t: t.sort(0),
            lambda t: t.nonzero(),
            lambda t: t.softmax(-1),
            lambda t: t.clone().fill_(2),
            lambda t: t.prod(),
            lambda t: t.reshape(3, 0),
            lambda t: t[:, :0],
            lambda t: t.mean(0),
        ):
            self.both(function, torch.ones(0, 3), equal_nan=True)
        with self.assertRaises((IndexError, RuntimeError)):
            torch.ones(0, device=DEVICE).max()
            torch.rondo.synchronize()
        self.assertEqual(torch.empty(0, device=DEVICE).tolist(), [])

    def test_layouts(self):
        base = torch.arange(48.0).reshape(2, 3, 2, 4)
        for change in (
            lambda t: t.to(memory_format=torch.channels_last),
            lambda t: t.permute(3, 1, 0, 2),
            lambda t: t[:, 1:, :, ::2],
            lambda t: t[..., :1].expand(2, 3, 2, 4),
            lambda t: t.select(1, 1),
            lambda t: t.flatten()[5:].unfold(0, 6, 2),
            lambda t: t.diagonal(dim1=0, dim2=2),
            lambda t: torch.as_strided(t, (2, 2), (3, 5), 7),
        ):
            for function in (
                lambda t: t + 1,
                lambda t: t * t,
                lambda t: t.sum(-1),
                lambda t: t.clone(),
                lambda t: t.contiguous(),
                lambda t: t.softmax(0),
                lambda t: t.double(),
                lambda t: t.relu().cumsum(0),
                torch.zeros_like,
            ):
                with self.subTest(change=change):
                    self.both(lambda t: function(change(t)), base)  # noqa: B023
            view = change(base.to(DEVICE))
            self.assertEqual(
                (view.stride(), view.storage_offset()), (change(base).stride(), change(base).storage_offset())
            )
        x = torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last)
        self.assertTrue((x.to(DEVICE) + 1).is_contiguous(memory_format=torch.channels_last))
        self.assertTrue(x.to(DEVICE).cpu().is_contiguous(memory_format=torch.channels_last))

    def test_memory_that_overlaps(self):
        """An operator sees which tensors share memory."""
        for function in (
            lambda t: t[1:].copy_(t[:-1]),
            lambda t: t[1:].add_(t[:-1]),
            lambda t: torch.add(t[:-1], 1, out=t[1:]),
            lambda t: t[:1].expand(4).add_(1),
            lambda t: torch.cat([t, t], out=t[:0].resize_(0).set_(t)),
        ):
            with self.assertRaisesRegex(RuntimeError, "memory|overlap"):
                function(torch.arange(8.0))
            with self.assertRaisesRegex(RuntimeError, "memory|overlap"):
                function(torch.arange(8.0, device=DEVICE))
                torch.rondo.synchronize()
        self.both(
            lambda t: (t.t().copy_(t.clone()), t.add_(t), torch.mul(t, t, out=t), t[:2].copy_(t[2:])),
            torch.arange(16.0).view(4, 4),
        )

    def test_storages(self):
        x = torch.arange(4.0, device=DEVICE)
        x.resize_(6)
        self.assertEqual(x[:4].tolist(), [0.0, 1, 2, 3])
        x.resize_(2, 2)
        self.assertEqual(x.tolist(), [[0.0, 1], [2, 3]])
        y = torch.empty(0, device=DEVICE).set_(x.untyped_storage(), 1, (2,), (2,))
        self.assertEqual(y.tolist(), [1.0, 3.0])
        y.fill_(9)
        self.assertEqual(x.tolist(), [[0.0, 9], [2, 9]])
        self.assertEqual(torch.empty(0, device=DEVICE).set_(x).data_ptr(), x.data_ptr())
        self.assertEqual(x.set_().numel(), 0)
        with self.assertRaises(RuntimeError):
            torch.empty(0, device=DEVICE).set_(torch.ones(1).untyped_storage(), 0, (1,))
        with self.assertRaisesRegex(RuntimeError, "bounds|storage"):
            torch.ones(2, device=DEVICE).as_strided((5,), (1,))
        with self.assertRaisesRegex(RuntimeError, "negative"):
            torch.ones(2, device=DEVICE).resize_(-1)
        grown = torch.ones(2, device=DEVICE)
        grown.untyped_storage().resize_(64)
        self.assertEqual(grown.tolist(), [1.0, 1.0])
        self.assertEqual(torch.ones(4, device=DEVICE).view(torch.int32)[0].item(), 0x3F800000)
        self.assertEqual(copy.deepcopy(grown).untyped_storage().nbytes(), 64)

    def test_complex_conjugate_and_negative(self):
        z = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, -2]])
        for function in (
            lambda z: z.conj(),
            lambda z: z.conj() * z,
            lambda z: z.conj().t() @ z,
            lambda z: z.conj().imag,
            lambda z: z.conj().imag.sum(),
            lambda z: torch.view_as_real(z.conj().resolve_conj()),
            lambda z: z.real.add(z.imag),
            lambda z: z.conj().clone(),
            lambda z: z.mH,
            lambda z: z.angle(),
            lambda z: z.conj().to(torch.complex128),
            lambda z: z.clone().copy_(z.conj()),
            lambda z: z.conj()[0, 0].item(),
            lambda z: z.clone().conj().fill_(1 + 1j),
            lambda z: torch._neg_view(z) + 1,
            lambda z: torch._neg_view(z.real).clone(),
            lambda z: z.conj().sum(),
            lambda z: torch.view_as_complex(torch.view_as_real(z)),
            lambda z: torch._foreach_mul([z.conj()], 2.0),
            lambda z: z.conj().tolist(),
        ):
            self.both(function, z)
        self.same(z.conj().to(DEVICE), z.conj().resolve_conj())
        self.same(z.to(DEVICE).conj().cpu(), z.conj())
        self.same(z.conj().imag.to(DEVICE), z.conj().imag.clone())

    def test_outputs_that_are_given(self):
        x, y = torch.arange(6.0).view(2, 3), torch.ones(2, 3)
        for function in (torch.add, torch.maximum, torch.eq):
            for out in (torch.empty(0), torch.empty(2, 3), torch.empty(3, 2).t(), torch.empty(2, 6)[:, ::2]):
                out = out.to(torch.bool) if function is torch.eq and out.is_contiguous() else out
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.both(lambda a, b, o: function(a, b, out=o), x, y, out)  # noqa: B023
        with self.assertWarnsRegex(UserWarning, "resized"):
            torch.add(x.to(DEVICE), 1, out=torch.ones(7, device=DEVICE))
        self.both(
            lambda t: torch.sort(t, out=(torch.empty(0).to(t.device), torch.empty(0, dtype=torch.long).to(t.device))), x
        )
        self.both(lambda t: torch.nonzero(t, out=torch.empty(0, dtype=torch.long).to(t.device)), x)
        self.both(lambda t: torch.masked_select(t, t > 1, out=torch.empty(0).to(t.device)), x)
        self.both(lambda t: torch.cumsum(t, 0, out=torch.empty(0).to(t.device)), x)
        self.both(lambda t: torch.linalg.inv(t @ t.t() + torch.eye(2).to(t.device), out=torch.empty(0).to(t.device)), x)
        for bad in (torch.empty(2, 3, dtype=torch.long), torch.empty(2, 3)):
            with self.assertRaises(RuntimeError):
                torch.add(x.to(DEVICE), 1, out=bad.to(DEVICE) if bad.dtype == torch.long else bad)

    def test_bad_arguments_at_the_call(self):
        """Where work runs later, too: the mistake is the caller's, so the call says it."""
        x = torch.ones(2, 3, device=DEVICE)
        for call in (
            lambda: x @ x,
            lambda: x + torch.ones(4, device=DEVICE),
            lambda: x.add_(torch.ones(2, 2, 3, device=DEVICE)),
            lambda: x.view(7),
            lambda: torch.cat([x, torch.ones(2, device=DEVICE)]),
            lambda: x.sum(5),
            lambda: x[5],
            lambda: F.linear(x, torch.ones(2, 2, device=DEVICE)),
            lambda: torch.mm(x, torch.ones(3, 2)),
            lambda: F.conv2d(x.view(1, 1, 2, 3), torch.ones(1, 2, 1, 1, device=DEVICE)),
            lambda: x.gather(0, x),
            lambda: torch.linalg.inv(x),
            lambda: x.index_select(0, x),
        ):
            with self.assertRaises((RuntimeError, IndexError)):
                call()
        torch.rondo.synchronize()
        for call in (lambda: x.index_select(0, torch.tensor([7], device=DEVICE)), lambda: x.bitwise_and(1)):
            with self.assertRaisesRegex((IndexError, RuntimeError), "out of range|out of bounds|not implemented"):
                call()  # what only the kernel knows is said when the call runs
                torch.rondo.synchronize()
        self.assertEqual((x + 1).sum().item(), 12)

    def test_what_the_device_has_not(self):
        x = torch.ones(2, 2, device=DEVICE)
        for name, call in (
            ("sparse", lambda: x.to_sparse()),
            ("sparse", lambda: torch.eye(2).to_sparse().to(DEVICE)),
            (
                "_sparse_coo|SparsePrivateUse1|sparse",
                lambda: torch.sparse_coo_tensor([[0]], [1.0], (2,), device=DEVICE),
            ),
            ("quantize", lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)),
            ("Quantized|quantize", lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8).to(DEVICE)),
            ("Sparse", lambda: torch.empty(2, layout=torch.sparse_coo, device=DEVICE)),
        ):
            with self.subTest(name), self.assertRaisesRegex((NotImplementedError, RuntimeError), name):
                call()
        self.assertEqual(x.sum().item(), 4)


class Operators(Case):
    def test_indexing(self):
        x, k = torch.arange(24.0).reshape(4, 6), torch.tensor([2, 0, 2])
        for function in (
            lambda x, k: x[k],
            lambda x, k: x[:, k],
            lambda x, k: x[k, k],
            lambda x, k: x[k[:, None], k],
            lambda x, k: x[x > 5],
            lambda x, k: x[None, ..., 1],
            lambda x, k: x.index_put_((k,), x[k] * 2),
            lambda x, k: x.index_put_((k,), x[k], accumulate=True),
            lambda x, k: x.scatter_(1, k.expand(4, 3), -1.0),
            lambda x, k: x.scatter_add_(1, k.expand(4, 3), x[:, :3]),
            lambda x, k: x.scatter_reduce_(1, k.expand(4, 3), x[:, :3].clone(), "prod"),
            lambda x, k: x.gather(1, k.expand(4, 3)),
            lambda x, k: x.index_add_(0, k, x[:3].clone()),
            lambda x, k: x.topk(3),
            lambda x, k: x.kthvalue(2),
            lambda x, k: x.masked_fill_(x > 3, 0),
            lambda x, k: x.masked_scatter_(x > 20, x.clone()),
            lambda x, k: x.__setitem__(x > 4, 1),
            lambda x, k: x.__setitem__((slice(None), k), 7.0),
            lambda x, k: x.take(k),
            lambda x, k: x.put_(k, x[0, :3].clone()),
            lambda x, k: x.unique(),
            lambda x, k: torch.unique(k, return_inverse=True, return_counts=True),
            lambda x, k: k.bincount(),
            lambda x, k: x.nonzero(as_tuple=True),
            lambda x, k: torch.searchsorted(x.flatten(), k.float()),
            lambda x, k: torch.where(x > 3),
            lambda x, k: x.mode(),
            lambda x, k: torch.bucketize(k, k.sort().values),
            lambda x, k: torch.index_reduce(x, 0, k, x[:3].clone(), "amax"),
            lambda x, k: x.argsort(descending=True),
            lambda x, k: torch.histc(x),
        ):
            self.both(function, x, k)
        self.same(x.to(DEVICE)[k], x[k])  # indices of the CPU
        self.same(x.to(DEVICE)[torch.tensor([True, False, True, False])], x[::2])

    def test_many_tensors(self):
        """More than a call has words for."""
        many = [torch.full((3,), float(n)) for n in range(150)]
        self.both(lambda *t: torch.cat(t), *many)
        self.both(lambda *t: torch.stack(t).sum(0), *many)
        self.both(lambda *t: torch._foreach_add_(list(t), 1.5) and None, *many)
        self.both(lambda *t: torch._foreach_mul(list(t), list(t)), *many)
        self.both(lambda *t: torch._foreach_copy_(list(t[:75]), list(t[75:])) and None, *many)
        stream, graph = torch.Stream(device=DEVICE), torch.accelerator.Graph()
        device = put(many, DEVICE)
        torch.accelerator.synchronize()
        with stream, graph:
            joined = torch.cat(device)
            torch._foreach_mul_(device, 2.0)
            torch._foreach_copy_(device[:75], device[75:])
        for start in (1.0, 4.0):
            for n, tensor in enumerate(device):
                tensor.fill_(start + n)
            graph.replay()
            torch.accelerator.synchronize()
            want = [torch.full((3,), start + n) for n in range(150)]
            self.same(joined, torch.cat(want))
            self.same(torch.stack(device), torch.stack([2 * t for t in want[75:] + want[75:]]))

    def test_list_copies_of_every_kind(self):
        kinds = [
            (torch.ones(3), torch.zeros(3)),
            (torch.ones(2, 3).t(), torch.zeros(3, 2)),
            (torch.ones(3), torch.zeros(3, dtype=torch.int32)),
            (torch.ones(0), torch.zeros(0)),
            (torch.ones(4)[::2], torch.zeros(2)),
            (torch.ones(2, 2), torch.zeros(2)),
        ]
        self.both(lambda pairs: torch._foreach_copy_([a for a, _ in pairs], [b for _, b in pairs]) and None, kinds)
        to = [torch.ones(3, device=DEVICE), torch.ones(3)]
        torch._foreach_copy_(to, [torch.arange(3.0), torch.arange(3.0, device=DEVICE)])
        self.assertEqual([t.tolist() for t in to], [[0.0, 1, 2]] * 2)
        x = torch.arange(4.0, device=DEVICE)
        torch._foreach_copy_([x[:2]], [x[2:]])
        self.assertEqual(x.tolist(), [2.0, 3, 2, 3])
        with self.assertRaisesRegex(RuntimeError, "same number"):
            torch._foreach_copy_([x], [x, x])

    def test_layers_forward_and_backward(self):
        nn = torch.nn
        image = torch.randn(2, 4, 8, 8)
        cases = [
            (nn.Conv2d(4, 6, 3, padding=1, stride=2), image),
            (nn.Conv2d(4, 8, 3, groups=4, dilation=2, bias=False), image),
            (nn.Conv1d(8, 3, 3), image[0]),
            (nn.Conv3d(2, 3, 3), image.reshape(1, 2, 4, 8, 8)),
            (nn.ConvTranspose2d(4, 3, 3, stride=2, output_padding=1), image),
            (nn.ConvTranspose1d(8, 3, 2), image[0]),
            (nn.MaxPool2d(2), image),
            (nn.AvgPool2d(3, 2, 1), image),
            (nn.AdaptiveMaxPool2d(3), image),
            (nn.AdaptiveAvgPool2d((2, 3)), image),
            (nn.MaxPool1d(2), image[0]),
            (nn.BatchNorm2d(4), image),
            (nn.GroupNorm(2, 4), image),
            (nn.InstanceNorm2d(4, affine=True), image),
            (nn.LayerNorm([8, 8]), image),
            (nn.RMSNorm(8), image),
            (nn.Linear(8, 5), image),
            (nn.Bilinear(8, 8, 3), (image[0], image[1])),
            (nn.PReLU(4), image),
            (nn.Upsample(scale_factor=2, mode="bilinear"), image),
            (nn.Upsample(size=5, mode="nearest"), image),
            (nn.Upsample(scale_factor=1.5, mode="bicubic"), image),
            (nn.PixelShuffle(2), image),
            (nn.Fold((8, 8), 2, stride=2), torch.randn(1, 8, 16)),
            (nn.LSTM(8, 5, 2, batch_first=True, bidirectional=True), image[0]),
            (nn.GRU(8, 5), image[0]),
            (nn.RNN(8, 5), image[0]),
            (nn.LSTMCell(8, 4), image[0, 0]),
            (nn.GRUCell(8, 4), image[0, 0]),
            (nn.MultiheadAttention(8, 2, batch_first=True), (image[0], image[0], image[1])),
            (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), image[0]),
            (nn.GELU(), image),
            (nn.Softmax(1), image),
            (nn.LogSoftmax(-1), image),
            (nn.GLU(), image),
            (nn.Hardswish(), image),
            (nn.SiLU(), image),
            (nn.ReflectionPad2d(1), image),
            (nn.ReplicationPad2d(1), image),
            (nn.LPPool2d(2, 2), image.abs()),
            (nn.LocalResponseNorm(2), image),
            (nn.CosineSimilarity(), (image[0], image[1])),
        ]
        for layer, inputs in cases:
            with self.subTest(type(layer).__name__):
                self.layer(layer, inputs if isinstance(inputs, tuple) else (inputs,))

    def layer(self, layer, inputs):
        results = []
        for device in ("cpu", DEVICE):
            here = copy.deepcopy(layer).to(device)
            leaves = [t.detach().clone().to(device).requires_grad_() for t in inputs]
            out = [t for t in torch.utils._pytree.tree_leaves(here(*leaves)) if isinstance(t, torch.Tensor)]
            sum((t * torch.linspace(-1, 1, t.numel()).view(t.shape).to(device)).sum() for t in out).backward()
            results.append(
                (
                    [t.detach() for t in out],
                    [t.grad for t in leaves],
                    [p.grad for p in here.parameters()],
                    list(here.buffers()),
                )
            )
        self.same(results[1], results[0], rtol=1e-3, atol=1e-4)

    def test_losses(self):
        x, y = torch.randn(6, 5), torch.randn(6, 5)
        k, b = torch.tensor([0, 4, 2, 1, 3, 2]), torch.rand(6, 5)
        losses = [
            lambda x: F.cross_entropy(x, k.to(x.device), label_smoothing=0.1),
            lambda x: F.cross_entropy(x, k.to(x.device), ignore_index=2),
            lambda x: F.nll_loss(x.log_softmax(1), k.to(x.device), weight=torch.arange(5.0).to(x.device)),
            lambda x: F.mse_loss(x, y.to(x.device)),
            lambda x: F.smooth_l1_loss(x, y.to(x.device)),
            lambda x: F.l1_loss(x, y.to(x.device)),
            lambda x: F.huber_loss(x, y.to(x.device)),
            lambda x: F.binary_cross_entropy(x.sigmoid(), b.to(x.device)),
            lambda x: F.binary_cross_entropy_with_logits(x, b.to(x.device)),
            lambda x: F.kl_div(x.log_softmax(1), b.to(x.device), reduction="batchmean"),
            lambda x: F.multi_margin_loss(x, k.to(x.device)),
            lambda x: F.cosine_embedding_loss(x, y.to(x.device), torch.ones(6).to(x.device)),
            lambda x: F.hinge_embedding_loss(x, torch.ones(6, 5).to(x.device)),
            lambda x: F.poisson_nll_loss(x, b.to(x.device)),
            lambda x: F.gaussian_nll_loss(x, y.to(x.device), b.to(x.device)),
            lambda x: F.soft_margin_loss(x, y.sign().to(x.device)),
            lambda x: F.triplet_margin_loss(x, y.to(x.device), b.to(x.device)),
            lambda x: F.ctc_loss(
                x.log_softmax(1).unsqueeze(1), torch.tensor([[1, 2]]).to(x.device), torch.tensor([6]), torch.tensor([2])
            ),
        ]
        for number, loss in enumerate(losses):
            with self.subTest(number):
                leaves = [x.clone().requires_grad_(), x.to(DEVICE).requires_grad_()]
                values = [loss(leaf) for leaf in leaves]
                for value in values:
                    value.backward()
                self.same([values[1].detach(), leaves[1].grad], [values[0].detach(), leaves[0].grad])

    def test_embeddings_and_their_gradients(self):
        k = torch.tensor([[1, 3], [0, 3]])
        for function in (
            lambda w, k: F.embedding(k, w),
            lambda w, k: F.embedding(k, w, padding_idx=3),
            lambda w, k: F.embedding(k, w, scale_grad_by_freq=True),
            lambda w, k: F.embedding_bag(k, w, mode="mean"),
            lambda w, k: F.embedding_bag(k.flatten(), w, torch.tensor([0, 1]).to(k.device), mode="max"),
        ):
            grads = []
            for device in ("cpu", DEVICE):
                w = torch.arange(20.0).view(4, 5).to(device).requires_grad_()
                out = function(w, k.to(device))
                (out * out).sum().backward()
                grads.append((out.detach(), w.grad))
            self.same(grads[1], grads[0])
        with self.assertRaises((NotImplementedError, RuntimeError)):
            w = torch.ones(4, 5, device=DEVICE, requires_grad=True)
            F.embedding(k.to(DEVICE), w, sparse=True).sum().backward()
        self.assertEqual((torch.ones(2, device=DEVICE) + 1).tolist(), [2.0, 2.0])

    def test_linear_algebra(self):
        torch.manual_seed(4)
        a = torch.randn(4, 4)
        a = a @ a.t() + torch.eye(4)
        b = torch.randn(4, 2)
        for function in (
            lambda a, b: torch.linalg.solve(a, b),
            lambda a, b: torch.linalg.cholesky(a),
            lambda a, b: torch.linalg.inv(a),
            lambda a, b: torch.linalg.det(a),
            lambda a, b: torch.linalg.eigvalsh(a),
            lambda a, b: torch.linalg.svdvals(b),
            lambda a, b: torch.linalg.qr(b)[1].abs(),
            lambda a, b: torch.linalg.lstsq(a, b)[0],
            lambda a, b: torch.linalg.matrix_exp(a / 10),
            lambda a, b: torch.linalg.norm(b),
            lambda a, b: torch.linalg.pinv(b),
            lambda a, b: torch.linalg.matrix_rank(a),
            lambda a, b: torch.linalg.lu(a),
            lambda a, b: torch.cholesky_solve(b, torch.linalg.cholesky(a)),
            lambda a, b: torch.linalg.cond(a),
            lambda a, b: torch.logdet(a),
            lambda a, b: torch.kron(a, b),
            lambda a, b: torch.einsum("ij,jk->ki", a, b),
            lambda a, b: torch.tensordot(a, b, 1),
            lambda a, b: torch.linalg.multi_dot([a, a, b]),
            lambda a, b: torch.addmv(b[:, 0], a, b[:, 1]),
            lambda a, b: torch.addr(a, b[:, 0], b[:, 1]),
            lambda a, b: torch.cov(b),
            lambda a, b: torch.trace(a),
            lambda a, b: torch.fft.fft2(a).abs(),
            lambda a, b: torch.fft.ifft(torch.fft.fft(b)).real,
            lambda a, b: torch.stft(a.flatten(), 8, window=torch.ones(8).to(a.device), return_complex=True).abs(),
        ):
            self.both(function, a, b, rtol=1e-3, atol=1e-4)
        with self.assertRaisesRegex(RuntimeError, "singular|not positive"):
            torch.linalg.cholesky(-torch.eye(3, device=DEVICE))


class Unusual(Case):
    def test_second_derivatives(self):
        """With zeros that have no memory."""
        self.both(lambda x: torch.func.hessian(lambda a: (a**3).sum())(x), torch.randn(5))
        self.both(lambda x: torch.func.jacfwd(torch.func.jacrev(lambda a: (a.sin() * a).sum()))(x), torch.randn(4))
        zeros = torch._efficientzerotensor((3,), device=DEVICE)
        self.assertEqual((zeros + 1).tolist(), [1.0] * 3)
        self.assertEqual(zeros.clone().cpu().tolist(), [0.0] * 3)
        self.assertEqual(zeros.cpu().tolist(), [0.0] * 3)

    def test_sentences_of_different_lengths(self):
        """What would take nested tensors elsewhere goes on with padded ones."""
        torch.manual_seed(3)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        model = torch.nn.TransformerEncoder(layer, 2).eval()
        x, lengths = torch.randn(3, 5, 8), torch.tensor([5, 3, 2])
        padding = torch.arange(5) >= lengths[:, None]
        with torch.no_grad():
            want = model(x, src_key_padding_mask=padding)
            got = copy.deepcopy(model).to(DEVICE)(x.to(DEVICE), src_key_padding_mask=padding.to(DEVICE))
        self.same(got.cpu()[~padding], want[~padding])

    def test_bags(self):
        table, words = torch.randn(6, 3), torch.tensor([[1, 2], [0, 5]])
        for mode in ("sum", "mean", "max"):
            self.both(lambda t, w: F.embedding_bag(w, t, mode=mode), table, words)
            starts = torch.tensor([0, 3])
            self.both(lambda t, w, s: F.embedding_bag(w.flatten(), t, s, mode=mode), table, words, starts)
        graph, table, words = torch.accelerator.Graph(), table.to(DEVICE), words.to(DEVICE)
        torch.accelerator.synchronize()
        with self.assertRaisesRegex(RuntimeError, "_embedding_bag.*the CPU's kernel for it gives other shapes"):
            with torch.Stream(device=DEVICE), graph:
                F.embedding_bag(words, table)

    def test_a_storage_that_was_made_smaller(self):
        for size in (0, 8):
            x = torch.ones(4, device=DEVICE)
            x.untyped_storage().resize_(size)
            for use in (lambda: x + 1, lambda: x.mul_(2), lambda: x.sum(), lambda: torch.cat([x, x]), lambda: x.cpu(),
                        lambda: x.clone(), lambda: F.layer_norm(x, (4,)), lambda: x.fill_(1)):
                with self.assertRaisesRegex(RuntimeError, f"needs 16 bytes, and its storage was resized to {size}$"):
                    use()
        self.assertEqual((torch.ones(2, device=DEVICE) + 1).tolist(), [2.0, 2.0])


class Training(Case):
    def train(self, device, make, steps=6, around=None, dtype=torch.float32):
        torch.manual_seed(7)
        model = torch.nn.Sequential(
            torch.nn.Linear(5, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 3)
        ).to(dtype)
        x, k = torch.randn(12, 5, dtype=dtype).to(device), torch.randint(3, (12,)).to(device)
        model.to(device)
        step = make(model.parameters())
        losses = []
        for _ in range(steps):
            step.zero_grad()
            loss = F.cross_entropy(model(x), k)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            step.step()
            losses.append(loss.item())
        return losses, [p.detach() for p in model.parameters()]

    def test_optimisers(self):
        optim = torch.optim
        for make in (
            lambda p: optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
            lambda p: optim.SGD(p, 0.1, foreach=True),
            lambda p: optim.Adam(p, 0.01),
            lambda p: optim.Adam(p, 0.01, foreach=True, amsgrad=True),
            lambda p: optim.AdamW(p, 0.01, fused=False),
            lambda p: optim.AdamW(p, 0.01, foreach=True),
            lambda p: optim.Adam(p, 0.01, capturable=False, weight_decay=0.1),
            lambda p: optim.RMSprop(p, 0.01, foreach=True),
            lambda p: optim.Adagrad(p, 0.01),
            lambda p: optim.Adadelta(p),
            lambda p: optim.NAdam(p, 0.01),
            lambda p: optim.RAdam(p, 0.01, foreach=True),
            lambda p: optim.Adamax(p, 0.01),
        ):
            got, want = self.train(DEVICE, make), self.train("cpu", make)
            self.same(torch.tensor(got[0]), torch.tensor(want[0]))
            self.same(got[1], want[1], rtol=1e-3, atol=1e-4)

    def test_scaled_losses(self):
        results = []
        for device in ("cpu", DEVICE):
            torch.manual_seed(3)
            model = torch.nn.Linear(4, 2).to(device)
            step, scaler = (
                torch.optim.SGD(model.parameters(), 0.1),
                torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=2),
            )
            x = torch.randn(6, 4).to(device)
            scales = []
            for number in range(5):
                step.zero_grad()
                loss = model(x).square().mean() * (float("inf") if number == 1 else 1)
                scaler.scale(loss).backward()
                scaler.step(step)
                scaler.update()
                scales.append(scaler.get_scale())
            results.append((scales, [p.detach() for p in model.parameters()]))
        self.assertEqual(results[1][0], results[0][0])
        self.assertLess(min(results[0][0]), 1024)
        self.same(results[1][1], results[0][1])

    def test_autocast(self):
        x, w = torch.randn(4, 8), torch.randn(8, 8)
        for dtype in (torch.bfloat16, torch.float16):
            with torch.autocast("rondo", dtype=dtype):
                a, b = x.to(DEVICE), w.to(DEVICE)
                product = a @ b
                self.assertEqual(product.dtype, dtype)
                self.assertEqual((product + 1).dtype, dtype)
                self.assertEqual(product.exp().dtype, torch.float32)  # by PyTorch's list for accelerators
                self.assertEqual(product.softmax(-1).dtype, torch.float32)
                self.assertEqual(F.layer_norm(product, (8,)).dtype, torch.float32)
                self.assertEqual(torch.cat([product, a]).dtype, torch.float32)
                self.assertEqual(F.conv1d(a.unsqueeze(0), b[:4, :4].unsqueeze(-1)).dtype, dtype)
                with torch.autocast("rondo", enabled=False):
                    self.assertEqual((a @ b).dtype, torch.float32)
                with self.assertRaisesRegex(RuntimeError, "unsafe to autocast"):
                    F.binary_cross_entropy(a.sigmoid(), a.sigmoid())
            self.same(product, x.to(dtype) @ w.to(dtype), rtol=1e-2, atol=1e-2)
            self.assertEqual((a @ b).dtype, torch.float32)
        model = torch.nn.Linear(8, 2).to(DEVICE)
        with torch.autocast("rondo", torch.bfloat16):
            loss = F.cross_entropy(model(x.to(DEVICE)), torch.zeros(4, dtype=torch.long, device=DEVICE))
        loss.backward()
        self.assertEqual((loss.dtype, model.weight.grad.dtype), (torch.float32, torch.float32))
        self.assertFalse(torch.is_autocast_enabled("rondo"))

    def test_double_backward_and_higher_orders(self):
        for device in ("cpu", DEVICE):
            x = torch.tensor([0.5, 1.0], device=device, requires_grad=True)
            first = torch.autograd.grad(x.sin().pow(2).sum(), x, create_graph=True)[0]
            second = torch.autograd.grad(first.sum(), x)[0]
            self.same(second.detach(), 2 * torch.cos(2 * x.detach().cpu()))
        self.assertTrue(
            torch.autograd.gradcheck(
                lambda t: torch.tanh(t) @ t.t(),
                torch.randn(3, 3, dtype=torch.float64, device=DEVICE, requires_grad=True),
            )
        )
        self.both(lambda t: torch.func.vmap(torch.func.grad(lambda r: r.sin().sum()))(t), torch.arange(6.0).view(2, 3))
        self.both(lambda t: torch.func.jacrev(lambda r: r * r.sum())(t), torch.arange(3.0))


class Captured(Case):
    def test_nothing_runs_while_it_is_captured(self):
        x = torch.ones(4, device=DEVICE)
        stream, graph = torch.Stream(device=DEVICE), torch.accelerator.Graph()
        torch.accelerator.synchronize()
        with stream, graph:
            x.add_(1)
            x.mul_(3)
            y = x.cumsum(0)
            z = torch.nn.functional.layer_norm(y, (4,))
            x[0].fill_(0)
        self.assertEqual(x.tolist(), [1.0] * 4)
        for number in range(3):
            want = torch.tensor([0.0 if number else 1.0] + [1.0] * 3) if not number else x.cpu()
            want = (want + 1) * 3
            graph.replay()
            torch.accelerator.synchronize()
            self.same(y, want.cumsum(0))
            self.same(z, F.layer_norm(want.cumsum(0), (4,)))
            self.assertEqual(x.tolist(), [0.0, *want[1:].tolist()])

    def test_refusals_name_the_operator_and_spoil_the_capture(self):
        x = torch.arange(4.0, device=DEVICE)
        for name, call in (
            ("nonzero", lambda: x.nonzero()),
            ("masked_select", lambda: x.masked_select(x > 1)),
            ("_local_scalar_dense", lambda: x.sum().item()),
            ("_unique2", lambda: x.unique()),
            ("nonzero", lambda: x[x > 1]),
            ("equal", lambda: x.equal(x)),
            ("pageable", lambda: x.cpu()),
            ("pageable", lambda: x.copy_(torch.ones(4))),
            ("bincount", lambda: x.long().bincount()),
            ("pageable", lambda: x[torch.tensor([1])]),
            ("item", lambda: float(x[0])),
            ("item", lambda: bool(x[0] > 1)),
        ):
            with self.subTest(name):
                stream, graph = torch.Stream(device=DEVICE), torch.accelerator.Graph()
                torch.accelerator.synchronize()
                with self.assertRaisesRegex(RuntimeError, name):
                    with stream, graph:
                        x.add_(1)
                        call()
                with self.assertRaises(RuntimeError):
                    graph.replay()
                self.assertEqual(x.tolist(), [0.0, 1, 2, 3])

    def test_a_refusal_that_is_caught_still_spoils_it(self):
        x = torch.arange(4.0, device=DEVICE)
        stream, graph = torch.Stream(device=DEVICE), torch.accelerator.Graph()
        torch.accelerator.synchronize()
        with self.assertRaisesRegex(RuntimeError, "nonzero"):
            with stream, graph:
                try:
                    x.nonzero()
                except RuntimeError:
                    pass
                x.add_(1)
        with self.assertRaises(RuntimeError):
            graph.replay()

    def test_training_step(self):
        """Forward, backward and optimiser in one graph: as eager steps with the same inputs."""
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to(DEVICE)
        twin = copy.deepcopy(model).cpu()
        steps = [torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (model, twin)]
        x = torch.zeros(6, 4, device=DEVICE)

        def one(model, step, x):
            step.zero_grad(set_to_none=False)
            loss = model(x).square().mean()
            loss.backward()
            step.step()
            return loss.detach()

        data = [torch.randn(6, 4) for _ in range(5)]
        stream, graph = torch.Stream(device=DEVICE), torch.accelerator.Graph()
        with stream:
            for value in data[:2]:
                x.copy_(value)
                one(model, steps[0], x)
        torch.accelerator.synchronize()
        with stream, graph:
            loss = one(model, steps[0], x)
        for number, value in enumerate(data):
            want = one(twin, steps[1], value)
            if number < 2:
                continue
            x.copy_(value)
            torch.accelerator.synchronize()
            graph.replay()
            torch.accelerator.synchronize()
            self.same(loss, want)
        self.same([p.detach() for p in model.parameters()], [p.detach() for p in twin.parameters()])


if __name__ == "__main__":
    unittest.main()
