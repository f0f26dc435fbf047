# SPDX-License-Identifier: Apache-2.0
"""torch.accelerator.Graph on the device: what a capture holds, what each call answers in each state, what is freed."""
import gc
import json
import os
import tempfile
import threading
import unittest
import warnings
from unittest import mock

import torch

import rondo_torch  # noqa: F401
from rondo_torch import _C

DEVICE = "rondo"
TWO = _C.device_count() > 1


def values(tensor):
    torch.accelerator.synchronize()
    return tensor.cpu().tolist()


def capture(work, stream=None, **options):
    """Graph and result of `work` captured on a stream of its own."""
    graph = torch.accelerator.Graph(**options)
    with stream or torch.Stream(device=DEVICE), graph:
        result = work()
    return graph, result


class Capture(unittest.TestCase):
    def test_nothing_runs_before_the_replay(self):
        x = torch.full((4,), 3.0, device=DEVICE)
        out = torch.zeros(4, device=DEVICE)
        graph, _ = capture(lambda: torch.mul(x, 2, out=out))
        self.assertEqual(values(out), [0.0] * 4)
        graph.replay()
        self.assertEqual(values(out), [6.0] * 4)

    def test_an_argument_lives_until_its_call_is_recorded(self):
        """A convolution copies what has another layout, and nobody else has the copies."""
        x, weight = [t.to(memory_format=torch.channels_last) for t in (torch.rand(1, 2, 4, 4), torch.rand(3, 2, 3, 3))]
        on, kernel = x.to(DEVICE), weight.to(DEVICE)
        torch.accelerator.synchronize()
        graph, y = capture(lambda: torch.conv2d(on * 2, kernel))
        for i in range(3):
            on.copy_(x + i)
            torch.accelerator.synchronize()
            graph.replay()
            torch.accelerator.synchronize()
            torch.testing.assert_close(y.cpu(), torch.conv2d((x + i) * 2, weight))

    def test_replays_see_new_contents_and_write_the_same_memory(self):
        x = torch.ones(4, device=DEVICE)
        weight = torch.randn(4, 4)
        on_device = weight.to(DEVICE)
        graph, y = capture(lambda: torch.relu(x * 2 + 1) @ on_device)
        address = y.data_ptr()
        for value in (1.0, -7.0, 2.5):
            x.fill_(value)
            graph.replay()
            torch.accelerator.synchronize()
            want = torch.relu(torch.full((4,), value) * 2 + 1) @ weight
            torch.testing.assert_close(y.cpu(), want, rtol=1e-5, atol=1e-5)
            self.assertEqual(y.data_ptr(), address)

    def test_in_place_and_views(self):
        x = torch.zeros(2, 3, device=DEVICE)
        graph, _ = capture(lambda: x.t()[1].add_(1))
        for _ in range(3):
            graph.replay()
        self.assertEqual(values(x), [[0, 3, 0], [0, 3, 0]])

    def test_replay_on_any_stream(self):
        x = torch.zeros(4, device=DEVICE)
        graph, _ = capture(lambda: x.add_(1))
        graph.replay()
        for _ in range(2):
            with torch.Stream(device=DEVICE):
                graph.replay()
        self.assertEqual(values(x), [3.0] * 4)

    def test_side_streams_fork_and_join(self):
        x = torch.zeros(4, device=DEVICE)
        main, side = torch.Stream(device=DEVICE), torch.Stream(device=DEVICE)

        def work():
            first = x + 1
            side.wait_stream(main)
            with side:
                second = first * 10
            third = first * 100
            main.wait_stream(side)
            return second + third

        graph, y = capture(work, main)
        self.assertFalse(side.is_capturing())
        for value in (0.0, 4.0):
            x.fill_(value)
            torch.accelerator.synchronize()
            graph.replay()
            self.assertEqual(values(y), [(value + 1) * 110] * 4)

    def test_is_capturing(self):
        stream = torch.Stream(device=DEVICE)
        seen = []
        capture(lambda: seen.append((stream.is_capturing(), torch.rondo.is_current_stream_capturing(), torch.ones(
            1, device=DEVICE).numel())), stream)
        self.assertEqual(seen, [(True, True, 1)])
        self.assertEqual((stream.is_capturing(), torch.rondo.is_current_stream_capturing()), (False, False))

    def test_all_four_modes(self):
        x = torch.ones(4, device=DEVICE)
        for mode in ("default", "global", "thread_local", "relaxed"):
            graph, y = capture(lambda: x + 1, capture_error_mode=mode)
            graph.replay()
            self.assertEqual(values(y), [2.0] * 4, mode)

    def test_a_mode_that_is_none(self):
        graph = torch.accelerator.Graph(capture_error_mode="bogus")
        with torch.Stream(device=DEVICE), self.assertRaisesRegex(RuntimeError, "Unknown capture error mode"):
            graph.capture_begin()
        self.assertEqual(values(torch.ones(1, device=DEVICE) + 1), [2.0])

    def test_modes_decide_about_unsafe_calls_of_other_threads(self):
        x = torch.ones(4, device=DEVICE)

        def other():
            answers = []

            def body():
                try:
                    torch.accelerator.empty_cache()
                    answers.append("allowed")
                except RuntimeError as error:
                    answers.append(str(error))

            thread = threading.Thread(target=body)
            thread.start()
            thread.join()
            return answers[0]

        for mode, allowed in (("global", False), ("thread_local", True), ("relaxed", True)):
            graph = torch.accelerator.Graph(capture_error_mode=mode)
            with self.subTest(mode), torch.Stream(device=DEVICE):
                graph.capture_begin()
                y = x + 1
                answer = other()
                if allowed:
                    self.assertEqual(answer, "allowed")
                    graph.capture_end()
                    graph.replay()
                    self.assertEqual(values(y), [2.0] * 4)
                else:
                    self.assertRegex(answer, "rondo_memory_trim")
                    with self.assertRaisesRegex(RuntimeError, "was broken by: rondo_memory_trim"):
                        graph.capture_end()

    def test_an_empty_graph_warns_and_does_nothing(self):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            graph, _ = capture(lambda: None)
        self.assertEqual(len(seen), 1, [str(w.message) for w in seen])
        self.assertRegex(str(seen[0].message), "is empty: nothing was enqueued")
        graph.replay()

    def test_garbage_is_collected_before_a_capture_only_when_asked(self):
        for wanted in (False, True):
            with mock.patch.object(torch.compiler.config, "force_cudagraph_gc", wanted), \
                    mock.patch.object(gc, "collect") as collect:
                capture(lambda: torch.ones(1, device=DEVICE))
            self.assertEqual(collect.called, wanted)

    def test_random_numbers_are_new_at_each_replay_and_those_of_eager_calls(self):
        def draw():
            return torch.rand(8, device=DEVICE), torch.randn(8, device=DEVICE)

        torch.manual_seed(11)
        want = [[t.cpu() for t in draw()] for _ in range(3)]
        graph, drawn = capture(draw)
        torch.manual_seed(11)
        got = [[t.cpu() for t in draw()]]
        for _ in range(2):
            graph.replay()
            torch.accelerator.synchronize()
            got.append([t.cpu() for t in drawn])
        for pair in zip(want, got):
            for a, b in zip(*pair):
                self.assertTrue(a.equal(b))
        self.assertFalse(got[1][0].equal(got[2][0]))

    def test_a_seed_between_replays_acts_at_the_next(self):
        graph, drawn = capture(lambda: torch.rand(8, device=DEVICE))
        seen = []
        for _ in range(2):
            torch.manual_seed(3)
            graph.replay()
            torch.accelerator.synchronize()
            seen.append(drawn.cpu())
        self.assertTrue(seen[0].equal(seen[1]))
        torch.manual_seed(3)
        self.assertTrue(seen[0].equal(torch.rand(8, device=DEVICE).cpu()))

    def test_a_generator_of_ones_own(self):
        generator = torch.Generator(device=DEVICE).manual_seed(5)
        want = [torch.rand(4, device=DEVICE, generator=generator).cpu() for _ in range(2)]
        graph, drawn = capture(lambda: torch.rand(4, device=DEVICE, generator=generator))
        generator.manual_seed(5)
        for numbers in want:
            graph.replay()
            torch.accelerator.synchronize()
            self.assertTrue(drawn.cpu().equal(numbers))

    def test_the_generator_cannot_be_set_during_a_capture_that_uses_it(self):
        with self.assertRaisesRegex(RuntimeError, "generator|captur"):
            capture(lambda: (torch.rand(4, device=DEVICE), torch.rondo.manual_seed(1)))
        torch.rondo.manual_seed(1)

    def test_pinned_host_memory(self):
        x = torch.zeros(4, device=DEVICE)
        host = torch.arange(4.0).pin_memory()

        def work():
            inside = torch.empty(4, pin_memory=True)
            x.copy_(host, non_blocking=True)
            y = x + 1
            inside.copy_(y, non_blocking=True)
            return inside

        graph, inside = capture(work)
        graph.replay()
        torch.accelerator.synchronize()
        self.assertTrue(inside.is_pinned())
        self.assertEqual(inside.tolist(), [1, 2, 3, 4])
        host += 10
        graph.replay()
        torch.accelerator.synchronize()
        self.assertEqual(inside.tolist(), [11, 12, 13, 14])

    def test_a_graph_replayed_into_another_may_go(self):
        x = torch.ones(4, device=DEVICE)
        inner, y = capture(lambda: torch.relu(x * 2))
        outer, z = capture(lambda: (inner.replay(), y + 1)[1])
        inner.reset()
        del inner
        gc.collect()
        for value in (1.0, 6.0):
            x.fill_(value)
            outer.replay()
            self.assertEqual(values(z), [2 * value + 1] * 4)

    @unittest.skipUnless(TWO, "one device")
    def test_two_devices(self):
        graphs = []
        for index in range(2):
            with torch.rondo.device(index):
                x = torch.full((4,), float(index), device=f"rondo:{index}")
                graph, y = capture(lambda: x + 10, torch.Stream(device=f"rondo:{index}"))
                graphs.append((graph, x, y))
        for index, (graph, _, y) in enumerate(graphs):
            with torch.rondo.device(1 - index):  # the graph knows its device
                graph.replay()
            torch.rondo.synchronize(index)
            self.assertEqual((y.device.index, y.cpu().tolist()), (index, [10.0 + index] * 4))

    @unittest.skipUnless(TWO, "one device")
    def test_captured_again_on_another_device(self):
        graph = torch.accelerator.Graph()
        for index in (0, 1, 0):
            x = torch.full((2,), float(index), device=f"rondo:{index}")
            with torch.rondo.device(index), torch.Stream(device=f"rondo:{index}"), graph:
                y = x * 3
            graph.replay()
            torch.rondo.synchronize(index)
            self.assertEqual(y.cpu().tolist(), [3.0 * index] * 2)
            graph.reset()


