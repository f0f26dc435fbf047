# SPDX-License-Identifier: Apache-2.0
"""torch/_inductor/cudagraph_trees.py: whatever it asks of torch.cuda it asks of the device's interface (PR-5a), and
graphs are made and captured in one of three ways (PR-5b).

CUDA reaches the symbols that it reached before, in the same order. What only CUDA needs (workspaces of cuBLAS, the
cache of convolutions, the history of allocations, conditional nodes) is guarded and not merged: warm-up needs more of
it than recording does.
"""
import re

from .edit import Argument, Fork, Insert, Mentions, Parameter, Replace, Statement, since, until

FILE = "torch/_inductor/cudagraph_trees.py"

_HELPERS = '''
    def _graph_device_type(*where: Any) -> str:
        """Type of the device that graphs are for: of the first device, or of the first thing on one, among
        `where`; else of the current accelerator."""
        for value in where:
            for item in value if isinstance(value, (list, tuple)) else (value,):
                device = getattr(item, "device", item)
                if isinstance(device, torch.device) and device.type not in ("cpu", "meta"):
                    return device.type
        acc = torch.accelerator.current_accelerator()
        return acc.type if acc is not None else "cuda"


    def _graph_device_interface(device_type: str | None = None) -> Any:
        from torch._dynamo.device_interface import get_interface_for_device

        return get_interface_for_device(device_type or _graph_device_type())


    def _graph_device(device: Any, *where: Any) -> torch.device:
        """A device from an index, whose type is that of what is in `where`, or from a device."""
        if isinstance(device, torch.device):
            if device.index is not None:
                return device
            return torch.device(
                device.type, _graph_device_interface(device.type).current_device()
            )
        return torch.device(_graph_device_type(*where), device)


    def _graph_trees_unsupported(*where: Any) -> str | None:
        """Why the device has no graph trees although it captures graphs, or None."""
        from torch._dynamo.device_interface import DeviceInterface

        device_type = _graph_device_type(*where)
        operations = _graph_device_interface(device_type).GraphOps
        needed = (
            "graph_pool_handle",
            "begin_allocate_current_thread_to_pool",
            "end_allocate_to_pool",
            "release_pool",
            "get_checkpoint_state",
            "set_checkpoint_pool_state",
            "check_pool_live_allocations",
            "raw_delete",
        )
        missing = [
            name
            for name in needed
            if getattr(operations, name) is getattr(DeviceInterface.GraphOps, name)
        ]
        if not missing:
            return None
        lacks = (
            "interface has no GraphOps"
            if len(missing) == len(needed)
            else f"GraphOps has no {', '.join(missing)}"
        )
        return (
            f"skipping cudagraphs due to {device_type}: its {lacks}, "
            "which graph trees need"
        )


    def _graph_bindings(device_type: str) -> Any:
        """Bindings that PyTorch has in its CUDA module although other devices need them: a device may bring its own."""
        if device_type == "cuda":
            return torch._C
        return getattr(_graph_device_interface(device_type).GraphOps, "bindings", torch._C)


    def _graph_manager_if_any(device: Any) -> Any:
        """The manager that a device has, or None. Of an index: the current accelerator's, else any other's."""
        containers = get_obj(local, "tree_manager_containers")
        if not isinstance(device, torch.device):
            if device is None:
                if not torch.accelerator.is_available():
                    return None
                device = _graph_device_interface().current_device()
            current = torch.device(_graph_device_type(), device)
            keys = [key for key in containers if getattr(key, "index", key) == device]
            keys.sort(key=lambda key: key != current)
        else:
            keys = [_graph_device(device)]
        for key in keys:
            container = containers.get(key)
            if container is not None and container.tree_manager is not None:
                return container.tree_manager
        return None
    '''

_GUARD = """
    if (device_type or _graph_device_type()) != "cuda":
        yield
        return
    """
_OF_TYPE = "device_type: str | None = None"
_SELF = "device_type=self.device_type"
_DI = "self.device_interface"
_INT = re.compile(r"(?<=device_index: )int(?! \| None)\b")


