# SPDX-License-Identifier: Apache-2.0
"""ONNX models with functions of their own give what ONNX Runtime makes of them."""
import pathlib
import tempfile
import unittest

import numpy as np
import onnx
import onnx.parser
import onnxruntime
from support import agree, run_model

MODEL = """
<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
main (float[N,4] x, float[4] bias, bool flag) => (float[N,4] y, float[N,4] z, float[N,4] w) {
    a = own.Dense <sharp = 0.3> (x, bias)
    y = own.Dense (a, bias)
    z, unused = own.Both (x, y)
    w = own.Pick (flag, z)
}
<domain: "own", opset_import: ["" : 17, "own" : 1]>
Dense <sharp: float = 0.125> (x, b) => (y) {
    sum = Add (x, b)
    t = own.Soft <alpha: float = @sharp> (sum)
    y = Mul (t, x)
}
<domain: "own", opset_import: ["" : 17]>
Soft <alpha> (x) => (y) {
    half = Constant <value_float: float = @alpha> ()
    t = Elu <alpha: float = @alpha> (x)
    y = Add (t, half)
}
<domain: "own", opset_import: ["" : 11]>
Both (p, q) => (sum, difference) {
    sum = Add (p, q)
    difference = Sub (p, q)
}
<domain: "own", opset_import: ["" : 17]>
Pick (c, x) => (y) {
    y = If (c) <then_branch = yes () => (float[N,4] t) { t = Relu (x) }, else_branch = no () => (float[N,4] e) { e = Neg (x) }>
}
"""


class Functions(unittest.TestCase):
    def test_onnx_runtime_agrees(self):
        model = onnx.parser.parse_model(MODEL)
        random = np.random.default_rng(5)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "functions.onnx"
            onnx.save(model, path)
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            for flag in (True, False):
                inputs = {"x": random.uniform(-2, 2, (3, 4)).astype(np.float32), "flag": np.array(flag),
                          "bias": random.uniform(-1, 1, 4).astype(np.float32)}
                got = run_model(path, inputs)
                for port, want in zip(session.get_outputs(), session.run(None, inputs), strict=True):
                    agree(got[port.name], want)


if __name__ == "__main__":
    unittest.main()
