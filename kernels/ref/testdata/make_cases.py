#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases.bin: operators with inputs and the outputs that somebody else's implementation gives.

Truth is onnx's reference evaluator, run on float64 copies of float32 inputs and rounded once, so that one unit in the
last place is tolerance enough. Every case is also put to ONNX Runtime where it has the kernel; a disagreement stops the
script. Where neither can speak (what Rondo defines and ONNX does not) the expectation is written here by hand.

    python make_cases.py        needs numpy, onnx 1.22, onnxruntime
"""
import pathlib
import struct
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

warnings.filterwarnings("ignore")
onnxruntime.set_default_logger_severity(4)
rng = np.random.default_rng(20240607)
OPSET = 21
REFUSED = 255  # find must refuse
# A kernel's reasons, as ref.h has them.
ZERO_DIVISOR, INDEX_RANGE, SHAPE_MISMATCH, BAD_VALUE = 2, 3, 4, 5

FLOATS = [np.float32, np.float64]
SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]
NUMBERS = FLOATS + SIGNED + UNSIGNED
ALL = NUMBERS + [np.bool_]
WIDE = [np.int32, np.int64, np.uint32, np.uint64]
cases = []
spoken = {"reference": 0, "runtime": 0, "hand": 0}


def dtype_number(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def rand(dtype, *shape, low=None, high=None):
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind == "f":
        return rng.uniform(-3 if low is None else low, 3 if high is None else high, shape).astype(dtype)
    info = np.iinfo(dtype)
    low = info.min if low is None else low
    high = info.max if high is None else high
    return rng.integers(low, high, shape, dtype=dtype, endpoint=True)


def ints(*values):
    return np.array(values, dtype=np.int64)


def model(op, inputs, attrs, outputs, opset):
    names = ["" if x is None else f"i{n}" for n, x in enumerate(inputs)]
    outs = [f"o{n}" if wanted else "" for n, wanted in enumerate(outputs)]
    attrs = {k: v for k, v in attrs.items() if v is not None}
    node = helper.make_node(op, names, outs, **attrs)
    given = [helper.make_tensor_value_info(n, dtype_number(x.dtype), list(x.shape)) for n, x in zip(names, inputs) if n]
    made = [onnx.ValueInfoProto(name=o) for o in outs if o]
    graph = helper.make_graph([node], "case", given, made)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(proto), {n: x for n, x in zip(names, inputs) if n}


def reference(op, inputs, attrs, outputs, opset):
    types = {x.dtype for x in inputs if x is not None}
    double = np.dtype(np.float32) in types and np.dtype(np.float64) not in types and op not in ("Cast", "BitCast")
    wide = [x.astype(np.float64) if double and x is not None and x.dtype == np.float32 else x for x in inputs]
    proto, feeds = model(op, wide, attrs, outputs, opset)
    got = ReferenceEvaluator(proto).run(None, feeds)
    return [np.asarray(g).astype(np.float32) if double and np.asarray(g).dtype == np.float64 else np.asarray(g)
            for g in got]


def runtime(op, inputs, attrs, outputs, opset):
    proto, feeds = model(op, inputs, attrs, outputs, opset)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def agree(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    return np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


def answer(label, op, inputs, attrs, outputs, opset, ref, ort):
    """The outputs, as the reference evaluator and the runtime say them: who of them knows must agree. Whether the
    reference knew."""
    found, why = [None, None], None
    for at, (asked, ask) in enumerate(((ref, reference), (ort, runtime))):
        if not asked:
            continue
        try:
            found[at] = ask(op, inputs, attrs, outputs, opset)
        except Exception as error:  # what either lacks, it says in ways of its own
            why = why or error
    first, second = found
    if first is None and second is None:
        sys.exit(f"{label}: nobody knows: {str(why)[:300]}")
    for a, b in zip(first or (), second or ()):
        if not agree(a, b):
            sys.exit(f"{label}: {attrs} {[None if x is None else (x.dtype, x.shape) for x in inputs]}\n"
                     f"reference {a.dtype}{a.shape} {a.flatten()[:8]}\nruntime {b.dtype}{b.shape} {b.flatten()[:8]}")
    spoken["reference" if first is not None else "runtime"] += 1
    return (first, True) if first is not None else (second, False)


def case(op, inputs, attrs=None, outputs=(True,), expect=None, reason=0, tolerance=None, shapes=None, ort=True,
         ref=True, opset=OPSET, hidden=None):
    """hidden: attributes of Rondo's own. shapes: the outputs as (dtype, shape) of a case that fails."""
    attrs = attrs or {}
    label = f"{op}#{len(cases)}"
    if expect is None and not reason:
        expect, known = answer(label, op, inputs, attrs, outputs, opset, ref, ort)
        if tolerance is None and not known:
            tolerance = 2e-5
    else:
        spoken["hand"] += 1
    if reason:
        expect = [np.zeros(s, d) for d, s in (shapes or [(inputs[0].dtype, inputs[0].shape)])]
    full, expect = [], list(expect)
    for wanted in outputs:
        full.append(expect.pop(0) if wanted else None)
    cases.append(pack_case(op, dict(attrs, **(hidden or {})), inputs, full, reason, tolerance or 0.0))


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack("<B", len(s)) + s


def tensor(x):
    if x is None:
        return struct.pack("<BB", 0, 0)
    x = np.ascontiguousarray(x).reshape(x.shape)
    return struct.pack("<BB", dtype_number(x.dtype), x.ndim) + struct.pack(f"<{x.ndim}I", *x.shape) + x.tobytes()


def attribute(name, value):
    head = text(name)
    if isinstance(value, (int, np.integer)):
        return head + struct.pack("<BIq", 1, 1, value)
    if isinstance(value, float):
        return head + struct.pack("<BIf", 2, 1, value)
    if isinstance(value, str):
        return head + struct.pack("<BI", 3, 1) + text(value)
    if isinstance(value, TensorProto):
        return head + struct.pack("<BI", 7, 1) + tensor(numpy_helper.to_array(value))
    if isinstance(value[0], int):
        return head + struct.pack(f"<BI{len(value)}q", 4, len(value), *value)
    if isinstance(value[0], float):
        return head + struct.pack(f"<BI{len(value)}f", 5, len(value), *value)
    return head + struct.pack("<BI", 6, len(value)) + b"".join(text(v) for v in value)


def pack_case(op, attrs, inputs, outputs, reason, tolerance):
    attrs = {k: v for k, v in attrs.items() if v is not None}
    body = text(op) + struct.pack("<Bd", reason, tolerance) + struct.pack("<B", len(attrs))
    body += b"".join(attribute(k, v) for k, v in attrs.items())
    body += struct.pack("<B", len(inputs)) + b"".join(tensor(x) for x in inputs)
    body += struct.pack("<B", len(outputs)) + b"".join(tensor(x) for x in outputs)
    return body


# Pairs of shapes that broadcast.
PAIRS = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((3, 1), (2, 1, 5)), ((), (2, 2)), ((1, 4), (3, 1)),
         ((0, 3), (1, 3)), ((2, 1, 2, 1, 2), (1, 3, 1, 2, 2))]


def unary():
    for dtype in FLOATS:
        odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -5.5], dtype=dtype)
        for op in ["Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs", "Reciprocal", "Sqrt", "Log"]:
            # The evaluator's Relu and Sigmoid treat a NaN in ways of their own: only numbers there.
            special = odd if op not in ("Relu", "Sigmoid") else odd[[0, 2, 3, 5, 6]]
            case(op, [special])
            low = 0.01 if op in ("Sqrt", "Log") else None
            for shape in [(2, 3, 4), (), (0, 3), (17,)]:
                case(op, [rand(dtype, *shape, low=low)])
        for op in ["Relu", "Sigmoid"]:
            case(op, [np.array([np.nan, 1], dtype)], expect=[np.array([np.nan, dtype(1 / (1 + np.exp(-1.0))) if
                                                                       op == "Sigmoid" else 1], dtype)])
        case("Sigmoid", [np.array([-700, 700, -90, 90, -20], dtype=dtype)])
        for alpha in [None, 0.3, -2.0]:
            case("LeakyRelu", [rand(dtype, 3, 5)], {"alpha": alpha})
    for dtype in SIGNED:
        case("Relu", [rand(dtype, 9)])
        case("Neg", [np.append(rand(dtype, 7), np.iinfo(dtype).min)])
        case("Abs", [np.append(rand(dtype, 7), np.iinfo(dtype).min)])
    for dtype in UNSIGNED:
        case("Abs", [rand(dtype, 5)])
    case("Not", [rand(np.bool_, 3, 4)])


def binary():
    for dtype in NUMBERS:
        for n, (a, b) in enumerate(PAIRS):
            if dtype not in (np.float32, np.int64, np.uint8) and n > 2:
                continue
            for op in ["Add", "Sub", "Mul", "Less", "Greater", "Equal", "Max", "Min"]:
                x, y = rand(dtype, *a), rand(dtype, *b)
                if op in ("Equal", "Less", "Greater") and np.dtype(dtype).kind != "f":
                    x, y = rand(dtype, *a, low=0, high=2), rand(dtype, *b, low=0, high=2)
                case(op, [x, y])
            y = rand(dtype, *b)
            y[y == 0] = 1
            case("Div", [rand(dtype, *a), y])
    for dtype in FLOATS:
        odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1], dtype=dtype)
        for op in ["Add", "Sub", "Mul", "Div", "Less", "Greater", "Equal", "Max", "Min"]:
            case(op, [odd[:, None], odd[None, :]] if op not in ("Max", "Min") else [odd[1:, None], odd[None, 1:]])
    for dtype in SIGNED:
        low = np.iinfo(dtype).min
        case("Div", [np.array([low, -7, 7, low], dtype), np.array([-1, 2, -2, 1], dtype)],
             expect=[np.array([low, -3, -3, low], dtype)])
    for dtype in SIGNED + UNSIGNED:
        case("Div", [rand(dtype, 3), np.array([1, 0, 2], dtype)], reason=ZERO_DIVISOR)
    for op in ["And", "Or", "Equal"]:
        for a, b in PAIRS[:5]:
            case(op, [rand(np.bool_, *a), rand(np.bool_, *b)])
    for dtype in NUMBERS:
        for op in ["Max", "Min"]:
            case(op, [rand(dtype, 2, 1), rand(dtype, 3), rand(dtype, 2, 2, 3)])
            case(op, [rand(dtype, 3)])
    x = rand(np.float32, 2, 3)
    case("Add", [x, rand(np.float32, 3, 2)], reason=REFUSED)
    case("Add", [x, rand(np.float64, 2, 3)], reason=REFUSED)
    case("And", [x, x], reason=REFUSED, shapes=[(np.bool_, (2, 3))])
    case("Add", [x, x], {"axis": 1}, reason=REFUSED)
    case("Add", [x, x], reason=REFUSED, shapes=[(np.float32, (3, 2))])
    case("Add", [rand(np.int32, 2)] * 2, hidden={"rondo.activation": "Relu"}, reason=REFUSED)
    case("Sub", [x, x], hidden={"rondo.activation": "Relu"}, reason=REFUSED)


def power():
    for base in [np.float32, np.float64, np.int32, np.int64]:
        for exponent in NUMBERS:
            real = np.dtype(base).kind == "f"
            x = rand(base, 2, 6, low=0.1 if real else -9, high=4 if real else 9)
            y = rand(exponent, 6, low=0, high=5)
            case("Pow", [x, y], ort=not (np.dtype(base).kind == "i" and np.dtype(exponent).kind == "f"))
    bases, exponents = [3, -3, 2, 0, 7], [40, 41]
    want = np.array([[(b**e + 2**63) % 2**64 - 2**63 for b in bases] for e in exponents], np.int64)
    for dtype in [np.uint64, np.int64, np.int8]:
        case("Pow", [np.array([bases], np.int64), np.array(exponents, dtype)[:, None]], expect=[want])
    case("Pow", [np.array([1, -1, -1, 5], np.int32), np.array([-3, -3, -4, -1], np.int64)],
         expect=[np.array([1, -1, 1, 0], np.int32)])
    case("Pow", [np.array([1, 0], np.int32), np.array([-3, -3], np.int32)], reason=ZERO_DIVISOR)
    case("Pow", [np.array([-2.0, 0, np.nan, np.inf], np.float32), np.array([3, 0, 0, -1], np.float32)])


def cast():
    for source in ALL:
        for target in ALL:
            low, high = None, None
            if np.dtype(source).kind == "f" and np.dtype(target).kind in "iu":
                low, high = (-100, 100) if np.dtype(target).kind == "i" else (0, 200)
            x = rand(source, 7, low=low, high=high)
            case("Cast", [x], {"to": dtype_number(target)})
    # Out of range, as x86-64's scalar instructions convert; numpy's own result when it came from those.
    far = [np.nan, np.inf, -np.inf, 300.7, -300.7, 70000.0, 3e9, -3e9, 1e19, 1.2e19, -1e19, 3e19, -1.5]
    table = {
        np.int8: (32, np.int8), np.uint8: (32, np.uint8), np.int16: (32, np.int16), np.uint16: (32, np.uint16),
        np.int32: (32, np.int32), np.uint32: (64, np.uint32), np.int64: (64, np.int64), np.uint64: (64, np.uint64)}
    for source in FLOATS:
        x = np.array(far, source)
        for target, (bits, final) in table.items():
            size = np.iinfo(target).bits
            want = []
            for v in [float(e) for e in x]:
                if target == np.uint64 and v >= 2.0**63:
                    n = int(v) if v < 2.0**64 else 0
                else:
                    fits = v == v and -2.0 ** (bits - 1) - (1 if bits == 32 else 0) < v < 2.0 ** (bits - 1)
                    n = int(v) if fits or v == -2.0 ** (bits - 1) else -(2 ** (bits - 1))
                want.append(n & (2**size - 1))
            want = np.array(want, np.dtype(f"u{size // 8}")).view(target)
            case("Cast", [x], {"to": dtype_number(target)}, expect=[want])
        case("Cast", [np.array([0.0, -0.0, np.nan, 1e-40, -2], source)], {"to": TensorProto.BOOL},
             expect=[np.array([0, 0, 1, 1, 1], np.bool_)])
    case("Cast", [np.array([2**53 + 1, 2**63 - 1, -(2**63)], np.int64)], {"to": TensorProto.DOUBLE})
    case("Cast", [np.array([2**64 - 1, 2**63 + 2**39 + 1], np.uint64)], {"to": TensorProto.FLOAT})
    case("Cast", [rand(np.float32, 3)], {"to": TensorProto.INT64}, reason=REFUSED)


def select():
    for dtype in ALL:
        case("Where", [rand(np.bool_, 2, 1, 3), rand(dtype, 3), rand(dtype, 4, 1)])
    case("Where", [rand(np.bool_), rand(np.float32, 2, 2), rand(np.float32, 0, 2, 2)])
    case("Where", [rand(np.bool_, 3), rand(np.float32, 3), rand(np.int32, 3)], reason=REFUSED)
    for dtype in NUMBERS:
        low, high = (np.array(v, dtype) for v in ((-1, 2) if np.dtype(dtype).kind in "if" else (20, 90)))
        x = rand(dtype, 3, 4)
        for bounds in [[low, high], [low], [None, high], []]:
            case("Clip", [x] + bounds)
        case("Clip", [x, high, low], expect=[np.full_like(x, low)])
    case("Clip", [np.array([np.nan, 5, -5], np.float32), np.array(-1, np.float32), np.array(1, np.float32)],
         expect=[np.array([np.nan, 1, -1], np.float32)])
    case("Clip", [rand(np.float32, 3), rand(np.float32, 2)], reason=REFUSED)


