#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small ONNX models that stand beside this file; needs onnx, numpy and onnxruntime (tests/requirements.txt).

models/NAME.onnx         right models: they import; cut anywhere they are refused; corrupted they never crash
hostile/NAME.onnx        wrong models; hostile/expected.txt says what each must be refused with
versions/NAME/           old forms of operators as test folders (model.onnx, test_data_set_0/), whose outputs are those of
                         ONNX Runtime: `rondo check tests/data/onnx/versions/*`

The files are committed: a run of this script changes them only when it, or the libraries that it uses, changed.
"""
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
rng = np.random.default_rng(2)


def info(name, dtype=F, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def tensor(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def rand(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def model(nodes, inputs, outputs, opset, initializers=(), ir=8, name="main"):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="rondo")
    made.ir_version = ir
    return made


# ------------------------------------------------------------------------------------------------------- right models

def perceptron():
    node = helper.make_node
    return model(
        [node("Flatten", ["x"], ["f"], axis=1), node("Gemm", ["f", "w", "b"], ["h"], name="hidden", transB=1),
         node("Relu", ["h"], ["r"]), node("MatMul", ["r", "v"], ["l"]), node("Softmax", ["l"], ["y"], axis=-1)],
        [info("x", F, ["batch", 2, 4])], [info("y", F, ["batch", 3])], 21,
        [tensor("w", rand(5, 8)), tensor("b", rand(5)), tensor("v", rand(5, 3))])


def recurrent():
    node = helper.make_node
    return model(
        [node("Constant", [], ["axes"], value=tensor("", [0], np.int64)),
         node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1], strides=[2]), node("Relu", ["c"], ["r"]),
         node("Transpose", ["r"], ["t"], perm=[2, 0, 1]),
         node("LSTM", ["t", "lw", "lr", "lb", "", "h", "c0"], ["s", "hn", "cn"], hidden_size=4),
         node("Squeeze", ["hn", "axes"], ["q"]), node("Sigmoid", ["q"], ["y"])],
        [info("x", F, [1, 2, 16]), info("h", F, [1, 1, 4]), info("c0", F, [1, 1, 4])],
        [info("y", F, [1, 4]), info("cn", F, [1, 1, 4])], 16,
        [tensor("w", rand(3, 2, 3)), tensor("b", rand(3)), tensor("lw", rand(1, 16, 3)), tensor("lr", rand(1, 16, 4)),
         tensor("lb", rand(1, 32))])


def branches():
    node = helper.make_node

    def branch(operator, inner):
        nodes = [node("Constant", [], ["k"], value_float=2.0), node(operator, ["outer", "k"], ["m"])]
        last = "m"
        if inner:
            nodes.append(node("If", ["c"], ["p"], then_branch=leaf("Neg"), else_branch=leaf("Abs")))
            last = "p"
        return helper.make_graph(nodes, operator, [], [info(last, F, ["N", 3])])

    def leaf(operator):
        return helper.make_graph([node(operator, ["outer"], ["z"])], operator, [], [info("z", F, ["N", 3])])

    return model(
        [node("Relu", ["x"], ["outer"]), node("Equal", ["n", "sixteen"], ["c"]),
         node("If", ["c"], ["y"], then_branch=branch("Mul", True), else_branch=branch("Add", False))],
        [info("x", F, ["N", 3]), info("n", I, [])], [info("y", F, ["N", 3])], 16, [tensor("sixteen", 16, np.int64)])


def shapes():
    node = helper.make_node
    return model(
        [node("Shape", ["x"], ["s"], start=0, end=2), node("Concat", ["s", "minus"], ["t"], axis=0),
         node("Reshape", ["x", "t"], ["r"]), node("Pad", ["r", "pads", ""], ["p"], mode="reflect"),
         node("Slice", ["p", "from", "to", "axis"], ["q"]), node("Split", ["q"], ["u", ""], axis=2, num_outputs=2),
         node("ReduceMean", ["u", "axis"], ["y"], keepdims=0)],
        [info("x", F, ["a", "b", 2, 3])], [info("y", F, ["d0", "d1", "d2"])], 18,
        [tensor("minus", [-1], np.int64), tensor("pads", [0, 0, 1, 0, 0, 2], np.int64), tensor("from", [1], np.int64),
         tensor("to", [2 ** 63 - 1], np.int64), tensor("axis", [2], np.int64)])


def every_type():
    node = helper.make_node
    types = [np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
             np.bool_, np.float16]
    tensors = [tensor(f"t{i}", [0, 1, 1], kind) for i, kind in enumerate(types)]
    tensors += [helper.make_tensor("words", TensorProto.STRING, [2], [b"one", b"two"]),
                helper.make_tensor("typed", F, [2], [1.0, -2.0]),
                helper.make_tensor("bytes", TensorProto.INT8, [2], [-1, 5]),
                helper.make_tensor("none", F, [0, 3], [])]
    return model([node("Identity", ["x"], ["y"])], [info("x", F, [])], [info("y", F, [])] +
                 [info(f"t{i}", t.data_type, [3]) for i, t in enumerate(tensors[:len(types)])], 21, tensors)


RIGHT = {"perceptron": perceptron, "recurrent": recurrent, "branches": branches, "shapes": shapes,
         "every_type": every_type}


# ------------------------------------------------------------------------------------------------------- wrong models

def relu(**changes):
    made = model([helper.make_node("Relu", ["x"], ["y"], name="r")], [info("x", F, [2])], [info("y", F, [2])], 21)
    for name, change in changes.items():
        change(made) if callable(change) else setattr(made, name, change)
    return made


def with_weight(edit):
    made = model([helper.make_node("Add", ["x", "w"], ["y"], name="a")], [info("x", F, [2])], [info("y", F, [2])], 21,
                 [tensor("w", [1, 2])])
    edit(made.graph.initializer[0])
    return made


def nodes_of(*nodes, outputs=("y",), opset=21):
    return model(list(nodes), [info("x", F, [2])], [info(name) for name in outputs], opset)


def external(location, **entries):
    def edit(weight):
        weight.ClearField("raw_data")
        weight.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, **entries}.items():
            entry = weight.external_data.add()
            entry.key, entry.value = key, value
    return with_weight(edit)


def hostile():
    node = helper.make_node
    yield "undefined_value", nodes_of(node("Add", ["x", "ghost"], ["y"], name="a")), "corrupt", "'a' (Add): its input 'ghost'"
    yield "undefined_output", nodes_of(node("Relu", ["x"], ["z"])), "corrupt", "output 'y' is not defined"
    yield "cycle", nodes_of(node("Add", ["x", "b"], ["a"], name="first"), node("Relu", ["a"], ["b"], name="second"),
                            node("Relu", ["b"], ["y"])), "corrupt", "cycle"
    yield "self_loop", nodes_of(node("Add", ["x", "y"], ["y"], name="loop")), "corrupt", "'loop'"
    yield "two_makers", nodes_of(node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"], name="n")), "corrupt", "a second time"
    yield "no_inputs", nodes_of(node("Add", [], ["y"], name="a")), "invalid argument", "'a'"
    yield "too_many_inputs", nodes_of(node("Relu", ["x", "x", "x"], ["y"], name="r")), "invalid argument", "'r'"
    yield "unknown_attribute", nodes_of(node("Relu", ["x"], ["y"], name="r", slope=1.0)), "invalid argument", "'slope'"
    yield "wrong_attribute_kind", nodes_of(node("LeakyRelu", ["x"], ["y"], name="r", alpha="a")), "invalid argument", "'alpha'"
    yield "axes_as_attribute", nodes_of(node("Squeeze", ["x"], ["y"], name="s", axes=[0]), opset=13), "corrupt", "'axes'"
    yield "unsupported", nodes_of(node("Wobble", ["x"], ["a"], name="w"), node("grid_sampler", ["a"], ["y"])), \
        "unsupported", "2 operators are not supported"
    yield "no_outputs", nodes_of(node("Relu", ["x"], ["y"]), outputs=()), "corrupt", "has no outputs"
    yield "no_opset", relu(edit=lambda m: m.ClearField("opset_import")), "corrupt", "imports no operator set"
    yield "opset_of_the_future", relu(edit=lambda m: setattr(m.opset_import[0], "version", 1000)), "unsupported", "version 1000"
    yield "ir_of_the_future", relu(ir_version=1000), "unsupported", "IR version 1000"
    yield "ir_negative", relu(ir_version=-3), "corrupt", "IR version -3"
    yield "no_graph", relu(edit=lambda m: m.ClearField("graph")), "corrupt", "has no graph"
    yield "short_weight", with_weight(lambda w: setattr(w, "raw_data", b"1234")), "corrupt", "tensor 'w': its dims ask for 8 bytes"
    yield "long_weight", with_weight(lambda w: setattr(w, "raw_data", b"1234" * 3)), "corrupt", "tensor 'w'"
    yield "two_data_fields", with_weight(lambda w: w.float_data.extend([1, 2])), "corrupt", "two fields"
    yield "dims_overflow", with_weight(lambda w: w.dims.extend([2 ** 32, 2 ** 32])), "corrupt", "tensor 'w'"
    yield "dims_negative", with_weight(lambda w: w.dims.__setitem__(0, -2)), "corrupt", "dim 0 is -2"
    yield "dims_too_many", with_weight(lambda w: w.dims.extend([1] * 16)), "corrupt", "more than 16 dims"
    yield "weight_of_no_type", with_weight(lambda w: setattr(w, "data_type", 77)), "corrupt", "data type 77"
    yield "weight_of_another_type", model([node("Add", ["x", "w"], ["y"])], [info("x"), info("w", I, [2])], [info("y")], 21,
                                          [tensor("w", [1, 2])]), "corrupt", "'w' is declared as int64[2]"
    yield "external_climbs", external("../../etc/passwd"), "corrupt", "leaves the model's folder"
    yield "external_climbs_late", external("junk/../../secret"), "corrupt", "leaves the model's folder"
    yield "external_absolute", external("/etc/passwd"), "corrupt", "is absolute"
    yield "external_absent", external("gone.bin"), "not found", "'gone.bin'"
    yield "external_past_the_end", external("expected.txt", offset="4096000"), "corrupt", "needs bytes 4096000 to 4096008"
    yield "external_wraps", external("expected.txt", offset="18446744073709551608", length="8"), "corrupt", "exceed 64 bits"
    yield "external_unknown_key", external("expected.txt", __class__="x"), "corrupt", "unknown key '__class__'"
    yield "external_offset_negative", external("expected.txt", offset="-1"), "corrupt", "offset '-1'"
    yield "shadowed_name", model(
        [node("If", ["c"], ["y"], then_branch=helper.make_graph([node("Relu", ["x"], ["x"])], "t", [], [info("x")]),
              else_branch=helper.make_graph([node("Neg", ["x"], ["z"])], "e", [], [info("z")]))],
        [info("x", F, [2]), info("c", B, [])], [info("y")], 21), "corrupt", "'x' a second time"
    yield "branch_with_inputs", model(
        [node("If", ["c"], ["y"], name="if", then_branch=helper.make_graph([node("Relu", ["p"], ["q"])], "t", [info("p")],
                                                                            [info("q")]),
              else_branch=helper.make_graph([node("Neg", ["x"], ["z"])], "e", [], [info("z")]))],
        [info("x", F, [2]), info("c", B, [])], [info("y")], 21), "corrupt", "has inputs"


def raw_hostile():
    """Files that no library would write."""
    good = relu().SerializeToString()
    yield "empty", b"", "corrupt", "is empty"
    yield "text", b"# This is a text, not a model.\n" * 3, "corrupt", "not an ONNX model"
    yield "two_gigabytes", b"\x3a\xff\xff\xff\xff\x07" + b"x" * 94, "corrupt", "claims 2147483647 bytes"
    yield "endless_number", b"\x08" + b"\xff" * 20, "corrupt", "64 bits"
    yield "pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 395920384\n", "corrupt", "fetch the file"
    yield "two_graphs", good + good, "corrupt", "twice"
    yield "group", good + b"\x0b\x0c", "corrupt", "a group"
    yield "cut", good[:-3], "corrupt", "truncated"
    yield "zero_in_a_name", good.replace(b"\x0a\x01x", b"\x0a\x01\x00"), "corrupt", "zero byte"
    yield "line_in_a_name", nodes_of(helper.make_node("Add", ["x", "a\n/b\x1b[2J"], ["y"])).SerializeToString(), \
        "corrupt", "is not defined"


# -------------------------------------------------------------------------------------------------------- old versions

def versions():
    node = helper.make_node
    x = rand(2, 3, 4)
    one = x[:, :1]
    for opset in (7, 12):
        yield f"softmax_v{opset}_axis1", model([node("Softmax", ["x"], ["y"], axis=1)], [info("x", F, [2, 3, 4])],
                                               [info("y", F, [2, 3, 4])], opset), [x]
    yield "softmax_v11_default", model([node("Softmax", ["x"], ["y"])], [info("x", F, [2, 3, 4])],
                                       [info("y", F, [2, 3, 4])], 11), [x]
    yield "softmax_v11_axis0", model([node("Softmax", ["x"], ["y"], axis=0)], [info("x", F, [2, 3, 4])],
                                     [info("y", F, [2, 3, 4])], 11), [x]
    yield "softmax_v11_axis_last", model([node("Softmax", ["x"], ["y"], axis=-1)], [info("x", F, [2, 3, 4])],
                                         [info("y", F, [2, 3, 4])], 11), [x]
    yield "softmax_v11_open_sizes", model([node("Relu", ["x"], ["r"]), node("Softmax", ["r"], ["y"], axis=1)],
                                          [info("x", F, ["a", "b", "c"])], [info("y", F, ["a", "b", "c"])], 11), [x]
    yield "squeeze_v11", model([node("Squeeze", ["x"], ["y"], axes=[1])], [info("x", F, [2, 1, 4])],
                               [info("y", F, [2, 4])], 11), [one]
    yield "squeeze_v7_all", model([node("Squeeze", ["x"], ["y"])], [info("x", F, [2, 1, 4])], [info("y", F, [2, 4])], 7), [one]
    yield "unsqueeze_v11", model([node("Unsqueeze", ["x"], ["y"], axes=[0, 3])], [info("x", F, [2, 3, 4])],
                                 [info("y", F, [1, 2, 3, 1, 4])], 11), [x]
    for operator in ("ReduceSum", "ReduceMean", "ReduceMax"):
        yield f"{operator.lower()}_v11", model([node(operator, ["x"], ["y"], axes=[-1, 0], keepdims=0)],
                                               [info("x", F, [2, 3, 4])], [info("y", F, [3])], 11), [x]
        yield f"{operator.lower()}_v7_all", model([node(operator, ["x"], ["y"])], [info("x", F, [2, 3, 4])],
                                                  [info("y", F, [1, 1, 1])], 7), [x]
    yield "split_v11", model([node("Split", ["x"], ["y", "z"], axis=2, split=[1, 3])], [info("x", F, [2, 3, 4])],
                             [info("y", F, [2, 3, 1]), info("z", F, [2, 3, 3])], 11), [x]
    yield "split_v7_equal", model([node("Split", ["x"], ["y", "z"], axis=2)], [info("x", F, [2, 3, 4])],
                                  [info("y", F, [2, 3, 2]), info("z", F, [2, 3, 2])], 7), [x]
    yield "slice_v9", model([node("Slice", ["x"], ["y"], starts=[1, -3], ends=[2 ** 63 - 1, -1], axes=[0, 2])],
                            [info("x", F, [2, 3, 4])], [info("y", F, [1, 3, 2])], 9), [x]
    yield "slice_v7_no_axes", model([node("Slice", ["x"], ["y"], starts=[0, 1], ends=[1, 3])],
                                    [info("x", F, [2, 3, 4])], [info("y", F, [1, 2, 4])], 7), [x]
    yield "pad_v10_value", model([node("Pad", ["x"], ["y"], pads=[0, 1, 0, 0, 0, 2], value=-2.5)],
                                 [info("x", F, [2, 3, 4])], [info("y", F, [2, 4, 6])], 10), [x]
    yield "pad_v7_edge", model([node("Pad", ["x"], ["y"], pads=[0, 0, 2, 0, 0, 1], mode="edge")],
                               [info("x", F, [2, 3, 4])], [info("y", F, [2, 3, 7])], 7), [x]
    big = x * np.float32(1e38)
    big[0, 0, :2] = np.inf, -np.inf
    yield "clip_v7", model([node("Clip", ["x"], ["y"], min=-0.5, max=0.25)], [info("x", F, [2, 3, 4])],
                           [info("y", F, [2, 3, 4])], 7), [x]
    yield "clip_v9_default", model([node("Clip", ["x"], ["y"])], [info("x", F, [2, 3, 4])], [info("y", F, [2, 3, 4])], 9), [big]
    yield "gemm_v7", model([node("Gemm", ["x", "w", "b"], ["y"], transB=1, alpha=0.5)], [info("x", F, [2, 4])],
                           [info("y", F, [2, 3])], 7, [tensor("w", rand(3, 4)), tensor("b", rand(3))]), [x[:, 0]]
    yield "max_v8", model([node("Max", ["x", "z"], ["y"])], [info("x", F, [2, 3, 4]), info("z", F, [4])],
                          [info("y", F, [2, 3, 4])], 8), [x, rand(4)]
    yield "constant_v9", model([node("Constant", [], ["k"], value=tensor("", rand(4))), node("Mul", ["x", "k"], ["y"])],
                               [info("x", F, [2, 3, 4])], [info("y", F, [2, 3, 4])], 9), [x]


def write_versions():
    for name, made, inputs in versions():
        onnx.checker.check_model(made)
        folder = HERE / "versions" / name / "test_data_set_0"
        folder.mkdir(parents=True)
        (folder.parent / "model.onnx").write_bytes(made.SerializeToString(deterministic=True))
        session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        feeds = {value.name: data for value, data in zip(made.graph.input, inputs)}
        for i, data in enumerate(inputs):
            (folder / f"input_{i}.pb").write_bytes(numpy_helper.from_array(data, made.graph.input[i].name).SerializeToString())
        for i, data in enumerate(session.run(None, feeds)):
            (folder / f"output_{i}.pb").write_bytes(numpy_helper.from_array(data, made.graph.output[i].name).SerializeToString())


def main():
    for folder in ("models", "hostile", "versions"):
        shutil.rmtree(HERE / folder, ignore_errors=True)
        (HERE / folder).mkdir()
    for name, make in RIGHT.items():
        made = make()
        onnx.checker.check_model(made)
        (HERE / "models" / f"{name}.onnx").write_bytes(made.SerializeToString(deterministic=True))
    lines = ["# file, code, a part of the message"]
    cases = [(name, made.SerializeToString(deterministic=True), code, part) for name, made, code, part in hostile()]
    for name, data, code, part in cases + list(raw_hostile()):
        assert len(data) <= 65536, name
        (HERE / "hostile" / f"{name}.onnx").write_bytes(data)
        lines.append(f"{name}.onnx\t{code}\t{part}")
    (HERE / "hostile" / "expected.txt").write_text("\n".join(lines) + "\n")
    write_versions()


if __name__ == "__main__":
    main()
