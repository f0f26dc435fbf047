# SPDX-License-Identifier: Apache-2.0
"""Graph trees for "CUDA" on a build that has none: every symbol of torch.cuda and torch._C._cuda_* that they call is a
double that writes down its call, and tensors are the host's and say that they are CUDA's.

Run as a program it drives warm-up, recording, replay and checkpoints, and prints the calls as JSON:

    cuda_doubles.py stock|plugin|kept|contract|duck
"""
import contextlib
import json
import sys
from unittest import mock

import torch

DEVICE = torch.device("cuda", 0)
REAL_DEVICE, REAL_STORAGE = torch.device, torch._C._construct_storage_from_data_pointer
calls = []
_labels = {}


class CudaTensor(torch.Tensor):
    """A tensor of the host that says that it is CUDA's."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    is_cuda = True
    device = property(lambda self: DEVICE)


def label(value):
    """What a call was given, without what differs from run to run: addresses and objects are numbered as they come."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, float)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 4096 else _labels.setdefault(value, f"address {len(_labels)}")
    if isinstance(value, (list, tuple)):
        return [label(item) for item in value]
    if isinstance(value, (set, frozenset)) or type(value).__name__ == "OrderedSet":
        return sorted(str(label(item)) for item in sorted(value))
    if isinstance(value, torch.Tensor):
        return f"tensor {list(value.shape)}"
    return getattr(value, "label", str(type(value).__name__))


def note(name, *args, **options):
    calls.append([name, label(args), {key: label(options[key]) for key in sorted(options)}])


class Numbered:
    _count = {}

    def __init__(self, *args, **options):
        name = type(self).__name__
        number = Numbered._count[name] = Numbered._count.get(name, -1) + 1
        self.label = f"{name} {number}"
        note(f"torch.cuda.{name}", *args, **options)


class Stream(Numbered):
    device = DEVICE

    def wait_stream(self, other):
        note("Stream.wait_stream", self, other)

    def synchronize(self):
        note("Stream.synchronize", self)


class CUDAGraph(Numbered):
    def __getattr__(self, name):
        if name.startswith("_") or name == "label":
            raise AttributeError(name)
        answers = {"pool": (0, 77)}
        return lambda *args, **options: (note(f"CUDAGraph.{name}", self, *args, **options), answers.get(name))[1]


_streams = []


class _Entered:
    """A context manager that says when it is entered and left."""

    def __init__(self, *args, **options):
        self.args, self.options = args, options

    def __enter__(self):
        note(f"+{self.name}", *self.args, **self.options)
        stream = self.options.get("stream") or (self.args[0] if self.name == "torch.cuda.stream" else None)
        _streams.append(stream or _streams[-1])
        return self

    def __exit__(self, *_):
        _streams.pop()
        note(f"-{self.name}")
        return False


def _entered(name):
    return type(name, (_Entered,), {"name": f"torch.cuda.{name}"})


def _function(name, answer=None):
    def double(*args, **options):
        note(name, *args, **options)
        return answer() if callable(answer) else answer
    return double


class _Arena:
    """Memory for "CUDA" tensors: blocks are never used again, so that whatever still points there points to
    something."""

    def __init__(self):
        self.memory, self.used = torch.zeros(1 << 20, dtype=torch.uint8, device="cpu"), 0

    def tensor(self, shape):
        count = torch.Size(shape).numel() * 4
        at = self.memory.data_ptr() + self.used
        self.used += (count + 511) // 512 * 512
        storage = REAL_STORAGE(at, torch.device("cpu"), count)
        return torch.empty(0, device="cpu").set_(storage, 0, tuple(shape)).as_subclass(CudaTensor)


arena = _Arena()


def _over(metadata, storage):
    result = torch.empty(0, device="cpu", dtype=metadata["dtype"])
    return result.set_(storage, metadata["storage_offset"], metadata["size"],
                       metadata["stride"]).as_subclass(CudaTensor)


def _equal(tensors, pointers, indices):
    return all(tensors[index].data_ptr() == pointers[index] for index in indices)


class _Type(type):
    def __instancecheck__(cls, thing):
        return isinstance(thing, REAL_DEVICE)

    def __call__(cls, *args):
        return REAL_DEVICE("cuda", *args) if len(args) == 1 and isinstance(args[0], int) else REAL_DEVICE(*args)


class _Device(metaclass=_Type):
    """torch.device on a machine whose accelerator is CUDA."""


class _Torch:
    device = _Device

    def __getattr__(self, name):
        return getattr(torch, name)


CUDA = {
    "synchronize": _function("torch.cuda.synchronize"), "Stream": Stream, "CUDAGraph": CUDAGraph,
    "graph": _entered("graph"),
    "stream": _entered("stream"), "device": _entered("device"),
    "current_stream": _function("torch.cuda.current_stream", lambda: _streams[-1]),
    "graph_pool_handle": _function("torch.cuda.graph_pool_handle", lambda: (0, 77)),
    "memory_snapshot": _function("torch.cuda.memory_snapshot", list), "is_available": lambda: True,
    "empty_cache": _function("torch.cuda.empty_cache"),
    "get_rng_state": _function("torch.cuda.get_rng_state", lambda: torch.zeros(1, device="cpu")),
    "set_rng_state": lambda state: note("torch.cuda.set_rng_state"),
}
NATIVE = {
    "_cuda_beginAllocateCurrentThreadToPool": None, "_cuda_endAllocateToPool": None, "_cuda_releasePool": None,
    "_cuda_getCheckpointState": "state", "_cuda_setCheckpointPoolState": None, "_cuda_checkPoolLiveAllocations": True,
    "_cuda_cudaCachingAllocator_raw_delete": None, "_cuda_cudaCachingAllocator_is_enabled": True,
    "_cuda_clearCublasWorkspaces": None, "_cuda_get_conv_benchmark_empty_cache": "before",
    "_cudnn_set_conv_benchmark_empty_cache": None, "_cuda_isHistoryEnabled": False, "_has_Standard_Deleter": True,
    "_set_storage_access_error_msg": None, "_set_storage_data_ptr_access_error_msg": None,
    "_free_And_Remove_DeleterFn": None,
}