class Exceptions(unittest.TestCase):
    """Whatever leaves the block, half a graph is not replayed, and the exception goes its way."""

    def setUp(self):
        self.x = torch.ones(4, device=DEVICE)
        self.graph, self.stream = torch.accelerator.Graph(), torch.Stream(device=DEVICE)

    def usable(self):
        self.assertFalse(self.stream.is_capturing())
        with self.stream, self.graph:
            y = self.x + 1
        self.graph.replay()
        self.assertEqual(values(y), [2.0] * 4)

    def refused(self, text):
        for call in (self.graph.replay, self.graph.instantiate, self.graph.pool):
            with self.assertRaisesRegex(RuntimeError, "without a preceding successful capture: " + text):
                call()

    def test_of_somebody_else(self):
        with self.assertRaisesRegex(ValueError, "^mine$"):
            with self.stream, self.graph:
                _ = self.x * 2
                raise ValueError("mine")
        self.refused(r"an exception left the capture \(ValueError: mine\), and what it had recorded was dropped")
        self.usable()

    def test_that_ends_the_program(self):
        with self.assertRaises(KeyboardInterrupt):
            with self.stream, self.graph:
                _ = self.x * 2
                raise KeyboardInterrupt
        self.refused(r"an exception left the capture \(KeyboardInterrupt\)")
        self.usable()

    def test_without_text(self):
        class Mute(Exception):
            def __str__(self):
                raise ValueError("cannot say")

        with self.assertRaises(Mute):
            with self.stream, self.graph:
                _ = self.x * 2
                raise Mute
        self.refused(r"an exception left the capture \(Mute\)")

    def test_of_an_operator_that_is_refused(self):
        with self.assertRaisesRegex(RuntimeError, "item.* cannot be captured"):
            with self.stream, self.graph:
                (self.x * 2).sum().item()
        self.refused(r"an exception left the capture \(RuntimeError: rondo: item")
        self.usable()

    def test_of_an_operator_that_is_refused_and_caught_inside(self):
        with self.assertRaisesRegex(RuntimeError, "the capture was broken: item.* cannot be captured"):
            with self.stream, self.graph:
                try:
                    self.x.sum().item()
                except RuntimeError:
                    pass
        self.refused("the capture was broken: item")
        self.usable()

    def test_caught_inside_is_nobodys_business(self):
        with self.stream, self.graph:
            y = self.x * 2
            try:
                raise ValueError
            except ValueError:
                y = y + 1
        self.graph.replay()
        self.assertEqual(values(y), [3.0] * 4)

    def test_handled_around_the_capture(self):
        try:
            raise ValueError("before")
        except ValueError:
            with self.stream, self.graph:
                y = self.x * 2
        self.graph.replay()
        self.assertEqual(values(y), [2.0] * 4)

    def test_raised_again_inside(self):
        try:
            raise ValueError("before")
        except ValueError as known:
            with self.assertRaisesRegex(ValueError, "before"):
                with self.stream, self.graph:
                    _ = self.x * 2
                    raise known
        self.refused(r"an exception left the capture \(ValueError: before\)")

    def test_through_a_generator(self):
        def body():
            with self.stream, self.graph:
                yield self.x * 2

        running = body()
        next(running)
        running.close()
        self.refused(r"an exception left the capture \(GeneratorExit\)")
        self.usable()

    def test_with_capture_begin_and_capture_end(self):
        with self.assertRaisesRegex(ValueError, "mine"), self.stream:
            self.graph.capture_begin()
            try:
                _ = self.x * 2
                raise ValueError("mine")
            finally:
                self.graph.capture_end()
        self.refused(r"an exception left the capture \(ValueError: mine\)")
        self.usable()

    def test_work_that_nobody_waits_for(self):
        side = torch.Stream(device=DEVICE)
        with self.assertRaisesRegex(RuntimeError, "lane 1 has work that the stream which began the capture does not "
                                                  "wait for, node 1 'aten::add.Tensor' last"):
            with self.stream, self.graph:
                y = self.x * 2
                side.wait_stream(self.stream)
                with side:
                    _ = y + 1
        self.assertFalse(side.is_capturing())
        self.refused("graph 'torch.accelerator.Graph': lane 1 has work")
        self.usable()

    def test_two_captures_that_meet(self):
        other, stream = torch.accelerator.Graph(), torch.Stream(device=DEVICE)
        event = torch.Event(device=DEVICE)
        with stream:
            other.capture_begin()
            _ = self.x * 3
            event.record(stream)
        with self.stream:
            self.graph.capture_begin()
            _ = self.x * 2
        with self.assertRaisesRegex(RuntimeError, "captur"):
            self.stream.wait_event(event)
        for graph, its in ((other, stream), (self.graph, self.stream)):
            with its, self.assertRaisesRegex(RuntimeError, "was broken by"):
                graph.capture_end()
        self.usable()

    def test_synchronising(self):
        for call in (torch.accelerator.synchronize, self.stream.synchronize):
            with self.assertRaisesRegex(RuntimeError, "captur"):
                with self.stream, self.graph:
                    _ = self.x * 2
                    call()
            self.usable()
            self.graph.reset()


