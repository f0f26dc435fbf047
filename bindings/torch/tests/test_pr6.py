# SPDX-License-Identifier: Apache-2.0
"""PR-6: what graph trees promise, on every device that has them: rondo, other packages' devices, and CUDA where it is.

PyTorch has room for one such device in a process, so each of the others runs in a process of its own. `second` is there
by duck typing: it has graph objects of its own and registers none. `npu` stands for an Ascend package over the
simulated libascendcl; what it captures with is NPUGraphImpl, or a graph of its own.
"""
import contextlib
import os
import threading
import unittest

OTHER = os.environ.get("RONDO_TEST_OTHER")  # another package's device is this process's
if OTHER == "second":
    import second_device  # before PyTorch: it says that the place is not Rondo's

    second = second_device.load()
elif OTHER == "npu":
    import npu_device

    npu_device.load()

import forks  # noqa: E402
import torch  # noqa: E402

import rondo_torch.interface  # noqa: E402
from rondo_torch import upstream  # noqa: E402
from upstream_models import graphed, two, values  # noqa: E402

if OTHER == "npu":
    from npu_standin import inductor

    from rondo_torch import npu

    inductor.register()
    npu.install()
    DEVICES = [("npu", variant) for variant in ("kept", "contract", "duck")]
elif OTHER == "second":
    from second import inductor

    inductor.register()
    DEVICES = [("second", "duck")]

    class _GraphOps(second.GraphOps, rondo_torch.interface.GraphOps):
        """The package's operations, and how one of its graphs captures, as its vendor would write it for the
        interface."""

        @staticmethod
        @contextlib.contextmanager
        def capture_context(graph, stream, pool=None, capture_error_mode="thread_local"):
            with stream:
                graph.capture_begin(pool=pool, capture_error_mode=capture_error_mode)
                try:
                    yield
                finally:
                    graph.capture_end()

    inductor.SecondInterface.GraphOps = _GraphOps
else:
    DEVICES = [("rondo", "kept"), *([("cuda", "kept")] if torch.cuda.is_available() else [])]


def mark():
    torch.compiler.cudagraph_mark_step_begin()


