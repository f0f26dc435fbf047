# SPDX-License-Identifier: Apache-2.0
"""From Dynamo's graph through AOTAutograd to partitions: those that Rondo runs, and between them what PyTorch runs."""
import copy
import logging
import operator
import re

import torch

from .. import _C
from . import converters, decompositions  # noqa: F401
from .backend import clock
from .builder import Conversion, Like, concrete_values
from .registry import ConversionError, find
from .runtime import Graph

log = logging.getLogger("rondo_torch.torchair")


def config_with(config, options):
    """`options` of torch.compile are names of CompilerConfig, or of one of its sections."""
    if not options:
        return config
    made = copy.deepcopy(config)
    for name, value in options.items():
        places = [one for one in (made, made.debug, made.experimental_config, made.ge_config) if name in one._table]
        if not places:
            known = sorted({known for one in (made, made.debug, made.experimental_config, made.ge_config)
                            for known in one._table})
            raise ValueError(f"torch.compile(backend=\"rondo\") has no option '{name}'; there are: {', '.join(known)}")
        setattr(places[0], name, value)
    return made


def is_fullgraph():
    """Whether Dynamo was told fullgraph=True for what it compiles now."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    try:
        translator = InstructionTranslator.current_tx()
    except AttributeError:  # nobody traces now
        return False
    return bool(getattr(translator, "one_graph", False))


def _source_names(gm):
    """What Dynamo's inputs are called in the program."""
    names = []
    for node in gm.graph.nodes:
        if node.op != "placeholder":
            continue
        source = getattr(node, "_dynamo_source", None)
        text = source.name() if callable(getattr(source, "name", None)) else getattr(source, "name", None)
        found = re.fullmatch(r"L\['(\w+)'\]", text) if isinstance(text, str) else None
        names.append(found.group(1) if found else node.name)
    return names


def compile_graph(backend, config, gm, example_inputs):
    from torch._dynamo.backends.common import aot_autograd

    if config.debug.run_eagerly:
        return gm
    names, whole = _source_names(gm), is_fullgraph()

    def forward(module, inputs):
        return compile_aten(backend, config, module, inputs, names=names, fullgraph=whole, frozen=False)

    def inference(module, inputs):
        return compile_aten(backend, config, module, inputs, names=names, fullgraph=whole)

    def backward(module, inputs):
        return compile_aten(backend, config, module, inputs, backward=True, frozen=False)

    return aot_autograd(fw_compiler=forward, bw_compiler=backward, inference_compiler=inference,
                        decompositions=decompositions.table(backend.custom_decompositions))(gm, example_inputs)


# ---------------------------------------------------------------------------------------------------------- survey


def _static_inputs():
    """Which inputs are parameters and buffers, by AOTAutograd."""
    context = torch._guards.TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    return tuple(getattr(metadata, "static_input_indices", None) or ())


def _symbolic(value):
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return True
    return isinstance(value, torch.Tensor) and any(isinstance(one, torch.SymInt)
                                                   for one in (*value.shape, *value.stride()))


def _hinted(value):
    def number(one):
        return one.node.hint if isinstance(one, (torch.SymInt, torch.SymFloat, torch.SymBool)) else one

    if not isinstance(value, torch.Tensor):
        return number(value)
    shape, stride = [[number(one) for one in part] for part in (value.shape, value.stride())]
    if None in shape or None in stride:
        return None
    return Like(shape, stride, value.dtype, value.device)


def values_of(module):
    """(the fake value of each node with every size a number, whether sizes may change), or (None, True) where they are
    known only when the graph runs."""
    known = {node: node.meta.get("val") for node in module.graph.nodes}
    flat = torch.utils._pytree.tree_leaves(list(known.values()))
    if not any(_symbolic(one) for one in flat):
        return known, False
    inputs = [_hinted(known[node]) for node in module.graph.nodes if node.op == "placeholder"]
    if any(one is None for one in inputs):
        return None, True
    try:
        return concrete_values(module, inputs), True
    except Exception as error:  # sizes that depend on data have no number yet
        log.debug("sizes are not known before the graph runs: %s", error)
        return None, True


def device_of(module):
    """The device that the graph computes on: the first that is not the host, else the host."""
    host = torch.device("cpu")
    for node in module.graph.nodes:
        for one in torch.utils._pytree.tree_leaves(node.meta.get("val")):
            if isinstance(one, torch.Tensor) and one.device.type != "cpu":
                return one.device
    return host


def why_no_kernels(device):
    """Why Rondo runs nothing on that device, or ""."""
    if device.type in ("cpu", "rondo"):
        return ""
    if device.type != "npu":
        return f"{device} is no device of Rondo's"
    from .. import npu

    why = npu.use_streams()
    if why:
        return why
    if not _C.npu_runs_host_kernels(device.index):
        return (f"{device} runs no kernels of Rondo's catalogues: a device's own library takes binaries alone, and there is "
                "no catalogue of those yet")
    return ""


