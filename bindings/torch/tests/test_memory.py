# SPDX-License-Identifier: Apache-2.0
"""Memory: figures, limits, pools, pinned host memory, and blocks that other streams still use."""

import gc
import unittest

import torch

import rondo_torch  # noqa: F401

DEVICE = "rondo"
MIB = 1 << 20


def stats():
    return torch.accelerator.memory_stats()


class Figures(unittest.TestCase):
    def setUp(self):
        gc.collect()
        torch.accelerator.synchronize()
        torch.accelerator.empty_cache()

    def test_names_are_those_of_other_accelerators(self):
        names = {
            f"{key}.{pool}.{what}"
            for key in (
                "allocation",
                "segment",
                "active",
                "inactive_split",
                "allocated_bytes",
                "reserved_bytes",
                "active_bytes",
                "inactive_split_bytes",
                "requested_bytes",
            )
            for pool in ("all", "small_pool", "large_pool")
            for what in ("current", "peak", "allocated", "freed")
        }
        self.assertLessEqual(
            names | {"num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free"}, set(stats())
        )
        self.assertEqual(torch.rondo.memory_stats(), stats())
        self.assertEqual(
            torch.rondo.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"],
            torch.rondo.memory_allocated(),
        )

    def test_what_a_tensor_costs(self):
        before = stats()
        held = torch.empty(3 * MIB, dtype=torch.uint8, device=DEVICE)
        small = torch.empty(100, dtype=torch.uint8, device=DEVICE)
        now = stats()

        def grown(key, what="current"):
            return now[f"{key}.all.{what}"] - before[f"{key}.all.{what}"]

        self.assertEqual(grown("allocation"), 2)
        self.assertEqual(grown("requested_bytes"), 3 * MIB + 100)
        self.assertEqual(grown("allocated_bytes"), 3 * MIB + 512)
        self.assertEqual(grown("allocated_bytes", "allocated"), 3 * MIB + 512)
        self.assertGreaterEqual(grown("reserved_bytes"), grown("allocated_bytes"))
        self.assertEqual(grown("allocated_bytes", "freed"), 0)
        del held, small
        after = stats()
        self.assertEqual(after["allocated_bytes.all.current"], before["allocated_bytes.all.current"])
        self.assertEqual(after["allocated_bytes.all.freed"] - before["allocated_bytes.all.freed"], 3 * MIB + 512)
        self.assertEqual(after["allocation.all.freed"] - before["allocation.all.freed"], 2)

    def test_peaks_and_sums_begin_again(self):
        del_me = torch.empty(5 * MIB, dtype=torch.uint8, device=DEVICE)
        self.assertGreaterEqual(torch.accelerator.max_memory_allocated(), 5 * MIB)
        del del_me
        torch.accelerator.reset_peak_memory_stats()
        torch.accelerator.reset_accumulated_memory_stats()
        base = torch.accelerator.memory_allocated()
        self.assertEqual(torch.accelerator.max_memory_allocated(), base)
        self.assertEqual(torch.accelerator.max_memory_reserved(), torch.accelerator.memory_reserved())
        for key in ("allocation", "allocated_bytes", "requested_bytes", "reserved_bytes", "segment"):
            self.assertEqual((stats()[f"{key}.all.allocated"], stats()[f"{key}.all.freed"]), (0, 0), key)
        held = torch.empty(2 * MIB, dtype=torch.uint8, device=DEVICE)
        del held
        torch.rondo.empty_cache()
        self.assertEqual(torch.rondo.max_memory_allocated() - base, 2 * MIB)
        for key in ("allocated_bytes", "requested_bytes"):
            self.assertEqual((stats()[f"{key}.all.allocated"], stats()[f"{key}.all.freed"]), (2 * MIB, 2 * MIB), key)
        self.assertEqual(stats()["allocation.all.freed"], 1)
        self.assertGreater(stats()["reserved_bytes.all.freed"], 0)

    def test_summary_and_snapshot(self):
        held = torch.empty(MIB, dtype=torch.uint8, device=DEVICE)
        self.assertIn(str(torch.rondo.memory_allocated()), torch.rondo.memory_summary())
        blocks = [block for segment in torch.rondo.memory_snapshot() for block in segment["blocks"]]
        self.assertIn((held.data_ptr(), "active_allocated"), {(block["address"], block["state"]) for block in blocks})

    def test_device_figures(self):
        free, total = torch.rondo.mem_get_info()
        self.assertTrue(0 <= free <= total)
        self.assertEqual(torch.accelerator.get_memory_info()[1], total)
        if torch.rondo.device_count() > 1:
            before = torch.rondo.memory_allocated(1)
            held = torch.empty(1000, device="rondo:1")
            self.assertEqual(torch.rondo.memory_allocated("rondo:1") - before, 4096)
            del held


