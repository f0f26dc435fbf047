# SPDX-License-Identifier: Apache-2.0
"""Sums, means, extrema, norms, softmax, running sums."""
import math

import torch

from ..registry import ConversionError, converts

aten = torch.ops.aten


def axes_of(x, dims):
    if dims is None:
        return list(range(len(x.shape)))
    dims = [dims] if isinstance(dims, int) else list(dims)
    return sorted({dim % max(1, len(x.shape)) for dim in dims}) if dims else list(range(len(x.shape)))


def reduced(b, name, x, dims, keepdim=False):
    if not len(x.shape):
        return x if name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd") else b.op(
            name, b.reshape(x, (1,)), b.ints([0]), keepdims=0)
    return b.op(name, x, b.ints(axes_of(x, dims)), keepdims=1 if keepdim else 0)


def _of_numbers(name):
    def convert(b, out, x, dims=None, keepdim=False, dtype=None):
        return reduced(b, name, b.cast(x, out.dtype), dims, keepdim)

    return convert


def _of_all(name):
    def convert(b, out, x, dtype=None):
        return reduced(b, name, b.cast(x, out.dtype), None)

    return convert


converts(aten.sum.dim_IntList)(_of_numbers("ReduceSum"))
converts(aten.mean.dim)(_of_numbers("ReduceMean"))
converts(aten.amax.default)(_of_numbers("ReduceMax"))
converts(aten.amin.default)(_of_numbers("ReduceMin"))
converts(aten.prod.dim_int)(_of_numbers("ReduceProd"))
converts(aten.logsumexp.default)(_of_numbers("ReduceLogSumExp"))
converts(aten.sum.default)(_of_all("ReduceSum"))
converts(aten.mean.default)(_of_all("ReduceMean"))
converts(aten.prod.default)(_of_all("ReduceProd"))
converts(aten.max.default)(_of_all("ReduceMax"))
converts(aten.min.default)(_of_all("ReduceMin"))


def _extremum(name):
    def convert(b, out, x, dim, keepdim=False):
        if not len(x.shape):
            raise ConversionError("converter", "of a single number there is no axis")
        values = reduced(b, f"Reduce{name}", x, dim, keepdim)
        if not b.is_wanted(1):
            return values, None
        return values, b.op(f"Arg{name}", x, axis=dim % len(x.shape), keepdims=int(keepdim))

    return convert


converts(aten.max.dim)(_extremum("Max"))
converts(aten.min.dim)(_extremum("Min"))


def _position(name):
    def convert(b, out, x, dim=None, keepdim=False):
        if x.dtype == torch.bool:
            x = b.cast(x, torch.int32)
        if dim is None or not len(x.shape):
            flat = b.reshape(x, (math.prod(x.shape),))
            return b.reshape(b.op(name, flat, axis=0, keepdims=0), out.shape)
        return b.op(name, x, axis=dim % len(x.shape), keepdims=int(keepdim))

    return convert


converts(aten.argmax.default)(_position("ArgMax"))
converts(aten.argmin.default)(_position("ArgMin"))


def _of_bools(name):
    def convert(b, out, x, dims=None, keepdim=False):
        made = reduced(b, name, b.cast(b.cast(x, torch.bool), torch.int32), dims, keepdim)
        made.shape, made.dtype = tuple(out.shape), torch.int32
        return b.cast(made, torch.bool)

    return convert


converts(aten.any.default, aten.any.dim, aten.any.dims)(_of_bools("ReduceMax"))
converts(aten.all.default, aten.all.dim, aten.all.dims)(_of_bools("ReduceMin"))


def moments(b, out, x, dims, correction, keepdim):
    """(variance, mean) with `keepdim`."""
    count = math.prod(x.shape[axis] for axis in axes_of(x, dims))
    correction = 1 if correction is None else correction
    mean = reduced(b, "ReduceMean", x, dims, True)
    away = b.op("Sub", x, mean)
    squares = b.op("Mul", away, away)
    squares.shape = x.shape
    total = reduced(b, "ReduceSum", squares, dims, True)
    left = max(0.0, float(count - correction))
    variance = b.op("Div", total, b.scalar(left, x.dtype))
    return variance, mean


@converts(aten.var_mean.correction)
def var_mean(b, out, x, dims=None, correction=None, keepdim=False):
    variance, mean = moments(b, out, x, dims, correction, keepdim)
    return b.reshape(variance, out[0].shape), b.reshape(mean, out[1].shape)


@converts(aten.var.correction)
def var(b, out, x, dims=None, correction=None, keepdim=False):
    return b.reshape(moments(b, out, x, dims, correction, keepdim)[0], out.shape)


@converts(aten.std.correction)
def std(b, out, x, dims=None, correction=None, keepdim=False):
    return b.reshape(b.op("Sqrt", moments(b, out, x, dims, correction, keepdim)[0]), out.shape)


NORMS = {1: "ReduceL1", 2: "ReduceL2"}


@converts(aten.linalg_vector_norm.default)
def vector_norm(b, out, x, order=2, dims=None, keepdim=False, dtype=None):
    x = b.cast(x, out.dtype)
    if order in NORMS:
        return reduced(b, NORMS[order], x, dims, keepdim)
    if order in (math.inf, -math.inf):
        size = b.op("Abs", x)
        size.shape = x.shape
        return reduced(b, "ReduceMax" if order > 0 else "ReduceMin", size, dims, keepdim)
    raise ConversionError("converter", f"the norm of order {order} is not among Rondo's operators")


def _softmax(name):
    def convert(b, out, x, dim, half_to_float=False):
        if half_to_float:
            x = b.cast(x, out.dtype)
        return x_softmax(b, out, name, x, dim)

    return convert


def x_softmax(b, out, name, x, dim):
    if not len(x.shape):
        return b.reshape(b.op(name, b.reshape(x, (1,)), axis=0), ())
    return b.op(name, x, axis=dim % len(x.shape))


converts(aten._softmax.default)(_softmax("Softmax"))
converts(aten._log_softmax.default)(_softmax("LogSoftmax"))


def _running(name):
    def convert(b, out, x, dim, dtype=None):
        x = b.cast(x, out.dtype)
        return b.op(name, x, b.scalar(dim % len(x.shape), torch.int64)) if len(x.shape) else x

    return convert


converts(aten.cumsum.default)(_running("CumSum"))
converts(aten.cumprod.default)(_running("CumProd"))
