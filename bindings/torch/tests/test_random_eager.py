# SPDX-License-Identifier: Apache-2.0
"""Random small programs of eager operators: as on the CPU when called, and when captured and replayed with new inputs.

What a capture cannot hold has to be refused by name. RONDO_TORCH_LONG=1 runs 2,000 programs, RONDO_TORCH_SEED=N one.
"""

import os
import random
import re
import unittest
import warnings

import torch
import torch.nn.functional as F

import rondo_torch  # noqa: F401

DEVICE = "rondo"
LONG = os.environ.get("RONDO_TORCH_LONG") == "1"

OPS = {}  # name -> (weight, function of a Maker that adds a step, or returns False)


def op(weight=1.0):
    def keep(function):
        OPS[function.__name__] = (weight, function)
        return function

    return keep


class Program:
    """Steps over a list of values; the first ones are inputs."""

    def __init__(self, seed):
        self.seed = seed
        self.rng = random.Random(seed)
        self.torch_rng = torch.Generator().manual_seed(seed)
        self.steps, self.names = [], []
        self.values = self.inputs()
        self.count = len(self.values)
        names = sorted(OPS)
        weights = [OPS[name][0] for name in names]
        for _ in range(200):
            if len(self.steps) >= self.rng.randint(4, 12):
                break
            OPS[self.rng.choices(names, weights)[0]][1](self)

    def inputs(self):
        """New contents, the same shapes: floats, and integers below 4."""
        shapes = self.__dict__.setdefault(
            "shapes",
            [[self.rng.choice((1, 2, 3, 4, 5)) for _ in range(self.rng.choice((1, 2, 2, 3, 4)))] for _ in range(3)],
        )
        values = [torch.randn(shape, generator=self.torch_rng) for shape in shapes]
        values.append(torch.randn(4, 4, generator=self.torch_rng))
        values.append(
            torch.randint(
                0, 4, (self.__dict__.setdefault("indices", self.rng.randint(1, 5)),), generator=self.torch_rng
            )
        )
        return values

    # Picking values while the program is made.

    def pick(self, test=lambda t: True):
        fits = [i for i, value in enumerate(self.values) if test(value)]
        return self.rng.choice(fits) if fits else None

    def floats(self, dims=(0, 1, 2, 3, 4, 5), test=lambda t: True, dtypes=(torch.float32,)):
        return self.pick(lambda t: t.dtype in dtypes and t.dim() in dims and t.numel() and t.numel() < 3000 and test(t))

    def index(self, below):
        return self.pick(
            lambda t: (
                t.dtype == torch.int64
                and t.dim() == 1
                and t.numel()
                and int(t.min()) >= 0
                and below >= 4
                and int(t.max()) < 4
            )
        )

    def step(self, name, function, *arguments):
        """Adds it if it works and stays in bounds; the values that it changes in place are those of the CPU run."""
        if any(i is None for i in arguments):
            return False
        saved = [value.clone() for value in self.values]
        results = function(*(self.values[i] for i in arguments))
        results = results if isinstance(results, (tuple, list)) else (results,)
        good = all(
            r is None
            or (
                r.numel() < 5000
                and (not r.is_floating_point() or (r.isfinite().all() and (not r.numel() or r.abs().max() < 1e4)))
            )
            for r in results
        )
        good = good and all(not v.is_floating_point() or v.isfinite().all() for v in self.values)
        if not good:
            for value, before in zip(self.values, saved):
                if not torch.equal(value, before):
                    value.copy_(before)
            return False
        self.steps.append((name, function, arguments))
        self.values.extend(r for r in results if r is not None)
        return True

    def run(self, values):
        values = list(values)
        for _, function, arguments in self.steps:
            results = function(*(values[i] for i in arguments))
            results = results if isinstance(results, (tuple, list)) else (results,)
            values.extend(r for r in results if r is not None)
        return values

    def __str__(self):
        return f"program {self.seed}: " + "; ".join(f"{name}{arguments}" for name, _, arguments in self.steps)


