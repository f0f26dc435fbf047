# SPDX-License-Identifier: Apache-2.0
"""Inductor's caches over processes: what one compiled another finds, and a plugin of another version does not."""
import os
import time
import unittest

import forks
from torch._inductor.codegen.common import custom_backend_passes

from rondo_torch import _C, inductor

# argv: a number that no other run compiles with, then what the plugin's sources are said to be, one compilation each.
SCRIPT = """
import sys
import torch, rondo_torch
from torch._dynamo.utils import counters

number, training = int(sys.argv[1]), sys.argv[2] == "training"
for sources in sys.argv[3:]:
    if sources != "its own":
        from rondo_torch.inductor import caches
        caches._sources = lambda: sources
    torch._dynamo.reset()
    counters.clear()
    host = torch.arange(4.0, requires_grad=training)
    ours = host.detach().to("rondo").requires_grad_(training)
    results = [host * number + 1, torch.compile(lambda x: x * number + 1)(ours)]
    torch.testing.assert_close(results[1].detach().cpu(), results[0].detach())
    if training:
        for result in results:
            result.sum().backward()
        assert ours.grad.cpu().equal(host.grad)
    print(counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"],
          counters["aot_autograd"]["autograd_cache_hit"], counters["aot_autograd"]["autograd_cache_miss"])
"""


def run(number, what, *sources):
    done = forks.python(["-c", SCRIPT, str(number), what, *sources])
    if done.returncode:
        raise AssertionError(done.stderr)
    return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]


@unittest.skipIf(_C.backend() != "cpu", "what is generated does not know the backend")
class Caches(unittest.TestCase):
    def over_processes(self, what, graphs):
        number = time.time_ns() % 10**15
        miss, hit = [0, graphs, 0, 1], (0, 1, 0)
        self.assertEqual(run(number, what, "its own"), [miss])
        # Another process finds what was compiled; a plugin of other sources finds nothing, and so does the next.
        found, another, third = run(number, what, "its own", "another", "a third")
        self.assertEqual(tuple(found[1:]), hit)
        self.assertEqual((another, third), (miss, miss))

    def test_inference(self):
        self.over_processes("inference", 1)

    @unittest.skipUnless(os.environ.get("RONDO_TORCH_LONG"), "RONDO_TORCH_LONG=1 does it with backward graphs, too")
    def test_training(self):
        self.over_processes("training", 2)

    def test_key(self):
        inductor.install()
        from rondo_torch.inductor import caches

        self.assertIs(custom_backend_passes["rondo"], caches.KEY)
        _, version, sources, replaced = caches.KEY.uuid()
        self.assertEqual((version, len(sources)), (_C.version(), 64))
        self.assertIn("inductor.is_cpu", replaced)


if __name__ == "__main__":
    unittest.main()