def shapes():
    for dtype in ALL:
        x = rand(dtype, 2, 3, 4)
        case("Reshape", [x, ints(4, -1)])
        case("Identity", [x])
        case("Flatten", [x], {"axis": 2})
        case("Squeeze", [rand(dtype, 1, 3, 1, 2), ints(0, -2)])
        case("Unsqueeze", [x, ints(-1, 1)])
        value = helper.make_tensor("v", dtype_number(dtype), [1], rand(dtype, 1, low=None if dtype in FLOATS else 0,
                                                                      high=None if dtype in FLOATS else 1))
        case("ConstantOfShape", [ints(2, 0, 3)], {"value": value})
        case("ConstantOfShape", [ints(3, 2)], {"value": value})
    x = rand(np.float32, 2, 3, 4)
    for shape, zero in [((0, 0, 4), 0), ((0, -1), 0), ((2, 3, 2, 2), 0), ((24,), 1), ((-1,), 0), ((1, 1, 24), 1)]:
        case("Reshape", [x, ints(*shape)], {"allowzero": zero})
    case("Reshape", [rand(np.float32, 0, 3), ints(3, 0)], {"allowzero": 1})
    case("Reshape", [rand(np.float32, 1), ints()])
    bad = [(np.float32, (4, 6))]
    case("Reshape", [x, ints(6, 4)], reason=SHAPE_MISMATCH, shapes=bad)
    case("Reshape", [x, ints(-1, -1)], reason=BAD_VALUE, shapes=bad)
    case("Reshape", [x, ints(-4, 6)], reason=BAD_VALUE, shapes=bad)
    case("Reshape", [x, ints(5, 5)], reason=REFUSED, shapes=[(np.float32, (5, 5))])
    for axis in [0, 1, 3, -1, -3]:
        case("Flatten", [x], {"axis": axis})
    case("Flatten", [x])
    case("Flatten", [rand(np.float32)], {"axis": 0})
    case("Squeeze", [rand(np.float32, 1, 3, 1)])
    case("Squeeze", [rand(np.float32, 1, 3, 1), ints(1)], reason=BAD_VALUE, shapes=[(np.float32, (3, 1))])
    case("Squeeze", [rand(np.float32, 1, 3, 1), ints(0, -3)], ref=False)  # numpy refuses an axis named twice
    case("Unsqueeze", [x, ints(4, 0)])
    case("Unsqueeze", [x, np.array(1)])
    case("Unsqueeze", [x, ints(1, 1)], reason=BAD_VALUE, shapes=[(np.float32, (2, 1, 1, 3, 4))])
    case("Unsqueeze", [x, ints(5)], reason=BAD_VALUE, shapes=[(np.float32, (2, 3, 4, 1))])
    case("Unsqueeze", [x, ints(0)], reason=SHAPE_MISMATCH, shapes=[(np.float32, (2, 3, 4, 1))])
    for start, end in [(None, None), (1, None), (None, -1), (-2, 2), (-9, 9), (2, 1), (-1, -9)]:
        case("Shape", [x], {"start": start, "end": end})
    case("Shape", [rand(np.int8)])
    case("Size", [x])
    case("Size", [rand(np.bool_, 0, 4)])
    case("ConstantOfShape", [ints(2, 2)])
    case("ConstantOfShape", [ints()])
    case("ConstantOfShape", [ints(2, 3)], reason=SHAPE_MISMATCH, shapes=[(np.float32, (3, 2))])


def moves():
    for dtype in ALL:
        case("Concat", [rand(dtype, 2, 3, 2), rand(dtype, 2, 1, 2), rand(dtype, 2, 0, 2)], {"axis": 1})
        case("Transpose", [rand(dtype, 2, 3, 4)], {"perm": [1, 2, 0]})
        case("Gather", [rand(dtype, 3, 4), ints(2, -1, 0)], {"axis": 1})
        case("Slice", [rand(dtype, 5, 6), ints(1, -1), ints(9, -9), ints(0, 1), ints(2, -2)])
        case("Expand", [rand(dtype, 3, 1), ints(2, 1, 4)])
        case("Split", [rand(dtype, 2, 7), ints(2, 0, 5)], {"axis": 1}, (True,) * 3)
        for mode in ["constant", "edge", "reflect", "wrap"]:
            # The evaluator leaves bools in a constant pad as numbers.
            if mode != "constant" or dtype != np.bool_:
                case("Pad", [rand(dtype, 3, 4), ints(1, 2, 0, 3)], {"mode": mode})
    f = np.float32
    for axis in [0, -1, 2]:
        case("Concat", [rand(f, 2, 3, 2)] * 2, {"axis": axis})
    case("Concat", [rand(f, 3)], {"axis": 0})
    case("Concat", [rand(f, 2, 3), rand(f, 2, 2)], {"axis": 0}, reason=REFUSED, shapes=[(f, (4, 3))])
    case("Concat", [rand(f, 2, 3), rand(f, 2, 3)], reason=REFUSED, shapes=[(f, (4, 3))])
    case("Transpose", [rand(f, 2, 3, 4)])
    case("Transpose", [rand(f)])
    case("Transpose", [rand(f, 2, 0, 3)], {"perm": [2, 1, 0]})
    case("Transpose", [rand(f, 2, 3, 1, 2, 2)], {"perm": [4, 1, 0, 3, 2]})
    case("Transpose", [rand(f, 2, 3)], {"perm": [0, 0]}, reason=REFUSED)
    case("Gather", [rand(f, 3, 4, 2), np.array([[0, 1], [-1, -3]], np.int32)])
    case("Gather", [rand(f, 3, 4, 2), np.array(-2, np.int64)], {"axis": -1})
    case("Gather", [rand(f, 3, 2), rand(np.int64, 0, 2)], ref=False)
    case("Gather", [rand(f, 3), ints(0, 3)], reason=INDEX_RANGE, shapes=[(f, (2,))])
    case("Gather", [rand(f, 3), ints(-4)], reason=INDEX_RANGE, shapes=[(f, (1,))])
    case("Gather", [rand(f, 0), ints(0)], reason=INDEX_RANGE, shapes=[(f, (1,))])
    x = rand(f, 4, 5, 3)
    big = 2**63 - 1
    for starts, ends, axes, steps in [
            ((1,), (3,), None, None), ((0, 1), (2, 5), (0, -1), None), ((-3,), (-1,), (1,), None),
            ((20, 0), (-20, big), (0, 1), (-1, 3)), ((-1,), (-big - 1,), (2,), (-1,)), ((2,), (2,), (0,), None),
            ((0,), (big,), (1,), (big,)), ((3,), (0,), (0,), (1,)), ((4,), (-big,), (1,), (-big - 1,))]:
        case("Slice", [x, ints(*starts), ints(*ends), None if axes is None else ints(*axes)] +
             ([] if steps is None else [ints(*steps)]) if axes is not None or steps is not None else
             [x, ints(*starts), ints(*ends)], ort=steps is None or max(abs(s) for s in steps) < 9)
    case("Slice", [x, np.array([1], np.int32), np.array([-1], np.int32), np.array([2], np.int32)])
    case("Slice", [x, ints(1), ints(3), ints(0)], reason=SHAPE_MISMATCH, shapes=[(f, (3, 5, 3))])
    case("Slice", [x, ints(1), ints(3), ints(3)], reason=BAD_VALUE, shapes=[(f, (2, 5, 3))])
    case("Slice", [x, ints(1), ints(3), ints(0), ints(0)], reason=BAD_VALUE, shapes=[(f, (2, 5, 3))])
    case("Slice", [x, ints(1, 1), ints(3, 3), ints(0, -3)], reason=BAD_VALUE, shapes=[(f, (2, 5, 3))])
    case("Slice", [rand(f, 0, 2), ints(-1), ints(-9), ints(0), ints(-1)], expect=[np.zeros((0, 2), f)])
    for shape in [(3, 1), (2, 3, 4), (1,), (), (3, 0)]:
        case("Expand", [rand(f, 3, 1), ints(*shape)])
    case("Expand", [rand(f, 3, 1), ints(2, 4)], reason=BAD_VALUE, shapes=[(f, (3, 4))])
    case("Expand", [rand(f, 3, 1), ints(3, 5)], reason=SHAPE_MISMATCH, shapes=[(f, (3, 4))])
    case("Split", [rand(f, 6, 2)], {"num_outputs": 3}, (True,) * 3)
    case("Split", [rand(f, 7)], {"num_outputs": 3}, (True,) * 3)
    case("Split", [rand(f, 2, 6)], {"axis": -1, "num_outputs": 2}, (True,) * 2)
    y = rand(f, 2, 6)
    case("Split", [y, ints(1, 2, 3)], {"axis": 1}, (True, False, True), expect=[y[:, :1], y[:, 3:]])
    case("Split", [y, ints(1, 5)], {"axis": 1}, (True,) * 2, reason=SHAPE_MISMATCH, shapes=[(f, (2, 2)), (f, (2, 4))])
    case("Split", [y, ints(-1, 7)], {"axis": 1}, (True,) * 2, reason=BAD_VALUE, shapes=[(f, (2, 2)), (f, (2, 4))])
    case("Split", [y, ints(2, 3)], {"axis": 1}, (True,) * 2, reason=SHAPE_MISMATCH, shapes=[(f, (2, 2)), (f, (2, 3))])
    pads()