UNARY = {
    "neg": torch.neg,
    "abs": torch.abs,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda t: F.gelu(t, approximate="tanh"),
    "silu": F.silu,
    "erf": torch.erf,
    "sqrt": lambda t: t.abs().sqrt(),
    "rsqrt": lambda t: (t.abs() + 1).rsqrt(),
    "log1p": lambda t: t.abs().log1p(),
    "exp": lambda t: t.clamp(-3, 3).exp(),
    "floor": torch.floor,
    "round": torch.round,
    "sign": torch.sign,
    "elu": F.elu,
    "leaky_relu": lambda t: F.leaky_relu(t, 0.2),
    "softplus": F.softplus,
    "hardswish": F.hardswish,
    "mish": F.mish,
    "logsigmoid": F.logsigmoid,
    "square": torch.square,
    "reciprocal": lambda t: (t * t + 1).reciprocal(),
    "clamp": lambda t: t.clamp(-0.5, 1),
    "nan_to_num": torch.nan_to_num,
    "clone": torch.clone,
    "expm1": lambda t: t.clamp(max=2).expm1(),
    "atan": torch.atan,
    "frac": torch.frac,
    "trunc": torch.trunc,
    "hardtanh": F.hardtanh,
    "celu": F.celu,
    "selu": F.selu,
    "rsub": lambda t: 2 - t,
    "pow": lambda t: t.pow(2),
    "rpow": lambda t: 2 ** t.clamp(-3, 3),
    "softsign": F.softsign,
    "contiguous": torch.Tensor.contiguous,
    "ones_like": torch.ones_like,
    "zeros_like": torch.zeros_like,
    "full_like": lambda t: torch.full_like(t, 1.5),
    "positive": torch.positive,
    "double_and_back": lambda t: t.double().float(),
    "bfloat16": lambda t: t.bfloat16().float(),
    "half": lambda t: t.half().float(),
    "int": lambda t: t.int().float(),
    "bool": lambda t: t.bool().float(),
    "detach": torch.detach,
    "tril": lambda t: t.tril() if t.dim() > 1 else t + 0,
    "flip": lambda t: t.flip(-1) if t.dim() else t + 0,
    "isnan": lambda t: t.isnan().float(),
    "threshold": lambda t: F.threshold(t, 0.1, 2.0),
    "logit": lambda t: t.sigmoid().logit(1e-3),
}


@op(6)
def unary(p):
    name = p.rng.choice(sorted(UNARY))
    return p.step(name, UNARY[name], p.floats())


BINARY = {
    "add": torch.add,
    "sub": lambda a, b: torch.sub(a, b, alpha=2),
    "mul": torch.mul,
    "div": lambda a, b: a / (b * b + 1),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "atan2": torch.atan2,
    "fmod": lambda a, b: torch.fmod(a, b.abs() + 1),
    "remainder": lambda a, b: torch.remainder(a, b.abs() + 1),
    "hypot": torch.hypot,
    "gt": lambda a, b: (a > b).float(),
    "le": lambda a, b: a.le(b).float(),
    "eq": lambda a, b: (a == b).float(),
    "where": lambda a, b: torch.where(a > b, a, b),
    "copysign": torch.copysign,
    "pow": lambda a, b: (a.abs() + 0.5).pow(b.clamp(-2, 2)),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "floor_divide": lambda a, b: torch.div(a, b.abs() + 1, rounding_mode="floor"),
    "dist": lambda a, b: torch.dist(a, b),
    "addcmul": lambda a, b: torch.addcmul(a, a, b, value=0.5),
    "addcdiv": lambda a, b: torch.addcdiv(a, a, b.abs() + 1),
    "xlogy": lambda a, b: torch.xlogy(a, b.abs() + 0.5),
    "logical_and": lambda a, b: ((a > 0) & (b > 0)).float(),
    "mse": F.mse_loss,
    "l1": lambda a, b: F.l1_loss(a, b, reduction="none"),
    "huber": F.huber_loss,
    "smooth_l1": F.smooth_l1_loss,
    "bce": lambda a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid()),
    "isclose": lambda a, b: torch.isclose(a, b).float(),
}


@op(6)
def binary(p):
    a = p.floats()
    if a is None:
        return False
    shape = p.values[a].shape
    same = p.floats(test=lambda t: t.shape == shape)
    return p.step(*(lambda name: (name, BINARY[name]))(p.rng.choice(sorted(BINARY))), a, same)


@op(3)
def broadcast(p):
    a = p.floats()
    b = p.floats(dims=(0, 1, 2))

    def fits(x, y):
        return all(m == n or 1 in (m, n) for m, n in zip(reversed(x.shape), reversed(y.shape)))

    if a is None or b is None or not fits(p.values[a], p.values[b]):
        return False
    return p.step("broadcast", *p.rng.choice([(torch.add,), (torch.mul,), (torch.sub,), (torch.maximum,)]), a, b)


@op(3)
def scalars(p):
    number = p.rng.choice((2, -0.5, 3.0, True))
    zero_dim = torch.tensor(p.rng.choice((2.0, -1.5)), dtype=p.rng.choice((torch.float32, torch.float64)))
    return p.step(
        "scalar",
        *p.rng.choice(
            [
                (lambda t: t + number,),
                (lambda t: number * t,),
                (lambda t: t * zero_dim,),
                (lambda t: zero_dim - t,),
                (lambda t: (t > number).float(),),
                (lambda t: t / zero_dim,),
                (lambda t: torch.where(t > 0, t, zero_dim.float()),),
            ]
        ),
        p.floats(),
    )