class OnDevice:
    device_type = variant = None

    def setUp(self):
        upstream.install(self.variant)
        self.trees = torch._inductor.cudagraph_trees
        self.device = torch.device(self.device_type, 0)

    def tearDown(self):
        self.trees.reset_cudagraph_trees()

    @classmethod
    def tearDownClass(cls):
        upstream.remove()

    def on(self, value):
        return value.to(self.device)

    def graphed(self, function, **more):
        return graphed(self.trees, function, [], device=self.device, **more)

    def manager(self):
        return self.trees.get_manager(self.device, create_if_none_exists=False)

    def state(self):
        return self.manager().path_state.name

    def test_warm_up_recording_and_replay(self):
        run, states = self.graphed(two, outputs=2), []
        for step in range(4):
            x, y = values((4, 3), step), values((3, 4), step + 10)
            got = run(self.on(x), self.on(y))
            states.append(self.state())
            for one, other in zip(got, two(x, y)):
                torch.testing.assert_close(one.cpu(), other)
            del got, one
            mark()
        self.assertEqual(states, ["WARMUP", "RECORDING", "EXECUTION", "EXECUTION"])
        self.assertEqual(self.manager().device_type, self.device_type)

    def test_python_runs_for_warm_up_and_recording_only(self):
        ran = []

        def model(x):
            ran.append(1)
            return x * 2

        run = self.graphed(model)
        for step in range(5):
            run(self.on(values((3,), step)))
            mark()
        self.assertEqual(len(ran), 2)

    def test_outputs_of_before_are_said_to_be_overwritten(self):
        run = self.graphed(lambda x: x + 1)
        held = []
        for step in range(2):
            held.append(run(self.on(values((3,), step)))[0])
            mark()
        run(self.on(values((3,), 9)))
        for value in held:
            with self.assertRaisesRegex(RuntimeError,
                                        "output of CUDAGraphs that has been overwritten by a subsequent run"):
                value.cpu()

    def test_a_second_function_is_a_child(self):
        first, second_function = self.graphed(lambda x: x + 1), self.graphed(lambda x: torch.relu(x) * 3)
        for step in range(5):
            x = values((4,), step)
            got = second_function(first(self.on(x))[0])[0]
            torch.testing.assert_close(got.cpu(), torch.relu(x + 1) * 3)
            del got
            mark()
        root = next(iter(self.manager().get_roots()))
        self.assertEqual(root.num_descendants(), 1)
        self.assertEqual(self.manager().debug_checkpointing_counter, 0)

    def test_a_branch_restores_the_pool(self):
        """Another function after a replay: the pool is put back to where the replay left it, and what lives stays."""
        first = self.graphed(lambda x: (x + 1, x * 2), outputs=2)
        ways = [self.graphed(lambda a: a - 3), self.graphed(lambda a: a * a)]
        for step in range(9):
            x = values((4,), step)
            a, b = first(self.on(x))
            chosen = 0 if step < 3 else step % 2
            got = ways[chosen](a)[0]
            a = x + 1
            torch.testing.assert_close(got.cpu(), a - 3 if chosen == 0 else a * a)
            torch.testing.assert_close(b.cpu(), x * 2)
            del a, b, got
            mark()
        self.assertGreaterEqual(self.manager().debug_checkpointing_counter, 1)
        self.assertEqual(next(iter(self.manager().get_roots())).num_descendants(), 2)

    def test_static_inputs_are_not_copied(self):
        weight = self.on(values((3, 3), 0))
        run = self.graphed(lambda x, w: x @ w, static=[1])
        for step in range(4):
            x = values((2, 3), step)
            got = run(self.on(x), weight)[0]
            torch.testing.assert_close(got.cpu(), x @ weight.cpu())
            del got
            weight.add_(1)  # seen by the next replay, at the same address
            mark()
        self.assertEqual(len(list(self.manager().get_roots())), 1)

    def test_a_static_input_elsewhere_is_recorded_anew(self):
        run = self.graphed(lambda x, w: x + w, static=[1])
        for weight in (self.on(values((3,), 5)), self.on(values((3,), 6))):
            for step in range(3):
                x = values((3,), step)
                got = run(self.on(x), weight)[0]
                torch.testing.assert_close(got.cpu(), x + weight.cpu())
                del got
                mark()
        self.assertEqual(len(list(self.manager().get_roots())), 2)

    def test_sizes_have_graphs_of_their_own(self):
        run = graphed(self.trees, lambda n, x: x * n, [1, self.on(torch.zeros(1, 2))], device=self.device)
        for step in range(6):
            n = 1 + step % 2
            x = values((n, 2), step)
            torch.testing.assert_close(run(n, self.on(x))[0].cpu(), x * n)
            mark()

    def test_outputs_that_alias(self):
        def model(x):
            y = x + 1
            return y, y[1:], x

        run = self.graphed(model, outputs=3, static=[0])
        x = self.on(values((4,), 0))
        for step in range(4):
            x.fill_(step)
            y, part, same = run(x)
            self.assertEqual((y.cpu().tolist(), part.cpu().tolist()), ([step + 1.0] * 4, [step + 1.0] * 3))
            self.assertEqual(same.data_ptr(), x.data_ptr())
            self.assertEqual(part.untyped_storage().data_ptr(), y.untyped_storage().data_ptr())
            del y, part, same
            mark()

    def test_an_error_in_the_model_leaves_the_manager_usable(self):
        fails = [True]

        def model(x):
            if fails[0]:
                raise ValueError("in the model")
            return x + 1

        run = self.graphed(model)
        with self.assertRaisesRegex(ValueError, "in the model"):
            run(self.on(values((3,), 0)))
        fails[0] = False
        mark()
        again = self.graphed(model)
        for step in range(3):
            x = values((3,), step)
            got = again(self.on(x))[0]
            torch.testing.assert_close(got.cpu(), x + 1)
            del got
            mark()

    def test_forward_and_backward(self):
        forward = self.graphed(lambda x: (x * 2, x), outputs=2, mode="forward")
        backward = self.graphed(lambda saved, grad: saved * grad, mode="backward")
        for step in range(4):
            x, grad = values((3,), step), values((3,), step + 20)
            out, saved = forward(self.on(x))
            torch.testing.assert_close(out.cpu(), x * 2)
            self.assertTrue(self.manager().running_forwards_with_pending_backwards)
            got = backward(saved, self.on(grad))[0]
            torch.testing.assert_close(got.cpu(), x * grad)
            self.assertFalse(self.manager().running_forwards_with_pending_backwards)
            del out, saved, got
            mark()

    def test_another_thread_has_its_own_manager(self):
        self.graphed(lambda x: x + 1)(self.on(values((3,), 0)))
        mine, found = self.manager(), []

        def work():
            try:
                run = self.graphed(lambda x: x * 5)
                for step in range(3):
                    x = values((3,), step)
                    found.append(torch.equal(run(self.on(x))[0].cpu(), x * 5))
                    mark()
                found.append(self.manager())
                self.trees.reset_cudagraph_trees()
            except Exception as error:  # said by the test's thread
                found.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        self.assertEqual(found[:3], [True] * 3, found)
        self.assertIsNot(found[3], mine)
        self.assertIs(self.manager(), mine)

    def test_no_leaks_in_the_pool_are_found(self):
        """The slow check compares what lives in the pool with what the trees know: it is on, and must be quiet; it is
        loud about a tensor that a model keeps."""
        kept = []
        run = self.graphed(lambda x: (kept.append(x + 7), x + 1)[1])
        with self.assertRaisesRegex(RuntimeError, "not tracked as outputs|Detected"):
            run(self.on(values((3,), 0)))
        kept.clear()

    def test_reset_begins_anew(self):
        run = self.graphed(lambda x: x + 1)
        for step in range(3):
            run(self.on(values((3,), step)))
            mark()
        pool = self.manager().cuda_graphs_thread_pool
        self.trees.reset_cudagraph_trees()
        self.assertIsNone(self.manager())
        del run
        again = self.graphed(lambda x: x + 2)
        self.assertEqual(again(self.on(torch.zeros(2)))[0].cpu().tolist(), [2.0, 2.0])
        self.assertNotEqual(self.manager().cuda_graphs_thread_pool, pool)