def pads():
    f = np.float32
    x = rand(f, 3, 4)
    case("Pad", [x, ints(1, 0, 2, 1), np.array(1.5, f)])
    case("Pad", [x, ints(1, 2), np.array(-2, f), ints(-1)])
    case("Pad", [x, ints(0, 1, 2, 0), None, np.array([1, 0], np.int32)], ort=False)
    case("Pad", [x, ints(-1, 2, 0, -2), np.array(9, f)],
         expect=[np.pad(x[1:, :2], [(0, 0), (2, 0)], constant_values=9)])
    case("Pad", [x, ints(-1, 2, 0, -1)], {"mode": "edge"}, expect=[np.pad(x[1:, :3], [(0, 0), (2, 0)], mode="edge")])
    case("Pad", [x, ints(0, 0, 0, 0)])
    case("Pad", [x, ints(7, 9, 5, 8)], {"mode": "reflect"}, ort=False)
    case("Pad", [x, ints(7, 9, 5, 8)], {"mode": "wrap"}, ort=False)
    case("Pad", [rand(f, 0, 2), ints(1, 0, 1, 0), np.array(3, f)])
    case("Pad", [rand(f, 0, 2), ints(1, 0, 1, 0)], {"mode": "edge"}, reason=BAD_VALUE, shapes=[(f, (2, 2))])
    case("Pad", [x, ints(1, 0, 0, 0)], reason=SHAPE_MISMATCH, shapes=[(f, (3, 4))])
    case("Pad", [x, ints(-2, 0, -2, 0)], reason=BAD_VALUE, shapes=[(f, (0, 4))])
    case("Pad", [x, ints(1, 1), np.array(0, f), ints(2)], reason=BAD_VALUE, shapes=[(f, (5, 4))])
    case("Pad", [x, ints(1, 0, 0, 0)], {"mode": "mirror"}, reason=REFUSED)
    case("Pad", [x, ints(1, 0, 0)], reason=REFUSED)
    case("Pad", [rand(f, 1, 2), ints(2, 0, 0, 0)], {"mode": "reflect"}, ort=False)


