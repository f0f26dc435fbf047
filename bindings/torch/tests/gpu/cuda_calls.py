# SPDX-License-Identifier: Apache-2.0
"""On a machine with CUDA: trains a small model with mode="reduce-overhead" and prints, as JSON, every call that reaches
the symbols of torch.cuda and torch._C that graph trees use, in order.

    cuda_calls.py stock|plugin|kept
"""
import functools
import json
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cuda_doubles import NATIVE, label  # noqa: E402

FUNCTIONS = ("synchronize", "graph_pool_handle", "memory_snapshot")
METHODS = {"CUDAGraph": ("capture_begin", "capture_end", "replay", "reset"), "Stream": ("wait_stream", "synchronize")}
calls = []


def seen(name, original):
    @functools.wraps(original)
    def through(*args, **options):
        calls.append([name, [label(value) for value in args if not hasattr(value, "__dict__")], sorted(options)])
        return original(*args, **options)
    return through


def watch():
    from torch._dynamo.device_interface import CudaInterface

    owners = [CudaInterface, *([vars(CudaInterface)["GraphOps"]] if "GraphOps" in vars(CudaInterface) else [])]
    for name in FUNCTIONS:
        original = getattr(torch.cuda, name)
        double = seen(f"torch.cuda.{name}", original)
        setattr(torch.cuda, name, double)
        for owner in owners:
            for member, value in list(vars(owner).items()):
                if getattr(value, "__func__", value) is original:
                    setattr(owner, member, staticmethod(double))
    for name in NATIVE:
        if hasattr(torch._C, name):
            setattr(torch._C, name, seen(f"torch._C.{name}", getattr(torch._C, name)))
    for kind, names in METHODS.items():
        for name in names:
            setattr(getattr(torch.cuda, kind), name, seen(f"{kind}.{name}", getattr(getattr(torch.cuda, kind), name)))


def train():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
    compiled, losses = torch.compile(model, mode="reduce-overhead"), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        calls.append([f"step {step}", [], []])
        x = torch.randn(16, 32, generator=torch.Generator().manual_seed(step)).cuda()
        optimizer.zero_grad()
        loss = compiled(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main(mode):
    if mode != "stock":
        import rondo_torch  # noqa: F401
    if mode == "kept":
        from rondo_torch import upstream

        upstream.install("kept")
    import torch._inductor.cudagraph_trees  # noqa: F401

    watch()
    json.dump({"losses": train(), "calls": calls}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
