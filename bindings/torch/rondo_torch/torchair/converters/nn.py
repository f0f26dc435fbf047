# SPDX-License-Identifier: Apache-2.0
"""Products, convolutions, pools, normalisations."""
import math

import torch

from ..registry import ConversionError, converts

aten = torch.ops.aten


def product(b, x, y, bias=None, alpha=1, beta=1):
    """Of two matrices; a transposed one is read as it lies."""
    inputs, attributes = [], {}
    for name, one in (("transA", x), ("transB", y)):
        if one.transposed is not None:
            attributes[name] = 1
        inputs.append(one if one.transposed is None else one.transposed)
    if bias is not None and beta != 0:
        inputs.append(bias)
        if beta != 1:
            attributes["beta"] = float(beta)
    if alpha != 1:
        attributes["alpha"] = float(alpha)
    if not attributes and len(inputs) == 2:
        return b.op("MatMul", *inputs)
    return b.op("Gemm", *inputs, **attributes)


@converts(aten.mm.default)
def mm(b, out, x, y):
    return product(b, x, y)


@converts(aten.addmm.default)
def addmm(b, out, bias, x, y, beta=1, alpha=1):
    return product(b, x, y, bias, alpha, beta)


@converts(aten.bmm.default, aten.mv.default, aten.dot.default, aten.matmul.default)
def matmul(b, out, x, y):
    return b.op("MatMul", x, y)


@converts(aten.baddbmm.default)
def baddbmm(b, out, bias, x, y, beta=1, alpha=1):
    made = b.op("MatMul", x, y)
    if alpha != 1:
        made = b.op("Mul", made, b.scalar(alpha, out.dtype))
    if beta == 0:
        return made
    return b.op("Add", bias if beta == 1 else b.op("Mul", bias, b.scalar(beta, out.dtype)), made)


@converts(aten.linear.default)
def linear(b, out, x, weight, bias=None):
    if len(x.shape) == 2:
        return b.op("Gemm", x, weight, *([bias] if bias is not None else []), transB=1)
    flat = b.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
    made = b.op("Gemm", flat, weight, *([bias] if bias is not None else []), transB=1)
    return b.op("Reshape", made, b.ints(out.shape))


def widened(values, count):
    values = [values] if isinstance(values, int) else list(values)
    return values * count if len(values) == 1 else values


