# SPDX-License-Identifier: Apache-2.0
"""Where the time of compiled graphs went."""
import json


class Profile:
    """`compile_ns`: from PyTorch's graph to plans; `plan_compile_ns` and `load_ns` are parts of it. `run_ns`: in plans,
    of which `kernel_ns` is the list of kernels and the rest what hands tensors over. Times of an asynchronous device are
    those of enqueueing."""

    FIELDS = ("runs", "run_ns", "kernel_ns", "copies", "copied_bytes", "calls", "arena_bytes", "weight_bytes")

    def __init__(self, graphs):
        self.graphs = [self._of(graph) for graph in graphs]
        self.total = {name: sum(graph[name] for graph in self.graphs)
                      for name in ("compile_ns", "plan_compile_ns", "load_ns", *self.FIELDS)}

    @classmethod
    def _of(cls, graph):
        plans = [plan.info() for plan in graph.plans()]
        made = {name: sum(plan[name] for plan in plans) for name in cls.FIELDS}
        made.update(plans=len(plans), partitions=len(graph.partitions), backward=graph.is_backward,
                    compile_ns=graph.compile_ns, plan_compile_ns=sum(plan["compile_ns"] for plan in plans),
                    load_ns=sum(plan["load_ns"] for plan in plans),
                    left_to_pytorch=sorted({name for name, *_ in graph.refused.values()}))
        return made

    def json(self):
        return json.dumps({"total": self.total, "graphs": self.graphs}, indent=2)

    def text(self):
        lines = []
        for i, graph in enumerate(self.graphs):
            runs = max(1, graph["runs"])
            lines.append(f"graph {i}{' (backward)' if graph['backward'] else ''}: {graph['partitions']} partitions, "
                         f"{graph['plans']} plans, {graph['calls']} calls")
            lines.append(f"  compiled in {graph['compile_ns'] / 1e6:.1f} ms, {graph['plan_compile_ns'] / 1e6:.1f} of them "
                         f"in Rondo's compiler; loaded in {graph['load_ns'] / 1e6:.1f} ms")
            lines.append(f"  {graph['runs']} runs, each {graph['run_ns'] / runs / 1e3:.1f} us, "
                         f"{graph['kernel_ns'] / runs / 1e3:.1f} of them in kernels; {graph['copies']} inputs copied")
            if graph["left_to_pytorch"]:
                lines.append(f"  left to PyTorch: {', '.join(graph['left_to_pytorch'])}")
        return "\n".join(lines) or "nothing was compiled"

    __str__ = text
