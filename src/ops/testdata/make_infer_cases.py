#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes infer_cases_*.inc: random nodes, and what ONNX Runtime makes of them.

For each operator it draws nodes, right ones and wrong ones, runs them, and notes the results' types and shapes, or that
the node was refused (by the runtime, or by onnx's own shape inference in strict mode). Needs numpy, onnx and
onnxruntime.

    python3 make_infer_cases.py
"""
import os
import random
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

OPSET = 23
I64MIN, I64MAX = -(2**63), 2**63 - 1
NP = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
      "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}
OF_NP = {np.dtype(v): k for k, v in NP.items()}
OF_NP[np.dtype(object)] = "str"
R = random.Random(20240607)
ort.set_default_logger_severity(4)


class Case:
    def __init__(self, op, attrs, inputs, outputs=1):
        # inputs: None (absent), or (dtype, shape, values or None)
        self.op, self.attrs, self.inputs, self.outputs = op, attrs, inputs, outputs


def data(dtype, shape, values):
    if values is not None:
        return np.array(values, NP[dtype]).reshape(shape)
    if dtype == "bool":
        return np.zeros(shape, np.bool_)
    return np.ones(shape, NP[dtype])


def model(case):
    names, feeds, inits, infos = [], {}, [], []
    for i, operand in enumerate(case.inputs):
        if operand is None:
            names.append("")
            continue
        dtype, shape, values = operand
        name = f"i{i}"
        names.append(name)
        array = data(dtype, shape, values)
        if values is None:
            feeds[name] = array
            infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
        else:
            inits.append(onnx.numpy_helper.from_array(array, name))
    outs = [f"o{i}" for i in range(case.outputs)]
    node = helper.make_node(case.op, names, outs, **case.attrs)
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=o) for o in outs], inits)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10), feeds


def oracle(case):
    """Results as [(dtype, shape)], None when refused, "skip" when the runtime has no kernel for the types."""
    proto, feeds = model(case)
    refused = False
    try:
        onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
    except Exception:
        refused = True
    try:
        session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        shapes = [(OF_NP[r.dtype], list(r.shape)) for r in session.run(None, feeds)]
    except Exception as error:
        if "NOT_IMPLEMENTED" in str(error):
            return "skip"
        shapes = None
    if refused and shapes is not None:
        print(f"inference refuses, runtime accepts: {text(case)} -> {shapes}", file=sys.stderr)
        return None
    return shapes


# ------------------------------------------------------------------------------------------------------- drawing

def dims(low=0, high=4, sizes=(1, 2, 3, 4, 5)):
    return [R.choice(sizes) for _ in range(R.randint(low, high))]


def axis(rank):
    return R.randint(-rank - (R.random() < 0.1), rank - (R.random() < 0.9)) if rank else R.choice([0, -1])


def broadcastable(shape):
    out = [1 if R.random() < 0.3 else s for s in shape][R.randint(0, len(shape)):]
    if R.random() < 0.1 and out:
        out[R.randrange(len(out))] += 1
    return out


UNARY = {"Abs": "f32 f64 i8 i64 u8", "Neg": "f32 f64 i8 i64", "Exp": "f32 f64", "Log": "f32 f64", "Sqrt": "f32 f64",
         "Reciprocal": "f32 f64", "Relu": "f32 f64 i8 i32", "Sigmoid": "f32 f64", "Tanh": "f32 f64", "Not": "bool"}
BINARY = {"Add": "f32 f64 i32 i64", "Sub": "f32 i64", "Mul": "f32 i64", "Div": "f32 i64", "And": "bool", "Or": "bool",
          "Equal": "f32 i64 bool", "Less": "f32 i64", "Greater": "f32 i64"}


MATH_UNARY = {op: "f32" for op in "Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Floor Gelu HardSigmoid "
              "HardSwish IsNaN IsInf Mish Round Selu Shrink Sin Sinh Softplus Softsign Tan ThresholdedRelu".split()}
MATH_UNARY.update(BitwiseNot="i8 u64", Sign="f32 i64")
MATH_BINARY = {"BitwiseAnd": "i8 u64", "BitwiseOr": "i32", "BitwiseXor": "i64", "GreaterOrEqual": "f32 i64",
               "LessOrEqual": "f32 i32", "Mod": "i32 i64", "PRelu": "f32", "Xor": "bool"}


def draw_math_unary(op):
    yield Case(op, {}, [(R.choice(MATH_UNARY[op].split()), dims(0, 4, (0, 1, 2, 3)), None)])


def draw_math_binary(op):
    shape, dtype = dims(), R.choice(MATH_BINARY[op].split())
    other = dtype if R.random() < 0.93 else R.choice(["f32", "i64", "bool"])
    pair = [(dtype, shape, None), (other, broadcastable(shape), None)]
    if op != "PRelu":
        R.shuffle(pair)
    yield Case(op, {}, pair)


def draw_shift():
    shape = dims()
    attrs = {"direction": R.choice(["LEFT", "RIGHT"])} if R.random() < 0.9 else {}
    yield Case("BitShift", attrs, [("u8", shape, None), ("u8", broadcastable(shape), None)])


def draw_castlike():
    yield Case("CastLike", {}, [(R.choice(list(NP)), dims(), None), (R.choice(list(NP)), dims(), None)])


def draw_unary(op):
    yield Case(op, {}, [(R.choice(UNARY[op].split()), dims(0, 4, (0, 1, 2, 3)), None)])


def draw_binary(op):
    shape, dtype = dims(), R.choice(BINARY[op].split())
    other = dtype if R.random() < 0.93 else R.choice(["f32", "i64", "bool"])
    pair = [(dtype, shape, None), (other, broadcastable(shape), None)]
    R.shuffle(pair)
    yield Case(op, {}, pair)


def draw_variadic(op):
    shape = dims()
    yield Case(op, {}, [("f32", shape if R.random() < 0.3 else broadcastable(shape), None)
                        for _ in range(R.randint(1, 4))])


def draw_pow():
    shape = dims()
    yield Case("Pow", {}, [(R.choice(["f32", "f64", "i32", "i64"]), shape, None),
                           (R.choice(["f32", "f64", "i32", "i64"]), broadcastable(shape), None)])


def draw_where():
    shape = dims()
    yield Case("Where", {}, [("bool" if R.random() < 0.95 else "f32", broadcastable(shape), None),
                             ("f32", shape, None), ("f32", broadcastable(shape), None)])


def draw_clip():
    bounds = [R.choice([None, ("f32", [], [0])]) for _ in range(2)]
    if R.random() < 0.15:
        bounds[0] = ("f32", [2], [0, 1])
    yield Case("Clip", {}, [("f32", dims(), None)] + bounds)


def draw_leaky():
    yield Case("LeakyRelu", {"alpha": 0.1} if R.random() < 0.5 else {}, [("f32", dims(), None)])


def draw_cast():
    yield Case("Cast", {"to": R.choice([1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13])},
               [(R.choice(["f32", "i64", "bool", "u8", "f64"]), dims(), None)])


def draw_reshape():
    shape = dims(0, 4, (0, 1, 2, 3, 4))
    total = int(np.prod(shape))
    target = []
    if R.random() < 0.85 and total:
        rest = total
        for _ in range(R.randint(0, 3)):
            size = R.choice([d for d in range(1, rest + 1) if rest % d == 0])
            target.append(size)
            rest //= size
        target.append(rest)
        if R.random() < 0.4:
            target[R.randrange(len(target))] = -1
        if R.random() < 0.3:
            at = R.randrange(len(target))
            if at < len(shape) and shape[at] == target[at]:
                target[at] = 0
    else:
        target = [R.choice([-1, 0, 0, 1, 2, 3]) for _ in range(R.randint(0, 4))]
    attrs = {"allowzero": R.choice([0, 1])} if R.random() < 0.4 else {}
    yield Case("Reshape", attrs, [("f32", shape, None), ("i64", [len(target)], target)])


def draw_flatten():
    shape = dims(0, 4, (0, 1, 2, 3))
    yield Case("Flatten", {"axis": R.randint(-len(shape) - 1, len(shape) + 1)} if R.random() < 0.8 else {},
               [("f32", shape, None)])


def draw_squeeze():
    shape = dims(0, 5, (1, 1, 1, 2, 3))
    if R.random() < 0.3:
        yield Case("Squeeze", {}, [("f32", shape, None)])
        return
    ones = [i for i, s in enumerate(shape) if s == 1]
    axes = R.sample(ones, R.randint(1, len(ones))) if ones else [0]
    if R.random() < 0.15:
        axes = [R.randint(-6, 6)]
    axes = [a - len(shape) if R.random() < 0.3 and a >= 0 else a for a in axes]
    yield Case("Squeeze", {}, [("f32", shape, None), ("i64", [len(axes)], axes)])


def draw_unsqueeze():
    shape = dims(0, 3)
    count = R.randint(0, 3)
    rank = len(shape) + count
    axes = R.sample(range(rank), count) if R.random() < 0.85 else [R.randint(-rank - 1, rank) for _ in range(count)]
    axes = [a - rank if R.random() < 0.4 and a >= 0 else a for a in axes]
    yield Case("Unsqueeze", {}, [("f32", shape, None), ("i64", [count], axes)])


def draw_identity():
    yield Case("Identity", {}, [("f32", dims(), None)])


def draw_transpose():
    shape = dims()
    perm = R.sample(range(len(shape)), len(shape))
    if R.random() < 0.15 and perm:
        perm[0] = R.choice([perm[-1], len(shape), -1])
    if R.random() < 0.1:
        perm = perm[1:] or [0, 1]
    yield Case("Transpose", {"perm": perm} if perm and R.random() < 0.8 else {}, [("f32", shape, None)])


def draw_shape():
    attrs = {}
    for name in ("start", "end"):
        if R.random() < 0.6:
            attrs[name] = R.choice([R.randint(-6, 6), I64MIN, I64MAX])
    yield Case("Shape", attrs, [("f32", dims(), None)])


def draw_size():
    yield Case("Size", {}, [("f32", dims(0, 4, (0, 1, 2, 3)), None)])


def draw_expand():
    shape = dims()
    yield Case("Expand", {}, [("f32", broadcastable(shape), None), ("i64", [len(shape)], shape)])
    target = broadcastable(shape)
    yield Case("Expand", {}, [("f32", shape, None), ("i64", [len(target)], target)])


def draw_constant_of_shape():
    shape = dims(0, 4, (0, 1, 2, 3))
    if R.random() < 0.1 and shape:
        shape[0] = -1
    attrs = {}
    if R.random() < 0.6:
        dtype = R.choice([TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE])
        count = 1 if R.random() < 0.9 else 2
        attrs["value"] = helper.make_tensor("v", dtype, [count], [1] * count)
    yield Case("ConstantOfShape", attrs, [("i64", [len(shape)], shape)])


def draw_concat():
    shape = dims(1, 4, (0, 1, 2, 3))
    at = R.randint(-len(shape), len(shape) - 1)
    inputs = []
    for _ in range(R.randint(1, 4)):
        own = list(shape)
        own[at] = R.choice([0, 1, 2, 3])
        if R.random() < 0.05:
            own[R.randrange(len(own))] += 1
        inputs.append(("f32", own, None))
    yield Case("Concat", {"axis": at if R.random() < 0.95 else len(shape)}, inputs)


def draw_split():
    shape = dims(1, 3, (1, 2, 3, 4, 6, 7))
    at = R.randint(-len(shape), len(shape) - 1)
    parts = R.randint(1, 4)
    if R.random() < 0.5:
        attrs = {"axis": at, "num_outputs": parts if R.random() < 0.9 else parts + 1}
        yield Case("Split", attrs, [("f32", shape, None)], parts)
        return
    cuts = sorted(R.randint(0, shape[at]) for _ in range(parts - 1))
    sizes = [b - a for a, b in zip([0] + cuts, cuts + [shape[at]])]
    if R.random() < 0.15:
        sizes[0] += R.choice([1, -1])
    yield Case("Split", {"axis": at}, [("f32", shape, None), ("i64", [parts], sizes)], parts)


def draw_slice():
    shape = dims(1, 4, (0, 1, 2, 3, 5, 8))
    count = R.randint(1, len(shape))
    axes = R.sample(range(len(shape)), count)
    if R.random() < 0.5:
        axes = [a - len(shape) if R.random() < 0.5 else a for a in axes]
    explicit = R.random() < 0.8
    bound = lambda: R.choice([R.randint(-9, 9), R.randint(-9, 9), R.randint(-9, 9), I64MIN, I64MAX, 2**31 - 1])
    starts, ends = [bound() for _ in range(count)], [bound() for _ in range(count)]
    steps = [R.choice([1, 1, 2, 3, -1, -2, -3, I64MAX, 0 if R.random() < 0.2 else 1]) for _ in range(count)]
    # Going backwards, the runtime takes the largest end for "to the very first"; the operator's text clamps it.
    ends = [I64MIN if s < 0 and e >= 2**31 - 1 else e for e, s in zip(ends, steps)]
    if R.random() < 0.05:
        axes[0] = len(shape)
    if R.random() < 0.05:
        ends = ends[1:]
    inputs = [("f32", shape, None), ("i64", [count], starts), ("i64", [len(ends)], ends)]
    if explicit:
        inputs.append(("i64", [count], axes))
        if R.random() < 0.7:
            inputs.append(("i64", [count], steps))
    yield Case("Slice", {}, inputs)


def draw_gather():
    shape, indices = dims(1, 4), dims(0, 3, (0, 1, 2, 3))
    yield Case("Gather", {"axis": axis(len(shape))} if R.random() < 0.8 else {},
               [("f32", shape, None), ("i64", indices, [0] * int(np.prod(indices)))])


def draw_pad():
    shape = dims(1, 4, (1, 2, 3, 4))
    mode = R.choice(["constant", "constant", "reflect", "edge", "wrap"])
    axes = R.sample(range(len(shape)), R.randint(1, len(shape))) if R.random() < 0.4 else None
    count = len(axes) if axes else len(shape)
    low = -2 if mode == "constant" else 0
    pads = [R.randint(low, 2) for _ in range(2 * count)]
    if mode == "reflect":
        pads = [min(p, shape[(axes or range(len(shape)))[i % count]] - 1) for i, p in enumerate(pads)]
    if R.random() < 0.07:
        pads = pads[1:]
    inputs = [("f32", shape, None), ("i64", [len(pads)], pads)]
    if axes:
        inputs += [None, ("i64", [count], [a - len(shape) if R.random() < 0.4 else a for a in axes])]
    elif R.random() < 0.5:
        inputs.append(("f32", [], [7]))
    yield Case("Pad", {"mode": mode}, inputs)


def draw_gemm():
    m, k, n = (R.randint(1, 4) for _ in range(3))
    attrs, a, b = {}, [m, k], [k, n]
    if R.random() < 0.5:
        attrs["transA"], a = 1, [k, m]
    if R.random() < 0.5:
        attrs["transB"], b = 1, [n, k]
    inputs = [("f32", a, None), ("f32", b, None)]
    if R.random() < 0.8:
        inputs.append(("f32", R.choice([[m, n], [1, n], [m, 1], [n], [1], [], [1, 1], [m + 1, n], [m]]), None))
    if R.random() < 0.1:
        inputs[0] = ("f32", R.choice([[m], [k + 1, m + 1], [1, m, k]]), None)
    yield Case("Gemm", attrs, inputs)


def draw_matmul():
    m, k, n = (R.randint(1, 4) for _ in range(3))
    batch = dims(0, 2)
    a = R.choice([[m, k], [k], broadcastable(batch) + [m, k]])
    b = R.choice([[k, n], [k], batch + [k, n]])
    if R.random() < 0.1:
        a[-1] += 1
    yield Case("MatMul", {}, [("f32", a, None), ("f32", b, None)])


def draw_conv():
    spatial, group = R.choice([1, 1, 2, 2, 3]), R.choice([1, 1, 1, 2, 3])
    inner, outer = R.randint(1, 3), R.randint(1, 3)
    kernel = [R.randint(1, 4) for _ in range(spatial)]
    size = [R.randint(1, 9) for _ in range(spatial)]
    attrs = {}
    if R.random() < 0.5:
        attrs["kernel_shape"] = kernel
    if R.random() < 0.6:
        attrs["strides"] = [R.randint(1, 3) for _ in range(spatial)]
    if R.random() < 0.4:
        attrs["dilations"] = [R.randint(1, 3) for _ in range(spatial)]
    if group > 1:
        attrs["group"] = group
    pad = R.random()
    if pad < 0.4:
        attrs["pads"] = [R.randint(0, 2) for _ in range(2 * spatial)]
    elif pad < 0.7:
        attrs["auto_pad"] = R.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
        if attrs["auto_pad"].startswith("SAME"):
            attrs.pop("dilations", None)  # the runtime has no kernel for both
    wrong = R.random()
    if wrong < 0.03:
        attrs["strides"] = [1] * (spatial + 1)
    elif wrong < 0.06:
        attrs["pads"] = [0] * (2 * spatial - 1)
        attrs.pop("auto_pad", None)
    elif wrong < 0.09:
        attrs["kernel_shape"] = [k + 1 for k in kernel]
    inputs = [("f32", [R.randint(1, 2), inner * group + (wrong > 0.97)] + size, None),
              ("f32", [outer * group, inner] + kernel, None)]
    if R.random() < 0.4:
        inputs.append(("f32", [outer * group + (wrong > 0.94)], None))
    yield Case("Conv", attrs, inputs)


def draw_reduce(op):
    shape = dims(0, 4)
    attrs = {}
    if R.random() < 0.6:
        attrs["keepdims"] = R.choice([0, 1])
    if R.random() < 0.4:
        attrs["noop_with_empty_axes"] = R.choice([0, 1])
    inputs = [("f32", shape, None)]
    if R.random() < 0.8:
        axes = R.sample(range(len(shape)), R.randint(0, len(shape)))
        axes = [a - len(shape) if R.random() < 0.4 else a for a in axes]
        if R.random() < 0.1:
            axes = [len(shape)]
        inputs.append(("i64", [len(axes)], axes))
    yield Case(op, attrs, inputs)


def draw_arg(op):
    shape = dims(1, 4)
    attrs = {"axis": axis(len(shape))} if R.random() < 0.8 else {}
    if R.random() < 0.6:
        attrs["keepdims"] = R.choice([0, 1])
    yield Case(op, attrs, [(R.choice(["f32", "i32"]), shape, None)])


def draw_cumsum():
    shape = dims(1, 4)
    where = axis(len(shape)) if R.random() < 0.5 else 0
    yield Case("CumSum", {}, [("f32", shape, None), ("i64", R.choice([[], [1]]), [where])])


def draw_softmax_like(op):
    shape = dims(1, 4)
    yield Case(op, {"axis": axis(len(shape))} if R.random() < 0.8 else {}, [("f32", shape, None)])


def draw_top():
    shape = dims(1, 3)
    at = axis(len(shape))
    yield Case("TopK", {"axis": at}, [("f32", shape, None), ("i64", [1], [R.randint(1, 5)])], 2)


def draw_elements(op):
    shape = dims(1, 3)
    own = [max(1, s - R.randint(0, 1)) for s in shape]
    if R.random() < 0.15:
        own[R.randrange(len(own))] += 1
    if R.random() < 0.1:
        own.append(1)
    inputs = [("f32", shape, None), ("i64", own, [0] * int(np.prod(own)))]
    if op == "ScatterElements":
        inputs.append(("f32", own if R.random() < 0.9 else own + [1], None))
    yield Case(op, {"axis": R.randint(-len(shape), len(shape) - 1)}, inputs)


def draw_nd(op):
    shape, lead = dims(1, 4), dims(0, 2)
    depth = R.randint(1, len(shape) + (R.random() < 0.1))
    own = lead + [depth]
    inputs = [("f32", shape, None), ("i64", own, [0] * int(np.prod(own)))]
    if op == "ScatterND":
        inputs.append(("f32", lead + shape[depth:] + ([1] if R.random() < 0.1 else []), None))
    yield Case(op, {}, inputs)


def draw_trilu():
    inputs = [("f32", dims(1 if R.random() < 0.1 else 2, 4), None)]
    if R.random() < 0.5:
        inputs.append(("i64", [], [R.randint(-3, 3)]))
    yield Case("Trilu", {"upper": R.choice([0, 1])}, inputs)


def draw_tile():
    shape = dims(1, 3)
    repeats = [R.randint(0, 3) for _ in shape] + ([1] if R.random() < 0.1 else [])
    yield Case("Tile", {}, [("f32", shape, None), ("i64", [len(repeats)], repeats)])


def draw_one_hot():
    shape = dims(0, 3)
    yield Case("OneHot", {"axis": axis(len(shape) + 1)} if R.random() < 0.8 else {},
               [("i64", shape, [0] * int(np.prod(shape))), ("i64", [], [R.randint(1, 5)]), ("f32", [2], None)])


def draw_eye():
    yield Case("EyeLike", {"dtype": R.choice([1, 7, 11])} if R.random() < 0.7 else {},
               [(R.choice(["f32", "i64"]), dims(2, 3 if R.random() < 0.1 else 2), None)])


def draw_range():
    dtype = R.choice(["i32", "i64"])
    values = [R.randint(-5, 5), R.randint(-9, 9), R.choice([-3, -1, 1, 2])]
    yield Case("Range", {}, [(dtype, [], [v]) for v in values])


def draw_layer():
    shape = dims(1, 4)
    at = R.randint(-len(shape), len(shape) - 1)
    own = list(shape[at:])
    if R.random() < 0.15:
        own[-1] += 1
    yield Case("LayerNormalization", {"axis": at}, [("f32", shape, None), ("f32", own, None)], R.choice([1, 2, 3]))


def draw_channels(op):
    shape = dims(2 if R.random() < 0.1 else 3, 4, (2, 4))
    own = [shape[1] + (R.random() < 0.15)]
    count = 4 if op == "BatchNormalization" else 2
    yield Case(op, {"num_groups": R.choice([1, 2])} if op == "GroupNormalization" else {},
               [("f32", shape, None)] + [("f32", own, None)] * count)


def draw_lp():
    shape = dims(1, 4)
    yield Case("LpNormalization", {"axis": axis(len(shape)), "p": R.choice([1, 2])}, [("f32", shape, None)])


def draw_lrn():
    yield Case("LRN", {"size": R.choice([1, 3])}, [("f32", dims(4, 4), None)])


def draw_loss(op):
    shape = dims(2, 4, (2, 3, 4))
    labels = shape[:1] + shape[2:]
    if R.random() < 0.15:
        labels[0] += 1
    inputs = [("f32", shape, None), ("i64", labels, None)]
    if R.random() < 0.4:
        inputs.append(("f32", [shape[1] + (R.random() < 0.15)], None))
    yield Case(op, {"reduction": R.choice(["mean", "sum", "none"])}, inputs)


def draw_pool(op):
    shape = dims(3, 5, (5, 6, 7))  # of a window that does not fit the runtime sometimes makes nothing
    n = len(shape) - 2
    attrs = {"kernel_shape": [R.randint(1, 3) for _ in range(n)]}
    if R.random() < 0.5:
        attrs["strides"] = [R.randint(1, 3) for _ in range(n)]
    if R.random() < 0.3:
        attrs["dilations"] = [R.randint(1, 2) for _ in range(n)]
    if R.random() < 0.3 and "dilations" not in attrs:  # of both the runtime forgets one
        attrs["auto_pad"] = R.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif R.random() < 0.4:
        attrs["pads"] = [R.randint(0, k - 1) for k in attrs["kernel_shape"]] * 2
    if R.random() < 0.4 and "auto_pad" not in attrs:
        attrs["ceil_mode"] = 1
    yield Case(op, attrs, [("f32", shape, None)], R.choice([1, 2]) if op == "MaxPool" else 1)


def draw_global(op):
    yield Case(op, {}, [("f32", dims(3, 5), None)])


def draw_softmax():
    shape = dims(1, 4)
    yield Case("Softmax", {"axis": axis(len(shape))} if R.random() < 0.8 else {}, [("f32", shape, None)])


def draw_lstm():
    steps, batch, features, hidden = (R.randint(1, 4) for _ in range(4))
    direction = R.choice(["forward", "reverse", "bidirectional"])
    n = 2 if direction == "bidirectional" else 1
    attrs = {"hidden_size": hidden if R.random() < 0.95 else hidden + 1}
    if direction != "forward" or R.random() < 0.5:
        attrs["direction"] = direction
    inputs = [("f32", [steps, batch, features], None), ("f32", [n, 4 * hidden, features], None),
              ("f32", [n, 4 * hidden, hidden], None)]
    optional = [("f32", [n, 8 * hidden], None), ("i32", [batch], [1] * batch), ("f32", [n, batch, hidden], None),
                ("f32", [n, batch, hidden], None), ("f32", [n, 3 * hidden], None)]
    for operand in optional[:R.randint(0, 5)]:
        inputs.append(operand if R.random() < 0.7 else None)
    if R.random() < 0.2:
        at = R.randrange(len(inputs))
        if inputs[at] and inputs[at][2] is None:
            own = list(inputs[at][1])
            own[R.randrange(len(own))] += 1
            inputs[at] = (inputs[at][0], own, None)
    yield Case("LSTM", attrs, inputs, R.choice([1, 2, 3]))


def each(names, draw, count):
    return [(lambda op=op: draw(op), count) for op in names]


FAMILIES = {
    "elementwise": each(UNARY, draw_unary, 6) + each(BINARY, draw_binary, 20) + each(("Max", "Min"), draw_variadic, 12) +
    [(draw_pow, 15), (draw_where, 20), (draw_clip, 12), (draw_leaky, 4), (draw_cast, 20)],
    "shape": [(draw_reshape, 80), (draw_flatten, 20), (draw_squeeze, 40), (draw_unsqueeze, 35), (draw_identity, 3),
              (draw_transpose, 25), (draw_shape, 25), (draw_size, 5), (draw_expand, 15), (draw_constant_of_shape, 15)],
    "move": [(draw_concat, 25), (draw_split, 50), (draw_slice, 120), (draw_gather, 25), (draw_pad, 60)],
    "nn": [(draw_gemm, 40), (draw_matmul, 50), (draw_conv, 120), (draw_softmax, 12), (draw_lstm, 60)] +
    each(("ReduceSum", "ReduceMean", "ReduceMax"), draw_reduce, 30),
    "math": each(MATH_UNARY, draw_math_unary, 4) + each(MATH_BINARY, draw_math_binary, 12) +
    each(("Sum", "Mean"), draw_variadic, 8) + [(draw_shift, 12), (draw_castlike, 12)],
    "index": each(("ArgMax", "ArgMin"), draw_arg, 20) + each(("LogSoftmax", "Hardmax"), draw_softmax_like, 8) +
    each(("GatherElements", "ScatterElements"), draw_elements, 25) + each(("GatherND", "ScatterND"), draw_nd, 25) +
    each(("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMin", "ReduceProd", "ReduceSumSquare"),
         draw_reduce, 8) +
    [(draw_cumsum, 12), (draw_top, 25), (draw_trilu, 12), (draw_tile, 15), (draw_one_hot, 15), (draw_eye, 10),
     (draw_range, 20)],
    "norm": [(draw_layer, 25), (draw_lp, 10), (draw_lrn, 4)] +
    each(("BatchNormalization", "InstanceNormalization", "GroupNormalization"), draw_channels, 12) +
    each(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), draw_loss, 20),
    "pool": each(("MaxPool", "AveragePool", "LpPool"), draw_pool, 40) +
    each(("GlobalAveragePool", "GlobalMaxPool"), draw_global, 4),
}


# ------------------------------------------------------------------------------------------------------- writing

def attribute(name, value):
    if isinstance(value, str):
        return f"{name}=s{value}"
    if isinstance(value, float):
        return f"{name}=f{value}"
    if isinstance(value, int):
        return f"{name}=i{value}"
    if isinstance(value, onnx.TensorProto):
        return f"{name}=t{value.data_type}:{value.dims[0]}"
    return f"{name}=I{','.join(map(str, value))}"


def operand(o):
    if o is None:
        return "-"
    dtype, shape, values = o
    text_ = f"{dtype}[{','.join(map(str, shape))}]"
    return text_ if values is None else text_ + "{" + ",".join(map(str, values)) + "}"


def text(case):
    head = " ".join([case.op] + [attribute(k, v) for k, v in case.attrs.items()])
    return f"{head} | {' '.join(operand(o) for o in case.inputs)} | {case.outputs}"


def collect(draws):
    lines, refused = [], 0
    for draw, count in draws:
        seen = set()
        tries = 0
        while len(seen) < count and tries < 40 * count:
            for case in draw():
                tries += 1
                line = text(case)
                if line in seen or len(seen) >= count:
                    continue
                verdict = oracle(case)
                if verdict == "skip":
                    continue
                seen.add(line)
                refused += verdict is None
                result = "refused" if verdict is None else " ".join(
                    f"{d}[{','.join(map(str, s))}]" for d, s in verdict)
                lines.append(f"{line} | {result}")
    return lines, refused


def literal(line):
    """A C string, over several lines where it is long."""
    pieces = [line[i:i + 110] for i in range(0, len(line), 110)]
    return "\n    ".join(f'"{piece}"' for piece in pieces) + ","


def main():
    for family, draws in FAMILIES.items():
        lines, refused = collect(draws)
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"infer_cases_{family}.inc")
        with open(path, "w", encoding="ascii") as out:
            out.write("/* SPDX-License-Identifier: Apache-2.0\n *\n * Made by make_infer_cases.py; do not edit.\n")
            out.write(f" * {len(lines)} nodes, {refused} of them wrong: operator attributes | inputs | outputs | "
                      "results. */\n")
            for line in lines:
                out.write(literal(line) + "\n")


main()
