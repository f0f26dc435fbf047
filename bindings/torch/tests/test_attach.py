# SPDX-License-Identifier: Apache-2.0
"""Another vendor's device attached to Rondo's trees: a second device, which uses nothing of Rondo, in this process."""
import os
import sys
import unittest
from unittest import mock

WANTED = os.environ.get("RONDO_TORCH_DEVICE")

import second_device  # noqa: E402  (before PyTorch: it says that the place is not Rondo's)
import standins  # noqa: E402

if WANTED == "sim":
    second_device.leave_out("no device of Rondo's is used here: one run is enough")
second = second_device.load()

import forks  # noqa: E402
import torch  # noqa: E402

import rondo_torch  # noqa: E402
import test_pages  # noqa: E402
from rondo_torch import graphs, interface  # noqa: E402
from rondo_torch.attach import Attachment, attached, attached_types  # noqa: E402
from second import inductor  # noqa: E402

inductor.register()


class Alone(unittest.TestCase):
    """The second device by itself: what the rest of this file stands on."""

    def test_it_has_the_place(self):
        self.assertEqual(torch.accelerator.current_accelerator().type, "second")
        self.assertFalse(hasattr(torch, "rondo"))
        self.assertEqual(rondo_torch.without_device, "RONDO_TORCH_DEVICE is none")
        self.assertIs(torch._C._accelerator_hasGraphImpl(), False)
        self.assertIs(torch._C._accelerator_hasGraphImpl("second"), False)
        with self.assertRaisesRegex(RuntimeError, "not supported on device type: second"):
            torch.accelerator.Graph()

    def test_training_equals_the_cpu(self):
        standins.compare_training("second")

    def test_graphs(self):
        x = torch.ones(4, device="second")
        graph = second.Graph()
        with torch.Stream(device="second"):
            graph.capture_begin()
            y = torch.relu(x * 2 - 3)
            graph.capture_end()
        for value in (5.0, 1.0):
            x.fill_(value)
            graph.replay()
            self.assertEqual(y.cpu().tolist(), [max(0.0, 2 * value - 3)] * 4)
        self.assertTrue(second.GraphOps.check_pool_live_allocations(0, graph.pool(), {y.data_ptr()}))
        with torch.Stream(device="second"), self.assertRaisesRegex(RuntimeError, "cannot be captured"):
            other = second.Graph()
            other.capture_begin()
            (x * 2).sum().item()

    def test_checkpoints(self):
        ops, pool = second.GraphOps, second.GraphOps.graph_pool_handle()
        ops.begin_allocate_current_thread_to_pool(0, pool)
        x = torch.ones(4, device="second")
        ops.end_allocate_to_pool(0, pool)
        state, address = ops.get_checkpoint_state(0, pool), x.data_ptr()
        del x
        self.assertTrue(ops.check_pool_live_allocations(0, pool, set()))
        storage = torch._C._construct_storage_from_data_pointer(address, torch.device("second", 0), 16)
        ops.set_checkpoint_pool_state(0, state, [], [storage._cdata])
        self.assertTrue(ops.check_pool_live_allocations(0, pool, {address}))
        del storage
        self.assertTrue(ops.check_pool_live_allocations(0, pool, set()))
        ops.release_pool(0, pool)