class Freed(unittest.TestCase):
    def test_an_input_that_is_gone_is_named(self):
        x = torch.ones(8, device=DEVICE)
        graph, y = capture(lambda: x * 3 + 1)
        address = x.data_ptr()
        graph.replay()
        torch.accelerator.synchronize()
        del x
        before = y.cpu()
        y.zero_()
        with self.assertRaisesRegex(RuntimeError, rf"node 0 'aten::mul.Tensor', argument 0: address {address:#x} lies in "
                                                  r"memory that is gone[\s\S]*nothing ran"):
            graph.replay()
        self.assertEqual(values(y), [0.0] * 8)
        self.assertEqual(before.tolist(), [4.0] * 8)

    def test_an_address_in_use_again_is_not_taken_for_the_old(self):
        x = torch.ones(8, device=DEVICE)
        graph, _ = capture(lambda: x * 3)
        address = x.data_ptr()
        del x
        others = [torch.ones(8, device=DEVICE) for _ in range(64)]
        self.assertIn(address, [t.data_ptr() for t in others])
        with self.assertRaisesRegex(RuntimeError, "is gone"):
            graph.replay()

    def test_outputs_and_temporaries_may_go(self):
        x = torch.ones(8, device=DEVICE)
        out = torch.zeros(8, device=DEVICE)
        graph, y = capture(lambda: (torch.add(x * 3, 1, out=out), x + 5)[1])
        del y
        graph.replay()
        self.assertEqual(values(out), [4.0] * 8)


