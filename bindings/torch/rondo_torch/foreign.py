# SPDX-License-Identifier: Apache-2.0
"""Another package's device as trees need it (csrc/tree_foreign.cpp), over its attachment (rondo_torch.attach): pools and
streams by number and by name, graphs of whatever kind the package has."""
import threading

import torch


_lock = threading.Lock()
_devices = {}  # (attachment, index) -> Device


def device_of(attachment, index):
    """The same object for the same device: a tree is known by it."""
    with _lock:
        key = (attachment, index)
        if key not in _devices:
            _devices[key] = Device(attachment, index)
        return _devices[key]


class _Graph:
    """A graph of the package's, which comes to be when its pool is known."""

    def __init__(self):
        self.graph = None


class Device:
    """One device of an attached type."""

    def __init__(self, attachment, index):
        self.attachment, self.index = attachment, index
        self.device = torch.device(attachment.device_type, index)
        self.ops, self.interface = attachment.ops, attachment.interface
        self._pools, self._streams = {}, {}
        self._lock = threading.Lock()

    def supported(self):
        return not self.attachment.why_no_trees

    def caching(self):
        return bool(self.ops.caching_allocator_enabled())

    # ------------------------------------------------------------------------------------------------------------ pools

    def new_pool(self):
        with self._lock:
            number = len(self._pools) + 1
            self._pools[number] = self.ops.graph_pool_handle()
            return number

    def begin(self, pool):
        self.ops.begin_allocate_current_thread_to_pool(self.index, self._pools[pool])

    def end(self, pool):
        self.ops.end_allocate_to_pool(self.index, self._pools[pool])

    def release(self, pool):
        self.ops.release_pool(self.index, self._pools[pool])

    def checkpoint(self, pool):
        return self.ops.get_checkpoint_state(self.index, self._pools[pool])

    def restore(self, pool, state, storages, dead):
        self.ops.set_checkpoint_pool_state(self.index, state, [], storages)
        for pointer in dead:
            self.ops.raw_delete(pointer)

    def live_equals(self, pool, pointers):
        return self.ops.check_pool_live_allocations(self.index, self._pools[pool], pointers)

    def raw_delete(self, pointer):
        self.ops.raw_delete(pointer)

    # ---------------------------------------------------------------------------------------------------------- streams

    def new_stream(self):
        return self.interface.Stream(device=self.device)

    def current_stream(self):
        """The same object for the same stream: trees tell them apart by it."""
        stream = self.interface.current_stream(self.device)
        return self._streams.setdefault(stream.stream_id, stream)

    def wait(self, stream, other):
        if stream.stream_id != other.stream_id:
            stream.wait_stream(other)

    def synchronize(self, stream):
        stream.synchronize()

    def enter(self, stream):
        before = self.interface.exchange_device(self.index)
        if stream is not None:
            stream.__enter__()
        return before, stream

    def leave(self, token):
        before, stream = token
        if stream is not None:
            stream.__exit__(None, None, None)
        self.interface.exchange_device(before)

    # ----------------------------------------------------------------------------------------------------------- graphs

    def new_graph(self, name):
        return _Graph()

    def capture_begin(self, holder, stream, pool):
        holder.graph = self.attachment.new_graph(self._pools[pool])
        self.attachment.begin_capture(holder.graph, stream, self._pools[pool])

    def capture_end(self, holder):
        self.attachment.end_capture(holder.graph)

    def abort(self, holder):
        if holder.graph is not None:
            self.attachment.abort_capture(holder.graph)

    def replay(self, holder, stream):
        with stream:
            holder.graph.replay()
