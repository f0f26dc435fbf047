# SPDX-License-Identifier: Apache-2.0
"""What changes where elements lie and not what they are; and tensors that are known while the graph is built."""
import torch

from ..ge import Tensor
from ..registry import ConversionError, converts

aten = torch.ops.aten
LAST = (1 << 63) - 1
CONSTANT_ELEMENTS_MAX = 1 << 24

# Whatever PyTorch says that the shape is.
RESHAPES = ("view.default", "_unsafe_view.default", "reshape.default", "squeeze.default", "squeeze.dim", "squeeze.dims",
            "unsqueeze.default", "flatten.using_ints", "view_copy.default", "_reshape_alias.default")
# Made of numbers alone: PyTorch makes them while the graph is built.
FACTORIES = ("full.default", "zeros.default", "ones.default", "arange.default", "arange.start", "arange.start_step",
             "linspace.default", "eye.default", "eye.m", "scalar_tensor.default", "tril_indices.default",
             "triu_indices.default")
LIKE = {"full_like.default": None, "zeros_like.default": 0, "ones_like.default": 1, "new_full.default": None,
        "new_zeros.default": 0, "new_ones.default": 1}


def overload(name):
    packet, _, which = name.partition(".")
    return getattr(getattr(aten, packet), which)


def _reshape(b, out, x, *_, **__):
    return b.reshape(x, out.shape)


converts(*[overload(name) for name in RESHAPES if hasattr(aten, name.partition(".")[0])])(_reshape)


def _factory(name):
    function = overload(name)

    def convert(b, out, *args, **kwargs):
        if any(isinstance(one, Tensor) for one in args):
            raise ConversionError("converter", "its arguments are known only when it runs")
        if out.numel() > CONSTANT_ELEMENTS_MAX:
            raise ConversionError("converter", f"a constant of {out.numel()} elements is not put into a plan")
        kwargs = {key: value for key, value in kwargs.items() if key not in ("device", "pin_memory", "layout")}
        return b.constant(function(*args, **kwargs, device="cpu"), name.partition(".")[0])

    return convert


for _name in FACTORIES:
    converts(overload(_name))(_factory(_name))


def filled(b, out, value):
    return b.op("Expand", b.scalar(value, out.dtype), b.ints(out.shape)) if out.dim() else b.scalar(value, out.dtype)


def _like(name, value):
    def convert(b, out, x, *args, **_):
        given = value
        if given is None:
            given = args[-1]
        return filled(b, out, given)

    return convert


for _name, _value in LIKE.items():
    converts(overload(_name))(_like(_name, _value))


@converts(aten.fill.Scalar)
def fill(b, out, x, value):
    return filled(b, out, value)


@converts(torch.ops.prims.iota.default)
def iota(b, out, length, start=0, step=1, dtype=None, device=None, requires_grad=False):
    return b.constant(torch.arange(start, start + step * length, step, dtype=out.dtype), "iota")


def transpose(b, x, order):
    order = [axis % len(order) for axis in order] if order else []
    if order == list(range(len(order))):
        return x
    made = b.op("Transpose", x, perm=order)
    if order == [1, 0]:
        made.transposed = x
    return made


@converts(aten.permute.default, aten.permute_copy.default)
def permute(b, out, x, order):
    return transpose(b, x, list(order))


@converts(aten.transpose.int)
def transpose_int(b, out, x, first, second):
    order = list(range(out.dim()))
    if order:
        order[first], order[second] = order[second], order[first]
    return transpose(b, x, order)


@converts(aten.t.default)
def t(b, out, x):
    return transpose(b, x, [1, 0]) if out.dim() == 2 else x


@converts(aten.expand.default, aten.broadcast_to.default)
def expand(b, out, x, *_, **__):
    if tuple(x.shape) == tuple(out.shape):
        return x
    return b.op("Expand", x, b.ints(out.shape))


@converts(aten.repeat.default, aten.tile.default)
def repeat(b, out, x, counts):
    counts = [1] * (out.dim() - len(counts)) + list(counts)
    shape = (1,) * (out.dim() - len(x.shape)) + tuple(x.shape)
    return b.op("Tile", b.reshape(x, shape), b.ints(counts))


def cut(b, x, axis, start, end, step=1):
    return b.op("Slice", x, b.ints([start]), b.ints([end]), b.ints([axis]), b.ints([step]))


@converts(aten.slice.Tensor)
def slice_tensor(b, out, x, dim=0, start=None, end=None, step=1):
    if tuple(x.shape) == tuple(out.shape):
        return x
    return cut(b, x, dim % len(x.shape), 0 if start is None else start, LAST if end is None else end, step)


def _replaced(b, x, part, dim, start, end):
    """x with `part` in the place of start:end of an axis."""
    size = x.shape[dim]
    pieces = [cut(b, x, dim, 0, start)] if start > 0 else []
    pieces.append(part)
    if end < size:
        pieces.append(cut(b, x, dim, end, size))
    return part if len(pieces) == 1 else b.op("Concat", *pieces, axis=dim)


@converts(aten.slice_scatter.default)
def slice_scatter(b, out, x, part, dim=0, start=None, end=None, step=1):
    dim %= out.dim()
    start, end, step = slice(start, end, step).indices(out.shape[dim])
    part = b.cast(part, out.dtype)
    if not part.shape[dim]:
        return x
    if step == 1:
        return _replaced(b, x, part, dim, start, end)
    places = torch.arange(start, end, step).reshape(-1, *[1] * (out.dim() - dim - 1)).expand(tuple(part.shape))
    return b.op("ScatterElements", x, b.constant(places.contiguous(), "places"), part, axis=dim)