REDUCTIONS = {
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "amin": torch.amin,
    "argmax": torch.argmax,
    "argmin": torch.argmin,
    "var": lambda t, d, keepdim=False: t.var(d, correction=0, keepdim=keepdim),
    "logsumexp": torch.logsumexp,
    "norm": lambda t, d, keepdim=False: torch.linalg.vector_norm(t, dim=d, keepdim=keepdim),
    "prod": lambda t, d, keepdim=False: t.tanh().prod(d, keepdim=keepdim),
    "any": lambda t, d, keepdim=False: (t > 0).any(d, keepdim=keepdim),
    "all": lambda t, d, keepdim=False: (t > 0).all(d, keepdim=keepdim),
    "count": lambda t, d, keepdim=False: torch.count_nonzero(t, d),
    "std_mean": lambda t, d, keepdim=False: torch.std_mean(t, d, correction=0, keepdim=keepdim),
    "median": lambda t, d, keepdim=False: torch.median(t, d, keepdim=keepdim),
    "max": lambda t, d, keepdim=False: torch.max(t, d, keepdim=keepdim),
    "min": lambda t, d, keepdim=False: torch.min(t, d, keepdim=keepdim),
    "aminmax": lambda t, d, keepdim=False: torch.aminmax(t, dim=d, keepdim=keepdim),
    "kthvalue": lambda t, d, keepdim=False: torch.kthvalue(t, 1, d, keepdim=keepdim),
    "nansum": lambda t, d, keepdim=False: torch.nansum(t, d, keepdim=keepdim),
}


@op(4)
def reduction(p):
    i = p.floats(dims=(1, 2, 3, 4))
    name, keepdim = p.rng.choice(sorted(REDUCTIONS)), p.rng.random() < 0.5
    d = None if i is None else p.rng.randrange(p.values[i].dim())
    return p.step(name, lambda t: REDUCTIONS[name](t, d, keepdim=keepdim), i)


@op(1)
def whole(p):
    function = p.rng.choice(
        (
            torch.sum,
            torch.mean,
            torch.max,
            torch.min,
            torch.var_mean,
            torch.median,
            torch.argmax,
            torch.norm,
            torch.trace,
            torch.any,
        )
    )
    if function is torch.var_mean:
        return p.step("var_mean", lambda t: torch.var_mean(t, correction=0), p.floats())
    return p.step(function.__name__, function, p.floats(dims=(2,) if function is torch.trace else (1, 2, 3)))


@op(4)
def along(p):
    i = p.floats(dims=(1, 2, 3, 4))
    d = None if i is None else p.rng.randrange(p.values[i].dim())
    size = 1 if i is None else p.values[i].shape[d]
    k = p.rng.randint(1, size)
    return p.step(
        "along",
        *p.rng.choice(
            [
                (lambda t: t.softmax(d),),
                (lambda t: t.log_softmax(d),),
                (lambda t: t.cumsum(d),),
                (lambda t: t.tanh().cumprod(d),),
                (lambda t: t.sort(d),),
                (lambda t: t.topk(k, d),),
                (lambda t: t.argsort(dim=d, descending=True, stable=True),),
                (lambda t: t.roll(1, d),),
                (lambda t: t.flip(d),),
                (lambda t: t.cummax(d),),
                (lambda t: t.diff(dim=d) if size > 1 else t + 0,),
                (lambda t: t.logcumsumexp(d),),
                (lambda t: F.normalize(t, dim=d),),
                (lambda t: t.renorm(2, d, 1.0) if t.dim() > 1 else t + 0,),
            ]
        ),
        i,
    )


@op(6)
def view(p):
    i = p.floats(dims=(1, 2, 3, 4))
    if i is None:
        return False
    t = p.values[i]
    d, e = p.rng.randrange(t.dim()), p.rng.randrange(t.dim())
    order = p.rng.sample(range(t.dim()), t.dim())
    start = p.rng.randrange(t.shape[d])
    step = p.rng.choice((1, 2))
    return p.step(
        "view",
        *p.rng.choice(
            [
                (lambda t: t.transpose(d, e),),
                (lambda t: t.permute(order),),
                (lambda t: t.unsqueeze(d),),
                (lambda t: t.flatten(),),
                (lambda t: t.narrow(d, start, t.shape[d] - start),),
                (lambda t: t.select(d, start),),
                (lambda t: t.reshape(-1),),
                (lambda t: t[start::step] if d == 0 else t.movedim(d, 0)[start::step],),
                (lambda t: t.unbind(d)[start],),
                (lambda t: t.unsqueeze(0).expand(2, *t.shape),),
                (lambda t: t.unfold(d, max(1, start), 1),),
                (lambda t: t.squeeze(),),
                (lambda t: t.diagonal(dim1=d, dim2=e) if d != e else t.view_as(t),),
                (lambda t: t.chunk(2, d)[0],),
                (lambda t: t.split(1, d)[start],),
                (lambda t: torch.as_strided(t, (1, 1), (1, 1), t.storage_offset()),),
            ]
        ),
        i,
    )


