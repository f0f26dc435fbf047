# SPDX-License-Identifier: Apache-2.0
"""What the tests of graph trees share: functions that go straight to a tree, compiled ones without generated kernels (their
compilation takes no C++ compiler), and a look at what the trees have done."""
import contextlib
import gc
import logging
import os
import unittest
import warnings

import torch
import torch._dynamo
from torch._dynamo.utils import counters

import rondo_torch  # noqa: F401
import rondo_torch.inductor
from rondo_torch import _C, trees

DEVICE = "rondo"
rondo_torch.inductor.install()
torch.set_num_threads(1)
gc.collect()
gc.freeze()  # what was imported is not looked at again and again

# Inductor with graphs, and every operator called by its name.
GRAPHS = {"triton.cudagraphs": True, "fallback_by_default": True}


def tree_function(model, outputs, static=(), mode=0, name="f", mutated=(), constants=(), skip=None, simple=False, traces=None,
                  device=0, **options):
    """A function of a tree over a Python model that takes the list of its inputs, and empties it."""
    return _C.tree_function(model, name=name, device=device, mode=mode, static=static, mutated=mutated, constants=constants,
                            outputs=outputs, traces=traces, skip=skip, simple=simple, options=options)


def boxed(function):
    """A model out of a function of tensors."""
    def model(inputs):
        values = list(inputs)
        inputs.clear()
        results = function(*values)
        return results if isinstance(results, (list, tuple)) else [results]
    return model


# Tests that each take a compilation of their own and hold what another one holds, too.
long = unittest.skipUnless(os.environ.get("RONDO_TORCH_LONG"), "RONDO_TORCH_LONG=1 runs it")


class Lines(logging.Handler):
    def __init__(self):
        super().__init__(logging.DEBUG)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())

    def count(self, text):
        return sum(text in line for line in self.lines)


class TreeTest(unittest.TestCase):
    def setUp(self):
        self.forget()
        self.left = set(_C.tree_managers())  # by a test that has failed
        self.addCleanup(self.check_nothing_is_left)

    def forget(self):
        torch._dynamo.reset()
        gc.collect()
        counters.clear()
        trees.forget_skips()

    def check_nothing_is_left(self):
        self.forget()
        left = [manager.functions() for manager in _C.tree_managers() if manager not in self.left]
        self.assertEqual(left, [], "a tree outlives its functions")

    @contextlib.contextmanager
    def logs(self, name="torch._inductor.cudagraph_utils"):
        """Lines of PyTorch's artifacts "cudagraphs" and "perf_hints", whatever TORCH_LOGS says."""
        from torch._inductor import cudagraph_utils
        handler = Lines()
        loggers = [cudagraph_utils.cudagraphs_log, trees.perf_hints()]
        before = [(log.level, log.propagate, log.disabled) for log in loggers]
        for log in loggers:
            log.addHandler(handler)
            log.setLevel(logging.DEBUG)
            log.propagate, log.disabled = False, False
        try:
            yield handler
        finally:
            for log, (level, propagate, disabled) in zip(loggers, before):
                log.removeHandler(handler)
                log.setLevel(level)
                log.propagate, log.disabled = propagate, disabled

    def compile(self, function, dynamic=None, generated=False, **options):
        """generated: with Inductor's own kernels, which takes a C++ compiler's time. Options that are None are the
        configuration's."""
        options = {name.replace("__", "."): value for name, value in options.items()}
        options = {**GRAPHS, "fallback_by_default": not generated, **options}
        return torch.compile(function, dynamic=dynamic,
                             options={name: value for name, value in options.items() if value is not None})

    def managers(self):
        gc.collect()
        return [manager for manager in _C.tree_managers() if manager not in self.left]

    def manager(self):
        found = self.managers()
        self.assertEqual(len(found), 1, f"{len(found)} trees")
        return found[0]

    def info(self, name=None):
        info = self.manager().info()
        return info[name] if name else info

    def functions(self):
        return self.manager().functions()

    def recordings(self):
        return sum(manager.info()["recordings"] for manager in self.managers())

    def skips(self):
        return counters["inductor"]["cudagraph_skips"]

    def same(self, got, want, **tolerance):
        torch.testing.assert_close(torch.as_tensor(got).detach().cpu(), torch.as_tensor(want).detach().cpu(),
                                   **{"rtol": 1e-4, "atol": 1e-5, **tolerance})

    def steps(self, function, *inputs, times=4):
        """Calls it until it is replayed, each time with the same inputs; the results of the last."""
        result = None
        for _ in range(times):
            del result
            result = function(*inputs)
        return result

    def stale(self, use):
        with self.assertRaisesRegex(RuntimeError, "overwritten by a subsequent run") as caught:
            use()
        self.assertIn("clone", str(caught.exception))
        self.assertIn("cudagraph_mark_step_begin", str(caught.exception))
        return str(caught.exception)


def on_device(*tensors):
    moved = [tensor.to(DEVICE) for tensor in tensors]
    return moved[0] if len(moved) == 1 else moved


@contextlib.contextmanager
def warned():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen
