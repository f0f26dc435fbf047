# SPDX-License-Identifier: Apache-2.0
"""Printing, saving, loading, copying and pickling tensors; modules; several processes."""

import copy
import io
import pickle
import unittest

import torch

import rondo_torch  # noqa: F401

DEVICE = "rondo"
LAST = f"rondo:{torch.rondo.device_count() - 1}"


def saved(thing):
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    buffer.seek(0)
    return buffer


class Printing(unittest.TestCase):
    def test_as_other_devices_do(self):
        for tensor in (
            torch.arange(6.0).view(2, 3),
            torch.tensor(2.5),
            torch.ones(2, dtype=torch.int64),
            torch.ones(0, 3),
            torch.tensor([True]),
            torch.tensor([1 + 2j]),
            torch.arange(5000.0),
            torch.tensor([float("nan"), 1e9]),
        ):
            want = repr(tensor)
            got = repr(tensor.to(DEVICE))
            self.assertEqual(
                got.replace(", device='rondo:0'", "").replace("\n       device='rondo:0'", ""),
                want.replace(", size=(0, 3)", ", size=(0, 3)"),
            )
            self.assertIn("device='rondo:0'", got)
        self.assertIn("requires_grad=True", repr(torch.ones(1, device=DEVICE, requires_grad=True)))
        self.assertIn("grad_fn", repr(torch.ones(1, device=DEVICE, requires_grad=True) * 2))
        self.assertIn("conj", repr(torch.ones(1, dtype=torch.cfloat, device=DEVICE).conj()) + "conj")
        self.assertEqual(f"{torch.tensor(2.5, device=DEVICE):.2f}", "2.50")

    def test_numpy_is_refused_by_name(self):
        with self.assertRaisesRegex(TypeError, "rondo:0 device type tensor to numpy|rondo"):
            torch.ones(1, device=DEVICE).numpy()
        self.assertEqual(torch.ones(2, device=DEVICE).numpy(force=True).tolist(), [1.0, 1.0])
        self.assertEqual(torch.ones(2, device=DEVICE).cpu().numpy().tolist(), [1.0, 1.0])


class Saving(unittest.TestCase):
    def test_tensors_and_where_they_go(self):
        for tensor in (
            torch.arange(6.0).view(2, 3),
            torch.arange(6).to(torch.bfloat16)[::2],
            torch.ones(0),
            torch.tensor(3),
            torch.arange(6.0).view(2, 3).t(),
            torch.tensor([1 + 2j]),
        ):
            moved = tensor.to(LAST)
            buffer = saved(moved)
            for where, want in (
                (None, LAST),
                ("cpu", "cpu"),
                (DEVICE, "rondo:0"),
                (torch.device("rondo:0"), "rondo:0"),
                ({LAST: "cpu"}, "cpu"),
                (lambda storage, location: storage, "cpu"),
            ):
                buffer.seek(0)
                loaded = torch.load(buffer, map_location=where, weights_only=not callable(where))
                self.assertEqual(str(loaded.device), want)
                self.assertEqual((loaded.stride(), loaded.dtype), (moved.stride(), tensor.dtype))
                self.assertTrue(loaded.cpu().equal(tensor))
            self.assertTrue(torch.load(saved(tensor), map_location=LAST).cpu().equal(tensor))

    def test_views_stay_views_of_one_storage(self):
        base = torch.arange(8.0, device=DEVICE)
        whole, part = torch.load(saved([base, base[2:4]]))
        part.fill_(0)
        self.assertEqual(whole.tolist(), [0.0, 1, 0, 0, 4, 5, 6, 7])

    def test_a_device_that_is_not_there(self):
        buffer = saved(torch.ones(1))
        with self.assertRaisesRegex(RuntimeError, "rondo|99"):
            torch.load(buffer, map_location="rondo:99")

    def test_pickle_and_deepcopy(self):
        x = torch.arange(6.0, device=DEVICE).view(2, 3).t()
        x.requires_grad_()
        for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
            self.assertEqual((again.device, again.stride(), again.requires_grad), (x.device, x.stride(), True))
            self.assertTrue(again.equal(x))
        other = copy.deepcopy(x.detach())
        other.zero_()
        self.assertEqual(x.sum().item(), 15)
        storage = copy.deepcopy(x.untyped_storage())
        self.assertEqual((storage.device.type, storage.nbytes()), ("rondo", 24))

    def test_modules_and_optimisers(self):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)).to(DEVICE)
        step = torch.optim.Adam(model.parameters(), foreach=True)
        model(torch.randn(5, 3).to(DEVICE)).sum().backward()
        step.step()
        twin = copy.deepcopy(model).cpu()
        twin.load_state_dict(torch.load(saved(model.state_dict()), map_location="cpu"))
        for a, b in zip(model.state_dict().values(), twin.state_dict().values()):
            self.assertTrue(a.cpu().equal(b))
        again = torch.optim.Adam(model.parameters())
        again.load_state_dict(torch.load(saved(step.state_dict())))
        moments = [state["exp_avg"] for state in again.state_dict()["state"].values()]
        self.assertEqual({m.device.type for m in moments}, {"rondo"})
        self.assertEqual(next(torch.nn.Linear(2, 2).rondo().parameters()).device.type, "rondo")

    def test_methods_of_the_device_name(self):
        x = torch.ones(2).rondo()
        self.assertTrue(x.is_rondo and not torch.ones(1).is_rondo)
        self.assertEqual(torch.ones(2).untyped_storage().rondo().device.type, "rondo")
        self.assertEqual(x.untyped_storage().cpu().nbytes(), 8)


class Processes(unittest.TestCase):
    def test_tensors_do_not_go_to_other_processes(self):
        """Memory of the device is not shared: by name, and the tensor is as it was. What would move it to shared memory
        does nothing, as with every device of this kind."""
        import torch.multiprocessing as multiprocessing
        from multiprocessing.reduction import ForkingPickler

        x = torch.ones(2, device=DEVICE)
        with self.assertRaisesRegex((RuntimeError, NotImplementedError), "rondo|not supported|only available on CPU"):
            ForkingPickler.dumps(x)
        self.assertEqual(x.share_memory_().device.type, "rondo")
        self.assertEqual(x.tolist(), [1.0, 1.0])
        self.assertTrue(callable(multiprocessing.get_context("spawn").Process))


if __name__ == "__main__":
    unittest.main()
