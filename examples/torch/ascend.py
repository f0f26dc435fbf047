#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An Ascend package's device without an NPU: torch.compile(mode="reduce-overhead") on `npu`, over a simulated libascendcl.

The package is the stand-in of bindings/torch/tests/npu_standin, which knows nothing of Rondo; the driver's calls are counted
by the simulator. Values must be the CPU's, and a replay one call of the driver, or the program ends with status 1.
"""
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bindings", "torch", "tests"))
_cache = tempfile.TemporaryDirectory(prefix="rondo-ascend-")  # goes with the process
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", _cache.name)

import npu_device  # noqa: E402  (before PyTorch: it says that the place is not Rondo's)

WHY = npu_device.why_not()
if WHY:
    print(f"ascend: not run: {WHY}")
    sys.exit(0)
_, simulator = npu_device.load()

import torch  # noqa: E402

import rondo_torch  # noqa: E402
from npu_standin import inductor  # noqa: E402
from rondo_torch import upstream  # noqa: E402

STEPS, WARM = 10, 3
wrong = []


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))


def batch(step):
    generator = torch.Generator().manual_seed(step)
    return torch.randn(32, 16, generator=generator), torch.randint(4, (32,), generator=generator)


def learn(device, mode):
    """Losses of all steps, and how often the driver was asked to run a graph in the last of them."""
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss_of(x, y):
        return torch.nn.functional.cross_entropy(model(x), y)

    if mode:
        loss_of = torch.compile(loss_of, mode=mode)
    losses = []
    for step in range(STEPS):
        if step == WARM:
            simulator.clear()
        x, y = (one.to(device) for one in batch(step))
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().cpu())
    return torch.stack(losses), simulator.count("aclmdlRIExecuteAsync")


def row(name, off, replays, calls):
    print(f"  {name:44}{off:>16.1e}{replays:>10}{calls:>24}", flush=True)
    if not off <= 1e-6:
        wrong.append(f"{name}: the values are not the CPU's")
    if calls != replays:
        wrong.append(f"{name}: {calls} calls of aclmdlRIExecuteAsync for {replays} replays")


def by_hand():
    """torch.accelerator.Graph on the package's own stream."""
    model, x = network().to("npu"), torch.zeros(32, 16, device="npu")
    graph = torch.accelerator.Graph()
    with torch.no_grad(), torch.Stream(device="npu"), graph:
        y = model(x)
    off = 0.0
    simulator.clear()
    for step in range(STEPS):
        new, _ = batch(step)
        x.copy_(new)
        graph.replay()
        with torch.no_grad():
            off = max(off, (y.cpu() - network()(new)).abs().max().item())
    row("torch.accelerator.Graph, by hand", off, STEPS, simulator.count("aclmdlRIExecuteAsync"))


def illegal():
    """What cannot be captured is learnt here, by its name and number, and not on the device."""
    x, graph = torch.ones(8, device="npu"), torch.accelerator.Graph()
    try:
        with torch.Stream(device="npu"), graph:
            (x * 2).sum().item()
    except RuntimeError as error:
        text = str(error).splitlines()[0]
        print(f"\nsum().item() inside a capture:\n  {text}")
        if "aclrtSynchronizeStream" in text and "107027" in text:
            return
    wrong.append("sum().item() inside a capture was not refused by name")


def main():
    torch.set_num_threads(1)
    inductor.register()
    attachment = rondo_torch.attach("npu")
    if attachment.why_no_trees:
        sys.exit(attachment.why_no_trees)
    name = os.path.relpath(os.environ["RONDO_ACL_LIBRARY"], ROOT)
    print(f"npu: a stand-in for an Ascend package, over {name}")
    print(f"  {'':44}{'off the CPU by':>16}{'replays':>10}{'aclmdlRIExecuteAsync':>24}")
    by_hand()
    want, _ = learn("cpu", None)
    for way, title in (("rondo", "way 2: trees in C, over the package's names"),
                       ("upstream", "way 3: Inductor's own trees, any device")):
        rondo_torch.config.trees = way
        if way == "upstream":
            upstream.install("kept")
        torch._dynamo.reset()
        losses, calls = learn("npu", "reduce-overhead")
        row(title, (losses - want).abs().max().item(), 2 * (STEPS - WARM), calls)  # a forward and a backward each
    illegal()
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