def _interfaces():
    """Classes that took functions of torch.cuda over when they were made."""
    from torch._dynamo.device_interface import CudaInterface

    return [CudaInterface, *(vars(CudaInterface).get(name) for name in ("GraphOps",) if name in vars(CudaInterface))]


@contextlib.contextmanager
def doubles():
    """With torch.cuda and torch._C as they would be on a machine with CUDA, but for writing down."""
    import torch._inductor.compile_fx as compile_fx
    import torch._inductor.cudagraph_trees as trees

    originals = {name: getattr(torch.cuda, name) for name in CUDA}
    native = {name: _function(f"torch._C.{name}", answer) for name, answer in NATIVE.items()}
    native["_tensors_data_ptrs_at_indices_equal"] = _equal
    native["_construct_CUDA_Tensor_From_Storage_And_Metadata"] = _over
    native["_construct_storage_from_data_pointer"] = lambda at, device, count: REAL_STORAGE(at, REAL_DEVICE("cpu"),
                                                                                            count)
    with contextlib.ExitStack() as stack:
        for name, double in CUDA.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, double))
        stack.enter_context(mock.patch.object(torch.cuda.memory, "_record_memory_history",
                                              _function("torch.cuda.memory._record_memory_history")))
        for name, double in native.items():
            stack.enter_context(mock.patch.object(torch._C, name, double, create=True))
        for owner in _interfaces():
            for name, member in list(vars(owner).items()):
                plain = getattr(member, "__func__", member)
                for known, original in originals.items():
                    if plain is original:
                        double = CUDA[known]
                        stack.enter_context(mock.patch.object(
                            owner, name, double if isinstance(double, type) else staticmethod(double)))
        for module in (trees, compile_fx):
            stack.enter_context(mock.patch.object(module, "static_input", lambda x: arena.tensor(x.shape)))
        stack.enter_context(mock.patch.object(trees, "torch", _Torch()))
        _streams.append(Stream())
        calls.clear()
        yield trees, compile_fx


def model(function):
    def run(inputs):
        taken = [value.as_subclass(torch.Tensor) if isinstance(value, torch.Tensor) else value for value in inputs]
        inputs.clear()
        note("model", *taken)
        result = []
        for value in function(*taken):
            out = arena.tensor(value.shape)
            out.copy_(value)
            result.append(out)
        return tuple(result)
    return run


def cuda(*values):
    out = arena.tensor((len(values),))
    out.copy_(torch.tensor(values, device="cpu"))
    return out


def drive_trees(trees):
    """Two functions on one path: each warmed up, recorded and replayed; a checkpoint before a warm-up and before a
    recording; a function that ends a path; static inputs; the history of allocations."""
    config = trees.config
    weight = cuda(1.0, 2.0)
    common = {"device_index": 0, "is_backward": False, "is_inference": True}
    first = trees.cudagraphify_impl(model(lambda x, w: (x + w, x * 2)), [], [1], stack_traces=["a", "b"], **common)
    second = trees.cudagraphify_impl(model(lambda x: (x - 1,)), [], [], stack_traces=["c"], **common)

    def step(name, both):
        note(f"step {name}")
        torch.compiler.cudagraph_mark_step_begin()
        a, b = first([cuda(1.0, 2.0), weight])
        if both:
            c, = second([a])
            note("results", b, c)

    for name in ("warm-up", "recording", "replay"):
        step(name, False)
    for name in ("checkpoint and warm-up", "checkpoint and recording", "replay of both", "replay of both again"):
        step(name, True)
    step("the path ends early", False)
    with config.patch({"triton.cudagraph_trees_history_recording": True, "triton.force_cudagraph_sync": True}):
        third = trees.cudagraphify_impl(model(lambda x: (x * 3,)), [], [], stack_traces=["d"], **common)
        for name in ("history: warm-up", "history: recording", "history: replay"):
            note(f"step {name}")
            torch.compiler.cudagraph_mark_step_begin()
            third([cuda(1.0)])
    note("reset")
    trees.reset_cudagraph_trees()


def drive_simple(compile_fx):
    note("step without trees")
    weight = cuda(1.0, 2.0)
    run = compile_fx.cudagraphify(model(lambda x, w: (x + w,)), [1], device_index=0, stack_traces=["a"],
                                  is_backward=False,
                                  is_inference=True)
    for _ in range(3):
        run([cuda(3.0, 4.0), weight])


def drive_gates():
    from torch._inductor import cudagraph_utils

    note("step gates")
    reason = cudagraph_utils.check_lowering_disable_cudagraph({DEVICE: None})
    note("gates", reason)


def main(mode):
    if mode != "stock":
        import rondo_torch  # noqa: F401
    if mode in ("kept", "contract", "duck"):
        from rondo_torch import upstream

        upstream.install(mode)
    with doubles() as (trees, compile_fx):
        drive_trees(trees)
        with trees.config.patch({"triton.cudagraph_trees": False}):
            drive_simple(compile_fx)
        drive_gates()
        json.dump(calls, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