for _device_type, _variant in DEVICES:
    _name = f"On{_device_type.capitalize()}{_variant.capitalize()}"
    globals()[_name] = type(_name, (OnDevice, unittest.TestCase), {"device_type": _device_type, "variant": _variant})


@unittest.skipIf(OTHER, "the other process is this one")
class OnAnotherPackagesDevice(unittest.TestCase):
    def the_same_tests(self, other, variants):
        if os.environ.get("RONDO_TORCH_DEVICE") == "sim":
            self.skipTest("no device of Rondo's is used there: one run is enough")
        here = os.path.abspath(__file__)
        done = forks.python([here], dict(os.environ, RONDO_TEST_OTHER=other, TORCH_DEVICE_BACKEND_AUTOLOAD="0"))
        text = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, text[-4000:])
        if "OK (skipped=1)" in text and "Ran 1 test" in text:
            self.skipTest(next(line for line in text.splitlines() if line.startswith("not run: ")))
        each = len([name for name in dir(OnDevice) if name.startswith("test")])
        mine = len([name for name in dir(type(self)) if name.startswith("test")])
        self.assertIn(f"Ran {variants * each + mine} tests", text)  # and these, skipped
        self.assertIn(f"OK (skipped={mine})", text)

    def test_the_same_tests_on_second(self):
        self.the_same_tests("second", 1)

    def test_the_same_tests_on_npu(self):
        self.the_same_tests("npu", 3)


if __name__ == "__main__":
    unittest.main()
