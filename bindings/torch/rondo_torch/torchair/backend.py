# SPDX-License-Identifier: Apache-2.0
"""What `torch.compile` gets. Dynamo is imported by the first compilation, and not before."""
import time
import weakref

from .config import CompilerConfig


def load_operators(path):
    """Registers the operators of a shared library (docs/operators.md): their names are then known to ge.custom_op."""
    from .. import _C

    _C.operator_load(str(path))


class Backend:
    """A backend for `torch.compile`. `graphs` are the graphs compiled with it that are still in use, oldest first."""

    def __init__(self, compiler_config=None, custom_decompositions=None, name="rondo"):
        if compiler_config is not None and not isinstance(compiler_config, CompilerConfig):
            raise TypeError(f"compiler_config must be a CompilerConfig, not a {type(compiler_config).__name__}")
        self.config = compiler_config or CompilerConfig()
        self.custom_decompositions = dict(custom_decompositions or {})
        self.__name__ = name
        self.compilations = 0  # graphs that Dynamo has asked for
        self._graphs = []

    def __repr__(self):
        return f"<rondo_torch.torchair backend, {len(self.graphs)} graphs>"

    def __getstate__(self):
        """Of a copy, or in a file: what it is told, and none of its graphs."""
        return dict(self.__dict__, compilations=0, _graphs=[])

    def __call__(self, gm, example_inputs, *, options=None, **kwargs):
        if kwargs:
            raise TypeError(f"torch.compile(backend=\"{self.__name__}\") has no {', '.join(sorted(kwargs))}; it takes "
                            "options, or a backend of get_npu_backend with a CompilerConfig")
        from .compile import compile_graph, config_with

        self.compilations += 1
        return compile_graph(self, config_with(self.config, options), gm, example_inputs)

    def keep(self, graph):
        self._graphs = [one for one in self._graphs if one() is not None] + [weakref.ref(graph)]

    @property
    def graphs(self):
        return [graph for graph in (one() for one in self._graphs) if graph is not None]

    def profile(self):
        """Where the time of this backend's graphs went so far."""
        from .profile import Profile

        return Profile(self.graphs)

    def export_model(self, path, index=-1):
        """Writes a graph that has run as an offline file, which `rondo run PATH` runs; its parameters are in it."""
        graphs = [graph for graph in self.graphs if not graph.is_backward]
        if not graphs:
            raise RuntimeError("export_model: nothing has been compiled with this backend that is still in use; call the "
                               "compiled model once, and keep it")
        graphs[index].export_model(path)


def get_npu_backend(*, compiler_config=None, custom_decompositions=None):
    """A backend for `torch.compile`, for tensors of the host and of the devices `rondo` and `npu`."""
    return Backend(compiler_config, custom_decompositions, name="npu")


_default = Backend()


def rondo(gm, example_inputs, **kwargs):
    """`torch.compile(model, backend="rondo")`: found through the entry point `torch_dynamo_backends`."""
    return _default(gm, example_inputs, **kwargs)


rondo.backend = _default


def get_compiler(compiler_config=None):
    """The compiler of ATen graphs alone, for who brings an AOTAutograd of their own: `aot_module_simplified(gm, inputs,
    fw_compiler=get_compiler(config))`."""
    backend = Backend(compiler_config)

    def compiler(gm, example_inputs):
        from .compile import compile_aten

        backend.compilations += 1
        return compile_aten(backend, backend.config, gm, example_inputs)

    compiler.backend = backend
    return compiler


def export_model(path, model, *args, **kwargs):
    """Compiles `model` for these arguments, and writes the whole as an offline file, which `rondo run PATH` runs. The
    model's parameters are in the file as they are now; its inputs are the tensors among the arguments."""
    import torch

    config = CompilerConfig()
    config.fallback = "error"
    backend = Backend(config)
    with torch.no_grad():
        compiled = torch.compile(model, backend=backend, fullgraph=True, dynamic=False)
        compiled(*args, **kwargs)
    backend.export_model(path)


class Model:
    """An offline file as a function of tensors of one device, in the order of `input_names`. Returns its outputs."""

    def __init__(self, plan):
        self.plan, self.input_names = plan, plan.input_names

    def __call__(self, *tensors):
        outputs = self.plan.run(tensors)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def load_model(path, device="cpu"):
    """Opens an offline file, of export_model or of the tool, for tensors of the host or of a device `rondo` or `npu`."""
    import torch

    from .. import _C

    place = torch.device(device)
    if place.type == "npu":
        from ..npu import use_streams

        why = use_streams()
        if why:
            raise RuntimeError(f"load_model: {why}")
    elif place.type not in ("cpu", "rondo"):
        raise RuntimeError(f"load_model: {place} is neither the host nor a device of Rondo's")
    return Model(_C.Plan(str(path), -1 if place.type == "cpu" else place.index or 0))


def clock():
    return time.perf_counter_ns()
