# SPDX-License-Identifier: Apache-2.0
"""PR-5a: the mechanical replacements, each where the table of the proposal has it, and the states of generators."""
import ast
import contextlib
import types
import unittest
from unittest import mock

import torch

import rondo_torch  # noqa: F401
from rondo_torch import upstream
from rondo_torch.upstream import edit, table

# What was called -> what stands for it, and in how many places of the trees' module. The proposal's table.
REPLACED = {
    "torch.cuda.synchronize()": ("synchronize()", 7),
    "torch.cuda.current_stream()": ("current_stream()", 5),
    "torch.cuda.Stream()": ("Stream()", 1),
    "torch.cuda.stream(": ("stream(", 1),
    "torch.cuda.device(": ("device(", 5),
    "torch.cuda.memory_snapshot()": ("GraphOps.memory_snapshot()", 1),
    "torch._C._cuda_beginAllocateCurrentThreadToPool(": ("GraphOps.begin_allocate_current_thread_to_pool(", 1),
    "torch._C._cuda_endAllocateToPool(": ("GraphOps.end_allocate_to_pool(", 1),
    "torch._C._cuda_releasePool(": ("GraphOps.release_pool(", 1),
    "torch._C._cuda_getCheckpointState(": ("GraphOps.get_checkpoint_state(", 1),
    "torch._C._cuda_setCheckpointPoolState(": ("GraphOps.set_checkpoint_pool_state(", 1),
    "torch._C._cuda_checkPoolLiveAllocations(": ("GraphOps.check_pool_live_allocations(", 1),
    "torch._C._cuda_cudaCachingAllocator_raw_delete(": ("GraphOps.raw_delete(", 1),
}
# What may still name CUDA: its clean-ups behind their guards, and the forks of PR-5b.
GUARDED = {"clear_cublass_cache", "disable_conv_cache_emptying", "enable_history_recording", "_graph_capture_context"}


def setUpModule():
    upstream.install("kept")


def tearDownModule():
    upstream.remove()


def trees_before_and_after():
    return edit.read("before", table.read(table.TREES)), edit.read("after", table.transformed(table.TREES, "kept"))


