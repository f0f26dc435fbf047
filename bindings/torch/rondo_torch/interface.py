# SPDX-License-Identifier: Apache-2.0
"""The device as Dynamo and Inductor see it: RondoInterface, with the graph operations nested in it.

PyTorch's DeviceInterface has neither a capability bit nor graph operations nor default generators yet. The base
classes here have the defaults that such an interface has (not capable, not implemented, allocator cached, no snapshot,
nothing to prepare), so that a device of one's own, an attached one and the device-neutral Inductor share one contract.
Where PyTorch has them, its own are the base.

Importing this imports Dynamo, which takes a second: nothing imports it before somebody compiles.
"""
import contextlib
import os
import types

import torch
from torch._dynamo import device_interface as stock

from . import _C, __version__, device as _device, graphs, memory as _memory, without_device

DeviceInterface = stock.DeviceInterface


class _GraphOps:
    """What graph trees need of a device. Pools and states are opaque to who calls."""

    @staticmethod
    def graph_pool_handle():
        raise NotImplementedError

    @staticmethod
    def begin_allocate_current_thread_to_pool(device, pool):
        raise NotImplementedError

    @staticmethod
    def end_allocate_to_pool(device, pool):
        raise NotImplementedError

    @staticmethod
    def release_pool(device, pool):
        raise NotImplementedError

    @staticmethod
    def get_checkpoint_state(device, pool):
        raise NotImplementedError

    @staticmethod
    def set_checkpoint_pool_state(device, state, stale_storages, storages_to_add_deleters_to):
        raise NotImplementedError

    @staticmethod
    def check_pool_live_allocations(device, pool, expected_live_allocations):
        raise NotImplementedError

    @staticmethod
    def raw_delete(ptr):
        raise NotImplementedError

    @staticmethod
    def caching_allocator_enabled():
        return True

    @staticmethod
    def memory_snapshot():
        """None: the device has none, and checks that would read it are skipped."""
        return None

    @staticmethod
    def prepare_for_capture():
        return contextlib.nullcontext()

    @staticmethod
    def create_graph():
        """A graph object of the device's own (capture_begin, capture_end, replay, reset, pool): the duck-typed way."""
        raise NotImplementedError

    @staticmethod
    def make_graph(pool):
        return torch.accelerator.Graph(pool=pool, capture_error_mode="thread_local")

    @staticmethod
    @contextlib.contextmanager
    def capture_context(graph, stream, pool=None, capture_error_mode="thread_local"):
        """A graph of `make_graph` has its pool and its mode since it was made; who makes others overrides this."""
        with stream, graph:
            yield


# What the nested class of an interface or of an attached device derives from.
GraphOps = getattr(DeviceInterface, "GraphOps", None) or _GraphOps


def _default_capability(cls):
    return False


def _default_generators():
    raise NotImplementedError


def complete(interface):
    """Gives an interface class the members that it lacks, with their defaults. Whatever it has stays."""
    for name, value in (("is_graph_capture_supported", classmethod(_default_capability)),
                        ("default_generators", staticmethod(_default_generators)), ("GraphOps", _GraphOps)):
        if not hasattr(interface, name):
            setattr(interface, name, value)
    return interface


@complete
class GraphInterface(DeviceInterface):
    """DeviceInterface with the members that graph capture needs, wherever PyTorch's own lacks them."""


def _index(which):
    """An index from None, a number, a device or its name."""
    return _device._index(which)


