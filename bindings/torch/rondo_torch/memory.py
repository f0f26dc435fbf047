# SPDX-License-Identifier: Apache-2.0
"""Memory of the devices, and pinned host memory: figures, limits and pools, with the conventions of torch.cuda.memory."""
import collections
import contextlib

import torch

from . import _C


def _at(which):
    if which is None:
        return _C.current_device()
    if isinstance(which, int):
        return which
    which = torch.device(which)
    if which.type != "rondo":
        raise ValueError(f"Expected a rondo device, but got: {which}")
    return _C.current_device() if which.index is None else which.index


def memory_stats(device=None):
    """Figures by dotted names, as torch.cuda.memory_stats has them. Rondo counts small and large blocks together."""
    return torch.accelerator.memory_stats(_at(device))


def memory_stats_as_nested_dict(device=None):
    return _nested(memory_stats(device))


def _nested(flat):
    result = {}
    for name, value in flat.items():
        *path, last = name.split(".")
        inner = result
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return result


def memory_allocated(device=None):
    return torch.accelerator.memory_allocated(_at(device))


def max_memory_allocated(device=None):
    return torch.accelerator.max_memory_allocated(_at(device))


def memory_reserved(device=None):
    return torch.accelerator.memory_reserved(_at(device))


def max_memory_reserved(device=None):
    return torch.accelerator.max_memory_reserved(_at(device))


def reset_peak_memory_stats(device=None):
    torch.accelerator.reset_peak_memory_stats(_at(device))


def reset_accumulated_memory_stats(device=None):
    torch.accelerator.reset_accumulated_memory_stats(_at(device))


def mem_get_info(device=None):
    """Free and total bytes of the device."""
    return torch.accelerator.get_memory_info(_at(device))


def empty_cache():
    torch.accelerator.empty_cache()


def memory_summary(device=None, abbreviated=False):
    """A table of the figures, for people."""
    stats = memory_stats(device)
    rows = [("allocated", "allocated_bytes"), ("active", "active_bytes"), ("requested", "requested_bytes"),
            ("reserved by the allocator", "reserved_bytes"), ("in pieces that cannot go back", "inactive_split_bytes")]
    if not abbreviated:
        rows += [("allocations", "allocation"), ("segments", "segment")]
    lines = [f"rondo:{_at(device)} memory{'':18} {'now':>14} {'peak':>14} {'given in all':>14} {'taken back':>14}"]
    for title, key in rows:
        lines.append(f"{title:32} " + " ".join(f"{stats[f'{key}.all.{what}']:>14}"
                                               for what in ("current", "peak", "allocated", "freed")))
    lines.append(f"{stats['num_ooms']} times out of memory, {stats['num_alloc_retries']} times after giving back what was free")
    return "\n".join(lines)


def host_memory_stats():
    """Figures of pinned host memory."""
    return collections.OrderedDict(sorted(_C.host_statistics().items()))


def host_memory_stats_as_nested_dict():
    return _nested(host_memory_stats())


def reset_peak_host_memory_stats():
    _C.reset_host_statistics(True)


def reset_accumulated_host_memory_stats():
    _C.reset_host_statistics(False)


_fractions = {}  # by device


def set_per_process_memory_fraction(fraction, device=None):
    """The allocator takes at most this part of the device's memory."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 < fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: above 0, up to 1")
    _C.set_memory_fraction(_at(device), fraction)
    _fractions[_at(device)] = fraction


def get_per_process_memory_fraction(device=None):
    return _fractions.get(_at(device), 1.0)


def get_allocator_backend():
    return "rondo"


def caching_allocator_alloc(size, device=None, stream=None):
    """Memory without a tensor, as an address: for other libraries. caching_allocator_delete gives it back."""
    index = _at(device)
    with torch.rondo.device(index), torch.rondo.stream(stream):
        return _C.raw_allocate(index, size)


def caching_allocator_delete(address):
    _C.raw_delete(address)


class MemPool:
    """A pool of memory of one's own, which lives as long as this object, or a graph that uses it."""

    def __init__(self):
        self.id = torch.rondo.graph_pool_handle()
        self._devices = set()

    def __del__(self):
        for index in self._devices:
            with contextlib.suppress(RuntimeError):
                _C.release_pool(index, self.id)


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    """What this thread allocates inside comes from the pool."""
    index = _at(device)
    _C.begin_allocate_current_thread_to_pool(index, pool.id)
    try:
        yield
    finally:
        _C.end_allocate_to_pool(index, pool.id)
        if index in pool._devices:
            _C.release_pool(index, pool.id)  # each use counts; one is kept
        pool._devices.add(index)
