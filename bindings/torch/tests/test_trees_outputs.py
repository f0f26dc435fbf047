# SPDX-License-Identifier: Apache-2.0
"""Outputs of graph trees as tensors of PyTorch: which object they are, when they are dead, and what becomes of them later.
The functions are Python models over the device's tensors: nothing is compiled."""
import gc
import os
import threading
import unittest
import weakref

import torch
from trees_kit import DEVICE, TreeTest, boxed, on_device, tree_function

from rondo_torch import _C, trees


def double(x):
    return x * 2


class Objects(TreeTest):
    """A replay hands out the same object when nothing can tell."""

    def setUp(self):
        super().setUp()
        self.x = torch.arange(4.0, device=DEVICE)
        self.f = tree_function(boxed(double), 1)
        self.addCleanup(lambda: delattr(self, "f"))

    def call(self, add=0.0):
        return self.f([self.x + add])[0]

    def recorded(self):
        for _ in range(4):
            self.call()

    def identity(self, change=None, use=lambda out: None):
        """Whether the object that had `use` comes again, and that its value is right, and its form."""
        self.recorded()
        out = self.call()
        number = id(out)
        kept = use(out)
        del out
        again = self.call(1.0)
        self.same(again, (torch.arange(4.0) + 1) * 2)
        self.assertIs(type(again), torch.Tensor)
        self.assertEqual((again.shape, again.stride(), again.storage_offset()), (torch.Size([4]), (1,), 0))
        self.assertFalse(again.requires_grad)
        self.assertIsNone(again.grad_fn)
        self.assertIsNone(again.grad)
        del kept
        return id(again) == number

    def test_same_object_when_dead(self):
        self.assertTrue(self.identity())

    def test_input_list_is_emptied(self):
        for _ in range(4):
            inputs = [self.x]
            self.f(inputs)
            self.assertEqual(inputs, [])

    def test_hooks_are_gone(self):
        def use(out):
            out.requires_grad_()
            out.register_hook(lambda grad: self.fail("a hook of an earlier output"))
        self.assertTrue(self.identity(use=use))
        out = self.call()
        self.assertIsNone(out._backward_hooks)
        (out.requires_grad_() * 3).sum().backward()
        self.same(out.grad, torch.full((4,), 3.0))

    def test_post_accumulate_hooks_are_gone(self):
        self.assertTrue(self.identity(use=lambda out: out.requires_grad_().register_post_accumulate_grad_hook(print) and None))
        self.assertIsNone(self.call()._post_accumulate_grad_hooks)

    def test_gradients_are_gone(self):
        def use(out):
            out.requires_grad_().sum().backward()
            self.assertIsNotNone(out.grad)
        self.assertTrue(self.identity(use=use))

    def test_a_graph_that_holds_only_itself_is_dead(self):
        class Save(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, out):
                ctx.save_for_backward(out)
                ctx.mark_dirty(out)
                return out

            @staticmethod
            def backward(ctx, grad):
                return grad, None

        w = torch.ones(4, device=DEVICE, requires_grad=True)
        self.assertTrue(self.identity(use=lambda out: Save.apply(w, out) and None if False else (Save.apply(w, out), None)[1]))

    def test_another_object_with_attributes(self):
        def use(out):
            out.note = "mine"
        self.identity(use=use)
        self.assertFalse(hasattr(self.call(), "note"))

    def test_weak_references_end(self):
        seen = []
        self.identity(use=lambda out: seen.append(weakref.ref(out)))
        self.assertIsNone(seen[0]())

    def test_changed_forms_do_not_come_again(self):
        for use in (lambda out: out.resize_(2), lambda out: out.resize_(100), lambda out: out.t_(), lambda out: out.unsqueeze_(0),
                    lambda out: out.set_(), lambda out: setattr(out, "data", torch.zeros(7, device=DEVICE)),
                    lambda out: out.untyped_storage().resize_(0)):
            self.identity(use=lambda out, use=use: (use(out), None)[1])

    def test_untyped_storage_was_asked_for(self):
        self.identity(use=lambda out: (out.untyped_storage(), None)[1])
        for _ in range(3):
            self.identity(use=lambda out: (out.untyped_storage().data_ptr(), None)[1])
        self.assertEqual(self.manager().info()["live"], 0)

    def test_inference_mode(self):
        self.recorded()
        with torch.inference_mode():
            self.assertTrue(self.call().is_inference())
        plain = self.call()
        self.assertFalse(plain.is_inference())
        (plain.requires_grad_() * 2).sum().backward()
        self.same(plain.grad, torch.full((4,), 2.0))

    def test_two_objects_take_turns(self):
        self.recorded()
        seen = set()
        out = None
        for i in range(8):
            self.manager().mark_step()
            last, out = out, self.call(i)
            self.same(out, (torch.arange(4.0) + i) * 2)
            seen.add(id(out))
            if last is not None:
                self.stale(lambda: last + 1)
            last = None
        del out
        self.assertEqual(len(seen), 2)

    def test_cached_tensors_are_known_to_autograd(self):
        self.recorded()
        out = self.call()
        self.assertTrue(torch._C._is_cached_tensor(out))
        number = id(out)
        del self.f
        self.f = None
        gc.collect()
        self.assertFalse(torch._C._is_cached_tensor(out))
        self.same(out, torch.arange(4.0) * 2)
        self.assertEqual(id(out), number)

    def test_accumulated_gradients(self):
        """A gradient that is an output of a tree: taken as it is, or added to."""
        self.recorded()
        leaf = torch.zeros(4, device=DEVICE, requires_grad=True)
        for before in (None, torch.ones(4, device=DEVICE)):
            leaf.grad = before
            class Give(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x.clone()

                @staticmethod
                def backward(ctx, grad):
                    return self.call()
            Give.apply(leaf).sum().backward()
            self.same(leaf.grad, torch.arange(4.0) * 2 + (0 if before is None else 1))
        leaf.grad = None


class Warmups(TreeTest):
    def test_a_warm_up_asks_for_another(self):
        """PyTorch 2.14's torch.compiler.cudagraph_mark_warmup_incomplete: of the function that warms up, and of no other time."""
        runs = []

        def model(x):
            runs.append(None)
            if len(runs) < 4 or len(runs) == 5:  # the fifth run is the recording
                trees.mark_warmup_incomplete()
            return x * 2

        f = tree_function(boxed(model), 1)
        for value in range(8):
            trees.mark_warmup_incomplete()
            self.same(f([torch.full((4,), float(value), device=DEVICE)])[0], torch.full((4,), 2.0 * value))
        self.assertEqual((len(runs), self.info("warmups"), self.info("records"), self.info("replays")), (5, 4, 1, 3))


class Liveness(TreeTest):
    """What keeps an output alive, so that the next call must not take its memory in the same step."""

    def live_after(self, keep):
        f = tree_function(boxed(double), 1)
        x = torch.arange(6.0, device=DEVICE)
        for _ in range(4):
            f([x])
        out = f([x])[0]
        kept = keep(out)
        del out
        live = self.manager().info()["live"]
        other = f([x + 1])[0]
        self.same(other, (torch.arange(6.0) + 1) * 2)
        if kept is not None and live:
            self.same(kept() if callable(kept) else kept, torch.arange(6.0) * 2)
        del kept, other
        self.assertEqual(self.manager().info()["live"], 0)
        return live

    def test_nothing(self):
        self.assertEqual(self.live_after(lambda out: None), 0)

    def test_the_tensor(self):
        self.assertEqual(self.live_after(lambda out: out), 1)

    def test_persisted_output_liveness(self):
        """A view, a detached alias, a reshaped one."""
        self.assertEqual(self.live_after(lambda out: out[:]), 1)
        self.assertEqual(self.live_after(lambda out: out.detach()), 1)
        self.assertEqual(self.live_after(lambda out: out.view(6, 1).squeeze(1)), 1)
        with torch.no_grad():
            self.assertEqual(self.live_after(lambda out: out[:]), 1)

    def test_a_storage(self):
        self.assertEqual(self.live_after(
            lambda out: (lambda storage=out.untyped_storage(): torch.tensor([], device=DEVICE).set_(storage))), 1)

    def test_what_autograd_saved(self):
        w = torch.ones(6, device=DEVICE, requires_grad=True)

        def keep(out):
            product = w * out

            def gradient():
                if w.grad is None:
                    product.sum().backward(retain_graph=True)
                return w.grad
            return gradient
        self.assertEqual(self.live_after(keep), 1)

    def test_a_container(self):
        self.assertEqual(self.live_after(lambda out: (lambda held=[out]: held[0])), 1)

    def test_a_c_object(self):
        self.assertEqual(self.live_after(lambda out: (lambda module=torch.nn.ParameterList([torch.nn.Parameter(out, False)]):
                                                      module[0].data)), 1)


class Memory(TreeTest):
    def test_live_outputs_multiple_graphs(self):
        f = tree_function(boxed(lambda x: x + 1), 1, name="f")
        g = tree_function(boxed(lambda x: x * 3), 1, name="g")
        x = torch.ones(1000, device=DEVICE)
        for _ in range(4):
            a = f([x])[0]
            b = g([a])[0]
            self.same(a, torch.full((1000,), 2.0))
            self.same(b, torch.full((1000,), 6.0))
            del a, b
        self.assertEqual(self.info("checkpoints"), 0)
        self.assertEqual(self.info("recordings"), 2)
        # f replayed, and then another function than was recorded after it.
        h = tree_function(boxed(lambda x: x - 1), 1, name="h")
        for _ in range(2):
            a = f([x])[0]
            c = h([a])[0]
            self.same(a, torch.full((1000,), 2.0))
            self.same(c, torch.ones(1000))
            del a, c
        self.assertEqual(self.info("checkpoints"), 2)

    def test_a_reset_gives_memory_back(self):
        reserved = []
        for _ in range(6):
            torch._dynamo.reset()
            f = torch.compile(lambda x: x + 1, mode="reduce-overhead")
            for _ in range(3):
                f(torch.ones(3000, device=DEVICE))
            del f
            reserved.append(torch.rondo.memory_reserved())
        self.assertLessEqual(reserved[-1], reserved[1])

    def test_tensor_dies_between_checkpoint(self):
        f = tree_function(boxed(lambda x: (x + 1, x + 2)), 2, name="f")
        g = tree_function(boxed(lambda x: x * 10), 1, name="g")
        x = torch.ones(5, device=DEVICE)
        for _ in range(3):
            f([x])
        first, second = f([x])
        self.assertEqual(self.info("live"), 2)
        del second
        self.assertEqual(self.info("live"), 1)
        result = g([x])[0]
        self.assertEqual(self.info("checkpoints"), 1)
        self.same(first, torch.full((5,), 2.0))
        self.same(result, torch.full((5,), 10.0))
        del first
        self.assertEqual(self.info("live"), 1)
        del result
        self.assertEqual(self.info("live"), 0)

    def test_aliased_output_checkpoint(self):
        f = tree_function(boxed(lambda x: (lambda y: (y, y[:2], y.view(2, 2)))(x + 1)), 3, name="f")
        g = tree_function(boxed(lambda x: x * 10), 1, name="g")
        x = torch.ones(4, device=DEVICE)
        for _ in range(3):
            f([x])
        outputs = f([x])
        self.assertEqual(self.info("live"), 1)
        self.assertEqual(len({t.untyped_storage().data_ptr() for t in outputs}), 1)
        part = outputs[1]
        del outputs
        self.assertEqual(self.info("live"), 1)
        del part
        result = g([x])[0]
        self.same(result, torch.full((4,), 10.0))
        del result
        self.assertEqual(self.info("live"), 0)

    def test_checkpoint_shared_output_storage_deallocation(self):
        f = tree_function(boxed(lambda x: (lambda y: (y[:2], y[2:]))(x + 1)), 2, name="f")
        g = tree_function(boxed(lambda x: x * 10), 1, name="g")
        x = torch.ones(4, device=DEVICE)
        for _ in range(3):
            f([x])
        left, right = f([x])
        g([x])  # a checkpoint: the block is the allocator's
        before = torch.rondo.memory_allocated()
        del left
        self.assertEqual(torch.rondo.memory_allocated(), before)
        self.same(right, torch.full((2,), 2.0))
        del right
        self.assertLess(torch.rondo.memory_allocated(), before)

    def test_output_alias(self):
        f = tree_function(boxed(lambda x: (x[:2], x[2:], x + 1)), 3)
        for i in range(5):
            x = torch.arange(4.0, device=DEVICE) + i
            left, right, more = f([x])
            self.assertEqual(left.untyped_storage().data_ptr(), x.untyped_storage().data_ptr())
            self.same(right, torch.arange(2.0, 4) + i)
            self.same(more, torch.arange(4.0) + i + 1)
            left.zero_()
            self.same(x[:2], torch.zeros(2))
            del left, right, more

    def test_aliased_static_parameter(self):
        parameter = torch.arange(6.0, device=DEVICE)
        f = tree_function(boxed(lambda p, x: (p.view(2, 3), x + 1)), 2, static=[0])
        for i in range(5):
            alias, result = f([parameter, torch.full((2,), float(i), device=DEVICE)])
            self.assertEqual(alias.data_ptr(), parameter.data_ptr())
            self.same(result, torch.full((2,), i + 1.0))
            del result
        self.same(alias, torch.arange(6.0).view(2, 3))

    def test_alias_of_parameter_and_child_that_aliases_its_parent(self):
        parameter = torch.arange(4.0, device=DEVICE)
        f = tree_function(boxed(lambda p: (p[1:], p * 2)), 2, static=[0], name="f")
        g = tree_function(boxed(lambda y: (y[1:], y + 1)), 2, name="g")
        for _ in range(5):
            alias, product = f([parameter])
            part, sum_ = g([product])
            self.same(part, torch.tensor([2.0, 4, 6]))
            self.same(sum_, torch.tensor([1.0, 3, 5, 7]))
            self.assertEqual(part.untyped_storage().data_ptr(), product.untyped_storage().data_ptr())
            self.assertEqual(alias.data_ptr(), parameter.data_ptr() + 4)
            del product
            self.same(part, torch.tensor([2.0, 4, 6]))
            del part, sum_, alias
            self.assertEqual(self.info("live"), 0)

    def test_expanded_inputs(self):
        f = tree_function(boxed(lambda x: x + 1), 1)
        for i in range(5):
            x = torch.full((3, 1), float(i), device=DEVICE).expand(3, 4)
            self.same(f([x])[0], torch.full((3, 4), i + 1.0))

    def test_empty_storage_and_empty_cpu_tensor(self):
        f = tree_function(boxed(lambda x, e: (x + 1, torch.empty(0, device=DEVICE), e, torch.empty(0), 7, None)), 6)
        for i in range(5):
            x = torch.full((2,), float(i), device=DEVICE)
            one, empty, given, host, number, nothing = f([x, torch.zeros(0, 3, device=DEVICE)])
            self.same(one, torch.full((2,), i + 1.0))
            self.assertEqual((empty.numel(), given.shape, host.device.type), (0, (0, 3), "cpu"))
            self.assertEqual((number, nothing), (7, None))
            del one
        self.assertEqual(self.info("live"), 0)
        self.assertGreater(self.info("replays"), 0)

    def test_tensor_no_longer_in_pool(self):
        f = tree_function(boxed(lambda x: x + 1), 1, name="f")
        g = tree_function(boxed(lambda y: y * 2), 1, name="g")
        x = torch.ones(3, device=DEVICE)
        for _ in range(4):
            self.same(g([f([x])[0]])[0], torch.full((3,), 4.0))
        y = f([x])[0]
        own = y.clone()
        for _ in range(2):
            self.same(g([own])[0], torch.full((3,), 4.0))
        self.same(y, torch.full((3,), 2.0))
        del y
        self.same(g([f([x])[0]])[0], torch.full((3,), 4.0))

    def test_unaligned_static_parameter(self):
        whole = torch.arange(17.0, device=DEVICE)
        parameter = whole[1:]
        self.assertTrue(parameter.data_ptr() % 16)
        f = tree_function(boxed(lambda p, x: p * x), 1, static=[0])
        for i in range(5):
            self.same(f([parameter, torch.full((16,), float(i), device=DEVICE)])[0], torch.arange(1.0, 17) * i)

    def test_side_stream_memory_allocation(self):
        side = torch.Stream(device=DEVICE)

        def model(inputs):
            x = inputs.pop()
            current = torch.rondo.current_stream()
            side.wait_stream(current)
            with side:
                y = x * 2
            current.wait_stream(side)
            return [y + 1]
        f = tree_function(model, 1)
        for i in range(5):
            self.same(f([torch.full((4,), float(i), device=DEVICE)])[0], torch.full((4,), 2.0 * i + 1))
        self.assertEqual(self.info("recordings"), 1)
        self.assertGreater(self.info("replays"), 0)

    def test_warmup_stream_sync(self):
        f = tree_function(boxed(lambda x: x @ x), 1)
        for i in range(5):
            with torch.Stream(device=DEVICE) as stream:
                x = torch.full((8, 8), float(i), device=DEVICE)
                y = f([x])[0]
                result = y.cpu()
            stream.synchronize()
            self.same(result, torch.full((8, 8), 8.0 * i * i))

    def test_manager_per_device(self):
        if torch.rondo.device_count() < 2:
            self.skipTest("one device")
        fs = [tree_function(boxed(double), 1, device=index) for index in (0, 1)]
        for _ in range(4):
            for index, f in enumerate(fs):
                x = torch.arange(3.0, device=f"rondo:{index}")
                out = f([x])[0]
                self.assertEqual(out.device.index, index)
                self.same(out, torch.arange(3.0) * 2)
                del out
        self.assertEqual(sorted(manager.device for manager in self.managers()), [0, 1])
        fs.pop()
        del f
        self.assertEqual([manager.device for manager in self.managers()], [0])

    def test_storages_may_leave(self):
        f = tree_function(boxed(double), 1)
        x = torch.arange(4.0, device=DEVICE)
        for _ in range(4):
            f([x])
        out = f([x])[0]
        other = torch.zeros(4, device=DEVICE)
        other.set_(out)
        del out
        self.manager().mark_step()
        f([x])
        self.stale(lambda: other.cpu())
        del other

    def test_memory_is_flat(self):
        f = tree_function(boxed(lambda x: (x * 2, x + 1, (x @ x).sum())), 3)
        x = torch.randn(16, 16, device=DEVICE)
        outputs = None
        sizes = []
        for i in range(60):
            outputs = f([x])
            if i % 3 == 0:
                self.manager().mark_step()
            sizes.append((torch.rondo.memory_allocated(), torch.rondo.memory_reserved()))
        self.assertEqual(len(set(sizes[40:])), 1, sizes[40:])
        del outputs


    def test_memory_that_stays_in_the_pool(self):
        """A tensor that a model hides is found: the function is called directly from then on, and all values are right."""
        hidden = []

        def model(inputs):
            x = inputs.pop()
            hidden.append(x * 5)
            return [x * 2]
        f = tree_function(model, 1)
        with self.logs():
            for i in range(5):
                self.same(f([torch.full((4,), float(i), device=DEVICE)])[0], torch.full((4,), 2.0 * i))
        self.assertEqual(self.functions()[0]["stopped"], "UNTRACKED")
        for i, tensor in enumerate(hidden):
            self.same(tensor, torch.full((4,), 5.0 * i))


class Ends(TreeTest):
    def test_cleanup(self):
        """Reset with outputs that are alive: they stay usable, and nothing of the tree stays."""
        f = tree_function(boxed(double), 1)
        x = torch.arange(4.0, device=DEVICE)
        for calls in (1, 2, 5):
            for _ in range(calls):
                out = None
                out = f([x])[0]
            self.manager().reset()
            self.same(out, torch.arange(4.0) * 2)
            self.assertEqual((self.info("state"), self.info("recordings")), ("nothing", 0))
            more = [torch.full((4,), 9.0, device=DEVICE) for _ in range(50)]
            self.same(out, torch.arange(4.0) * 2)
            del more
            out = None

    def test_function_goes_while_outputs_live(self):
        before = torch.rondo.memory_allocated()
        for calls in (1, 2, 5):
            f = tree_function(boxed(double), 1)
            x = torch.arange(4.0, device=DEVICE)
            out = None
            for _ in range(calls):
                out = None
                out = f([x])[0]
            del f
            gc.collect()
            self.assertEqual(_C.tree_managers(), [])
            self.same(out + 1, torch.arange(4.0) * 2 + 1)
            del out, x
        gc.collect()
        self.assertEqual(torch.rondo.memory_allocated(), before)

    def test_function_goes_inside_its_own_call(self):
        holder = {}

        def model(inputs):
            holder.clear()
            gc.collect()
            return [inputs.pop() * 2]
        for calls in (1, 2):
            holder["f"] = tree_function(model, 1)
            for _ in range(calls):
                f = holder.get("f") or f
                self.same(f([torch.ones(2, device=DEVICE)])[0], torch.full((2,), 2.0))
            del f

    def test_model_raises(self):
        class Mine(Exception):
            pass
        fails = [True]

        def model(inputs):
            x = inputs.pop()
            y = x * 2
            if fails[0]:
                raise Mine("on purpose")
            return [y + 1]
        f = tree_function(model, 1)
        x = torch.ones(3, device=DEVICE)
        for _ in range(3):
            with self.assertRaisesRegex(Mine, "on purpose"):
                f([x])
        fails[0] = False
        for _ in range(4):
            self.same(f([x])[0], torch.full((3,), 3.0))
        self.assertEqual(self.info("live"), 0)
        self.assertEqual(torch.rondo.current_stream().stream_id, 0)

    def test_model_raises_when_recorded(self):
        calls = []

        def model(inputs):
            x = inputs.pop()
            calls.append(1)
            if len(calls) == 2:
                raise ValueError("the recording fails")
            return [x * 2]
        f = tree_function(model, 1)
        x = torch.ones(3, device=DEVICE)
        with self.logs() as lines:
            for _ in range(4):
                self.same(f([x])[0], torch.full((3,), 2.0))
        self.assertEqual(self.functions()[0]["stopped"], "REJECTED")
        self.assertEqual(lines.count("the recording fails"), 1)
        self.assertEqual(torch.rondo.current_stream().stream_id, 0)

    def test_random_numbers_of_the_host_after_a_recording_that_failed(self):
        def run(on):
            torch.manual_seed(3)

            def model(inputs):
                x = inputs.pop()
                y = x + torch.rand(2).to(on)  # drawn by the host
                return [y * (x.sum().item() + 1)]  # which no capture holds
            f = tree_function(model, 1) if on == DEVICE else lambda inputs: model(inputs)
            return [f([torch.zeros(2, device=on)])[0].cpu() for _ in range(4)]
        for got, want in zip(run(DEVICE), run("cpu")):
            self.same(got, want)

    def test_random_numbers_of_a_generator_that_is_given(self):
        """One draw a call, also of the call that warms up and records."""
        x, generator = torch.zeros(4, device=DEVICE), torch.Generator(DEVICE)
        for simple in (False, True):
            f = tree_function(boxed(lambda x, g: x + torch.rand(4, device=DEVICE, generator=g)), 1, simple=simple)
            generator.manual_seed(7)
            got = [f([x, generator])[0].cpu() for _ in range(4)]
            generator.manual_seed(7)
            for one in got:
                self.same(one, torch.rand(4, device=DEVICE, generator=generator))
            self.assertEqual(self.info("recordings"), 1)
            del f

    def test_wrong_number_of_outputs(self):
        f = tree_function(boxed(lambda x: (x, x + 1)), 5)
        x = torch.ones(2, device=DEVICE)
        for _ in range(5):
            first, second = f([x])
            self.same(second, torch.full((2,), 2.0))
            del first, second
        self.assertGreater(self.info("replays"), 0)

    def test_bad_calls(self):
        f = tree_function(boxed(double), 1)
        x = torch.ones(2, device=DEVICE)
        for bad in (lambda: f(x), lambda: f([x], 1), lambda: f([x], more=1), lambda: f()):
            with self.assertRaises(TypeError):
                bad()
        f([x])
        with self.assertRaisesRegex(TypeError, "1 inputs, and now with 2"):
            f([x, x])
        self.same(f([x])[0], torch.full((2,), 2.0))

    def test_stale_input(self):
        f = tree_function(boxed(double), 1)
        x = torch.ones(2, device=DEVICE)
        for _ in range(4):
            f([x])
        out = f([x])[0]
        self.manager().mark_step()
        f([x])
        for _ in range(2):
            self.stale(lambda: f([out]))
        self.same(f([x])[0], torch.full((2,), 2.0))


class Threads(TreeTest):
    def test_each_user_thread_has_its_tree(self):
        f = tree_function(boxed(double), 1)
        failures = []

        def work(number):
            try:
                for i in range(12):
                    x = torch.full((4,), float(number * 100 + i), device=DEVICE)
                    self.same(f([x])[0], torch.full((4,), 2.0 * (number * 100 + i)))
                contexts.add(_C.tree_context())
            except BaseException as error:  # noqa: BLE001 (told below)
                failures.append(error)
        contexts = set()
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(len(contexts), 4)
        self.assertEqual({m.context for m in self.managers()}, contexts)

    def test_backward_belongs_to_its_caller(self):
        seen = {}

        class Look(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                seen["forward"] = _C.tree_context()
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                seen["backward"] = _C.tree_context()
                seen["thread"] = threading.get_ident()
                return grad * 2

        def work(store):
            x = torch.ones(2, device=DEVICE, requires_grad=True)
            Look.apply(x).sum().backward()
            store.append(dict(seen))
        stores = [[], []]
        work(stores[0])
        thread = threading.Thread(target=work, args=(stores[1],))
        thread.start()
        thread.join()
        for (store,) in stores:
            self.assertEqual(store["forward"], store["backward"])
        self.assertNotEqual(stores[0][0]["thread"], threading.get_ident())
        self.assertNotEqual(stores[0][0]["forward"], stores[1][0]["forward"])

    def test_model_that_lets_go_of_the_interpreter(self):
        """A second thread wants the same tree meanwhile: it waits, and nobody waits for ever."""
        inside, go_on = threading.Event(), threading.Event()

        def model(inputs):
            x = inputs.pop()
            if not inside.is_set():
                inside.set()
                go_on.wait(20)
            return [x * 2]
        f = tree_function(model, 1)
        x = torch.ones(2, device=DEVICE)
        results = []
        context = _C.tree_context()
        manager_calls = threading.Thread(target=lambda: results.append(f([x])[0].cpu()))
        manager_calls.start()
        inside.wait(20)
        other = [m for m in _C.tree_managers() if m.context != context]
        self.assertEqual(len(other), 1)
        asked = threading.Thread(target=lambda: results.append(other[0].info()["warmups"]))
        asked.start()
        go_on.set()
        manager_calls.join(20)
        asked.join(20)
        self.assertEqual(len(results), 2)
        self.assertIn(1, [r for r in results if isinstance(r, int)])

    def test_call_from_inside_a_call(self):
        inner = tree_function(boxed(lambda x: x + 1), 1, name="inner")

        def model(inputs):
            return [inner([inputs.pop() * 2])[0] * 3]
        outer = tree_function(model, 1, name="outer")
        for i in range(5):
            x = torch.full((2,), float(i), device=DEVICE)
            self.same(outer([x])[0], torch.full((2,), (2.0 * i + 1) * 3))

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_child_process(self):
        """A child of fork has no device, as with CUDA; its parent's trees go on."""
        f = tree_function(boxed(double), 1)
        x = torch.arange(3.0, device=DEVICE)
        for _ in range(4):
            f([x])
        out = f([x])[0]
        child = os.fork()
        if not child:
            status = 1
            try:
                f([x])
            except RuntimeError as error:
                status = 0 if "forked subprocess" in str(error) and "spawn" in str(error) else 2
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.same(out, torch.arange(3.0) * 2)
        del out
        self.same(f([x])[0], torch.arange(3.0) * 2)


if __name__ == "__main__":
    unittest.main()