def _moved(name, scope, calls):
    """Replacements of a function or method: pairs of a member of torch.cuda or torch._C with what stands for it."""
    return [Replace(f"{name}: {old}", "PR-5a", scope, old, new, count) for old, new, count in calls]


_FREE_FUNCTIONS = [
    Insert("helpers", "PR-5a", "format_inputs_log", "above", _HELPERS),
    # The three that only CUDA needs.
    Parameter("clean-up of cuBLAS: whose", "PR-5a", "clear_cublas_manager", _OF_TYPE),
    Insert("clean-up of cuBLAS: guard", "PR-5a", "clear_cublas_manager", "top", _GUARD),
    Parameter("cache of convolutions: whose", "PR-5a", "disable_conv_cache_emptying", _OF_TYPE),
    Insert("cache of convolutions: guard", "PR-5a", "disable_conv_cache_emptying", "top", _GUARD),
    Parameter("history: whose", "PR-5a", "enable_history_recording", _OF_TYPE),
    Insert("history: guard", "PR-5a", "enable_history_recording", "top", _GUARD),
    Parameter("history, if configured: whose", "PR-5a", "get_history_recording", _OF_TYPE),
    Argument("history, if configured", "PR-5a", "get_history_recording", "enable_history_recording", "device_type"),
    # Containers are a device's, not an index's.
    Replace("container: of a device", "PR-5a", "TreeManagerContainer.__init__", _INT, "int | torch.device"),
    Statement("container: device", "PR-5a", "TreeManagerContainer.__init__", "self.device_index = device_index", """
        device = _graph_device(device_index)
        self.device_type = device.type
        self.device_index = device.index
        """),
    Replace("container: graph of any device", "PR-5a", "TreeManagerContainer.__init__", "torch.cuda.CUDAGraph | None",
            "Any | None"),
    Replace("container: manager", "PR-5a", "TreeManagerContainer.get_tree_manager",
            re.compile(r"(?<!def )\b(CUDAGraphTreeManager\(\s*)self\.device_index\b"),
            r"\1torch.device(self.device_type, self.device_index)"),
    Replace("get_container: of a device", "PR-5a", "get_container", re.compile(r"(?<=\()device_index: int\b"),
            "device: int | torch.device"),
    Insert("get_container: device", "PR-5a", "get_container", "top", "device = _graph_device(device)"),
    Replace("get_container: key", "PR-5a", "get_container", re.compile(r"\bdevice_index\b(?!:)"), "device", count=5),
    Insert("get_manager: that is there", "PR-5a", "get_manager", "top", """
        if not create_if_none_exists:
            return _graph_manager_if_any(device_index)
        """),
    Replace("get_manager: a device, too", "PR-5a", "get_manager", _INT, "int | torch.device", count=until("2.13")),
    Replace("get_manager: initialised", "PR-5a", "get_manager", "torch.cuda.is_initialized()",
            "torch.accelerator.is_available()",
            count=since("2.14")),
    Replace("get_manager: current device", "PR-5a", "get_manager", "torch.cuda.current_device()",
            "_graph_device_interface().current_device()", count=since("2.14")),
    # What is not captured tells the manager of its device, too, that a backward pass has begun.
    Replace("a backward pass that is not captured: whose", "PR-5a", "cudagraphify_impl.run_eager",
            'kwargs["device_index"]', '_graph_device(kwargs["device_index"], kwargs.get("device"), inputs)',
            count=since("2.15")),
    # Whoever has operations for graphs but none for pools is left out by name.
    Insert("a device without operations for trees", "PR-5a", "cudagraphify_impl.deferred_cudagraphify", "before", """
        if unsupported := _graph_trees_unsupported(
            kwargs.get("device"), inputs, kwargs.get("constants", ())
        ):
            log_cudagraph_skip_and_bump_counter(unsupported)
            fn_cache[int_key] = model
            return model(inputs)
        """, fragment="check_input_idxs = get_input_idxs_to_check("),
    Parameter("cudagraphify: device", "PR-5a", "cudagraphify", "device: torch.device | None = None"),
    Replace("cudagraphify: container", "PR-5a", "cudagraphify", "get_container(device_index)",
            "get_container(_graph_device(device_index, device, inputs, constants))"),
    # Warm-up in the pool.
    Parameter("pool: whose", "PR-5a", "_use_cuda_memory_pool_manager", _OF_TYPE),
    Replace("pool: stream of any device", "PR-5a", "_use_cuda_memory_pool_manager", "torch.cuda.Stream", "Any"),
    Insert("pool: interface", "PR-5a", "_use_cuda_memory_pool_manager", "top", """
        device_type = device_type or _graph_device_type(stream)
        di = _graph_device_interface(device_type)
        """),
    *_moved("pool", "_use_cuda_memory_pool_manager", [
        ("torch.cuda.synchronize()", "di.synchronize()", 1),
        ("torch.cuda.current_stream()", "di.current_stream()", 2),
        ("torch.cuda.stream(", "di.stream(", 1),
        ("torch.device(device)", "torch.device(device_type, device)", 1),
        ("torch._C._cuda_beginAllocateCurrentThreadToPool(", "di.GraphOps.begin_allocate_current_thread_to_pool(", 1),
        ("torch._C._cuda_endAllocateToPool(", "di.GraphOps.end_allocate_to_pool(", 1),
        ("torch._C._cuda_releasePool(", "di.GraphOps.release_pool(", 1),
    ]),
    Parameter("stream of custom operators: whose", "PR-5a", "_update_current_stream_external_object", _OF_TYPE,
              count=1),
    Replace("stream of custom operators", "PR-5a", "_update_current_stream_external_object",
            "torch.cuda.current_stream()",
            "_graph_device_interface(device_type).current_stream()"),
    # Checks of the pool.
    Parameter("segments: whose", "PR-5a", "get_cudagraph_segments", _OF_TYPE),
    Replace("segments: snapshot", "PR-5a", "get_cudagraph_segments", "torch.cuda.memory_snapshot()",
            "_graph_device_interface(device_type).GraphOps.memory_snapshot()"),
    Insert("segments: none to see", "PR-5a", "get_cudagraph_segments", "after", """
        if segments is None:
            return None
        """, fragment="segments = torch.cuda.memory_snapshot()"),
    Parameter("addresses: whose", "PR-5a", "get_block_addrs", _OF_TYPE),
    Replace("addresses", "PR-5a", "get_block_addrs", "get_cudagraph_segments(pool_id)",
            "get_cudagraph_segments(pool_id, device_type) or ()"),
    Parameter("check of the pool: whose", "PR-5a", "check_memory_pool", _OF_TYPE),
    Insert("check of the pool: interface", "PR-5a", "check_memory_pool", "top",
           "di = _graph_device_interface(device_type)"),
    *_moved("check of the pool", "check_memory_pool", [
        ("torch._C._cuda_checkPoolLiveAllocations(", "di.GraphOps.check_pool_live_allocations(", 1),
        ("torch.cuda.synchronize()", "di.synchronize()", 1),
        ("get_cudagraph_segments(pool_id)", "get_cudagraph_segments(pool_id, device_type)", 1),
    ]),
    Insert("check of the pool: none to see", "PR-5a", "check_memory_pool", "after", """
        if segments is None:
            return
        """, fragment="segments = get_cudagraph_segments(pool_id)"),
]

