# SPDX-License-Identifier: Apache-2.0
"""The way to the trees: torch/_inductor/compile_fx.py with the path that needs no trees,
torch/_inductor/output_code.py, which knows the device of what it wraps, and torch/_dynamo/__init__.py, which resets."""
from .edit import Argument, Fork, Insert, Parameter, Replace, Statement, since, until

COMPILE = "torch/_inductor/compile_fx.py"
OUTPUT = "torch/_inductor/output_code.py"
RESET = "torch/_dynamo/__init__.py"

_SIMPLE = "cudagraphify_impl"

_COMPILE = [
    Parameter("cudagraphify: device", "PR-5a", "cudagraphify", "device: torch.device | None = None"),
    Argument("cudagraphify: device, to the trees", "PR-5a", "cudagraphify", "functools.partial", "device=device",
             first="new_cudagraphify_impl"),
    Insert("without trees: generators", "PR-5a", _SIMPLE, "above", '''
        @contextlib.contextmanager
        def _preserve_device_generators(di: Any, device_type: str) -> Generator[None, None, None]:
            """Puts the generators of a device back to where they were before a warm-up. Those of CUDA and XPU are
            preserved around the whole of warm-up and recording."""
            try:
                generators = () if device_type in ("cuda", "xpu") else di.default_generators()
            except NotImplementedError:
                generators = ()
            states = [generator.get_state() for generator in generators]
            try:
                yield
            finally:
                for generator, state in zip(generators, states):
                    generator.set_state(state)
        '''),
    Insert("without trees: interface", "PR-5a", _SIMPLE, "before", """
        from torch._inductor.cudagraph_trees import (
            _graph_device_interface,
            _graph_device_type,
        )

        device_type = _graph_device_type(inputs)
        di = _graph_device_interface(device_type)
        """, fragment="check_input_idxs = get_input_idxs_to_check("),
    Replace("without trees: synchronise", "PR-5a", _SIMPLE, "torch.cuda.synchronize()", "di.synchronize()", count=2),
    Replace("without trees: a stream", "PR-5a", _SIMPLE, "torch.cuda.Stream()", "di.Stream()"),
    Replace("without trees: the current stream", "PR-5a", _SIMPLE, "torch.cuda.current_stream()", "di.current_stream()",
            count=2),
    Replace("without trees: warm-up", "PR-5a", _SIMPLE, "torch.cuda.stream(stream)",
            "di.stream(stream), _preserve_device_generators(di, device_type)"),
]

_MODEL = "    static_outputs = model(list(static_inputs))\n"
_CAPTURES = {
    "kept": Fork("without trees: graph", "PR-5b", _SIMPLE, "graph = torch.cuda.CUDAGraph()", 'device_type == "cuda"',
                 'graph = torch.accelerator.Graph(capture_error_mode="thread_local")\n'
                 "with di.stream(stream), graph:\n" + _MODEL,
                 last="torch.cuda.graph("),
    "contract": Statement("without trees: graph", "PR-5b", _SIMPLE, "graph = torch.cuda.CUDAGraph()",
                          "graph = di.GraphOps.make_graph(None)\nwith di.stream(stream), graph:\n" + _MODEL,
                          last="torch.cuda.graph("),
    "duck": Statement("without trees: graph", "PR-5b", _SIMPLE, "graph = torch.cuda.CUDAGraph()",
                      "graph = di.GraphOps.create_graph()\nwith di.GraphOps.capture_context(graph, stream):\n" + _MODEL,
                      last="torch.cuda.graph("),
}

OUTPUT_RULES = [
    Insert("device of a compiled graph", "PR-5a", "cudagraph_post_compile", "above", '''
        def _graph_device(compiled_graph: CompiledFxGraph) -> torch.device | None:
            """The one device that a compiled graph is for, or None where it names several or none."""
            types = OrderedSet(
                name for name in compiled_graph.device_types if name not in ("cpu", "meta")
            )
            if len(types) != 1:
                return None
            return torch.device(next(iter(types)), next(iter(compiled_graph.device_idxs)))
        '''),
    Argument("device, whole graph", "PR-5a", "cudagraph_post_compile", "dict", "device=_graph_device(compiled_graph)"),
    Argument("device, a partition", "PR-5a", "cudagraph_partition_post_compile", "partial",
             "device=_graph_device(compiled_graph)"),
]

RESET_RULES = [
    Replace("reset of trees", "PR-5a", "reset", "torch.cuda.is_available()", "torch.accelerator.is_available()",
            count=until("2.13")),
    Replace("reset of trees", "PR-5a", "reset", "torch.cuda.is_initialized()", "torch.accelerator.is_available()",
            count=since("2.14")),
]


def compile_rules(variant):
    return [*_COMPILE, _CAPTURES[variant]]
