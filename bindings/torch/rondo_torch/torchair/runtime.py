# SPDX-License-Identifier: Apache-2.0
"""What runs: a graph, its partitions, and a plan for each combination of sizes that was seen."""
import logging
import threading
import weakref
from collections import OrderedDict

import torch

from .. import _C
from .builder import Conversion, Like, Refused, concrete_values

log = logging.getLogger("rondo_torch.torchair")


class Planned:
    """A plan, with which of the partition's arguments it takes and what it gives."""

    def __init__(self, conversion, plan, positions):
        self.plan, self.run_plan = plan, plan.run
        self.takes = [positions[node.name] for node, _ in conversion.inputs]
        self.results = [(kind, positions[value.name] if kind == "input" else value)
                        for kind, value in conversion.results]
        self.whole = self.results == [("output", i) for i in range(len(conversion.outputs))]

    def run(self, args):
        outputs = self.run_plan([args[i] for i in self.takes])
        if self.whole:
            return outputs
        return [outputs[value] if kind == "output" else args[value] if kind == "input" else value
                for kind, value in self.results]


class Partition(torch.nn.Module):
    """A part of a graph that Rondo runs. What its sizes are is decided by its arguments."""

    def __init__(self, module, graph, ready=None, frozen=()):
        super().__init__()
        object.__setattr__(self, "module", module)  # not a submodule: it runs only where a plan cannot be made
        self.graph, self.config, self.device = graph, graph.config, graph.device
        self.positions = {node.name: i for i, node in
                          enumerate(node for node in module.graph.nodes if node.op == "placeholder")}
        self.frozen = tuple(frozen)
        self.names = list(self.positions)
        self.plans = OrderedDict()  # what the arguments are like -> Planned, or the reason why there is none
        self.lock = threading.Lock()
        self.only = None
        self.conversions, self.dropped = 0, 0
        if ready and not self.frozen and not graph.dynamic:  # else it was made to see that one can be made
            self.conversions = 1
            self.only = Planned(*ready, self.positions)

    def forward(self, *args):
        return self.run(args)

    def run(self, args):
        if self.only is not None:
            return self.only.run(args)
        key = self.key_of(args)
        with self.lock:
            planned = self.plans.get(key)
            if planned is None:
                planned = self.plan_for(args)
                self.plans[key] = planned
                while len(self.plans) > self.config.specialisations:
                    self.plans.popitem(last=False)
                    self.dropped += 1
            else:
                self.plans.move_to_end(key)
        if isinstance(planned, Planned):
            return planned.run(args)
        return self.module(*args)

    def key_of(self, args):
        frozen = _C.fingerprint([args[i] for i in self.frozen]) if self.frozen else b""
        if self.frozen and not self.graph.dynamic:
            return frozen
        return (frozen, *[(tuple(one.shape), one.stride()) if isinstance(one, torch.Tensor) else one for one in args])

    def plan_for(self, args):
        """A plan for these arguments, or why there is none: then PyTorch runs the partition."""
        frozen = {self.names[i]: args[i] for i in self.frozen}
        for name, one in frozen.items():
            if one.is_inference():
                raise RuntimeError(f"frozen_parameter: '{name}' was made in inference mode and has no version counter, by "
                                   "which a change would be seen; make the model outside of torch.inference_mode()")
        self.conversions += 1
        try:
            values = concrete_values(self.module, list(args))
            conversion = Conversion(self.module, values, frozen=frozen, device=self.device).run()
            return Planned(conversion, conversion.plan(self.config), self.positions)
        except (Refused, NotImplementedError, RuntimeError) as error:
            if self.config.fallback == "error":
                raise
            log.warning("PyTorch runs a partition for inputs of these sizes: %s", error)
            self.graph.refused.setdefault("partition", ("a partition", "meta", str(error)))
            return str(error)

    def all_plans(self):
        with self.lock:
            found = [one for one in self.plans.values() if isinstance(one, Planned)]
        return ([self.only] if self.only else []) + found


class Graph:
    """A compiled graph."""

    def __init__(self, module, config, names=None, backward=False):
        self.module, self.config, self.is_backward = module, config, backward
        self.placeholders = [node.name for node in module.graph.nodes if node.op == "placeholder"]
        self.input_names = names if names and len(names) == len(self.placeholders) else self.placeholders
        self.partitions, self.refused = [], {}
        self.static_inputs, self.dynamic, self.device = (), False, torch.device("cpu")
        self.compile_ns = 0
        self._parameters, self._run = None, None

    def whole(self, ready, frozen):
        static = [i for i in self.static_inputs if i < len(self.placeholders)] if frozen else ()
        partition = Partition(self.module, self, ready, static)
        self.partitions = [partition]
        self._run = partition.run

    def divide(self, module):
        for name, child in list(module.named_children()):
            if name.startswith("fused_"):
                partition = Partition(child, self, _ready(child, self))
                self.partitions.append(partition)
                setattr(module, name, partition)
        module.graph.lint()
        module.recompile()
        self._run = lambda args: module(*args)

    def __call__(self, args):
        if self._parameters is None:
            self._remember(args)
        values = list(args)
        args.clear()
        return self._run(values)

    def _remember(self, args):
        self._parameters = {i: weakref.ref(args[i]) for i in self.static_inputs
                            if i < len(args) and isinstance(args[i], torch.Tensor)}
        self._examples = [one if not isinstance(one, torch.Tensor) else
                          Like(tuple(one.shape), one.stride(), one.dtype, one.device) for one in args]

    def plans(self):
        return [planned.plan for partition in self.partitions for planned in partition.all_plans()]

    def dump(self, format="text"):
        """The plans of this graph as text, dot or JSON."""
        return "\n".join(plan.dump(format) for plan in self.plans())

    def export_model(self, path):
        """Writes the graph as an offline file, its parameters as they are now."""
        if self._parameters is None:
            raise RuntimeError("export_model: the graph has not run yet, and its parameters are known when it does")
        if self.refused:
            listed = ", ".join(sorted({name for name, *_ in self.refused.values()}))
            raise RuntimeError(f"export_model: the graph is not whole: PyTorch runs {listed}")
        frozen = {}
        for i, reference in self._parameters.items():
            tensor = reference()
            if tensor is None:
                raise RuntimeError(f"export_model: the parameter '{self.input_names[i]}' is gone")
            frozen[self.placeholders[i]] = tensor
        values = concrete_values(self.module, self._examples)
        names = dict(zip(self.placeholders, self.input_names))
        conversion = Conversion(self.module, values, frozen=frozen, names=names, device=self.device).run()
        conversion.plan(self.config, host=True).write(str(path))


def _ready(module, graph):
    """The plan of a partition whose sizes are known already."""
    if graph.dynamic:
        return None
    values = {node: node.meta.get("val") for node in module.graph.nodes}
    conversion = Conversion(module, values, device=graph.device).run()
    return conversion, conversion.plan(graph.config)