def reductions():
    for op in ["ReduceSum", "ReduceMean", "ReduceMax"]:
        types = FLOATS + WIDE + ([np.int8, np.uint8] if op == "ReduceMax" else [])
        for dtype in types:
            small = {"low": 0, "high": 1000} if op != "ReduceMax" and np.dtype(dtype).kind in "iu" else {}
            x = rand(dtype, 2, 3, 4, **small)
            # The evaluator's integer mean is a float's; numpy's floor quotients have no place here.
            for axes, keep in [(None, 1), ((1,), 0), ((-1, 0), 1), ((0, 1, 2), 0)]:
                inputs = [x] if axes is None else [x, ints(*axes)]
                if op == "ReduceMean" and np.dtype(dtype).kind in "iu":
                    total = np.sum(x.astype(object), axis=axes, keepdims=bool(keep))
                    n = x.size if axes is None else np.prod([x.shape[a] for a in axes])
                    want = np.array(total // int(n)).astype(dtype)
                    case(op, inputs, {"keepdims": keep}, expect=[want])
                else:
                    case(op, inputs, {"keepdims": keep})
        f = rand(np.float32, 2, 3)
        case(op, [f, ints()], {"noop_with_empty_axes": 1})
        case(op, [f], {"noop_with_empty_axes": 1}, expect=[f])
        case(op, [f, ints()], {"keepdims": 0})
        case(op, [f, ints(2)], reason=BAD_VALUE, shapes=[(np.float32, (2, 3))])
        case(op, [f, ints(0, -2)], reason=BAD_VALUE, shapes=[(np.float32, (1, 3))])
        case(op, [f, ints(0)], reason=SHAPE_MISMATCH, shapes=[(np.float32, (2, 1))])
    empty = rand(np.float32, 2, 0, 3)
    case("ReduceSum", [empty, ints(1)], expect=[np.zeros((2, 1, 3), np.float32)])
    case("ReduceMax", [empty, ints(1)], expect=[np.full((2, 1, 3), -np.inf, np.float32)])
    case("ReduceMean", [empty, ints(1)], expect=[np.full((2, 1, 3), np.nan, np.float32)])
    case("ReduceMean", [rand(np.int32, 2, 0), ints(1)], reason=ZERO_DIVISOR, shapes=[(np.int32, (2, 1))])
    case("ReduceMax", [rand(np.int32, 2, 0), ints(1)], expect=[np.full((2, 1), -(2**31), np.int32)])
    case("ReduceMax", [rand(np.uint64, 2, 0), ints(1)], expect=[np.zeros((2, 1), np.uint64)])
    case("ReduceSum", [empty, ints(2)], expect=[np.zeros((2, 0, 1), np.float32)])
    case("ReduceMean", [np.array([[-7, 2, 1], [7, 1, 0]], np.int32), ints(1)], expect=[np.array([[-1], [2]], np.int32)])
    case("ReduceMax", [np.array([[1, np.nan, 2], [3, 1, -np.inf]], np.float32), ints(1)],
         expect=[np.array([[np.nan], [3]], np.float32)])
    case("ReduceMax", [np.array([[True, False], [False, False]]), ints(1)], {"keepdims": 0},
         expect=[np.array([True, False])])
    case("ReduceSum", [rand(np.int8, 3)], reason=REFUSED, shapes=[(np.int8, (1,))])
    for dtype in WIDE:
        top = np.iinfo(dtype).max
        want = np.array([top, 5], dtype).sum(dtype=dtype)
        case("ReduceSum", [np.array([top, 2, 3], dtype)], {"keepdims": 0}, expect=[want])
    for dtype in FLOATS:
        for axis in [None, 0, 1, -2]:
            case("Softmax", [rand(dtype, 3, 4, 2)], {"axis": axis})
        case("Softmax", [np.array([[1e4, 1e4 + 1], [-np.inf, 2]], dtype)])
        case("Softmax", [rand(dtype, 0, 3)])


ACTIVATIONS = {
    "Relu": (lambda x, a, b: np.where(x < 0, 0, x), None, None),
    "Sigmoid": (lambda x, a, b: 1 / (1 + np.exp(-x)), None, None),
    "Tanh": (lambda x, a, b: np.tanh(x), None, None),
    "LeakyRelu": (lambda x, a, b: np.where(x < 0, np.float64(np.float32(a)) * x, x), 0.25, None),
    "Clip": (lambda x, a, b: np.minimum(np.maximum(x, a), b), -0.5, 0.75)}


def fused(op, inputs, attrs=None, plus=None):
    """The node alone, then the activation on its rounded result."""
    for name, (function, alpha, beta) in ACTIVATIONS.items():
        got = reference(op, inputs, attrs or {}, (True,), OPSET)[0]
        if plus is not None:
            wide = [x.astype(np.float64) for x in inputs]
            got = (reference(op, wide, attrs or {}, (True,), OPSET)[0] + plus).astype(inputs[0].dtype)
        want = function(got.astype(np.float64), alpha, beta).astype(got.dtype)
        hidden = {"rondo.activation": name, "rondo.alpha": alpha, "rondo.beta": beta}
        case(op, inputs + ([plus] if plus is not None else []), attrs, expect=[want], hidden=hidden)


def products():
    for dtype in FLOATS + WIDE:
        small = {} if dtype in FLOATS else {"low": 0, "high": 2**31 - 1}
        for a, b in [((3, 4), (4, 2)), ((4,), (4,)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((2, 1, 2, 3), (5, 3, 2))]:
            case("MatMul", [rand(dtype, *a, **small), rand(dtype, *b, **small)], ort=dtype in FLOATS)
        for attrs in [{}, {"transA": 1}, {"transB": 1}, {"transA": 1, "transB": 1}]:
            a = rand(dtype, *((4, 3) if attrs.get("transA") else (3, 4)), **small)
            b = rand(dtype, *((2, 4) if attrs.get("transB") else (4, 2)), **small)
            for c in [None, (), (2,), (1, 2), (3, 1), (3, 2)]:
                extra = [] if c is None else [rand(dtype, *c, **small)]
                if dtype in FLOATS:
                    case("Gemm", [a, b] + extra, dict(attrs, alpha=0.5, beta=1.25 if c else None))
                elif c in (None, (2,)):
                    with np.errstate(all="ignore"):
                        want = (a.T if attrs.get("transA") else a) @ (b.T if attrs.get("transB") else b)
                        want = want + extra[0] if extra else want
                    case("Gemm", [a, b] + extra, attrs, expect=[want])
    f = np.float32
    case("MatMul", [rand(f, 2, 0), rand(f, 0, 3)])
    case("MatMul", [rand(f, 0, 2), rand(f, 2, 3)])
    case("Gemm", [rand(f, 2, 0), rand(f, 0, 3), rand(f, 3)], ort=False)
    case("MatMul", [rand(f, 2, 3), rand(f, 2, 3)], reason=REFUSED, shapes=[(f, (2, 3))])
    case("MatMul", [rand(f), rand(f, 1)], reason=REFUSED, shapes=[(f, ())])
    case("Gemm", [rand(f, 2, 3), rand(f, 3, 2), rand(f, 3)], reason=REFUSED, shapes=[(f, (2, 2))])
    case("Gemm", [rand(np.int32, 2, 3), rand(np.int32, 3, 2)], {"alpha": 0.5}, reason=REFUSED,
         shapes=[(np.int32, (2, 2))])
    case("MatMul", [rand(f, 2, 3), rand(f, 3, 2), rand(f, 2, 2)], reason=REFUSED, shapes=[(f, (2, 2))])
    case("MatMul", [rand(f, 2, 3), rand(f, 3, 2)], hidden={"rondo.activation": "Gelu"}, reason=REFUSED,
         shapes=[(f, (2, 2))])
    for dtype in FLOATS:
        a, b = rand(dtype, 3, 2, 4), rand(dtype, 4, 5)
        for bias in [(5,), (1, 5), (1,)]:
            c = rand(dtype, *bias)
            want = (a.astype(np.float64) @ b.astype(np.float64) + c).astype(dtype)
            case("MatMul", [a, b, c], expect=[want])
        fused("MatMul", [a, b])
        fused("MatMul", [a, b], plus=rand(dtype, 5))
        fused("Gemm", [rand(dtype, 3, 4), b, rand(dtype, 5)])
        fused("Add", [rand(dtype, 3, 4), rand(dtype, 4)])
        fused("Conv", [rand(dtype, 1, 2, 7), rand(dtype, 3, 2, 3), rand(dtype, 3)])
        # A bound that is absent does not bind; a slope that is absent is LeakyRelu's own.
        x, y = rand(dtype, 8), rand(dtype, 8)
        clip = {"rondo.activation": "Clip"}
        case("Add", [x, y], expect=[np.minimum(x + y, dtype(0.5))], hidden=dict(clip, **{"rondo.beta": 0.5}))
        case("Add", [x, y], expect=[np.maximum(x + y, dtype(-0.5))], hidden=dict(clip, **{"rondo.alpha": -0.5}))
        slope = np.float64(np.float32(0.01))
        want = np.where(x + y < 0, slope * (x + y).astype(np.float64), x + y).astype(dtype)
        case("Add", [x, y], expect=[want], hidden={"rondo.activation": "LeakyRelu"})


def convolutions():
    f = np.float32
    for dtype in FLOATS:
        case("Conv", [rand(dtype, 2, 3, 9), rand(dtype, 4, 3, 3), rand(dtype, 4)], {"pads": [1, 2], "strides": [2]})
        case("Conv", [rand(dtype, 1, 4, 6, 5), rand(dtype, 6, 2, 3, 2)],
             {"group": 2, "pads": [1, 0, 0, 1], "dilations": [2, 1], "strides": [1, 2]})
        case("Conv", [rand(dtype, 1, 2, 4, 3, 5), rand(dtype, 2, 2, 2, 2, 3), rand(dtype, 2)],
             {"pads": [1, 0, 1, 0, 1, 1]})
        case("Conv", [rand(dtype, 1, 3, 5, 5), rand(dtype, 3, 1, 3, 3)], {"group": 3})
    for mode in ["SAME_UPPER", "SAME_LOWER", "VALID"]:
        for stride, size in [(1, 4), (2, 3), (3, 2)]:
            case("Conv", [rand(f, 1, 2, 10, 7), rand(f, 2, 2, size, 3)],
                 {"auto_pad": mode, "strides": [stride, 2]}, ref=False)
    case("Conv", [rand(f, 1, 1, 4), rand(f, 1, 1, 1)], {"kernel_shape": [1], "pads": [3, 3], "strides": [4]})
    case("Conv", [rand(f, 0, 2, 5), rand(f, 3, 2, 2)], ref=False, ort=False, expect=[np.zeros((0, 3, 4), f)])
    case("Conv", [rand(f, 1, 3, 5), rand(f, 4, 2, 2)], reason=REFUSED, shapes=[(f, (1, 4, 4))])
    case("Conv", [rand(f, 1, 2, 3), rand(f, 4, 2, 5)], reason=REFUSED, shapes=[(f, (1, 4, 1))])
    case("Conv", [rand(f, 1, 2), rand(f, 4, 2)], reason=REFUSED, shapes=[(f, (1, 4))])
    case("Conv", [rand(f, 1, 2, 5), rand(f, 4, 2, 2)], {"strides": [0]}, reason=REFUSED, shapes=[(f, (1, 4, 4))])
    case("Conv", [rand(f, 1, 2, 5), rand(f, 4, 2, 2)], {"strides": [1, 1]}, reason=REFUSED, shapes=[(f, (1, 4, 4))])
    case("Conv", [rand(f, 1, 2, 5), rand(f, 3, 2, 2)], {"group": 0}, reason=REFUSED, shapes=[(f, (1, 3, 4))])


def lstm_function(name, alphas, betas):
    def take(values, default):
        return values.pop(0) if values else default

    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    name = name.lower()
    if name == "affine":
        a, b = take(alphas, 1.0), take(betas, 0.0)
        return lambda x: a * x + b
    if name == "scaledtanh":
        a, b = take(alphas, 1.0), take(betas, 1.0)
        return lambda x: a * np.tanh(b * x)
    if name == "hardsigmoid":
        a, b = take(alphas, 0.2), take(betas, 0.5)
        return lambda x: np.clip(a * x + b, 0, 1)
    if name in ("leakyrelu", "thresholdedrelu", "elu"):
        a = take(alphas, {"leakyrelu": 0.01}.get(name, 1.0))
        return {"leakyrelu": lambda x: np.where(x < 0, a * x, x), "thresholdedrelu": lambda x: np.where(x < a, 0, x),
                "elu": lambda x: np.where(x < 0, a * (np.exp(x) - 1), x)}[name]
    return {"sigmoid": sigmoid, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0),
            "softsign": lambda x: x / (1 + np.abs(x)), "softplus": lambda x: np.log(1 + np.exp(x))}[name]


def lstm_truth(inputs, attrs):
    """ONNX's equations over whole batches, in float64: the evaluator has one direction and no Y_c."""
    x, w, r, b, lens, h0, c0, p = [None if i is None else i.astype(np.float64)
                                   for i in inputs + [None] * (8 - len(inputs))]
    if attrs.get("layout"):
        x = x.transpose(1, 0, 2)
        h0, c0 = (None if i is None else i.transpose(1, 0, 2) for i in (h0, c0))
    steps, batch, _ = x.shape
    n, hidden = r.shape[0], r.shape[2]
    single = [np.float64(np.float32(v)) for v in attrs.get("activation_alpha") or []]
    double = [np.float64(np.float32(v)) for v in attrs.get("activation_beta") or []]
    names = attrs.get("activations") or ["Sigmoid", "Tanh", "Tanh"] * n
    functions = [lstm_function(name, single, double) for name in names]
    clip = np.float64(np.float32(attrs["clip"])) if "clip" in attrs else np.inf
    lens = np.full(batch, steps) if lens is None else lens.astype(int)
    y, y_h, y_c = np.zeros((steps, n, batch, hidden)), np.zeros((n, batch, hidden)), np.zeros((n, batch, hidden))
    for d in range(n):
        f, g, fh = functions[3 * d:3 * d + 3]
        h = np.zeros((batch, hidden)) if h0 is None else h0[d].copy()
        c = np.zeros((batch, hidden)) if c0 is None else c0[d].copy()
        bias = 0 if b is None else b[d, :4 * hidden] + b[d, 4 * hidden:]
        pi, po, pf = (0, 0, 0) if p is None else np.split(p[d], 3)
        backward = d == 1 or attrs.get("direction") == "reverse"
        for t in reversed(range(steps)) if backward else range(steps):
            live = (t < lens)[:, None]
            gi, go, gf, gc = np.split(x[t] @ w[d].T + h @ r[d].T + bias, 4, axis=1)
            i = f(np.clip(gi + pi * c, -clip, clip))
            forget = 1 - i if attrs.get("input_forget") else f(np.clip(gf + pf * c, -clip, clip))
            new = forget * c + i * g(np.clip(gc, -clip, clip))
            o = f(np.clip(go + po * new, -clip, clip))
            c = np.where(live, new, c)
            h = np.where(live, o * fh(new), h)
            y[t, d] = np.where(live, h, 0)
        y_h[d], y_c[d] = h, c
    if attrs.get("layout"):
        y, y_h, y_c = y.transpose(2, 0, 1, 3), y_h.transpose(1, 0, 2), y_c.transpose(1, 0, 2)
    return [v.astype(inputs[0].dtype) for v in (y, y_h, y_c)]


def lstms():
    f = np.float32
    steps, batch, size, hidden = 4, 3, 2, 3
    every = (True, True, True)
    base = {"hidden_size": hidden}

    def parts(directions, dtype=f):
        return [rand(dtype, steps, batch, size), rand(dtype, directions, 4 * hidden, size, low=-1, high=1),
                rand(dtype, directions, 4 * hidden, hidden, low=-1, high=1)]

    def check(inputs, attrs, outputs=every, ort=True):
        want = [t for t, wanted in zip(lstm_truth(inputs, attrs), outputs) if wanted]
        if ort and inputs[0].dtype == f:
            for a, b in zip(want, runtime("LSTM", inputs, attrs, outputs, OPSET)):
                if not agree(a, b):
                    sys.exit(f"LSTM {attrs} {[None if i is None else i.shape for i in inputs]}:\n{a}\nruntime\n{b}")
        case("LSTM", inputs, attrs, outputs, expect=want)

    for dtype in FLOATS:
        for direction, n in [("forward", 1), ("reverse", 1), ("bidirectional", 2)]:
            attrs = dict(base, direction=direction)
            b, h, c, p = (rand(dtype, n, 8 * hidden), rand(dtype, n, batch, hidden), rand(dtype, n, batch, hidden),
                          rand(dtype, n, 3 * hidden))
            lens = np.array([4, 1, 2], np.int32)
            check(parts(n, dtype) + [b], attrs)
            check(parts(n, dtype) + [b, lens, h, c, p], attrs)
            if dtype != f:
                continue
            check(parts(n) + [b, lens], attrs)
            check(parts(n) + [b, np.array([0, 4, 3], np.int32), h, c], attrs, ort=False)
            check(parts(n) + [None, None, h, c], attrs, (False, True, True))
            check(parts(n) + [b, None, h, c, p], dict(attrs, clip=0.3))
            check(parts(n) + [b, None, h, c], dict(attrs, input_forget=1))
            check(parts(n), attrs, (False, False, True))
            check(parts(n), attrs, (True,))
            for names, alpha, beta in [
                    (["HardSigmoid", "Softsign", "Relu"], [0.3], [0.4]),
                    (["Sigmoid", "ScaledTanh", "Affine"], [0.9, 1.2], [0.7, 0.1]),
                    (["sigmoid", "Elu", "LeakyRelu"], [0.8, 0.2], None),
                    (["Sigmoid", "Softplus", "ThresholdedRelu"], [0.1], None)]:
                check(parts(n) + [b], dict(attrs, activations=names * n, activation_alpha=alpha * n,
                                           activation_beta=beta * n if beta else None))
    x, w, r = parts(1)
    h, c = rand(f, batch, 1, hidden), rand(f, batch, 1, hidden)
    check([x.transpose(1, 0, 2).copy(), w, r, None, None, h, c], dict(base, layout=1), ort=False)
    case("LSTM", [x, w, r, None, np.array([4, 5, 1], np.int32)], base, (True,), reason=BAD_VALUE,
         shapes=[(f, (steps, 1, batch, hidden))])
    y = [(f, (steps, 1, batch, hidden))]
    case("LSTM", [x, w, r], {"hidden_size": 4}, reason=REFUSED, shapes=y)
    case("LSTM", [x, w, r], dict(base, direction="sideways"), reason=REFUSED, shapes=y)
    case("LSTM", [x, w, r], dict(base, activations=["Sigmoid", "Tanh", "Gelu"]), reason=REFUSED, shapes=y)
    case("LSTM", [x, w, r], dict(base, activations=["Sigmoid"]), reason=REFUSED, shapes=y)


# Functions of math.c, with a span of values in which each is defined, and the version from which on it exists.
MATH = {"Acos": (-1, 1), "Acosh": (1, 9), "Asin": (-1, 1), "Asinh": None, "Atan": None, "Atanh": (-0.9, 0.9),
        "Ceil": None, "Cos": None, "Cosh": None, "Elu": None, "Erf": None, "Floor": None, "Gelu": None,
        "HardSigmoid": None, "HardSwish": None, "IsInf": None, "IsNaN": None, "Mish": None, "Round": None, "Selu": None,
        "Shrink": None, "Sign": None, "Sin": None, "Sinh": None, "Softplus": None, "Softsign": None, "Tan": None,
        "ThresholdedRelu": None}
MATH_SETTINGS = {"Elu": {"alpha": 0.3}, "Gelu": {"approximate": "tanh"}, "HardSigmoid": {"alpha": 0.4, "beta": 0.1},
                 "IsInf": {"detect_negative": 0}, "Selu": {"alpha": 0.7, "gamma": 1.3},
                 "Shrink": {"bias": 0.25, "lambd": 1.5}, "ThresholdedRelu": {"alpha": 0.5}}


def mathematics():
    for op, span in MATH.items():
        for dtype in FLOATS:
            tests = op in ("IsInf", "IsNaN")
            x = rand(dtype, 3, 1, 5, low=span and span[0], high=span and span[1])
            if op in ("IsInf", "IsNaN", "Ceil", "Floor", "Round", "Sign", "Sin", "Erf"):
                x = np.append(x, np.array([0.5, 1.5, -2.5, -0.5, 7] + ([np.inf, -np.inf, np.nan] * tests), dtype))
            ort = dtype == np.float32 and op not in ("Erf",)
            case(op, [x], ort=ort, tolerance=2e-6)
            if op in MATH_SETTINGS:
                case(op, [x], MATH_SETTINGS[op], ort=ort, tolerance=2e-6)
    x = rand(np.float32, 4, 5)
    case("Celu", [x], {"alpha": 0.6}, ref=False)
    case("Swish", [x], {"alpha": 1.7}, opset=24, ort=False, tolerance=2e-6)
    odd = np.array([5, -5, 7, -7, 0, 6], np.int64)
    by = np.array([3, 3, -4, -4, 5, -3], np.int64)
    for dtype in SIGNED:
        case("Mod", [odd.astype(dtype), by.astype(dtype)])
        case("Mod", [odd.astype(dtype), by.astype(dtype)], {"fmod": 1})
        case("Mod", [np.array([np.iinfo(dtype).min], dtype), np.array([-1], dtype)], expect=[np.zeros(1, dtype)])
    for dtype in UNSIGNED:
        case("Mod", [rand(dtype, 5), rand(dtype, 3, 1, low=1)])
        case("BitShift", [rand(dtype, 2, 6), rand(dtype, 6, low=0, high=7)], {"direction": "LEFT"})
        case("BitShift", [rand(dtype, 2, 6), rand(dtype, 6, low=0, high=7)], {"direction": "RIGHT"})
        case("BitShift", [rand(dtype, 2), np.array([64, 200], dtype)], {"direction": "RIGHT"},
             expect=[np.zeros(2, dtype)])
    for dtype in FLOATS:
        case("Mod", [(odd / 3).astype(dtype), (by / 2).astype(dtype)], {"fmod": 1})
    for dtype in SIGNED + UNSIGNED:
        case("BitwiseNot", [rand(dtype, 5)])
        case("Sign", [np.append(rand(dtype, 5), dtype(0))])
        case("Mod", [rand(dtype, 3), np.array([1, 0, 2], dtype)], reason=ZERO_DIVISOR)
        for op in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]:
            case(op, [rand(dtype, 2, 3), rand(dtype, 3)])
    for dtype in NUMBERS:
        for op in ["LessOrEqual", "GreaterOrEqual"]:
            case(op, [rand(dtype, 3, 4, low=0, high=3), rand(dtype, 4, low=0, high=3)])
    for a, b in PAIRS[:5]:
        case("Xor", [rand(np.bool_, *a), rand(np.bool_, *b)])
    for dtype in FLOATS:
        for op in ["Sum", "Mean"]:
            case(op, [rand(dtype, 2, 2, 3), rand(dtype, 3), rand(dtype, 2, 1)], tolerance=1e-6)
            case(op, [rand(dtype, 3)])
        case("PRelu", [rand(dtype, 2, 3, 4), rand(dtype, 3, 1)])
    case("PRelu", [rand(np.float32, 3), rand(np.float32, 2, 3)], reason=REFUSED)
    case("BitShift", [rand(np.uint8, 2), rand(np.uint8, 2)], {"direction": "UP"}, reason=REFUSED)
    case("CastLike", [rand(np.float32, 3, low=-9, high=9), rand(np.int8, 2, 2)])
    case("CastLike", [rand(np.int16, 3), rand(np.float64)])
    case("BitCast", [rand(np.float32, 3)], {"to": TensorProto.INT32}, opset=26, ort=False)
    case("BitCast", [rand(np.float32, 3)], {"to": TensorProto.INT64}, reason=REFUSED, shapes=[(np.int64, (3,))])


