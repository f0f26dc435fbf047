# SPDX-License-Identifier: Apache-2.0
"""Which compiled functions may be graphed on the device, which parts of others, and what is said where not."""
import unittest

import torch
from torch._inductor import config
from trees_kit import DEVICE, TreeTest

from rondo_torch import _C, gates


def full(value, *shape):
    return torch.full(shape or (4,), float(value), device=DEVICE)


class Node:
    def __init__(self, name):
        self.name, self.users = name, ()


class Questions(TreeTest):
    def ask(self, *devices, partition=False):
        return gates.ask({torch.device(device): Node(f"n{i}") for i, device in enumerate(devices)}, partition)

    def test_one_device_passes(self):
        self.assertEqual(self.ask("rondo:0"), "")
        self.assertEqual(self.ask("rondo:0", "meta"), "")

    def test_host(self):
        self.assertEqual(self.ask("rondo:0", "cpu"), "cpu device (n1)")
        self.assertEqual(self.ask("rondo:0", "cpu", partition=True), "")

    def test_several(self):
        self.assertRegex(self.ask("rondo:0", "rondo:9"), "multiple devices: .*rondo.*, .*rondo")

    def test_a_type_that_is_added(self):
        for flags, text in ((0, "no graph implementation"), (_C.GATE_CAPABLE, None),
                            (_C.GATE_CAPABLE | _C.GATE_UNCACHED,
                             "cudagraph capture requires the caching allocator; current allocator is uncached")):
            gates.add_type("xpu", lambda index, flags=flags: flags)
            try:
                why = self.ask("xpu:0")
                self.assertIn(text, why) if text else self.assertEqual(why, "")
            finally:
                gates.remove_type("xpu")
        self.assertFalse(gates.is_ours("xpu"))

    def test_inductor_asks_here_about_ours_alone(self):
        from torch._inductor import cudagraph_utils
        check = cudagraph_utils.check_multiple_devices_or_any_cpu_nodes
        self.assertIsNone(check({torch.device("rondo:0"): Node("a")}))
        self.assertIsNone(check({torch.device("cuda:0"): Node("a")}))
        self.assertIn("multiple devices", check({torch.device("xpu:0"): Node("a")}))
        self.assertEqual(check({torch.device("rondo:0"): Node("a"), torch.device("cpu"): Node("b")}),
                         "skipping cudagraphs due to cpu device (b)")

    def test_operators(self):
        self.assertIsNotNone(_C.gates_ask_operator("aten::nonzero"))
        self.assertIsNone(_C.gates_ask_operator("aten::add.Tensor"))

    def test_counted(self):
        _C.gates_reset_counts()
        self.ask("rondo:0", "cpu")
        import json
        report = json.loads(_C.gates_report(json=True))
        self.assertIn("CPU_DEVICE", str(report))


