# SPDX-License-Identifier: Apache-2.0
"""The training demonstration on one core, again and again: each process ends with status 0.

On one core, the thread in which PyTorch runs a device's backward often still holds objects of Python's at the end.
"""
import os
import subprocess
import sys
import unittest

from rondo_torch import _C

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/torch/train.py")
RUNS = 100 if os.environ.get("RONDO_TORCH_LONG") else 5


@unittest.skipIf(_C.backend() != "cpu", "how a process ends does not depend on the backend")
class Ends(unittest.TestCase):
    def again(self, way, trees, runs):
        core = min(os.sched_getaffinity(0))
        environment = dict(os.environ, RONDO_TORCH_TREES=trees)
        for number in range(runs):
            done = subprocess.run([sys.executable, PROGRAM, "--one", way], env=environment, capture_output=True,
                                  text=True, check=False, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
            self.assertEqual(done.returncode, 0, f"run {number} of {way}: {done.stderr}")

    def test_trees(self):
        self.again("rondo", "rondo", RUNS)

    @unittest.skipUnless(os.environ.get("RONDO_TORCH_LONG"), "RONDO_TORCH_LONG=1 ends the other ways' processes, too")
    def test_other_ways(self):
        self.again("eager", "off", RUNS)
        self.again("upstream", "upstream", RUNS)

    def test_the_demonstration_says_what_is_wrong(self):
        done = subprocess.run([sys.executable, PROGRAM, "sideways"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no way sideways; there are eager, default, upstream, rondo", done.stderr)


if __name__ == "__main__":
    unittest.main()