@converts(aten.select_scatter.default)
def select_scatter(b, out, x, part, dim, index):
    dim, index = dim % out.dim(), index % out.shape[dim]
    part = b.reshape(b.cast(part, out.dtype), (*out.shape[:dim], 1, *out.shape[dim + 1:]))
    return _replaced(b, x, part, dim, index, index + 1)


def _places(x, size, stride, offset):
    """The numbers in x, element by element, of a view that is told by its steps through memory."""
    like = x.like
    if like is None or not like.is_contiguous() or like.storage_offset() != 0:
        raise ConversionError("converter", "a view by steps through the memory of what does not lie there in order")
    places = torch.tensor(offset or 0)
    for length, step in zip(size, stride):
        places = places.unsqueeze(-1) + torch.arange(length) * step
    if places.numel() > CONSTANT_ELEMENTS_MAX:
        raise ConversionError("converter", f"a constant of {places.numel()} elements is not put into a plan")
    if places.numel() and int(places.max()) >= like.numel():
        raise ConversionError("converter", "a view by steps that lead out of its tensor")
    return places


@converts(aten.as_strided.default)
def as_strided(b, out, x, size, stride, offset=None):
    places = _places(x, size, stride, offset)
    return b.op("Gather", b.reshape(x, (x.like.numel(),)), b.constant(places, "places"), axis=0)


@converts(aten.as_strided_scatter.default)
def as_strided_scatter(b, out, x, part, size, stride, offset=None):
    places = _places(x, size, stride, offset).reshape(-1)
    if places.unique().numel() != places.numel():
        raise ConversionError("converter", "a view by steps that writes elements more than once")
    flat = b.op("ScatterElements", b.reshape(x, (x.like.numel(),)), b.constant(places, "places"),
                b.reshape(b.cast(part, out.dtype), (places.numel(),)), axis=0)
    return b.reshape(flat, out.shape)


@converts(aten.select.int)
def select(b, out, x, dim, index):
    return b.op("Gather", x, b.scalar(index, torch.int64), axis=dim % len(x.shape))


def _split(b, x, dim, sizes):
    if len(sizes) == 1:
        return [x]
    return b.node("Split", [x, b.ints(sizes)], len(sizes), {"axis": dim % len(x.shape)})


@converts(aten.split.Tensor, aten.split_with_sizes.default)
def split(b, out, x, sizes, dim=0):
    return _split(b, x, dim, [one.shape[dim] for one in out])


@converts(aten.unbind.int)
def unbind(b, out, x, dim=0):
    return [b.op("Gather", x, b.scalar(i, torch.int64), axis=dim % len(x.shape)) for i in range(len(out))]


@converts(aten.cat.default)
def cat(b, out, tensors, dim=0):
    # A tensor of shape [0] goes with any other.
    tensors = [b.cast(one, out.dtype) for one in tensors if tuple(one.shape) != (0,) or out.dim() == 1]
    return tensors[0] if len(tensors) == 1 else b.op("Concat", *tensors, axis=dim % out.dim())


@converts(aten.stack.default)
def stack(b, out, tensors, dim=0):
    dim %= out.dim()
    shape = tuple(out.shape[:dim]) + (1,) + tuple(out.shape[dim + 1:])
    return b.op("Concat", *[b.reshape(b.cast(one, out.dtype), shape) for one in tensors], axis=dim)


@converts(aten.flip.default)
def flip(b, out, x, dims):
    for dim in dims:
        x = cut(b, x, dim % out.dim(), -1, -LAST, -1)
    return x


@converts(aten.roll.default)
def roll(b, out, x, shifts, dims=()):
    if not dims:
        raise ConversionError("converter", "a roll of all elements in a row is not among Rondo's operators")
    for shift, dim in zip(shifts, dims):
        dim %= out.dim()
        shift %= max(1, out.shape[dim])
        if shift:
            x = b.op("Concat", cut(b, x, dim, out.shape[dim] - shift, LAST), cut(b, x, dim, 0, out.shape[dim] - shift),
                     axis=dim)
    return x


def pads_of(pads, rank):
    """Those of the last axes, as PyTorch gives them, for all axes: begins, then ends."""
    begins, ends = [0] * rank, [0] * rank
    for i in range(len(pads) // 2):
        begins[rank - 1 - i], ends[rank - 1 - i] = pads[2 * i], pads[2 * i + 1]
    return begins + ends


@converts(aten.constant_pad_nd.default)
def constant_pad(b, out, x, pads, value=0):
    return b.op("Pad", x, b.ints(pads_of(pads, out.dim())), b.scalar(value, out.dtype), mode="constant")


def _pad(mode):
    def convert(b, out, x, pads):
        return b.op("Pad", x, b.ints(pads_of(pads, out.dim())), mode=mode)

    return convert


for _dims in ("1d", "2d", "3d"):
    converts(getattr(aten, f"reflection_pad{_dims}").default)(_pad("reflect"))
    converts(getattr(aten, f"replication_pad{_dims}").default)(_pad("edge"))


@converts(aten.pixel_shuffle.default)
def pixel_shuffle(b, out, x, factor):
    *outer, channels, height, width = x.shape
    split_ = b.reshape(x, (*outer, channels // factor ** 2, factor, factor, height, width))
    n = len(outer)
    turned = b.op("Transpose", split_, perm=[*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return b.reshape(turned, out.shape)


def _triangle(upper):
    def convert(b, out, x, diagonal=0):
        return b.op("Trilu", x, b.scalar(diagonal, torch.int64), upper=upper)

    return convert


converts(aten.tril.default)(_triangle(0))
converts(aten.triu.default)(_triangle(1))
