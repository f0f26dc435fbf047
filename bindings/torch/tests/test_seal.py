# SPDX-License-Identifier: Apache-2.0
"""Sealed callables: the numbers of the function, always, whatever changes between sealing and the call."""
import gc
import unittest

import torch
from torch._inductor import config as inductor_config

import rondo_torch
from rondo_torch import seal_info, trees

DEVICE = "rondo"
SCALE = 2.0


def add_all(*tensors):
    return tuple(tensor + 1 for tensor in tensors)


def scaled(x, k=3):
    return x * SCALE * k


def mixed(x, y, *, scale=1, **others):
    return x * scale - y, {name: value + 1 for name, value in others.items()}


def product(a, b):
    return {"product": a @ b, "sum": [a.sum(), None, 7]}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.factor = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3), 2.0

    def forward(self, x):
        return self.second(torch.relu(self.first(x))) * self.factor


def tensors(count, size=4, device=DEVICE):
    return [torch.arange(size, dtype=torch.float32, device=device) + i for i in range(count)]


# Whose kernels Inductor generates, which takes a C++ compiler's time. A call that is sealed replays a graph: what its
# kernels are is nothing to it, and for the others each operator is called by its name.
GENERATED = ("test_values", "test_module", "test_training", "test_a_number", "test_mutated_argument")


