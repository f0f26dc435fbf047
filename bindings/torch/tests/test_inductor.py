# SPDX-License-Identifier: Apache-2.0
"""torch.compile in its default mode on the device: results against the CPU, and generated code that names the device."""
import unittest

import torch
from torch._dynamo.utils import counters
from torch._inductor.utils import run_and_get_code

import rondo_torch  # noqa: F401

DEVICE = "rondo"


class Compile(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def check(self, function, *inputs, device=DEVICE, **options):
        want = function(*inputs)
        got, code = run_and_get_code(torch.compile(function, **options), *(t.to(device) for t in inputs))
        self.assertEqual(got.device.type, "rondo")
        torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-5)
        return got, "\n".join(code)

    def test_product_reduction_softmax(self):
        torch.manual_seed(0)
        _, code = self.check(lambda x, y: torch.relu(x @ y + 1).sum(1).softmax(0), torch.randn(8, 8), torch.randn(8, 8))
        self.assertIn("rondo_launch(cpp_fused__softmax_add_relu_sum_0, 0, ", code)
        self.assertIn("device='rondo:0'", code)

    def test_right_device(self):
        last = torch.rondo.device_count() - 1
        for index in {0, last}:
            got, code = self.check(lambda x: (x * 2 + 1).sum(0), torch.randn(5, 6), device=f"rondo:{index}")
            self.assertEqual(got.device, torch.device("rondo", index))
            self.assertRegex(code, rf"rondo_launch\(\w+, {index}, ")

    def test_the_work_is_enqueued(self):
        function = torch.compile(lambda x: x * 2 + 1)
        x = torch.zeros(4, device=DEVICE)
        function(x)
        graph = torch.accelerator.Graph()
        with torch.Stream(), graph:
            y = function(x)
        x.fill_(3)
        graph.replay()
        torch.rondo.synchronize()
        self.assertEqual(y.cpu().tolist(), [7, 7, 7, 7])

    def test_gradients(self):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        x = torch.randn(5, 6)
        model(x).square().mean().backward()
        want = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        model.to(DEVICE)
        torch.compile(model)(x.to(DEVICE)).square().mean().backward()
        for parameter, gradient in zip(model.parameters(), want):
            torch.testing.assert_close(parameter.grad.cpu(), gradient, rtol=1e-4, atol=1e-6)

    def test_cpu_functions_go_on(self):
        x = torch.randn(9)
        self.assertTrue(torch.compile(lambda t: t.sin() + 1)(x).allclose(x.sin() + 1))
        self.assertGreaterEqual(counters["stats"]["unique_graphs"], 1)


if __name__ == "__main__":
    unittest.main()
