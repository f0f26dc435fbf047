# SPDX-License-Identifier: Apache-2.0
"""torch/_dynamo/device_interface.py: the capability bit, the default generators and the graph operations of a device.

A build without CUDA lacks the symbols torch._C._cuda_*, so each forward of CudaInterface looks its callee up when it is
called; what is a plain function of torch.cuda is that very object.
"""
from .edit import Insert

FILE = "torch/_dynamo/device_interface.py"

_BASE_OPERATIONS = """
    @staticmethod
    def graph_pool_handle() -> Any:
        raise NotImplementedError

    @staticmethod
    def begin_allocate_current_thread_to_pool(device: int, pool: Any) -> None:
        raise NotImplementedError

    @staticmethod
    def end_allocate_to_pool(device: int, pool: Any) -> None:
        raise NotImplementedError

    @staticmethod
    def release_pool(device: int, pool: Any) -> None:
        raise NotImplementedError

    @staticmethod
    def get_checkpoint_state(device: int, pool: Any) -> Any:
        raise NotImplementedError

    @staticmethod
    def set_checkpoint_pool_state(
        device: int, state: Any, stale_storages: Any, storages_to_add_deleters_to: Any
    ) -> None:
        raise NotImplementedError

    @staticmethod
    def check_pool_live_allocations(
        device: int, pool: Any, expected_live_allocations: Any
    ) -> bool:
        raise NotImplementedError

    @staticmethod
    def raw_delete(ptr: int) -> None:
        raise NotImplementedError

    @staticmethod
    def memory_snapshot() -> Any:
        # None: the device has no snapshot, and checks that would read it are skipped.
        return None

    @staticmethod
    def prepare_for_capture() -> Any:
        return contextlib.nullcontext()

    @staticmethod
    def create_graph() -> Any:
        # A graph object of the device's own, for devices that are not in the registry.
        raise NotImplementedError

    @staticmethod
    def make_graph(pool: Any) -> Any:
        return torch.accelerator.Graph(pool=pool, capture_error_mode="thread_local")

    @staticmethod
    @contextlib.contextmanager
    def capture_context(
        graph: Any, stream: Any, pool: Any = None, capture_error_mode: str = "thread_local"
    ) -> Any:
        # torch.accelerator.Graph has had its pool and its mode since it was made.
        with stream, graph:
            yield
"""

_CUDA_OPERATIONS = """
    graph_pool_handle = staticmethod(torch.cuda.graph_pool_handle)
    memory_snapshot = staticmethod(torch.cuda.memory_snapshot)

    @staticmethod
    def begin_allocate_current_thread_to_pool(device: int, pool: Any) -> None:
        torch._C._cuda_beginAllocateCurrentThreadToPool(device, pool)

    @staticmethod
    def end_allocate_to_pool(device: int, pool: Any) -> None:
        torch._C._cuda_endAllocateToPool(device, pool)

    @staticmethod
    def release_pool(device: int, pool: Any) -> None:
        torch._C._cuda_releasePool(device, pool)

    @staticmethod
    def get_checkpoint_state(device: int, pool: Any) -> Any:
        return torch._C._cuda_getCheckpointState(device, pool)

    @staticmethod
    def set_checkpoint_pool_state(
        device: int, state: Any, stale_storages: Any, storages_to_add_deleters_to: Any
    ) -> None:
        torch._C._cuda_setCheckpointPoolState(
            device, state, stale_storages, storages_to_add_deleters_to
        )

    @staticmethod
    def check_pool_live_allocations(
        device: int, pool: Any, expected_live_allocations: Any
    ) -> bool:
        return torch._C._cuda_checkPoolLiveAllocations(
            device, pool, expected_live_allocations
        )

    @staticmethod
    def raw_delete(ptr: int) -> None:
        torch._C._cuda_cudaCachingAllocator_raw_delete(ptr)

    @staticmethod
    @contextlib.contextmanager
    def prepare_for_capture() -> Any:
        # Graph trees do not call this: their warm-up needs both parts, their recording one.
        torch._C._cuda_clearCublasWorkspaces()
        before = torch._C._cuda_get_conv_benchmark_empty_cache()
        torch._C._cudnn_set_conv_benchmark_empty_cache(False)
        try:
            yield
        finally:
            torch._C._cudnn_set_conv_benchmark_empty_cache(before)
            torch._C._cuda_clearCublasWorkspaces()

    @staticmethod
    def create_graph() -> Any:
        return torch.cuda.CUDAGraph()

    @staticmethod
    @contextlib.contextmanager
    def capture_context(
        graph: Any, stream: Any, pool: Any = None, capture_error_mode: str = "thread_local"
    ) -> Any:
        more = {} if pool is None else {"pool": pool}
        with torch.cuda.graph(
            graph, stream=stream, capture_error_mode=capture_error_mode, **more
        ):
            yield
"""

RULES = [
    Insert("capability bit, base", "PR-2", "DeviceInterface", "end", """
        @classmethod
        def is_graph_capture_supported(cls) -> bool:
            return False
        """),
    Insert("capability bit, CUDA", "PR-2", "CudaInterface", "end", """
        @classmethod
        def is_graph_capture_supported(cls) -> bool:
            # CUDA captures by torch.cuda.CUDAGraph and is not in the registry of graph
            # implementations, so the registry cannot be asked.
            return True
        """),
    Insert("capability bit, XPU", "PR-2", "XpuInterface", "end", """
        @classmethod
        def is_graph_capture_supported(cls) -> bool:
            # A build without the binding has no way to tell.
            has_impl = getattr(torch._C, "_accelerator_hasGraphImpl", None)
            return has_impl is not None and has_impl("xpu")
        """),
    Insert("default generators, base", "PR-3", "DeviceInterface", "end", """
        @staticmethod
        def default_generators() -> Any:
            raise NotImplementedError
        """),
    Insert("default generators, CUDA", "PR-3", "CudaInterface", "end", """
        @staticmethod
        def default_generators() -> Any:
            return torch.cuda.default_generators
        """),
    Insert("default generators, XPU", "PR-3", "XpuInterface", "end", """
        @staticmethod
        def default_generators() -> Any:
            return torch.xpu.default_generators
        """),
    Insert("the import that context managers need", "PR-3", "", "before", "import contextlib",
           fragment="import inspect"),
    Insert("GraphOps, base: what the gate asks", "PR-3", "DeviceInterface", "end", """
        class GraphOps:
            \"\"\"What the capture of graphs needs of a device beyond streams and events.\"\"\"

            @staticmethod
            def caching_allocator_enabled() -> bool:
                return True
        """),
    Insert("GraphOps, CUDA: what the gate asks", "PR-3", "CudaInterface", "end", """
        class GraphOps(DeviceInterface.GraphOps):
            @staticmethod
            def caching_allocator_enabled() -> bool:
                return torch._C._cuda_cudaCachingAllocator_is_enabled()
        """),
    Insert("GraphOps, base", "PR-4", "DeviceInterface", "end", _BASE_OPERATIONS, depth=1),
    Insert("GraphOps, CUDA", "PR-4", "CudaInterface", "end", _CUDA_OPERATIONS, depth=1),
]
