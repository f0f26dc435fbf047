# SPDX-License-Identifier: Apache-2.0
"""The compiler's passes from the command line: what runs, what is refused, dumps after a pass; and a real model at every
level against ONNX Runtime."""
import json
import pathlib
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from support import agree, model, rondo, run_model


def save(folder):
    """y = relu(x w + b) through an Identity, beside a node that nobody needs."""
    make = onnx.helper.make_node
    w = onnx.numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4) - 5, "w")
    b = onnx.numpy_helper.from_array(np.array([1, -20, 3, 4], np.float32), "b")
    nodes = [
        make("MatMul", ["x", "w"], ["p"], "product"),
        make("Add", ["p", "b"], ["s"], "sum"),
        make("Identity", ["s"], ["i"], "same"),
        make("Neg", ["x"], ["n"], "unused"),
        make("Relu", ["i"], ["y"], "bend"),
    ]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "small", [value("x", 1, [2, 3])], [value("y", 1, [2, 4])], [w, b]
    )
    path = pathlib.Path(folder) / "small.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def save_branches(folder, side):
    """root -> {exp, sin -> cos} -> sum."""
    make = onnx.helper.make_node
    nodes = [
        make("Tanh", ["x"], ["t"], "root"),
        make("Exp", ["t"], ["l"], "left"),
        make("Sin", ["t"], ["r"], "right"),
        make("Cos", ["r"], ["c"], "further"),
        make("Add", ["l", "c"], ["y"], "sum"),
    ]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(nodes, "branches", [value("x", 1, [side, side])], [value("y", 1, [side, side])])
    path = pathlib.Path(folder) / "branches.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    return path


class Lanes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = save_branches(self.folder, 24)

    def plan(self, *extra):
        return json.loads(rondo("dump", self.path, "--stage", "plan", "--format", "json", *extra).stdout)

    def test_a_branch_has_its_lane(self):
        plan = self.plan("--lanes", "4")
        steps = {step["node"]: step for step in plan["steps"]}
        self.assertEqual((plan["lanes"], plan["waits"]), (2, 2))
        self.assertEqual([steps[n]["lane"] for n in ("root", "left", "right", "further", "sum")], [0, 0, 1, 1, 0])
        self.assertEqual(steps["right"]["waits"], [steps["root"]["record"]])
        self.assertEqual(steps["sum"]["waits"], [steps["further"]["record"]])
        text = rondo("dump", self.path, "--stage", "plan", "--lanes", "2").stdout
        self.assertIn("2 lanes with 2 waits\n", text)
        self.assertIn("lane 1 waits for e0\n", text)
        self.assertIn("it was asked for", text)
        self.assertEqual(self.plan()["lanes"], 1)
        self.assertTrue(any("streams: 1 lane: its kernels run on the host" in r for r in self.plan()["remarks"]))
        for wrong in ("0", "17", "many"):
            self.assertEqual(rondo("run", self.path, "--random", "1", "--lanes", wrong).returncode, 2)

    def test_a_capture_knows_the_branches(self):
        done = rondo("dump", self.path, "--stage", "capture", "--lanes", "4", "--format", "json")
        graph = json.loads(done.stdout)
        self.assertEqual(graph["lanes"], 2)
        edges = {(a, b) for a, b in graph["edges"]}
        self.assertEqual(edges, {(0, 1), (0, 2), (2, 3), (1, 4), (3, 4)})

    def test_lanes_keep_every_bit(self):
        random = np.random.default_rng(3)
        for path, inputs in (
            (self.path, {"x": random.standard_normal((24, 24)).astype(np.float32)}),
            (
                model("silero_vad.onnx"),
                {
                    "input": (random.standard_normal((1, 576)) * 0.1).astype(np.float32),
                    "state": (random.standard_normal((2, 1, 128)) * 0.1).astype(np.float32),
                    "sr": np.array(16000, np.int64),
                },
            ),
        ):
            want = run_model(path, inputs, "--lanes", "1")
            file = self.folder / "lanes.rondo"
            sizes = [f"--dim={name}.{axis}={size}" for name, v in inputs.items() for axis, size in enumerate(v.shape)]
            sets = ["--set", "sr=16000"] if "sr" in inputs else []
            done = rondo("compile", path, "-o", file, "--lanes", "3", *sizes, *sets)
            self.assertEqual(done.returncode, 0, done.stderr)
            for device in ("cpu", "sim"):
                for source, extra in ((path, ["--lanes", "2"]), (path, ["--lanes", "8", "--eager"]), (file, []), (file, ["--eager"])):
                    with self.subTest(f"{source.name} {device} {extra}"):
                        got = run_model(source, inputs, "--device", device, *extra)
                        for name, value in want.items():
                            self.assertEqual(value.tobytes(), got[name].tobytes())


