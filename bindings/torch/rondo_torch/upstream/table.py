# SPDX-License-Identifier: Apache-2.0
"""The table: which file of PyTorch has which rules, and what of it is replaced in a running process.

A layout is how the files of a release look. It is recognised by words that they contain and named after the release
that brought them. A newer one is refused, because nobody has counted there yet: by its name, where it has one here, and
else by the first rule that does not fit, of which one counts all that names CUDA in the trees.
"""
import importlib.util
import os

from . import rules_compile, rules_gates, rules_interface, rules_trees
from .edit import LAYOUTS, Moved, transform

PARTS = ("PR-2", "PR-3", "PR-4", "PR-5a", "PR-5b")
VARIANTS = ("kept", "contract", "duck")

TREES = rules_trees.FILE
# Words of cudagraph_trees.py, newest first.
_LAYOUTS = (("_LivenessCheckState", "2.15"), ("kernel_free_cudagraph", "2.14"), ("graph_capture_lock", "2.13"),
            ("_is_cuda_graph_recorded_tensor", "2.12"))
_COUNTED = LAYOUTS


def files(variant):
    """File -> its rules."""
    if variant not in VARIANTS:
        raise ValueError(f"the variant is one of {', '.join(VARIANTS)}, not {variant!r}")
    return {
        rules_interface.FILE: rules_interface.RULES,
        rules_gates.UTILS: rules_gates.UTILS_RULES,
        rules_gates.IR: rules_gates.IR_RULES,
        rules_trees.FILE: rules_trees.rules(variant),
        rules_compile.COMPILE: rules_compile.compile_rules(variant),
        rules_compile.OUTPUT: rules_compile.OUTPUT_RULES,
        rules_compile.RESET: rules_compile.RESET_RULES,
    }


def root():
    """The folder that has torch/."""
    return os.path.dirname(os.path.dirname(os.path.abspath(importlib.util.find_spec("torch").origin)))


def read(file, where=None):
    with open(os.path.join(where or root(), file), encoding="utf-8") as source:
        return source.read()


def layout_of(trees):
    """The layout that a text of cudagraph_trees.py has. Raises where nobody has counted yet."""
    for word, name in _LAYOUTS:
        if word in trees:
            if name not in _COUNTED:
                raise Moved(TREES, f"layout {name} (\"{word}\")", "a layout of " + ", ".join(_COUNTED),
                            "a newer one, uncounted")
            return name
    raise Moved(TREES, "layout", "a layout of " + ", ".join(_COUNTED), "none of them")


def transformed(file, variant="kept", where=None, parts=None):
    """The text of an installed file with its rules applied."""
    return transform(file, read(file, where), files(variant)[file], layout_of(read(TREES, where)), parts)
