# SPDX-License-Identifier: Apache-2.0
"""Modules that move between the CPU and the device keep their parameters, as they do with CUDA."""
import copy
import unittest

import torch
import torch.nn.functional as F

import rondo_torch  # noqa: F401

DEVICE = "rondo"


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(7, 4), torch.nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(self.embedding(x))


def trained(model, optimizer, device, steps=5):
    x, y = torch.tensor([1, 2, 3], device=device), torch.tensor([2, 3, 4], device=device)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Identity(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_tied_parameters_stay_tied(self):
        for move in (lambda m: m.to(DEVICE), lambda m: m.rondo(), lambda m: m.to(DEVICE, dtype=torch.float64)):
            model = Tied()
            weight, values = model.embedding.weight, model.embedding.weight.detach().clone()
            move(model)
            self.assertIs(model.head.weight, model.embedding.weight)
            self.assertIs(model.head.weight, weight)
            self.assertEqual(weight.device.type, DEVICE)
            torch.testing.assert_close(weight.detach().cpu().float(), values)
            self.assertEqual(len(list(model.parameters())), 1)
            model.cpu()
            self.assertIs(model.head.weight, weight)
            self.assertTrue(weight.is_cpu and weight.is_leaf and weight.requires_grad)

    def test_tied_parameters_learn_as_on_the_cpu(self):
        model = Tied()
        other = copy.deepcopy(model).to(DEVICE)
        want = trained(model, torch.optim.Adam(model.parameters(), 0.1), "cpu")
        got = trained(other, torch.optim.Adam(other.parameters(), 0.1), DEVICE)
        torch.testing.assert_close(torch.tensor(got), torch.tensor(want))
        torch.testing.assert_close(other.head.weight.detach().cpu(), model.head.weight.detach())

    def test_an_optimizer_that_was_made_before_steps_what_moved(self):
        model = torch.nn.Sequential(torch.nn.Embedding(7, 4), torch.nn.Linear(4, 7))
        other = copy.deepcopy(model)
        optimizer = torch.optim.SGD(other.parameters(), 0.5)
        other.to(DEVICE)
        want = trained(model, torch.optim.SGD(model.parameters(), 0.5), "cpu")
        torch.testing.assert_close(torch.tensor(trained(other, optimizer, DEVICE)), torch.tensor(want))

    def test_what_a_program_wrote_on_a_parameter_stays(self):
        layer = torch.nn.Linear(2, 2)
        layer.weight.decays = False
        layer.bias.requires_grad_(False)
        layer(torch.ones(1, 2)).sum().backward()
        gradient = layer.weight.grad.clone()
        layer.to(DEVICE)
        self.assertIs(layer.weight.decays, False)
        self.assertFalse(layer.bias.requires_grad)
        self.assertEqual(layer.weight.grad.device.type, DEVICE)
        torch.testing.assert_close(layer.weight.grad.cpu(), gradient)

    def test_parameters_that_somebody_watches_stay_tied(self):
        """A recurrent network has weak references to its weights: they become others, and the same ones."""
        cells = torch.nn.ModuleList([torch.nn.LSTM(3, 3), torch.nn.LSTM(3, 3)])
        cells[1].weight_ih_l0 = cells[0].weight_ih_l0
        x = torch.randn(2, 1, 3)
        want = [cell(x)[0].detach() for cell in cells]
        cells.to(DEVICE)
        self.assertIs(cells[1].weight_ih_l0, cells[0].weight_ih_l0)
        self.assertIs(cells[1]._flat_weights[0], cells[0].weight_ih_l0)
        for cell, value in zip(cells, want):
            torch.testing.assert_close(cell(x.to(DEVICE))[0].detach().cpu(), value)

    def test_a_move_that_fails_leaves_the_module_usable(self):
        model = Tied()

        def fails(tensor):
            raise ValueError("not this one")

        with self.assertRaisesRegex(ValueError, "not this one"):
            model._apply(fails)
        self.assertIs(model.head.weight, model.embedding.weight)
        self.assertEqual(model.to(DEVICE)(torch.tensor([1], device=DEVICE)).shape, (1, 7))


if __name__ == "__main__":
    unittest.main()