@op(3)
def shape(p):
    i = p.floats(dims=(1, 2, 3))
    if i is None:
        return False
    d = p.rng.randrange(p.values[i].dim())
    return p.step(
        "shape",
        *p.rng.choice(
            [
                (lambda t: t.repeat(2, *[1] * (t.dim() - 1)),),
                (lambda t: t.repeat_interleave(2, d),),
                (lambda t: F.pad(t, (1, 2), value=0.5),),
                (lambda t: torch.cat([t, t * 2], d),),
                (lambda t: torch.stack([t, -t], d),),
                (lambda t: t.tile(2),),
                (lambda t: torch.rot90(t, 1, (0, 1)) if t.dim() > 1 else t + 0,),
                (lambda t: torch.meshgrid(t.flatten(), t.flatten(), indexing="ij"),),
                (lambda t: torch.block_diag(t[0], t[0]) if t.dim() == 2 else t + 0,),
                (lambda t: t.to(memory_format=torch.channels_last) if t.dim() == 4 else t * 1,),
                (lambda t: torch.diag_embed(t),),
                (lambda t: torch.broadcast_to(t, (2, *t.shape)) + 1,),
                (lambda t: t.new_full((3,), 2.5),),
            ]
        ),
        i,
    )


@op(3)
def cat(p):
    i = p.floats(dims=(1, 2, 3))
    same = i is not None and p.floats(test=lambda t: t.shape == p.values[i].shape)
    return same is not False and p.step("cat", lambda a, b: torch.cat([a, b, a]), i, same)


@op(4)
def indexing(p):
    i = p.floats(dims=(1, 2, 3), test=lambda t: t.shape[0] >= 4)
    if i is None:
        return False
    k = p.index(p.values[i].shape[0])
    (function,) = p.rng.choice(
        [
            (lambda t, k: t[k],),
            (lambda t, k: t.index_select(0, k),),
            (lambda t, k: t.index_fill(0, k, 2.0),),
            (lambda t, k: F.embedding(k, t) if t.dim() == 2 else t[k],),
            (lambda t, k: t.index_add(0, k, t[: len(k)] if len(k) <= len(t) else t[k]),),
            (lambda t, k: t.take(k),),
            (lambda t, k: t.index_put((k,), torch.ones_like(t[k])),),
            (lambda t, k: t.index_put((k,), torch.ones_like(t[k]), accumulate=True),),
            (lambda t, k: t.gather(0, k.view(-1, *[1] * (t.dim() - 1)).expand(-1, *t.shape[1:])),),
            (
                lambda t, k: t.scatter_add(
                    0, k.view(-1, *[1] * (t.dim() - 1)).expand(-1, *t.shape[1:]), torch.ones_like(t[k])
                ),
            ),
            (lambda t, k: t.scatter(0, k[:1].view(-1, *[1] * (t.dim() - 1)).expand(-1, *t.shape[1:]), 3.0),),
            (lambda t, k: t.index_copy(0, k[:1], t[:1] + 1),),
            (lambda t, k: F.one_hot(k, 4).float(),),
            (lambda t, k: torch.take_along_dim(t, k.view(-1, *[1] * (t.dim() - 1)).expand(-1, *t.shape[1:]), 0),),
            (
                lambda t, k: t.scatter_reduce(
                    0, k[:1].view(-1, *[1] * (t.dim() - 1)).expand(-1, *t.shape[1:]), t[:1], "amax"
                ),
            ),
        ]
    )
    # What was in bounds here may not be with other inputs.
    return p.step("index", lambda t, k: function(t, k % 4), i, k)


@op(2)
def masks(p):
    return p.step(
        "mask",
        *p.rng.choice(
            [
                (lambda t: t.masked_fill(t > 0, 1.5),),
                (lambda t: torch.where(t > 0, t, torch.zeros_like(t)),),
                (lambda t: torch.where(t > 0, 1.0, t),),
                (lambda t: t.masked_scatter(t > 0, torch.arange(float(t.numel())).to(t.device)),),
                (lambda t: torch.bucketize(t, torch.arange(3.0).to(t.device)),),
                (lambda t: (t > 0).logical_not().float().cumsum(0),),
                (lambda t: (t > 0).int().bitwise_xor(3),),
            ]
        ),
        p.floats(dims=(1, 2, 3)),
    )