class Attaching(unittest.TestCase):
    def setUp(self):
        self.addCleanup(rondo_torch.detach, "second")

    def test_attach_and_detach(self):
        self.assertIsNone(attached("second"))
        attachment = rondo_torch.attach("second", graph_ops=second.GraphOps)
        self.assertIs(attached("second"), attachment)
        self.assertIs(rondo_torch.attach("second", graph_ops=second.GraphOps), attachment)
        self.assertEqual((attachment.why_no_trees, attached_types()), ("", ("second",)))
        self.assertIs(attachment.interface, inductor.SecondInterface)
        with self.assertRaisesRegex(ValueError, "second is attached already with other graph operations: detach"):
            rondo_torch.attach("second")
        self.assertIs(rondo_torch.detach("second"), True)
        self.assertIs(rondo_torch.detach("second"), False)
        self.assertIsNone(attached("second"))

    def test_what_cannot_be_attached(self):
        for what, error, text in (("second:0", ValueError, "takes a type of device, not one device: 'second' rather"),
                                  ("cuda", ValueError, "cuda cannot be attached: it has PyTorch's path"),
                                  ("cpu", ValueError, "cpu cannot be attached: it runs no graphs"),
                                  ("meta", ValueError, "meta cannot be attached"),
                                  ("bogus", RuntimeError, "bogus")):
            with self.subTest(what), self.assertRaisesRegex(error, text):
                rondo_torch.attach(what)
            self.assertEqual(attached_types(), ())

    def test_the_package_and_the_defaults(self):
        ops = Attachment("second", second.GraphOps).ops
        for name in (*rondo_torch.attach.POOL_OPERATIONS, "memory_snapshot", "create_graph"):
            self.assertIs(getattr(ops, name), getattr(second.GraphOps, name), name)
        self.assertIs(ops.caching_allocator_enabled(), True)
        with ops.prepare_for_capture() as nothing:
            self.assertIsNone(nothing)

    def test_operations_of_an_object(self):
        class Operations:
            def __init__(self):
                self.calls = []

            def __getattr__(self, name):
                if name not in rondo_torch.attach.POOL_OPERATIONS + ("create_graph",):
                    raise AttributeError(name)
                self.calls.append(name)
                return getattr(second.GraphOps, name)

        operations = Operations()
        attachment = Attachment("second", operations)
        self.assertEqual(attachment.why_no_trees, "")
        operations.calls.clear()
        attachment.ops.graph_pool_handle()
        self.assertEqual(operations.calls, ["graph_pool_handle"] * len(operations.calls))
        self.assertTrue(operations.calls)
        self.assertIs(attachment.ops.caching_allocator_enabled(), True)

    def test_of_the_interface_when_none_are_given(self):
        self.assertIn("lacks graph_pool_handle", Attachment("second", None).why_no_trees)
        with mock.patch.object(inductor.SecondInterface, "GraphOps", second.GraphOps, create=True):
            attachment = Attachment("second", None)
            self.assertEqual(attachment.why_no_trees, "")
            self.assertIs(attachment.ops.raw_delete, second.GraphOps.raw_delete)


class Reasons(unittest.TestCase):
    def reason(self, graph_ops, device_type="second"):
        return Attachment(device_type, graph_ops).why_no_trees

    def test_an_xpu_that_is_registered_and_has_no_operations(self):
        """Capable by the registry, and no pools: its trees are skipped with that reason, and nothing is raised."""
        with mock.patch.object(graphs, "has_graph_impl", side_effect=lambda which=None: which == "xpu"):
            self.assertTrue(interface.is_graph_capture_supported("xpu"))
            self.assertRegex(self.reason(None, "xpu"), "^xpu can capture graphs, but its GraphOps lacks "
                                                       "graph_pool_handle, begin_allocate_current.*, raw_delete$")
        self.assertRegex(self.reason(None, "xpu"), "^xpu cannot capture graphs: nothing is registered for it")

    def test_a_type_without_an_interface(self):
        self.assertEqual(self.reason(second.GraphOps, "hpu"), "hpu has no interface registered with Dynamo")

    def test_an_interface_that_says_no(self):
        with mock.patch.object(inductor.SecondInterface, "is_graph_capture_supported", staticmethod(lambda: False)):
            self.assertRegex(self.reason(second.GraphOps), "second cannot capture graphs")

    def test_some_operations(self):
        class Some:
            graph_pool_handle = second.GraphOps.graph_pool_handle
            create_graph = second.GraphOps.create_graph

        self.assertEqual(self.reason(Some), "second can capture graphs, but its GraphOps lacks "
                         "begin_allocate_current_thread_to_pool, end_allocate_to_pool, release_pool, "
                         "get_checkpoint_state, set_checkpoint_pool_state, check_pool_live_allocations, raw_delete")

    def test_no_graph(self):
        pools = type("Pools", (), {name: staticmethod(getattr(second.GraphOps, name))
                                   for name in rondo_torch.attach.POOL_OPERATIONS})
        self.assertEqual(self.reason(pools), "second has no graph: its GraphOps has no create_graph, and no "
                         "implementation is registered")
        with mock.patch.object(graphs, "has_graph_impl", return_value=True):
            self.assertEqual(self.reason(pools), "")


