#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the models of this folder, which depend on data: control flow, sizes that data decides, sequences and optionals.
Each is model.onnx with test_data_set_N/{input,output}_N.pb; the outputs are ONNX Runtime's.

    python3 tests/data/control/make.py [NAME...]

Written with onnx 1.23.2 and ONNX Runtime 1.32; needs numpy, too. Only this script needs them: what it makes is committed."""
import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
MODELS = {}


def model(function):
    """A model is a function that gives a graph and a list of feeds."""
    MODELS[function.__name__] = function
    return function


def value(name, dtype=F, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def sequence(name, dtype=F):
    return helper.make_tensor_sequence_value_info(name, dtype, None)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def const(name, array):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(array), name + "_value"))


def graph(nodes, inputs, outputs, name="graph"):
    return helper.make_graph(nodes, name, inputs, outputs)


def f32(*values):
    return np.array(values, np.float32)


@model
def nonzero_chain():
    """What is selected decides the size of all that follows; a second selection depends on the first."""
    nodes = [node("NonZero", "mask", "where"), const("zero", np.int64(0)), node("Squeeze", "where axes", "places"),
             node("Gather", "x places", "chosen", axis=0), node("Mul", "chosen chosen", "squares"),
             node("Greater", "squares limit", "large"), node("Compress", "squares large", "y", axis=0),
             node("Shape", "y", "count")]
    g = graph([const("axes", np.array([0], np.int64)), const("limit", np.float32(2))] + nodes,
              [value("x", F, ["n"]), value("mask", B, ["n"])], [value("y"), value("count", I)])
    return g, [{"x": f32(1, 2, -3, 0.5), "mask": np.array(m)} for m in
               ([True, True, True, False], [False] * 4, [False, True, False, True])]


@model
def if_nested():
    """A condition that is computed; the branches look two graphs out, and one has a condition of its own."""
    deep_then = graph([node("Add", "x twice", "dt")], [], [value("dt")], "deep_then")
    deep_else = graph([node("Sub", "x twice", "de")], [], [value("de")], "deep_else")
    then = graph([node("ReduceMin", "x", "least", keepdims=0), node("Less", "least zero", "negative"),
                  helper.make_node("If", ["negative"], ["inner"], then_branch=deep_then, else_branch=deep_else),
                  node("Mul", "inner k", "t")], [], [value("t")], "then")
    other = graph([node("Slice", "x first last", "e")], [], [value("e")], "else")
    nodes = [const("zero", np.float32(0)), const("k", np.float32(3)), const("first", np.array([0], np.int64)),
             const("last", np.array([1], np.int64)), node("Add", "x x", "twice"), node("ReduceSum", "x", "sum", keepdims=0),
             node("Greater", "sum zero", "positive"),
             helper.make_node("If", ["positive"], ["r"], then_branch=then, else_branch=other), node("Neg", "r", "y")]
    return graph(nodes, [value("x", F, ["n"])], [value("y")]), [{"x": f32(1, 2)}, {"x": f32(-1, 4)}, {"x": f32(-5, 1, 2)}]


def loop_body(nodes, carried, outputs, dtypes=(), name="body"):
    return graph(nodes, [value("i", I, []), value("go", B, [])] + carried, [value("go_on", B)] + outputs, name)


@model
def loop_early_exit():
    """Doubles until it is too large; the trips that there were are collected."""
    body = loop_body([node("Add", "a a", "b"), node("ReduceMax", "b", "top", keepdims=0), node("Less", "top limit", "go_on"),
                      node("Identity", "b", "kept"), node("Cast", "i", "trip", to=F)],
                     [value("a", F, ["n"])], [value("b", F, ["n"]), value("kept", F, [2]), value("trip", F, [])])
    nodes = [node("Loop", "trips start x", "last all numbers", body=body)]
    g = graph(nodes, [value("trips", I, []), value("start", B, []), value("x", F, ["n"]), value("limit", F, [])],
              [value("last"), value("all"), value("numbers")])
    feed = {"x": f32(1, 3), "limit": np.float32(20)}
    return g, [dict(feed, trips=np.int64(t), start=np.bool_(s)) for t, s in ((10, True), (2, True), (0, True), (5, False))]


@model
def loop_grows():
    """What is carried grows by a trip: no two trips have the same sizes. No number of trips is given."""
    body = loop_body([node("Concat", "a x", "b", axis=0), node("Size", "b", "size"), node("Less", "size most", "go_on")],
                     [value("a", F, None)], [value("b", F, None)])
    nodes = [const("yes", np.bool_(True)), helper.make_node("Loop", ["", "yes", "x"], ["y"], body=body)]
    return graph(nodes, [value("x", F, ["n"]), value("most", I, [])], [value("y")]), [
        {"x": f32(1, 2), "most": np.int64(7)}, {"x": f32(5), "most": np.int64(1)}]


@model
def loop_in_loop():
    """A table of products: the inner loop's trips are the outer one's number, and it sees both graphs around it."""
    inner = loop_body([node("Cast", "i", "fi", to=F), node("Add", "fo fi", "term"), node("Mul", "term scale", "scaled"),
                       node("Add", "s scaled", "s2"), node("Identity", "go", "go_on")],
                      [value("s", F, [])], [value("s2", F, [])], name="inner")
    inner = helper.make_graph(inner.node, "inner", [value("i2", I, []), value("go2", B, []), value("s", F, [])],
                              [value("go_on2", B), value("s2", F, [])])
    for n in inner.node:
        for at, text in enumerate(n.input):
            n.input[at] = {"i": "i2", "go": "go2"}.get(text, text)
        for at, text in enumerate(n.output):
            n.output[at] = {"go_on": "go_on2"}.get(text, text)
    outer = loop_body([node("Cast", "i", "fo", to=F), helper.make_node("Loop", ["i", "", "total"], ["t2"], body=inner),
                       node("Identity", "go", "go_on"), node("Identity", "t2", "row")],
                      [value("total", F, [])], [value("t2", F, []), value("row", F, [])], name="outer")
    nodes = [const("zero", np.float32(0)), helper.make_node("Loop", ["n", "", "zero"], ["sum", "sums"], body=outer)]
    return graph(nodes, [value("n", I, []), value("scale", F, [])], [value("sum"), value("sums")]), [
        {"n": np.int64(n), "scale": np.float32(0.5)} for n in (4, 1, 0)]


@model
def if_in_loop():
    """Collatz's sequence: a condition of each trip, an exit, and what is seen on the way."""
    then = graph([node("Div", "v two", "half")], [], [value("half", I, [])], "even")
    other = graph([node("Mul", "v three", "t3"), node("Add", "t3 one", "up")], [], [value("up", I, [])], "odd")
    body = loop_body([node("Mod", "v two", "rest"), node("Equal", "rest zero", "even_now"),
                      helper.make_node("If", ["even_now"], ["next"], then_branch=then, else_branch=other),
                      node("Greater", "next one", "go_on"), node("Identity", "next", "seen")],
                     [value("v", I, [])], [value("next", I, []), value("seen", I, [])])
    nodes = [const(n, np.int64(k)) for n, k in (("zero", 0), ("one", 1), ("two", 2), ("three", 3))]
    nodes += [helper.make_node("Loop", ["most", "", "n"], ["end", "path"], body=body)]
    return graph(nodes, [value("n", I, []), value("most", I, [])], [value("end", I), value("path", I)]), [
        {"n": np.int64(6), "most": np.int64(100)}, {"n": np.int64(27), "most": np.int64(10)}]


