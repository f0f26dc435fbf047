# SPDX-License-Identifier: Apache-2.0
"""Rondo as a device of PyTorch: `import torch` finds it through the entry point `torch.backends`.

Nothing of Inductor or Dynamo is imported here: what compiles is loaded by the first compilation.
"""
import os


def _autoload():
    """Called by `import torch`; the work is done by importing this package. It is here before torch is: where this
    package is imported first, torch asks for it in the middle of that."""


import torch  # noqa: E402


def _refusal():
    """Why this package cannot be used with this PyTorch, or nothing. By what is there, not by its version."""
    missing = [name for name in ("torch.accelerator.Graph", "torch.utils.rename_privateuse1_backend",
                                 "torch._C._acceleratorGraph") if not _has(name)]
    if missing:
        return f"it has no {', '.join(missing)}; PyTorch 2.12 to 2.15 have"
    return None


def _without_device():
    """Why the device `rondo` is not to be had in this process, or nothing. Other packages' devices can be attached."""
    if os.environ.get("RONDO_TORCH_DEVICE") == "none":
        return "RONDO_TORCH_DEVICE is none"
    backend = torch._C._get_privateuse1_backend_name()
    if backend not in ("privateuseone", "rondo"):
        return f"another package has made '{backend}' its device, and PyTorch has room for one"
    return None


def _has(path):
    owner = torch
    for name in path.split(".")[1:]:
        owner = getattr(owner, name, None)
    return owner is not None


_why = _refusal()
if _why:
    raise ImportError(f"rondo_torch cannot be used with PyTorch {torch.__version__}: {_why}")

try:
    from . import _C
except ImportError as _error:
    raise ImportError(f"rondo_torch was built for another PyTorch than {torch.__version__}, or not at all: {_error}. "
                      "Build it again: pip install --force-reinstall --no-deps ./bindings/torch") from _error

from . import config  # noqa: E402
from . import device as _device  # noqa: E402
from . import graphs as _graphs  # noqa: E402
from . import modules as _modules  # noqa: E402

__version__ = _C.version()
if _C.built_for() != torch.__version__.split("+")[0]:
    raise ImportError(f"rondo_torch was built for PyTorch {_C.built_for()}, and this is {torch.__version__}. Build it "
                      "again: pip install --force-reinstall --no-deps ./bindings/torch")


_LAZY = {  # name -> the module that has it; these import Dynamo or Inductor
    "report": "reporting",
    "attach": "attach",
    "detach": "attach",
    "seal": "sealing",
    "seal_info": "sealing",
    "SealError": "sealing",
}


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'rondo_torch' has no attribute '{name}'")
    import importlib
    import importlib.util

    where = f"{__name__}.{_LAZY[name]}"
    if importlib.util.find_spec(where) is None:
        raise AttributeError(f"module 'rondo_torch' has no attribute '{name}'")
    value = getattr(importlib.import_module(where), name)
    globals()[name] = value  # over the submodule of that name, which the import has put here
    return value


without_device = _without_device()  # why, or None
_graphs.install()
if not without_device:
    torch.utils.rename_privateuse1_backend("rondo")
    _C.register_device()  # allocator, guard, hooks and operators
    _device.install()
    _modules.install()
