# SPDX-License-Identifier: Apache-2.0
"""The one report: what is graphed, what is not and why, at what cost, and what of PyTorch could not be replaced."""
import json as _json
import sys

from . import _C, patches, without_device


def _skips():
    trees = sys.modules.get(__package__ + ".trees")
    return trees.skips() if trees else {}


def _managers():
    return _C.tree_managers()


def _attached():
    """Type -> why its graphs are skipped, or ""."""
    attach = sys.modules.get(__package__ + ".attach")
    return {name: attach.attached(name).why_no_trees for name in attach.attached_types()} if attach else {}


def _name(manager):
    # Of who sees storages through weak references: that is slower than being told by them.
    return f"{manager.type}:{manager.device}" + ("" if manager.type == "rondo" else " (attached: storages are watched)")


def report(json=False):
    """Text, or with json=True what it says as Python data: {"device", "attached", "trees", "skips", "gates", "patches",
    "refused"}."""
    if json:
        return {
            "device": None if without_device else _C.backend(),
            "attached": _attached(),
            "trees": [dict(manager.info(), type=manager.type, report=_json.loads(manager.report(json=True)))
                      for manager in _managers()],
            "skips": _skips(),
            "gates": _json.loads(_C.gates_report(json=True)),
            "patches": list(patches.installed()),
            "refused": dict(patches.refused),
        }
    lines = [f"rondo_torch without a device of its own: {without_device}" if without_device
             else f"rondo_torch on '{_C.backend()}'"]
    lines += [f"attached: {name}{', without trees: ' if why else ''}{why}" for name, why in _attached().items()]
    for manager in _managers():
        lines += ["", f"trees of {_name(manager)}, user thread {manager.context}", manager.report().rstrip()]
    if not _managers():
        lines += ["", "no trees: nothing was compiled with mode=\"reduce-overhead\", or nothing of it is left"]
    skips = _skips()
    if skips:
        lines += ["", "compiled, and not graphed:"] + [f"  {count} x {text}" for text, count in sorted(skips.items())]
    if patches.refused:
        lines += ["", "not in place, since PyTorch has moved:"]
        lines += [f"  {name}: {why}" for name, why in sorted(patches.refused.items())]
    return "\n".join(lines) + "\n"
