# SPDX-License-Identifier: Apache-2.0
"""The module `torch.rondo`: devices, streams, memory and random numbers, with the conventions of torch.cuda."""
import atexit
import sys
import time
import types

import torch

from . import _C
from .graphs import RondoGraph, graph, graph_pool_handle, make_graphed_callables, memory_snapshot


class device:
    """Context manager: makes a device current."""

    def __init__(self, which):
        self.index = _index(which, optional=True)
        self.before = -1

    def __enter__(self):
        self.before = _C.exchange_device(self.index)
        return self

    def __exit__(self, *_):
        _C.exchange_device(self.before)
        return False


def _index(which, optional=False):
    if which is None:
        return -1 if optional else _C.current_device()
    if isinstance(which, int):
        return which
    which = torch.device(which)
    if which.type != "rondo":
        raise ValueError(f"expected a rondo device, got {which}")
    return which.index if which.index is not None else (-1 if optional else _C.current_device())


_initialized = True  # torch.utils.checkpoint keeps the random state of a device that says so


def is_available():
    return _C.device_count() > 0


def is_initialized():
    return True


def init():
    pass


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


def get_amp_supported_dtype():
    return [torch.bfloat16, torch.float16]


def is_bf16_supported():
    return True


def Stream(which=None, **options):
    return torch.Stream(device=torch.device("rondo", _index(which)), **options)


Event = torch.Event


def current_stream(which=None):
    return torch.accelerator.current_stream(torch.device("rondo", _index(which)))


def set_stream(stream):
    torch.accelerator.set_stream(stream)


def stream(stream):
    """Context manager: makes a stream current (a torch.Stream is one itself)."""
    return stream


def is_current_stream_capturing():
    return current_stream().is_capturing()


def default_generators():
    return tuple(_C.default_generator(i) for i in range(_C.device_count()))


def manual_seed(seed):
    _C.default_generator(_C.current_device()).manual_seed(int(seed))


def manual_seed_all(seed):
    for generator in default_generators():
        generator.manual_seed(int(seed))


def seed():
    return _C.default_generator(_C.current_device()).seed()


def initial_seed():
    return _C.default_generator(_C.current_device()).initial_seed()


def get_rng_state(which="rondo"):
    return _C.default_generator(_index(which)).get_state()


def set_rng_state(state, which="rondo"):
    _C.default_generator(_index(which)).set_state(state)


def get_rng_state_all():
    return [generator.get_state() for generator in default_generators()]


def set_rng_state_all(states):
    for generator, state in zip(default_generators(), states):
        generator.set_state(state)


def _is_in_bad_fork():
    return False


def memory_allocated(which=None):
    return _C.statistics(_index(which))["allocated_bytes"]


def max_memory_allocated(which=None):
    return _C.statistics(_index(which))["allocated_peak"]


def memory_reserved(which=None):
    return _C.statistics(_index(which))["reserved_bytes"]


def max_memory_reserved(which=None):
    return _C.statistics(_index(which))["reserved_peak"]


def memory_stats(which=None):
    return _C.statistics(_index(which))


def empty_cache():
    torch.accelerator.empty_cache()


class _Module(types.ModuleType):
    """Inductor's part is imported when Inductor asks for it, and not before: it takes seconds."""

    def __getattr__(self, name):
        if name not in ("Scheduling", "PythonWrapperCodegen", "CppWrapperCodegen", "WrapperFxCodegen"):
            raise AttributeError(f"module 'torch.rondo' has no attribute {name!r}")
        from . import inductor

        inductor.install()
        return getattr(inductor, name)


def install():
    module = _Module("torch.rondo", __doc__)
    for name, value in globals().items():
        if name not in ("atexit", "sys", "time", "types", "torch", "install", "annotations"):
            if not name.startswith("__"):
                setattr(module, name, value)
    sys.modules["torch.rondo"] = module
    torch._register_device_module("rondo", module)
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)
    # The autograd thread of a device lets go of Python objects after the caller has its result; at the end of the
    # process it needs a moment without the interpreter's lock for that, or Python ends the thread, and it the process.
    atexit.register(time.sleep, 0.005)
