# SPDX-License-Identifier: Apache-2.0
"""The device against PyTorch's CPU: operators, training, random numbers, captured graphs. RONDO_TORCH_DEVICE picks the backend."""
import unittest

import torch

import rondo_torch  # noqa: F401

DEVICE = "rondo"


class Operators(unittest.TestCase):
    def same(self, got, want):
        torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-5)

    def test_eager(self):
        x = torch.arange(12.0).reshape(3, 4)
        y = x.to(DEVICE)
        for function in (lambda t: t + 1, lambda t: t.t() @ t, lambda t: torch.relu(t - 5), lambda t: t.sum(), lambda t: t.softmax(1),
                         lambda t: torch.nn.functional.layer_norm(t, (4,)), lambda t: torch.cat([t, t]),
                         lambda t: t.argsort(descending=True), lambda t: t[t > 3], lambda t: t[:, [0, 2]], lambda t: t.ne(3)):
            self.same(function(y), function(x))

    def test_convolution_and_its_gradients(self):
        torch.manual_seed(1)
        weight, image = torch.randn(5, 3, 3, 3), torch.randn(2, 3, 8, 8)
        leaves = [[t.clone().to(where).requires_grad_() for t in (image, weight)] for where in ("cpu", DEVICE)]
        outputs = [torch.nn.functional.conv2d(*pair, padding=1) for pair in leaves]
        for output in outputs:
            output.square().sum().backward()
        self.same(outputs[1].detach(), outputs[0].detach())
        for want, got in zip(*leaves):
            self.same(got.grad, want.grad)

    def test_training(self):
        torch.manual_seed(2)
        models = [torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)) for _ in range(2)]
        models[1].load_state_dict(models[0].state_dict())
        models[1].to(DEVICE)
        x = torch.randn(16, 4)
        steps = [torch.optim.Adam(model.parameters()) for model in models]
        for _ in range(5):
            losses = []
            for model, step in zip(models, steps):
                loss = model(x.to(next(model.parameters()).device)).square().mean()
                step.zero_grad()
                loss.backward()
                step.step()
                losses.append(loss.detach().cpu())
            self.same(losses[1], losses[0])

    def test_random_numbers(self):
        torch.manual_seed(0)
        first = torch.rand(100, device=DEVICE)
        torch.manual_seed(0)
        self.assertTrue(first.equal(torch.rand(100, device=DEVICE)))
        self.assertAlmostEqual(torch.randn(20000, device=DEVICE).std().item(), 1, delta=0.05)


class Graphs(unittest.TestCase):
    def test_replays_read_and_draw_anew(self):
        stream, graph = torch.Stream(device=DEVICE), torch.accelerator.Graph()
        x = torch.ones(4, device=DEVICE)
        torch.accelerator.synchronize()
        with stream, graph:
            y = torch.relu(x * 2)
            drawn = torch.rand(4, device=DEVICE)
        seen = []
        for value in (1.0, 5.0):
            x.fill_(value)
            graph.replay()
            torch.accelerator.synchronize()
            self.assertEqual(y.cpu().tolist(), [2 * value] * 4)
            seen.append(drawn.cpu())
        self.assertFalse(seen[0].equal(seen[1]))

    def test_what_needs_the_host_is_refused(self):
        stream, graph = torch.Stream(device=DEVICE), torch.accelerator.Graph()
        x = torch.ones(1, device=DEVICE)
        with self.assertRaisesRegex(RuntimeError, "item|captur"):
            with stream, graph:
                (x * 2).item()
        with self.assertRaises(RuntimeError):
            graph.replay()
        self.assertEqual((x + 1).cpu().tolist(), [2.0])

    def test_checkpoint_draws_the_same_numbers_again(self):
        x = torch.ones(1000, device="rondo", requires_grad=True)
        y = torch.utils.checkpoint.checkpoint(lambda t: torch.nn.functional.dropout(t, 0.5), x, use_reentrant=False)
        y.sum().backward()
        kept = y.detach().cpu() != 0
        self.assertTrue(300 < int(kept.sum()) < 700)
        self.assertTrue(torch.equal(x.grad.cpu() != 0, kept))


if __name__ == "__main__":
    unittest.main()