_WARMUP = [
    Replace("warm-up: graph of any device", "PR-5a", "CUDAWarmupNode.__init__", "torch.cuda.CUDAGraph | None",
            "Any | None"),
    Replace("warm-up: stream of any device", "PR-5a", "CUDAWarmupNode.__init__", "torch.cuda.Stream", "Any"),
    Insert("warm-up: device", "PR-5a", "CUDAWarmupNode.__init__", "after", """
        self.device_type = _graph_device_type(stream)
        self.device_interface = _graph_device_interface(self.device_type)
        """, fragment="self.device_index = device_index"),
    Replace("warm-up: current device", "PR-5a", "CUDAWarmupNode.run", "torch.cuda.device(", f"{_DI}.device("),
    *[Argument(f"warm-up: {name}", "PR-5a", "CUDAWarmupNode.run", name, _SELF, count) for name, count in [
        ("check_memory_pool", 2), ("disable_conv_cache_emptying", 1), ("clear_cublas_manager", 1),
        ("_use_cuda_memory_pool_manager", 1), ("_update_current_stream_external_object", 1), ("get_history_recording",
                                                                                              1)]],
    Replace("warm-up: conditional nodes are CUDA's", "PR-5a", "CUDAWarmupNode.run", "ControlFlowOpWarmupDispatchMode()",
            'ControlFlowOpWarmupDispatchMode() if self.device_type == "cuda" else contextlib.nullcontext()'),
    Replace("warm-up: outputs on the device", "PR-5a", "CUDAWarmupNode.run.add_ref", "o.is_cuda",
            "o.device.type == self.device_type"),
]

