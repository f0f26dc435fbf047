# SPDX-License-Identifier: Apache-2.0
"""The parts of the tour check their values themselves; here they run on both devices, and what they print is looked at."""
import json
import pathlib
import subprocess
import tempfile
import unittest

from support import BUILD, ROOT, rondo


def example(name, *arguments):
    done = subprocess.run([str(BUILD / "bin/examples" / name), *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


class Examples(unittest.TestCase):
    def test_capture(self):
        for device in ("cpu", "sim"):
            text = example("capture", device)
            self.assertIn("6 nodes (3 copies, 3 kernels) in 2 lanes", text)
            for number in range(1, 6):
                # (x + y) + x * y with x = 83 at the end, and y the number of the replay.
                self.assertIn(f"replay {number}: z[1] = {1 + 2 * number}, z[16383] = {83 + 84 * number}, all 16384 right", text)
            # The freed input: node and argument by name.
            stale = next(line for line in text.splitlines() if line.startswith("y freed"))
            self.assertRegex(stale, r"node 1 'copy', argument 0: .* freed by rondo_memory_free")

    def test_contract(self):
        text = example("contract")
        for device in ("cpu:0", "sim:0", "sim:1"):
            row = next(line for line in text.splitlines() if line.startswith(device))
            self.assertRegex(row, r"yes +works +yes")
        self.assertIn("has_graph_impl(current accelerator) -> yes", text)

    def test_graph(self):
        for device in ("cpu", "sim"):
            text = example("graph", ROOT / "examples/graph_by_hand/x_plus_2y.onnx", device)
            self.assertRegex(text, r"by prototype, in eager style and from ONNX: the same plan, all \d+ bytes")
            self.assertIn("100 runs right, 1 compile, 1 capture", text)
            self.assertRegex(text, r"offline file: \d+ bytes, .* all 16384 values right")

    def test_contracts(self):
        for device in ("cpu", "sim"):
            text = example("contracts", device)
            self.assertRegex(text, rf"right: z = x \+ 2 y on {device}, 16384 of 16384 values; of 1000 drawn nodes all contracts")
            told = [line.rsplit(" ", 1)[1] for line in text.splitlines() if " -> " in line]
            self.assertEqual(told, ["loading", "schema", "converter", "prototype", "meta", "implementation", "kernel", "input",
                                    "implementation"])
            self.assertIn("only [8,2048]\n    input 0 'x' is float32[]\n    input 1 'y' is float32[]\n", text)

    def test_capture_tasks(self):
        for device in ("cpu", "sim"):
            for scenario, streams in ((1, "single"), (2, "double")):
                with tempfile.TemporaryDirectory() as folder:
                    text = example("capture_tasks", scenario, device, folder)
                    nodes = json.loads((pathlib.Path(folder) / f"graph_{streams}_stream.json").read_text())
                for number in range(5):
                    self.assertIn(f"round {number}: z[0] = {number}, z[16383] = 4914.9", text)
                self.assertIn(f"in {scenario} lanes", text)
                self.assertTrue(text.endswith("test pass!\n"))
                self.assertIn("add_custom", json.dumps(nodes))

    def test_devices(self):
        done = rondo("devices")
        self.assertEqual(done.returncode, 0)
        for name in ("cpu:0", "sim:0", "sim:1"):
            self.assertIn(name, done.stdout)


if __name__ == "__main__":
    unittest.main()
