# SPDX-License-Identifier: Apache-2.0
"""Elements by their numbers."""
import torch

from ..ge import Tensor
from ..registry import ConversionError, converts

aten = torch.ops.aten


@converts(aten.embedding.default)
def embedding(b, out, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return b.op("Gather", weight, indices, axis=0)


@converts(aten.index_select.default)
def index_select(b, out, x, dim, indices):
    if not len(x.shape):
        raise ConversionError("converter", "a single number has no axis to select from")
    return b.op("Gather", x, b.reshape(indices, (out.shape[dim],)), axis=dim % len(x.shape))


@converts(aten.gather.default)
def gather(b, out, x, dim, indices, sparse_grad=False):
    if not len(x.shape):
        raise ConversionError("converter", "a single number has no axis to gather from")
    dim %= len(x.shape)
    for axis, size in enumerate(out.shape):  # PyTorch takes a corner of the other axes
        if axis != dim and size != x.shape[axis]:
            cut = b.op("Slice", x, b.ints([0]), b.ints([size]), b.ints([axis]))
            cut.shape, cut.dtype = (*x.shape[:axis], size, *x.shape[axis + 1:]), x.dtype
            x = cut
    return b.op("GatherElements", x, indices, axis=dim)


def stacked_indices(b, indices):
    """Indices of the first axes, broadcast and side by side, as GatherND and ScatterND have them."""
    shape = torch.broadcast_shapes(*[one.shape for one in indices])
    parts = []
    for one in indices:
        wide = b.cast(one, torch.int64)
        if tuple(one.shape) != tuple(shape):
            wide = b.op("Expand", wide, b.ints(shape))
        parts.append(b.op("Reshape", wide, b.ints((*shape, 1))))
    return parts[0] if len(parts) == 1 else b.op("Concat", *parts, axis=len(shape))


def _index_list(indices):
    """(the axis of the first index, the indices), which must follow one another."""
    given = [(axis, one) for axis, one in enumerate(indices) if one is not None]
    if any(one.dtype in (torch.bool, torch.uint8) for _, one in given):
        raise ConversionError("converter", "a mask picks as many elements as its values say: sizes of a plan are numbers")
    first = given[0][0]
    if [axis for axis, _ in given] != list(range(first, first + len(given))):
        raise ConversionError("converter", "indices with other axes between them are not among Rondo's operators")
    return first, [one for _, one in given]


@converts(aten.index.Tensor)
def index(b, out, x, indices):
    axis, given = _index_list(indices)
    if len(given) == 1:
        return b.op("Gather", x, given[0], axis=axis)
    if axis:
        raise ConversionError("converter", "several indices that do not begin at the first axis are not among Rondo's "
                              "operators")
    return b.op("GatherND", x, stacked_indices(b, given))


@converts(aten.index_put.default)
def index_put(b, out, x, indices, values, accumulate=False):
    axis, given = _index_list(indices)
    if axis:
        raise ConversionError("converter", "indices that do not begin at the first axis are not among Rondo's operators")
    shape = (*torch.broadcast_shapes(*[one.shape for one in given]), *x.shape[len(given):])
    if tuple(values.shape) != shape:
        values = b.op("Expand", values, b.ints(shape))
    return b.op("ScatterND", x, stacked_indices(b, given), values, reduction="add" if accumulate else "none")


def _scatter(b, out, x, dim, indices, source, reduction):
    if not len(x.shape):
        raise ConversionError("converter", "a single number has no axis to scatter along")
    if not isinstance(source, Tensor):
        source = b.op("Expand", b.scalar(source, x.dtype), b.ints(indices.shape))
    elif tuple(source.shape) != tuple(indices.shape):
        count = len(indices.shape)
        source = b.op("Slice", source, b.ints([0] * count), b.ints(indices.shape), b.ints(range(count)))
    return b.op("ScatterElements", x, indices, source, axis=dim % len(x.shape), reduction=reduction)


@converts(aten.scatter.src, aten.scatter.value)
def scatter(b, out, x, dim, indices, source):
    return _scatter(b, out, x, dim, indices, source, "none")


@converts(aten.scatter_add.default)
def scatter_add(b, out, x, dim, indices, source):
    return _scatter(b, out, x, dim, indices, source, "add")


@converts(aten.topk.default)
def topk(b, out, x, k, dim=-1, largest=True, sorted=True):
    return b.node("TopK", [x, b.ints([k])], 2, {"axis": dim % len(x.shape), "largest": int(largest), "sorted": 1})


@converts(aten.sort.default, aten.sort.stable)
def sort(b, out, x, *args, dim=-1, descending=False, stable=None):
    plain = [one for one in args if not (one is None)]
    dim = kwarg_or(plain, 0, dim)
    descending = kwarg_or(plain, 1, descending)
    if not len(x.shape):
        raise ConversionError("converter", "a single number is not sorted")
    dim %= len(x.shape)
    return b.node("TopK", [x, b.ints([x.shape[dim]])], 2, {"axis": dim, "largest": int(descending), "sorted": 1})


def kwarg_or(args, index, default):
    return args[index] if len(args) > index else default
