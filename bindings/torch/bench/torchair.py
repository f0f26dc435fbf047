# SPDX-License-Identifier: Apache-2.0
"""What a call of a compiled model takes: eager, Inductor, and Rondo's compiler with weights as inputs and as constants.

    OMP_NUM_THREADS=1 python bench/torchair.py [--rounds N] [--json FILE] [MODEL...]

The ways take turns in each round, so that they meet the same machine; a figure is the least of a way's rounds.
"""
import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))

import torch  # noqa: E402

import rondo_torch  # noqa: E402, F401
from rondo_torch import torchair  # noqa: E402
from torchair_kit import models  # noqa: E402


def ways(model):
    config = torchair.CompilerConfig()
    config.experimental_config.frozen_parameter = True
    return {
        "eager": model,
        "inductor": torch.compile(model, dynamic=False),
        "rondo": torch.compile(model, backend=torchair.get_npu_backend(), fullgraph=True, dynamic=False),
        "rondo, frozen": torch.compile(model, backend=torchair.get_npu_backend(compiler_config=config), fullgraph=True,
                                       dynamic=False),
    }


def measure(name, model, x, rounds):
    functions, best, compiled, away = ways(model), {}, {}, {}
    want = model(x)
    for way, function in functions.items():
        begin = time.perf_counter()
        got = function(x)
        compiled[way] = time.perf_counter() - begin
        away[way] = (got - want).abs().max().item()
        begin = time.perf_counter()
        function(x)
        best[way] = time.perf_counter() - begin
    calls = max(1, min(200, int(0.02 / max(min(best.values()), 1e-7))))
    for function in functions.values():
        function(x)
    for _ in range(rounds):
        for way, function in functions.items():
            begin = time.perf_counter()
            for _ in range(calls):
                function(x)
            best[way] = min(best[way], (time.perf_counter() - begin) / calls)
    print(f"{name}:")
    for way in functions:
        print(f"  {way:14s} {best[way] * 1e6:10.1f} us   {best[way] / best['eager']:5.2f} of eager, "
              f"{best[way] / best['inductor']:5.2f} of inductor; first call {compiled[way]:6.2f} s; {away[way]:.1e} away")
    return {way: {"us": best[way] * 1e6, "first_call_s": compiled[way], "away": away[way]} for way in functions}


def main():
    parser = argparse.ArgumentParser(description="Measures torch.compile through Rondo's compiler.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("models", nargs="*", help="of mlp lenet resnet18 encoder; all without")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with torch.no_grad():
        found = {name: measure(name, model, x, options.rounds) for name, (model, x) in models().items()
                 if not options.models or name in options.models}
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=2)


if __name__ == "__main__":
    main()