class Limits(unittest.TestCase):
    def test_out_of_memory(self):
        before = stats()["num_ooms"]
        with self.assertRaisesRegex(torch.OutOfMemoryError, "rondo: .*no memory for .* bytes: .* reserved"):
            torch.empty(1 << 46, dtype=torch.uint8, device=DEVICE)
        self.assertEqual(stats()["num_ooms"] - before, 1)
        for bits in range(47, 61):  # also what no segment could ever hold
            with self.assertRaisesRegex(torch.OutOfMemoryError, f"no memory for {1 << bits} bytes"):
                torch.empty(1 << bits, dtype=torch.uint8, device=DEVICE)
        self.assertEqual((torch.ones(3, device=DEVICE) + 1).tolist(), [2.0] * 3)

    def test_a_part_of_the_device(self):
        total = torch.rondo.mem_get_info()[1]
        if not total:
            self.skipTest("the device does not say how much memory it has")
        torch.rondo.empty_cache()
        self.assertEqual(torch.rondo.get_per_process_memory_fraction(), 1.0)
        part = (torch.rondo.memory_reserved() + 8 * MIB) / total
        torch.rondo.set_per_process_memory_fraction(part)
        try:
            self.assertEqual(torch.rondo.get_per_process_memory_fraction(), part)
            with self.assertRaisesRegex(torch.OutOfMemoryError, "limit"):
                torch.empty(64 * MIB, dtype=torch.uint8, device=DEVICE)
        finally:
            torch.rondo.set_per_process_memory_fraction(1.0)
        torch.empty(64 * MIB, dtype=torch.uint8, device=DEVICE)
        for bad, error in ((2.0, ValueError), (0.0, ValueError), (1, TypeError)):
            with self.assertRaises(error):
                torch.rondo.set_per_process_memory_fraction(bad)

    def test_pools(self):
        pool = torch.rondo.MemPool()
        with torch.rondo.use_mem_pool(pool):
            inside = torch.empty(1000, device=DEVICE)
        with torch.rondo.use_mem_pool(pool):
            more = torch.empty(1000, device=DEVICE)
        outside = torch.empty(1000, device=DEVICE)
        segments = torch.rondo.memory_snapshot(pool.id)
        addresses = {block["address"] for segment in segments for block in segment["blocks"]}
        self.assertIn(inside.data_ptr(), addresses)
        self.assertIn(more.data_ptr(), addresses)
        self.assertNotIn(outside.data_ptr(), addresses)
        identity = pool.id
        del inside, more, pool
        self.assertEqual(torch.rondo.memory_snapshot(identity), [])

    def test_memory_without_tensors(self):
        before = torch.rondo.memory_allocated()
        address = torch.rondo.caching_allocator_alloc(1000)
        self.assertEqual(torch.rondo.memory_allocated() - before, 1024)
        torch.rondo.caching_allocator_delete(address)
        self.assertEqual(torch.rondo.memory_allocated(), before)