class Memory(unittest.TestCase):
    def setUp(self):
        gc.collect()
        torch.accelerator.synchronize()
        torch.accelerator.empty_cache()
        self.x = torch.ones(1 << 18, device=DEVICE)
        self.before = self.now()

    @staticmethod
    def now():
        torch.accelerator.synchronize()
        torch.accelerator.empty_cache()
        stats = torch.accelerator.memory_stats()
        return tuple(stats[f"{name}.all.current"]
                     for name in ("allocated_bytes", "reserved_bytes", "allocation", "segment"))

    def test_reset_gives_everything_back(self):
        graph, y = capture(lambda: torch.relu(self.x * 2))
        graph.replay()
        pool = graph.pool()
        del y
        self.assertGreater(self.now()[1], self.before[1])  # the graph keeps its pool
        self.assertTrue(torch.rondo.memory_snapshot(pool))
        graph.reset()
        self.assertEqual(self.now(), self.before)
        self.assertEqual(torch.rondo.memory_snapshot(pool), [])

    def test_the_end_of_the_graph_does_so_too(self):
        graph, y = capture(lambda: torch.relu(self.x * 2))
        graph.replay()
        del graph, y
        self.assertEqual(self.now(), self.before)

    def test_outputs_outlive_their_graph(self):
        for end in ("reset", "del"):
            graph, y = capture(lambda: torch.relu(self.x * 2))
            graph.replay()
            torch.accelerator.synchronize()
            if end == "reset":
                graph.reset()
            del graph
            self.assertEqual(self.now()[0] - self.before[0], y.untyped_storage().nbytes())
            self.assertEqual(y.cpu().unique().tolist(), [2.0])
            del y
            self.assertEqual(self.now(), self.before)

    def test_a_capture_that_fails_or_is_aborted_gives_back_its_pool(self):
        graph, stream = torch.accelerator.Graph(), torch.Stream(device=DEVICE)
        with self.assertRaises(ValueError):
            with stream, graph:
                y = self.x * 2
                raise ValueError
        del y
        self.assertEqual(self.now(), self.before)
        with stream:
            graph.capture_begin()
            y = self.x * 2
            graph.reset()
        self.assertFalse(stream.is_capturing())
        del y
        self.assertEqual(self.now(), self.before)
        with stream:
            graph.capture_begin()
            y = self.x * 2
            del graph
        self.assertFalse(stream.is_capturing())
        del y
        self.assertEqual(self.now(), self.before)

    def test_graphs_share_a_pool(self):
        pool = torch.rondo.graph_pool_handle()
        first, y = capture(lambda: self.x * 2, pool=pool)
        second, z = capture(lambda: y + 1, pool=first.pool())
        self.assertEqual((first.pool(), second.pool()), (pool, pool))
        first.replay()
        second.replay()
        self.assertEqual(z.cpu().unique().tolist(), [3.0])
        first.reset()
        self.assertTrue(torch.rondo.memory_snapshot(pool))  # the second uses it
        second.replay()
        second.reset()
        del y, z
        self.assertEqual(self.now(), self.before)
        third = torch.accelerator.Graph(pool=pool)
        with torch.Stream(device=DEVICE), self.assertRaisesRegex(RuntimeError, "released"):
            third.capture_begin()

    def test_a_second_graph_reuses_what_the_first_left_of_the_pool(self):
        stream = torch.Stream(device=DEVICE)  # blocks are reused by the stream that they are of
        first, y = capture(lambda: self.x * 2, stream)
        address = y.data_ptr()
        del y
        second, z = capture(lambda: self.x * 4, stream, pool=first.pool())
        self.assertEqual(z.data_ptr(), address)
        second.replay()
        self.assertEqual(z.cpu().unique().tolist(), [4.0])

    def test_pools_of_their_own_are_distinct(self):
        (first, y), (second, z) = capture(lambda: self.x * 2), capture(lambda: self.x * 3)
        self.assertNotEqual(first.pool(), second.pool())
        first.replay()
        second.replay()
        self.assertEqual((y.cpu().unique().tolist(), z.cpu().unique().tolist()), ([2.0], [3.0]))

    def test_one_pool_does_not_record_twice_at_once(self):
        pool = torch.rondo.graph_pool_handle()
        first, second = torch.accelerator.Graph(pool=pool), torch.accelerator.Graph(pool=pool)
        stream, other = torch.Stream(device=DEVICE), torch.Stream(device=DEVICE)
        with stream:
            first.capture_begin()
        with other, self.assertRaisesRegex(RuntimeError, "records already"):
            second.capture_begin()
        self.assertFalse(other.is_capturing())
        with stream:
            y = self.x + 1
            first.capture_end()
        first.replay()
        self.assertEqual(y.cpu().unique().tolist(), [2.0])

    def test_a_pool_id_with_both_parts_set(self):
        graph = torch.accelerator.Graph(pool=(1, 1))
        with torch.Stream(device=DEVICE), self.assertRaisesRegex(RuntimeError, "pool"):
            graph.capture_begin()

    def test_a_pool_set_between_captures(self):
        graph, pool = torch.accelerator.Graph(), torch.rondo.graph_pool_handle()
        with torch.Stream(device=DEVICE), graph:
            _ = self.x + 1
        self.assertNotEqual(graph.pool(), pool)
        graph.reset()
        graph.graph_pool = pool
        with torch.Stream(device=DEVICE), graph:
            _ = self.x + 1
        self.assertEqual(graph.pool(), pool)


