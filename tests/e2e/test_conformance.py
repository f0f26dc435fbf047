# SPDX-License-Identifier: Apache-2.0
"""`rondo conformance` as a user runs it: both devices pass, and reports are what JSON and XML parsers accept."""
import json
import pathlib
import re
import tempfile
import unittest
import xml.etree.ElementTree

from support import rondo


class Conformance(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def run_suite(self, *arguments):
        done = rondo("conformance", "--json", self.path / "r.json", "--junit", self.path / "r.xml", *arguments)
        counts = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped", done.stdout.strip().splitlines()[-1])
        self.assertTrue(counts, done.stdout + done.stderr)
        counts = [int(count) for count in counts.groups()]
        report = json.loads((self.path / "r.json").read_text())
        self.assertEqual([report["passed"], report["failed"], report["skipped"]], counts)
        self.assertEqual(len(report["tests"]), sum(counts))
        suite = xml.etree.ElementTree.parse(self.path / "r.xml").getroot()
        self.assertEqual([int(suite.get(key)) for key in ("tests", "failures", "skipped")], [sum(counts), counts[1], counts[2]])
        self.assertEqual(len(suite.findall("testcase")), sum(counts))
        self.assertEqual(len(suite.findall("testcase/failure")), counts[1])
        self.assertEqual(done.returncode, 1 if counts[1] else 0)
        return report, counts

    def test_both_devices_pass(self):
        for device in ("cpu", "sim"):
            report, counts = self.run_suite("--device", device)
            self.assertEqual(counts[1], 0, report)
            self.assertGreater(counts[0], 100)
            self.assertLess(report["seconds"], 60)

    def test_other_seeds(self):
        for seed in (2, 3, 4):
            report, counts = self.run_suite("--device", "sim", "--settings", f"seed={seed}", "--seed", seed)
            self.assertEqual(counts[1], 0, [test for test in report["tests"] if test["outcome"] == "failed"])
            self.assertEqual(report["seed"], seed)

    def test_a_fault_is_reported_and_can_be_expected(self):
        broken = ("--device", "sim", "--settings", "mutate=wait_ignored", "--tag", "event.ring", "--tag", "event.refuses")
        report, counts = self.run_suite(*broken)
        self.assertEqual(counts, [1, 1, 0])
        failed = [test for test in report["tests"] if test["outcome"] == "failed"][0]
        self.assertEqual(failed["name"], "event.ring")
        self.assertTrue(failed["message"] and failed["line"] > 0)
        expect = self.path / "expect"
        expect.write_text("expected-failure event.ring <ignored> & \"quoted\"\n")
        report, counts = self.run_suite(*broken, "--expect", expect)
        self.assertEqual((counts, report["expected_failures"]), ([1, 0, 1], 1))
        expect.write_text("expected-failure event.refuses why\nunsupported event.ring a rule\n")
        report, counts = self.run_suite(*broken, "--expect", expect)
        self.assertEqual(counts, [0, 1, 1])

    def test_command_line(self):
        listing = rondo("conformance", "--list", "--tag", "event")
        self.assertEqual(listing.returncode, 0)
        self.assertIn("event.cross_stream", listing.stdout)
        self.assertNotIn("copy.overlap", listing.stdout)
        for code, part, arguments in ((2, "--device", []), (3, "warp9", ["--device", "warp9"]), (2, "--seed", ["--device", "cpu", "--seed", "x"]),
                                      (2, "tag", ["--device", "cpu", "--tag", "none"]), (2, "--nonsense", ["--nonsense"]),
                                      (1, "absent", ["--device", "cpu", "--expect", self.path / "absent"]),
                                      (2, "takes no files", ["--device", "cpu", "file"])):
            done = rondo("conformance", *arguments)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(part, done.stderr)


if __name__ == "__main__":
    unittest.main()