class RondoInterface(GraphInterface):
    device = _device.device
    Event = torch.Event
    Stream = torch.Stream

    class Worker:
        """Properties for processes that compile; the device is the host's own, so they may simply ask."""

        @staticmethod
        def set_device(device):
            stock.caching_worker_current_devices["rondo"] = _index(device)

        @staticmethod
        def current_device():
            known = stock.caching_worker_current_devices.get("rondo")
            return _C.current_device() if known is None else known

        @staticmethod
        def get_device_properties(device=None):
            index = RondoInterface.Worker.current_device() if device is None else _index(device)
            known = stock.caching_worker_device_properties.setdefault("rondo", {})
            if index not in known:
                known[index] = types.SimpleNamespace(**_C.properties(index),
                                                     multi_processor_count=os.cpu_count() or 1)
            return known[index]

    current_device = staticmethod(_C.current_device)
    set_device = staticmethod(_device.set_device)
    device_count = staticmethod(_C.device_count)
    is_available = staticmethod(_device.is_available)
    exchange_device = staticmethod(_C.exchange_device)
    maybe_exchange_device = staticmethod(_C.exchange_device)
    stream = staticmethod(_device.stream)
    current_stream = staticmethod(_device.current_stream)
    set_stream = staticmethod(_device.set_stream)
    get_raw_stream = staticmethod(_C.current_raw_stream)
    synchronize = staticmethod(_device.synchronize)
    memory_allocated = staticmethod(_memory.memory_allocated)
    default_generators = staticmethod(_device.default_generators)

    @staticmethod
    def _set_stream_by_id(stream_id, device_index, device_type):
        stream = torch.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)
        torch.accelerator.set_stream(stream)

    @classmethod
    def get_device_properties(cls, device=None):
        return cls.Worker.get_device_properties(device)

    @classmethod
    def get_multi_processor_count(cls, device=None):
        return cls.get_device_properties(device).multi_processor_count

    @staticmethod
    def get_compute_capability(device=None):
        """There are no generations of the device to tell apart: its backend's name."""
        return _C.backend()

    @staticmethod
    def get_cpp_device_options(aot_mode=False, compile_only=False):
        """Definitions, include folders, compiler flags, linker flags, library folders, libraries, others: kernels are
        plain C++ for the host."""
        return [], [], [], [], [], [], []

    @classmethod
    def get_cache_system_info(cls):
        """What generated code depends on, for the key of compiled code."""
        return {"rondo_torch": __version__, "backend": _C.backend()}

    @staticmethod
    def is_bf16_supported(including_emulation=False):
        return True

    @classmethod
    def is_dtype_supported(cls, dtype, including_emulation=False):
        return True

    @staticmethod
    def is_triton_capable(device=None):
        return False

    @classmethod
    def raise_if_triton_unavailable(cls, device=None):
        raise RuntimeError("the device rondo has no Triton: its kernels are generated as C++")

    @staticmethod
    def is_gpu():
        """To Inductor "GPU" means that kernels are Triton's, too: with generated C++ it must not be said."""
        return False

    @classmethod
    def exposes_streams(cls):
        return True

    @classmethod
    def is_graph_capture_supported(cls):
        return graphs.has_graph_impl("rondo")

    class GraphOps(GraphInterface.GraphOps):
        graph_pool_handle = staticmethod(graphs.graph_pool_handle)
        begin_allocate_current_thread_to_pool = staticmethod(_C.begin_allocate_current_thread_to_pool)
        end_allocate_to_pool = staticmethod(_C.end_allocate_to_pool)
        release_pool = staticmethod(_C.release_pool)
        get_checkpoint_state = staticmethod(_C.get_checkpoint_state)
        set_checkpoint_pool_state = staticmethod(_C.set_checkpoint_pool_state)
        check_pool_live_allocations = staticmethod(_C.check_pool_live_allocations)
        raw_delete = staticmethod(_C.raw_delete)
        memory_snapshot = staticmethod(graphs.memory_snapshot)

        @staticmethod
        def caching_allocator_enabled():
            return True

        @staticmethod
        def prepare_for_capture():
            return contextlib.nullcontext()

        @staticmethod
        def create_graph():
            return graphs.RondoGraph()

        @staticmethod
        def capture_context(graph, stream, pool=None, capture_error_mode="thread_local"):
            """For graphs of `make_graph` and of `create_graph`. Without a pool: the one that a graph of `make_graph`
            has, else one of the graph's own."""
            if pool is None:
                pool = getattr(graph, "graph_pool", None)
            return graphs.graph(graph, pool=pool, stream=stream, capture_error_mode=capture_error_mode)


def register():
    """Makes the interface known to Dynamo, for the type and for each device; once. Returns whether it is in place: not
    where the device is not to be had in this process."""
    if without_device:
        return False
    for name in ("rondo", *(f"rondo:{index}" for index in range(_C.device_count()))):
        if stock.device_interfaces.get(name) is not RondoInterface:
            stock.register_interface_for_device(name, RondoInterface)
    return True


def is_default(member):
    """Whether a member of an interface is the base's, which only stands for one."""
    plain, name = getattr(member, "__func__", member), getattr(member, "__name__", "")
    known = [getattr(base, name, None) for base in (DeviceInterface, GraphInterface)]
    return any(getattr(one, "__func__", one) is plain for one in known)


def interface_of(device_type):
    """The registered interface of a type of device, or None."""
    if device_type == "rondo":
        register()
    try:
        return stock.get_interface_for_device(device_type)
    except NotImplementedError:
        return None


def is_graph_capture_supported(device_type):
    """Whether devices of the type can capture graphs: what their interface says, else what the registry does. CUDA
    has a path of its own beside the registry, so it can."""
    interface = interface_of(device_type)
    says = getattr(interface, "is_graph_capture_supported", None)
    if says is not None and not is_default(says):
        return bool(says())
    return device_type == "cuda" or graphs.has_graph_impl(device_type)


def default_graph_ops():
    """The classes whose operations only stand for a device's own: this package's, and PyTorch's where there is one."""
    return (_GraphOps, *((DeviceInterface.GraphOps,) if hasattr(DeviceInterface, "GraphOps") else ()))


def graph_ops_of(device_type):
    """The graph operations of a type of device, or None where its interface has none of its own."""
    ops = getattr(interface_of(device_type), "GraphOps", None)
    return None if ops is None or ops in default_graph_ops() else ops
