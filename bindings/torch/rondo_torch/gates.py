# SPDX-License-Identifier: Apache-2.0
"""The gates before graph trees: which compiled functions may be graphed on a device that is not CUDA, and why others not.

Inductor compares with the name "cuda" where it decides that. Here its questions about devices of ours go to Rondo's gates
(include/rondo/gate.h); about all others they go where they went before.
"""
import functools
import sys
import threading

import torch

from . import _C, config, patches

DEVICES = "gates.devices"
IS_GPU = "gates.is_gpu"
PARTITION = "gates.should_partition"
SCALARS = "gates.zero_dim_tensors"
MOVER = "gates.scalars_on_the_host"
CACHE_KEY = "gates.cache_key"
NAMES = (DEVICES, IS_GPU, PARTITION, SCALARS, MOVER)

# Types that are neither Rondo's own nor attached: type -> a function of the index that gives its flags (_C.GATE_*).
_types = {}
_deciding = threading.local()


def add_type(device_type, flags):
    """From now on the gates ask `flags(index)` about devices of this type."""
    _types[device_type] = flags


def remove_type(device_type):
    _types.pop(device_type, None)


def attachment(device_type):
    """Of another package's device (rondo_torch.attach), or None."""
    module = sys.modules.get(__package__ + ".attach")
    return module.attached(device_type) if module and device_type != "rondo" else None


def is_ours(device_type):
    return device_type == "rondo" or device_type in _types or attachment(device_type) is not None


def has_trees(device_type):
    return device_type == "rondo" or attachment(device_type) is not None


def _flags(device_type, index):
    if device_type in _types:
        return _types[device_type](index)
    known = attachment(device_type)
    if known is None:
        return 0
    capable = 0 if known.why_no_trees else _C.GATE_CAPABLE
    return capable | (0 if known.ops.caching_allocator_enabled() else _C.GATE_UNCACHED)


def _use(node):
    for user in getattr(node, "users", ()):
        trace = user.meta.get("stack_trace")
        if trace:
            return trace
    return None


def _describe(device, node):
    index = -1 if device.index is None else device.index
    flags, native = 0, False
    if is_ours(device.type):
        index = max(index, 0)
        native = device.type == "rondo" and index < _C.device_count()
        flags = 0 if native else _flags(device.type, index)
    return device.type, index, flags, getattr(node, "name", None), _use(node), native


def ask(mapping, partition):
    """Why functions that use these devices (torch.device -> node) cannot be graphed, or ""."""
    only = sum(_C.GATES[name] for name in ("CACHING_ALLOCATOR", "CPU_DEVICE", "MULTIPLE_DEVICES", "NO_DEVICE", "NO_CAPTURE"))
    devices = [_describe(device, node) for device, node in mapping.items()]
    gate, text, _ = _C.gates_ask(devices, _C.GATE_PARTITION if partition else 0, only)
    if gate == "NO_CAPTURE":  # what is attached knows what it lacks
        known = [attachment(device.type) for device in mapping]
        text = next((f"{text}: {one.why_no_trees}" for one in known if one is not None and one.why_no_trees), text)
    return text


def _devices(original):
    from torch._inductor import cudagraph_utils

    @functools.wraps(original)
    def check_multiple_devices_or_any_cpu_nodes(device_node_mapping):
        if not any(is_ours(device.type) for device in device_node_mapping):
            return original(device_node_mapping)
        why = ask(device_node_mapping, cudagraph_utils.is_using_cudagraph_partition())
        return cudagraph_utils.format_default_skip_message(why) if why else None

    return check_multiple_devices_or_any_cpu_nodes


def _is_gpu(original):
    # Only while partitions are decided: elsewhere a GPU is one that Triton compiles for.
    @functools.wraps(original)
    def is_gpu(self):
        if original(self):
            return True
        device = self.get_device() if getattr(_deciding, "depth", 0) else None
        return device is not None and is_ours(device.type)

    return is_gpu


def _while_deciding(original):
    @functools.wraps(original)
    def decide(self, *arguments, **options):
        _deciding.depth = getattr(_deciding, "depth", 0) + 1
        try:
            return original(self, *arguments, **options)
        finally:
            _deciding.depth -= 1

    return decide


def _mover(original):
    # Moves what is made on the host, and used on one device alone, to that device: what is left in the graphs' way of
    # scalars on the host is one copy of all of them. The original asks for the one GPU that Triton compiles for. It moves
    # what a function returns, too; here that is where the function has put it.
    @functools.wraps(original)
    def move_constructors_to_gpu(graph):
        from torch._inductor import config
        from torch._inductor.fx_passes.post_grad import ConstructorMoverPass

        original(graph)
        if not config.triton.cudagraphs:
            return
        found = {value.device.type for node in graph.nodes if isinstance(value := node.meta.get("val"), torch.Tensor)}
        for device_type in sorted(filter(is_ours, found)):
            parts = bool(config.graph_partition)  # without them a function that takes host memory is not graphed at all
            ConstructorMoverPass(device_type, allow_inputs=parts, allow_outputs=False)(graph)

    return move_constructors_to_gpu


def _attached_state():
    """What the gates' answers about attached devices depend on."""
    module = sys.modules.get(__package__ + ".attach")
    known = [(name, module.attached(name)) for name in sorted(module.attached_types())] if module else []
    return tuple((name, one.why_no_trees, bool(one.ops.caching_allocator_enabled())) for name, one in known if one is not None)


def _keyed(original):
    # A compiled graph in Inductor's caches says whether it may be graphed: it is another one while a device is attached.
    @functools.wraps(original)
    def __init__(self, *arguments, **options):
        original(self, *arguments, **options)
        state = _attached_state()
        if state:
            self.rondo_attached = (_C.version(), config.trees, state)

    return __init__


def install():
    """Whether the gates are in place; what is missing is in patches.refused."""
    patches.install(CACHE_KEY, "torch._inductor.codecache:FxGraphHashDetails.__init__", _keyed)
    utils, scheduler = "torch._inductor.cudagraph_utils:", "torch._inductor.scheduler:"
    patches.install(DEVICES, utils + "check_multiple_devices_or_any_cpu_nodes", _devices, parameters=("device_node_mapping",))
    patches.install(IS_GPU, scheduler + "BaseSchedulerNode.is_gpu", _is_gpu, parameters=("self",))
    patches.install(PARTITION, scheduler + "Scheduler.should_partition", _while_deciding, parameters=("self", "node"))
    patches.install(SCALARS, scheduler + "Scheduler.update_zero_dim_cpu_tensor", _while_deciding, parameters=("self",))
    patches.install(MOVER, "torch._inductor.fx_passes.post_grad:move_constructors_to_gpu", _mover, parameters=("graph",))
    return not why_off()


def why_off():
    return "; ".join(f"{name}: {patches.refused[name]}" for name in NAMES if name in patches.refused)