def more_reductions():
    for op in ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMin", "ReduceProd", "ReduceSumSquare"]:
        log = op == "ReduceLogSum"
        for axes, attrs in [(None, {}), ([1], {"keepdims": 0}), ([-1, 0], {}), ([], {"noop_with_empty_axes": 1})]:
            for dtype in FLOATS:
                x = rand(dtype, 2, 3, 4, low=0.1 if log else -2, high=2)
                quiet = not axes and axes is not None  # what a function of nothing reduced is, they disagree on
                if not quiet and not (log and dtype == np.float64):  # nobody has that one
                    case(op, [x] + ([] if axes is None else [ints(*axes)]), attrs, ort=dtype == np.float32, opset=20,
                         tolerance=None if log else 2e-6)
        if "Log" not in op:  # of int32 the evaluator makes int64
            case(op, [rand(np.int64, 3, 4, low=1, high=9), ints(1)], {}, ort=False, opset=20)
    for dtype in [np.int8, np.uint8]:
        case("ReduceMin", [rand(dtype, 3, 4), ints(0)], {}, opset=20)
    case("ReduceMin", [rand(np.bool_, 3, 4), ints(0)], {}, ort=False, opset=20)
    for op, want in [("ReduceProd", 1), ("ReduceMin", np.inf), ("ReduceL1", 0), ("ReduceL2", 0),
                     ("ReduceSumSquare", 0), ("ReduceLogSum", -np.inf), ("ReduceLogSumExp", -np.inf)]:
        case(op, [np.zeros((2, 0), np.float32), ints(1)], {"keepdims": 0}, expect=[np.full(2, want, np.float32)])
    case("ReduceLogSumExp", [np.array([1000, 1000.5, -1000], np.float32)], {"keepdims": 0},
         expect=[np.array(1000.5 + np.log(1 + np.exp(-0.5)), np.float32)])
    for dtype in FLOATS:
        for op in ["LogSoftmax", "Hardmax"]:
            for axis in [None, 0, -2]:
                case(op, [rand(dtype, 2, 3, 4)], {"axis": axis}, tolerance=2e-6)
        case("LogSoftmax", [np.array([[1000, 1001, -1000]], dtype)], ref=False, tolerance=2e-6)
        case("Hardmax", [np.array([[1, 3, 3, 2]], dtype)])