@converts(aten.convolution.default)
def convolution(b, out, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    if transposed:
        raise ConversionError("converter", "transposed convolutions are not among Rondo's operators")
    spatial = len(weight.shape) - 2
    pads = widened(padding, spatial)
    inputs = [x, weight] + ([bias] if bias is not None else [])
    if len(x.shape) == spatial + 1:
        raise ConversionError("converter", "a convolution without the axis of the batch")
    attributes = {"strides": widened(stride, spatial), "pads": pads + pads, "group": groups,
                  "dilations": widened(dilation, spatial), "kernel_shape": list(weight.shape[2:])}
    made = b.op("Conv", *inputs, **attributes)
    made.convolution = (inputs, attributes)
    return made


def with_batch(b, x, spatial):
    """x with the axis of the batch, which pools may be without."""
    if len(x.shape) == spatial + 2:
        return x
    return b.reshape(x, (1, *x.shape))


def _window(spatial, kernel, stride, padding):
    kernel = widened(kernel, spatial)
    pads = widened(padding, spatial)
    return {"kernel_shape": kernel, "strides": widened(stride, spatial) if stride else kernel, "pads": pads + pads}


def _max_pool(spatial):
    def convert(b, out, x, kernel, stride=(), padding=0, dilation=1, ceil_mode=False):
        wide = with_batch(b, x, spatial)
        options = _window(spatial, kernel, stride, padding)
        if ceil_mode:
            options["ceil_mode"] = 1
        if any(one != 1 for one in widened(dilation, spatial)):
            options["dilations"] = widened(dilation, spatial)
        wanted = b.is_wanted(1)
        made = b.node("MaxPool", [wide], 2 if wanted else 1, options)
        values = made[0]
        if wide is not x:
            values = b.op("Reshape", values, b.ints(out[0].shape))
        if not wanted:
            return values, None
        # Rondo counts positions through the whole tensor, PyTorch through each plane.
        plane = math.prod(x.shape[-spatial:])
        positions = b.op("Mod", made[1], b.scalar(plane, torch.int64))
        return values, b.op("Reshape", positions, b.ints(out[1].shape))

    return convert


converts(aten.max_pool2d_with_indices.default)(_max_pool(2))
converts(aten.max_pool3d_with_indices.default)(_max_pool(3))


def _avg_pool(spatial):
    def convert(b, out, x, kernel, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        if divisor_override:
            raise ConversionError("converter", "a divisor of one's own is not among Rondo's operators")
        options = _window(spatial, kernel, stride, padding)
        options["count_include_pad"] = int(count_include_pad)
        if ceil_mode:
            options["ceil_mode"] = 1
        wide = with_batch(b, x, spatial)
        made = b.op("AveragePool", wide, **options)
        return made if wide is x else b.op("Reshape", made, b.ints(out.shape))

    return convert


converts(aten.avg_pool1d.default)(_avg_pool(1))
converts(aten.avg_pool2d.default)(_avg_pool(2))
converts(aten.avg_pool3d.default)(_avg_pool(3))


def adaptive_window(x, size, spatial):
    """The one window that every output has, where the sizes divide."""
    sizes = widened(size, spatial)
    have = list(x.shape[-spatial:])
    if any(one == 0 or have_ % one for one, have_ in zip(sizes, have)):
        raise ConversionError("converter", f"windows of several sizes ({have} to {sizes}) are not among Rondo's operators")
    return [have_ // one for one, have_ in zip(sizes, have)]


def _adaptive_avg(spatial):
    def convert(b, out, x, size):
        kernel = adaptive_window(x, size, spatial)
        wide = with_batch(b, x, spatial)
        made = b.op("AveragePool", wide, kernel_shape=kernel, strides=kernel, pads=[0] * (2 * spatial))
        return made if wide is x else b.op("Reshape", made, b.ints(out.shape))

    return convert


converts(aten._adaptive_avg_pool2d.default)(_adaptive_avg(2))
converts(aten._adaptive_avg_pool3d.default)(_adaptive_avg(3))


def with_the_norm_in_it(b, convolution, weight, bias, mean, variance, eps):
    """A convolution whose weights are known, and the norm of its result, as one convolution. None: they are not known."""
    inputs, attributes = convolution
    known = [one.value for one in (*inputs[1:], weight, bias, mean, variance)]
    if any(one is None for one in known):
        return None
    kernel, *beside = [one.detach().double() for one in known]
    weight, bias, mean, variance = beside[-4:]
    scale = weight / torch.sqrt(variance + eps)
    shifted = (beside[0] if len(beside) == 5 else torch.zeros_like(mean)) - mean
    kernel = kernel * scale.reshape(-1, *[1] * (kernel.dim() - 1))
    both = [b.constant(one.to(known[0].dtype), "norm") for one in (kernel, shifted * scale + bias)]
    return b.op("Conv", inputs[0], *both, **attributes)


@converts(aten._native_batch_norm_legit_no_training.default)
def batch_norm(b, out, x, weight, bias, mean, variance, momentum, eps):
    channels = x.shape[1]
    if weight is None:
        weight = b.constant(torch.ones(channels, dtype=x.dtype), "ones")
    if bias is None:
        bias = b.constant(torch.zeros(channels, dtype=x.dtype), "zeros")
    if b.is_wanted(1) and out[1].numel() or b.is_wanted(2) and out[2].numel():
        raise ConversionError("converter", "the statistics of a batch norm in evaluation are not computed")
    made = with_the_norm_in_it(b, x.convolution, weight, bias, mean, variance, eps) if x.convolution is not None else None
    if made is None:
        made = b.op("BatchNormalization", x, weight, bias, mean, variance, epsilon=eps)
    nothing = b.constant(torch.empty(0, dtype=x.dtype), "nothing") if b.is_wanted(1) or b.is_wanted(2) else None
    return made, nothing, nothing


@converts(aten.native_layer_norm.default)
def layer_norm(b, out, x, shape, weight, bias, eps):
    inner = tuple(shape)
    if weight is None:
        weight = b.constant(torch.ones(inner, dtype=x.dtype), "ones")
    inputs = [x, weight] + ([bias] if bias is not None else [])
    wanted = b.is_wanted(1) or b.is_wanted(2)
    made = b.node("LayerNormalization", inputs, 3 if wanted else 1, {"axis": len(x.shape) - len(inner), "epsilon": eps})
    return (made[0], made[1], made[2]) if wanted else (made[0], None, None)


@converts(aten.native_group_norm.default)
def group_norm(b, out, x, weight, bias, batch, channels, plane, groups, eps):
    if b.is_wanted(1) or b.is_wanted(2):
        raise ConversionError("converter", "the statistics of a group norm are not computed")
    if weight is None:
        weight = b.constant(torch.ones(channels, dtype=x.dtype), "ones")
    if bias is None:
        bias = b.constant(torch.zeros(channels, dtype=x.dtype), "zeros")
    return b.op("GroupNormalization", x, weight, bias, num_groups=groups, epsilon=eps), None, None
