# SPDX-License-Identifier: Apache-2.0
"""torch.compile through Rondo's compiler: values against eager PyTorch, counts of graphs, plans and copies, weights that
change, what is left to PyTorch and what is refused."""
import copy
import gc
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest

import torch
from torch import nn

import rondo_torch  # noqa: F401
from rondo_torch import torchair
from torchair_kit import ADDRESSES, MLP, ROOT, compiled, library, models

import forks


class Case(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)

    def agree(self, got, want, bound=1e-5):
        self.assertEqual((got.shape, got.dtype, got.stride()), (want.shape, want.dtype, want.stride()))
        self.assertLessEqual((got - want).abs().max().item(), bound * max(1.0, want.abs().max().item()))


class Models(Case):
    def test_each_equals_eager(self):
        for name, (model, x) in models().items():
            for frozen in (False, True):
                with self.subTest(model=name, frozen=frozen), torch.no_grad():
                    function, backend = compiled(model, frozen=frozen)
                    want = model(x)
                    for _ in range(2):
                        self.agree(function(x), want)
                    graph, = backend.graphs
                    self.assertEqual((len(graph.partitions), len(graph.plans()), graph.refused), (1, 1, {}))
                    norms = "BatchNormalization" in graph.dump()
                    self.assertEqual(norms, name == "resnet18" and not frozen)  # they are in the convolutions
                    self.assertEqual(graph.plans()[0].info()["copies"], 0)

    def test_by_name(self):
        # As it is once the package is installed: by the entry points that its build writes.
        sys.path.append(os.path.join(ROOT, "bindings", "torch"))
        import build_backend

        program = ("import torch\n"
                   "f = torch.compile(lambda x: torch.relu(x) * 2, backend='rondo', fullgraph=True, dynamic=False)\n"
                   "assert f(torch.ones(3)).tolist() == [2, 2, 2]\n"
                   "import rondo_torch.torchair as t\n"
                   "assert t.rondo.backend.compilations == 1\n")
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, build_backend.dist_info()))
            for name, text in build_backend.info_files().items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            paths = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
            done = forks.python(["-c", program], dict(os.environ, PYTHONPATH=paths))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_options(self):
        model, x = models()["mlp"]
        function = torch.compile(model, backend=torchair.rondo, fullgraph=True, options={"frozen_parameter": True})
        with torch.no_grad():
            self.agree(function(x), model(x))
            self.assertGreater(torchair.rondo.backend.profile().total["weight_bytes"], 0)
        with self.assertRaisesRegex(Exception, "has no option 'frozen'"):
            torch.compile(model, backend=torchair.rondo, options={"frozen": 1})(x)

    def test_channels_last_is_read_as_it_lies(self):
        model, x = models()["lenet"]
        x = torch.randn(2, 3, 9, 9).to(memory_format=torch.channels_last)
        model = nn.Conv2d(3, 4, 3).eval()
        with torch.no_grad():
            function, backend = compiled(model)
            got, want = function(x), model(x)
            self.assertLessEqual((got - want).abs().max().item(), 1e-5)
            self.assertEqual(got.stride(), want.stride())
            self.assertEqual(backend.profile().total["copies"], 0)

    def test_gradients_equal_eager(self):
        for name, (model, x) in models().items():
            for training in (False, True):
                torch._dynamo.reset()
                with self.subTest(model=name, training=training):
                    for module in model.modules():
                        if isinstance(module, nn.Dropout):
                            module.p = 0.0
                        elif isinstance(module, nn.MultiheadAttention):
                            module.dropout = 0.0
                    inputs = torch.randn(3, 3, 64, 64) if name == "resnet18" else x
                    theirs = copy.deepcopy(model).train(training)
                    function, backend = compiled(model.train(training))
                    model.zero_grad()
                    for call in (function, theirs):
                        call(inputs).square().mean().backward()
                    for (which, mine), other in zip(model.named_parameters(), theirs.parameters()):
                        away = (mine.grad - other.grad).abs().max().item()
                        self.assertLessEqual(away, 1e-4 * other.grad.abs().max().item(), which)
                    for mine, other in zip(model.buffers(), theirs.buffers()):
                        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)
                    self.assertEqual([graph.is_backward for graph in backend.graphs], [False, True])
                    self.assertEqual(backend.graphs[0].refused, {})

    def test_gradients_of_attention(self):
        attention = nn.functional.scaled_dot_product_attention
        ways = {"plain": {}, "causal": {"is_causal": True}, "scaled": {"scale": 0.3},
                "masked": {"attn_mask": torch.rand(5, 5) > 0.3}, "weighed": {"attn_mask": torch.randn(2, 1, 5, 5)}}
        ways["masked"]["attn_mask"][1] = False  # a row that sees nothing
        for name, options in ways.items():
            torch._dynamo.reset()
            with self.subTest(way=name):
                def attend(q, k, v, options=options):
                    return attention(q, k, v, **options)

                tensors = [torch.randn(2, 3, 5, 4, requires_grad=True) for _ in range(3)]
                function, backend = compiled(attend)
                upstream = torch.randn(2, 3, 5, 4)
                results = []
                for call in (attend, function):
                    out = call(*tensors)
                    results.append((out.detach(), *torch.autograd.grad(out, tensors, upstream)))
                for want, got in zip(*results):
                    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
                self.assertEqual([graph.refused for graph in backend.graphs], [{}, {}])

    def test_copies_and_pickles(self):
        model, x = models()["mlp"]
        function, backend = compiled(model)
        with torch.no_grad():
            want = model(x)
            self.agree(function(x), want)
            other = copy.deepcopy(function)
            read = pickle.loads(pickle.dumps(model))
            for parameter in other.parameters():
                parameter.add_(1)
            self.agree(function(x), want)
            self.assertGreater((other(x) - want).abs().max().item(), 1)
            again = pickle.loads(pickle.dumps(backend))
            self.assertEqual((again.compilations, again.graphs, repr(again.config)), (0, [], repr(backend.config)))
            self.agree(torch.compile(read, backend=again, fullgraph=True)(x), want)
            self.assertEqual((again.compilations, backend.compilations), (1, 1))  # the copy runs the same code

    def test_two_configurations_of_one_model(self):
        model, x = models()["mlp"]
        backend = torchair.get_npu_backend()
        one = torch.compile(model, backend=backend, fullgraph=True)
        other = torch.compile(model, backend=backend, fullgraph=True, options={"frozen_parameter": True})
        with torch.no_grad():
            for _ in range(2):
                self.agree(one(x), model(x))
                self.agree(other(x), model(x))
            weights = [graph["weight_bytes"] > 0 for graph in backend.profile().graphs]
            self.assertEqual((backend.compilations, weights), (2, [False, True]))
            torch._dynamo.reset()
            self.agree(one(x), model(x))
            self.assertEqual(backend.compilations, 3)

    def test_training_follows_eager(self):
        ours, theirs = MLP(), MLP()
        theirs.load_state_dict(ours.state_dict())
        function, backend = compiled(ours)
        for model, call in ((ours, function), (theirs, theirs)):
            torch.manual_seed(3)
            optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
            for _ in range(4):
                loss = torch.nn.functional.cross_entropy(call(torch.randn(8, 16)), torch.randint(0, 8, (8,)))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        for mine, other in zip(ours.parameters(), theirs.parameters()):
            self.agree(mine.detach(), other.detach())
        self.assertEqual((backend.compilations, [graph.is_backward for graph in backend.graphs]), (1, [False, True]))


