# SPDX-License-Identifier: Apache-2.0
"""Models compiled to offline files: the same bits as without the file, on cpu and on sim; the same file each time; what
is wrong with a file or a run of it is said in one line."""
import json
import os
import pathlib
import tempfile
import unittest

import numpy as np
from support import model, rondo, run_model
from test_models import SILERO, silero_inputs

SIZES = ["--dim", "input.0=1", "--dim", "input.1=576", "--dim", "state.1=1"]


class Offline(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name) / "model.rondo"

    def compile(self, path, *extra, file=None):
        done = rondo("compile", path, "-o", file or self.file, *extra)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def same(self, path, inputs, *extra):
        self.compile(path, *extra)
        want = run_model(path, inputs)
        for ways in ([], ["--eager"], ["--device", "sim"], ["--device", "sim:1", "--eager", "--repeat", "2"]):
            got = run_model(self.file, inputs, *ways)
            self.assertEqual(sorted(got), sorted(want))
            for name, value in want.items():
                self.assertEqual(got[name].tobytes(), value.tobytes(), f"{name} with {ways}")

    def test_silero(self):
        random = np.random.default_rng(11)
        for name in SILERO:
            for rate, samples in ((16000, 576), (8000, 288)):
                with self.subTest(model=name, rate=rate):
                    sizes = ["--dim", "input.0=1", "--dim", f"input.1={samples}", "--dim", "state.1=1"]
                    self.same(model(name), silero_inputs(random, rate), *sizes, "--set", f"sr={rate}")

    def test_wake_word(self):
        random = np.random.default_rng(12)
        self.same(model("hey_rhasspy_v0.1.onnx"), {"onnx::Flatten_0": random.standard_normal((1, 16, 96)).astype(np.float32)})

    def test_same_model_same_bytes(self):
        again = self.file.with_name("again.rondo")
        self.compile(model(SILERO[0]), *SIZES, "--set", "sr=16000")
        self.compile(model(SILERO[0]), *SIZES, "--set", "sr=16000", file=again)
        self.assertEqual(self.file.read_bytes(), again.read_bytes())
        self.assertEqual(sorted(p.name for p in self.file.parent.iterdir()), ["again.rondo", "model.rondo"])

    def test_the_cache_of_bench_and_profile(self):
        for command, extra in (("bench", ["--seconds", "0.01"]), ("profile", ["--repeat", "2"])):
            cache = self.file.with_name(command)
            given = [command, model(SILERO[0]), *SIZES, "--set", "sr=16000", "--random", "1", "--cache", cache, *extra]
            self.assertIn("compile cache: miss\n", rondo(*given).stdout)
            self.assertIn("compile cache: hit\n", rondo(*given).stdout)
            self.assertIn("compile cache: miss\n", rondo(*given, "-O", "1").stdout)

    def test_the_cache(self):
        inputs = silero_inputs(np.random.default_rng(14), 16000)
        cache = self.file.with_name("cache")
        want = run_model(model(SILERO[0]), inputs)
        for outcome in ("miss", "hit", "hit"):
            done = self.compile(model(SILERO[0]), *SIZES, "--set", "sr=16000", "--cache", cache, "--json")
            self.assertEqual(json.loads(done.stdout)["cache"], outcome)
        arguments = [model(SILERO[0]), "--dim", "input.0=1", "--dim", "input.1=288", "--dim", "state.1=1", "--set", "sr=8000",
                     "--random", "1", "--cache", cache, "--json"]
        for hits in (0, 1):
            done = rondo("run", *arguments)
            self.assertEqual(json.loads(done.stdout)["cache_hits"], hits, done.stderr)
        got = run_model(model(SILERO[0]), inputs, "--cache", cache)
        for name, value in want.items():
            self.assertEqual(got[name].tobytes(), value.tobytes())
        for entry in cache.iterdir():
            entry.write_bytes(entry.read_bytes()[:-1])
        for outcome in ("remade", "hit"):
            self.assertEqual(json.loads(rondo("run", *arguments).stdout)["cache"], outcome)

    def test_a_value_that_decides_must_be_given(self):
        done = rondo("compile", model(SILERO[0]), "-o", self.file, *SIZES)
        self.assertEqual(done.returncode, 2)
        self.assertIn("input 'sr'", done.stderr)
        self.assertFalse(self.file.exists())

    def test_a_file_is_for_what_it_was_made(self):
        self.compile(model(SILERO[0]), *SIZES, "--set", "sr=16000")
        done = rondo("run", self.file, "--random", "1")  # sr is known
        self.assertEqual(done.returncode, 0, done.stderr)
        done = rondo("run", self.file, "--random", "1", "--set", "sr=8000")
        self.assertEqual(done.returncode, 1)
        self.assertIn("input 'sr' has another value", done.stderr)
        done = rondo("run", self.file, "--random", "1", "--dim", "input.1=288")
        self.assertEqual(done.returncode, 2)
        self.assertIn("fixes this size to 576", done.stderr)

    def test_info(self):
        self.compile(model(SILERO[0]), *SIZES, "--set", "sr=16000", "--report")
        done = rondo("info", self.file, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        got = json.loads(done.stdout)
        self.assertEqual((got["format"], got["target"], got["nodes"]), ("1.1", "cpu,ref", 689))
        self.assertEqual([port["guarded"] for port in got["inputs"]], [port["name"] == "sr" for port in got["inputs"]])
        kinds = [part["kind"] for part in got["partitions"]]
        self.assertEqual(kinds, ["strings", "plan", "constants", "packed weights"])
        self.assertTrue(got["partitions"][3]["kernel_set"].startswith("cpu."))
        text = rondo("info", self.file).stdout
        self.assertIn("sr: int64[], for one value only", text)

    def test_another_kernel_set_is_refused_or_packed_again(self):
        self.compile(model("hey_rhasspy_v0.1.onnx"))
        random = np.random.default_rng(13)
        inputs = {"onnx::Flatten_0": random.standard_normal((1, 16, 96)).astype(np.float32)}
        np.save(self.file.with_name("x.npy"), inputs["onnx::Flatten_0"])
        done = rondo("run", self.file, "--input", f"onnx::Flatten_0={self.file.with_name('x.npy')}",
                     env={**os.environ, "RONDO_CPU_KERNELS": "base"})
        if done.returncode:
            self.assertEqual(done.returncode, 3)
            self.assertRegex(done.stderr, r"kernel set 'cpu\.\S+'; here it is 'cpu\.base")

    def test_damaged_files_are_refused(self):
        self.compile(model("hey_rhasspy_v0.1.onnx"))
        whole = self.file.read_bytes()
        for place in (9, 40, 70, 300, len(whole) // 2, len(whole) - 1):
            data = bytearray(whole)
            data[place] ^= 0x10
            self.file.write_bytes(data)
            done = rondo("run", self.file, "--random", "1")
            self.assertIn(done.returncode, (1, 3), place)
            self.assertIn("offline file", done.stderr)
        self.file.write_bytes(whole[:-1])
        done = rondo("info", self.file)
        self.assertEqual(done.returncode, 1)
        self.assertIn("it was cut or added to", done.stderr)

    def test_what_cannot_be_written_leaves_nothing(self):
        done = rondo("compile", model("hey_rhasspy_v0.1.onnx"), "-o", self.file.parent / "nowhere" / "x.rondo")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(list(self.file.parent.iterdir()), [])
        done = rondo("compile", model("hey_rhasspy_v0.1.onnx"))
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