_NODE = [
    Replace("node: stream of any device", "PR-5a", "CUDAGraphNode.__init__", "torch.cuda.Stream", "Any"),
    Insert("node: device", "PR-5a", "CUDAGraphNode.__init__", "after", """
        self.device_type = _graph_device_type(stream)
        self.device_interface = _graph_device_interface(self.device_type)
        """, fragment="self.device = device_index"),
    Replace("node: current device", "PR-5a", "CUDAGraphNode.__init__", "torch.cuda.device(", f"{_DI}.device(",
            count=until("2.13")),
    # Other devices' generators join a capture by themselves.
    Replace("node: generators that register", "PR-5a", "CUDAGraphNode.__init__", "in rng_states:",
            'in rng_states if self.device_type == "cuda" else ():', count=until("2.13")),
    Replace("node: graph of any device", "PR-5a", "CUDAGraphNode.__init__", "torch.cuda.CUDAGraph | None",
            "Any | None"),
    Replace("node: synchronisation by configuration", "PR-5a", "CUDAGraphNode.run", "torch.cuda.synchronize()",
            f"{_DI}.synchronize()"),
    Replace("recording: current device", "PR-5a", "CUDAGraphNode._record", "torch.cuda.device(", f"{_DI}.device(",
            count=until("2.13") | since("2.14", 2)),
    *[Argument(f"recording: {name}", "PR-5a", "CUDAGraphNode._record", name, _SELF, count) for name, count in [
        ("check_memory_pool", 1), ("clear_cublas_manager", until("2.13") | since("2.14", 2)),
        ("_update_current_stream_external_object", until("2.13") | since("2.14", 2)),
        ("get_history_recording", until("2.13") | since("2.14", 2)),
        ("_use_cuda_memory_pool_manager", since("2.14"))]],
    Replace("recording: conditional nodes are CUDA's", "PR-5a", "CUDAGraphNode._record",
            "CUDAGraphCaptureControlFlowOpDispatchMode()",
            'CUDAGraphCaptureControlFlowOpDispatchMode() if self.device_type == "cuda" else contextlib.nullcontext()'),
    Replace("kernel-free: conditional nodes are CUDA's", "PR-5a", "CUDAGraphNode._record",
            "ControlFlowOpWarmupDispatchMode()",
            'ControlFlowOpWarmupDispatchMode() if self.device_type == "cuda" else contextlib.nullcontext()',
            count=since("2.14")),
    Replace("outputs on the device", "PR-5a", "CUDAGraphNode._add_first_outputs", "o.is_cuda",
            "o.device.type == self.device_type"),
    Replace("checkpoint: taken", "PR-5a", "CUDAGraphNode._add_first_outputs", "torch._C._cuda_getCheckpointState(",
            f"{_DI}.GraphOps.get_checkpoint_state("),
    Argument("outputs: check of the pool", "PR-5a", "CUDAGraphNode._add_first_outputs", "check_memory_pool", _SELF),
    Replace("tensors on the device", "PR-5a", "CUDAGraphNode._reconstruct_from_tensor_metadata",
            "torch._C._construct_CUDA_Tensor_From_Storage_And_Metadata(",
            "_graph_bindings(self.device_type)._construct_CUDA_Tensor_From_Storage_And_Metadata("),
    *_moved("inputs", "CUDAGraphNode._allocate_and_copy_recording_inputs", [
        ("torch.cuda.synchronize()", f"{_DI}.synchronize()", 1),
        ("torch.cuda.current_stream()", f"{_DI}.current_stream()", 1),
        ("torch.cuda.device(", f"{_DI}.device(", 1),
    ]),
    Argument("inputs: in the pool", "PR-5a", "CUDAGraphNode._allocate_and_copy_recording_inputs",
             "_use_cuda_memory_pool_manager", _SELF),
]

