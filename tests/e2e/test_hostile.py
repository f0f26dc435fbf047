# SPDX-License-Identifier: Apache-2.0
"""Whatever is thrown at the tool: one clear line, the right exit code, nothing half written, no crash."""
import os
import pathlib
import random
import shutil
import tempfile
import unittest

import numpy as np
from support import model, rondo

SIZES = ["--dim", "input.0=1", "--dim", "input.1=576", "--dim", "state.1=1", "--set", "sr=16000", "--random", "1"]


class Hostile(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def refused(self, codes, *arguments, part=None):
        done = rondo(*arguments)
        self.assertIn(done.returncode, codes, f"{arguments}: {done.stdout}{done.stderr}")
        first = done.stderr.splitlines()[0] if done.stderr else ""
        self.assertTrue(first.startswith("rondo: "), f"{arguments}: {done.stderr!r}")
        self.assertNotIn("Sanitizer", done.stderr)
        if part:
            self.assertIn(part, done.stderr)
        return done

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def test_files_that_are_no_models(self):
        self.refused([1], "run", self.folder / "absent.onnx", part="absent.onnx")
        self.refused([1], "run", self.write("empty.onnx", b""), part="empty.onnx")
        self.refused([1], "run", self.write("text.onnx", b"This is a text file, not a model.\n" * 40), part="text.onnx")
        self.refused([1], "run", self.folder, part=str(self.folder))
        self.refused([1], "info", "/dev/null")
        # A message whose graph claims 2 GiB in a file of 100 bytes.
        self.refused([1], "run", self.write("claim.onnx", b"\x3a\xff\xff\xff\xff\x07" + b"x" * 94), part="claim.onnx")

    def test_truncated_at_many_lengths(self):
        data = model("hey_rhasspy_v0.1.onnx").read_bytes()
        for length in [1, 2, 7, 100, 1000, len(data) // 2, len(data) - 1]:
            self.refused([1, 3], "run", self.write("cut.onnx", data[:length]), "--random", "1")

    def test_five_hundred_corruptions(self):
        data = model("hey_rhasspy_v0.1.onnx").read_bytes()
        generator = random.Random(7)
        outcomes = {}
        for number in range(500):
            bad = bytearray(data)
            for _ in range(generator.choice([1, 1, 2, 8, 64])):
                # Half of the hits go where the structure is: the last part holds nodes and names.
                at = generator.randrange(len(bad)) if number % 2 else generator.randrange(max(0, len(bad) - 4096), len(bad))
                bad[at] = generator.randrange(256)
            done = rondo("run", self.write("bad.onnx", bytes(bad)), "--random", "1")
            outcomes[done.returncode] = outcomes.get(done.returncode, 0) + 1
            self.assertIn(done.returncode, (0, 1, 2, 3), f"corruption {number}: {done.stderr}")
            if done.returncode:
                self.assertTrue(done.stderr.startswith("rondo: "), done.stderr)
        self.assertGreater(outcomes.get(1, 0) + outcomes.get(2, 0) + outcomes.get(3, 0), 50, outcomes)

    def test_wrong_inputs(self):
        path = model("silero_vad.onnx")
        good = self.folder / "good.npy"
        np.save(good, np.zeros((1, 576), np.float32))
        others = ["--random", "1", "--dim", "state.1=1", "--set", "sr=16000"]
        self.refused([2], "run", path, *SIZES, "--input", f"nothing={good}", part="nothing")
        self.refused([2], "run", path, *SIZES, "--set", "nothing=1", part="nothing")
        self.refused([2], "run", path, *SIZES, "--dim", "nothing.0=1", part="nothing")
        self.refused([2], "run", path, "--set", "sr=16000", "--random", "1", part="input")
        np.save(self.folder / "rank.npy", np.zeros((576,), np.float32))
        self.refused([1], "run", path, *others, "--input", f"input={self.folder / 'rank.npy'}", part="input")
        np.save(self.folder / "type.npy", np.zeros((1, 576), np.float64))
        self.refused([1], "run", path, *others, "--input", f"input={self.folder / 'type.npy'}", part="float64")
        np.save(self.folder / "state.npy", np.zeros((2, 1, 77), np.float32))
        self.refused([1], "run", path, "--random", "1", "--input", f"input={good}", "--set", "sr=16000", "--input",
                     f"state={self.folder / 'state.npy'}", part="state")
        self.refused([1], "run", path, *others, "--input", f"input={self.write('junk.npy', b'junk')}", part="junk.npy")
        head = b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 99999999999), }"
        self.refused([1], "run", path, *others, "--input", f"input={self.write('claim.npy', head.ljust(90))}", part="claim.npy")
        self.refused([1], "run", path, *others, "--input", f"input={self.folder / 'absent.npy'}", part="absent.npy")
        os.mkfifo(self.folder / "pipe")
        self.refused([1], "run", path, *others, "--input", f"input={self.folder / 'pipe'}", part="regular file")
        self.refused([2], "run", path, *others, "--input", f"input={good}", "--dim", "input.1=8", part="input.1=8")

    def test_the_rate_decides_a_branch_and_must_be_known(self):
        path = model("silero_vad.onnx")
        done = rondo("run", path, "--random", "1", "--dim", "input.0=1", "--dim", "input.1=576", "--dim", "state.1=1")
        self.assertIn(done.returncode, (0, 1, 2, 3))  # a random rate picks a branch; what it may not do is crash

    def test_command_lines(self):
        self.refused([2], "sing", part="sing")
        self.refused([2], "run", part="model file")
        self.refused([2], "run", "a", "b")
        self.refused([2], "run", "--nonsense", "a", part="--nonsense")
        self.refused([2], "run", "--repeat", "0", "a", part="repeat")
        self.refused([2], "run", "--repeat", "many", "a", part="repeat")
        self.refused([2], "run", "--input", "noequals", "a", part="noequals")
        self.refused([2], "dump", "a", "--stage", "dessert", part="dessert")
        self.refused([3], "run", "a", "--device", "warp9", part="warp9")
        self.refused([3], "run", "a", "--device", "sim:7", part="sim")
        self.refused([3], "run", "a", "--threads", "2", part="threads")
        self.refused([2], "run", "a", "--device", "sim", "--settings", "colour=red", part="colour")
        self.refused([2], "compile", "a", part="-o OUT.rondo")
        self.refused([2], "conformance", part="--device")
        self.refused([2], "check-operator", part="name")
        self.refused([2], "check-operator", "Add", "--input", "A=float32", part="float32[2,3]")
        self.refused([2], "check-operator", "Add", "--input", "B=float32[2]", part="'A' comes before")
        self.refused([1], "check-operator", "nosuch.so", "Add", part="nosuch.so")
        self.refused([1], "check-operator", "NoSuch", part="NoSuch")
        self.refused([1], "check-operator", "Add", "--schema", "f(Tensor A", part="',' or ')' was expected")
        self.refused([1], "check-operator", "Add", "--schema", "f(Tensor A, Tensor C) -> Tensor", part="'C' in the schema")
        self.assertEqual(rondo().returncode, 2)
        for command in ("", "devices", "info", "run", "bench", "check", "dump", "compile", "ops", "check-operator",
                        "conformance"):
            done = rondo(*([command] if command else []), "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("usage: rondo", done.stdout)

    def test_outputs_are_whole_or_not_there(self):
        path = model("silero_vad.onnx")
        blocked = self.write("file", b"")
        self.refused([1], "run", path, *SIZES, "--output-dir", blocked / "out")
        self.refused([1], "run", path, *SIZES, "--output-dir", blocked)
        if os.geteuid() != 0:
            locked = self.folder / "locked"
            locked.mkdir(mode=0o500)
            self.refused([1], "run", path, *SIZES, "--output-dir", locked)
        # The second output cannot be put in place: the first must not stay behind alone under a temporary name.
        out = self.folder / "out"
        (out / "stateN.npy" / "x").mkdir(parents=True)
        self.refused([1], "run", path, *SIZES, "--output-dir", out)
        self.assertEqual([p.name for p in out.iterdir()], ["stateN.npy"])
        # What stood there before is there again.
        (out / "output.npy").write_bytes(b"before")
        self.refused([1], "run", path, *SIZES, "--output-dir", out)
        self.assertEqual(sorted(p.name for p in out.iterdir()), ["output.npy", "stateN.npy"])
        self.assertEqual((out / "output.npy").read_bytes(), b"before")

    def test_device_full(self):
        done = rondo("info", model("silero_vad.onnx"), "--json")
        self.assertEqual(done.returncode, 0)
        import subprocess
        from support import RONDO
        with open("/dev/full", "wb") as full:
            got = subprocess.run([str(RONDO), "info", str(model("silero_vad.onnx"))], stdout=full, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(got.returncode, 1, got.stderr)

    def test_unsupported_operators_are_all_named(self):
        import onnx
        from onnx import TensorProto, helper
        nodes = [helper.make_node("Det", ["x"], ["a"], name="first"), helper.make_node("AddCustom", ["a", "a"], ["b"], domain="my.domain"),
                 helper.make_node("DeformConv", ["b"], ["c"]), helper.make_node("Det", ["b"], ["d"])]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])],
                                  [helper.make_tensor_value_info("c", TensorProto.INT64, None)])
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my.domain", 3)]
        path = self.write("custom.onnx", helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
        done = self.refused([3], "run", path, "--random", "1")
        for part in ("Det", "my.domain", "AddCustom", "DeformConv", "18", "3"):
            self.assertIn(part, done.stderr)


if __name__ == "__main__":
    unittest.main()