class Refused(TreeTest):
    def whole(self, function, **options):
        return self.compile(function, graph_partition=False, **options)

    def test_multiple_devices_msg(self):
        f = self.whole(lambda x, y: (x * 2, y + 1))
        with self.logs() as lines:
            for i in range(3):
                a, b = f(full(i), torch.ones(2))
                self.same(a, torch.full((4,), 2.0 * i))
                self.same(b, torch.full((2,), 2.0))
        self.assertEqual((self.recordings(), self.skips()), (0, 1))
        self.assertEqual(lines.count("cpu device ("), 1)
        self.assertEqual(lines.count("due to skipping"), 0)
        if torch.rondo.device_count() > 1:
            g = self.whole(lambda x, y: (x * 2, y + 1))
            with self.logs() as lines:
                g(full(1), torch.ones(2, device="rondo:1"))
            self.assertEqual(lines.count("multiple devices"), 1)

    def test_cpu_only_functions_are_left_alone(self):
        f = self.compile(lambda x: x + 1)
        for _ in range(3):
            self.same(f(torch.ones(3)), torch.full((3,), 2.0))
        self.assertEqual(self.managers(), [])

    def test_incompatible_cudagraph_ops_item(self):
        with torch._dynamo.config.patch(capture_scalar_outputs=True), self.logs() as lines:
            f = self.whole(lambda x: x * x.sum().item() + 1)
            for i in range(3):
                self.same(f(full(i).long()), torch.full((4,), 4 * i * i + 1))
        self.assertEqual((self.recordings(), self.skips()), (0, 1))
        self.assertEqual(lines.count("incompatible op"), 1)

    def test_item_of_a_float(self):
        """Inductor goes on with the tensor instead: nothing reads a value, and the whole is graphed."""
        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            f = self.whole(lambda x: x * x.sum().item() + 1)
            for i in range(4):
                self.same(f(full(i)), torch.full((4,), 4.0 * i * i + 1))
        self.assertEqual((self.recordings(), self.skips()), (1, 0))

    def test_incompatible_cudagraph_ops_nonzero(self):
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True), self.logs() as lines:
            f = self.whole(lambda x: torch.nonzero(x) + 1)
            for _ in range(3):
                self.same(f(torch.tensor([1.0, 0, 1, 1], device=DEVICE)), torch.tensor([[1], [3], [4]]))
        self.assertEqual((self.recordings(), self.skips()), (0, 1))
        self.assertEqual(lines.count("incompatible op"), 1)

    def test_incompatible_cudagraph_ops_nonzero_graph_breaks(self):
        f = self.compile(lambda x: torch.nonzero(x * 2) + 1)
        for _ in range(4):
            self.same(f(torch.tensor([1.0, 0, 1, 1], device=DEVICE)), torch.tensor([[1], [3], [4]]))

    def test_cudagraph_or_error(self):
        with config.patch({"triton.cudagraph_or_error": True}):
            f = self.whole(lambda x, y: (x * 2, y + 1))
            with self.assertRaisesRegex(Exception, "cpu device"):
                f(full(1), torch.ones(2))
            g = self.compile(lambda x: x * 2)
            for i in range(4):
                self.same(g(full(i)), torch.full((4,), 2.0 * i))

    def test_skip_reason_survives_the_cache(self):
        """Compiled again from the cache: the reason comes along."""
        def function(x, y):
            return x * 2, y + 1
        for _ in range(2):
            with self.logs() as lines:
                f = self.whole(function)
                f(full(1), torch.ones(2))
            self.assertEqual(lines.count("cpu device ("), 1)
            torch._dynamo.reset()

    def test_skip_cpp_wrapper(self):
        with config.patch({"cpp_wrapper": True}):
            f = self.compile(lambda x: x + 1)
            with self.assertRaisesRegex(Exception, "cpp_wrapper"):
                f(full(1))

    def test_bisector(self):
        from torch._inductor.compiler_bisector import CompilerBisector
        original = CompilerBisector.disable_subsystem
        CompilerBisector.disable_subsystem = classmethod(lambda cls, backend, name, *a: (backend, name) == ("inductor", "cudagraphs"))
        try:
            with self.logs() as lines:
                f = self.compile(lambda x: x + 1)
                self.same(f(full(1)), torch.full((4,), 2.0))
        finally:
            CompilerBisector.disable_subsystem = original
        self.assertEqual(lines.count("bisector"), 1)
        self.assertEqual(self.recordings(), 0)


