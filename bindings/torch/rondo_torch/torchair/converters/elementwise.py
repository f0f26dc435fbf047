# SPDX-License-Identifier: Apache-2.0
"""One result for each element: functions of one tensor, of two that are broadcast, comparisons, choices, casts."""
import math

import torch

from ..ge import Tensor
from ..registry import ConversionError, converts

aten = torch.ops.aten

# ATen's operator -> Rondo's, in the type of the result.
UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "hardswish": "HardSwish",
    "log": "Log", "mish": "Mish", "neg": "Neg", "reciprocal": "Reciprocal", "relu": "Relu", "round": "Round",
    "sgn": "Sign", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan",
    "tanh": "Tanh",
}
TESTS = {"isinf": "IsInf", "isnan": "IsNaN"}
# Both in the type that PyTorch promotes them to; the second name is negated.
COMPARE = {"eq": ("Equal", False), "ne": ("Equal", True), "lt": ("Less", False), "gt": ("Greater", False),
           "le": ("LessOrEqual", False), "ge": ("GreaterOrEqual", False)}
LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
BITWISE = {"bitwise_and": ("And", "BitwiseAnd"), "bitwise_or": ("Or", "BitwiseOr"), "bitwise_xor": ("Xor", "BitwiseXor")}


def promoted(*operands):
    """The type that PyTorch computes in."""
    fakes = [torch.empty(one.shape, dtype=one.dtype, device="meta") if isinstance(one, Tensor) else one for one in operands]
    return torch.result_type(*fakes)


def to_bool(b, value):
    return b.cast(value, torch.bool)


def _unary(name):
    def convert(b, out, x):
        return b.op(name, b.cast(x, out.dtype))

    return convert


for _name, _operator in UNARY.items():
    converts(getattr(aten, _name).default)(_unary(_operator))


def _test(name):
    def convert(b, out, x):
        if not x.dtype.is_floating_point:
            raise ConversionError("converter", f"of {x.dtype} there is nothing to test")
        return b.op(name, x)

    return convert


for _name, _operator in TESTS.items():
    converts(getattr(aten, _name).default)(_test(_operator))


def _binary(name):
    def convert(b, out, x, y):
        return b.op(name, b.cast(x, out.dtype), b.cast(y, out.dtype))

    return convert


converts(aten.mul.Tensor, aten.mul.Scalar)(_binary("Mul"))
converts(aten.maximum.default)(_binary("Max"))
converts(aten.minimum.default)(_binary("Min"))
converts(aten.pow.Tensor_Tensor, aten.pow.Scalar)(_binary("Pow"))


@converts(aten.add.Tensor, aten.add.Scalar)
def add(b, out, x, y, alpha=1):
    return _sum(b, out, "Add", x, y, alpha)


@converts(aten.sub.Tensor, aten.sub.Scalar)
def sub(b, out, x, y, alpha=1):
    return _sum(b, out, "Sub", x, y, alpha)


