# SPDX-License-Identifier: Apache-2.0
"""The gates of torch/_inductor/cudagraph_utils.py, and ir.py's states of generators, by what a device's interface
says."""
import re

from .edit import Argument, Insert, Parameter, Replace, Statement, since, until

UTILS = "torch/_inductor/cudagraph_utils.py"
IR = "torch/_inductor/ir.py"
BACKEND = "torch/_dynamo/backends/cudagraphs.py"

_HAS_ALLOCATOR_GATE = since("2.13")

UTILS_RULES = [
    Insert("helpers", "PR-3", "check_multiple_devices_or_any_cpu_nodes", "above", '''
        def _graph_interface(device_type: str | None) -> Any:
            """The interface of a type of device, or None where there is none."""
            from torch._dynamo.device_interface import get_interface_for_device

            try:
                return None if device_type is None else get_interface_for_device(device_type)
            except NotImplementedError:
                return None


        def _graph_capture_supported(device_type: str) -> bool:
            """Whether a device can capture graphs: what has no interface cannot, and is skipped."""
            di = _graph_interface(device_type)
            return di is not None and di.is_graph_capture_supported()


        def _graph_device_of(device_node_mapping: Any) -> str | None:
            """Type of the one device that a graph is for, else of the current accelerator, else None."""
            types = OrderedSet(
                device.type
                for device in device_node_mapping or ()
                if device.type not in ("cpu", "meta")
            )
            if len(types) == 1:
                return next(iter(types))
            current = torch.accelerator.current_accelerator()
            return None if current is None else current.type
        '''),
    Replace("one device that can capture", "PR-3", "check_multiple_devices_or_any_cpu_nodes",
            re.compile(r'(next\(iter\(device_node_mapping\.keys\(\)\)\)\.type)\s+== "cuda"'),
            r"_graph_capture_supported(\1)", count=until("2.14")),
    # From 2.15 on the types are a set.
    Replace("one device that can capture, of a set", "PR-3", "check_multiple_devices_or_any_cpu_nodes",
            re.compile(r"(next\(iter\(device_node_mapping\)\)\.type) in _CUDAGRAPH_SUPPORTED_DEVICE_TYPES"),
            r"_graph_capture_supported(\1)", count=since("2.15")),
    Parameter("the allocator gate's devices", "PR-3", "check_caching_allocator_for_cudagraphs",
              "device_node_mapping: Any = None", count=_HAS_ALLOCATOR_GATE),
    Insert("the allocator gate's interface", "PR-3", "check_caching_allocator_for_cudagraphs", "top", """
        di = _graph_interface(_graph_device_of(device_node_mapping))
        if di is None:
            return None
        """, count=_HAS_ALLOCATOR_GATE),
    Replace("the allocator gate: available", "PR-3", "check_caching_allocator_for_cudagraphs",
            "torch.cuda.is_available()",
            "di.is_available()", count=_HAS_ALLOCATOR_GATE),
    Replace("the allocator gate: cached", "PR-3", "check_caching_allocator_for_cudagraphs",
            "torch._C._cuda_cudaCachingAllocator_is_enabled()", "di.GraphOps.caching_allocator_enabled()",
            count=_HAS_ALLOCATOR_GATE),
    Argument("the allocator gate is told the devices", "PR-3", "check_lowering_disable_cudagraph",
             "check_caching_allocator_for_cudagraphs", "device_node_mapping", count=_HAS_ALLOCATOR_GATE),
]

_SCOPE = "ExternKernel.process_kernel"

IR_RULES = [
    # Both places: among the flattened arguments, and among the inputs of the example.
    Statement("a generator's device has an index", "PR-3", _SCOPE,
              re.compile(r'(\w+)\.device\.type == "cuda" and device_index is not None'), r"""
        if device_index is None:
            raise AssertionError("Expected GeneratorState device_index is not None")
        from torch._dynamo.device_interface import get_interface_for_device

        default_generators = get_interface_for_device(\1.device.type).default_generators()
        """, count=until("2.13", 2)),
    Replace("the device's generators", "PR-3", _SCOPE, "torch.cuda.default_generators", "default_generators",
            count=until("2.13", 2)),
    # From 2.14 on two types are known, and the generator is the current accelerator's: another one's than the state's,
    # where a process has two.
    Statement("a generator's device has an index (two types known)", "PR-3", _SCOPE,
              re.compile(r'(\w+)\.device\.type in \["cuda", "xpu"\] and device_index is not None'), r"""
        if device_index is None:
            raise AssertionError("Expected GeneratorState device_index is not None")
        from torch._dynamo.device_interface import get_interface_for_device

        default_generators = get_interface_for_device(\1.device.type).default_generators()
        """, count=since("2.14", 2)),
    Replace("the device's generators, not the accelerator's", "PR-3", _SCOPE,
            re.compile(r"torch\._C\._accelerator_getDefaultGenerator\(\s*device_index\s*\)"),
            "default_generators[device_index]", count=since("2.14", 2)),
]
