# SPDX-License-Identifier: Apache-2.0
"""What the end to end tests share: the tool, the models, and tensors that agree."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RONDO_BUILD", ROOT / "build"))
CACHE = pathlib.Path(os.environ.get("RONDO_CACHE", ROOT / ".cache"))
SOUNDS = CACHE / "speech"
RONDO = BUILD / "bin" / "rondo"


def rondo(*arguments, timeout=120, **options):
    """Runs the tool; text in, text out."""
    return subprocess.run([str(RONDO), *map(str, arguments)], capture_output=True, text=True, timeout=timeout, errors="replace", **options)


def model(name):
    """The path of a fetched model, or a skip that says so."""
    for folder in ("silero-vad", "wakeword"):
        path = CACHE / folder / name
        if path.is_file():
            return path
    raise unittest.SkipTest(f"{name} was not fetched")


def agree(got, want):
    """DESIGN's rule: |got - want| <= 1e-5 + 1e-4 * max|want|."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype, f"{got.dtype} is not {want.dtype}"
    assert got.shape == want.shape, f"{got.shape} is not {want.shape}"
    if want.size == 0:
        return
    worst = np.abs(got.astype(np.float64) - want).max()
    bound = 1e-5 + 1e-4 * np.abs(want.astype(np.float64)).max()
    assert worst <= bound, f"differs by {worst}, allowed is {bound}"


def run_model(path, inputs, *extra):
    """Writes the inputs, runs the tool, reads every output."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        arguments = ["run", path, "--output-dir", folder / "out", *extra]
        for number, (name, value) in enumerate(inputs.items()):
            np.save(folder / f"input{number}.npy", value)
            arguments += ["--input", f"{name}={folder / f'input{number}.npy'}"]
        done = rondo(*arguments)
        assert done.returncode == 0, done.stderr
        return {file.stem: np.load(file) for file in (folder / "out").iterdir()}