class Threads(unittest.TestCase):
    def run_in_thread(self, body):
        answer = []

        def guarded():
            try:
                answer.append(body())
            except Exception as error:  # noqa: BLE001 (told to the thread that waits)
                answer.append(error)

        thread = threading.Thread(target=guarded)
        thread.start()
        thread.join()
        return answer[0]

    def test_work_of_another_thread_on_the_stream_is_captured(self):
        x = torch.ones(4, device=DEVICE)
        stream = torch.Stream(device=DEVICE)

        def there():
            with stream:
                return x * 5

        graph, y = capture(lambda: self.run_in_thread(there), stream)
        x.fill_(2.0)
        graph.replay()
        self.assertEqual(values(y), [10.0] * 4)

    def test_work_of_another_thread_elsewhere_is_not(self):
        x = torch.ones(4, device=DEVICE)

        def there():
            with torch.Stream(device=DEVICE) as stream:
                y = x * 5
                stream.synchronize()
            return y.cpu().tolist()

        seen = []
        graph, y = capture(lambda: (seen.append(self.run_in_thread(there)), x + 1)[1],
                           capture_error_mode="thread_local")
        self.assertEqual(seen, [[5.0] * 4])
        graph.replay()
        self.assertEqual(values(y), [2.0] * 4)

    def test_the_end_in_another_thread(self):
        x = torch.ones(4, device=DEVICE)
        for mode in ("thread_local", "relaxed"):
            stream = torch.Stream(device=DEVICE)
            graph = torch.accelerator.Graph(capture_error_mode=mode)

            def end():
                with stream:
                    return graph.capture_end()

            with stream:
                graph.capture_begin()
                y = x + 1
                answer = self.run_in_thread(end)
                if mode == "relaxed":
                    self.assertIsNone(answer)
                else:
                    self.assertRegex(str(answer), "thread")
                    self.assertTrue(stream.is_capturing())  # it goes on
                    y = y + 1
                    graph.capture_end()
            graph.replay()
            self.assertEqual(values(y), [2.0 if mode == "relaxed" else 3.0] * 4)

    def test_a_whole_capture_and_replays_in_another_thread(self):
        x = torch.ones(4, device=DEVICE)
        graph, y = self.run_in_thread(lambda: capture(lambda: x * 7))
        graph.replay()
        self.assertEqual(values(y), [7.0] * 4)
        self.run_in_thread(graph.reset)
        with self.assertRaisesRegex(RuntimeError, "without a preceding successful capture"):
            graph.replay()

    def test_reset_from_another_thread_aborts(self):
        x = torch.ones(4, device=DEVICE)
        torch.accelerator.synchronize()
        graph, stream = torch.accelerator.Graph(), torch.Stream(device=DEVICE)
        with stream:
            graph.capture_begin()
            _ = x + 1
            self.assertIsNone(self.run_in_thread(graph.reset))
            self.assertFalse(stream.is_capturing())
            self.assertEqual((x + 1).cpu().tolist(), [2.0] * 4)

    def test_captures_side_by_side(self):
        results = {}

        def one(number):
            x = torch.full((64,), float(number), device=DEVICE)
            torch.accelerator.synchronize()
            graph = torch.accelerator.Graph(capture_error_mode="thread_local")
            stream = torch.Stream(device=DEVICE)
            with stream:
                graph.capture_begin()
                y = x
                for _ in range(20):
                    y = y + 1
                graph.capture_end()
                graph.replay()
                stream.synchronize()
            results[number] = y.cpu().unique().tolist()

        threads = [threading.Thread(target=one, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, {n: [n + 20.0] for n in range(4)})


class Dumps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.x = torch.ones(4, device=DEVICE)

    def dump(self, graph, name):
        path = os.path.join(self.folder.name, name)
        graph.debug_dump(path)
        with open(path, encoding="utf-8") as file:
            return file.read()

    def check(self, graph):
        dot = self.dump(graph, "g.dot")
        self.assertTrue(dot.startswith("digraph"))
        self.assertIn("aten::mul.Tensor", dot)
        nodes = json.loads(self.dump(graph, "g.json"))["nodes"]
        self.assertEqual([n["name"] for n in nodes], ["aten::mul.Tensor", "aten::relu"])
        self.assertRegex(self.dump(graph, "g.txt"),
                         r"2 nodes[^\n]*\n +0 +kernel +aten::mul.Tensor [^\n]*\n +1 +kernel +aten::relu ")

    def work(self):
        return torch.relu(self.x * 2)

    def test_with_keep_graph(self):
        self.check(capture(self.work, keep_graph=True)[0])

    def test_with_debug_mode(self):
        graph = torch.accelerator.Graph()
        graph.enable_debug_mode()
        for _ in range(2):  # it is for all captures from now on
            with torch.Stream(device=DEVICE), graph:
                self.work()
            self.check(graph)
            self.check(graph)
            graph.reset()

    def test_without_either(self):
        graph, _ = capture(self.work)
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, r"debug_dump\(\) has nothing to show: call enable_debug_mode\(\) "
                                                      r"before the capture, or make the graph with keep_graph=True"):
                self.dump(graph, "g.dot")
            graph.enable_debug_mode()  # too late for what is captured

    def test_where_nothing_can_be_written(self):
        graph, _ = capture(self.work, keep_graph=True)
        with self.assertRaisesRegex(RuntimeError, "none/g.dot"):
            graph.debug_dump(os.path.join(self.folder.name, "none", "g.dot"))
        with self.assertRaisesRegex(RuntimeError, "dot|json|txt"):
            graph.debug_dump(os.path.join(self.folder.name, "g.png"))
        graph.replay()