@model
def scan_axes():
    """Two states, two inputs along other axes, one of them backwards, and outputs stacked in front and at the end."""
    body = graph([node("Add", "s a", "s2"), node("Mul", "p b", "p2"), node("Add", "s2 b", "o1"), node("Sub", "a b", "o2")],
                 [value("s", F, [3]), value("p", F, [3]), value("a", F, [3]), value("b", F, [3])],
                 [value("s2", F, [3]), value("p2", F, [3]), value("o1", F, [3]), value("o2", F, [3])], "body")
    nodes = [node("Scan", "s0 p0 rows columns", "sn pn o1s o2s", body=body, num_scan_inputs=2, scan_input_axes=[0, -1],
                  scan_input_directions=[0, 1], scan_output_axes=[0, 1], scan_output_directions=[1, 0])]
    g = graph(nodes, [value("s0", F, [3]), value("p0", F, [3]), value("rows", F, ["t", 3]), value("columns", F, [3, "t"])],
              [value(n) for n in ("sn", "pn", "o1s", "o2s")])
    r = np.random.default_rng(1)
    return g, [{"s0": r.normal(size=3).astype(np.float32), "p0": f32(1, 2, 3), "rows": r.normal(size=(t, 3)).astype(np.float32),
                "columns": r.normal(size=(3, t)).astype(np.float32)} for t in (4, 1)]


