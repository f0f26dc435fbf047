#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.compile(mode="reduce-overhead") on a device that is not CUDA: a small network learns, in four ways.

    train.py [WAY...]     eager, default, upstream, rondo; all of them without an argument

Each way has a process of its own. Way 3, "upstream", is Inductor's own graph trees in Python, made to fit any device;
way 1, "rondo", is Rondo's in C. Every way must give the losses that the CPU gives, or the program ends with status 1.
What is compiled goes to an empty folder, so that the first call has all of the compiler in it; with
TORCHINDUCTOR_CACHE_DIR set, that one is used.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F

WAYS = {  # name -> what it is called in the table, torch.compile's mode, who manages graphs
    "eager": ("eager", None, "off"),
    "default": ("default", "default", "off"),
    "upstream": ("reduce-overhead, way 3", "reduce-overhead", "upstream"),
    "rondo": ("reduce-overhead, way 1", "reduce-overhead", "rondo"),
}
CHECKED, TIMED, ROUNDS = 50, 40, 8  # steps whose losses are compared; steps a round; rounds, of which the best counts


def learner(device, mode):
    """A function of no arguments that makes a step and returns the loss."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    examples, teacher = torch.randn(32, 16), torch.randn(16, 4)
    answers = (examples @ teacher).argmax(1)
    model, examples, answers = model.to(device), examples.to(device), answers.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss_of(x, y):
        return F.cross_entropy(model(x), y)

    if mode:
        loss_of = torch.compile(loss_of, mode=mode)

    def step():
        optimizer.zero_grad()
        loss = loss_of(examples, answers)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def losses_of(step):
    return [step().item() for _ in range(CHECKED)]


def one(way):
    """What this process measures, as a line of JSON."""
    import rondo_torch
    from torch._dynamo.utils import counters

    step = learner("rondo", WAYS[way][1])
    begun = time.perf_counter()
    losses = [step().item()]
    first = time.perf_counter() - begun
    losses += losses_of(step)[: CHECKED - 1]
    rounds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(TIMED):
            step()
        torch.rondo.synchronize()
        rounds.append((time.perf_counter() - begun) / TIMED)
    report = str(rondo_torch.report()) if way == "rondo" else ""
    print(json.dumps({"losses": losses, "first": first, "steady": min(rounds), "report": report,
                      "skips": counters["inductor"]["cudagraph_skips"]}))


def in_a_process(way):
    with tempfile.TemporaryDirectory() as folder:
        environment = {"TORCHINDUCTOR_CACHE_DIR": folder, **os.environ, "RONDO_TORCH_TREES": WAYS[way][2]}
        command = [sys.executable, __file__, "--one", way]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{way}: the process ended with status {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def main(ways):
    unknown = [way for way in ways if way not in WAYS]
    if unknown:
        sys.exit(f"there is no way {', '.join(unknown)}; there are {', '.join(WAYS)}")
    torch.set_num_threads(1)
    want = losses_of(learner("cpu", None))
    backend = os.environ.get("RONDO_TORCH_DEVICE") or "cpu"
    print(f"A network of 16, 32 and 4 learns on rondo, over {backend}: forward, backward and a step of SGD.")
    print(f"{'':24}{'first call':>12}{'steady':>12}{'loss after 50':>16}{'off the CPU by':>16}")
    wrong, report = [], ""
    for way in ways or WAYS:
        got = in_a_process(way)
        off = max(abs(one - other) for one, other in zip(got["losses"], want))
        print(f"{WAYS[way][0]:24}{got['first'] * 1e3:>9.0f} ms{got['steady'] * 1e6:>9.0f} us{got['losses'][-1]:>16.6f}"
              f"{off:>16.1e}", flush=True)
        if not off <= 1e-4:
            wrong.append(f"{way}: the losses are not the CPU's")
        if got["skips"]:
            wrong.append(f"{way}: {got['skips']} graphs were skipped")
        report = got["report"] or report
    print(report)
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2])
    else:
        main(sys.argv[1:])
