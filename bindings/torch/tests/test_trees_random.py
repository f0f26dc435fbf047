# SPDX-License-Identifier: Apache-2.0
"""Random programs of compiled functions: called in any order, with results of each other and new tensors, under steps that
are marked or not, with values that are dropped, kept, looked at through views, and written. After each call every value that
is alive is what the same program gives on the CPU, or its use fails by name."""
import os
import random
import unittest

import torch
from trees_kit import DEVICE, TreeTest

PROGRAMS = 500 if os.environ.get("RONDO_TORCH_LONG") else 40
STEPS = 14
STALE = "overwritten by a subsequent run"


class State(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 4))

    def forward(self, x):
        self.total.mul_(0.5).add_(x)
        return x * self.weight + self.total


def several(x, y):
    z = x + y
    return z, z[1:], z * 2, x.view(2, 2)


def writes(x, y):
    x.mul_(0.5)
    return x + y


def parts(x, y):
    z = ((x * 2).cpu() + 1).to(x.device)
    return z * y, x - 1


def sizes(x):
    return torch.cat([x, x])[: x.shape[0]] * x.shape[0]


FUNCTIONS = {
    "unary": (lambda x: torch.tanh(x) + 1, 1),
    "binary": (lambda x, y: x * y - x, 2),
    "several": (several, 2),
    "writes": (writes, 2),
    "number": (lambda x: (x.sum(), 7, None, x * 3), 1),
    "nothing": (lambda x: x.view(2, 2), 1),
    "sizes": (sizes, 1),
    "parts": (parts, 2),
}
GENERATED = ("parts",)  # with kernels that write in place what another part has made
TRAINED = {"cube": lambda x: x * x * x, "two": lambda x: (torch.sin(x), x * 2)}


class Value:
    """A tensor on the device beside what it should be."""

    def __init__(self, got, want):
        self.got, self.want = got, want


class Program:
    def __init__(self, test, seed):
        self.test, self.dice, self.seed = test, random.Random(seed), seed
        self.values, self.log, self.calls, self.marked = [], [], 0, False

    def say(self, text):
        self.log.append(text)

    def new(self):
        want = torch.tensor([self.dice.uniform(-1, 1) for _ in range(4)])
        return Value(want.to(DEVICE), want)

    def alive(self, value):
        """Whether it may be used: it is right, or it says that its memory was used again."""
        try:
            got = value.got.detach().cpu()
        except RuntimeError as error:
            self.test.assertIn(STALE, str(error))
            return False
        self.test.same(got, value.want, msg=lambda text: f"seed {self.seed}: {text}\n" + "\n".join(self.log))
        return True

    def check(self):
        self.values = [value for value in self.values if self.alive(value)]

    def pick(self, shape=(4,)):
        fit = [value for value in self.values if value.want.shape == shape and not value.got.requires_grad]
        if fit and self.dice.random() < 0.6:
            return self.dice.choice(fit)
        return self.new()

    def call(self):
        name = self.dice.choice([*FUNCTIONS, "module"])
        count = 1 if name == "module" else FUNCTIONS[name][1]
        inputs = [self.pick() for _ in range(count)]
        self.say(f"{name}({', '.join(str(self.values.index(v)) if v in self.values else 'new' for v in inputs)})")
        plain, compiled = self.test.pairs[name]
        if name == "writes" and inputs[0] is inputs[1]:
            inputs[1] = self.new()
        with torch.no_grad():
            want = plain(*[value.want for value in inputs])
            try:
                got = compiled(*[value.got for value in inputs])
            except RuntimeError as error:
                # After a mark the first part has taken the memory of what only a later one reads.
                if name in GENERATED and self.marked and STALE in str(error):
                    self.say("refused")
                    return
                self.test.fail(f"seed {self.seed}: {error}\n" + "\n".join(self.log))
        self.marked = False
        want, got = [item if isinstance(item, tuple) else (item,) for item in (want, got)]
        self.test.assertEqual(len(got), len(want))
        for a, b in zip(got, want):
            if isinstance(b, torch.Tensor):
                self.values.append(Value(a, b))
            else:
                self.test.assertEqual(a, b)
        self.calls += 1

    def train(self):
        name = self.dice.choice(list(TRAINED))
        plain, compiled = self.test.pairs[name]
        want = torch.tensor([self.dice.uniform(-1, 1) for _ in range(4)])
        got = want.to(DEVICE).requires_grad_()
        want.requires_grad_()
        backward = self.dice.random() < 0.8
        self.say(f"{name} with gradients, {'and its backward' if backward else 'no backward'}")
        outs = [function(x) for function, x in ((plain, want), (compiled, got))]
        outs = [out if isinstance(out, tuple) else (out,) for out in outs]
        for a, b in zip(outs[1], outs[0]):
            self.values.append(Value(a, b.detach()))
        if backward:
            for out in outs:
                sum(part.sum() for part in out).backward()
            self.test.same(got.grad, want.grad, msg=lambda text: f"seed {self.seed}: {text}\n" + "\n".join(self.log))
        self.calls += 1

    def drop(self):
        if self.values:
            self.say("drop")
            del self.values[self.dice.randrange(len(self.values))]

    def drop_all(self):
        self.say("drop all")
        self.values.clear()

    def look(self):
        value = self.pick()
        self.say("a view")
        self.values.append(Value(value.got[1:], value.want[1:]))
        self.values.append(Value(value.got.view(2, 2), value.want.view(2, 2)))

    def keep(self):
        value = self.pick()
        self.say("a clone")
        self.values.append(Value(value.got.clone(), value.want.clone()))

    def write(self):
        value = self.pick()
        self.say("write")
        with torch.no_grad():
            value.got.add_(1)
            value.want.add_(1)

    def mark(self):
        self.say("mark")
        self.marked = True
        torch.compiler.cudagraph_mark_step_begin()

    def run(self):
        ways = [self.call] * 8 + [self.train] * 3 + [self.drop] * 3 + [self.drop_all, self.look, self.keep, self.write, self.mark]
        for _ in range(STEPS):
            self.check()
            self.dice.choice(ways)()
        self.check()


class Programs(TreeTest):
    def test_programs(self):
        state = State()
        self.pairs = {name: (function, self.compile(function, dynamic=name == "sizes", generated=name in GENERATED))
                      for name, function in [*((n, f) for n, (f, _) in FUNCTIONS.items()), *TRAINED.items()]}
        on = State().to(DEVICE)
        self.pairs["module"] = (state, self.compile(on))
        calls = 0
        first = int(os.environ.get("RONDO_TORCH_SEED", "1"))
        for seed in range(first, first + PROGRAMS):
            with torch.no_grad():
                state.total.zero_()
                on.total.zero_()
            program = Program(self, seed)
            program.run()
            self.same(on.total, state.total)
            calls += program.calls
        info = self.info()
        self.assertGreater(calls, 4 * PROGRAMS)
        # They were graphed, and went by every way.
        for name in ("warmups", "records", "replays", "checkpoints", "steps", "directs"):
            self.assertGreater(info[name], 0, name)
        self.pairs = None


if __name__ == "__main__":
    unittest.main()