class Weights(Case):
    def change(self, model, how):
        with torch.no_grad():
            if how == "step":
                for parameter in model.parameters():
                    parameter.add_(0.25)
            elif how == "load":
                model.load_state_dict({name: value * 2 for name, value in model.state_dict().items()})
            elif how == "assign":
                model.load_state_dict({name: value - 1 for name, value in model.state_dict().items()}, assign=True)
            elif how == "data":
                model.first.weight.data.mul_(3)
            else:
                model.first.weight.detach().numpy()[0, 0] += 5

    def test_results_follow(self):
        for frozen, ways in ((False, ("step", "load", "assign", "data", "numpy")), (True, ("step", "load", "assign"))):
            model, x = models()["mlp"]
            torch._dynamo.reset()
            with torch.no_grad():
                function, backend = compiled(model, frozen=frozen)
                before = function(x)
                for how in ways:
                    self.change(model, how)
                    want = model(x)
                    self.assertGreater((want - before).abs().max().item(), 1e-3, how)
                    with self.subTest(frozen=frozen, how=how):
                        self.agree(function(x), want)
                    before = want

    def test_frozen_without_a_version_counter_is_refused(self):
        with torch.inference_mode():
            model, x = models()["mlp"]
            function, _ = compiled(model, frozen=True)
            with self.assertRaisesRegex(RuntimeError, "was made in inference mode and has no version counter"):
                function(x)

    def test_frozen_are_converted_once_a_change(self):
        model, x = models()["mlp"]
        with torch.no_grad():
            function, backend = compiled(model, frozen=True)
            for _ in range(3):
                function(x)
            partition = backend.graphs[0].partitions[0]
            self.assertEqual(partition.conversions, 1)
            self.assertGreater(backend.profile().total["weight_bytes"], 0)
            self.change(model, "step")
            for _ in range(3):
                function(x)
            self.assertEqual((partition.conversions, backend.compilations), (3, 1))  # once with the weights as inputs
            self.change(model, "step")
            for _ in range(3):
                function(x)
            self.assertEqual((partition.conversions, len(partition.plans), backend.compilations), (4, 2, 1))

    def test_frozen_that_change_before_each_call_are_inputs(self):
        model, x = models()["mlp"]
        with torch.no_grad():
            function, backend = compiled(model, frozen=True)
            for _ in range(6):
                self.change(model, "step")
                self.agree(function(x), model(x))
            self.assertEqual(backend.graphs[0].partitions[0].conversions, 2)

    def test_frozen_at_an_address_that_was_used_before(self):
        """What a swap of .data frees is where the swap after the next one puts its values; the counter stays the same."""
        model, x = models()["mlp"]
        seen = set()
        with torch.no_grad():
            function, _ = compiled(model, frozen=True)
            for call in range(24):
                if call % 2 == 0:
                    model.first.weight.data = model.first.weight.data * 1.2
                    seen.add(model.first.weight.data_ptr())
                self.agree(function(x), model(x))
        if len(seen) == 12:
            self.skipTest("this allocator gives no address twice")

    def test_frozen_in_another_object(self):
        model, x = models()["mlp"]
        with torch.no_grad():
            function, _ = compiled(model, frozen=True)
            function(x)
            values = model.first.weight.data
            values.mul_(3)  # no counter that the parameter has is told
            model.first.weight = nn.Parameter(values)
            self.agree(function(x), model(x))

    def test_frozen_between_steps_of_training(self):
        model, x = models()["mlp"]
        function, _ = compiled(model, frozen=True)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            function(x).square().mean().backward()
            optimizer.step()
            with torch.no_grad():
                for _ in range(2):
                    self.agree(function(x), model(x))


