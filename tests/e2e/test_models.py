# SPDX-License-Identifier: Apache-2.0
"""Real models against ONNX Runtime, and against themselves: eager, captured, on cpu and on sim give the same bits."""
import json
import pathlib
import tempfile
import unittest

import numpy as np
import onnxruntime
from support import agree, model, rondo, run_model

SILERO = ("silero_vad.onnx", "silero_vad_op18_ifless.onnx")


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def silero_inputs(random, rate=16000, state=None):
    samples = 576 if rate == 16000 else 288
    return {
        "input": (random.standard_normal((1, samples)) * 0.1).astype(np.float32),
        "state": np.zeros((2, 1, 128), np.float32) if state is None else state,
        "sr": np.array(rate, np.int64),
    }


class Models(unittest.TestCase):
    def compare(self, path, inputs, *extra):
        peer = session(path)
        want = peer.run(None, inputs)
        got = run_model(path, inputs, *extra)
        names = [output.name for output in peer.get_outputs()]
        self.assertEqual(sorted(got), sorted(names))
        for name, value in zip(names, want):
            agree(got[name], value)
        return got

    def test_silero_agrees(self):
        random = np.random.default_rng(1)
        for name in SILERO:
            for rate in (16000, 8000):
                with self.subTest(model=name, rate=rate):
                    self.compare(model(name), silero_inputs(random, rate))

    def test_silero_fifty_frames_with_carried_state(self):
        """The state goes round in each runtime by itself, so that errors could add up."""
        for name in SILERO:
            path = model(name)
            peer = session(path)
            random = np.random.default_rng(2)
            ours = theirs = np.zeros((2, 1, 128), np.float32)
            for _ in range(50):
                inputs = silero_inputs(random, state=theirs)
                probability, theirs = peer.run(["output", "stateN"], inputs)
                got = run_model(path, {**inputs, "state": ours})
                ours = got["stateN"]
                agree(got["output"], probability)
                agree(ours, theirs)

    def test_silero_batches(self):
        random = np.random.default_rng(3)
        inputs = {
            "input": (random.standard_normal((3, 576)) * 0.1).astype(np.float32),
            "state": (random.standard_normal((2, 3, 128)) * 0.1).astype(np.float32),
            "sr": np.array(16000, np.int64),
        }
        for name in SILERO:
            with self.subTest(model=name):
                self.compare(model(name), inputs)

    def test_wake_word_agrees(self):
        random = np.random.default_rng(4)
        path = model("hey_rhasspy_v0.1.onnx")
        for scale in (0.1, 1, 10):
            self.compare(path, {"onnx::Flatten_0": (random.standard_normal((1, 16, 96)) * scale).astype(np.float32)})

    def test_every_way_gives_the_same_bits(self):
        random = np.random.default_rng(5)
        cases = [(name, silero_inputs(random)) for name in SILERO]
        cases.append(("hey_rhasspy_v0.1.onnx", {"onnx::Flatten_0": random.standard_normal((1, 16, 96)).astype(np.float32)}))
        for name, inputs in cases:
            with self.subTest(model=name):
                path = model(name)
                want = run_model(path, inputs)
                for extra in (["--eager"], ["--device", "sim"], ["--device", "sim", "--eager"], ["--device", "sim:1", "--repeat", "3"]):
                    got = run_model(path, inputs, *extra)
                    for output, value in want.items():
                        self.assertEqual(got[output].tobytes(), value.tobytes(), f"{output} with {extra}")

    def test_random_inputs_need_only_sizes_and_values(self):
        for name in SILERO:
            with tempfile.TemporaryDirectory() as folder:
                done = rondo("run", model(name), "--random", "1", "--dim", "input.0=1", "--dim", "input.1=576", "--dim", "state.1=1",
                             "--set", "sr=16000", "--output-dir", folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(sorted(p.name for p in pathlib.Path(folder).iterdir()), ["output.npy", "stateN.npy"])

    def test_bench_reports_every_field(self):
        done = rondo("bench", model("silero_vad.onnx"), "--random", "1", "--dim", "input.0=1", "--dim", "input.1=576", "--dim",
                     "state.1=1", "--set", "sr=16000", "--seconds", "0.1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        got = json.loads(done.stdout)
        for field in ("load_us", "compile_us", "capture_us", "nodes", "calls", "segments", "kernel_us", "host_us", "copy_us",
                      "arena_bytes", "weight_bytes"):
            self.assertIsInstance(got[field], (int, float), field)
        for field in ("replay_us", "eager_us"):
            self.assertLessEqual(got[field]["min"], got[field]["median"])
            self.assertLessEqual(got[field]["median"], got[field]["p99"])
        self.assertEqual(got["segments"], 1)
        self.assertLess(got["calls"], got["nodes"])

    def test_dump_shows_each_stage(self):
        sizes = ["--dim", "input.0=1", "--dim", "input.1=576", "--dim", "state.1=1", "--set", "sr=16000"]
        for stage in ("model", "compiled", "plan", "capture"):
            for form in ("text", "dot", "json"):
                done = rondo("dump", model("silero_vad.onnx"), "--stage", stage, "--format", form, *sizes)
                self.assertEqual(done.returncode, 0, done.stderr)
                if form == "json":
                    json.loads(done.stdout)
                elif form == "dot":
                    self.assertTrue(done.stdout.startswith("digraph"), done.stdout[:80])
                else:
                    self.assertIn("Conv", done.stdout)


if __name__ == "__main__":
    unittest.main()