class Captures(unittest.TestCase):
    """What the manager of trees does with an attached device, by hand."""

    def setUp(self):
        self.attachment = Attachment("second", second.GraphOps)
        self.pool = self.attachment.ops.graph_pool_handle()
        self.attachment.ops.begin_allocate_current_thread_to_pool(0, self.pool)  # its use outlives all graphs here
        self.attachment.ops.end_allocate_to_pool(0, self.pool)
        self.stream = torch.Stream(device="second")
        self.x = torch.ones(4, device="second")

    def replayed(self, graph, y):
        self.x.fill_(3.0)
        graph.replay()
        self.assertEqual(y.cpu().tolist(), [6.0] * 4)

    def test_a_graph_of_the_packages_own(self):
        graph = self.attachment.new_graph(self.pool)
        self.assertIsInstance(graph, second.Graph)
        with self.attachment.capture(graph, self.stream, self.pool):
            self.assertEqual(torch.accelerator.current_stream(), self.stream)
            y = self.x * 2
        self.assertNotEqual(torch.accelerator.current_stream(), self.stream)
        self.assertEqual((graph.pool(), graph.mode), (self.pool, "thread_local"))
        self.replayed(graph, y)

    def test_in_three_calls(self):
        graph = self.attachment.new_graph(self.pool)
        self.attachment.begin_capture(graph, self.stream, self.pool)
        y = self.x * 2
        self.attachment.end_capture(graph)
        self.replayed(graph, y)

    def test_given_up(self):
        for number in range(2):
            graph = self.attachment.new_graph(self.pool)
            self.attachment.begin_capture(graph, self.stream, self.pool)
            _ = self.x * 2
            if number:
                with self.assertRaises(RuntimeError):
                    self.x.sum().item()
            self.attachment.abort_capture(graph)
            self.assertFalse(self.stream.is_capturing())
            self.assertEqual(self.attachment._open, {})
            self.attachment.abort_capture(graph)  # there is nothing to give up
            with self.assertRaisesRegex(RuntimeError, "nothing to replay"):
                graph.replay()

    def test_a_capture_that_fails_leaves_nothing(self):
        graph = self.attachment.new_graph(self.pool)
        with self.assertRaisesRegex(ValueError, "mine"):
            with self.attachment.capture(graph, self.stream, self.pool):
                _ = self.x * 2
                raise ValueError("mine")
        self.assertFalse(self.stream.is_capturing())
        self.assertNotEqual(torch.accelerator.current_stream(), self.stream)
        with self.assertRaisesRegex(RuntimeError, "nothing to replay"):
            graph.replay()

    def test_a_context_of_the_packages_own(self):
        calls = []

        class Own(second.GraphOps):
            @staticmethod
            def capture_context(graph, stream, pool, capture_error_mode):
                calls.append((stream, pool, capture_error_mode))
                return rondo_torch.attach._capture_own(graph, stream, pool)

        attachment = Attachment("second", Own)
        graph = attachment.new_graph(self.pool)
        with attachment.capture(graph, self.stream, self.pool):
            y = self.x * 2
        self.assertEqual(calls, [(self.stream, self.pool, "thread_local")])
        self.replayed(graph, y)


class Page(unittest.TestCase):
    """The Python of docs/vendor.md as it is printed, each block in a process of its own."""

    def test_blocks_run(self):
        found = test_pages.blocks("docs/vendor.md")
        self.assertGreaterEqual(len(found), 2)
        path = os.pathsep.join([os.path.dirname(os.path.dirname(second.__file__)), *filter(None, sys.path)])
        environment = dict(os.environ, PYTHONPATH=path, RONDO_TORCH_DEVICE="none")
        for number, text in enumerate(found):
            with self.subTest(block=number):
                done = forks.python(["-c", text], environment)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