class Targets(unittest.TestCase):
    """root and sum on the first target, the branches on the second."""

    SPLIT = ["--target", "ref:Tanh,Add;ref:Exp,Sin,Cos"]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = save_branches(self.folder, 8)
        self.inputs = {"x": np.random.default_rng(5).standard_normal((8, 8)).astype(np.float32)}
        self.want = run_model(self.path, self.inputs, "--target", "ref")

    def test_the_plan_says_who_and_why(self):
        plan = json.loads(rondo("dump", self.path, "--stage", "plan", "--format", "json", *self.SPLIT).stdout)
        self.assertEqual([t["name"] for t in plan["targets"]], ["ref:Tanh,Add", "ref:Exp,Sin,Cos"])
        self.assertEqual(plan["segment_targets"], [0, 1, 0])
        kinds = [(s["operator"], s["segment"]) for s in plan["steps"]]
        copy = "rondo.transfer"
        self.assertEqual(kinds, [("Tanh", 0), (copy, 1), ("Exp", 1), ("Sin", 1), ("Cos", 1), (copy, 2), (copy, 2), ("Add", 2)])
        self.assertEqual(sum("is on target 1 'ref:Exp,Sin,Cos': no implementation of" in r for r in plan["remarks"]), 3)
        self.assertEqual(sum("of 256 bytes goes from target" in r for r in plan["remarks"]), 3)
        text = rondo("dump", self.path, "--stage", "plan", *self.SPLIT).stdout
        self.assertIn("target 1 'ref:Exp,Sin,Cos': arena", text)
        self.assertIn("segment 1 on target 1\n", text)

    def test_values_over_two_devices(self):
        for devices in ("sim,sim:1", "sim,cpu", "cpu,sim", "cpu,cpu", "sim,sim"):
            for extra in ([], ["--eager"], ["--repeat", "3"]):
                with self.subTest(f"{devices} {extra}"):
                    got = run_model(self.path, self.inputs, "--device", devices, *self.SPLIT, *extra)
                    self.assertEqual(got["y"].tobytes(), self.want["y"].tobytes())

    def test_the_file_knows_its_targets(self):
        file = self.folder / "two.rondo"
        done = rondo("compile", self.path, "-o", file, *self.SPLIT, "--report")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("targets: 3 segments on 2 targets, 3 copies between", done.stdout)
        model = rondo("dump", self.path, "--stage", "plan", *self.SPLIT).stdout
        self.assertEqual(rondo("dump", file, "--stage", "plan").stdout, model)
        got = run_model(file, self.inputs, "--device", "sim,sim:1")
        self.assertEqual(got["y"].tobytes(), self.want["y"].tobytes())
        done = rondo("run", file, "--random", "1", "--device", "sim")
        self.assertEqual(done.returncode, 3)
        self.assertIn("is for 2 targets ('ref:Tanh,Add;ref:Exp,Sin,Cos'), 1 device is given", done.stderr)

    def test_what_nobody_has(self):
        done = rondo("run", self.path, "--random", "1", "--device", "sim,cpu", "--target", "ref:Tanh;ref:Exp,Add,Sin")
        self.assertEqual(done.returncode, 3)
        self.assertIn("node 'further', operator 'Cos': none of the 2 targets has it", done.stderr)
        self.assertIn("target 0 'ref:Tanh'", done.stderr)
        self.assertIn("target 1 'ref:Exp,Add,Sin'", done.stderr)
        for wrong, text in (("ref;nobody", "nobody"), ("ref;", "no kernel catalogue is named"), ("ref:Tanh, Add", "without spaces"), (";".join(["ref"] * 9), "at most 8 targets")):
            done = rondo("run", self.path, "--random", "1", "--target", wrong)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)


