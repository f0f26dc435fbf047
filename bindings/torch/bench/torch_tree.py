#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call of a compiled function costs on the device, and how much of it is the graph manager's.

    torch_tree.py [--json] [--n 1,10,50] [--rounds N] [--instances N] [--no-training]

For N inputs and N outputs of four numbers, and for a training step: eager, compiled without graphs, the floor (the same
compiled function with a manager that does nothing but hand out the outputs of its first call), way 3 (Inductor's own trees,
made device-neutral) and way 1 (Rondo's, in C), and way 1 sealed (rondo_torch.seal). Inputs are static (their addresses are
marked as fixed) or copied (each call brings others than the one before); outputs are dropped before the next call, or held
over it. A manager's own share is the call less the floor. All of it in one process, in turns: the calls as minima over the
rounds, the shares as medians of what a round's call took more than the same round's floor. Where objects and code come to
lie in memory moves a call by several tenths of a us; so each kind is there --instances times, and the shares are the mean
over them. A training step's floor hands out gradients that it keeps, which autograd therefore copies: its shares tell little.
"""
import argparse
import contextlib
import json
import statistics
import sys
import time

import torch

import rondo_torch
import rondo_torch.inductor
from rondo_torch import config

DEVICE = "rondo"
BAR = 20  # way 3's share over way 1's
SEALED_BAR = 10  # the whole call with way 3 over a sealed one


class NoManager:
    """The floor: what is left of a call when the manager costs nothing."""

    def __init__(self, model):
        self.model, self.outputs = model, None

    def __call__(self, inputs):
        if self.outputs is None:
            self.outputs = list(self.model(inputs))
        inputs.clear()
        return list(self.outputs)


@contextlib.contextmanager
def managed_by(kind):
    """What is compiled inside has that manager for good."""
    import torch._inductor.compile_fx as compile_fx
    before, original = config.trees, None
    config.trees = "upstream" if kind == "way 3" else "rondo"
    rondo_torch.inductor.install()
    if kind == "floor":
        original = compile_fx.cudagraphify
        compile_fx.cudagraphify = lambda model, *_arguments, **_options: NoManager(model)
    try:
        yield
    finally:
        if original:
            compile_fx.cudagraphify = original
        if kind == "way 3":
            from rondo_torch import upstream
            upstream.remove()
        config.trees = before


def function_of(count):
    """A new code object each time: Dynamo keeps what it compiles by it."""
    names = [f"x{i}" for i in range(count)]
    text = f"def f({', '.join(names)}):\n    return ({', '.join(name + ' + 1' for name in names)},)\n"
    scope = {}
    exec(compile(text, f"<{count}>", "exec"), scope)
    return scope["f"]


def best(call, repeats, rounds):
    found = float("inf")
    for _ in range(rounds):
        start = time.perf_counter_ns()
        for _ in range(repeats):
            call()
        found = min(found, (time.perf_counter_ns() - start) / repeats)
    return found / 1000


class Calls:
    """One function under one manager, with its inputs."""

    def __init__(self, kind, count, static):
        self.sets = [[torch.randn(4, device=DEVICE) for _ in range(count)] for _ in range(1 if static else 2)]
        if static:
            for tensor in self.sets[0]:
                torch._dynamo.mark_static_address(tensor)
        self.turn, self.held = 0, None
        plain = function_of(count)
        if kind == "eager":
            self.function = plain
            return
        options = {} if kind == "default" else {"triton.cudagraphs": True}
        with managed_by(kind):
            self.function = torch.compile(plain, options=options)
            for _ in range(40):
                self.dropped()
            for _ in range(8):
                self.kept()
            self.held = None
            if kind == "sealed":
                self.function = rondo_torch.seal(self.function, self.sets[0])
                for _ in range(40):
                    self.dropped()

    def dropped(self):
        self.turn ^= 1
        self.function(*self.sets[self.turn % len(self.sets)])

    def kept(self):
        self.turn ^= 1
        self.held = self.function(*self.sets[self.turn % len(self.sets)])


def measure(instances, held, rounds):
    """Kind -> us, and kind -> us more than the floor; in turns."""
    least, more = {}, {kind: [] for kind in MANAGED}
    for calls in instances:
        paired = {kind: [] for kind in MANAGED}
        for _ in range(rounds):
            now = {}
            for kind, one in calls.items():
                call = one.kept if held else one.dropped
                call()
                now[kind] = best(call, 60, 2)
                least[kind] = min(least.get(kind, float("inf")), now[kind])
                one.held = None
            for kind, found in paired.items():
                found.append(now[kind] - now["floor"])
        for kind, found in paired.items():
            more[kind].append(statistics.median(found))
    return least, {kind: statistics.fmean(found) for kind, found in more.items()}


KINDS = ("eager", "default", "floor", "way 3", "way 1", "sealed")
MANAGED = ("way 3", "way 1")


def calls_of(count, rounds, instances):
    rows = []
    for static in (True, False):
        made = [{kind: Calls(kind, count, static) for kind in KINDS} for _ in range(instances)]
        for held in (False, True):
            times, shares = measure(made, held, rounds)
            rows.append({"n": count, "inputs": "static" if static else "copied", "outputs": "held" if held else "dropped",
                         "us": times, "share_us": shares})
    return rows


# ---------------------------------------------------------------------------------------------------------- training


def step_of(kind):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).to(DEVICE)
    batches = [torch.randn(8, 16, device=DEVICE) for _ in range(2)]
    compiled = model if kind == "eager" else torch.compile(model, options={} if kind == "default" else
                                                           {"triton.cudagraphs": True})
    turn = [0]

    def step():
        turn[0] ^= 1
        for parameter in model.parameters():
            parameter.grad = None
        compiled(batches[turn[0]]).sum().backward()
    with managed_by(kind) if kind not in ("eager", "default") else contextlib.nullcontext():
        for _ in range(40):
            step()
    return step


def training(rounds):
    steps = {kind: step_of(kind) for kind in KINDS if kind != "sealed"}
    times = {}
    for _ in range(rounds):
        for kind, step in steps.items():
            step()
            times[kind] = min(times.get(kind, float("inf")), best(step, 40, 1))
    return {"us": times, "share_us": {kind: times[kind] - times["floor"] for kind in MANAGED}}


# ------------------------------------------------------------------------------------------------------------- show


def ratio(shares):
    return shares["way 3"] / max(shares["way 1"], 0.01)


def show(rows, step):
    print(f"{'N':>3} {'inputs':<7} {'outputs':<8}" + "".join(f"{kind:>9}" for kind in KINDS) +
          f"{'share 3':>10}{'share 1':>9}{'ratio':>8}")
    for row in rows:
        print(f"{row['n']:>3} {row['inputs']:<7} {row['outputs']:<8}" + "".join(f"{row['us'][kind]:9.2f}" for kind in KINDS) +
              f"{row['share_us']['way 3']:10.2f}{row['share_us']['way 1']:9.2f}{ratio(row['share_us']):8.1f}")
    if step:
        print("training step" + " " * 7 + "".join(f"{step['us'][kind]:9.2f}" for kind in step["us"]) + f"{'-':>9}" +
              f"{step['share_us']['way 3']:10.2f}{step['share_us']['way 1']:9.2f}")
    print("us per call; share: less the floor")
    for row in rows:
        if row["n"] == 10:
            word = "met" if ratio(row["share_us"]) >= BAR else "MISSED"
            print(f"bar, 10 inputs and outputs, {row['inputs']}, {row['outputs']}: 1/{ratio(row['share_us']):.0f} of way 3's "
                  f"share, at most 1/{BAR}: {word}")
            times = row["us"]["way 3"] / row["us"]["sealed"]
            word = "met" if times >= SEALED_BAR else "MISSED"
            print(f"     sealed: {row['us']['sealed']:.2f} us, 1/{times:.1f} of the call with way 3, at most 1/{SEALED_BAR}: "
                  f"{word}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--n", default="1,10,50")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--instances", type=int, default=4)
    parser.add_argument("--no-training", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row for count in arguments.n.split(",") for row in calls_of(int(count), arguments.rounds, arguments.instances)]
    step = None if arguments.no_training else training(arguments.rounds)
    if arguments.json:
        json.dump({"calls": rows, "training": step}, sys.stdout, indent=1)
        print()
    else:
        show(rows, step)
    return 0


if __name__ == "__main__":
    sys.exit(main())
