# SPDX-License-Identifier: Apache-2.0
"""How the package comes into an environment, is found by `import torch`, and refuses what does not fit."""
import base64
import hashlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ENTRY_POINTS = [point for point in importlib.metadata.entry_points(group="torch.backends") if point.name == "rondo"]


def python(code, **environment):
    done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, **environment), capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout.strip(), done.stderr


def backend():
    spec = importlib.util.spec_from_file_location("build_backend", os.path.join(os.path.dirname(HERE), "build_backend.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@unittest.skipUnless(ENTRY_POINTS, "the package is used from its folder here, not installed")
class Found(unittest.TestCase):
    def test_import_torch_is_enough(self):
        status, out, _ = python("import torch; print(torch.rondo.device_count() > 0, torch.ones(2, device='rondo').sum().item())")
        self.assertEqual((status, out), (0, "True 2.0"))

    def test_the_package_may_be_imported_first(self):
        status, out, err = python("import rondo_torch, torch; print(torch.ones(2, device='rondo').sum().item())")
        self.assertEqual((status, out), (0, "2.0"), err)

    def test_nothing_of_a_compiler_is_imported(self):
        status, out, _ = python("import sys, torch; print([m for m in sys.modules if m.startswith(('torch._inductor', "
                                "'torch._dynamo', 'rondo_torch.inductor', 'rondo_torch.interface', 'rondo_torch.trees'))])")
        self.assertEqual((status, out), (0, "[]"))

    def test_can_be_switched_off(self):
        status, out, _ = python("import sys, torch; print(hasattr(torch, 'rondo'), 'rondo_torch' in sys.modules)",
                                TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        self.assertEqual((status, out), (0, "False False"))


class Refused(unittest.TestCase):
    """Each in a process of its own, in which PyTorch is made to lack something."""

    def refusal(self, change):
        status, _, err = python(f"import torch\n{change}\nimport rondo_torch", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        self.assertEqual(status, 1)
        return err.strip().splitlines()[-1]

    def test_no_graphs(self):
        self.assertRegex(self.refusal("del torch.accelerator.Graph"),
                         r"ImportError: rondo_torch cannot be used with PyTorch [^ ]+: it has no torch\.accelerator\.Graph; "
                         r"PyTorch 2\.12 to 2\.15 have")

    def test_another_device_is_there(self):
        """Then the device is not to be had; nothing of the other's is touched, and it can be attached."""
        for change, environment, why in (
                ("torch.utils.rename_privateuse1_backend('other')", {}, "another package has made 'other' its device, and "
                                                                        "PyTorch has room for one"),
                ("pass", {"RONDO_TORCH_DEVICE": "none"}, "RONDO_TORCH_DEVICE is none")):
            status, out, _ = python(f"import torch\n{change}\nimport rondo_torch\nprint(rondo_torch.without_device, "
                                    "hasattr(torch, 'rondo'), torch._C._get_privateuse1_backend_name(), "
                                    "torch._C._dispatch_has_kernel_for_dispatch_key('aten::empty_strided', 'PrivateUse1'))",
                                    TORCH_DEVICE_BACKEND_AUTOLOAD="0", **environment)
            name = "other" if "other" in change else "privateuseone"
            self.assertEqual((status, out), (0, f"{why} False {name} False"))

    def test_built_for_another(self):
        self.assertRegex(self.refusal("torch.__version__ = '2.99.0+cpu'"),
                         r"was built for PyTorch \d+\.\d+\.\d+, and this is 2\.99\.0\+cpu\. Build it again: pip install")


class Backend(unittest.TestCase):
    def setUp(self):
        self.backend = backend()

    def test_without_pytorch(self):
        self.backend.PROBE = "print('{\"root\": null}')"
        with self.assertRaisesRegex(SystemExit, "there is no PyTorch in the environment of .*Install one"):
            self.backend.compile_extension()

    def test_pytorch_without_the_contract(self):
        with tempfile.TemporaryDirectory() as folder:
            self.backend.PROBE = f"import json; print(json.dumps({{'root': {folder!r}}}))"
            with self.assertRaisesRegex(SystemExit, "has no graph contract .* it needs PyTorch 2.12 to 2.15"):
                self.backend.compile_extension()

    def test_without_a_tool(self):
        with self.assertRaisesRegex(SystemExit, "needs no-such-tool to build .Debian: apt-get install its-package."):
            self.backend.tool("no-such-tool", "its-package")

    def test_a_compiler_with_words_after_it(self):
        """CXX="ccache g++" is a compiler, as for CMake; the folder of PyTorch's headers is what this one lacks."""
        with tempfile.TemporaryDirectory() as folder:
            header = os.path.join(folder, "include", "ATen", "core", "GraphImplInterface.h")
            os.makedirs(os.path.dirname(header))
            open(header, "w", encoding="utf-8").close()
            self.backend.PROBE = f"import json; print(json.dumps({{'root': {folder!r}}}))"
            self.backend.build_folder = lambda: os.path.join(folder, "build")
            for value, refusal in (("env c++ -I/", "the build failed"), ("no-such c++", "needs no-such to build"), ("", "the build failed")):
                with (self.subTest(value), mock.patch.dict(os.environ, CXX=value), mock.patch.object(sys, "stderr"),
                      self.assertRaisesRegex(SystemExit, refusal)):
                    self.backend.compile_extension()

    def test_a_build_outside_a_checkout_leaves_no_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            status, out, err = python(f"import os, sys; sys.path.insert(0, {os.path.dirname(HERE)!r}); import build_backend\n"
                                      f"build_backend.ROOT = {folder!r}; made = build_backend.build_folder()\n"
                                      "print(made, os.path.isdir(made))", TMPDIR=folder)
            self.assertEqual((status, out.split()[1:]), (0, ["True"]), err)
            self.assertTrue(out.startswith(folder))
            self.assertEqual(os.listdir(folder), [])

    def test_metadata_is_what_pyproject_says(self):
        try:
            import tomllib
        except ImportError:
            self.skipTest("Python has no reader of TOML before 3.11")
        with open(os.path.join(os.path.dirname(HERE), "pyproject.toml"), "rb") as file:
            self.assertEqual(self.backend.project(), tomllib.load(file)["project"])

    def test_wheel(self):
        with tempfile.TemporaryDirectory() as folder:
            name = self.backend.write_wheel(folder, {"rondo_torch/x.so": b"bytes"})
            with zipfile.ZipFile(os.path.join(folder, name)) as wheel:
                info = f"rondo_torch-{self.backend.version()}.dist-info"
                record = wheel.read(f"{info}/RECORD").decode().splitlines()
                self.assertIn("[torch.backends]\nrondo = rondo_torch:_autoload\n",
                              wheel.read(f"{info}/entry_points.txt").decode())
                self.assertIn(f"\nVersion: {self.backend.version()}\n", wheel.read(f"{info}/METADATA").decode())
                named = [line.rsplit(",", 2) for line in record]
                self.assertEqual(sorted(line[0] for line in named), sorted(wheel.namelist()))
                for path, digest, size in named[:-1]:
                    data = wheel.read(path)
                    want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                    self.assertEqual((digest, int(size)), (f"sha256={want}", len(data)))

    def test_source_distribution_has_what_it_is_built_from(self):
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(os.path.join(folder, self.backend.build_sdist(folder))) as archive:
                names = set(archive.getnames())
        top = f"rondo_torch-{self.backend.version()}"
        for path in ("PKG-INFO", "pyproject.toml", "build_backend.py", "csrc/runtime.cpp", "rondo_torch/__init__.py",
                     "rondo/CMakeLists.txt", "rondo/include/rondo/rondo.h", "rondo/src/graph/capture.c", "rondo/cmake/rondo.cmake"):
            self.assertIn(f"{top}/{path}", names)
        self.assertFalse([name for name in names if "__pycache__" in name or name.endswith((".so", ".pyc"))])


if __name__ == "__main__":
    unittest.main()