class Memory(Case):
    def test_plans_read_and_write_the_tensors_themselves(self):
        torchair.load_operators(library(ADDRESSES))
        domain = torch.library.Library("rondo_addresses", "FRAGMENT")
        domain.define("addresses(Tensor x) -> Tensor")
        domain.impl("addresses", lambda x: torch.empty(2, dtype=torch.int64, device=x.device), "Meta")

        @torchair.register_fx_node_ge_converter(torch.ops.rondo_addresses.addresses.default)
        def convert(x, meta_outputs=None):
            self.assertEqual((tuple(meta_outputs.shape), meta_outputs.dtype), ((2,), torch.int64))
            return torchair.ge.custom_op("test::Addresses", x, outputs=["where"])

        def where(x):
            return torch.ops.rondo_addresses.addresses(x)

        function, backend = compiled(where)
        for _ in range(3):
            x = torch.randn(8, 4)
            out = function(x)
            self.assertEqual(out.tolist(), [x.data_ptr(), out.data_ptr()])
        self.assertEqual(backend.profile().total["copies"], 0)
        wide = torch.randn(8, 8)[:, ::2]
        self.assertNotEqual(function(wide).tolist()[0], wide.data_ptr())
        self.assertEqual(backend.profile().total["copies"], 1)
        self.assertEqual(backend.profile().total["copied_bytes"], 8 * 4 * 4)

    def test_outputs_are_fresh(self):
        function, _ = compiled(lambda x: (x + 1, x * 2))
        x = torch.randn(5)
        first = function(x)
        kept = [one.clone() for one in first]
        second = function(x + 1)
        self.assertEqual(len({one.data_ptr() for one in (*first, *second)}), 4)
        for one, was in zip(first, kept):
            self.assertTrue(torch.equal(one, was))

    def test_mutated_and_returned_inputs(self):
        def change(x, y):
            x.add_(y)
            return x, y, x.t() + 1

        x, y = torch.randn(3, 3), torch.randn(3, 3)
        want_x = x.clone()
        want = change(want_x, y)
        function, _ = compiled(change)
        got = function(x, y)
        self.assertTrue(got[0] is x and got[1] is y)
        self.agree(x, want_x)
        self.agree(got[2], want[2])


