# SPDX-License-Identifier: Apache-2.0
"""Graphs that TensorFlow froze (tests/data/tf) give TensorFlow's own values, by every command that takes a model."""
import json
import pathlib
import tempfile
import unittest

import numpy as np
import onnx
from support import ROOT, agree, rondo, run_model

FOLDER = ROOT / "tests/data/tf"


def tensors(name, kind):
    folder = FOLDER / name / "test_data_set_0"
    count = len(list(folder.glob(f"{kind}_*.pb")))
    return [onnx.numpy_helper.to_array(onnx.load_tensor(folder / f"{kind}_{index}.pb")) for index in range(count)]


def ports(name):
    done = rondo("info", "--json", FOLDER / name / "model.pb")
    assert done.returncode == 0, done.stderr
    info = json.loads(done.stdout)
    return [[port["name"] for port in info[kind]] for kind in ("inputs", "outputs")]


class TensorFlow(unittest.TestCase):
    def test_all_give_tensorflows_values(self):
        done = rondo("check", FOLDER, "--list")
        count = len(list(FOLDER.glob("*/model.pb")))
        self.assertGreaterEqual(count, 30)
        self.assertEqual(done.stdout.strip().splitlines()[-1], f"{count} passed, 0 failed, 0 skipped", done.stdout)
        self.assertEqual(done.returncode, 0)

    def test_values_within_the_tighter_bound(self):
        for path in sorted(FOLDER.glob("*_model/model.pb")):
            name = path.parent.name
            inputs, outputs = ports(name)
            got = run_model(path, dict(zip(inputs, tensors(name, "input"))))
            for output, want in zip(outputs, tensors(name, "output"), strict=True):
                agree(got[output], want)

    def test_every_command_takes_them(self):
        path, values = FOLDER / "image_model/model.pb", tensors("image_model", "input")
        (inputs, outputs) = ports("image_model")
        sizes = ["--random", "3", "--dim", f"{inputs[0]}.0=2"]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "model.rondo"
            done = rondo("compile", path, "-o", file, *sizes[2:])
            self.assertEqual(done.returncode, 0, done.stderr)
            got = run_model(file, {inputs[0]: values[0]})
            agree(got[outputs[0]], tensors("image_model", "output")[0])
        stages = [["dump", path, "--stage", stage, *sizes] for stage in ("model", "compiled", "plan", "capture")]
        for command in ([["bench", path, "--seconds", "0.05", *sizes], ["info", path]] + stages):
            done = rondo(*command)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "graph.pb"
            node = b"\x0a\x01y\x12\x06Wonder"
            file.write_bytes(b"\x0a" + bytes([len(node)]) + node)
            done = rondo("run", file)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("Wonder (used 1 time, first at node 'y')", done.stderr)
            file.write_bytes(b"\x0a\x7f")
            done = rondo("run", file)
            self.assertNotIn(done.returncode, (0, 3))
            self.assertIn("truncated", done.stderr)


if __name__ == "__main__":
    unittest.main()
