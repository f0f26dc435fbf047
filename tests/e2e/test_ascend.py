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
ODD = BUILD / "tests/libascend_odd_driver.so"
FRAME = ("--dim", "input.0=1", "--dim", "input.1=576", "--dim", "state.1=1", "--set", "sr=16000", "--random", "3")


def environment(**extra):
    return {**os.environ, "RONDO_ACL_LIBRARY": str(LIBRARY), **extra}


def odd(answers, **extra):
    """The simulated driver, but for the calls that always answer a number."""
    return environment(RONDO_ACL_LIBRARY=str(ODD), RONDO_ODD=answers, **extra)


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

    def test_devices_that_do_not_open_are_told_and_the_others_listed(self):
        count, silent = "aclrtGetDeviceCount: the driver gives no reason [207004]", "aclrtSetDevice: the driver gives no reason [507000]"
        told = "aclrtSetDevice: it was told to fail (error 507000) [507000]"
        for env, lines in ((odd("aclrtGetDeviceCount=207004"), [f"  not available: {count}"]),
                           (odd("aclrtSetDevice=507000"), [f"  ascend:{n}  not available: {silent}" for n in (0, 1)]),
                           (environment(RONDO_ACL_FAIL="aclrtSetDevice:1:507000"), [f"  ascend:0  not available: {told}", None]),
                           (environment(RONDO_ACL_DEVICES="0"),
                            ["  not available: aclrtGetDeviceCount: there is no device (error 207004) [207004]"])):
            done = rondo("devices", env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            listed = [line for line in done.stdout.splitlines() if not line.startswith("      ")]
            ascend = listed[listed.index("ascend: Ascend NPUs, through libascendcl") + 1:]
            self.assertEqual(len(ascend), len(lines), done.stdout)
            for line, want in zip(ascend, lines):
                self.assertEqual(line, want or line)
            self.assertIn("cpu:0", done.stdout)
        devices = json.loads(rondo("devices", "--json", env=environment(RONDO_ACL_FAIL="aclrtSetDevice:1:507000")).stdout)
        devices = next(kind["devices"] for kind in devices if kind["type"] == "ascend")
        self.assertEqual(([device["index"] for device in devices], devices[0]["unavailable"]), ([0, 1], told))
        for answers, why in (("aclrtGetDeviceCount=207004", count), ("aclrtSetDevice=507000", silent)):
            done = rondo("conformance", "--device", "ascend", env=odd(answers))
            self.assertEqual((done.returncode, done.stdout), (3, ""))
            self.assertIn(why, done.stderr)

    def test_what_a_driver_answers_207000_to_is_skipped_by_rule(self):
        for answers, tags, rules in (
                ("aclmdlRIExecuteAsync=207000", ("graph",), ()), ("aclmdlRICaptureEnd=507000", ("fork", "failure"), ()),
                ("aclrtSetStreamFailureMode=207000,aclmdlRICaptureBegin=207000", ("fork", "failure"),
                 ("the device says that what stands behind failed work may run",)),
                ("aclrtPointerGetAttributes=207000", ("copy",), ("the device says that it does not check a copy's direction",)),
                ("aclrtLaunchHostFunc=207000,aclrtMallocHost=207000,aclrtGetMemInfo=207000", (),
                 ("the device runs no host functions: a host function on a stream: ascend:0 has no host functions: aclrtLaunchHostFunc "
                  "answered 207000", "the size of the device's memory is unknown")),
                ("aclrtBinaryLoadFromData=207000", (), ("the device has no kernel catalogue", "the device's kernels are no host functions"))):
            done = rondo("conformance", "--device", "ascend", *(word for tag in tags for word in ("--tag", tag)), env=odd(answers))
            self.assertRegex(done.stdout.strip().splitlines()[-1], r"^\d+ passed, 0 failed, \d+ skipped$", done.stdout)
            for rule in rules:
                self.assertIn(rule, done.stdout)

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