class Partitions(TreeTest):
    def check(self, function, *calls, recordings=None, **options):
        """calls: tuples of inputs on the CPU; each is called three times."""
        f = self.compile(function, generated=True, **options)
        for inputs in calls:
            for _ in range(4):
                want = function(*inputs)
                got = f(*[t.to(DEVICE) if isinstance(t, torch.Tensor) and t.dim() else t for t in inputs])
                want, got = [v if isinstance(v, tuple) else (v,) for v in (want, got)]
                for a, b in zip(got, want):
                    self.same(a, b)
                del got
        if recordings is not None:
            self.assertEqual(self.recordings(), recordings)

    def test_graph_partition(self):
        self.check(lambda x, y: ((x @ y).cpu() + 1).to(x.device) @ y, (torch.ones(4, 4), torch.full((4, 4), 2.0)), recordings=2)

    def test_graph_partition_cpu_only(self):
        f = self.compile(lambda x: x + 1)
        f(torch.ones(3))
        self.assertEqual(self.managers(), [])

    def test_graph_partition_cpu_scalar(self):
        """A scalar on the host is moved once a call, before the graphs, and its value is read anew."""
        f = self.compile(lambda x, s: x * s + 1, generated=True)
        for value in (1.0, 2.0, 3.0, 4.0, 5.0):
            self.same(f(full(2), torch.tensor(value)), torch.full((4,), 2 * value + 1))
        self.assertEqual(self.recordings(), 1)

    def test_what_is_returned_on_the_host_stays_there(self):
        """Tensors that the function makes on the host and returns: Inductor would make them on a GPU."""
        function = lambda x: (x * 2, torch.ones(3), torch.full((), 5.0) + 1, torch.arange(3.0) * 2)  # noqa: E731
        f = self.compile(function)
        for i in range(4):
            got, want = f(full(i)), function(torch.full((4,), float(i)))
            self.assertEqual([tensor.device.type for tensor in got], [DEVICE, "cpu", "cpu", "cpu"])
            for one, other in zip(got, want):
                self.same(one, other)
            del got, one
        self.assertEqual(self.recordings(), 1)

    def test_graph_partition_cpu_scalar_multiple(self):
        f = self.compile(lambda x, s, t, u: (x * s + t) * u, generated=True)
        for value in (1.0, 2.0, 3.0, 4.0):
            scalars = [torch.tensor(value + k) for k in range(3)]
            self.same(f(full(2), *scalars), torch.full((4,), (2 * value + value + 1) * (value + 2)))
        self.assertEqual(self.recordings(), 1)

    def test_graph_partition_cpu_scalar_mutation(self):
        def function(x, s):
            s.add_(1)
            return x * s
        f = self.compile(function, generated=True)
        s = torch.tensor(0.0)
        for i in range(4):
            self.same(f(full(2), s), torch.full((4,), 2.0 * (i + 1)))
            self.assertEqual(s.item(), i + 1)

    def test_graph_partition_cpu_scalar_device_put(self):
        f = self.compile(lambda s: (s.to(DEVICE) * 2).cpu() + 1, generated=True)
        for i in range(4):
            self.same(f(torch.tensor(float(i))), torch.tensor(2.0 * i + 1))

    def test_graph_partition_reduce_overhead_mode_effectiveness(self):
        f = self.compile(lambda x: x + 1, triton__cudagraphs=False)
        for _ in range(3):
            f(full(1))
        self.assertEqual(self.managers(), [])

    def test_graph_partition_dynamic_shapes(self):
        self.check(lambda x: x * 2 + 1, (torch.ones(3),), (torch.ones(5),), (torch.ones(7),), dynamic=True, recordings=3)

    def test_graph_partition_cpu_op_and_dynamic_shapes(self):
        self.check(lambda x: ((x * 2).cpu() + 1).to(x.device) * 3, (torch.ones(3),), (torch.ones(5),), dynamic=True, recordings=4)

    def test_graph_partition_log_message(self):
        with self.logs() as lines:
            self.check(lambda x: ((x * 2).cpu() + 1).to(x.device) * 3, (torch.ones(3),), recordings=2)
        self.assertEqual(lines.count("Recording function="), 2)

    def test_graph_partition_foreach_op(self):
        self.check(lambda x: tuple(torch._foreach_add([x, x * 2], 1.0)), (torch.ones(3),), recordings=1)

    def test_graph_partition_item(self):
        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            self.check(lambda x: (x + 1) * (x * 2).sum().item(), (torch.ones(3),))
        self.assertGreaterEqual(self.recordings(), 1)

    def test_graph_partition_symint(self):
        self.check(lambda x: x.expand(2, *x.shape).reshape(-1) * x.shape[0], (torch.ones(3),), (torch.ones(4),), dynamic=True)

    def test_graph_partition_cpu_tensor_symints(self):
        """Another size of a tensor on the host is no other size of what is graphed."""
        f = self.compile(lambda x, y: (x * 2, y + 1), dynamic=True, generated=True)
        for n in (3, 5, 7):
            for i in range(3):
                a, b = f(full(i), torch.full((n,), float(i)))
                self.same(a, torch.full((4,), 2.0 * i))
                self.same(b, torch.full((n,), i + 1.0))
                del a, b
        self.assertEqual(self.recordings(), 1)

    def test_graph_partition_repeat_interleave(self):
        def function(x, times):
            return torch.repeat_interleave(x * 2, times) + 1
        f = self.compile(function)
        times = torch.tensor([1, 2, 0, 3])
        for i in range(4):
            self.same(f(full(i), times.to(DEVICE)), function(torch.full((4,), float(i)), times))

    def test_graph_partition_unbacked_symint(self):
        f = self.compile(lambda x: x * 2 + 1)
        for n in (3, 5, 3, 5, 3, 5):
            x = full(2, n)
            torch._dynamo.decorators.mark_unbacked(x, 0)
            self.same(f(x), torch.full((n,), 5.0))

    def test_graph_partition_condition_op(self):
        def function(p, x):
            return torch.cond(p, lambda x: x + 1, lambda x: x * 3, (x,))
        f = self.compile(function)
        for i in range(6):
            flag = torch.tensor(i % 2 == 0)
            self.same(f(flag.to(DEVICE), full(2)), torch.full((4,), 3.0 if i % 2 == 0 else 6.0))

    def test_graph_partition_buffer_reuse(self):
        def function(x):
            a = x + 1
            b = (a.sum().cpu() * 2).to(x.device)
            c = a * b
            d = (c.sum().cpu() + 1).to(x.device)
            return a + c + d
        self.check(function, (torch.ones(5),))

    def test_graph_partition_view_fallback(self):
        self.check(lambda x: ((x.view(torch.int32) + 1).cpu() + 1).to(x.device).view(torch.int32) + 2, (torch.ones(3),))

    def test_graph_partition_reorder_cpu_and_gpu(self):
        f = self.compile(lambda x, y: (x * 2 + 1, y * 3, x - 1), generated=True)
        for i in range(4):
            a, b, c = f(full(i), torch.full((2,), float(i)))
            self.same(a, torch.full((4,), 2.0 * i + 1))
            self.same(b, torch.full((2,), 3.0 * i))
            self.same(c, torch.full((4,), i - 1.0))
            del a, b, c
        self.assertGreaterEqual(self.recordings(), 1)

    def test_graph_partition_gc(self):
        f = self.compile(lambda x: ((x * 2).cpu() + 1).to(x.device) * 3, generated=True)
        for _ in range(4):
            f(full(1))
        self.assertEqual(len(self.managers()), 1)
        torch._dynamo.reset()
        del f
        self.assertEqual(self.managers(), [])

    def test_custom_should_partition_ops(self):
        with config.patch({"custom_should_partition_ops": ["aten::mm"]}):
            f = self.compile(lambda x: (x + 1) @ (x * 2) - 1)
            for i in range(4):
                self.same(f(full(i, 3, 3)), torch.full((3, 3), 3.0 * (i + 1) * 2 * i - 1))
        self.assertEqual(self.recordings(), 2)


    def test_index_put(self):
        def function(x, mask, values):
            return x.index_put([mask], values, accumulate=True)
        f = self.compile(function)
        for i in range(5):
            x, mask, value = torch.arange(4.0) + i, torch.tensor([True, False, True, False]), torch.tensor(2.0)
            self.same(f(x.to(DEVICE), mask.to(DEVICE), value.to(DEVICE)), function(x, mask, value))

    def test_index_put_boolean_mutation_across_partitions(self):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("store", torch.zeros(4))

            def forward(self, x, mask):
                self.store.add_(x)
                self.store[mask] = 7.0
                return self.store * 2
        plain, on = Module(), Module().to(DEVICE)
        f = self.compile(on, generated=True)
        for i in range(5):
            x, mask = torch.arange(4.0) + i, torch.arange(4) == i % 4
            self.same(f(x.to(DEVICE), mask.to(DEVICE)), plain(x, mask))
            self.same(on.store, plain.store)

    def test_cudagraph_unsafe_unbacked_ops(self):
        def function(x):
            n = (x.sum() * 0 + 3).to(torch.int64).item()
            torch._check(n >= 0)
            return (x + 1) * 2, torch.full((4,), 1.0, device=x.device) * n
        with torch._dynamo.config.patch(capture_scalar_outputs=True), \
                config.patch({"cudagraph_unsafe_unbacked_ops": ["aten::_local_scalar_dense"]}):
            f = self.compile(function, generated=True)
            for i in range(4):
                a, b = f(full(i))
                self.same(a, torch.full((4,), 2.0 * (i + 1)))
                self.same(b, torch.full((4,), 3.0))
                del a, b
        self.assertGreaterEqual(self.recordings(), 1)

    def test_graph_partition_with_memory_plan_reuse(self):
        buffer = torch.arange(8.0, device=DEVICE)
        torch._dynamo.mark_static_address(buffer)

        def function(x):
            left = buffer[:4] * x
            host = (left.sum().cpu() + 1).to(x.device)
            return buffer[4:] * host + left
        f = self.compile(function, generated=True)
        for i in range(4):
            left = torch.arange(4.0) * i
            self.same(f(full(i)), torch.arange(4.0, 8) * (left.sum() + 1) + left)

    def test_graph_partition_user_mutation_and_alias(self):
        def function(x, y):
            x.add_(1)
            z = (x.sum().cpu() * 2).to(x.device)
            return x[1:], y * z
        f = self.compile(function, generated=True)
        for i in range(4):
            x, y = full(i), full(2)
            view, product = f(x, y)
            self.same(x, torch.full((4,), i + 1.0))
            self.assertEqual(view.untyped_storage().data_ptr(), x.untyped_storage().data_ptr())
            self.same(product, torch.full((4,), 2 * 8.0 * (i + 1)))
            del product