class KeepGraph(unittest.TestCase):
    def test_instantiated_by_the_first_replay_or_by_hand_and_again(self):
        x = torch.zeros(4, device=DEVICE)
        graph, _ = capture(lambda: x.add_(1), keep_graph=True)
        graph.replay()
        graph.instantiate()
        graph.replay()
        graph.instantiate()
        graph.instantiate()
        graph.replay()
        self.assertEqual(values(x), [3.0] * 4)
        graph.reset()
        with torch.Stream(device=DEVICE), graph:
            x.add_(10)
        graph.instantiate()
        graph.replay()
        self.assertEqual(values(x), [13.0] * 4)


class Order(unittest.TestCase):
    """Each call in each state: a test of its own by the name of both, made from the table below."""

    def setUp(self):
        self.x = torch.zeros(4, device=DEVICE)
        self.stream = torch.Stream(device=DEVICE)
        torch.accelerator.synchronize()
        self.stream.__enter__()
        self.addCleanup(self.stream.__exit__, None, None, None)

    def in_state(self, state):
        graph = torch.accelerator.Graph(keep_graph=state in ("kept", "instantiated"))
        if state != "new":
            graph.capture_begin()
            self.x.add_(1)
        if state == "broken":
            with self.assertRaises(RuntimeError):
                self.x.sum().item()
        if state in ("kept", "instantiated", "ready", "reset"):
            graph.capture_end()
        if state == "instantiated":
            graph.instantiate()
        if state == "reset":
            graph.reset()
        if state == "failed":
            with self.assertRaises(RuntimeError):
                self.x.sum().item()
            with self.assertRaises(RuntimeError):
                graph.capture_end()
        return graph

    def works(self, graph):
        """Whatever came before, a reset graph captures and replays."""
        graph.reset()
        self.assertFalse(self.stream.is_capturing())
        self.x.zero_()
        graph.capture_begin()
        self.x.add_(1)
        graph.capture_end()
        graph.replay()
        graph.replay()
        self.assertEqual(values(self.x), [2.0] * 4)