_MANAGER = [
    Replace("the manager's name", "PR-5a", "", re.compile(r"(?<=^class )CUDAGraphTreeManager(?=:)", re.M),
            "GraphTreeManager"),
    Insert("the manager's older name", "PR-5a", "CUDAGraphTreeManager", "below",
           "CUDAGraphTreeManager = GraphTreeManager"),
    Replace("manager: of a device", "PR-5a", "CUDAGraphTreeManager.__init__", _INT, "int | torch.device"),
    Insert("manager: device", "PR-5a", "CUDAGraphTreeManager.__init__", "top", """
        device = _graph_device(device_index)
        device_index = device.index
        self.device_type = device.type
        self.device_interface = _graph_device_interface(self.device_type)
        """),
    *_moved("manager", "CUDAGraphTreeManager.__init__", [
        ("torch.cuda.device(", f"{_DI}.device(", 1),
        ("torch.cuda.synchronize()", f"{_DI}.synchronize()", 1),
        ("torch.cuda.Stream()", f"{_DI}.Stream()", 1),
        ("torch.cuda.current_stream()", f"{_DI}.current_stream()", 1),
        ("torch.cuda.CUDAGraph | None", "Any | None", 1),
    ]),
    Replace("manager: its first memory", "PR-5a", "CUDAGraphTreeManager.__init__", 'device=f"cuda:{device_index}"',
            "device=torch.device(self.device_type, device_index)", count=since("2.15")),
    Replace("manager: around a recording", "PR-5a", "CUDAGraphTreeManager.record_function", "torch.cuda.synchronize()",
            f"{_DI}.synchronize()", count=2),
    Replace("manager: constants on the device", "PR-5a", "CUDAGraphTreeManager.add_function", "t.is_cuda",
            "t.device.type == self.device_type"),
    Replace("manager: its container", "PR-5a", "CUDAGraphTreeManager.add_function", "get_container(self.device_index)",
            "get_container(torch.device(self.device_type, self.device_index))"),
    Replace("end of a path: memory", "PR-5a", "CUDAGraphTreeManager.dealloc_current_path_weakrefs",
            "torch._C._free_And_Remove_DeleterFn(", "_graph_bindings(self.device_type)._free_And_Remove_DeleterFn("),
    Replace("clones of outputs: current device", "PR-5a", "CUDAGraphTreeManager._clone_live_user_visible_storages",
            "torch.cuda.device(", f"{_DI}.device(", count=since("2.14")),
    *_moved("checkpoint", "CUDAGraphTreeManager.apply_checkpoint_execution_state_in_allocator", [
        ("torch._C._cuda_setCheckpointPoolState(", f"{_DI}.GraphOps.set_checkpoint_pool_state(", 1),
        ("torch._C._cuda_cudaCachingAllocator_raw_delete(", f"{_DI}.GraphOps.raw_delete(", 1),
        ("torch._C._has_Standard_Deleter(", "_graph_bindings(self.device_type)._has_Standard_Deleter(", 1),
    ]),
    Argument("checkpoint: check of the pool", "PR-5a",
             "CUDAGraphTreeManager.apply_checkpoint_execution_state_in_allocator",
             "check_memory_pool", _SELF),
]

_CAPTURE = {
    "kept": """
        if device_type == "cuda":
            with torch.cuda.graph(
                graph, stream=stream, pool=pool, capture_error_mode=capture_error_mode
            ):
                yield
        else:
            # torch.accelerator.Graph has had its pool and its mode since it was made.
            with di.stream(stream), graph:
                yield
        """,
    "contract": """
        # torch.accelerator.Graph has had its pool and its mode since it was made.
        with di.stream(stream), graph:
            yield
        """,
    "duck": """
        with di.GraphOps.capture_context(graph, stream, pool, capture_error_mode):
            yield
        """,
}
_MADE = re.compile(r"self\.graph: torch\.cuda\.CUDAGraph \| None = ")
_POOL = "self.cuda_graphs_thread_pool = torch.cuda.graph_pool_handle()"


