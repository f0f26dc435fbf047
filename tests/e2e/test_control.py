# SPDX-License-Identifier: Apache-2.0
"""Models that depend on data (tests/data/control) give ONNX Runtime's values, on every device that runs host functions."""
import unittest

import numpy as np
from support import BUILD, ROOT, rondo, run_model

FOLDER = ROOT / "tests/data/control"


class Control(unittest.TestCase):
    def test_all_give_onnx_runtimes_values(self):
        count = len(list(FOLDER.glob("*/model.onnx")))
        self.assertGreaterEqual(count, 11)
        for device in ("cpu", "sim"):
            done = rondo("check", FOLDER, "--list", "--device", device)
            self.assertEqual(done.stdout.strip().splitlines()[-1], f"{count} passed, 0 failed, 0 skipped", done.stdout)
            self.assertEqual(done.returncode, 0)

    def test_no_plan_is_made_of_what_depends_on_data(self):
        for name, node, dims in (("nonzero_chain", "NonZero", ["n=4"]), ("loop_early_exit", "Loop", ["n=2"]),
                                 ("sequence_of_parts", "SplitToSequence", ["n=5", "k=2"])):
            sizes = [word for dim in dims for word in ("--dim", dim)]
            done = rondo("compile", FOLDER / name / "model.onnx", "-o", "/dev/null", *sizes)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(f"({node})", done.stderr)
            self.assertIn("unsupported (meta)", done.stderr)

    def test_run_writes_what_data_made(self):
        mask = np.array([True, False, True, True])
        x = np.array([1, 9, -3, 0.5], np.float32)
        got = run_model(FOLDER / "nonzero_chain/model.onnx", {"x": x, "mask": mask})
        want = x[mask] ** 2
        np.testing.assert_array_equal(got["y"], want[want > 2])
        np.testing.assert_array_equal(got["count"], [1])
        done = rondo("run", FOLDER / "sequence_of_parts/model.onnx", "--random", "1", "--dim", "n=4", "--dim", "k=2", "--set",
                     "sizes=2")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("output 3 is a sequence", done.stderr)

    def test_an_operator_whose_size_depends_on_data(self):
        library = BUILD / "bin/examples/operators_positives.so"
        done = rondo("check-operator", library, "my.domain::Positives", "--rounds", "500")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the contracts agree", done.stdout)
        for name in ("NonZero", "Unique", "Compress"):
            self.assertEqual(rondo("check-operator", name, "--rounds", "500").returncode, 0, name)
        done = rondo("check-operator", "NonMaxSuppression", "--rounds", "500", "--input", "boxes=float32[1,3,4]",
                     "--input", "scores=float32[1,2,3]")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