NOT_YET = r"called {}\(\) without a preceding successful capture"
NOW = r"called {}\(\) while the graph is capturing: call capture_end\(\) first"
OWNS = "already owns a captured graph"
NO_BEGIN = r"called capture_end\(\) before capture_begin\(\)"
BROKEN = "the capture was broken: item"
#                    capture_begin  capture_end instantiate              replay   pool     debug_dump enable reset
TABLE = {
    "new":          (None,          NO_BEGIN,   NOT_YET,                 NOT_YET, NOT_YET, NOT_YET),
    "capturing":    (NOW,           None,       NOW,                     NOW,     NOW,     NOW),
    "broken":       (NOW,           BROKEN,     NOW,                     NOW,     NOW,     NOW),
    "failed":       (None,          NO_BEGIN,   NOT_YET,                 NOT_YET, NOT_YET, NOT_YET),
    "kept":         (OWNS,          NO_BEGIN,   None,                    None,    None,    None),
    "instantiated": (OWNS,          NO_BEGIN,   None,                    None,    None,    None),
    "ready":        (OWNS,          NO_BEGIN,   "capture_end.. has inst", None,    None,    "nothing to show"),
    "reset":        (None,          NO_BEGIN,   NOT_YET,                 NOT_YET, NOT_YET, NOT_YET),
}
CALLS = ("capture_begin", "capture_end", "instantiate", "replay", "pool", "debug_dump", "enable_debug_mode", "reset")