@model
def scan_with_selection():
    """A scan whose body has a size that data decides, and a loop behind it whose trips are its result."""
    body = graph([node("NonZero", "row", "where"), node("Shape", "where", "both"), node("Gather", "both last", "many"),
                  node("Add", "s many", "s2"), node("Identity", "many", "each")],
                 [value("s", I, []), value("row", F, ["m"])], [value("s2", I, []), value("each", I, [])], "rows")
    double = loop_body([node("Add", "v v", "v2"), node("Identity", "go", "go_on")], [value("v", F, [])],
                       [value("v2", F, [])], name="double")
    nodes = [const("none", np.int64(0)), const("last", np.int64(1)), const("one", np.float32(1)),
             node("Scan", "none table", "all each_row", body=body, num_scan_inputs=1),
             helper.make_node("Loop", ["all", "", "one"], ["power"], body=double)]
    return graph(nodes, [value("table", F, ["n", "m"])], [value("each_row", I), value("power")]), [
        {"table": np.array([[1, 0, 2], [0, 0, 0], [3, 4, 5]], np.float32)}, {"table": np.zeros((2, 1), np.float32)}]


@model
def sequence_of_parts():
    """Cut, changed and joined again: lists of tensors of many lengths."""
    body = loop_body([node("SequenceAt", "parts i", "part"), node("Mul", "part part", "square"),
                      node("SequenceInsert", "out square", "out2"), node("Identity", "go", "go_on")],
                     [sequence("out")], [sequence("out2")])
    nodes = [node("SplitToSequence", "x sizes", "parts", axis=0), node("SequenceLength", "parts", "n"),
             helper.make_node("SequenceEmpty", [], ["nothing"], dtype=F),
             helper.make_node("Loop", ["n", "", "nothing"], ["squares"], body=body), const("first", np.int64(0)),
             node("SequenceErase", "squares first", "later"), node("ConcatFromSequence", "later", "y", axis=0),
             node("SequenceErase", "squares", "sooner"), node("SequenceConstruct", "x x", "pair"),
             node("ConcatFromSequence", "pair", "stacked", axis=1, new_axis=1), node("SequenceLength", "sooner", "m")]
    g = graph(nodes, [value("x", F, ["n"]), value("sizes", I, ["k"])],
              [value("y"), value("stacked"), value("m", I), sequence("squares")])
    return g, [{"x": f32(1, 2, 3, 4, 5), "sizes": np.array(s, np.int64)} for s in ([2, 1, 2], [1, 4])]


@model
def unique_words():
    """A vocabulary with counts, and each word as a vector of its frequency."""
    nodes = [node("Unique", "words", "vocabulary first inverse counts"), node("Cast", "counts", "weights", to=F),
             node("Gather", "weights inverse", "y", axis=0)]
    return graph(nodes, [value("words", I, ["n"])], [value("vocabulary", I), value("first", I), value("y")]), [
        {"words": np.array(w, np.int64)} for w in ([5, 3, 5, 5, 9, 3], [7], [2, 1, 0])]


@model
def shapes_from_data():
    """Data says how long a range is, how a tensor is cut, and into what it is folded."""
    nodes = [node("ReduceMax", "x", "top", keepdims=0), node("Cast", "top", "n", to=I), const("zero", np.int64(0)),
             const("one", np.int64(1)), const("axes", np.array([0], np.int64)), node("Range", "zero n one", "r"),
             node("Unsqueeze", "n axes", "ends"), const("starts", np.array([1], np.int64)),
             node("Slice", "x starts ends", "cut"), const("columns", np.array([-1], np.int64)),
             node("Concat", "ends columns", "shape", axis=0), node("Expand", "cut shape2", "wide"),
             const("tail", np.array([1], np.int64)), node("Concat", "ends tail", "shape2", axis=0),
             node("ReduceSum", "wide", "sums", keepdims=0), node("Reshape", "wide shape", "folded")]
    nodes = nodes[:10] + [nodes[10], nodes[12], nodes[13], nodes[11], nodes[14], nodes[15]]
    return graph(nodes, [value("x", F, ["m"])], [value("r", I), value("cut"), value("sums"), value("folded")]), [
        {"x": f32(0, 3, 1, 2)}, {"x": f32(2, 2, 1)}]


def write(name, function):
    g, feeds = function()
    proto = helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="rondo")
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    for at, feed in enumerate(feeds):
        place = folder / f"test_data_set_{at}"
        place.mkdir()
        results = session.run(None, {key: np.asarray(array) for key, array in feed.items()})
        for n, info in enumerate(g.input):
            (place / f"input_{n}.pb").write_bytes(numpy_helper.from_array(np.asarray(feed[info.name]), info.name).SerializeToString())
        for n, (info, result) in enumerate(zip(g.output, results)):
            made = numpy_helper.from_list(result, info.name) if isinstance(result, list) else \
                numpy_helper.from_array(np.asarray(result), info.name)
            (place / f"output_{n}.pb").write_bytes(made.SerializeToString())


if __name__ == "__main__":
    onnxruntime.set_default_logger_severity(3)
    for name in sys.argv[1:] or MODELS:
        write(name, MODELS[name])
        print(name)
