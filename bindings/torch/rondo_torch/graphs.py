# SPDX-License-Identifier: Apache-2.0
"""Graphs for users of `torch.rondo`, with the conventions of torch.cuda, and who else can capture.

Imports neither Dynamo nor Inductor.
"""
import copy
import gc
import json
import types

import torch
from torch.utils import _pytree as pytree

from . import _C


def has_graph_impl(device_type=None):
    """Whether a graph implementation is registered for the type of device; None stands for the current accelerator.

    The answer is the registry's: False for CUDA, which has a path of its own and can capture all the same.
    """
    if device_type is None:
        accelerator = torch.accelerator.current_accelerator()
        if accelerator is None:
            raise RuntimeError("Cannot access accelerator device when none is available.")
        device_type = accelerator.type
    return _C.has_graph_impl(device_type)


def install():
    """Binds the question where PyTorch has no such binding yet."""
    if not hasattr(torch._C, "_accelerator_hasGraphImpl"):
        torch._C._accelerator_hasGraphImpl = has_graph_impl


def graph_pool_handle():
    """An id for a pool of one's own, for graphs that share it."""
    return _C.graph_pool_handle()


def memory_snapshot(mempool_id=None):
    """Segments of all devices with their blocks, as dictionaries with PyTorch's field names; or those of one pool."""
    segments = []
    for index in range(_C.device_count()):
        for segment in json.loads(_C.memory_snapshot(index))["segments"]:
            segment["segment_pool_id"] = tuple(segment["segment_pool_id"])
            if mempool_id is None or segment["segment_pool_id"] == tuple(mempool_id):
                segments.append(segment)
    return segments


class RondoGraph(torch._C._acceleratorGraph):
    """A graph as torch.cuda.CUDAGraph: pool and mode are told to `capture_begin`. Any stream may replay it."""

    def __new__(cls, keep_graph=False):
        return super().__new__(cls, keep_graph)

    def __init__(self, keep_graph=False):
        super().__init__(keep_graph)

    def capture_begin(self, pool=None, capture_error_mode="global"):
        super().capture_begin(pool=pool, capture_error_mode=capture_error_mode)

    def register_generator_state(self, generator):
        """Generators join a capture when they are used in it: nothing is to be done for one of this device."""
        if generator.device.type != "rondo":
            raise ValueError(f"a graph of rondo has no use for a generator of {generator.device}")


class graph:
    """Context manager that captures into a graph, on the stream given or one that all captures of a device share.

    `rondo_graph` is a RondoGraph, or a torch.accelerator.Graph, whose pool and mode are then set here.
    """

    _default_streams = {}  # by device

    def __init__(self, rondo_graph, pool=None, stream=None, capture_error_mode="global"):
        if not isinstance(rondo_graph, torch._C._acceleratorGraph):
            raise TypeError(f"torch.rondo.graph captures into a RondoGraph, not a {type(rondo_graph).__name__}")
        self.graph, self.pool, self.capture_error_mode = rondo_graph, pool, capture_error_mode
        index = _C.current_device()
        if stream is None:
            if index not in self._default_streams:
                self._default_streams[index] = torch.Stream(device=torch.device("rondo", index))
            stream = self._default_streams[index]
        self.capture_stream = stream

    def __enter__(self):
        torch.accelerator.synchronize()
        if torch.compiler.config.force_cudagraph_gc:
            gc.collect()
        torch.accelerator.empty_cache()
        torch.accelerator.empty_host_cache()
        self.capture_stream.__enter__()
        try:
            if isinstance(self.graph, torch.accelerator.Graph):
                self.graph.graph_pool, self.graph.capture_error_mode = self.pool, self.capture_error_mode
                self.graph.capture_begin()
            else:
                self.graph.capture_begin(pool=self.pool, capture_error_mode=self.capture_error_mode)
        except BaseException:
            self.capture_stream.__exit__(None, None, None)
            raise

    def __exit__(self, *exception):
        try:
            self.graph.capture_end()
        finally:
            self.capture_stream.__exit__(*exception)


