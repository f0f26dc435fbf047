# SPDX-License-Identifier: Apache-2.0
"""Way 3: Inductor's own graph trees, made device-neutral in memory by a table of mechanical edits of the installed
text.

`install()` puts the result in place and `remove()` takes it out again; `python -m rondo_torch upstream --diff` prints
it as a patch for PyTorch. `rondo_torch.config.cuda` says how graphs are made: "kept" leaves CUDA its path and takes
torch.accelerator.Graph for every other device, "contract" takes it for CUDA, too, and "duck" asks each device's
GraphOps. Whatever was compiled before keeps what it was compiled with.

Importing this imports neither Dynamo nor Inductor; installing does.
"""
import importlib
import importlib.util
import sys
import threading

import torch

from .. import _C, config, patches
from . import diff, table
from .edit import Moved

__all__ = ["Moved", "install", "installed", "remove", "transformed"]

_lock = threading.RLock()
_state = {"variant": None, "names": [], "stock": None, "module": None}
# Shared by the stock module and ours: containers of managers by thread, the count of marked steps, the lock of
# captures.
_SHARED = ("local", "MarkStepBox", "graph_capture_lock")
_TLS = ("tree_manager_containers", "tree_manager_locks")

_BINDING = "upstream: torch._C:"
transformed = table.transformed


def installed():
    """The variant that is in place, or None."""
    return _state["variant"]


def install(variant=None):
    """Puts the device-neutral modules in place. True when they are. Raises Moved, and has changed nothing, where
    PyTorch's text is not what the table knows."""
    variant = variant or _chosen()
    with _lock:
        if _state["variant"] == variant:
            return True
        # First all texts: a rule that does not fit must be known before anything is touched.
        texts = {file: (table.read(file), table.transformed(file, variant)) for file in table.files(variant)}
        if _state["variant"] is not None and not remove():
            raise RuntimeError("rondo_torch.upstream: another package has replaced what is in place since; it has "
                               "to undo that first")
        try:
            _install(variant, texts)
        except BaseException:
            remove()
            raise
        return True


def _chosen():
    """As it is configured; where an attached device has graphs of its own, each device makes its graphs."""
    attach = sys.modules.get("rondo_torch.attach")
    return "duck" if attach is not None and attach.captures_by_itself() else config.cuda


def _install(variant, texts):
    from .. import interface
    from . import load

    if hasattr(torch, "rondo"):  # not where another package has the place of the one device
        interface.register()
    _let_partitions_be()
    _complete_bindings()
    for file, (before, after) in texts.items():
        if file == table.TREES:
            continue
        for qualified, new, make in load.members(file, before, after):
            _replace(f"{load.module_name(file)}:{qualified}", new, make)
    # Last, since its imports take names from the modules above.
    _trees(load, texts[table.TREES][1])
    if variant == "contract":
        from . import contract

        contract.install()
    _state["variant"] = variant


def _let_partitions_be():
    """Inductor partitions graphs by what it takes for a GPU: that is a matter of this package's gates, below the ones
    here."""
    if importlib.util.find_spec("rondo_torch.gates") is not None:
        importlib.import_module("rondo_torch.gates").install()


def _replace(where, new, make):
    name = f"upstream: {where}"
    placed = patches.add(name, where, make()) if new else patches.install(name, where, lambda _: make())
    if not placed:
        raise RuntimeError(f"rondo_torch.upstream: {patches.refused[name]}")
    _state["names"].append(name)


def _complete_bindings():
    """Gives torch._C the bindings that a build without CUDA lacks. Those of a build with CUDA make CUDA's tensors: every
    other device has its own, by what its operations derive from."""
    from .. import interface

    interface.GraphOps.bindings = interface.RondoInterface.GraphOps.bindings = _C.bindings
    for name in vars(_C.bindings):
        # A missing binding may be a class that raises when it is called.
        if name.startswith("_") and not name.startswith("__") and not hasattr(torch._C, name):
            _replace(f"torch._C:{name}", True, lambda name=name: getattr(_C.bindings, name))


def _trees(load, text):
    """The trees' module is executed beside the installed one and takes its name. Both see the same managers."""
    import torch._inductor.cudagraph_trees as stock

    held = {key: torch._C._get_obj_in_tls(key) for key in _TLS if torch._C._is_key_in_tls(key)}
    try:
        module = load.beside(table.TREES, text)
    finally:
        for key, value in held.items():  # a module that is executed stashes its own
            torch._C._stash_obj_in_tls(key, value)
    for name in _SHARED:
        if hasattr(stock, name):
            setattr(module, name, getattr(stock, name))
    _state["module"], _state["stock"] = module, load.swap(module)


def remove():
    """Puts PyTorch's own modules back. False where somebody has replaced them since: those stay. What was compiled keeps
    its manager, and so the bindings that torch._C was given stay, too."""
    from . import load

    with _lock:
        module, stock = _state["module"], _state["stock"]
        if module is not None:
            import torch._inductor

            if torch._inductor.cudagraph_trees is not module:
                return False
            load.swap(stock)
            _state["module"] = _state["stock"] = None
        bindings = [name for name in _state["names"] if name.startswith(_BINDING)]
        others = [name for name in _state["names"] if name not in bindings]
        left = [name for name in reversed(others) if not patches.remove(name)]
        _state["names"] = bindings + left[::-1]
        _state["variant"] = None
        return not left
