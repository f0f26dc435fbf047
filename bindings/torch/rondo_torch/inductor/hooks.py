# SPDX-License-Identifier: Apache-2.0
"""What Inductor decides by the name of a device, and has no registration for.

All of these are needed: without one of them some programs would fail in the middle of a compilation, or be wrong. Where
one cannot be replaced, torch.compile is refused for the device, and the refusal names it.
"""
import functools
import importlib
import sys

from .. import patches

TYPE = "rondo"

CPU_NODE = "inductor.is_cpu"
BACKEND = "inductor.current_backend"
GUARD = "inductor.device_guard"
LAUNCH = "inductor.launch"
ALLOCATION = "inductor.allocation"
DEFINITION = "inductor.kernel_definition"
NAMES = (CPU_NODE, BACKEND, GUARD, LAUNCH, ALLOCATION, DEFINITION)


def _is_cpu(original):
    # C++ loops are grouped as the CPU's: without this a reduction that meets a pointwise is regrouped as Triton's are.
    @functools.wraps(original)
    def is_cpu(self):
        device = self.get_device()
        return original(self) or (device is not None and device.type == TYPE)

    return is_cpu


def _current_backend(original):
    # Devices that Inductor does not know are taken for Triton's: masked loads and half precision come out wrong.
    @functools.wraps(original)
    def get_current_backend(device_type=None):
        if not device_type:
            from torch._inductor.virtualized import V

            device_type = V.graph.get_current_device_or_throw().type
        return "cpp" if device_type == TYPE else original(device_type)

    return get_current_backend


def _need_guard(original):
    # Operators that Inductor calls by name run on the current device unless a guard is generated.
    @functools.wraps(original)
    def device_need_guard(device):
        return device == TYPE or original(device)

    return device_need_guard


def _install_backend():
    """The function is bound by name in several modules, by import: each that has it now gets the same replacement."""
    where = "get_current_backend"
    utils = importlib.import_module("torch._inductor.utils")
    original = getattr(utils, where, None)
    for module in ("torch._inductor.codegen.common", "torch._inductor.scheduler", "torch._inductor.kernel.mm_common"):
        importlib.import_module(module)
    if not patches.install(BACKEND, f"torch._inductor.utils:{where}", _current_backend, parameters=("device_type",)):
        return
    for name, module in sorted(sys.modules.items()):
        if name.startswith("torch._inductor.") and module is not utils and vars(module).get(where) is original:
            patches.install(f"{BACKEND}:{name}", f"{name}:{where}", lambda _: getattr(utils, where))


def _check(name, where, parameters):
    """A method that is overridden in a subclass, and so must be there and be called as it was."""
    patches.refused.pop(name, None)
    module, _, path = where.partition(":")
    try:
        method = functools.reduce(getattr, path.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        patches.refused[name] = f"{where} is not there: {error}"
        return
    missing = [word for word in parameters if word not in patches.parameters_of(method)]
    if missing:
        patches.refused[name] = f"{where} is not what it was: it takes no {', '.join(missing)}"


def install():
    patches.install(CPU_NODE, "torch._inductor.scheduler:BaseSchedulerNode.is_cpu", _is_cpu, parameters=("self",))
    _install_backend()
    patches.install(GUARD, "torch._inductor.scheduler:device_need_guard", _need_guard, parameters=("device",))
    wrapper = "torch._inductor.codegen.wrapper:PythonWrapperCodegen."
    _check(LAUNCH, wrapper + "_generate_kernel_call_helper", ("kernel_name", "call_args", "device", "triton"))
    _check(ALLOCATION, wrapper + "make_allocation", ("name", "device", "dtype", "shape", "stride", "allocation_shape"))
    _check(DEFINITION, "torch._inductor.codegen.cpp:CppScheduling.define_kernel", ("src_code", "nodes", "kernel_args"))