class Replacements(unittest.TestCase):
    def test_each_is_where_the_proposal_has_it(self):
        before, after = trees_before_and_after()
        di = edit.re.compile(r"(self\.device_interface|\bdi|_graph_device_interface\(device_type\))\.")
        for old, (new, count) in REPLACED.items():
            self.assertGreaterEqual(len(before.find("", old)), count, old)
            found = [match for match in after.find("", di) if after.text.startswith(new, match.end())]
            self.assertGreaterEqual(len(found), count, new)

    def test_nothing_names_cuda_but_guards_and_forks(self):
        _, after = trees_before_and_after()
        owners = {}
        for name, nodes in after.named.items():
            for node in nodes:
                for child in ast.walk(node):
                    owners[child] = name  # the innermost definition is named last
        for node in ast.walk(after.tree):
            if isinstance(node, ast.Attribute):
                text = ast.unparse(node)
                if text.startswith("torch.cuda.") or text.startswith(("torch._C._cuda", "torch._C._cudnn")):
                    owner = owners.get(node, "")
                    forked = owner in ("CUDAGraphNode.__init__", "GraphTreeManager.__init__")
                    self.assertTrue(owner in GUARDED or forked, f"{owner}: {text}")

    def test_guards_come_first(self):
        """On another device the clean-ups of CUDA do nothing at all, and need no symbol of it."""
        trees = torch._inductor.cudagraph_trees
        with mock.patch.object(trees.torch, "_C", types.SimpleNamespace()):
            for manager in (trees.clear_cublas_manager, trees.disable_conv_cache_emptying,
                            trees.enable_history_recording):
                with manager("rondo"):
                    pass
                with self.assertRaises(AttributeError):
                    with manager("cuda"):
                        pass

    def test_the_clean_ups_of_cuda_are_not_merged(self):
        """Warm-up empties cuBLAS and keeps the cache of convolutions; recording does the first alone: with a graph,
        and without one where PyTorch knows functions without kernels."""
        before, after = trees_before_and_after()
        recorded = len(before.find("CUDAGraphNode._record", "clear_cublas_manager"))
        self.assertIn(recorded, (1, 2))
        self.assertEqual(len(after.find("CUDAWarmupNode.run", "disable_conv_cache_emptying")), 1)
        self.assertEqual(len(after.find("CUDAWarmupNode.run", "clear_cublas_manager")), 1)
        self.assertEqual(len(after.find("CUDAGraphNode._record", "disable_conv_cache_emptying")), 0)
        self.assertEqual(len(after.find("CUDAGraphNode._record", "clear_cublas_manager")), recorded)

    def test_three_classes_know_their_device(self):
        from upstream_models import graphed, two, values

        trees = torch._inductor.cudagraph_trees
        run = graphed(trees, two, [], outputs=2)
        nodes = []
        for step in range(2):
            run(values((2, 3), step).to("rondo"), values((3, 2), step).to("rondo"))
            nodes.append(trees.get_manager(0, create_if_none_exists=False).current_node)
            torch.compiler.cudagraph_mark_step_begin()
        manager = trees.get_container(torch.device("rondo", 0)).get_tree_manager()
        self.assertEqual([type(node).__name__ for node in nodes], ["CUDAWarmupNode", "CUDAGraphNode"])
        from rondo_torch.interface import RondoInterface

        for thing in (*nodes, manager):
            self.assertEqual(thing.device_type, "rondo")
            self.assertIs(thing.device_interface, RondoInterface)
        trees.reset_cudagraph_trees()

    def test_names(self):
        trees = torch._inductor.cudagraph_trees
        self.assertIs(trees.CUDAGraphTreeManager, trees.GraphTreeManager)
        self.assertEqual(trees._graph_device_type(), "rondo")
        self.assertEqual(trees._graph_device_type([1, torch.ones(1), torch.ones(1, device="rondo:0")]), "rondo")
        self.assertEqual(trees._graph_device_type(torch.device("cuda", 3)), "cuda")
        with mock.patch.object(torch.accelerator, "current_accelerator", return_value=None):
            self.assertEqual(trees._graph_device_type(), "cuda")
            self.assertEqual(trees._graph_device_type(torch.ones(1, device="rondo")), "rondo")

    def test_containers_are_devices(self):
        trees = torch._inductor.cudagraph_trees
        one = trees.get_container(torch.device("rondo", 0))
        self.assertIs(trees.get_container(0), one)  # an index is of the current accelerator
        self.assertIs(trees.get_container(torch.device("rondo")), one)
        other = trees.get_container(torch.device("cuda", 0))
        self.assertIsNot(other, one)
        self.assertEqual((one.device_type, one.device_index), ("rondo", 0))
        self.assertEqual((other.device_type, other.device_index), ("cuda", 0))
        trees.reset_cudagraph_trees()

    def test_a_manager_of_another_type_is_found_by_index(self):
        """Whoever knows an index alone (the wrapper around a backward without graphs) gets the manager that is
        there."""
        trees = torch._inductor.cudagraph_trees
        self.assertIsNone(trees.get_manager(0, create_if_none_exists=False))
        container = trees.get_container(torch.device("cuda", 0))
        container.tree_manager = double = mock.Mock()
        self.assertIs(trees.get_manager(0, create_if_none_exists=False), double)
        self.assertIs(trees.get_manager(torch.device("cuda", 0), create_if_none_exists=False), double)
        self.assertIsNone(trees.get_manager(torch.device("rondo", 0), create_if_none_exists=False))
        self.assertIsNone(trees.get_manager(1, create_if_none_exists=False))
        own = trees.get_manager(torch.device("rondo", 0))
        self.assertIs(trees.get_manager(0, create_if_none_exists=False), own)
        container.tree_manager = None
        trees.reset_cudagraph_trees()

    def test_no_snapshot_skips_the_slow_check(self):
        trees = torch._inductor.cudagraph_trees
        from rondo_torch.interface import RondoInterface

        operations = RondoInterface.GraphOps
        with (mock.patch.object(operations, "check_pool_live_allocations", staticmethod(lambda *_: False)),
              mock.patch.object(operations, "memory_snapshot", staticmethod(lambda: None))):
            self.assertIsNone(trees.get_cudagraph_segments((0, 1)))
            self.assertEqual(trees.get_block_addrs((0, 1)), [])
            self.assertIsNone(trees.check_memory_pool(0, (0, 1), []))
        with (mock.patch.object(operations, "check_pool_live_allocations", staticmethod(lambda *_: False)),
              mock.patch.object(operations, "memory_snapshot", staticmethod(lambda: [
                  {"segment_pool_id": (0, 1), "address": 64, "blocks": [{"state": "active_allocated", "size": 64}]}]))):
            with self.assertRaisesRegex(RuntimeError, "Detected 1 tensor"):
                trees.check_memory_pool(0, (0, 1), [])


