# SPDX-License-Identifier: Apache-2.0
"""The table's result as patches for PyTorch: unified, by part and file, each upon the one before."""
import difflib

from . import table
from .edit import Moved, read

HEADINGS = {
    "PR-2": "whether a device can capture graphs: a bit of its interface; CUDA has it without being registered",
    "PR-3": "the gates, and the states of generators, ask the device's interface",
    "PR-4": "DeviceInterface.GraphOps: what graph trees need of a device; CUDA forwards to the symbols that it has",
    "PR-5a": "mechanical replacements: streams, synchronisation, devices, pools and checkpoints through the interface",
    "PR-5b": "how graphs are made and captured",
}
_NATIVE = {
    "PR-2": "the binding torch._C._accelerator_hasGraphImpl(device_type=None) is C++ (DeviceAccelerator.cpp) and "
            "no part of an installation; where it is missing, no device but CUDA is capable",
    "PR-5b": {"contract": "CUDA needs a GraphImplInterface of its own in C++, which this variant takes for granted"},
}


def diff(variant="kept", where=None):
    """The text of the patches. `where`: a folder that has torch/; by default the installed PyTorch's."""
    lines = []
    now = {file: table.read(file, where) for file in table.files(variant)}
    for last, part in enumerate(table.PARTS):
        lines += [f"# {part}: {HEADINGS[part]}"]
        note = _NATIVE.get(part)
        note = note.get(variant) if isinstance(note, dict) else note
        lines += [f"# Beside this: {note}"] if note else []
        for file, before in now.items():
            after = table.transformed(file, variant, where, table.PARTS[:last + 1])
            now[file] = after
            lines += [line.rstrip("\n") for line in difflib.unified_diff(
                before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{file}", f"b/{file}")]
        lines.append("")
    return "\n".join(lines)


def rules(variant="kept", where=None):
    """Rows (file, part, rule, expected, found) of the whole table, whether they fit or not. A layout that nobody has
    counted is a row, too."""
    try:
        layout = table.layout_of(table.read(table.TREES, where))
    except Moved as moved:
        return [(moved.file, "-", moved.rule, moved.expected, moved.found)]
    rows = []
    for file, known in table.files(variant).items():
        text = read(file, table.read(file, where))
        for rule in known:
            try:
                found = len(rule.places(text))
            except Moved as moved:
                found = f"{moved.found} ends"
            rows.append((file, rule.part, rule.name, rule.expected(layout), found))
    return rows