@op(4)
def products(p):
    a = p.floats(dims=(2,))
    if a is None:
        return False
    m, n = p.values[a].shape
    b = p.floats(dims=(2,), test=lambda t: t.shape[0] == n)
    c = p.floats(dims=(2,), test=lambda t: t.shape[1] == n)
    v = p.floats(dims=(1,), test=lambda t: t.shape[0] == n)
    kind = p.rng.randrange(8)
    if kind < 2:
        return p.step("mm", (torch.mm, torch.matmul)[kind], a, b)
    if kind == 2:
        return p.step("linear", F.linear, a, c)
    if kind == 3:
        return p.step("mv", torch.mv, a, v)
    if kind == 4:
        return p.step(
            "addmm", lambda x, y: torch.addmm(torch.ones(y.shape[1]).to(x.device), x, y, beta=0.5, alpha=2), a, b
        )
    if kind == 5:
        return p.step("einsum", lambda x, y: torch.einsum("ij,kj->ik", x, y), a, c)
    if kind == 6:
        return p.step("bmm", lambda x: torch.bmm(x.expand(2, -1, -1), x.t().expand(2, -1, -1)), a)
    return p.step(
        "baddbmm", lambda x: torch.baddbmm(x.new_zeros(1, 1, 1), x.expand(2, -1, -1), x.t().expand(2, -1, -1)), a
    )


@op(2)
def linear_algebra(p):
    i = p.floats(dims=(2,), test=lambda t: t.shape[0] == t.shape[1])

    def regular(t):
        return t.tanh() @ t.tanh().t() + torch.eye(len(t)).to(t.device)

    return p.step(
        "linalg",
        *p.rng.choice(
            [
                (lambda t: torch.linalg.cholesky(regular(t)),),
                (lambda t: torch.linalg.inv(regular(t)),),
                (lambda t: torch.linalg.det(regular(t)),),
                (lambda t: torch.linalg.solve(regular(t), t),),
                (lambda t: torch.linalg.eigvalsh(regular(t)),),
                (lambda t: torch.linalg.svdvals(t),),
                (lambda t: torch.linalg.matrix_norm(t),),
                (lambda t: torch.matrix_power(t.tanh(), 3),),
                (lambda t: torch.linalg.slogdet(regular(t)),),
                (lambda t: torch.linalg.solve_triangular(regular(t).tril(), t, upper=False),),
                (lambda t: torch.linalg.lstsq(regular(t), t).solution,),
            ]
        ),
        i,
    )


@op(2)
def waves(p):
    return p.step(
        "fft",
        *p.rng.choice(
            [
                (lambda t: torch.fft.rfft(t).abs(),),
                (lambda t: torch.view_as_real(torch.fft.fft(t)),),
                (lambda t: torch.fft.irfft(torch.fft.rfft(t), t.shape[-1]),),
                (lambda t: torch.fft.fft2(t).imag if t.dim() > 1 else t + 0,),
                (lambda t: torch.complex(t, t + 1).conj().resolve_conj().imag,),
                (lambda t: (torch.complex(t, -t).conj() * torch.complex(t, t)).real.clone(),),
                (lambda t: torch.polar(t.abs(), t).angle(),),
                (lambda t: torch.fft.fftshift(t),),
                (lambda t: torch.complex(t, t).conj().imag.neg() + 1,),
            ]
        ),
        p.floats(dims=(1, 2), test=lambda t: t.shape[-1] > 1),
    )