class OnRondo(Case):
    """Tensors of the device: runs are enqueued on its current stream, and recorded where a capture records that."""

    def test_each_equals_eager(self):
        for name in ("mlp", "lenet", "encoder"):
            with self.subTest(model=name), torch.no_grad():
                torch._dynamo.reset()
                model, x = models()[name]
                function, backend = compiled(copy.deepcopy(model).to("rondo"))
                with torch.Stream(device="rondo"):
                    got = function(x.to("rondo"))
                    self.assertEqual(got.device.type, "rondo")
                    self.agree(got.cpu(), model(x))
                    self.agree((torch.relu(got) + 1).cpu(), torch.relu(model(x)) + 1)
                self.assertEqual(backend.profile().total["copies"], 0)

    def test_in_a_capture(self):
        model, x = models()["mlp"]
        with torch.no_grad():
            weights = copy.deepcopy(model).to("rondo")
            function, backend = compiled(weights)
            there = x.to("rondo")
            graph = torch.accelerator.Graph()
            with torch.Stream(device="rondo"):
                function(there)
                with graph:
                    out = function(there)
            runs = backend.profile().total["runs"]
            for _ in range(3):
                x = torch.randn(4, 16)
                there.copy_(x)
                torch.accelerator.synchronize()
                graph.replay()
                torch.accelerator.synchronize()
                self.agree(out.cpu(), model(x))
            self.assertEqual(backend.profile().total["runs"], runs)
            function = None  # what the plan had for its runs stays as long as the capture
            torch._dynamo.reset()
            gc.collect()
            graph.replay()
            torch.accelerator.synchronize()
            self.agree(out.cpu(), model(x))

    def test_two_devices_in_one_graph(self):
        def mixed(x, y):
            return (torch.relu(x) + 1).cpu() * torch.relu(y)

        x, y = torch.randn(4), torch.randn(4)
        function, backend = compiled(mixed, fullgraph=False)
        self.agree(function(x.to("rondo"), y), mixed(x, y))
        with self.assertRaisesRegex(Exception, "(?s)has a tensor of cpu, and the graph is compiled for rondo:0"):
            compiled(mixed)[0](x.to("rondo"), y)