class Sealing(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        by_name = inductor_config.patch(fallback_by_default=self._testMethodName not in GENERATED)
        by_name.__enter__()
        self.addCleanup(by_name.__exit__, None, None, None)

    def left(self, sealed):
        return seal_info(sealed)["left"]

    def same(self, got, want):
        torch.testing.assert_close(torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.cpu(), got),
                                   torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.cpu(), want))

    def test_values(self):
        xs = tensors(10)
        sealed = rondo_torch.seal(torch.compile(add_all, mode="reduce-overhead"), xs)
        for round in range(5):
            ys = [x * round - 1 for x in xs]
            self.same(sealed(*ys), add_all(*[y.cpu() for y in ys]))
        self.assertEqual(seal_info(sealed), {"calls": 5, "left": {}, "guards": False})

    def test_structure_of_the_result(self):
        a, b = torch.rand(3, 4, device=DEVICE), torch.rand(4, 2, device=DEVICE)
        sealed = rondo_torch.seal(torch.compile(product), (a, b))
        got = sealed(a, b)
        self.same(got["product"], a.cpu() @ b.cpu())
        self.assertEqual(got["sum"][1:], [None, 7])
        self.assertEqual(self.left(sealed), {})

    def check_left(self, reason, *arguments, compiled=None, examples=None, sealed=None, **keywords):
        """Leaves the sealed callable for that reason, with the right values."""
        compiled = compiled or torch.compile(add_all, mode="reduce-overhead")
        sealed = sealed or rondo_torch.seal(compiled, examples or tensors(2))
        before = dict(self.left(sealed))
        got = sealed(*arguments, **keywords)
        self.assertEqual(self.left(sealed), {**before, reason: before.get(reason, 0) + 1})
        return got

    def test_shape(self):
        ys = tensors(2, size=5)
        self.same(self.check_left("tensor", *ys), add_all(*[y.cpu() for y in ys]))

    def test_strides(self):
        x, y = (torch.rand(4, 4, device=DEVICE) for _ in range(2))
        self.same(self.check_left("tensor", x.t(), y, examples=[x, y]), (x.cpu().t() + 1, y.cpu() + 1))

    def test_data_type(self):
        ys = [y.double() for y in tensors(2)]
        got = self.check_left("tensor", *ys)
        self.assertEqual(got[0].dtype, torch.float64)
        self.same(got, add_all(*[y.cpu() for y in ys]))

    def test_device(self):
        ys = tensors(2, device="cpu")
        got = self.check_left("tensor", *ys)
        self.assertEqual(got[0].device.type, "cpu")
        self.same(got, add_all(*ys))

    def test_device_index(self):
        if torch.rondo.device_count() < 2:
            self.skipTest("there is one device")
        ys = tensors(2, device="rondo:1")
        self.assertEqual(self.check_left("tensor", *ys)[0].device, torch.device("rondo:1"))

    def test_requires_grad(self):
        y = tensors(2)
        y[0].requires_grad_()
        got = self.check_left("tensor", *y)
        got[0].sum().backward()
        self.same(y[0].grad, torch.ones(4))

    def test_subclass(self):
        y = torch.nn.Parameter(tensors(1)[0], requires_grad=False)
        self.same(self.check_left("tensor", y, tensors(1)[0])[0], y.detach().cpu() + 1)

    def test_number_of_arguments(self):
        ys = tensors(3)
        self.same(self.check_left("arguments", *ys), add_all(*[y.cpu() for y in ys]))

    def test_keywords(self):
        """Arguments by name are checked as the others are, in whatever order a call names them."""
        x, y = tensors(2)
        sealed = rondo_torch.seal(torch.compile(mixed), (x,), {"y": y, "scale": 3, "extra": x})
        want = mixed(x.cpu(), y=y.cpu(), scale=3, extra=x.cpu())
        self.same(sealed(x, y=y, scale=3, extra=x), want)
        self.same(sealed(x, **{"".join(("ex", "tra")): x, "scale": 3, "y": y}), want)
        self.assertEqual(seal_info(sealed)["calls"], 2)
        self.assertEqual(self.left(sealed), {})
        for reason, change in (
                ("arguments", {"scale": 4}), ("tensor", {"y": y.double()}), ("aliasing", {"extra": y}),
                ("arguments", {"other": 1})):
            with self.subTest(change):
                given = {"y": y, "scale": 3, "extra": x, **change}
                self.same(self.check_left(reason, x, sealed=sealed, **given),
                          mixed(x.cpu(), **{k: v.cpu() if isinstance(v, torch.Tensor) else v for k, v in given.items()}))
        self.same(self.check_left("arguments", x, y, sealed=sealed), mixed(x.cpu(), y.cpu()))
        self.same(self.check_left("arguments", x, y, sealed=sealed, scale=3, extra=x), want)
        with self.assertRaisesRegex(TypeError, "missing 1 required"):
            sealed(x)

    def test_keywords_of_a_module(self):
        """By name alone, to a module; and one with a default that is not given."""
        net, x = Net().to(DEVICE), torch.rand(5, 4, device=DEVICE)
        with torch.no_grad():
            sealed = rondo_torch.seal(torch.compile(net), keywords={"x": x})
            self.same(sealed(x=x + 1), net(x + 1))
            self.assertEqual(seal_info(sealed)["calls"], 1)
            self.same(self.check_left("arguments", x, sealed=sealed), net(x))
        x = tensors(1)[0]
        sealed = rondo_torch.seal(torch.compile(scaled), (x, 3))
        self.same(self.check_left("arguments", x, sealed=sealed, k=4), x.cpu() * SCALE * 4)
        with self.assertRaisesRegex(rondo_torch.SealError, "takes no argument 'z' by name"):
            rondo_torch.seal(torch.compile(scaled), (x,), {"z": 1})

    def test_a_number(self):
        x = tensors(1)[0]
        sealed = rondo_torch.seal(torch.compile(scaled), (x, 3))
        self.same(sealed(x, 3), x.cpu() * SCALE * 3)
        self.same(self.check_left("arguments", x, 5, sealed=sealed), x.cpu() * SCALE * 5)
        self.check_left("arguments", x, True, sealed=sealed)

    def test_a_number_s_bits(self):
        """0.0 and -0.0 are equal and give different products; a number that is not one is equal to nothing."""
        x = tensors(1)[0]
        sealed = rondo_torch.seal(torch.compile(scaled), (x, 0.0))
        self.check_left("arguments", x, -0.0, sealed=sealed)
        sealed = rondo_torch.seal(torch.compile(scaled), (x, float("nan")))
        self.assertTrue(sealed(x, float("nan")).isnan().all().item())
        self.assertEqual(self.left(sealed), {})

    def test_a_global(self):
        global SCALE
        x = tensors(1)[0]
        sealed = rondo_torch.seal(torch.compile(scaled), (x, 3))
        try:
            SCALE = 10.0
            self.same(self.check_left("guards", x, 3, sealed=sealed), x.cpu() * 30)
        finally:
            SCALE = 2.0

    def test_defaults_and_code_of_the_function(self):
        def function(x, k=2.0, *, z=3.0):
            return x * k + z

        x = tensors(1)[0]
        sealed = rondo_torch.seal(torch.compile(function), x)
        self.same(sealed(x), x.cpu() * 2 + 3)
        for change, want in ((lambda: setattr(function, "__defaults__", (5.0,)), x.cpu() * 5 + 3),
                             (lambda: function.__kwdefaults__.update(z=9.0), x.cpu() * 5 + 9),
                             (lambda: setattr(function, "__kwdefaults__", {"z": 1.0}), x.cpu() * 5 + 1),
                             (lambda: setattr(function, "__code__", (lambda x, k=0: x - k).__code__), x.cpu() - 5)):
            change()
            self.same(self.check_left("guards", x, sealed=sealed), want)
        self.assertEqual(seal_info(sealed)["calls"], 1)

    def test_arguments_that_overlap(self):
        """What was compiled for separate tensors is wrong for these if it writes to one: it says so."""
        def function(a, b):
            a.add_(1)
            return a + b

        sealed = rondo_torch.seal(torch.compile(function), (torch.ones(4, device=DEVICE), torch.ones(4, device=DEVICE)))
        base = torch.arange(8.0, device=DEVICE)
        with self.assertRaisesRegex(RuntimeError, "tensors 0 and 1 of the arguments overlap in memory"):
            sealed(base[:4], base[2:6])
        self.same(base, torch.arange(8.0))
        self.same(sealed(base[:4], base[4:]), torch.arange(1.0, 5) + torch.arange(4.0, 8))
        torch._dynamo.reset()
        reads = rondo_torch.seal(torch.compile(lambda a, b: a + b), (torch.ones(4, device=DEVICE), torch.ones(4, device=DEVICE)))
        self.same(reads(base[:4], base[2:6]), base[:4].cpu() + base[2:6].cpu())
        torch._dynamo.reset()
        base, plain = torch.arange(8.0, device=DEVICE), torch.arange(8.0)

        def other(a, b):  # PyTorch's cache of graphs does not know overlapping arguments from others
            a.add_(3)
            return a + b
        known = rondo_torch.seal(torch.compile(other), (base[:4], base[2:6]))
        base.copy_(plain)
        self.same(known(base[:4], base[2:6]), other(plain[:4], plain[2:6]))
        self.same(base, plain)

    def test_aliased_arguments(self):
        x = tensors(1)[0]
        self.same(self.check_left("aliasing", x, x), (x.cpu() + 1, x.cpu() + 1))

    def test_modes(self):
        xs = tensors(2)
        sealed = rondo_torch.seal(torch.compile(add_all), xs)
        want = add_all(*[x.cpu() for x in xs])
        with torch.no_grad():
            self.same(self.check_left("mode", *xs, sealed=sealed), want)
        with torch.inference_mode():
            self.same(self.check_left("mode", *xs, sealed=sealed), want)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.same(self.check_left("mode", *xs, sealed=sealed), want)
        with torch.device("rondo"):
            self.same(self.check_left("mode", *xs, sealed=sealed), want)
        self.same(sealed(*xs), want)
        self.assertEqual(seal_info(sealed)["calls"], 1)

    def test_a_dead_output_is_an_error(self):
        xs = tensors(2)
        compiled = torch.compile(add_all, mode="reduce-overhead")
        sealed = rondo_torch.seal(compiled, xs)
        old = sealed(*xs)
        torch.compiler.cudagraph_mark_step_begin()
        new = sealed(*[x + 5 for x in xs])
        with self.assertRaisesRegex(RuntimeError, "overwritten"):
            sealed(*old)
        self.same(new[0], xs[0].cpu() + 6)

    def test_module(self):
        net, x = Net().to(DEVICE), torch.rand(5, 4, device=DEVICE)
        with torch.no_grad():
            sealed = rondo_torch.seal(torch.compile(net, mode="reduce-overhead"), x)
            self.same(sealed(x), net(x))
            net.factor = 3.0
            self.same(self.check_left("guards", x, sealed=sealed), net(x))
            net.factor = 2.0
            net.first.weight.mul_(2)  # in place: the sealed one reads it
            self.same(sealed(x), net(x))
            net.second = torch.nn.Linear(8, 3).to(DEVICE)  # another of the same form
            self.same(sealed(x), net(x))
            net.first.weight = torch.nn.Parameter(torch.rand(8, 4, device=DEVICE))
            self.same(sealed(x), net(x))
            net.register_forward_hook(lambda module, given, made: made * 0)
            self.same(self.check_left("hooks", x, sealed=sealed), torch.zeros(5, 3))

    def test_hooks_of_modules_inside(self):
        """torch.compile by itself does not see a hook come to a module that it has compiled in, whether it was called
        before sealing or not."""
        def ten(module, given, made):
            return made * 10

        x = torch.rand(5, 4, device=DEVICE)
        for called_before in (False, True):
            for form in ("a module", "a function"):
                with self.subTest(form, called_before=called_before), torch.no_grad():
                    torch._dynamo.reset()
                    net = Net().to(DEVICE)
                    function = net if form == "a module" else lambda x: net(x) + 1
                    compiled = torch.compile(function)
                    if called_before:
                        compiled(x)
                    sealed = rondo_torch.seal(compiled, x)
                    self.same(sealed(x), function(x))
                    hook = net.first.register_forward_hook(ten)
                    self.same(self.check_left("guards", x, sealed=sealed), function(x))
                    twice = net.first.register_forward_hook(ten)
                    self.same(self.check_left("guards", x, sealed=sealed), function(x))
                    hook.remove()
                    twice.remove()
                    calls = seal_info(sealed)["calls"]
                    self.same(sealed(x), function(x))
                    self.assertEqual(seal_info(sealed)["calls"], calls + 1)
                    with torch.inference_mode():  # compiled anew without hooks, and then there is one
                        self.same(self.check_left("mode", x, sealed=sealed), function(x))
                        net.second.register_forward_pre_hook(lambda module, given: (given[0] + 1,))
                        self.same(self.check_left("mode", x, sealed=sealed), function(x))

    def test_training(self):
        net, x = Net().to(DEVICE), torch.rand(5, 4, device=DEVICE)
        sealed = rondo_torch.seal(torch.compile(net), x)
        want = Net()
        want.load_state_dict({name: value.cpu() for name, value in net.state_dict().items()})
        sealed(x).sum().backward()
        want(x.cpu()).sum().backward()
        self.same(net.first.weight.grad, want.first.weight.grad)
        self.assertEqual(self.left(sealed), {})

    def test_mutated_argument(self):
        def bump(x, y):
            x.add_(y)
            return x * 2

        x, y = tensors(2)
        compiled = torch.compile(bump, mode="reduce-overhead")
        sealed = rondo_torch.seal(compiled, (x.clone(), y))
        z, w = x.clone(), x.clone()
        self.same(sealed(z, y), (x.cpu() + y.cpu()) * 2)
        self.same(z, x.cpu() + y.cpu())
        compiled(w, y)
        self.assertEqual(z._version, w._version)

    def test_side_effects_stay(self):
        seen = []

        def noted(x):
            seen.append(len(seen))
            return x + 1

        x = tensors(1)[0]
        compiled = torch.compile(noted, dynamic=False)
        try:
            sealed = rondo_torch.seal(compiled, x)
        except rondo_torch.SealError:
            self.skipTest("Dynamo compiles it anew at each call")
        before = len(seen)
        sealed(x)
        sealed(x)
        self.assertEqual(len(seen), before + 2)

    def test_reset_retires(self):
        xs = tensors(2)
        sealed = rondo_torch.seal(torch.compile(add_all, mode="reduce-overhead"), xs)
        torch._dynamo.reset()
        gc.collect()
        self.same(self.check_left("retired", *xs, sealed=sealed), add_all(*[x.cpu() for x in xs]))

    def test_refusals(self):
        def broken(x):
            y = x + 1
            torch._dynamo.graph_break()
            return y * 2

        x = tensors(1)[0]
        for compiled, examples, text in (
                (torch.compile(broken), x, "breaks into several graphs"),
                (add_all, x, "is not what torch.compile returns"),
                (torch.compile(lambda: 3), (), "no compiled form|has 0 compiled graphs"),
                (torch.compile(scaled), (), "have no argument 'x'|missing 1 required")):
            with self.assertRaisesRegex((rondo_torch.SealError, TypeError), text):
                rondo_torch.seal(compiled, examples)
        names = set(globals())
        with self.assertRaisesRegex(rondo_torch.SealError, "an argument of type dict cannot be sealed"):
            rondo_torch.seal(torch.compile(lambda x, others: x + others["y"]), (x, {"y": x}))
        self.assertEqual({name for name in set(globals()) - names if name.startswith("__rondo_sealed_")}, set())
        net = Net().to(DEVICE)
        net.register_forward_hook(lambda *_: None)
        with self.assertRaisesRegex(rondo_torch.SealError, "has hooks"):
            rondo_torch.seal(torch.compile(net), torch.rand(2, 4, device=DEVICE))

    def test_each_call_is_an_invocation(self):
        """Outputs that are held over the next call are overwritten by it, as with torch.compile: no new recordings."""
        xs = tensors(3)
        sealed = rondo_torch.seal(torch.compile(add_all, mode="reduce-overhead"), xs)
        for _ in range(3):
            sealed(*xs)
        recorded = [manager.info()["recordings"] for manager in trees.managers()]
        held = sealed(*xs)
        for number in range(20):
            ys = [x + number for x in xs]
            before, held = held, sealed(*ys)
            self.same(held, add_all(*[y.cpu() for y in ys]))
            with self.assertRaisesRegex(RuntimeError, "overwritten by a subsequent run"):
                before[0].cpu()
        self.assertEqual([manager.info()["recordings"] for manager in trees.managers()], recorded)
        # Nobody else has to mark steps now.
        self.assertEqual(torch._inductor.cudagraph_trees.MarkStepBox.mark_step_counter, 0)

    def test_an_argument_without_memory(self):
        xs = tensors(2)
        sealed = rondo_torch.seal(torch.compile(add_all, mode="reduce-overhead"), xs)
        for _ in range(3):
            sealed(*xs)
        gone = torch.ones(4, device=DEVICE)
        gone.untyped_storage().resize_(0)
        for call in (sealed, torch.compile(add_all, mode="reduce-overhead")):
            with self.assertRaisesRegex(RuntimeError, "has no memory: its storage was resized to 0 bytes|needs 16 bytes"):
                call(gone, xs[1])
        self.same(sealed(*xs), add_all(*[x.cpu() for x in xs]))

    def test_it_goes(self):
        xs = tensors(2)
        before = {name for name in globals() if name.startswith("__rondo_sealed_")}
        sealed = rondo_torch.seal(torch.compile(add_all), xs)
        sealed(*xs)
        del sealed
        gc.collect()
        self.assertEqual({name for name in globals() if name.startswith("__rondo_sealed_")}, before)


if __name__ == "__main__":
    unittest.main()
