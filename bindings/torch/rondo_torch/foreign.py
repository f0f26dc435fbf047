# SPDX-License-Identifier: Apache-2.0
"""Another package's device as trees need it (csrc/tree_foreign.cpp), over its attachment (rondo_torch.attach): pools by
number, streams, graphs of whatever kind the package has. What fails in the package is told with the device and the
operation's name."""
import functools
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


def forget(attachment):
    """The attachment is over; functions that have its devices keep them."""
    with _lock:
        for key in [key for key in _devices if key[0] is attachment]:
            del _devices[key]


class Failure(RuntimeError):
    """An operation of the package's has failed."""


class MemoryFailure(Failure, MemoryError):
    """It had no memory: that may be otherwise the next time."""


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
        self._prepared = threading.local()
        self._lock = threading.Lock()

    def _ask(self, name, *arguments):
        """An operation of the package's GraphOps."""
        return self._named(f"GraphOps.{name}", getattr(self.ops, name), *arguments)

    def _named(self, member, function, *arguments):
        try:
            return function(*arguments)
        except Exception as error:  # noqa: BLE001  (it is told by name, and raised)
            raise self._failure(member, error) from error

    def _failure(self, member, error):
        if isinstance(error, Failure):
            return error
        kind = MemoryFailure if isinstance(error, (MemoryError, torch.OutOfMemoryError)) else Failure
        return kind(f"{self.device}: {member} raised {type(error).__name__}: {error}")

    def supported(self):
        return not self.attachment.why_no_trees

    def caching(self):
        return bool(self._ask("caching_allocator_enabled"))

    # ------------------------------------------------------------------------------------------------------------ pools

    def new_pool(self):
        with self._lock:
            number = len(self._pools) + 1
            self._pools[number] = self._ask("graph_pool_handle")
            return number

    def begin(self, pool):
        self._ask("begin_allocate_current_thread_to_pool", self.index, self._pools[pool])

    def end(self, pool):
        self._ask("end_allocate_to_pool", self.index, self._pools[pool])

    def release(self, pool):
        self._ask("release_pool", self.index, self._pools[pool])

    def checkpoint(self, pool):
        return self._ask("get_checkpoint_state", self.index, self._pools[pool])

    def restore(self, pool, state, storages, dead):
        self._ask("set_checkpoint_pool_state", self.index, state, [], storages)
        for pointer in dead:
            self._ask("raw_delete", pointer)

    def live_equals(self, pool, pointers):
        return self._ask("check_pool_live_allocations", self.index, self._pools[pool], pointers)

    def raw_delete(self, pointer):
        self._ask("raw_delete", pointer)

    def sees(self):
        """Whether the package tells what is in a pool."""
        return self.attachment.has("memory_snapshot") and self.ops.memory_snapshot() is not None

    def _segments(self, pool):
        wanted = tuple(self._pools[pool]), self.index
        return [segment for segment in self._ask("memory_snapshot") or ()
                if (tuple(segment["segment_pool_id"]), segment.get("device", self.index)) == wanted]

    def snapshot(self, pool):
        """Address and bytes of each block that is in use."""
        found = []
        for segment in self._segments(pool):
            address = segment["address"]
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    found.append((block.get("address", address), block["size"]))
                address += block["size"]
        return found

    def bytes(self, pool):
        """What the pool has from the device, and what of it is in use."""
        reserved = sum(segment["total_size"] for segment in self._segments(pool))
        return reserved, sum(size for _, size in self.snapshot(pool))

    # ---------------------------------------------------------------------------------------------------------- streams

    def new_stream(self):
        return self._named("its interface's Stream", functools.partial(self.interface.Stream, device=self.device))

    def current_stream(self):
        """The same object for the same stream: trees tell them apart by it."""
        stream = self._named("its interface's current_stream", self.interface.current_stream, self.device)
        return self._streams.setdefault(stream.stream_id, stream)

    def wait(self, stream, other):
        if stream.stream_id != other.stream_id:
            self._named("wait_stream of its stream", stream.wait_stream, other)

    def synchronize(self, stream):
        self._named("synchronize of its stream", stream.synchronize)

    def enter(self, stream):
        before = self._named("its interface's exchange_device", self.interface.exchange_device, self.index)
        try:
            entered = None if stream is None else self.attachment.on_stream(stream)
            if entered is not None:
                self._named("the context of its stream", entered.__enter__)
        except BaseException:
            self.interface.exchange_device(before)
            raise
        return before, entered

    def leave(self, token):
        before, entered = token
        try:
            if entered is not None:
                entered.__exit__(None, None, None)
        finally:
            self.interface.exchange_device(before)

    # ----------------------------------------------------------------------------------------------------------- graphs

    def prepares(self):
        return self.attachment.has("prepare_for_capture")

    def prepare(self, recording, enter):
        """Around each warm-up and each recording."""
        if enter:
            context = self._ask("prepare_for_capture")
            self._named("GraphOps.prepare_for_capture", context.__enter__)
            self._prepared.all = [*getattr(self._prepared, "all", ()), context]
        else:
            self._named("GraphOps.prepare_for_capture", self._prepared.all.pop().__exit__, None, None, None)

    def new_graph(self, name):
        return _Graph()

    def capture_begin(self, holder, stream, pool):
        made, pool = self.attachment, self._pools[pool]
        holder.graph = self._named(made.graph_maker, made.new_graph, pool)
        self._named(made.capture_member("capture_begin"), made.begin_capture, holder.graph, stream, pool)

    def capture_end(self, holder):
        made = self.attachment
        self._named(made.capture_member("capture_end"), made.end_capture, holder.graph)

    def abort(self, holder):
        if holder.graph is not None:
            self.attachment.abort_capture(holder.graph)

    def replay(self, holder, stream):
        try:
            with self.attachment.on_stream(stream):
                holder.graph.replay()
        except Exception as error:  # noqa: BLE001  (it is told by name, and raised)
            raise self._failure(f"{type(holder.graph).__name__}.replay", error) from error
