# SPDX-License-Identifier: Apache-2.0
"""Builds the second device of tests/second through CMake, once for each PyTorch and state of its sources, and loads it.

PyTorch has room for one such device in a process, so a test that uses it has this as its first import.
"""
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

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "second")


def _folder():
    """Of this build: beside the project's own, or where temporary files are."""
    key = hashlib.sha256(f"{torch.__version__} {sys.version}".encode())
    for root, _, names in sorted(os.walk(HERE)):
        for name in sorted(names):
            if name.endswith((".cpp", ".hpp", ".txt")):
                with open(os.path.join(root, name), "rb") as file:
                    key.update(file.read())
    build = os.path.join(HERE, "..", "..", "..", "..", "build")
    writable = os.path.isdir(build) and os.access(build, os.W_OK)
    place = os.path.realpath(build) if writable else tempfile.gettempdir()
    return os.path.join(place, f"second-{key.hexdigest()[:16]}")


def _run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}\n{done.stdout}")


def _build(folder):
    """Two processes may build at once: the one that is done first is kept."""
    made = tempfile.mkdtemp(prefix="second-", dir=os.path.dirname(folder))
    try:
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        _run("cmake", "-S", HERE, "-B", made, *generator, f"-DSECOND_TORCH={os.path.dirname(torch.__file__)}",
             f"-DSECOND_PYTHON_INCLUDE={sysconfig.get_path('include')}")
        _run("cmake", "--build", made, "--parallel", "2")
        os.makedirs(os.path.join(made, "package", "second"))
        for name in os.listdir(os.path.join(HERE, "second")):
            if name.endswith(".py"):
                os.symlink(os.path.join(HERE, "second", name), os.path.join(made, "package", "second", name))
        os.rename(os.path.join(made, "_second.so"), os.path.join(made, "package", "second", "_second.so"))
        os.rename(made, folder)
    except OSError:
        if not os.path.isdir(folder):
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def leave_out(why):
    """Ends the process as a test file does whose only test is skipped."""
    case = type("Second", (unittest.TestCase,), {"test_device": unittest.skip(why)(lambda self: None)})
    unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    sys.exit(0)


def load():
    """The package `second`. The file is left out where it cannot be built."""
    if not shutil.which("cmake") or not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
        leave_out("building the second device needs cmake and a C++ compiler")
    folder = _folder()
    if not os.path.isdir(folder):
        _build(folder)
    sys.path.insert(0, os.path.join(folder, "package"))
    import second
    return second
