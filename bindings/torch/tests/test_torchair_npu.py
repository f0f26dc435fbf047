# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="rondo") over the tensors of an Ascend package: plans are enqueued on the package's current streams.
The package is the stand-in of tests/npu_standin, on the simulated libascendcl; eager PyTorch on the CPU is what results
are compared with."""
import copy
import gc
import os
import sys
import tempfile
import unittest

WANTED = os.environ.get("RONDO_TORCH_DEVICE")

import npu_device  # noqa: E402  (before PyTorch: it says that the place is not Rondo's)

if WANTED == "sim":
    npu_device.leave_out("no device of Rondo's is used here: one run is enough")
npu_standin, simulator = npu_device.load()

import torch  # noqa: E402

import forks  # noqa: E402
import rondo_torch  # noqa: E402
from npu_standin import inductor  # noqa: E402
from rondo_torch import npu, torchair  # noqa: E402
from torchair_kit import compiled, models  # noqa: E402

inductor.register()
BINARIES = "--binaries"
LAUNCH = "aclrtLaunchKernelWithHostArgs"


class Case(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(2)

    def agree(self, got, want, bound=1e-5):
        torch.accelerator.synchronize()
        self.assertEqual((got.shape, got.dtype, got.stride()), (want.shape, want.dtype, want.stride()))
        self.assertLessEqual((got.detach().cpu() - want.detach()).abs().max().item(),
                             bound * max(1.0, want.abs().max().item()))


class Streams(Case):
    def test_each_model_equals_the_cpu(self):
        for name, (model, x) in models().items():
            torch._dynamo.reset()
            for frozen in (False, True):
                with self.subTest(model=name, frozen=frozen), torch.no_grad():
                    function, backend = compiled(copy.deepcopy(model).to("npu"), frozen=frozen)
                    there = x.to("npu")
                    with torch.Stream(device="npu"):
                        self.agree(function(there), model(x))
                        simulator.clear()
                        got = function(there)
                        launched = simulator.count(LAUNCH)
                        self.assertEqual(simulator.count("aclrtSynchronizeStream"), 0)
                        self.assertEqual(got.device, torch.device("npu:0"))
                    self.agree(got, model(x))
                    self.assertEqual(launched, backend.profile().total["calls"])  # and nothing beside
                    self.assertEqual((backend.profile().total["copies"], backend.graphs[0].refused), (0, {}))

    def test_order_on_a_stream(self):
        """What is enqueued before and after needs no waiting for, on any stream."""
        simulator.set("DELAY", 300)
        self.addCleanup(simulator.set, "DELAY", 0)
        function, _ = compiled(lambda x, w: torch.relu(x @ w) + 1)
        w = torch.randn(16, 16)
        results = []
        for turn in range(6):
            with torch.Stream(device="npu"):
                x = torch.full((4, 16), float(turn), device="npu")
                x.add_(1)
                made = function(x, w.to("npu"))
                x.fill_(1e9)  # after it was read
                results.append((made * 2, turn))
        torch.accelerator.synchronize()
        for got, turn in results:
            self.agree(got, (torch.relu(torch.full((4, 16), turn + 1.0) @ w) + 1) * 2)

    def test_two_devices(self):
        model, x = models()["mlp"]
        with torch.no_grad():
            for index in (0, 1):
                torch._dynamo.reset()
                with torch.npu.device(index):
                    function, backend = compiled(copy.deepcopy(model).to(f"npu:{index}"))
                    got = function(x.to(f"npu:{index}"))
                    self.assertEqual(got.device.index, index)
                    self.agree(got, model(x))

    def test_training(self):
        """The backward runs on a thread of autograd's, which has the stream of the forward."""
        for name in ("mlp", "encoder"):
            torch._dynamo.reset()
            with self.subTest(model=name):
                model, x = models()[name]
                there = copy.deepcopy(model).to("npu")
                function, backend = compiled(there)
                with torch.Stream(device="npu"):
                    function(x.to("npu")).square().mean().backward()
                    torch.accelerator.synchronize()
                model(x).square().mean().backward()
                for mine, other in zip(there.parameters(), model.parameters()):
                    self.agree(mine.grad, other.grad)
                self.assertEqual([graph.is_backward for graph in backend.graphs], [False, True])

    def test_frozen_weights_follow(self):
        model, x = models()["mlp"]
        there = copy.deepcopy(model).to("npu")
        with torch.no_grad():
            function, backend = compiled(there, frozen=True)
            for _ in range(3):
                for _ in range(2):
                    self.agree(function(x.to("npu")), model(x))
                for one in (model, there):
                    one.first.weight.mul_(1.5)
                    one.second.bias.data = one.second.bias.data + 1
            self.assertGreater(backend.profile().total["weight_bytes"], 0)

    def test_what_pytorch_runs_in_between(self):
        def odd(x):
            y = torch.relu(x) + 1
            return torch.special.i0(y.t()) * 2, y, y[0]

        x = torch.randn(4, 5)
        function, backend = compiled(odd, fullgraph=False)
        for got, want in zip(function(x.to("npu")), odd(x)):
            self.agree(got, want)
        self.assertEqual([name for name, *_ in backend.graphs[0].refused.values()], ["aten.i0.default"])
        with self.assertRaisesRegex(Exception, "aten.i0.default"):
            compiled(odd)[0](x.to("npu"))

    def test_files(self):
        model, x = models()["mlp"]
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            path = os.path.join(folder, "mlp.rondo")
            function, backend = compiled(copy.deepcopy(model).to("npu"))
            function(x.to("npu"))
            backend.export_model(path)
            self.agree(torchair.load_model(path)(x), model(x))
            with torch.Stream(device="npu"):
                self.agree(torchair.load_model(path, device="npu")(x.to("npu")), model(x))