class Graphs(Case):
    def test_a_break_makes_two_graphs(self):
        def broken(x):
            y = torch.relu(x) + 1
            torch._dynamo.graph_break()
            return torch.tanh(y) * 2

        x = torch.randn(4, 4)
        function, backend = compiled(broken, fullgraph=False)
        self.agree(function(x), broken(x))
        self.assertEqual((backend.compilations, len(backend.graphs)), (2, 2))
        function, backend = compiled(broken)
        with self.assertRaisesRegex(Exception, "graph_break"):
            function(x)
        self.assertEqual(backend.compilations, 0)

    def test_a_guard_that_fails_recompiles_once(self):
        function, backend = compiled(lambda x: torch.sigmoid(x) * 2)
        for size in (4, 4, 6, 6, 4, 6):
            x = torch.randn(size, 3)
            self.agree(function(x), torch.sigmoid(x) * 2)
        self.assertEqual(backend.compilations, 2)

    def test_dynamic_shapes(self):
        def mixed(x, y):
            joined = torch.cat([x, y], 0)
            return joined.reshape(-1, 2) * x.shape[0], joined.sum(1)

        function, backend = compiled(mixed, dynamic=True, specialisations=2)
        for size in (3, 5, 3, 7, 9, 3):
            x, y = torch.randn(size, 20), torch.randn(size + 1, 20)
            for got, want in zip(function(x, y), mixed(x, y)):
                self.agree(got, want)
        partition, = backend.graphs[0].partitions
        self.assertEqual((backend.compilations, len(partition.all_plans())), (1, 2))
        self.assertEqual((partition.conversions, partition.dropped), (5, 3))  # 3 came again when it had gone

    def test_bounds_of_a_size(self):
        function, backend = compiled(lambda x: torch.softmax(x, 1) * x.shape[0], dynamic=None)
        for size, compilations in ((3, 1), (8, 1), (5, 1), (9, 2), (4, 2)):
            x = torch.randn(size, 20)
            torch._dynamo.mark_dynamic(x, 0, min=2, max=8) if size <= 8 else None
            self.agree(function(x), torch.softmax(x, 1) * size)
            self.assertEqual(backend.compilations, compilations)

    def test_sizes_that_only_some_kernels_take(self):
        def pooled(x):
            return torch.nn.functional.adaptive_avg_pool2d(x + 1, 4)

        function, backend = compiled(pooled, dynamic=True)
        with self.assertLogs("rondo_torch.torchair", "WARNING") as logs:
            for size in (8, 12, 9):  # windows of one size, and then of several
                x = torch.randn(2, 3, size, size)
                self.agree(function(x), pooled(x))
        self.assertEqual(len(logs.records), 1)
        self.assertIn("windows of several sizes ([9, 9] to [4, 4])", logs.output[0])

    def test_what_has_no_converter(self):
        def odd(x):
            return torch.special.i0(torch.relu(x) + 1).tanh() * 2

        x = torch.randn(4, 4)
        function, backend = compiled(odd, fullgraph=False)
        self.agree(function(x), odd(x))
        graph, = backend.graphs
        self.assertEqual(len(graph.partitions), 2)
        self.assertEqual([name for name, *_ in graph.refused.values()], ["aten.i0.default"])
        self.assertIn("left to PyTorch: aten.i0.default", str(backend.profile()))
        for options in ({}, {"fullgraph": False, "fallback": "error"}):
            with self.assertRaisesRegex(Exception, "(?s)converter: rondo cannot compile 1 node.*aten.i0.default"):
                compiled(odd, **options)[0](x)
        function, _ = compiled(odd, fallback="eager")
        self.agree(function(x), odd(x))

    def test_what_has_no_kernel(self):
        def half(x):
            return (x + 1).to(torch.float32) * 2

        x = torch.randn(4, 4).half()
        function, backend = compiled(half, fullgraph=False)
        self.agree(function(x), half(x))
        self.assertEqual([layer for _, layer, _ in backend.graphs[0].refused.values()], ["kernel"])
        with self.assertRaisesRegex(Exception, "(?s)kernel: .*aten.add.Tensor"):
            compiled(half)[0](x)

    def test_narrow_floats_of_autocast(self):
        model, x = models()["mlp"]

        def narrow(x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return model(x)

        with torch.no_grad():
            function, backend = compiled(narrow, fullgraph=False)
            got, want = function(x), narrow(x)
            self.assertEqual(got.dtype, want.dtype)
            torch.testing.assert_close(got, want)
            with self.assertRaisesRegex(Exception, "(?s)aten.addmm.default.*kernel: rondo: node .* operator 'Gemm'"):
                compiled(narrow)[0](x)

    def test_complex_numbers(self):
        def spectrum(x):
            return (x * (2 + 1j)).abs() + 1

        x = torch.randn(5, dtype=torch.complex64)
        function, backend = compiled(spectrum, fullgraph=False)
        self.agree(function(x), spectrum(x))
        with self.assertRaisesRegex(Exception, "(?s)aten.mul.Tensor.*cannot be complex64"):
            compiled(spectrum)[0](x)

    def test_random_numbers_are_those_of_eager(self):
        def noisy(x):
            return nn.functional.dropout(torch.relu(x) + 1, 0.5) * 2 + torch.rand_like(x)

        x = torch.randn(40, 10, requires_grad=True)
        results = []
        for function in (noisy, compiled(noisy, fullgraph=False)[0]):
            torch.manual_seed(3)
            out = function(x)
            gradient, = torch.autograd.grad(out.sum(), x)
            results.append((out.detach(), gradient, torch.rand(3)))
        for got, want in zip(results[1], results[0]):
            self.agree(got, want)
        self.assertTrue(0.3 < (results[0][1] == 0).float().mean() < 0.9)
        with self.assertRaisesRegex(Exception, "aten.native_dropout.default"):
            compiled(noisy)[0](x)

    def test_calls_of_graphs(self):
        def chosen(x):
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)) * 2

        for sign in (1, -1):
            x = torch.ones(3) * sign
            function, backend = compiled(chosen, fullgraph=False)
            self.assertEqual(function(x).tolist(), [4.0 * sign] * 3)
            self.assertEqual([name for name, *_ in backend.graphs[0].refused.values()], ["cond"])
        with self.assertRaisesRegex(Exception, "cond \\(node cond.*no converter is registered for it"):
            compiled(chosen)[0](x)

    def test_sizes_that_depend_on_data(self):
        def picked(x):
            return (torch.relu(x)[x > 0] + 1) * 2

        x = torch.randn(20)
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            function, _ = compiled(picked, fallback="eager")
            for _ in range(3):
                self.agree(function(x), picked(x))
                x = torch.randn(20)

    def test_threads(self):
        model, x = models()["mlp"]
        function, _ = compiled(model)
        inputs = [torch.randn(4, 16) for _ in range(8)]
        results = [[] for _ in inputs]
        with torch.no_grad():
            function(x)
            want = [model(one) for one in inputs]

        def work(i):
            with torch.no_grad():
                for _ in range(20):
                    results[i].append(function(inputs[i]))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i, all_of_them in enumerate(results):
            self.assertEqual(len(all_of_them), 20)
            for got in all_of_them:
                self.agree(got, want[i])