class CustomOperators(TreeTest):
    """Operators of users: tagged as unsafe they are kept out of graphs, or keep the function out."""

    @classmethod
    def setUpClass(cls):
        library = torch.library.Library("rondo_gates_test", "FRAGMENT")
        library.define("unsafe(Tensor x) -> Tensor", tags=(torch._C.Tag.cudagraph_unsafe,))
        library.define("safe(Tensor x) -> Tensor")
        library.define("unsafe_write(Tensor(a!) x) -> ()", tags=(torch._C.Tag.cudagraph_unsafe,))
        library.impl("unsafe_write", lambda x: (x.mul_(2), None)[1], "CompositeExplicitAutograd")
        torch.library.register_fake("rondo_gates_test::unsafe_write", lambda x: None, lib=library)
        for name in ("unsafe", "safe"):
            library.impl(name, lambda x: x * 3, "CompositeExplicitAutograd")
            torch.library.register_fake(f"rondo_gates_test::{name}", lambda x: torch.empty_like(x), lib=library)
        cls.library = library

    def test_skip_cudagraph_unsafe_ops(self):
        f = self.compile(lambda x: torch.ops.rondo_gates_test.unsafe(x + 1) + 2, graph_partition=False)
        with self.logs() as lines:
            for i in range(3):
                self.same(f(full(i)), torch.full((4,), 3.0 * (i + 1) + 2))
        self.assertEqual((self.recordings(), self.skips()), (0, 1))
        self.assertEqual(lines.count("rondo_gates_test.unsafe"), 1)

    def test_graph_partition_custom_op(self):
        def function(x):
            y = torch.ops.rondo_gates_test.unsafe(x + 1)
            z = torch.ops.rondo_gates_test.unsafe(y * 2)
            return z - 1
        f = self.compile(function)
        for i in range(4):
            self.same(f(full(i)), torch.full((4,), 18.0 * (i + 1) - 1))
        self.assertEqual(self.recordings(), 3)

    def test_graph_partition_custom_op_mutation(self):
        def function(x):
            y = x + 1
            torch.ops.rondo_gates_test.unsafe_write(y)
            return y - 1
        f = self.compile(function)
        for i in range(4):
            self.same(f(full(i)), torch.full((4,), 2.0 * (i + 1) - 1))
        self.assertEqual(self.recordings(), 2)

    def test_graph_partition_custom_op_dynamic_shapes(self):
        def function(x):
            y = torch.ops.rondo_gates_test.unsafe(x + 1)
            return torch.ops.rondo_gates_test.unsafe(y * 2) - 1
        f = self.compile(function, dynamic=True)
        for n in (3, 5):
            for i in range(4):
                self.same(f(full(i, n)), torch.full((n,), 18.0 * (i + 1) - 1))
        self.assertEqual(self.recordings(), 6)

    def test_graph_partition_reorder_custom_op_with_no_dependency(self):
        def function(x, y):
            a = x + 1
            b = torch.ops.rondo_gates_test.unsafe(y)
            return a * 2, b - 1
        f = self.compile(function)
        for i in range(4):
            a, b = f(full(i), full(2 * i))
            self.same(a, torch.full((4,), 2.0 * (i + 1)))
            self.same(b, torch.full((4,), 6.0 * i - 1))
            del a, b

    def test_graph_partition_custom_op_no_split(self):
        f = self.compile(lambda x: torch.ops.rondo_gates_test.safe(x + 1) - 1)
        for i in range(4):
            self.same(f(full(i)), torch.full((4,), 3.0 * (i + 1) - 1))
        self.assertEqual(self.recordings(), 1)


if __name__ == "__main__":
    unittest.main()