class Captures(Case):
    def test_recorded_by_an_accelerator_graph(self):
        npu.install()
        model, x = models()["mlp"]
        with torch.no_grad():
            function, backend = compiled(copy.deepcopy(model).to("npu"))
            there = x.to("npu")
            graph = torch.accelerator.Graph()
            with torch.Stream(device="npu"):
                function(there)
                torch.accelerator.synchronize()
                with graph:
                    out = function(there)
            runs = backend.profile().total["runs"]

            def check():
                x = torch.randn(4, 16)
                there.copy_(x)
                torch.accelerator.synchronize()
                simulator.clear()
                graph.replay()
                torch.accelerator.synchronize()
                self.assertEqual((simulator.count("aclmdlRIExecuteAsync"), simulator.count(LAUNCH)), (1, 0))
                self.agree(out, model(x))

            for _ in range(3):
                check()
            self.assertEqual(backend.profile().total["runs"], runs)
            weights = list(function.parameters())  # as with any capture, whoever replays it keeps what it reads
            function = None  # but what the plan had for its runs stays as long as the capture
            torch._dynamo.reset()
            gc.collect()
            check()
            del weights

    def test_the_packages_own_graph_is_refused(self):
        function, _ = compiled(lambda x: torch.relu(x) * 2)
        x = torch.ones(4, device="npu")
        with torch.Stream(device="npu"):
            function(x)
            torch.accelerator.synchronize()
            graph = torch.npu.NPUGraph()
            graph.capture_begin()
            with self.assertRaisesRegex(RuntimeError, "own graph cannot record .* torch.accelerator.Graph"):
                function(x)
            graph.capture_end()
            self.assertEqual(function(x).cpu().tolist(), [2.0] * 4)


def on_binaries_alone():
    x = torch.tensor([-1.0, 2.0], device="npu")
    try:
        compiled(lambda x: torch.relu(x) * 2)[0](x)
        raise AssertionError("nothing was refused")
    except torch._dynamo.exc.BackendCompilerFailed as error:
        assert "aten.relu.default" in str(error), error
        assert "kernel: npu:0 runs no kernels of Rondo's catalogues" in str(error), error
    function, backend = compiled(lambda x: torch.relu(x) * 2, fullgraph=False)
    assert function(x).cpu().tolist() == [0.0, 4.0]
    assert {name for name, *_ in backend.graphs[0].refused.values()} == {"aten.relu.default", "aten.mul.Tensor"}
    assert backend.graphs[0].partitions == []
    print("refused and left to PyTorch")


class Refusals(Case):
    def test_a_device_that_takes_binaries_alone(self):
        """As a real one does: in a process of its own, since a device is opened once."""
        environment = dict(os.environ, RONDO_ACL_FAIL="aclrtBinaryLoadFromData:1:107000", RONDO_TORCH_DEVICE="")
        done = forks.python([os.path.abspath(__file__), BINARIES], environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("refused and left to PyTorch", done.stdout)

    def test_a_package_whose_streams_are_not_known(self):
        held = npu_standin._C._npu_getCurrentRawStream
        del npu_standin._C._npu_getCurrentRawStream
        try:
            with self.assertRaisesRegex(Exception, "has no _C._npu_getCurrentRawStream"):
                compiled(lambda x: x * 2)[0](torch.ones(2, device="npu"))
        finally:
            npu_standin._C._npu_getCurrentRawStream = held

    def test_two_devices_in_one_graph(self):
        def mixed(x, y):
            return torch.relu(x).cpu() + y

        with self.assertRaisesRegex(Exception, "has a tensor of cpu, and the graph is compiled for npu:0"):
            compiled(mixed)[0](torch.ones(2, device="npu"), torch.ones(2))
        function, _ = compiled(mixed, fullgraph=False)
        self.assertEqual(function(torch.ones(2, device="npu"), torch.ones(2)).tolist(), [2.0, 2.0])


if __name__ == "__main__":
    on_binaries_alone() if sys.argv[1:] == [BINARIES] else unittest.main()
