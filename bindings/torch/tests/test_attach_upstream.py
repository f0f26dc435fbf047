# SPDX-License-Identifier: Apache-2.0
"""An attached device under Inductor's own trees, made device-neutral: what attach() puts on the registered interface is
all that they need. And a device that can capture by PyTorch's registry and has no graph operations, as XPU is:
skipped, with the reason."""
import os
import unittest
from unittest import mock

WANTED = os.environ.get("RONDO_TORCH_DEVICE")
os.environ["RONDO_TORCH_TREES"] = "upstream"  # before PyTorch: it may load the installed package

import second_device  # noqa: E402  (before PyTorch: it says that the place is not Rondo's)

if WANTED == "sim":
    second_device.leave_out("no device of Rondo's is used here: one run is enough")
import attach_kit  # noqa: E402
from attach_kit import EndToEnd, compiled, second  # noqa: E402

import torch  # noqa: E402
from torch._dynamo.device_interface import DeviceInterface  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

import rondo_torch  # noqa: E402
from rondo_torch import _C, interface, upstream  # noqa: E402
from rondo_torch.attach import POOL_OPERATIONS  # noqa: E402
from second import inductor  # noqa: E402


class WithInductorsTrees(EndToEnd, unittest.TestCase):
    manager_captures = 1
    tells_of_replays = False

    def test_whose_trees_they_are(self):
        self.assertEqual(upstream.installed(), "duck")
        run = compiled(lambda x: x + 1)
        for _ in range(3):
            run(torch.ones(4, device="second"))
        trees = torch._inductor.cudagraph_trees
        manager = trees.get_manager(torch.device("second", 0), create_if_none_exists=False)
        self.assertEqual((type(manager).__name__, manager.device_type), ("GraphTreeManager", "second"))
        self.assertIsInstance(manager.graph, second.Graph)
        # Those of a PyTorch that was built with CUDA make tensors of CUDA's.
        self.assertIs(trees._graph_bindings("second"), _C.bindings)
        self.assertEqual(_C.tree_managers(), [])

    def test_the_interface_is_as_it_was_after_detach(self):
        interface, given = inductor.SecondInterface, {"is_graph_capture_supported"}
        names = {"GraphOps", "is_graph_capture_supported"}
        self.assertEqual(names & set(vars(interface)), names)
        self.assertIs(interface.GraphOps.graph_pool_handle, second.GraphOps.graph_pool_handle)
        rondo_torch.detach("second")
        self.assertEqual(names & set(vars(interface)), given)
        self.assertIs(interface.GraphOps, DeviceInterface.GraphOps)

    def test_operations_that_the_interface_has_itself(self):
        rondo_torch.detach("second")
        with mock.patch.object(inductor.SecondInterface, "GraphOps", second.GraphOps, create=True):
            known = rondo_torch.attach("second")
            self.assertEqual(known.why_no_trees, "")
            run = compiled(lambda x: x + 1)
            for _ in range(4):
                self.same(run(torch.ones(4, device="second")), torch.full((4,), 2.0))
            self.counted(captures=1, replays=3)
            rondo_torch.detach("second")
            self.assertIs(inductor.SecondInterface.GraphOps, second.GraphOps)

    def test_what_is_missing_is_named(self):
        lacks = {name: getattr(second.GraphOps, name) for name in POOL_OPERATIONS if not name.startswith("r")}
        for ops, says in ((type("Some", (), {"create_graph": second.Graph, **lacks}),
                           "second: its GraphOps has no release_pool, raw_delete, which graph trees need"),
                          (type("Derived", (interface.GraphOps,), {"create_graph": second.Graph, **lacks}),
                           "second: its GraphOps has no release_pool, raw_delete, which graph trees need"),
                          (type("None_", (), {"create_graph": second.Graph}),
                           "second: its interface has no GraphOps, which graph trees need")):
            with self.subTest(says):
                self.forget()
                rondo_torch.detach("second")
                rondo_torch.attach("second", graph_ops=ops)
                run = compiled(lambda x: x + 1)
                with self.assertLogs("torch._inductor.cudagraph_utils", "WARNING") as logged:
                    for _ in range(3):
                        self.same(run(torch.ones(4, device="second")), torch.full((4,), 2.0))
                self.assertIn(says, "".join(logged.output))
                self.assertEqual(counters["inductor"]["cudagraph_skips"], 1)
                self.assertEqual(second.counts(), self.before)


class XpuDouble(attach_kit.XpuDouble, unittest.TestCase):
    manager_captures = 1
    why = "second: its interface has no GraphOps, which graph trees need"

    def setUp(self):
        upstream.remove()
        super().setUp()
        self.assertEqual(upstream.installed(), "kept")


if __name__ == "__main__":
    unittest.main()
