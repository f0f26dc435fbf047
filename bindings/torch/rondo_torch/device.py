# SPDX-License-Identifier: Apache-2.0
"""The module `torch.rondo`: devices, streams, memory and random numbers, with the conventions of torch.cuda."""
import atexit
import contextlib
import os
import sys
import types

import torch

from . import _C
from . import memory as _memory
from .graphs import RondoGraph, graph, graph_pool_handle, make_graphed_callables, memory_snapshot

# What torch.cuda has and this module has not, and what to do instead.
absent = {
    **dict.fromkeys(
        [f"{kind}{what}" for kind in ("BFloat16", "Bool", "Byte", "Char", "ComplexDouble", "ComplexFloat", "Double", "Float",
                                      "Half", "Int", "Long", "Short") for what in ("Storage", "Tensor")],
        "legacy types are not made for new devices: use torch.tensor(..., dtype=..., device='rondo')"),
    **dict.fromkeys(("cudart", "check_error", "cudaStatus", "CudaError", "DeferredCudaCallError", "nccl", "nvtx", "jiterator",
                     "tunable", "green_contexts", "GreenContext", "get_arch_list", "get_gencode_flags", "has_magma", "has_half",
                     "current_blas_handle", "current_solver_handle", "is_tf32_supported", "gds", "sparse"),
                    "it is about CUDA's own libraries"),
    **dict.fromkeys(("utilization", "memory_usage", "temperature", "power_draw", "clock_rate", "device_memory_used",
                     "list_gpu_processes"), "the device has no such sensor"),
    **dict.fromkeys(("max_memory_cached", "memory_cached", "reset_max_memory_allocated", "reset_max_memory_cached"),
                    "deprecated there: use max_memory_reserved, memory_reserved and reset_peak_memory_stats"),
    **dict.fromkeys(("CUDAPluggableAllocator", "change_current_allocator", "caching_allocator_enable",
                     "caching_allocator_disabled"), "memory always comes from Rondo's allocator"),
    **dict.fromkeys(("set_sync_debug_mode", "get_sync_debug_mode"),
                    "what waits is refused by name in a capture, and allowed elsewhere"),
    **dict.fromkeys(("export_dot", "export_graph_data", "graph_annotations"),
                    "they read CUDA's own graphs: use RondoGraph.debug_dump"),
    "ipc_collect": "the device's memory is not shared between processes",
    "CUDAGraph": "use torch.rondo.RondoGraph, or torch.accelerator.Graph",
    "amp": "use torch.autocast('rondo') and torch.amp.GradScaler('rondo')",
    "profiler": "use torch.profiler, which sees the host's side of each call",
    "get_device_capability": "devices of Rondo have names and descriptions, not numbers: get_device_properties()",
}


class device:
    """Context manager: makes a device current. None, or a negative index, changes nothing."""

    def __init__(self, which):
        self.index = _index(which, optional=True)
        self.before = -1

    def __enter__(self):
        self.before = _C.exchange_device(self.index)
        return self

    def __exit__(self, *_):
        _C.exchange_device(self.before)
        return False


class device_of(device):
    """Context manager: makes the device of a tensor or storage current, if it is one of rondo's."""

    def __init__(self, thing):
        super().__init__(thing.device if thing.device.type == "rondo" else -1)


def _index(which, optional=False):
    if which is None:
        return -1 if optional else _C.current_device()
    if isinstance(which, int):
        return which
    which = torch.device(which)
    if which.type != "rondo":
        raise ValueError(f"Expected a rondo device, but got: {which}")
    return which.index if which.index is not None else (-1 if optional else _C.current_device())


_initialized = True  # torch.utils.checkpoint keeps the random state of a device that says so


def is_available():
    return _C.device_count() > 0


def is_initialized():
    """Whether a device has been opened: the first tensor, stream or generator on it does that."""
    return any(_C.is_open(index) for index in range(_C.device_count())) and not _is_in_bad_fork()


def init():
    """Opens the current device, which is otherwise done when it is first used."""
    _C.properties(_C.current_device())


def device_count():
    return _C.device_count()


def current_device():
    return _C.current_device()


def set_device(which):
    index = _index(which, optional=True)
    if index >= 0:
        _C.set_device(index)


def synchronize(which=None):
    _C.synchronize(_index(which))


def get_device_name(which=None):
    return _C.properties(_index(which))["name"]


def get_device_properties(which=None):
    return types.SimpleNamespace(**_C.properties(_index(which)))


def can_device_access_peer(which, peer):
    """Never: copies between two devices go by way of the host."""
    for index in (_index(which), _index(peer)):
        if not 0 <= index < _C.device_count():
            raise ValueError(f"there is no device rondo:{index}; there are {_C.device_count()}")
    return False


def get_amp_supported_dtype():
    return [torch.bfloat16, torch.float16]


