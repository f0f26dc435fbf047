# SPDX-License-Identifier: Apache-2.0
"""The training demonstration on one core, again and again: each process ends with status 0.

On one core, the thread in which PyTorch runs a device's backward often still holds objects of Python's at the end.
"""
import os
import unittest

import forks
from rondo_torch import _C

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/torch/train.py")
PROGRAM_ON_ONE_CORE = """
import os, runpy, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
RUNS = 100 if os.environ.get("RONDO_TORCH_LONG") else 5


@unittest.skipIf(_C.backend() != "cpu", "how a process ends does not depend on the backend")
class Ends(unittest.TestCase):
    def again(self, way, trees, runs):
        program = ["-c", PROGRAM_ON_ONE_CORE, PROGRAM, "--one", way]
        environment = dict(os.environ, RONDO_TORCH_TREES=trees)
        for number in range(runs):
            done = forks.python(program, environment)
            self.assertEqual(done.returncode, 0, f"run {number} of {way}: {done.stderr}")

    def test_trees(self):
        self.again("rondo", "rondo", RUNS)

    @unittest.skipUnless(os.environ.get("RONDO_TORCH_LONG"), "RONDO_TORCH_LONG=1 ends the other ways' processes, too")
    def test_other_ways(self):
        self.again("eager", "off", RUNS)
        self.again("upstream", "upstream", RUNS)

    def test_the_demonstration_says_what_is_wrong(self):
        done = forks.python([PROGRAM, "sideways"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no way sideways; there are eager, default, upstream, rondo", done.stderr)


if __name__ == "__main__":
    unittest.main()