class Passes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = save(self.folder)

    def nodes_after(self, name, *extra):
        done = rondo("dump", self.path, "--after", name, "--format", "json", *extra)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [node["name"] for node in json.loads(done.stdout)["nodes"]], done.stderr

    def test_the_list(self):
        passes = json.loads(rondo("passes", "--json").stdout)
        self.assertEqual([p["name"] for p in passes if p["required"]], ["specialise", "resolve", "compact", "emit"])
        self.assertTrue(all(p["summary"].endswith(".") for p in passes))
        self.assertEqual(rondo("passes").stdout, rondo("compile", "--list-passes").stdout)
        self.assertEqual(len(rondo("passes").stdout.splitlines()), len(passes))

    def test_a_dump_after_a_pass_and_its_reasons(self):
        every = ["bend", "product", "same", "sum", "unused"]
        names, _ = self.nodes_after("resolve")
        self.assertEqual(sorted(names), every)
        names, reasons = self.nodes_after("dead", "--passes", "dead")
        self.assertNotIn("unused", names)
        self.assertEqual(reasons, "  node 'unused' (Neg): nothing uses what it gives\n")
        names, reasons = self.nodes_after("simplify")
        self.assertNotIn("same", names)
        self.assertIn("node 'same' (Identity): gives what it takes", reasons)
        self.assertEqual(len(self.nodes_after("compact")[0]), 1)
        self.assertEqual(sorted(self.nodes_after("compact", "-O0")[0]), every)

    def test_what_is_refused(self):
        for arguments, text in (
            (["--disable-pass", "emit"], "pass 'emit' must run"),
            (["--disable-pass", "dead", "--disable-pass", "resolve"], "pass 'resolve' must run"),
            (["--passes", "dead,specialise"], "pass 'specialise' must run"),
            (["--passes", "deaf"], "there is no pass 'deaf'; there are dead, fold"),
        ):
            done = rondo("run", self.path, "--random", "1", *arguments)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(text, done.stderr)
        for arguments in (["-O4"], ["-O", "fast"]):
            self.assertEqual(rondo("run", self.path, *arguments).returncode, 2)
        self.assertIn("did not run", rondo("dump", self.path, "--after", "dead", "-O0").stderr)
        self.assertEqual(rondo("dump", self.path, "--after", "dead", "--stage", "plan").returncode, 2)

    def test_a_compiled_file_says_what_was_done(self):
        out = self.folder / "out.rondo"
        report = rondo("compile", self.path, "-o", out, "--report").stdout
        self.assertIn("5 nodes -> 1 calls", report)
        for line in ("node 'unused' (Neg): nothing uses", "node 'product': bias of 'sum' fused"):
            self.assertIn(line, report)
        # An Identity is a view, with no step even where no pass drops it.
        report = rondo("compile", self.path, "-o", out, "-O0").stdout
        self.assertIn("5 nodes -> 4 calls", report)
        report = rondo("compile", self.path, "-o", out, "--disable-pass", "fuse-bias").stdout
        self.assertIn("5 nodes -> 2 calls", report)

    def test_every_level_gives_the_values(self):
        x = np.array([[1, -2, 3], [0.5, 0, -1]], np.float32)
        want = np.maximum(x @ (np.arange(12, dtype=np.float32).reshape(3, 4) - 5) + [1, -20, 3, 4], 0)
        for level in range(4):
            got = run_model(self.path, {"x": x}, "-O", str(level))
            agree(got["y"], want.astype(np.float32))

    def test_a_real_model_at_every_level(self):
        path = model("silero_vad.onnx")
        random = np.random.default_rng(7)
        inputs = {
            "input": (random.standard_normal((1, 576)) * 0.1).astype(np.float32),
            "state": (random.standard_normal((2, 1, 128)) * 0.1).astype(np.float32),
            "sr": np.array(16000, np.int64),
        }
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        peer = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        want = dict(zip([o.name for o in peer.get_outputs()], peer.run(None, inputs)))
        names = [p["name"] for p in json.loads(rondo("passes", "--json").stdout) if not p["required"]]
        ways = [["-O", str(level)] for level in range(4)] + [["--disable-pass", name] for name in names]
        for extra in ways + [["--passes", name] for name in names]:
            with self.subTest(extra):
                for name, value in run_model(path, inputs, *extra).items():
                    agree(value, want[name])


if __name__ == "__main__":
    unittest.main()