def along_axes():
    for op in ["ArgMax", "ArgMin"]:
        for dtype in [np.float32, np.float64, np.int32, np.uint8, np.int8, np.int64]:
            for attrs in [{}, {"axis": -1, "keepdims": 0}, {"axis": 1, "select_last_index": 1}]:
                x = rand(dtype, 2, 5, 3, low=0, high=3).round() if np.dtype(dtype).kind == "f" else rand(
                    dtype, 2, 5, 3, low=0, high=3)
                case(op, [x], attrs, ort=dtype in (np.float32, np.int32))
        case(op, [np.zeros((0, 3), np.float32)], reason=REFUSED, shapes=[(np.int64, (1, 3))])
    for dtype in FLOATS + [np.int32, np.int64]:
        for exclusive in [0, 1]:
            for reverse in [0, 1]:
                for axis in [np.array(1, np.int32), np.array([-1], np.int64)]:
                    x = rand(dtype, 2, 3, 4, low=-5, high=5)
                    case("CumSum", [x, axis], {"exclusive": exclusive, "reverse": reverse}, ref=axis.ndim == 0,
                         tolerance=1e-6)
                    case("CumProd", [x, np.array(axis.item(), np.int64)],
                         {"exclusive": exclusive, "reverse": reverse}, opset=26, ort=False, tolerance=1e-6)
    case("CumSum", [rand(np.float32, 2), np.array(3, np.int64)], reason=BAD_VALUE)
    for dtype in [np.float32, np.float64, np.int64, np.int32]:
        for attrs in [{}, {"largest": 0}, {"axis": 0}, {"axis": 1, "largest": 0}]:
            x = rng.permutation(60).reshape(3, 4, 5).astype(dtype)
            case("TopK", [x, ints(2)], attrs, (True, True))
    case("TopK", [np.array([1, 3, 3, 2, 3], np.float32), ints(4)], {}, (True, True), ref=False)
    case("TopK", [np.array([1, 3, 3, 2, 3], np.float32), ints(2)], {"largest": 0}, (True, False))
    case("TopK", [rand(np.float32, 3), ints(2)], {}, (True, True), reason=SHAPE_MISMATCH,
         shapes=[(np.float32, (3,)), (np.int64, (3,))])


