# SPDX-License-Identifier: Apache-2.0
"""`rondo profile`: every step is there, the parts add up to the wall time, the trace is one, on cpu and on sim, from a model,
a TensorFlow graph and an offline file."""
import json
import pathlib
import tempfile
import unittest

from support import model, rondo
from test_models import SILERO
from test_offline import SIZES

GIVEN = ["--random", "1", "--set", "sr=16000"]
SUMS = ["import", "compile", "load", "capture", "copy in", "copy out", "launch", "kernel", "wait", "replay", "eager", "other"]


class Profile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def profile(self, path, *extra):
        trace = self.folder / "trace.json"
        done = rondo("profile", path, *GIVEN, "--json", "--repeat", "5", "--trace", trace, *extra)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout), json.loads(trace.read_text())

    def check(self, path, report, trace, *extra):
        steps = json.loads(rondo("run", path, *GIVEN, "--json", *extra).stdout)["calls"]
        self.assertGreater(steps, 8)
        parts = sum(report["parts"][name] for name in SUMS)
        self.assertAlmostEqual(parts, report["parts_us"], delta=0.01)
        self.assertLess(abs(parts - report["wall_us"]), 0.05 * report["wall_us"])
        self.assertAlmostEqual(sum(r["us"] for r in report["rows"] if r["part"] == "call"), report["wall_us"], delta=0.01)
        nodes = [r for r in report["rows"] if "operator" in r]
        self.assertEqual(len(nodes), steps)
        self.assertEqual({r["calls"] for r in nodes}, {5})
        self.assertAlmostEqual(sum(r["kernel_us"] for r in nodes), report["device_us"], delta=0.01 * steps)
        self.assertEqual((report["runs"], report["eager_runs"], report["replays"]), (5, 5, 5))
        self.assertRegex(report["verdict"], "^capture (will not help|helps): ")
        for kind in ("copy in", "copy out"):
            self.assertEqual({r["calls"] for r in report["rows"] if r["part"] == kind}, {5})
        events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(sum(e["cat"] == "kernel" for e in events), 5 * steps)
        self.assertEqual(sum(e["cat"] == "launch" for e in events), 5 * steps)
        names = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["name"] == "thread_name"}
        self.assertLessEqual({(e["pid"], e["tid"]) for e in events}, names)

    def test_silero_and_its_offline_file(self):
        for device in ("cpu", "sim"):
            with self.subTest(device=device):
                report, trace = self.profile(model(SILERO[0]), *SIZES, "--device", device)
                self.check(model(SILERO[0]), report, trace, *SIZES)
                self.assertGreater(report["parts"]["compile"], 0)
                self.assertLessEqual(report["parts"]["pass"], report["parts"]["compile"])
        file = self.folder / "model.rondo"
        done = rondo("compile", model(SILERO[0]), "-o", file, *SIZES, "--set", "sr=16000")
        self.assertEqual(done.returncode, 0, done.stderr)
        report, trace = self.profile(file)
        self.check(file, report, trace)
        self.assertEqual(report["parts"]["pass"], 0)

    def test_text_and_level(self):
        done = rondo("profile", model(SILERO[0]), *GIVEN, *SIZES, "--repeat", "2", "-O", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("of the wall time", done.stdout)
        self.assertRegex(done.stdout, r"in \d+ more\n")  # without folding there are hundreds
        self.assertRegex(done.stdout, "\ncapture (will not help|helps): .*\n$")

    def test_what_is_wrong(self):
        done = rondo("profile", model(SILERO[0]), *GIVEN, *SIZES, "--trace", self.folder / "no" / "trace.json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("cannot be written", done.stderr)
        self.assertEqual(rondo("profile", model(SILERO[0]), "--eager").returncode, 2)
        self.assertEqual(rondo("profile", self.folder / "none.onnx").returncode, 1)


if __name__ == "__main__":
    unittest.main()