@op(3)
def images(p):
    i = p.floats(dims=(1, 2, 3, 4))
    if i is None:
        return False
    n = p.values[i].numel()
    if not 4 <= n <= 200:
        return False

    def image(t):
        return t.reshape(-1)[: 4 * (n // 4)].reshape(1, 2, 2, n // 4)

    def weight(t):
        return torch.ones(4, 2, 2, 1).to(t.device) * 0.5

    return p.step(
        "image",
        *p.rng.choice(
            [
                (lambda t: F.conv2d(image(t), weight(t), padding=1),),
                (lambda t: F.conv1d(image(t)[0], torch.ones(3, 2, 1).to(t.device)),),
                (lambda t: F.conv2d(image(t), torch.ones(2, 1, 1, 1).to(t.device), groups=2),),
                (lambda t: F.conv_transpose2d(image(t), torch.ones(2, 3, 2, 1).to(t.device)),),
                (lambda t: F.max_pool2d(image(t), (2, 1), return_indices=True),),
                (lambda t: F.avg_pool2d(image(t), (2, 1)),),
                (lambda t: F.adaptive_avg_pool2d(image(t), 1),),
                (lambda t: F.interpolate(image(t), scale_factor=2, mode="nearest"),),
                (lambda t: F.interpolate(image(t), size=(3, 4), mode="bilinear", align_corners=False),),
                (lambda t: F.group_norm(image(t), 2),),
                (
                    lambda t: (
                        F.batch_norm(image(t).expand(2, -1, -1, -1) * 1.0, None, None, training=True)
                        if n > 7
                        else t + 0
                    ),
                ),
                (lambda t: F.instance_norm(image(t)) if n > 7 else t + 0,),
                (lambda t: F.pixel_shuffle(image(t).expand(2, -1, -1, -1).reshape(1, 4, 2, n // 4), 2),),
                (lambda t: F.pad(image(t), (0, 0, 1, 1), mode="reflect"),),
                (lambda t: F.unfold(image(t), (2, 1)),),
                (lambda t: F.local_response_norm(image(t), 2),),
                (lambda t: F.conv3d(image(t).unsqueeze(0), torch.ones(2, 1, 1, 2, 1).to(t.device)),),
                (lambda t: F.grid_sample(image(t), torch.zeros(1, 2, 2, 2).to(t.device), align_corners=False),),
                (lambda t: F.max_pool2d(image(t), 1, padding=0),),
                (lambda t: F.lp_pool2d(image(t), 2.0, (2, 1)),),
            ]
        ),
        i,
    )


@op(2)
def norms(p):
    i = p.floats(dims=(2, 3), test=lambda t: t.shape[-1] > 1)
    return p.step(
        "norm",
        *p.rng.choice(
            [
                (lambda t: F.layer_norm(t, t.shape[-1:]),),
                (lambda t: F.rms_norm(t, t.shape[-1:]),),
                (lambda t: F.scaled_dot_product_attention(t, t, t),),
                (
                    lambda t: F.cross_entropy(
                        t.flatten(0, -2), torch.zeros(t.flatten(0, -2).shape[0], dtype=torch.long).to(t.device)
                    ),
                ),
                (lambda t: F.kl_div(t.log_softmax(-1), t.softmax(-1), reduction="batchmean"),),
                (lambda t: F.cosine_similarity(t, t + 1, dim=-1),),
                (lambda t: torch.cdist(t, t),),
                (lambda t: F.glu(t.repeat_interleave(2, -1)),),
                (lambda t: torch.nn.functional.triplet_margin_loss(t, t + 1, t - 1),),
                (lambda t: F.scaled_dot_product_attention(t, t, t, is_causal=True),),
                (lambda t: torch.histc(t, 4, -2, 2),),
            ]
        ),
        i,
    )


@op(3)
def gradients(p):
    functions = (
        torch.tanh,
        lambda t: t.softmax(-1) * t,
        lambda t: F.gelu(t),
        lambda t: t @ t.transpose(-1, -2) if t.dim() > 1 else t * t,
        lambda t: F.layer_norm(t, t.shape[-1:]) * 2,
        lambda t: t.sort(-1).values.cumsum(-1),
        lambda t: t.amax(-1),
        lambda t: t.std(0, correction=0) if t.shape[0] > 1 else t * 3,
        lambda t: torch.cat([t, t.sin()]).exp().clamp(max=5),
        lambda t: t[..., :1] * t.relu(),
        lambda t: F.log_softmax(t, -1)[..., 0],
        lambda t: F.silu(t).sum(0) / (1 + t.abs()).mean(),
    )
    function = p.rng.choice(functions)

    def gradient(t):
        leaf = t.detach().clone().requires_grad_()
        return torch.autograd.grad(function(leaf).sum(), leaf)[0]

    return p.step("gradient", gradient, p.floats(dims=(1, 2, 3)))


@op(5)
def in_place(p):
    i = p.floats(
        dims=(1, 2, 3, 4),
        test=lambda t: (
            0 not in t.stride()
            and not any(t.stride(d) < t.shape[e] and t.dim() > 4 for d in range(t.dim()) for e in range(t.dim()))
        ),
    )
    if i is None or torch._debug_has_internal_overlap(p.values[i]) == 1:
        return False
    target = p.values[i]
    strides = sorted((s, n) for s, n in zip(target.stride(), target.shape) if n > 1)
    if any(s * n > following for (s, n), (following, _) in zip(strides, strides[1:])):
        return False  # elements share memory
    j = p.floats(test=lambda t: t.shape == target.shape)
    k = p.rng.randrange(target.shape[0])
    own = p.rng.choice(
        [
            lambda t: t.mul_(0.5),
            lambda t: t.add_(1),
            lambda t: t.clamp_(-1, 1),
            lambda t: t.tanh_(),
            lambda t: t.zero_(),
            lambda t: t.fill_(0.7),
            lambda t: t.relu_(),
            lambda t: t.masked_fill_(t > 0, -1),
            lambda t: t.neg_(),
            lambda t: t.sub_(t.mean()),
            lambda t: t[k].add_(2),
            lambda t: t.index_fill_(0, torch.tensor([k]).to(t.device), 3.0),
            lambda t: t.abs_(),
            lambda t: t.cumsum_(0),
            lambda t: t.div_(2),
            lambda t: t.copy_(torch.ones(t.shape)) if t.device.type == "cpu" else t.fill_(1),
            lambda t: t.addcmul_(t, t, value=0.1),
            lambda t: t.index_put_((torch.tensor([k]).to(t.device),), torch.tensor(4.0).to(t.device)),
            lambda t: t.sigmoid_(),
            lambda t: t.round_(),
        ]
    )
    with_other = p.rng.choice(
        [
            lambda t, o: t.add_(o, alpha=2),
            lambda t, o: t.copy_(o.clone()),
            lambda t, o: t.mul_(o.sigmoid()),
            lambda t, o: t.lerp_(o + 0, 0.4),
            lambda t, o: torch._foreach_add_([t, t], [o.clone(), o.clone()]) and None,
            lambda t, o: t.sub_(o + 1),
            lambda t, o: t.where(t > 0, o),
            lambda t, o: torch.add(o + 0, o + 1, out=t) if t.is_contiguous() else t.add_(1),
            lambda t, o: torch._foreach_copy_([t], [o + 2]) and None,
        ]
    )

    def silent(function):
        def run(*tensors):
            function(*tensors)

        return run

    if p.rng.random() < 0.5:
        return p.step("in_place", silent(own), i)
    if j is None or p.values[j].untyped_storage().data_ptr() == target.untyped_storage().data_ptr():
        return False
    return p.step("in_place_with", silent(with_other), i, j)


@op(2)
def lists(p):
    a, b = p.floats(), p.floats()
    return p.step(
        "foreach",
        *p.rng.choice(
            [
                (lambda a, b: torch._foreach_mul([a, b], 2.0),),
                (lambda a, b: torch._foreach_sqrt([a.abs(), b.abs()]),),
                (lambda a, b: torch._foreach_norm([a, b]),),
                (lambda a, b: torch._foreach_add([a, b], [a, b], alpha=2),),
                (lambda a, b: torch._foreach_lerp([a, b], [b * 0 + 1 if False else a, b], 0.5),),
                (lambda a, b: torch._foreach_addcmul([a, b], [a, b], [a, b], 0.5),),
                (lambda a, b: torch._foreach_maximum([a, b], 0.1),),
            ]
        ),
        a,
        b,
    )


@op(2)
def integers(p):
    return p.step(
        "integers",
        *p.rng.choice(
            [
                (lambda k: k + 1,),
                (lambda k: (k * 3) % 4,),
                (lambda k: k.flip(0),),
                (lambda k: k.float(),),
                (lambda k: k.sort().values,),
                (lambda k: k.cumsum(0).clamp(max=3),),
                (lambda k: torch.arange(len(k)).to(k.device).minimum(k),),
                (lambda k: (k << 1).clamp(max=3),),
                (lambda k: k.to(torch.uint8),),
                (lambda k: k.argsort(stable=True) % 4,),
                (lambda k: k // 2,),
                (lambda k: k / 2,),
                (lambda k: torch.searchsorted(torch.arange(4).to(k.device), k).clamp(max=3),),
                (lambda k: k.bitwise_and(1).bool().any(),),
            ]
        ),
        p.pick(lambda t: t.dtype == torch.int64 and t.dim() == 1 and t.numel()),
    )


@op(0.5)
def factories(p):
    n = p.rng.randint(0, 5)
    return p.step(
        "factory",
        *p.rng.choice(
            [
                (lambda t: torch.arange(n, device=t.device),),
                (lambda t: torch.zeros(n, 2, device=t.device),),
                (lambda t: torch.linspace(0, 1, n + 1, device=t.device),),
                (lambda t: torch.eye(n, device=t.device),),
                (lambda t: torch.full((n,), 2.5, device=t.device),),
                (lambda t: torch.tril_indices(n + 1, n + 1, device=t.device),),
                (lambda t: torch.ones(0, 3, device=t.device).sum(0),),
                (lambda t: torch.hann_window(n + 1, device=t.device),),
                (lambda t: torch.logspace(0, 1, n + 1, device=t.device),),
            ]
        ),
        p.floats(),
    )


@op(0.4)
def on_data(p):
    """What needs the host: the same when called, and refused in a capture."""
    return p.step(
        "on_data",
        *p.rng.choice(
            [
                (lambda t: t.nonzero(),),
                (lambda t: t.masked_select(t > 0),),
                (lambda t: t.round().unique(),),
                (lambda t: t + t.sum().item(),),
                (lambda t: t[t > 0],),
                (lambda t: torch.tensor(float(torch.equal(t, t)), device=t.device),),
                (lambda t: t.cpu().to(t.device),),
                (lambda t: torch.bincount(t.abs().flatten().long().clamp(max=9)),),
                (lambda t: torch.unique_consecutive(t.flatten().round()),),
                (lambda t: t.repeat_interleave(torch.full((t.shape[0],), 2).to(t.device), 0),),
            ]
        ),
        p.floats(dims=(1, 2)),
    )


class RandomPrograms(unittest.TestCase):
    def unstable(self, program, inputs, number, difference):
        """The CPU's own value moves as much when the inputs move by a rounding: no two ways to sum need agree on it."""
        rng = torch.Generator().manual_seed(number)
        want = program.run([value.clone() for value in inputs])[number]
        for _ in range(4):
            moved = [
                value * (1 + 2e-7 * torch.randn(value.shape, generator=rng)).to(value.dtype)
                if value.dtype.is_floating_point
                else value.clone()
                for value in inputs
            ]
            other = program.run(moved)[number]
            if other.shape != want.shape or (other - want).abs().nan_to_num().max().item() > difference / 8:
                return True
        return False

    def compare(self, program, got, want, inputs, what):
        self.assertEqual(len(got), len(want), f"{what}, {program}")
        for number, (a, b) in enumerate(zip(got, want)):
            a = a.cpu()
            self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype), f"{what}, value {number} of {program}")
            if b.dtype.is_floating_point or b.dtype.is_complex:
                tolerance = 1e-5 + 1e-4 * (b.abs().max().item() if b.numel() else 0)
                difference = (a - b).abs().nan_to_num().max().item() if b.numel() else 0
                if difference > tolerance and self.unstable(program, inputs, number, difference):
                    return
                torch.testing.assert_close(
                    a,
                    b,
                    rtol=0,
                    atol=tolerance,
                    equal_nan=True,
                    msg=lambda m, number=number: f"{m}\n{what}, value {number} of {program}",
                )
            else:
                self.assertTrue(torch.equal(a, b), f"{what}, value {number} of {program}")

    def replays(self, program):
        """None when the capture was refused by name."""
        static = [value.to(DEVICE) for value in program.inputs()]
        stream, graph = torch.Stream(device=DEVICE), torch.accelerator.Graph()
        torch.accelerator.synchronize()
        try:
            with stream, graph:
                outputs = program.run(static)
        except (RuntimeError, NotImplementedError) as error:
            self.assertRegex(str(error), r"rondo: .*(captur|operator)", f"{program}")
            with self.assertRaises(RuntimeError):
                graph.replay()
            return False
        for number in range(2):
            inputs = program.inputs()
            for value, fresh in zip(static, inputs):
                value.copy_(fresh)
            torch.accelerator.synchronize()
            graph.replay()
            torch.accelerator.synchronize()
            self.compare(program, outputs, program.run([value.clone() for value in inputs]), inputs, f"replay {number}")
        return True

    def one(self, seed):
        program = Program(seed)
        inputs = program.inputs()
        try:
            want = program.run([value.clone() for value in inputs])
        except IndexError as error:  # sizes depend on data, and with these inputs there is no such place
            with self.assertRaisesRegex(IndexError, re.escape(str(error))):
                program.run([value.to(DEVICE) for value in inputs])
            return program, True, True
        self.compare(program, program.run([value.to(DEVICE) for value in inputs]), want, inputs, "eager")
        hosts = any(name == "on_data" for name, *_ in program.steps)
        return program, self.replays(program), hosts

    def test_programs(self):
        warnings.filterwarnings("ignore")
        chosen = os.environ.get("RONDO_TORCH_SEED")
        count = 2000 if LONG else 150
        steps = captured = refused_needlessly = 0
        for seed in [int(chosen)] if chosen else range(count):
            with self.subTest(seed=seed):
                program, replayed, hosts = self.one(seed)
                steps += len(program.steps)
                captured += replayed
                refused_needlessly += not replayed and not hosts
        if not chosen:
            self.assertGreater(steps, 4 * count)
            self.assertGreater(captured, count / 2, "most programs can be captured")
            print(f"{count} programs, {steps} steps, {captured} captured, {refused_needlessly} refused for no step on data")


if __name__ == "__main__":
    unittest.main()
