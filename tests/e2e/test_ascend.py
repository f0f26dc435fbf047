# SPDX-License-Identifier: Apache-2.0
"""The device type `ascend`, without a library and over the simulated one: as a user meets it."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from support import BUILD, ROOT, model, rondo

LIBRARY = BUILD / "lib/simulators/libascendcl.so"
FRAME = ("--dim", "input.0=1", "--dim", "input.1=576", "--dim", "state.1=1", "--set", "sr=16000", "--random", "3")


def environment(**extra):
    return {**os.environ, "RONDO_ACL_LIBRARY": str(LIBRARY), **extra}


class Ascend(unittest.TestCase):
    def test_without_the_library_one_line_says_so(self):
        done = rondo("devices", env={**os.environ, "RONDO_ACL_LIBRARY": "/nowhere/libascendcl.so"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        told = [line for line in lines if "not available" in line]
        self.assertEqual(len(told), 1)
        self.assertIn("/nowhere/libascendcl.so", told[0])
        self.assertEqual(lines[lines.index(told[0]) - 1], "ascend: Ascend NPUs, through libascendcl")
        done = rondo("run", "x.onnx", "--device", "ascend", env={**os.environ, "RONDO_ACL_LIBRARY": "/nowhere/libascendcl.so"})
        self.assertIn(done.returncode, (1, 3))

    def test_devices_say_what_their_driver_is_not_used_for(self):
        done = rondo("devices", env=environment())
        self.assertEqual(done.returncode, 0)
        self.assertIn("ascend:1  Ascend 1", done.stdout)
        for device in ("ascend:0", "ascend:1"):
            self.assertIn(f"rondo: note: {device}: task edit: not used: ", done.stderr)
            self.assertIn(f"rondo: note: {device}: conditions in its own graphs: not used: ", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 4)

    def test_conformance(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.json"
            done = rondo("conformance", "--device", "ascend", "--json", path, env=environment(RONDO_ACL_DELAY="10", RONDO_ACL_SEED="5"))
            report = json.loads(path.read_text())
            self.assertRegex(done.stdout.strip().splitlines()[-1], r"^\d+ passed, 0 failed, \d+ skipped$", done.stdout)
            skipped = [test["name"] for test in report["tests"] if test["outcome"] == "skipped"]
            self.assertEqual(skipped, ["condition.decides", "condition.nested", "condition.refuses"])
        for extra, more in (({"RONDO_ACL_TASK_UPDATE": "0"}, ()), ({}, ("--settings", "graphs=list"))):
            done = rondo("conformance", "--device", "ascend", "--tag", "graph", *more, env=environment(**extra))
            self.assertRegex(done.stdout.strip().splitlines()[-1], r"^\d+ passed, 0 failed, \d+ skipped$", done.stdout)

    def test_a_model_captured_whole_gives_the_processors_bits(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for device in ("cpu", "ascend"):
                done = rondo("run", model("silero_vad.onnx"), *FRAME, "--repeat", "5", "--device", device, "--output-dir",
                             folder / device, env=environment(RONDO_ACL_COUNTS=str(folder / "counts")))
                self.assertEqual(done.returncode, 0, done.stderr)
            for name in ("output.npy", "stateN.npy"):
                self.assertEqual((folder / "cpu" / name).read_bytes(), (folder / "ascend" / name).read_bytes())
            counts = dict(line.split() for line in (folder / "counts").read_text().splitlines())
            self.assertEqual((counts["aclmdlRICaptureBegin"], counts["aclmdlRIExecuteAsync"], counts["replays"]), ("1", "5", "5"))

    def test_programs_of_the_vendors_interface(self):
        """The example is built by the build; here a program is compiled as a user would, in C and in C++."""
        source = '#include <acl/acl.h>\nint main(void) { return aclInit(NULL) || aclrtSetDevice(0) || aclrtResetDevice(0) || aclFinalize(); }\n'
        with tempfile.TemporaryDirectory() as folder:
            for compiler, ending in ((os.environ.get("CC", "cc"), "c"), ("c++", "cpp")):
                path = pathlib.Path(folder) / f"program.{ending}"
                path.write_text(source)
                program = path.with_suffix("")
                subprocess.run([compiler, "-I", ROOT / "simulators/acl/include", path, "-L", LIBRARY.parent, "-lascendcl", "-o", program],
                               check=True, timeout=60)
                subprocess.run([program], check=True, timeout=60, env={**os.environ, "LD_LIBRARY_PATH": str(LIBRARY.parent)})

    def test_pictures_of_graphs_are_json(self):
        program, kernel = BUILD / "bin/examples/capture_tasks_acl", BUILD / "bin/examples/add_custom.so"
        with tempfile.TemporaryDirectory() as folder:
            for scenario, name, streams in ((1, "single", 1), (2, "double", 2)):
                done = subprocess.run([program, kernel, str(scenario), folder], capture_output=True, text=True, check=False, timeout=60,
                                      env={**os.environ, "LD_LIBRARY_PATH": str(LIBRARY.parent)})
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("test pass!", done.stdout)
                self.assertEqual(len(re.findall(r"^round \d", done.stdout, re.M)), 5)
                tasks = json.loads((pathlib.Path(folder) / f"modelRI_{name}_stream.json").read_text())
                self.assertEqual(len({task["args"]["Stream Id"] for task in tasks}), streams)
                kernels = [task for task in tasks if task["name"] == "add_custom"]
                self.assertEqual([task["args"]["Numblocks"] for task in kernels], [8])
                for task in tasks:
                    self.assertLessEqual({"name", "pid", "tid", "ts", "dur", "ph", "args"}, set(task))


if __name__ == "__main__":
    unittest.main()
