# SPDX-License-Identifier: Apache-2.0
"""What can be chosen. Each has an environment variable, read when the package is imported."""
import os
import sys
import types

_CHOICES = {
    # Who manages graph trees under mode="reduce-overhead": Rondo's in C, Inductor's own in Python made device-neutral, or
    # nobody (compiled functions are called directly).
    "trees": ("RONDO_TORCH_TREES", ("rondo", "upstream", "off")),
    # How CUDA is reached by the upstream way: its path as it is, through the contract, or by duck typing.
    "cuda": ("RONDO_TORCH_CUDA", ("kept", "contract", "duck")),
}


class _Config(types.ModuleType):
    def __setattr__(self, name, value):
        if name in _CHOICES and value not in _CHOICES[name][1]:
            raise ValueError(f"rondo_torch.config.{name} is one of {', '.join(_CHOICES[name][1])}, not {value!r}")
        super().__setattr__(name, value)
        upstream = sys.modules.get(f"{__package__}.upstream")
        if name == "trees" and value != "upstream" and getattr(upstream, "installed", bool)():
            upstream.remove()  # it lies over what else is installed
        for user in ("inductor", "attach") if name in _CHOICES else ():
            module = sys.modules.get(f"{__package__}.{user}")
            if module is not None:
                module.install()  # what is compiled from now on has the manager that was chosen


_module = sys.modules[__name__]
_module.__class__ = _Config
for _name, (_variable, _values) in _CHOICES.items():
    setattr(_module, _name, os.environ.get(_variable) or _values[0])
