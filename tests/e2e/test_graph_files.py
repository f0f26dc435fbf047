# SPDX-License-Identifier: Apache-2.0
"""Real models saved as text and as binary: what is read again is the same model, plan for plan and bit for bit, in every
command that takes a model."""
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
from support import RONDO, model, rondo, run_model
from test_models import SILERO, silero_inputs

MODELS = {name: ["--dim", "input.0=1", "--dim", "input.1=576", "--dim", "state.1=1", "--set", "sr=16000"] for name in SILERO}
MODELS["hey_rhasspy_v0.1.onnx"] = []
SAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/graph_by_hand/x_plus_2y.onnx"


class GraphFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def dump(self, path, *arguments):
        done = subprocess.run([str(RONDO), "dump", str(path), *arguments], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def save(self, path, form="graph"):
        saved = self.folder / f"{pathlib.Path(path).stem}.{form}"
        saved.write_bytes(self.dump(path, "--stage", "model", "--format", form))
        return saved

    def test_the_same_plan(self):
        for name, sizes in MODELS.items():
            path, plans = model(name), []
            files = [path, self.save(path), self.save(path, "graph-binary")]
            for at, file in enumerate(files):
                out = self.folder / f"{at}.rondo"
                done = rondo("compile", file, "-o", out, *sizes)
                self.assertEqual(done.returncode, 0, done.stderr)
                plans.append(out.read_bytes())
                self.assertEqual(self.dump(file, "--stage", "model"), self.dump(path, "--stage", "model"))
            self.assertTrue(plans[0] == plans[1] == plans[2], name)
            self.assertEqual(self.save(files[2]).read_bytes(), self.save(files[1]).read_bytes())

    def test_commands(self):
        random = np.random.default_rng(5)
        path = model(SILERO[0])
        inputs = silero_inputs(random, 16000)
        saved = self.save(path, "graph-binary")
        want, got = run_model(path, inputs), run_model(saved, inputs)
        for name, value in want.items():
            self.assertEqual(got[name].tobytes(), value.tobytes())
        self.assertEqual(rondo("info", saved).stdout, rondo("info", path).stdout)
        done = rondo("bench", self.save(SAMPLE), "--random", "1", "--seconds", "0.01", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_edited_by_hand(self):
        text = self.save(SAMPLE).read_text()
        self.assertIn("Add", text)
        edited = self.folder / "edited.graph"
        edited.write_text(text.replace(" Add (", " Sub (", 1))
        x, y = np.full((8, 2048), 3, np.float32), np.full((8, 2048), 5, np.float32)
        (out,) = run_model(edited, {"x": x, "y": y}).values()
        np.testing.assert_array_equal(out, x - y + y)

    def test_refusals(self):
        bad = self.folder / "bad.graph"
        for text, code, part in (("rondo-graph 1\ngraph g\nnode n Nought () -> (y ?[...])\nend\n", 3, "Nought"),
                                 ("rondo-graph 1\ngraph g\nnode n Add () -> (y ?[...])\nend\n", 1, "'n' (Add)"),
                                 ("rondo-graph 1\ngraph g\ninput x float32[2\n", 1, "line 4"),
                                 ("rondo-graph 9\ngraph g\n", 3, "version 9")):
            bad.write_text(text)
            done = rondo("info", bad)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(part, done.stderr)
        done = rondo("dump", SAMPLE, "--stage", "plan", "--format", "graph")
        self.assertEqual(done.returncode, 2)