@converts(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(b, out, x, y, alpha=1):
    return b.op("Sub", b.cast(y, out.dtype), _scaled(b, out, x, alpha))


def _scaled(b, out, value, alpha):
    value = b.cast(value, out.dtype)
    return value if alpha == 1 else b.op("Mul", value, b.scalar(alpha, out.dtype))


def _sum(b, out, name, x, y, alpha):
    x = b.cast(x, out.dtype)
    if out.dtype == torch.bool:
        if alpha != 1 or name == "Sub":
            raise ConversionError("converter", "of bool values only sums are computed")
        return b.op("Or", x, b.cast(y, torch.bool))
    return b.op(name, x, _scaled(b, out, y, alpha))


@converts(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor)
def div(b, out, x, y):
    return b.op("Div", b.cast(x, out.dtype), b.cast(y, out.dtype))


@converts(aten.div.Tensor_mode, aten.div.Scalar_mode)
def div_mode(b, out, x, y, rounding_mode=None):
    x, y = b.cast(x, out.dtype), b.cast(y, out.dtype)
    if rounding_mode == "floor":
        return _floor_of_quotient(b, out, x, y)
    quotient = b.op("Div", x, y)
    if rounding_mode is None or not out.dtype.is_floating_point:  # whole numbers are divided towards zero
        return quotient
    return trunc(b, out, quotient)


def _differ_in_sign(b, one, other, zero):
    return b.op("Xor", b.op("Less", one, zero), b.op("Less", other, zero))


def _is_not(b, value, zero):
    return b.op("Not", b.op("Equal", value, zero))


def _floor_of_quotient(b, out, x, y):
    """Down where something is left over and the signs differ. Of floats not the floor of the quotient, which may have been
    rounded up to the next whole number (1 // 0.1 is 9), but, as in PyTorch, of (x - x mod y) / y, which is nearly whole."""
    zero, one = b.scalar(0, out.dtype), b.scalar(1, out.dtype)
    if not out.dtype.is_signed:
        return b.op("Div", x, y)
    left = b.op("Mod", x, y, fmod=1)
    down = b.op("And", _is_not(b, left, zero), _differ_in_sign(b, left, y, zero))
    if not out.dtype.is_floating_point:
        quotient = b.op("Div", x, y)
        return b.op("Where", down, b.op("Sub", quotient, one), quotient)
    near = b.op("Div", b.op("Sub", x, left), y)
    near = b.op("Where", down, b.op("Sub", near, one), near)
    floor = b.op("Floor", near)
    above = b.op("Greater", b.op("Sub", near, floor), b.scalar(0.5, out.dtype))
    floor = b.op("Where", above, b.op("Add", floor, one), floor)
    plain = b.op("Div", x, y)
    floor = b.op("Where", b.op("Equal", near, zero), b.op("Mul", plain, zero), floor)  # a zero of the quotient's sign
    return b.op("Where", b.op("Equal", y, zero), plain, floor)


@converts(aten.trunc.default)
def trunc(b, out, x):
    return b.op("Mul", b.op("Sign", x), b.op("Floor", b.op("Abs", x)))


@converts(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(b, out, x, y):
    return b.op("Mod", b.cast(x, out.dtype), b.cast(y, out.dtype), fmod=1)


@converts(aten.remainder.Tensor, aten.remainder.Scalar)
def remainder(b, out, x, y):
    x, y = b.cast(x, out.dtype), b.cast(y, out.dtype)
    if not out.dtype.is_floating_point:
        return b.op("Mod", x, y, fmod=0)
    zero = b.scalar(0, out.dtype)
    left = b.op("Mod", x, y, fmod=1)
    other = b.op("And", _is_not(b, left, zero), _differ_in_sign(b, left, y, zero))
    return b.op("Where", other, b.op("Add", left, y), left)


@converts(aten.pow.Tensor_Scalar)
def pow_scalar(b, out, x, exponent):
    x = b.cast(x, out.dtype)
    if exponent == 2:
        return b.op("Mul", x, x)
    if exponent == 0.5 and out.dtype.is_floating_point:
        return b.op("Sqrt", x)
    if exponent == -0.5 and out.dtype.is_floating_point:
        return b.op("Reciprocal", b.op("Sqrt", x))
    return b.op("Pow", x, b.scalar(exponent, out.dtype))


@converts(aten.square.default)
def square(b, out, x):
    return b.op("Mul", b.cast(x, out.dtype), b.cast(x, out.dtype))


@converts(aten.rsqrt.default)
def rsqrt(b, out, x):
    return b.op("Reciprocal", b.op("Sqrt", b.cast(x, out.dtype)))


def _log_of_base(base):
    def convert(b, out, x):
        return b.op("Mul", b.op("Log", b.cast(x, out.dtype)), b.scalar(1 / math.log(base), out.dtype))

    return convert


converts(aten.log2.default)(_log_of_base(2.0))
converts(aten.log10.default)(_log_of_base(10.0))


@converts(aten.exp2.default)
def exp2(b, out, x):
    return b.op("Pow", b.scalar(2.0, out.dtype), b.cast(x, out.dtype))


@converts(aten.log1p.default)
def log1p(b, out, x):
    """log(u) * x / (u - 1) with u = 1 + x, which has lost nothing where u - 1 has lost the same; x itself where u is 1."""
    x, one = b.cast(x, out.dtype), b.scalar(1.0, out.dtype)
    u = b.op("Add", x, one)
    made = b.op("Mul", b.op("Log", u), b.op("Div", x, b.op("Sub", u, one)))
    made = b.op("Where", b.op("IsInf", u), u, made)
    return b.op("Where", b.op("Equal", u, one), x, made)


@converts(aten.expm1.default)
def expm1(b, out, x):
    """(u - 1) * x / log(u) with u = exp(x), in the same way."""
    x, one = b.cast(x, out.dtype), b.scalar(1.0, out.dtype)
    u = b.op("Exp", x)
    below = b.op("Sub", u, one)
    made = b.op("Mul", below, b.op("Div", x, b.op("Log", u)))
    near = b.op("Less", b.op("Abs", x), one)
    return b.op("Where", b.op("Equal", u, one), x, b.op("Where", near, made, below))


# ---------------------------------------------------------------------------------------------- comparison, logic


def _compare(name, negated):
    def convert(b, out, x, y):
        dtype = promoted(x, y)
        if dtype == torch.bool and name != "Equal":
            dtype = torch.int32
        made = b.op(name, b.cast(x, dtype), b.cast(y, dtype))
        return b.op("Not", made) if negated else made

    return convert


for _name, (_operator, _negated) in COMPARE.items():
    converts(getattr(aten, _name).Tensor, getattr(aten, _name).Scalar)(_compare(_operator, _negated))


def _logical(name):
    def convert(b, out, x, y):
        return b.op(name, to_bool(b, x), to_bool(b, y))

    return convert


for _name, _operator in LOGICAL.items():
    converts(getattr(aten, _name).default)(_logical(_operator))


def _bitwise(of_bools, of_integers):
    def convert(b, out, x, y):
        name = of_bools if out.dtype == torch.bool else of_integers
        return b.op(name, b.cast(x, out.dtype), b.cast(y, out.dtype))

    return convert


for _name, (_bools, _integers) in BITWISE.items():
    converts(getattr(aten, _name).Tensor, getattr(aten, _name).Scalar)(_bitwise(_bools, _integers))


@converts(aten.logical_not.default)
def logical_not(b, out, x):
    return b.op("Not", to_bool(b, x))


@converts(aten.bitwise_not.default)
def bitwise_not(b, out, x):
    return b.op("Not" if out.dtype == torch.bool else "BitwiseNot", x)


# ------------------------------------------------------------------------------------------------------- choices


@converts(aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar)
def where(b, out, condition, x, y):
    return b.op("Where", to_bool(b, condition), b.cast(x, out.dtype), b.cast(y, out.dtype))


@converts(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(b, out, x, mask, value):
    return b.op("Where", to_bool(b, mask), b.cast(value, out.dtype), x)


def clip(b, out, x, low, high):
    """The lower bound first: where they cross, the upper one wins in both."""
    x = b.cast(x, out.dtype)
    return b.op("Clip", x, *[None if one is None else b.cast(one, out.dtype) for one in (low, high)])


@converts(aten.clamp.default, aten.hardtanh.default)
def clamp(b, out, x, low=None, high=None):
    if low is None and high is None:
        low, high = -1.0, 1.0  # of hardtanh; clamp has one at least
    return clip(b, out, x, low, high)


@converts(aten.clamp.Tensor)
def clamp_tensor(b, out, x, low=None, high=None):
    x = b.cast(x, out.dtype)
    if low is not None:
        x = b.op("Max", x, b.cast(low, out.dtype))
    return x if high is None else b.op("Min", x, b.cast(high, out.dtype))


@converts(aten.clamp_min.default)
def clamp_min(b, out, x, low):
    return clip(b, out, x, low, None)


@converts(aten.clamp_max.default)
def clamp_max(b, out, x, high):
    return clip(b, out, x, None, high)


@converts(aten.relu6.default)
def relu6(b, out, x):
    return clip(b, out, x, 0, 6)


@converts(aten.threshold.default)
def threshold(b, out, x, limit, value):
    return b.op("Where", b.op("LessOrEqual", x, b.scalar(limit, x.dtype)), b.scalar(value, x.dtype), x)


@converts(aten.threshold_backward.default)
def threshold_backward(b, out, gradient, x, limit):
    return b.op("Where", b.op("LessOrEqual", x, b.scalar(limit, x.dtype)), b.scalar(0, out.dtype), gradient)


# ---------------------------------------------------------------------------------------------------- activations


@converts(aten.gelu.default)
def gelu(b, out, x, approximate="none"):
    return b.op("Gelu", x, approximate=approximate)


@converts(aten.silu.default)
def silu(b, out, x):
    return b.op("Mul", x, b.op("Sigmoid", x))


@converts(aten.leaky_relu.default)
def leaky_relu(b, out, x, negative_slope=0.01):
    return b.op("LeakyRelu", x, alpha=negative_slope)


@converts(aten.elu.default)
def elu(b, out, x, alpha=1.0, scale=1.0, input_scale=1.0):
    if input_scale != 1:
        raise ConversionError("converter", "an elu with an input_scale is not among Rondo's operators")
    made = b.op("Elu", x, alpha=alpha)
    return made if scale == 1 else b.op("Mul", made, b.scalar(scale, out.dtype))


@converts(aten.celu.default)
def celu(b, out, x, alpha=1.0):
    return b.op("Celu", x, alpha=float(alpha))


@converts(aten.hardsigmoid.default)
def hardsigmoid(b, out, x):
    return b.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)


@converts(aten.softplus.default)
def softplus(b, out, x, beta=1, limit=20):
    """PyTorch goes over to the identity above a limit; there the two differ by less than one rounding."""
    if beta * limit < 20 and limit != 20:
        raise ConversionError("converter", f"softplus with a threshold of {limit} is not among Rondo's operators")
    if beta == 1:
        return b.op("Softplus", x)
    return b.op("Div", b.op("Softplus", b.op("Mul", x, b.scalar(beta, x.dtype))), b.scalar(beta, x.dtype))


@converts(aten.hardshrink.default)
def hardshrink(b, out, x, limit=0.5):
    return b.op("Shrink", x, lambd=limit, bias=0.0)


@converts(aten.softshrink.default)
def softshrink(b, out, x, limit=0.5):
    return b.op("Shrink", x, lambd=limit, bias=limit)


@converts(aten._prelu_kernel.default)
def prelu(b, out, x, weight):
    return b.op("PRelu", x, weight)


@converts(aten.addcmul.default)
def addcmul(b, out, x, y, z, value=1):
    product = b.op("Mul", b.cast(y, out.dtype), b.cast(z, out.dtype))
    return b.op("Add", b.cast(x, out.dtype), product if value == 1 else b.op("Mul", product, b.scalar(value, out.dtype)))


@converts(aten.addcdiv.default)
def addcdiv(b, out, x, y, z, value=1):
    quotient = b.op("Div", b.cast(y, out.dtype), b.cast(z, out.dtype))
    return b.op("Add", b.cast(x, out.dtype), quotient if value == 1 else b.op("Mul", quotient, b.scalar(value, out.dtype)))


# ----------------------------------------------------------------------------------------------------------- casts


@converts(aten._to_copy.default)
def to_copy(b, out, x, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    return b.cast(x, out.dtype)


@converts(torch.ops.prims.convert_element_type.default)
def convert_element_type(b, out, x, dtype):
    return b.cast(x, out.dtype)


@converts(aten.copy.default)
def copy(b, out, x, source, non_blocking=False):
    source = b.cast(source, out.dtype)
    return source if tuple(source.shape) == tuple(out.shape) else b.op("Expand", source, b.ints(out.shape))


@converts(aten.alias.default, aten.clone.default, aten.detach.default, aten.lift_fresh_copy.default,
          aten.lift_fresh.default, aten.contiguous.default)
def same(b, out, x, memory_format=None):
    return x
