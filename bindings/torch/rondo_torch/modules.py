# SPDX-License-Identifier: Apache-2.0
"""Moving a module keeps its parameters.

Between the CPU and CUDA, Module.to changes what a parameter holds. PyTorch knows no other device that may share an object
with the CPU, and makes new parameters instead: tied ones come apart, and an optimizer that was made before steps the old
ones, both without a word. Here the objects change their contents when the module has moved, and where an object cannot
(somebody has a weak reference to it, as recurrent networks do), tied parameters are at least the same new one.
"""
import functools
import threading

import torch

from . import patches

NAME = "modules.identity"

_moving = threading.local()


def _places(module):
    """id -> (parameter, [(module, name), ...])."""
    found = {}
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                found.setdefault(id(parameter), (parameter, []))[1].append((part, name))
    return found


def _takes_over(old, new):
    """The old object has what the new one has, and whatever a program has written on it."""
    if type(old) is not type(new):
        return False
    vars(new).update(vars(old))
    try:
        torch.utils.swap_tensors(old, new)
    except RuntimeError:
        return False
    return True


def _restore(places):
    for old, where in places.values():
        part, name = where[0]
        new = part._parameters.get(name)
        if new is None or new is old or {old.device.type, new.device.type} != {"cpu", "rondo"}:
            continue
        kept = old if _takes_over(old, new) else new
        for part, name in where:
            if part._parameters.get(name) is kept:
                continue
            part._parameters[name] = kept
            if hasattr(part, "_init_flat_weights"):  # a recurrent network has a list of them besides
                part._init_flat_weights()


def _keeping(original):
    @functools.wraps(original)
    def _apply(self, fn, recurse=True):
        if getattr(_moving, "inside", False):
            return original(self, fn, recurse)
        places = _places(self)
        _moving.inside = True
        try:
            return original(self, fn, recurse)
        finally:
            _moving.inside = False
            _restore(places)

    return _apply


def install():
    return patches.install(NAME, "torch.nn.modules.module:Module._apply", _keeping, parameters=("self", "fn", "recurse"))