def is_bf16_supported(including_emulation=True):
    return True


class _OfDevice(type):
    """Instances are PyTorch's own streams and events, of this device."""

    def __instancecheck__(cls, thing):
        return isinstance(thing, cls.kind) and thing.device.type == "rondo"


class Stream(metaclass=_OfDevice):
    """A stream of the device's pool. Priorities: 0, or below for what is more urgent."""

    kind = torch.Stream

    def __new__(cls, device=None, priority=0):
        return torch.Stream(device=torch.device("rondo", _index(device)), priority=priority)

    @staticmethod
    def priority_range():
        return 0, -1


class Event(metaclass=_OfDevice):
    """An event; with enable_timing it knows when its stream came to it."""

    kind = torch.Event

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False, external=False):
        if interprocess or external:
            raise NotImplementedError("torch.rondo.Event: neither interprocess nor external events exist")
        return torch.Event(device="rondo", enable_timing=enable_timing, blocking=blocking)


_DEVICE_TYPE = torch._C._autograd.DeviceType.PrivateUse1


def _stream(index, number):
    return torch.Stream(stream_id=number, device_index=index, device_type=int(_DEVICE_TYPE))


def get_stream_from_external(address, device=None):
    """The stream of Rondo's (a `rondo_stream *`) at the address; it has to live until the process ends."""
    index = _index(device)
    return _stream(index, _C.external_stream(index, address))


ExternalStream = get_stream_from_external


def default_stream(device=None):
    return _stream(_index(device), 0)


def current_stream(device=None):
    return torch.accelerator.current_stream(torch.device("rondo", _index(device)))


def set_stream(stream):
    """None changes nothing."""
    if stream is not None:
        torch.accelerator.set_stream(stream)


class StreamContext:
    """Context manager: makes a stream and its device current. None changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return None if self.stream is None else self.stream.__enter__()

    def __exit__(self, *exception):
        return None if self.stream is None else self.stream.__exit__(*exception)


def stream(stream):
    """Context manager: makes a stream current. A torch.Stream is one itself, and is what comes back."""
    return StreamContext(None) if stream is None else stream


def is_current_stream_capturing():
    return _C.is_capturing(_C.current_device())


def default_generators():
    return tuple(_C.default_generator(i) for i in range(_C.device_count()))


def manual_seed(seed):
    _C.seed_default(_C.current_device(), _as_seed(seed))


def manual_seed_all(seed):
    for index in range(_C.device_count()):
        _C.seed_default(index, _as_seed(seed))


def _as_seed(seed):
    seed = int(seed)
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"a seed has 64 bits; {seed} has more")
    return seed % 2**64


def seed():
    return _C.default_generator(_C.current_device()).seed()


def seed_all():
    number = seed()
    manual_seed_all(number)
    return number


def initial_seed():
    return _C.default_generator(_C.current_device()).initial_seed()


def get_rng_state(device="rondo"):
    return _C.default_generator(_index(device)).get_state()


def set_rng_state(new_state, device="rondo"):
    _C.default_generator(_index(device)).set_state(new_state)


def get_rng_state_all():
    return [generator.get_state() for generator in default_generators()]


def set_rng_state_all(new_states):
    for generator, state in zip(default_generators(), new_states):
        generator.set_state(state)


def _is_in_bad_fork():
    """Whether this process was forked from one that had opened a device: it has no device of its own then."""
    return _C.forked()


def _settle():
    # The autograd thread of a device may still hold Python objects when Python ends, and ends the process then.
    if any(_C.is_open(index) for index in range(_C.device_count())) and not _C.forked() and _has_autograd_thread():
        _C.settle_autograd()


def _has_autograd_thread():
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/comm", encoding="utf-8") as name:
            if name.read().startswith("pt_autograd"):
                return True
    return False


class _Module(types.ModuleType):
    """Inductor's part is imported when Inductor asks for it, and not before: it takes seconds."""

    def __getattr__(self, name):
        if name in absent:
            raise AttributeError(f"torch.rondo has no {name}: {absent[name]}")
        if name not in ("Scheduling", "PythonWrapperCodegen", "CppWrapperCodegen", "WrapperFxCodegen"):
            raise AttributeError(f"module 'torch.rondo' has no attribute {name!r}")
        from . import inductor

        inductor.install()
        return getattr(inductor, name)


def install():
    module = _Module("torch.rondo", __doc__)
    for names in (vars(_memory), globals()):
        for name, value in names.items():
            if not name.startswith("__") and not isinstance(value, types.ModuleType) and name != "install":
                setattr(module, name, value)
    sys.modules["torch.rondo"] = module
    for name in ("memory", "random", "streams", "graphs"):
        setattr(module, name, module)  # torch.cuda's submodules: their names are all here
    torch._register_device_module("rondo", module)
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)
    atexit.register(_settle)
