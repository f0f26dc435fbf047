# SPDX-License-Identifier: Apache-2.0
"""Devices, streams and events; the module torch.rondo; threads, forks, and the end of a process."""

import os
import subprocess
import sys
import threading
import unittest
from unittest import mock

import torch

import rondo_torch  # noqa: F401

DEVICE = "rondo"
LONG = os.environ.get("RONDO_TORCH_LONG") == "1"
SEVERAL = torch.rondo.device_count() > 1


def run(program, *before, expect=0):
    """A process of its own; its output, both streams together."""
    done = subprocess.run(
        [*before, sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    text = done.stdout + done.stderr
    if done.returncode != expect:
        raise AssertionError(f"status {done.returncode}, not {expect}: {text}")
    return text


class Module(unittest.TestCase):
    def test_names_of_cuda(self):
        """Each is here, or it is said why not."""
        from rondo_torch import device

        for name in torch.cuda.__all__:
            if name in device.absent:
                with self.assertRaisesRegex(AttributeError, f"torch.rondo has no {name}: "):
                    getattr(torch.rondo, name)
            else:
                self.assertTrue(hasattr(torch.rondo, name), name)
        self.assertEqual([name for name in device.absent if name in vars(torch.rondo)], [])
        with self.assertRaisesRegex(AttributeError, "no attribute 'nothing'"):
            _ = torch.rondo.nothing

    def test_it_is_the_accelerator(self):
        torch.rondo.init()
        self.assertTrue(torch.rondo.is_available() and torch.rondo.is_initialized())
        self.assertEqual(torch.accelerator.current_accelerator().type, "rondo")
        self.assertEqual(torch.accelerator.device_count(), torch.rondo.device_count())
        self.assertEqual(torch.rondo.get_device_name(), torch.rondo.get_device_properties().name)
        self.assertEqual(torch.get_device_module("rondo"), torch.rondo)
        self.assertEqual(torch.device(0), torch.device("rondo:0"))
        self.assertFalse(torch.rondo.can_device_access_peer(0, 0))

    def test_import_takes_neither_inductor_nor_dynamo(self):
        text = run(
            "import torch, rondo_torch, sys; x = torch.ones(2, device='rondo') + 1;"
            "print(x.tolist(), 'torch._dynamo' in sys.modules, 'torch._inductor' in sys.modules)"
        )
        self.assertIn("[2.0, 2.0] False False", text)

    def test_devices_that_are_none(self):
        for call in (
            lambda: torch.ones(1, device="rondo:99"),
            lambda: torch.rondo.set_device(99),
            lambda: torch.accelerator.set_device_index(99),
            lambda: torch.rondo.synchronize(99),
            lambda: torch.rondo.current_stream(99),
        ):
            with self.assertRaisesRegex(RuntimeError, "there is no device 99|invalid|99"):
                call()
        for call in (lambda: torch.rondo.device("cpu"), lambda: torch.rondo.memory_allocated("cpu")):
            with self.assertRaisesRegex(ValueError, "Expected a rondo device"):
                call()
        self.assertEqual(torch.rondo.current_device(), 0)


@unittest.skipUnless(SEVERAL, "one device")
class Devices(unittest.TestCase):
    def test_guards_nest(self):
        with torch.rondo.device(1):
            self.assertEqual(torch.ones(1, device="rondo").device.index, 1)
            with torch.rondo.device("rondo:0"), torch.rondo.device(None), torch.rondo.device(-1):
                self.assertEqual(torch.accelerator.current_device_index(), 0)
            with torch.accelerator.device_index(0):
                self.assertEqual(torch.rondo.current_device(), 0)
            with torch.rondo.device_of(torch.ones(1, device="rondo:0")), torch.rondo.device_of(torch.ones(1)):
                self.assertEqual(torch.rondo.current_device(), 0)
            with self.assertRaises(KeyError), torch.rondo.device(0):
                raise KeyError
            self.assertEqual(torch.rondo.current_device(), 1)
        self.assertEqual(torch.rondo.current_device(), 0)
        with torch.device("rondo:1"):
            self.assertEqual(torch.ones(1).device, torch.device("rondo:1"))
            self.assertEqual(torch.rondo.current_device(), 0)

    def test_work_follows_its_tensors(self):
        x = torch.arange(4.0, device="rondo:1")
        for y in (x + 1, x.sum(), x.sort().values, x[x > 1], torch.rand_like(x), x.view(2, 2) @ x.view(2, 2)):
            self.assertEqual(y.device.index, 1)
        self.assertEqual(torch.rondo.current_device(), 0)
        y = x.to("rondo:0")
        self.assertEqual((y.device.index, y.tolist()), (0, [0.0, 1, 2, 3]))
        z = torch.zeros(2, 4, dtype=torch.float64, device="rondo:1")
        z.t()[:, 1].copy_(y)
        self.assertEqual(z.tolist(), [[0.0] * 4, [0.0, 1, 2, 3]])
        for call in (
            lambda: x + y,
            lambda: torch.mm(x.view(2, 2), y.view(2, 2)),
            lambda: torch.cat([x, y]),
            lambda: x.scatter_(0, y.long(), 1.0),
            lambda: torch.where(x > 0, x, y),
        ):
            with self.assertRaisesRegex(RuntimeError, "same device"):
                call()

    def test_backward_of_two_devices(self):
        x = torch.arange(4.0, device="rondo:0", requires_grad=True)
        y = (x * 2).to("rondo:1")
        (y * y).sum().backward()
        self.assertEqual(x.grad.device.index, 0)
        self.assertEqual(x.grad.tolist(), [0.0, 8, 16, 24])


class Streams(unittest.TestCase):
    def test_current_and_default(self):
        default = torch.rondo.default_stream()
        self.assertEqual(torch.rondo.current_stream(), default)
        self.assertEqual((default.stream_id, default.device), (0, torch.device("rondo:0")))
        other = torch.rondo.Stream()
        self.assertNotEqual(other, default)
        self.assertIsInstance(other, torch.rondo.Stream)
        self.assertNotIsInstance(3, torch.rondo.Stream)
        with torch.rondo.stream(other), torch.rondo.stream(None), torch.rondo.StreamContext(None):
            self.assertEqual(torch.accelerator.current_stream(), other)
            with torch.rondo.stream(default):
                self.assertEqual(torch.rondo.current_stream(), default)
            self.assertEqual(torch.rondo.current_stream(), other)
        torch.rondo.set_stream(other)
        torch.rondo.set_stream(None)
        self.assertEqual(torch.rondo.current_stream(), other)
        torch.accelerator.set_stream(default)

    def test_a_pool_for_each_priority(self):
        ordinary = {torch.rondo.Stream().stream_id for _ in range(100)}
        urgent = {torch.rondo.Stream(priority=-1).stream_id for _ in range(100)}
        self.assertEqual((len(ordinary), len(urgent)), (32, 32))
        self.assertFalse(ordinary & urgent or 0 in ordinary | urgent)
        self.assertEqual(torch.rondo.Stream.priority_range(), (0, -1))

    def test_a_stream_that_captures_is_given_to_nobody(self):
        stream, graph = torch.rondo.Stream(), torch.accelerator.Graph()
        torch.accelerator.synchronize()
        with stream, graph:
            torch.ones(1, device=DEVICE).add_(1)
            self.assertTrue(stream.is_capturing() and torch.rondo.is_current_stream_capturing())
            self.assertNotIn(stream, [torch.rondo.Stream() for _ in range(70)])
        self.assertFalse(stream.is_capturing() or torch.rondo.is_current_stream_capturing())

    def test_native_and_external(self):
        stream = torch.rondo.Stream()
        self.assertGreater(stream.native_handle, 0)
        again = torch.rondo.ExternalStream(stream.native_handle)
        self.assertEqual(again, stream)
        self.assertEqual(
            torch.Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type),
            stream,
        )
        if SEVERAL:
            with self.assertRaisesRegex(RuntimeError, "no stream of device 1"):
                torch.rondo.ExternalStream(stream.native_handle, device=1)
        with self.assertRaisesRegex(RuntimeError, "no stream"):
            torch.rondo.ExternalStream(0)

    def test_order_between_streams(self):
        first, second = torch.rondo.Stream(), torch.rondo.Stream()
        x = torch.zeros(1000, device=DEVICE)
        first.wait_stream(torch.rondo.current_stream())
        for _ in range(10):
            with first:
                x += 1
            second.wait_stream(first)
            with second:
                x *= 2
            first.wait_event(second.record_event())
        first.synchronize()
        self.assertTrue(first.query())
        self.assertEqual(x.tolist(), [2046.0] * 1000)

    def test_events(self):
        event = torch.rondo.Event()
        self.assertIsInstance(event, torch.rondo.Event)
        self.assertTrue(event.query())  # never recorded: nothing to wait for
        event.synchronize()
        torch.ones(10, device=DEVICE).add_(1)
        event.record()
        event.wait()
        event.synchronize()
        self.assertTrue(event.query())
        for options in ({"interprocess": True}, {"external": True}):
            with self.assertRaises(NotImplementedError):
                torch.rondo.Event(**options)

    def test_time_between_events(self):
        start, end = (torch.rondo.Event(enable_timing=True) for _ in range(2))
        x = torch.ones(200, 200, device=DEVICE)
        start.record()
        for _ in range(20):
            x = (x @ x).clamp(max=1)
        end.record()
        end.synchronize()
        self.assertGreater(start.elapsed_time(end), 0)
        self.assertLess(end.elapsed_time(start), 0)
        with self.assertRaisesRegex((RuntimeError, ValueError), "timing|record"):
            torch.rondo.Event().elapsed_time(end)

    def test_what_waits_is_refused_in_a_capture(self):
        for name, call in (
            ("stream", lambda s: s.synchronize()),
            ("device", lambda s: torch.rondo.synchronize()),
            ("event", lambda s: s.record_event().synchronize()),
        ):
            with self.subTest(name):
                stream, graph = torch.rondo.Stream(), torch.accelerator.Graph()
                torch.accelerator.synchronize()
                with self.assertRaisesRegex(RuntimeError, "captur"):
                    with stream, graph:
                        torch.ones(1, device=DEVICE).add_(1)
                        call(stream)
                with self.assertRaises(RuntimeError):
                    graph.replay()
                self.assertEqual((torch.ones(2, device=DEVICE) + 1).tolist(), [2.0, 2.0])


class Threads(unittest.TestCase):
    def test_each_has_its_own_device_and_streams(self):
        seen, failed = {}, []
        last = torch.rondo.device_count() - 1

        def work(number):
            try:
                with torch.rondo.device(last), torch.rondo.Stream(last) as stream:
                    x = torch.full((64,), float(number), device=DEVICE)
                    for _ in range(50):
                        x = x * 2 - number
                    seen[number] = (
                        x.sum().item(),
                        torch.rondo.current_device(),
                        torch.rondo.current_stream(last) == stream,
                    )
            except Exception as error:  # noqa: BLE001
                failed.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertEqual(seen, {n: (64.0 * n, last, True) for n in range(4)})
        self.assertEqual((torch.rondo.current_device(), torch.rondo.current_stream().stream_id), (0, 0))

    def test_backward_runs_on_the_streams_of_the_forward(self):
        stream = torch.rondo.Stream()
        seen = []

        class Watched(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                seen.append((threading.get_ident(), torch.rondo.current_stream()))
                return gradient * 2

        with stream:
            x = torch.ones(3, device=DEVICE, requires_grad=True)
            y = Watched.apply(x).sum()
        y.backward()
        torch.accelerator.synchronize()
        self.assertEqual(x.grad.tolist(), [2.0] * 3)
        self.assertEqual(seen[0][1], stream)
        self.assertNotEqual(seen[0][0], threading.get_ident())


TRAIN = """
import torch, rondo_torch
model = torch.nn.Linear(4, 2).to("rondo")
step = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(8, 4, device="rondo")).sum().backward()
    step.step()
print("trained")
"""


class Processes(unittest.TestCase):
    def test_a_process_that_trained_ends(self):
        """On one core, too, where the autograd thread still holds Python's objects when Python ends."""
        one_core = ("taskset", "-c", "0")
        for _ in range(100 if LONG else 2):
            self.assertEqual(run(TRAIN, *one_core), "trained\n")
        self.assertIn("KeyError", run(TRAIN + "raise KeyError", *one_core, expect=1))
        self.assertEqual(
            run(
                "import torch, rondo_torch, atexit\nx = torch.ones(1, device='rondo')\n"
                "atexit.register(lambda: print(x.item()))"
            ),
            "1.0\n",
        )

    def test_a_forked_child_has_no_device(self):
        program = """
import os, torch, rondo_torch
x = torch.ones(2, device="rondo"); pinned = torch.ones(2).pin_memory()
child = os.fork()
if child == 0:
    assert torch.rondo._is_in_bad_fork() and not torch.rondo.is_initialized()
    torch.manual_seed(3)
    try:
        torch.ones(2, device="rondo")
    except RuntimeError as error:
        assert "forked subprocess" in str(error) and "spawn" in str(error), error
    else:
        os._exit(3)
    del x, pinned
    assert torch.ones(2).sum().item() == 2
    raise SystemExit(5)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(status, (x + 1).tolist(), torch.rondo._is_in_bad_fork())
"""
        self.assertEqual(run(program), "5 [2.0, 2.0] False\n")

    def test_a_backend_that_is_none(self):
        program = """
import torch, rondo_torch
assert (torch.rondo.is_available(), torch.rondo.device_count()) == (False, 0)
for call in (lambda: torch.ones(2, device="rondo"), lambda: torch.Generator("rondo"), lambda: torch.rondo.current_stream()):
    try:
        call()
        raise SystemExit("nothing was said")
    except RuntimeError as error:
        print(error)
"""
        with mock.patch.dict(os.environ, RONDO_TORCH_DEVICE="no-such"):
            text = run(program)
        self.assertEqual(text.count("there is no device 0; there are 0 (RONDO_TORCH_DEVICE=no-such: there is no device type"), 3)
        self.assertEqual(text.count("there is 'cpu'\n"), 3)

    def test_a_fork_before_the_first_use_is_fine(self):
        program = """
import os, torch, rondo_torch
torch.manual_seed(1)
assert torch.rondo.is_available() and not torch.rondo.is_initialized()
child = os.fork()
value = torch.rand(1, device="rondo").item()
if child == 0: raise SystemExit(int(torch.rondo._is_in_bad_fork()))
assert os.waitpid(child, 0)[1] == 0
torch.manual_seed(1)
assert torch.rand(1, device="rondo").item() == value
"""
        self.assertEqual(run(program), "")

    def test_checkpoint_draws_the_same_numbers_again(self):
        x = torch.ones(1000, device="rondo", requires_grad=True)
        y = torch.utils.checkpoint.checkpoint(lambda t: torch.nn.functional.dropout(t, 0.5), x, use_reentrant=False)
        y.sum().backward()
        kept = y.detach().cpu() != 0
        self.assertTrue(300 < int(kept.sum()) < 700)
        self.assertTrue(torch.equal(x.grad.cpu() != 0, kept))


if __name__ == "__main__":
    unittest.main()