class _Graphed:
    """One callable: its arguments and parameters at fixed addresses, and the graphs of its forward and backward."""

    def __init__(self, function, sample, allow_unused_input):
        self.function = function
        self.allow_unused_input = allow_unused_input
        self.sample = sample
        self.arguments, self.structure = pytree.tree_flatten(sample)
        self.parameters = tuple(function.named_parameters()) if isinstance(function, torch.nn.Module) else ()
        self.surface = (*self.arguments, *(parameter for _, parameter in self.parameters))
        self.forward_graph, self.backward_graph = RondoGraph(), RondoGraph()
        self.addresses = [parameter.data_ptr() for _, parameter in self.parameters]
        self.outputs, self.differentiable, self.output_structure = (), (), None
        self.output_gradients, self.input_gradients = (), ()

    @property
    def name(self):
        return getattr(self.function, "__name__", type(self.function).__name__)

    def check(self):
        """What cannot be graphed, by name."""
        for number, argument in enumerate(self.arguments):
            if not isinstance(argument, torch.Tensor):
                raise TypeError(f"{self.name}: sample_args must contain only tensors; leaf {number} is a "
                                f"{type(argument).__name__}")
        module = self.function if isinstance(self.function, torch.nn.Module) else None
        if module is not None:
            if module._backward_hooks or module._forward_hooks or module._forward_pre_hooks:
                raise ValueError(f"{self.name}: modules must not have hooks when they are passed; registering hooks "
                                 "afterwards is allowed")
            for name, buffer in module.named_buffers():
                if buffer.requires_grad:
                    raise ValueError(f"{self.name}: only parameters may be trainable; the buffer {name} requires grad")
        for tensor in self.surface:
            if tensor.device.type != "rondo":
                raise ValueError(f"{self.name}: arguments and parameters must be on the device rondo; one is on "
                                 f"{tensor.device}")

    def run_forward(self):
        leaves, self.output_structure = pytree.tree_flatten(self.function(*self.sample))
        for number, leaf in enumerate(leaves):
            if not isinstance(leaf, torch.Tensor):
                raise TypeError(f"{self.name}: a graphed callable returns only tensors; leaf {number} of what it "
                                f"returned is a {type(leaf).__name__}")
        self.outputs = tuple(leaves)

    def run_backward(self):
        """Gradients of what requires them, None for the rest, in the order of the surface."""
        wanted = [tensor for tensor in self.surface if tensor.requires_grad]
        pairs = [(o, g) for o, g in zip(self.outputs, self.output_gradients) if g is not None]
        got = iter(torch.autograd.grad([o for o, _ in pairs], wanted, [g for _, g in pairs], only_inputs=True,
                                       allow_unused=self.allow_unused_input))
        self.input_gradients = tuple(next(got) if tensor.requires_grad else None for tensor in self.surface)

    def prepare_backward(self):
        """Whether there is one."""
        self.output_gradients = tuple(torch.empty_like(o) if o.requires_grad else None for o in self.outputs)
        return any(g is not None for g in self.output_gradients) and any(t.requires_grad for t in self.surface)

    def warm_up(self, times):
        for _ in range(times):
            self.run_forward()
            if self.prepare_backward():
                self.run_backward()
        self.outputs, self.output_gradients, self.input_gradients = (), (), ()

    def finish(self):
        """Lets go of autograd's graph of the capture, which would tie the parameters to the stream of the capture."""
        self.differentiable = tuple(output.requires_grad for output in self.outputs)
        self.outputs = tuple(output.detach() for output in self.outputs)

    def copy_in(self, tensors):
        for number, (fixed, tensor) in enumerate(zip(self.arguments, tensors)):
            if (tensor.shape, tensor.dtype, tensor.device) != (fixed.shape, fixed.dtype, fixed.device):
                raise ValueError(f"{self.name}: argument leaf {number} is {_describe(tensor)}; the graph was captured "
                                 f"with {_describe(fixed)}")
            if fixed.data_ptr() != tensor.data_ptr():
                fixed.copy_(tensor)
        for (name, _), address, tensor in zip(self.parameters, self.addresses, tensors[len(self.arguments):]):
            if tensor.data_ptr() != address:
                raise RuntimeError(f"{self.name}: the parameter {name} has other memory than when the graph was "
                                   "captured")

    def __call__(self, *arguments):
        leaves, structure = pytree.tree_flatten(arguments)
        if structure != self.structure or not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            raise TypeError(f"{self.name}: the arguments are not built as sample_args were: {structure} with "
                            f"{[type(leaf).__name__ for leaf in leaves]}; expected tensors in {self.structure}")
        parameters = ()
        if self.parameters:
            parameters = tuple(parameter for _, parameter in self.function.named_parameters())
        return pytree.tree_unflatten(_Replay.apply(self, *leaves, *parameters), self.output_structure)