def _compute_nodes(module):
    return [node for node in module.graph.nodes if node.op == "call_function" and isinstance(
        node.target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator))]


def _without_sizes(module):
    """What is refused where sizes depend on data: what has no converter, and what brings in such a size."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    refused, known = {}, set()
    for node in _compute_nodes(module):
        tensors = [one for one in torch.utils._pytree.tree_leaves(node.meta.get("val")) if _symbolic(one)]
        fresh = set().union(*map(free_unbacked_symbols, tensors)) - known
        known |= fresh
        if find(node.target) is None:
            refused[node] = ("converter", "no converter is registered for it")
        elif fresh:
            refused[node] = ("meta", "how large its result is depends on data")
    return refused


def survey(module, values, device, config):
    """({node: (layer, why)} of what Rondo cannot compile, the conversion and the plan where that is nothing)."""
    refused = {}
    while True:
        conversion = Conversion(module, values, device=device, refused=refused).run()
        try:
            plan = conversion.plan(config)
        except (NotImplementedError, RuntimeError) as error:
            node = _named_in(module, str(error), refused)
            if node is None:
                raise
            refused[node] = ("kernel" if isinstance(error, NotImplementedError) else "meta", str(error).splitlines()[0])
            continue
        return refused, (conversion, plan)


def _named_in(module, text, refused):
    """The FX node that an error of Rondo's names: its own nodes are called NODE.NUMBER."""
    named = re.findall(r"'([A-Za-z_0-9]+)\.\d+'", text)
    for node in module.graph.nodes:
        if node.name in named and node not in refused and node.op == "call_function":
            return node
    return None


def explain(refused):
    lines = []
    for node, (layer, why) in refused.items():
        place = (node.meta.get("stack_trace") or "").strip().splitlines()
        where = f", {place[-2].strip()}" if len(place) > 1 else ""
        why = why if why.startswith(f"{layer}:") else f"{layer}: {why}"
        lines.append(f"  {node.target} (node {node.name}{where}): {why}")
    return "\n".join(lines)


# --------------------------------------------------------------------------------------------------------- compile


def _refuse(refused, why):
    count = "1 node" if len(refused) == 1 else f"{len(refused)} nodes"
    first = next(iter(refused.values()))[0]
    text = f"rondo cannot compile {count} of this graph, and {why}:\n{explain(refused)}"
    error = ConversionError(first, text)
    raise error


def compile_aten(backend, config, module, example_inputs, *, names=None, backward=False, fullgraph=False, frozen=True):
    """The callable for a graph of ATen's operators."""
    from torch.utils._python_dispatch import _disable_current_modes

    begin = clock()
    with _disable_current_modes():  # constants are true tensors here
        graph = _compile(config, module, names, backward, fullgraph, frozen)
    graph.compile_ns = clock() - begin
    backend.keep(graph)

    def run(args):
        return graph(args)

    run._boxed_call = True  # AOTAutograd gives a list, and expects it to be emptied
    run.graph = graph
    return run


def _compile(config, module, names, backward, fullgraph, frozen):
    graph = Graph(module, config, names=names, backward=backward)
    graph.static_inputs = () if backward else _static_inputs()
    device = graph.device = device_of(module)
    values, graph.dynamic = values_of(module)
    ready, why = None, why_no_kernels(device)
    if why:
        refused = {node: ("kernel", why) for node in _compute_nodes(module)}
    elif values is None:
        refused = _without_sizes(module)
    else:
        refused, ready = survey(module, values, device, config)
    graph.refused = {node.name: (str(node.target), *why) for node, why in refused.items()}
    if refused and config.fallback == "error":
        _refuse(refused, "CompilerConfig.fallback is 'error'")
    if refused and fullgraph and config.fallback == "auto":
        _refuse(refused, "fullgraph=True allows no other way (CompilerConfig.fallback = 'eager' does)")
    if refused:
        log.info("%d nodes are left to PyTorch:\n%s", len(refused), explain(refused))
        graph.divide(_partitioned(module, refused))
    else:
        graph.whole(ready, frozen=frozen and config.experimental_config.frozen_parameter)
    return graph


def _partitioned(module, refused):
    """The module with what Rondo runs put together in submodules `fused_N`."""
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase
    from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

    names = {node.name for node in refused}

    class Support(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            if node.op != "call_function" or node.name in names:
                return False
            if isinstance(node.target, torch._ops.OpOverload):
                return isinstance(node.meta.get("val"), (torch.Tensor, tuple, list))
            return node.target is operator.getitem and self.is_node_supported(submodules, node.args[0])

    copied = copy.deepcopy(module)
    partitioner = CapabilityBasedPartitioner(copied, Support(), allows_single_node_partition=True)
    found = [one.nodes for one in partitioner.propose_partitions()]
    return fuse_by_partitions(copied, found, always_return_tuple=True)