def by_index():
    for dtype in [np.float32, np.float64, np.int8, np.int64, np.bool_]:
        data = rand(dtype, 3, 4, 2)
        case("GatherElements", [data, rng.integers(-4, 4, (3, 6, 2))], {"axis": 1}, ort=True)
        case("GatherElements", [data, rng.integers(0, 2, (2, 3, 5)).astype(np.int32)], {"axis": -1})
        case("GatherND", [data, rng.integers(-3, 3, (5, 1))])
        case("GatherND", [data, rng.integers(0, 2, (2, 5, 3))])
        case("GatherND", [data, rng.integers(0, 4, (3, 2, 1))], {"batch_dims": 1})
        case("ScatterElements", [data, np.array([[[3], [0]]]), rand(dtype, 1, 2, 1)], {"axis": 1})
        case("ScatterND", [data, np.array([[2], [-3]]), rand(dtype, 2, 4, 2)])
        case("Trilu", [rand(dtype, 2, 3, 5)], ref=dtype != np.bool_)
        for upper in [0, 1]:
            for k in [-9, -1, 0, 2, 9]:
                case("Trilu", [rand(dtype, 4, 3), np.array(k, np.int64)], {"upper": upper})
        case("Tile", [data, ints(2, 1, 3)])
    for dtype in [np.float32, np.int64]:
        for axis in [1, -1, 0]:
            case("OneHot", [np.array([[1, -1], [5, 2]]), np.array(4, np.int64), rand(dtype, 2)], {"axis": axis}, ref=False)
    for op, at, updates in [("ScatterElements", np.array([[1, 1, 0], [-1, 1, 2]]), (2, 3)),
                            ("ScatterND", np.array([[1], [1], [0]]), (3, 4))]:
        for reduction in ["add", "mul", "max", "min"]:
            for dtype in [np.float32, np.int64]:
                case(op, [rand(dtype, 3, 4, low=-4, high=4), at, rand(dtype, *updates, low=-4, high=4)],
                     {"reduction": reduction}, tolerance=1e-6)
    f = np.float32
    data = rand(f, 3, 4)
    case("GatherElements", [data, np.array([[3]])], {"axis": 0}, reason=INDEX_RANGE, shapes=[(f, (1, 1))])
    case("GatherElements", [data, np.zeros((4, 1), np.int64)], {"axis": 1}, reason=REFUSED, shapes=[(f, (4, 1))])
    case("GatherND", [data, np.array([[0, 4]])], reason=INDEX_RANGE, shapes=[(f, (1,))])
    case("ScatterND", [data, np.array([[-4]]), rand(f, 1, 4)], reason=INDEX_RANGE)
    case("ScatterElements", [data, np.array([[-4]]), rand(f, 1, 1)], reason=INDEX_RANGE)
    case("Tile", [data, ints(1, 2)], reason=SHAPE_MISMATCH)
    for dtype, k in [(np.float32, 0), (np.int64, 1), (np.float64, -2)]:
        case("EyeLike", [rand(np.int32, 3, 4)], {"dtype": dtype_number(dtype), "k": k})
    for dtype in [np.float32, np.float64, np.int16, np.int32, np.int64]:
        for start, limit, delta in [(1, 9, 3), (8, -1, -2), (3, 3, 1), (5, 1, 1)]:
            case("Range", [np.array(v, dtype) for v in (start, limit, delta)])
    case("Range", [np.array(v, f) for v in (0, 1, 0.3)], tolerance=1e-6)
    case("Range", [np.array(v, np.int32) for v in (0, 5, 1)], reason=SHAPE_MISMATCH, shapes=[(np.int32, (4,))])


def rms(x, scale, axis, epsilon):
    """ONNX's equation in float64."""
    wide = x.astype(np.float64)
    mean = (wide**2).mean(axis=tuple(range(axis, x.ndim)), keepdims=True)
    return (wide / np.sqrt(mean + np.float64(np.float32(epsilon))) * scale).astype(x.dtype)


def normalizations():
    f = np.float32
    for axis in [None, 1, -2, 0]:
        x = rand(f, 2, 3, 4)
        own = x.shape[{None: 2, 1: 1, -2: 1, 0: 0}[axis]:]
        case("LayerNormalization", [x, rand(f, *own), rand(f, *own)], {"axis": axis}, (True, True, True), tolerance=2e-6)
        case("LayerNormalization", [x, rand(f, *own)], {"axis": axis, "epsilon": 0.1}, tolerance=2e-6)
        start = {None: 2, 1: 1, -2: 1, 0: 0}[axis]
        for dtype in FLOATS:
            x, scale = rand(dtype, 2, 3, 4), rand(dtype, *own)
            case("RMSNormalization", [x, scale], {"axis": axis}, expect=[rms(x, scale, start, 1e-5)], tolerance=1e-6)
    case("LayerNormalization", [rand(f, 2, 3), rand(f, 2)], reason=REFUSED)
    for dtype in FLOATS:
        x, one = rand(dtype, 2, 4, 3, 2), [rand(dtype, 4) for _ in range(3)] + [rand(dtype, 4, low=0.1)]
        case("BatchNormalization", [x] + one, ort=dtype == f, tolerance=2e-6)
        case("BatchNormalization", [x] + one, {"epsilon": 0.1}, ort=dtype == f, tolerance=2e-6)
        case("InstanceNormalization", [x] + one[:2], ort=dtype == f, tolerance=2e-6)
        case("GroupNormalization", [x] + one[:2], {"num_groups": 2}, ort=False, tolerance=2e-6)
        if dtype == f:  # the evaluator leaves out what is past the first batch
            case("LRN", [x], {"size": 3, "alpha": 0.3, "beta": 0.6, "bias": 1.2}, ref=False)
            case("LRN", [x], {"size": 1}, ref=False)
        case("LpNormalization", [x], {"axis": 1}, tolerance=2e-6)
        if dtype == f:  # the evaluator sums without absolute values
            case("LpNormalization", [x], {"p": 1, "axis": 2}, ref=False)
        case("LpNormalization", [np.array([[0, 0], [3, 4]], dtype)], expect=[np.array([[0, 0], [0.6, 0.8]], dtype)])
    case("BatchNormalization", [rand(f, 2, 3)] + [rand(f, 3)] * 4, {"training_mode": 1}, reason=REFUSED)
    case("GroupNormalization", [rand(f, 2, 3)] + [rand(f, 3)] * 2, {"num_groups": 2}, reason=REFUSED)


def losses():
    for dtype in [np.float32, np.float64]:
        for shape in [(5, 4), (2, 4, 3)]:
            x = rand(dtype, *shape)
            labels = rng.integers(0, 4, shape[:1] + shape[2:])
            for reduction in ["mean", "sum", "none"]:
                for weight in [None, rand(dtype, 4, low=0.1)]:
                    attrs = {"reduction": reduction, "ignore_index": 2 if weight is not None else None}
                    inputs = [x, labels] + ([] if weight is None else [weight])
                    case("NegativeLogLikelihoodLoss", inputs, attrs, ref=dtype == np.float64, ort=dtype == np.float32)
                    case("SoftmaxCrossEntropyLoss", inputs, attrs, (True, True), ref=dtype == np.float64,
                         ort=dtype == np.float32, tolerance=2e-5)
    x = rand(np.float32, 2, 3)
    for op in ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]:
        case(op, [x, np.array([0, 3])], reason=INDEX_RANGE, shapes=[(np.float32, ())])
        case(op, [x, np.array([0, 1, 1])], reason=REFUSED, shapes=[(np.float32, ())])


def pools():
    f = np.float32
    for op in ["MaxPool", "AveragePool", "LpPool"]:
        for shape, kernel in [((2, 3, 9), [3]), ((1, 2, 7, 6), [2, 3]), ((1, 1, 4, 5, 4), [2, 2, 3])]:
            n = len(kernel)
            for attrs in [{}, {"strides": [2] * n}, {"pads": [1] * (2 * n), "strides": [2] * n},
                          {"auto_pad": "SAME_UPPER", "strides": [2] * n}, {"auto_pad": "SAME_LOWER"},
                          {"dilations": [2] + [1] * (n - 1)}, {"ceil_mode": 1, "strides": [2] * n},
                          {"auto_pad": "VALID"}]:
                extra = [{}]
                if op == "AveragePool":
                    extra = [{}, {"count_include_pad": 1}]
                elif op == "LpPool":
                    extra = [{}, {"p": 1}]
                for more in extra:
                    case(op, [rand(f, *shape)], dict(attrs, kernel_shape=kernel, **more), ref=False)
        case(op, [rand(f, 1, 1, 2)], {"kernel_shape": [3]}, reason=REFUSED, shapes=[(f, (1, 1, 1))])
    for order in [0, 1]:
        case("MaxPool", [rand(f, 2, 2, 5, 4)], {"kernel_shape": [2, 2], "storage_order": order}, (True, True), ref=False)
    for dtype in [np.int8, np.uint8]:
        case("MaxPool", [rand(dtype, 1, 2, 5)], {"kernel_shape": [2]}, ref=False)
    case("MaxPool", [rand(np.float64, 1, 2, 5)], {"kernel_shape": [2]}, ref=False)
    for op in ["GlobalAveragePool", "GlobalMaxPool"]:
        case(op, [rand(f, 2, 3, 4, 5)], ref=False)
        case(op, [rand(f, 2, 3, 4)], ref=False)


if __name__ == "__main__":
    for part in [unary, binary, power, cast, select, shapes, moves, reductions, products, convolutions, lstms,
                 mathematics, more_reductions, along_axes, by_index, normalizations, losses, pools]:
        part()
    data = b"RONDOREF" + struct.pack("<I", len(cases)) + b"".join(cases)
    pathlib.Path(__file__).with_name("cases.bin").write_bytes(data)
    print(f"{len(cases)} cases, {len(data)} bytes; expected by {spoken}")