class _Replay(torch.autograd.Function):
    """Forward and backward of a graphed callable: copy in, replay."""

    @staticmethod
    def forward(ctx, graphed, *tensors):
        graphed.copy_in(tensors)
        graphed.forward_graph.replay()
        ctx.graphed = graphed
        outputs = tuple(output.detach() for output in graphed.outputs)
        ctx.mark_non_differentiable(*(o for o, can in zip(outputs, graphed.differentiable) if not can))
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        graphed = ctx.graphed
        for fixed, gradient in zip(graphed.output_gradients, gradients):
            if fixed is not None and fixed.data_ptr() != gradient.data_ptr():
                fixed.copy_(gradient)
        graphed.backward_graph.replay()
        return (None, *(None if g is None else g.detach() for g in graphed.input_gradients))


def _describe(tensor):
    return f"{tensor.dtype} {tuple(tensor.shape)} on {tensor.device}"


class _GraphedForward:
    """A module's forward: its graph in the mode it was captured in, training or not, and what it was in the other."""

    def __init__(self, module, graphed):
        self.module, self.graphed = module, graphed
        self.captured_in, self.plain = module.training, module.forward

    def __call__(self, *arguments, **named):
        if self.module.training != self.captured_in:
            return self.plain(*arguments, **named)
        if named:
            raise TypeError(f"{self.graphed.name}: a graphed module takes no keyword arguments, got {', '.join(named)}")
        return self.graphed(*arguments)

    def __deepcopy__(self, memo):
        """A copy of the module has parameters of its own, which are in no graph: it runs as the module did before."""
        return copy.deepcopy(self.plain, memo)

    def __reduce__(self):
        if not isinstance(self.plain, types.MethodType):
            raise TypeError(f"{self.graphed.name}: a graphed module whose forward was replaced by another function cannot be "
                            "pickled: save its state_dict()")
        return self.plain.__reduce__()


def _graph_forward(module, graphed):
    module.forward = _GraphedForward(module, graphed)
    return module


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """Functions or modules whose forward and backward are replays of graphs, as torch.cuda.make_graphed_callables.

    One callable with a tuple of sample arguments, or a tuple of callables with a tuple of such tuples, in the order in
    which they will run: they share a pool. Modules are returned themselves.
    """
    if torch.is_autocast_enabled("rondo") and torch.is_autocast_cache_enabled():
        raise RuntimeError("make_graphed_callables does not support the autocast caching. Please set "
                           "`cache_enabled=False`.")
    if num_warmup_iters < 0:
        raise ValueError(f"num_warmup_iters is a count, not {num_warmup_iters}")
    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    if len(callables) != len(sample_args):
        raise ValueError(f"{len(callables)} callables need as many tuples of sample arguments, not {len(sample_args)}")
    for sample in sample_args:
        if not isinstance(sample, tuple):
            raise TypeError(f"sample arguments of a callable are a tuple, not a {type(sample).__name__}")
    every = [_Graphed(function, sample, allow_unused_input) for function, sample in zip(callables, sample_args)]
    for graphed in every:
        graphed.check()
    pool = graph_pool_handle() if pool is None else pool
    torch.accelerator.synchronize()
    with torch.Stream(device=torch.device("rondo", _C.current_device())) as stream:
        for graphed in every:
            graphed.warm_up(num_warmup_iters)
        stream.synchronize()
    for graphed in every:
        with graph(graphed.forward_graph, pool=pool):
            graphed.run_forward()
    for graphed in reversed(every):
        if graphed.prepare_backward():
            with graph(graphed.backward_graph, pool=pool):
                graphed.run_backward()
    for graphed in every:
        graphed.finish()
    made = tuple(_graph_forward(graphed.function, graphed) if isinstance(graphed.function, torch.nn.Module) else graphed
                 for graphed in every)
    return made[0] if single else made