def _case(state, call, refusal):
    def test(self):
        graph = self.in_state(state)
        with tempfile.TemporaryDirectory() as folder:
            arguments = (os.path.join(folder, "g.txt"),) if call == "debug_dump" else ()
            if refusal is None:
                getattr(graph, call)(*arguments)
            else:
                with self.assertRaisesRegex(RuntimeError, refusal.format(call)):
                    getattr(graph, call)(*arguments)
            if call == "debug_dump" and refusal is None:
                self.assertTrue(os.path.getsize(arguments[0]))
        if refusal and state == "capturing":  # a refused call leaves the capture as it was
            graph.capture_end()
            graph.replay()
            self.assertEqual(values(self.x), [1.0] * 4)
        self.works(graph)

    return test


for _state, _refusals in TABLE.items():
    for _call, _refusal in zip(CALLS, (*_refusals, None, None)):
        setattr(Order, f"test_{_call}_when_{_state}", _case(_state, _call, _refusal))


class Begin(unittest.TestCase):
    def test_on_the_default_stream(self):
        graph = torch.accelerator.Graph()
        with self.assertRaisesRegex(RuntimeError, "must be captured on a non-default stream"):
            with graph:
                self.fail("the block must not run")
        self.assertEqual(values(torch.ones(1, device=DEVICE) + 1), [2.0])

    def test_on_a_stream_that_captures(self):
        stream, first, second = torch.Stream(device=DEVICE), torch.accelerator.Graph(), torch.accelerator.Graph()
        x = torch.ones(4, device=DEVICE)
        torch.accelerator.synchronize()
        with stream:
            first.capture_begin()
            y = x + 1
            with self.assertRaisesRegex(RuntimeError, "captures already|already captur"):
                second.capture_begin()
            first.capture_end()
        first.replay()
        self.assertEqual(values(y), [2.0] * 4)

    def test_the_end_on_another_stream(self):
        stream, other, graph = torch.Stream(device=DEVICE), torch.Stream(device=DEVICE), torch.accelerator.Graph()
        x = torch.ones(4, device=DEVICE)
        torch.accelerator.synchronize()
        with stream:
            graph.capture_begin()
            y = x + 1
            with other, self.assertRaisesRegex(RuntimeError, "stream"):
                graph.capture_end()
            y = y + 1
            graph.capture_end()
        graph.replay()
        self.assertEqual(values(y), [3.0] * 4)


if __name__ == "__main__":
    unittest.main()