class Pinned(unittest.TestCase):
    def test_pinned_or_not(self):
        plain = torch.arange(10.0)
        self.assertFalse(plain.is_pinned())
        pinned = plain.pin_memory()
        self.assertTrue(pinned.is_pinned())
        self.assertTrue(pinned[3:].is_pinned())
        self.assertTrue(torch.empty(5, pin_memory=True).is_pinned())
        self.assertTrue(pinned.pin_memory() is pinned)
        self.assertTrue(pinned.equal(plain))
        self.assertFalse(plain.is_pinned())
        with self.assertRaisesRegex(RuntimeError, "pinned|pin"):
            torch.empty(3, device=DEVICE, pin_memory=True)
        with self.assertRaisesRegex(RuntimeError, "pin"):
            torch.ones(3, device=DEVICE).pin_memory()

    def test_figures(self):
        before = torch.rondo.host_memory_stats()["allocated_bytes.current"]
        held = torch.empty(1000, dtype=torch.uint8, pin_memory=True)
        self.assertEqual(torch.rondo.host_memory_stats()["allocated_bytes.current"] - before, 1000)
        self.assertEqual(torch.rondo.host_memory_stats_as_nested_dict()["allocated_bytes"]["current"] - before, 1000)
        del held
        self.assertEqual(torch.rondo.host_memory_stats()["allocated_bytes.current"], before)
        torch.rondo.reset_peak_host_memory_stats()
        torch.rondo.reset_accumulated_host_memory_stats()
        now = torch.rondo.host_memory_stats()
        self.assertEqual((now["allocated_bytes.peak"], now["allocated_bytes.allocated"]), (before, 0))

    def test_copies_that_do_not_wait(self):
        stream = torch.Stream(device=DEVICE)
        up = torch.arange(1000.0).pin_memory()
        down = torch.empty(1000, pin_memory=True)
        with stream:
            device = up.to(DEVICE, non_blocking=True)
            converted = up.to(DEVICE, torch.float64, non_blocking=True)
            down.copy_(device * 2, non_blocking=True)
        del up  # the copy may not have begun
        again = torch.full((1000,), 7.0).pin_memory()
        stream.synchronize()
        self.assertTrue(down.equal(torch.arange(1000.0) * 2))
        self.assertTrue(converted.cpu().equal(torch.arange(1000.0, dtype=torch.float64)))
        del again

    def test_captured_copies_read_what_is_there_then(self):
        up, down = torch.zeros(4).pin_memory(), torch.empty(4, dtype=torch.float64, pin_memory=True)
        device = torch.empty(4, dtype=torch.float16, device=DEVICE)
        stream, graph = torch.Stream(device=DEVICE), torch.accelerator.Graph()
        torch.accelerator.synchronize()
        with stream, graph:
            device.copy_(up, non_blocking=True)
            down.copy_(device + 1, non_blocking=True)
        for value in (2.0, 5.0):
            up.fill_(value)
            graph.replay()
            torch.accelerator.synchronize()
            self.assertEqual(down.tolist(), [value + 1] * 4)
        graph.reset()

    def test_loader(self):
        data = torch.utils.data.TensorDataset(torch.arange(12.0).view(6, 2), torch.arange(6))
        for workers in (0, 1):
            loader = torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True, num_workers=workers)
            seen = []
            for x, y in loader:
                self.assertTrue(x.is_pinned() and y.is_pinned())
                seen += (x.to(DEVICE, non_blocking=True).sum(1) + y.to(DEVICE, non_blocking=True)).tolist()
            self.assertEqual(seen, [1 + 5 * i for i in range(6)])


class Streams(unittest.TestCase):
    """A block that is freed while another stream works with it is given to nobody before that is done."""

    def test_blocks_of_two_streams(self):
        first, second = torch.Stream(device=DEVICE), torch.Stream(device=DEVICE)
        for recorded in (True, False):
            with first:
                held = torch.full((1000,), 3.0, device=DEVICE)
            second.wait_stream(first)
            with second:
                out = held * 2
            address = held.data_ptr()
            if recorded:
                held.record_stream(second)
            else:
                first.wait_stream(second)
            del held
            with first:
                new = torch.full((1000,), 9.0, device=DEVICE)
            if not recorded:
                self.assertEqual(new.data_ptr(), address)  # a stream's own blocks come back at once
            torch.accelerator.synchronize()
            self.assertEqual(out.tolist(), [6.0] * 1000)
            self.assertEqual(new.tolist(), [9.0] * 1000)

    def test_temporaries_of_work_that_is_yet_to_run(self):
        """What a call reads may be freed at once, and the memory given to the next call: the stream keeps the order."""
        want = torch.ones(100)
        with torch.Stream(device=DEVICE):
            x = torch.ones(100, device=DEVICE)
            for _ in range(30):
                x = (x * 1.5 + 1).sin() + x.cos()
                want = (want * 1.5 + 1).sin() + want.cos()
            torch.accelerator.synchronize()
        torch.testing.assert_close(x.cpu(), want)


if __name__ == "__main__":
    unittest.main()
