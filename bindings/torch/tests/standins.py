# SPDX-License-Identifier: Apache-2.0
"""Builds the devices that stand for other vendors' packages (second, npu_standin) through CMake, once for each PyTorch
and state of their sources.

PyTorch has room for one such device in a process, so a test that uses one has its module as its first import.
"""
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest

os.environ["RONDO_TORCH_DEVICE"] = "none"  # rondo_torch leaves the place to the other

import torch  # noqa: E402

TESTS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(os.path.join(TESTS, "..", "..", ".."))


def _folder(source, definitions):
    """Of this build: beside the project's own, or where temporary files are."""
    key = hashlib.sha256(f"{torch.__version__} {sys.version} {definitions}".encode())
    for root, _, names in sorted(os.walk(source)):
        for name in sorted(names):
            if name.endswith((".cpp", ".hpp", ".txt")):
                with open(os.path.join(root, name), "rb") as file:
                    key.update(file.read())
    build = os.path.join(ROOT, "build")
    writable = os.path.isdir(build) and os.access(build, os.W_OK)
    place = build if writable else tempfile.gettempdir()
    return os.path.join(place, f"{os.path.basename(source)}-{key.hexdigest()[:16]}")


def _run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}\n{done.stdout}")


@contextlib.contextmanager
def _alone(folder):
    """Of several processes one builds, the others wait for it."""
    with open(folder + ".lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(folder, source, prefix, module, definitions):
    package = os.path.basename(source)
    made = tempfile.mkdtemp(prefix=f"{package}-", dir=os.path.dirname(folder))
    try:
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        given = {"TORCH": os.path.dirname(torch.__file__), "PYTHON_INCLUDE": sysconfig.get_path("include")}
        given.update(definitions)
        _run("cmake", "-S", source, "-B", made, *generator,
             *(f"-D{prefix}_{name}={value}" for name, value in given.items()))
        _run("cmake", "--build", made, "--parallel", "2")
        os.makedirs(os.path.join(made, "package", package))
        for name in os.listdir(os.path.join(source, package)):
            if name.endswith(".py"):
                os.symlink(os.path.join(source, package, name), os.path.join(made, "package", package, name))
        os.rename(os.path.join(made, f"{module}.so"), os.path.join(made, "package", package, f"{module}.so"))
        os.rename(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def leave_out(why):
    """Ends the process as a test file does whose only test is skipped."""
    print(f"not run: {why}", file=sys.stderr)
    case = type("StandIn", (unittest.TestCase,), {"test_device": unittest.skip(why)(lambda self: None)})
    unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    sys.exit(0)


def find_tools():
    """Why nothing can be built here, or ""."""
    if not shutil.which("cmake") or not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
        return "building it needs cmake and a C++ compiler"
    return ""


def build(name, prefix, module, definitions=None):
    """Puts the package `name` on the path of modules: its sources lie in the folder of that name."""
    source, definitions = os.path.join(TESTS, name), definitions or {}
    folder = _folder(source, definitions)
    with _alone(folder):
        if not os.path.isdir(folder):
            _build(folder, source, prefix, module, definitions)
    sys.path.insert(0, os.path.join(folder, "package"))


def compare_training(device):
    """A few steps of Adam on the package's device leave the parameters that they leave on the CPU."""
    import torch  # not before who tests has said how it is to be loaded

    torch.manual_seed(1)
    x = torch.randn(8, 4)
    models = [torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    models[1].to(device)
    for model in models:
        step = torch.optim.Adam(model.parameters())
        for _ in range(3):
            step.zero_grad()
            model(x.to(next(model.parameters()).device)).square().mean().backward()
            step.step()
    for got, want in zip(models[1].parameters(), models[0].parameters()):
        torch.testing.assert_close(got.cpu(), want)
