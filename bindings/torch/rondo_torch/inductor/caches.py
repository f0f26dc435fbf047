# SPDX-License-Identifier: Apache-2.0
"""The plugin's part in the keys of Inductor's and AOTAutograd's caches.

Both keep generated text across processes. What is generated depends on this plugin, so its version, its sources and the
replacements in place are part of each key: another plugin compiles anew.
"""
import functools
import hashlib
import pathlib

from torch._inductor.custom_graph_pass import CustomGraphModulePass

from .. import _C, patches


@functools.cache
def _sources():
    here = pathlib.Path(__file__).parent
    files = [*sorted(here.glob("*.py")), here.parent / "gates.py", here.parent / "trees.py"]  # where parts are decided
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


class _Key(CustomGraphModulePass):
    """A pass that changes no graph: Inductor asks each device's pass for what identifies it."""

    def __call__(self, gm):
        pass

    def uuid(self):
        return ("rondo_torch", _C.version(), _sources(), tuple(sorted(patches.installed())))


KEY = _Key()