class Files(Case):
    def test_export_and_load(self):
        model, x = models()["lenet"]
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            path = os.path.join(folder, "lenet.rondo")
            function, backend = compiled(model)
            with self.assertRaisesRegex(RuntimeError, "nothing has been compiled"):
                backend.export_model(path)
            function(x)
            backend.export_model(path)
            again = os.path.join(folder, "again.rondo")
            torchair.export_model(again, model, x)
            with open(path, "rb") as one, open(again, "rb") as other:
                self.assertEqual(one.read(), other.read())
            loaded = torchair.load_model(path)
            self.assertEqual(loaded.input_names, ["x"])
            self.agree(loaded(x), model(x))

    def test_the_tool_runs_it(self):
        import numpy

        tool = os.path.join(ROOT, os.environ.get("RONDO_BUILD") or "build", "bin", "rondo")
        if not os.path.exists(tool):
            self.skipTest("the tool is not built: ./dev build")
        model, x = models()["mlp"]
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            torchair.export_model(os.path.join(folder, "mlp.rondo"), model, x)
            numpy.save(os.path.join(folder, "x.npy"), x.numpy())
            done = subprocess.run([tool, "run", "mlp.rondo", "--input", "x=x.npy", "--output-dir", "out"], cwd=folder,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.agree(torch.from_numpy(numpy.load(os.path.join(folder, "out", "output_0.npy"))), model(x))

    def test_not_whole(self):
        def odd(x):
            return torch.special.i0(x) + 1

        function, backend = compiled(odd, fullgraph=False)
        function(torch.randn(3))
        with self.assertRaisesRegex(RuntimeError, "PyTorch runs aten.i0.default"):
            backend.export_model("/nowhere")


class Profiles(Case):
    def test_counts(self):
        model, x = models()["mlp"]
        with torch.no_grad():
            function, backend = compiled(model)
            for _ in range(5):
                function(x)
        total = backend.profile().total
        self.assertEqual((total["runs"], total["copies"], total["calls"]), (5, 0, 2))
        self.assertTrue(total["run_ns"] >= total["kernel_ns"] > 0)
        self.assertTrue(total["compile_ns"] >= total["plan_compile_ns"] > 0)
        self.assertEqual(torch.utils._pytree.tree_leaves(backend.profile().json())[0][0], "{")


class Configuration(Case):
    def test_unknown_names_are_refused(self):
        config = torchair.CompilerConfig()
        with self.assertRaisesRegex(AttributeError, "no option 'ge'"):
            config.ge = 1
        with self.assertRaisesRegex(ValueError, "mode cannot be 'reduce-overhead'"):
            config.mode = "reduce-overhead"
        with self.assertRaisesRegex(ValueError, "an integer above 0"):
            config.specialisations = 0
        with self.assertRaisesRegex(TypeError, "must be a CompilerConfig"):
            torchair.get_npu_backend(compiler_config={})

    def test_nothing_of_dynamo_is_imported(self):
        program = ("import sys, torch, rondo_torch, rondo_torch.torchair as t\n"
                   "t.get_npu_backend(compiler_config=t.CompilerConfig())\n"
                   "assert not [n for n in sys.modules if n.startswith(('torch._dynamo', 'torch._inductor'))]\n")
        server = os.environ.pop(forks.SERVER, None)  # a forked process has them all
        try:
            done = forks.python(["-c", program])
        finally:
            if server:
                os.environ[forks.SERVER] = server
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
