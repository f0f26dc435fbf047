# SPDX-License-Identifier: Apache-2.0
"""Writes x_plus_2y.onnx: two Add nodes, as in the README beside it. Needs the package onnx."""
import pathlib

import onnx
from onnx import TensorProto, helper

shape = [8, 2048]
graph = helper.make_graph(
    [helper.make_node("Add", ["x", "y"], ["Add0:0"], name="Add0"), helper.make_node("Add", ["Add0:0", "y"], ["output"], name="Add1")],
    "x_plus_2y",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape), helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    [helper.make_tensor_value_info("output", TensorProto.FLOAT, shape)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8, producer_name="rondo")
onnx.checker.check_model(model)
pathlib.Path(__file__).with_name("x_plus_2y.onnx").write_bytes(model.SerializeToString())