class Generator:
    """A double of a device's generator."""

    def __init__(self, name):
        self.name = name

    def clone_state(self):
        return Generator(f"clone of {self.name}")


class GeneratorState(unittest.TestCase):
    """ir.py turns the state of a generator into a clone of the device's generator, in two places."""

    @contextlib.contextmanager
    def lowering(self):
        from torch._inductor import ir
        from torch._inductor.virtualized import V
        from torch._subclasses.fake_tensor import FakeTensorMode

        graph = types.SimpleNamespace(constants={}, torchbind_constants={})
        node = types.SimpleNamespace(target=None, meta={})  # of the program, which some releases look at
        with V.set_graph_handler(graph), V.set_fake_mode(FakeTensorMode()), V.set_current_node(node):
            yield ir

    def processed(self, device, place):
        """The generator that the kernel of an operator gets."""
        seen = []

        def kernel(value):
            seen.append(value)
            return torch.ones(1)

        with self.lowering() as ir:
            state = ir.GeneratorState(name="rng", device=torch.device(device))
            if place == "args_flat":
                ir.ExternKernel.process_kernel(kernel, state)
            else:
                # Not an argument itself, but what an argument is realised to.
                argument = ir.NoneAsConstantBuffer()
                with mock.patch.object(ir.ExternKernel, "realize_input", return_value=state):
                    ir.ExternKernel.process_kernel(kernel, argument)
        return seen[0]

    def test_the_device_s_own_generator_is_cloned(self):
        from rondo_torch.interface import RondoInterface

        doubles = [Generator("rondo:0"), Generator("rondo:1")]
        with mock.patch.object(RondoInterface, "default_generators", staticmethod(lambda: doubles)):
            for place in ("args_flat", "example_inputs"):
                for index in (0, 1):
                    got = self.processed(f"rondo:{index}", place)
                    self.assertEqual(got.name, f"clone of rondo:{index}", place)

    def test_cuda_has_its_generators(self):
        with mock.patch.object(torch.cuda, "default_generators", (Generator("cuda:0"),)):
            for place in ("args_flat", "example_inputs"):
                self.assertEqual(self.processed("cuda:0", place).name, "clone of cuda:0", place)

    def test_xpu_has_its_generators(self):
        with mock.patch.object(torch.xpu, "default_generators", (Generator("xpu:0"),)):
            for place in ("args_flat", "example_inputs"):
                self.assertEqual(self.processed("xpu:0", place).name, "clone of xpu:0", place)

    def test_an_index_is_needed(self):
        for place in ("args_flat", "example_inputs"):
            for device in ("rondo", "cuda"):
                with self.assertRaisesRegex(AssertionError, "^Expected GeneratorState device_index is not None$"):
                    self.processed(device, place)

    def test_a_device_without_generators(self):
        for place in ("args_flat", "example_inputs"):
            with self.assertRaises(NotImplementedError):
                self.processed("cpu:0", place)

    def test_stock_knows_cuda_alone(self):
        """What the change is for: without it, another device is refused."""
        upstream.remove()
        try:
            with self.assertRaises(AssertionError):
                self.processed("rondo:0", "args_flat")
        finally:
            upstream.install("kept")

    def test_rondo_s_generator_can_be_cloned(self):
        generator = torch.rondo.default_generators()[0]
        generator.manual_seed(5)
        clone = generator.clone_state()
        self.assertEqual(clone.initial_seed(), 5)
        self.assertEqual(clone.device, generator.device)


if __name__ == "__main__":
    unittest.main()
