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
        self.results = [self._result(kind, value, positions) for kind, value in conversion.results]
        self.whole = self.results == [("output", i) for i in range(len(conversion.outputs))]

    @staticmethod
    def _result(kind, value, positions):
        if kind == "input":
            return kind, positions[value.name]
        if kind == "input view":
            return kind, (positions[value[0].name], *value[1:])
        return kind, value

    def run(self, args):
        outputs = self.run_plan([args[i] for i in self.takes])
        if self.whole:
            return outputs
        return [self._give(kind, value, args, outputs) for kind, value in self.results]

    @staticmethod
    def _give(kind, value, args, outputs):
        if kind == "output":
            return outputs[value]
        if kind == "input":
            return args[value]
        if kind == "view":
            return _C.reinterpret(outputs[value[0]], *value[1:])
        if kind == "input view":
            position, strides, *place = value
            base = args[position]
            if base.stride() != strides:  # what PyTorch has run in between gave another layout than its meta said
                base = torch.empty_strided(base.shape, strides, dtype=base.dtype, device=base.device).copy_(base)
            return _C.reinterpret(base, *place)
        return value


class Constants:
    """Parameters as constants of plans. They are taken again when they have changed, but not before they have stayed the
    same for a call: weights that change before each call are inputs, and cost no compilation."""

    def __init__(self, names):
        self.names = names
        self.watch, self.settled = None, True

    def hold(self, tensors):
        """(whether plans may have them as constants now, whether those that have them are out of date)"""
        if self.watch is not None and self.watch.same(tensors):
            self.settled = True
            return True, False
        for name, one in zip(self.names, tensors):
            if one.is_inference():
                raise RuntimeError(f"frozen_parameter: '{name}' was made in inference mode and has no version counter, by "
                                   "which a change would be seen; make the model outside of torch.inference_mode()")
        first = self.watch is None
        self.watch, self.settled = _C.Watch(tensors), first
        return first, not first


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
        self.constants = Constants([self.names[i] for i in self.frozen])
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
        with self.lock:
            held = self.hold(args) if self.frozen else False
            key = (held, *self.sizes_of(args))
            planned = self.plans.get(key)
            if planned is None:
                planned = self.plan_for(args, self.frozen if held else ())
                self.plans[key] = planned
                while len(self.plans) > self.config.specialisations:
                    self.plans.popitem(last=False)
                    self.dropped += 1
            else:
                self.plans.move_to_end(key)
        if isinstance(planned, Planned):
            return planned.run(args)
        return self.module(*args)

    def hold(self, args):
        """Whether the parameters are constants in this call."""
        held, outdated = self.constants.hold([args[i] for i in self.frozen])
        if outdated:
            for key in [key for key in self.plans if key[0]]:
                del self.plans[key]
        return held

    def sizes_of(self, args):
        if not self.graph.dynamic:
            return ()
        return [(tuple(one.shape), one.stride()) if isinstance(one, torch.Tensor) else one for one in args]

    def plan_for(self, args, constants):
        """A plan for these arguments, or why there is none: then PyTorch runs the partition."""
        self.conversions += 1
        try:
            values = concrete_values(self.module, list(args))
            frozen = {self.names[i]: args[i] for i in constants}
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
