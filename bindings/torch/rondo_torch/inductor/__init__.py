# SPDX-License-Identifier: Apache-2.0
"""torch.compile for the device: Inductor's C++ kernels, enqueued on the device's streams.

Imported when Inductor asks the device's module for its code generators, never by `import torch`: it brings Inductor in.
"""
import importlib
import importlib.util
import threading
import types
import warnings

from .. import config, patches
from . import hooks, rng_state

# What Inductor asks of `torch.rondo`; install() sets them. Inductor registers by itself what it finds there, without
# the pass that keys its caches, unless one is missing: so one stays None, and what install() registers stays.
Scheduling = PythonWrapperCodegen = CppWrapperCodegen = WrapperFxCodegen = None

IMPORT = "inductor.import"

_lock = threading.RLock()
_state = types.SimpleNamespace(registered=False)


def _refuse(*_arguments, **_options):
    raise NotImplementedError(
        f"rondo: torch.compile is off for this device, since PyTorch has moved what it needs: {why_off()}")


class _Refusing:
    """In the place of a scheduling, which PyTorch 2.15 wants to be a class."""

    def __init__(self, *_arguments, **_options):
        _refuse()


def _register():
    global Scheduling, PythonWrapperCodegen, WrapperFxCodegen
    from torch._inductor.codegen.common import (
        DeviceOpOverrides, register_backend_for_device, register_device_op_overrides)

    try:
        from . import caches, codegen, scheduling
    except (ImportError, AttributeError, TypeError) as error:  # the CPU's functions must go on compiling
        patches.refused[IMPORT] = f"{type(error).__name__}: {error}"
        register_device_op_overrides("rondo", DeviceOpOverrides())
        register_backend_for_device("rondo", _Refusing, types.SimpleNamespace(create=_refuse, supports_caching=False))
        return
    Scheduling, PythonWrapperCodegen = scheduling.Scheduling, codegen.PythonWrapperCodegen
    WrapperFxCodegen = codegen.FxWrapperCodegen
    register_device_op_overrides("rondo", codegen.OpOverrides())
    register_backend_for_device("rondo", Scheduling, PythonWrapperCodegen, codegen.CppWrapperCodegen, WrapperFxCodegen,
                                device_custom_pass=caches.KEY)


def _others():
    """The device's interface for Dynamo, and the manager of graphs that is chosen. One that cannot be installed is off,
    with its reason in patches.refused: whoever compiles for the CPU has to get on."""
    managers = {"rondo": ("gates", "trees"), "upstream": ("upstream",), "off": ()}[config.trees]
    for name in ("interface", *managers):
        if importlib.util.find_spec(f"rondo_torch.{name}") is None:
            continue
        module = importlib.import_module(f"rondo_torch.{name}")
        try:
            (module.register if name == "interface" else module.install)()
            patches.refused.pop(f"{name}.install", None)
        except Exception as error:  # noqa: BLE001  (whatever another release of PyTorch may raise)
            patches.refused[f"{name}.install"] = f"{type(error).__name__}: {error}"
            warnings.warn(f"rondo: rondo_torch.{name} is off: {error}", stacklevel=2)


def install():
    """Registers everything, once. Whether torch.compile works on the device: `why_off()` says why it does not."""
    with _lock:
        if not _state.registered:
            hooks.install()
            rng_state.install()
            _register()
            _state.registered = True
        _others()
        return not why_off()


def why_off():
    """Why torch.compile is off for the device, or "". It is where PyTorch has moved what the generated code needs."""
    return "; ".join(f"{name}: {patches.refused[name]}" for name in (IMPORT, *hooks.NAMES) if name in patches.refused)


def refuse_if_off():
    if why_off():
        _refuse()
