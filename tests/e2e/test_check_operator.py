# SPDX-License-Identifier: Apache-2.0
"""`rondo check-operator` on operators that crash: the tool lives, and says under which contract it happened."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from support import ROOT, rondo

SOURCE = (ROOT / "examples" / "operators" / "add_custom.c").read_text()
NAME = "my.domain::AddCustom"


@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class CheckOperator(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def library(self, before, after):
        self.assertEqual(SOURCE.count(before), 1)
        source = self.folder / "crash.c"
        source.write_text("#include <stdlib.h>\n" + SOURCE.replace(before, after + before))
        file = self.folder / "crash.so"
        subprocess.run(["cc", "-std=gnu11", "-shared", "-fPIC", f"-I{ROOT / 'include'}", source, "-o", file], check=True)
        return file

    def crashed(self, file, contract):
        done = rondo("check-operator", file, NAME, "--seed", "7")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn(f"({contract}): operator '{NAME}' crashed with signal 6", done.stderr)
        done = rondo("check-operator", file, NAME, "--json")
        report = json.loads(done.stdout)
        self.assertEqual((done.returncode, report["agrees"], report["contract"]), (1, False, contract))
        self.assertIn("signal 6", report["message"])

    def test_crashes(self):
        self.crashed(self.library("    int64_t count = 1;\n", "    abort();\n"), "implementation")
        self.crashed(self.library("    results[0].rank = x->rank;\n", "    abort();\n"), "implementation")
        self.crashed(self.library("static const rondo_operator *const operators[]",
                                  "__attribute__((constructor)) static void begin(void) { abort(); }\n"), "loading")

    def test_what_does_not_crash(self):
        file = self.library("    int64_t count = 1;\n", "    (void)abort;\n")
        done = rondo("check-operator", file, NAME, "--seed", "3")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("the contracts agree: 1000 drawn", done.stdout)
        file = self.library("    return RONDO_OK;\n}\n\nstatic rondo_status add_infer_dtype", "    results[0].rank = 1;\n")
        done = rondo("check-operator", file, NAME)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("crashed", done.stderr)


if __name__ == "__main__":
    unittest.main()