def _captures(variant):
    import textwrap

    helper = ("@contextlib.contextmanager\ndef _graph_capture_context(\n"
              "    di: Any,\n    device_type: str,\n    graph: Any,\n"
              "    stream: Any,\n    pool: Any,\n    capture_error_mode: str = \"thread_local\",\n"
              ") -> Generator[None, None, None]:\n    \"\"\"The capture of a graph of a device on a stream.\"\"\"\n")
    helper += textwrap.indent(textwrap.dedent(_CAPTURE[variant]).strip("\n"), "    ")
    call = f"_graph_capture_context({_DI}, self.device_type,"
    return [
        Insert("captures: one place", "PR-5b", "get_container", "above", helper),
        Replace("captures: the manager's", "PR-5b", "CUDAGraphTreeManager.__init__", "torch.cuda.graph(", call),
        Replace("captures: a node's", "PR-5b", "CUDAGraphNode._record", "torch.cuda.graph(", call),
    ]


def _constructions(variant):
    manager, node = "CUDAGraphTreeManager.__init__", "CUDAGraphNode.__init__"
    pool = f"self.cuda_graphs_thread_pool = {_DI}.GraphOps.graph_pool_handle()\n"
    if variant == "duck":
        made = f"{_DI}.GraphOps.create_graph()"
        return [
            Replace("graph of the manager", "PR-5b", manager, "torch.cuda.CUDAGraph()", made),
            Replace("pool of the manager", "PR-5b", manager, "torch.cuda.graph_pool_handle()",
                    f"{_DI}.GraphOps.graph_pool_handle()"),
            Replace("graph of a node", "PR-5b", node, "torch.cuda.CUDAGraph()", made),
        ]
    if variant == "contract":
        return [
            Insert("pool of the manager, first", "PR-5b", manager, "before", pool, fragment="torch.cuda.CUDAGraph()"),
            Replace("graph of the manager", "PR-5b", manager, "torch.cuda.CUDAGraph()",
                    f"{_DI}.GraphOps.make_graph(\n                self.cuda_graphs_thread_pool\n            )"),
            Statement("pool of the manager, no more second", "PR-5b", manager, _POOL, ""),
            Replace("graph of a node", "PR-5b", node, "torch.cuda.CUDAGraph()",
                    f"{_DI}.GraphOps.make_graph(self.cuda_graphs_pool)"),
        ]
    made = "torch.accelerator.Graph(\n    pool={}, capture_error_mode=\"thread_local\"\n)"
    cuda = 'self.device_type == "cuda"'
    return [
        Fork("graph and pool of the manager", "PR-5b", manager, "torch.cuda.CUDAGraph()", cuda,
             pool + "self.graph = " + made.format("self.cuda_graphs_thread_pool"), last=_POOL),
        Fork("graph of a node", "PR-5b", node, re.compile(r"(?<!else )torch\.cuda\.CUDAGraph\(\)"), cuda,
             "self.graph = " + made.format("self.cuda_graphs_pool"), count=until("2.13")),
        # A function without kernels has no graph at all.
        Fork("graph of a node, if it has kernels", "PR-5b", node, "None if wrapped_function.kernel_free_cudagraph else",
             cuda + " or wrapped_function.kernel_free_cudagraph",
             "self.graph = " + made.format("self.cuda_graphs_pool"),
             count=since("2.14")),
    ]


# What is new and is CUDA's would pass by all of the above, and be wrong only when it runs.
_ALL = [Mentions("all that names CUDA", "PR-5a", "", until("2.13", 48) | since("2.14", 51) | since("2.15", 52))]


def rules(variant):
    return [*_FREE_FUNCTIONS, *_WARMUP, *_NODE, *_MANAGER, *_captures(variant), *_constructions(variant), *_ALL]
