# SPDX-License-Identifier: Apache-2.0
"""PR-5b: graphs are made and captured by exactly one fork of each kind, and what is not CUDA works from end to end."""
import ast
import importlib.util
import unittest

import torch

import rondo_torch
from rondo_torch import upstream
from rondo_torch.upstream import edit, rules_compile, table
from upstream_models import graphed, two, values

INSTEAD = {"kept": "torch.accelerator.Graph", "contract": "GraphOps.make_graph", "duck": "GraphOps.create_graph"}


def tearDownModule():
    upstream.remove()


def forks(tree):
    """The ifs on CUDA that make or capture a graph, by the calls in their two branches."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and 'device_type == \'cuda\'' in ast.unparse(node.test):
            calls = [[ast.unparse(call.func) for statement in branch for call in ast.walk(statement)
                      if isinstance(call, ast.Call)]
                     for branch in (node.body, node.orelse)]
            if any(name.startswith("torch.cuda.") for name in calls[0]):
                found.append(calls)
    return found


class Forks(unittest.TestCase):
    def test_kept_forks_two_constructions_and_one_context_for_two_captures(self):
        text = edit.read("trees", table.transformed(table.TREES, "kept"))
        found = forks(text.tree)
        made = [calls for calls in found if "torch.cuda.CUDAGraph" in calls[0]]
        captured = [calls for calls in found if "torch.cuda.graph" in calls[0]]
        self.assertEqual((len(found), len(made), len(captured)), (3, 2, 1))
        for calls in made:
            self.assertIn("torch.accelerator.Graph", calls[1])
        self.assertEqual(captured[0][1], ["di.stream"])
        for scope in ("GraphTreeManager.__init__", "CUDAGraphNode._record"):
            self.assertEqual(len(text.find(scope, "_graph_capture_context(")), 1, scope)

    def test_kept_forks_the_path_without_trees_once(self):
        found = forks(ast.parse(table.transformed(rules_compile.COMPILE, "kept")))
        self.assertEqual(len(found), 1)
        self.assertEqual(found[0][0][:2], ["torch.cuda.CUDAGraph", "torch.cuda.graph"])
        self.assertEqual(found[0][1][:2], ["torch.accelerator.Graph", "di.stream"])

    def test_the_others_have_no_fork(self):
        for variant in ("contract", "duck"):
            for file in (table.TREES, rules_compile.COMPILE):
                text = table.transformed(file, variant)
                self.assertEqual(forks(ast.parse(text)), [], f"{variant}: {file}")
                self.assertIn(INSTEAD[variant], text)

    def test_cuda_s_lines_are_as_they_were(self):
        """The forks indent what is there and change nothing of it but an annotation."""
        before = [line.strip() for line in table.read(table.TREES).splitlines()]
        after = [line.strip() for line in table.transformed(table.TREES, "kept").splitlines()]
        line = "self.cuda_graphs_thread_pool = torch.cuda.graph_pool_handle()"
        self.assertEqual((before.count(line), after.count(line)), (1, 1))
        # CUDA's graph is made before its pool, as ever; elsewhere the pool exists before the graph.
        self.assertTrue(after[after.index(line) - 1].endswith("= torch.cuda.CUDAGraph()"))
        manager = edit.read("trees", table.transformed(table.TREES, "kept"))
        pool, graph = (manager.find("GraphTreeManager.__init__", word)[0].start()
                       for word in ("self.device_interface.GraphOps.graph_pool_handle()", "torch.accelerator.Graph("))
        self.assertLess(pool, graph)

    def test_the_capture_mode_is_thread_local_everywhere(self):
        for variant in table.VARIANTS:
            for file in (table.TREES, rules_compile.COMPILE):
                for node in ast.walk(ast.parse(table.transformed(file, variant))):
                    if isinstance(node, ast.keyword) and node.arg == "capture_error_mode":
                        self.assertIn(ast.unparse(node.value), ("'thread_local'", "capture_error_mode"),
                                      f"{variant}: {file}")


class EndToEnd(unittest.TestCase):
    """The branch that is not CUDA, on the device."""

    def setUp(self):
        torch._dynamo.reset()
        self.addCleanup(torch._dynamo.reset)

    def test_graphs_are_of_the_variant_s_kind(self):
        for variant in table.VARIANTS:
            upstream.install(variant)
            trees = torch._inductor.cudagraph_trees
            run = graphed(trees, two, [], outputs=2)
            for step in range(3):
                x, y = values((4, 5), step), values((5, 4), step + 50)
                got = run(x.to("rondo"), y.to("rondo"))
                for one, other in zip(got, two(x, y)):
                    torch.testing.assert_close(one.cpu(), other)
                del got, one
                torch.compiler.cudagraph_mark_step_begin()
            manager = trees.get_manager(torch.device("rondo", 0), create_if_none_exists=False)
            node = next(iter(manager.get_roots()))
            for graph in (manager.graph, node.graph):
                self.assertIs(type(graph),
                              rondo_torch.graphs.RondoGraph if variant == "duck" else torch.accelerator.Graph)
                self.assertEqual(graph.pool(), manager.cuda_graphs_thread_pool)
                if variant != "duck":
                    self.assertEqual((graph.graph_pool, graph.capture_error_mode),
                                     (manager.cuda_graphs_thread_pool, "thread_local"))
            trees.reset_cudagraph_trees()

    def test_the_path_without_trees(self):
        import torch._inductor.compile_fx as compile_fx
        from upstream_models import boxed

        for variant in table.VARIANTS:
            upstream.install(variant)
            weight = values((3, 3), 1).to("rondo")
            runs = []

            def model(x, w):
                runs.append(1)
                return torch.tanh(x @ w) * 2, x + 1

            run = compile_fx.cudagraphify_impl(boxed(model), [values((2, 3), 0).to("rondo"), weight], [1])
            self.assertEqual(len(runs), 2, "one warm-up and one recording")
            for step in range(4):
                x = values((2, 3), step)
                got = run([x.to("rondo"), weight])
                torch.testing.assert_close(got[0].cpu(), torch.tanh(x @ weight.cpu()) * 2)
                torch.testing.assert_close(got[1].cpu(), x + 1)
            self.assertEqual(len(runs), 2, "a replay runs no Python")

    def test_generators_advance_once(self):
        """Warm-up without trees leaves the generator where it was, so the first replay draws what an eager call
        would."""
        import torch._inductor.compile_fx as compile_fx
        from upstream_models import boxed

        upstream.install("kept")
        x = torch.zeros(64, device="rondo")
        torch.rondo.manual_seed(3)
        expected = [torch.empty_like(x).uniform_().cpu() for _ in range(3)]
        torch.rondo.manual_seed(3)
        run = compile_fx.cudagraphify_impl(boxed(lambda x: x.uniform_() + 0), [x.clone()], [])
        for want in expected:
            torch.testing.assert_close(run([x.clone()])[0].cpu(), want, rtol=0, atol=0)

    def test_torch_compile_in_partitions(self):
        if importlib.util.find_spec("rondo_torch.gates") is None:
            self.skipTest("partitions need rondo_torch.gates")
        self.compile_a_model(graph_partition=True)

    def test_torch_compile_as_a_whole(self):
        self.compile_a_model(graph_partition=False)

    @staticmethod
    def partitions(graph_partition):
        import torch._inductor.config

        return torch._inductor.config.patch(graph_partition=graph_partition)

    def compile_a_model(self, graph_partition):
        from torch._dynamo.utils import counters

        upstream.install("kept")
        with rondo_choice("upstream"), self.partitions(graph_partition):
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
            ours = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to("rondo")
            ours.load_state_dict(model.state_dict())
            counters.clear()
            compiled = torch.compile(ours, mode="reduce-overhead")
            with torch.no_grad():
                for step in range(4):
                    x = values((3, 6), step)
                    torch.testing.assert_close(compiled(x.to("rondo")).cpu(), model(x))
            self.assertEqual(counters["inductor"]["cudagraph_skips"], 0)
            manager = torch._inductor.cudagraph_trees.get_manager(0, create_if_none_exists=False)
            self.assertEqual(manager.path_state.name, "EXECUTION")
            del manager

    def test_training(self):
        upstream.install("kept")
        with rondo_choice("upstream"), self.partitions(False):
            torch.manual_seed(0)
            models = [torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8,
                                                                                                  1)) for _ in range(2)]
            models[1].load_state_dict(models[0].state_dict())
            models[1].to("rondo")
            compiled = torch.compile(models[1], mode="reduce-overhead")
            steps = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
            for step in range(6):
                x, y = values((16, 6), step), values((16, 1), 90 + step)
                losses = []
                for call, optimizer, device in ((models[0], steps[0], "cpu"), (compiled, steps[1], "rondo")):
                    optimizer.zero_grad()
                    loss = (call(x.to(device)) - y.to(device)).square().mean()
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
                self.assertAlmostEqual(*losses, places=5)
            manager = torch._inductor.cudagraph_trees.get_manager(0, create_if_none_exists=False)
            self.assertEqual(manager.path_state.name, "EXECUTION")
            forward = next(iter(manager.get_roots()))
            self.assertEqual(forward.num_descendants(), 1, "the backward is the forward's child")
            del manager, forward


class rondo_choice:
    def __init__(self, trees):
        self.trees = trees

    def __enter__(self):
        from rondo_torch import config

        self.before, config.trees = config.trees, self.trees

    def __exit__(self, *_):
        from rondo_torch import config

        config.trees = self.before


if __name__ == "__main__":
    unittest.main()
