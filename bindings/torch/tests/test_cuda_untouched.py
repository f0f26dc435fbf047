# SPDX-License-Identifier: Apache-2.0
"""CUDA is left alone: the calls of warm-up, recording, replay and checkpoint, their order and arguments, are the same
without the plugin, with it, and with way 3; and importing the plugin changes no attribute of torch.cuda."""
import importlib.util
import inspect
import json
import os
import textwrap
import unittest

import forks

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(importlib.util.find_spec("rondo_torch").origin)
PATH = os.pathsep.join([HERE, os.path.dirname(PACKAGE), os.environ.get("PYTHONPATH", "")])


def program(*arguments):
    """What a process prints that has PyTorch without the plugin, until it imports it."""
    done = forks.python(arguments, dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0", PYTHONPATH=PATH))
    if done.returncode:
        raise AssertionError(done.stderr[-3000:])
    return done.stdout


_recorded = {}


def recorded(mode):
    """The calls of a drive, made once."""
    if mode not in _recorded:
        _recorded[mode] = json.loads(program(os.path.join(HERE, "cuda_doubles.py"), mode))
    return _recorded[mode]


def steps(calls):
    """Step -> names of its calls."""
    found, name = {}, ""
    for call in calls:
        if call[0].startswith("step "):
            name = call[0][5:]
        found.setdefault(name, []).append(call[0])
    return found


class Calls(unittest.TestCase):
    maxDiff = 4000

    def test_the_drive_is_a_whole_one(self):
        """What the doubles saw of stock PyTorch has all that CUDA's path has: otherwise equality would say nothing."""
        seen = steps(recorded("stock"))
        self.assertEqual(list(seen), [
            "warm-up", "recording", "replay", "checkpoint and warm-up", "checkpoint and recording", "replay of both",
            "replay of both again", "the path ends early", "history: warm-up", "history: recording", "history: replay",
            "without trees", "gates"])
        self.assertIn("torch._C._cuda_beginAllocateCurrentThreadToPool", seen["warm-up"])
        self.assertIn("torch._C._cudnn_set_conv_benchmark_empty_cache", seen["warm-up"])
        self.assertIn("torch._C._cuda_clearCublasWorkspaces", seen["recording"])
        self.assertNotIn("torch._C._cudnn_set_conv_benchmark_empty_cache", seen["recording"])
        for name in ("torch.cuda.CUDAGraph", "+torch.cuda.graph", "torch._C._cuda_getCheckpointState",
                     "CUDAGraph.replay"):
            self.assertIn(name, seen["recording"])
        self.assertEqual([name for name in seen["replay"] if name != "step replay"], ["CUDAGraph.replay"])
        for step in ("checkpoint and warm-up", "checkpoint and recording"):
            self.assertIn("torch._C._cuda_setCheckpointPoolState", seen[step])
        self.assertEqual(seen["replay of both"].count("CUDAGraph.replay"), 2)
        self.assertIn("torch.cuda.memory._record_memory_history", seen["history: recording"])
        self.assertEqual(seen["without trees"].count("CUDAGraph.replay"), 3)
        from torch._inductor import cudagraph_utils
        asks = "_cuda_cudaCachingAllocator_is_enabled" in inspect.getsource(cudagraph_utils)  # 2.12 does not
        self.assertEqual("torch._C._cuda_cudaCachingAllocator_is_enabled" in seen["gates"], asks)

    def test_with_the_plugin(self):
        self.assertEqual(recorded("plugin"), recorded("stock"))

    def test_with_way_3_and_cuda_kept(self):
        self.assertEqual(recorded("kept"), recorded("stock"))

    def test_duck_typed_cuda_is_the_same_too(self):
        self.assertEqual(recorded("duck"), recorded("stock"))


class Contract(unittest.TestCase):
    """CUDA through GraphImplInterface: an implementation over torch.cuda.CUDAGraph, seen by the doubles."""

    def test_a_graph_gets_its_eight_calls(self):
        calls = [call for call in recorded("contract") if call[0].startswith("CUDAGraph.")]
        begun = [call for call in calls if call[0] == "CUDAGraph.capture_begin"]
        # The manager's, three functions', and the one without trees, whose pool is its own.
        self.assertEqual([call[2] for call in begun], 4 * [{"capture_error_mode": "thread_local", "pool": [0, 77]}]
                         + [{"capture_error_mode": "thread_local"}])
        self.assertEqual(len([call for call in calls if call[0] == "CUDAGraph.capture_end"]), len(begun))
        self.assertFalse([call for call in recorded("contract") if call[0] == "+torch.cuda.graph"])

    def test_everything_else_is_as_it_was(self):
        """But for the graph objects and the entering of captures, the calls are the same, in the same order."""
        def rest(calls):
            return [[name, args, options] for name, args, options in calls
                    if name.startswith(("torch._C.", "model", "step ", "results", "CUDAGraph.replay", "gates"))]

        self.assertEqual(rest(recorded("contract")), rest(recorded("stock")))

    def test_modes_and_methods(self):
        code = """
            import json, torch, cuda_doubles
            from unittest import mock
            from rondo_torch import _C
            from rondo_torch.upstream import contract
            print(torch._C._accelerator_hasGraphImpl("cuda"))
            try:
                _C.DeviceGraph("cuda")
            except RuntimeError as error:
                print(str(error).split(":")[1].strip())
            print(_C.register_cuda_graph_impl(), _C.register_cuda_graph_impl(),
                  torch._C._accelerator_hasGraphImpl("cuda"))
            with mock.patch.object(torch.cuda, "CUDAGraph", cuda_doubles.CUDAGraph):
                for mode in ("default", "global", "thread_local", "relaxed"):
                    graph = contract.Graph("cuda", keep_graph=mode == "relaxed", capture_error_mode=mode)
                    graph.capture_begin()
                for name in ("capture_end", "instantiate", "replay", "enable_debug_mode"):
                    getattr(graph, name)()
                graph.debug_dump("x")
                print(graph.pool())
                graph.reset()
                try:
                    contract.Graph("cuda", capture_error_mode="bogus").capture_begin()
                except RuntimeError as error:
                    print(str(error).splitlines()[0])
            print(json.dumps(cuda_doubles.calls))
            """
        lines = program("-c", textwrap.dedent(code)).splitlines()
        self.assertEqual(lines[:5], ["False", "Graph is not supported on device type cuda", "True False True",
                                     "(0, 77)",
                                     "Unknown capture error mode. Expected `default`, `global`, `thread_local`, "
                                     "or `relaxed`, got bogus"])
        calls = json.loads(lines[5])
        self.assertEqual([call[2].get("capture_error_mode") for call in calls if call[0] == "CUDAGraph.capture_begin"],
                         ["global", "global", "thread_local", "relaxed"])
        self.assertEqual([call[2] for call in calls if call[0] == "torch.cuda.CUDAGraph"],
                         [{}, {}, {}, {"keep_graph": True}, {}])
        self.assertEqual([call[0].partition(".")[2] for call in calls if call[1][:1] == ["CUDAGraph 3"]],
                         ["capture_begin", "capture_end", "instantiate", "replay", "enable_debug_mode", "debug_dump",
                          "pool",
                          "reset"])


class Attributes(unittest.TestCase):
    def test_importing_the_plugin_and_installing_way_3_change_no_attribute_of_cuda(self):
        code = """
            import sys, torch
            import torch._dynamo, torch._inductor.cudagraph_trees
            def seen():
                found = {}
                for name, module in list(sys.modules.items()):
                    if name == "torch.cuda" or name.startswith("torch.cuda."):
                        for key, value in vars(module).items():
                            found[name, key] = value
                            if isinstance(value, type) and value.__module__.startswith("torch.cuda"):
                                found.update(((name, key, member), entry) for member, entry in vars(value).items())
                for key, value in vars(torch._C).items():
                    if "cuda" in key.lower() or "cudnn" in key:
                        found["torch._C", key] = value
                return found
            before = seen()
            assert len(before) > 500, len(before)
            def compare(when, more=()):
                after = seen()
                changed = [key for key in before if after.get(key, before) is not before[key]]
                assert not changed, (when, changed)
                added = [key for key in after if key not in before]
                assert all(key in more for key in added), (when, added)
            import rondo_torch
            compare("imported")
            from rondo_torch import upstream
            # A build without CUDA lacks it; what was compiled keeps it.
            given = [("torch._C", "_construct_CUDA_Tensor_From_Storage_And_Metadata")]
            for variant in ("kept", "duck", "contract"):
                upstream.install(variant)
                compare(variant, given)
            assert upstream.remove()
            compare("removed", given)
            import rondo_torch.inductor
            rondo_torch.inductor.install()
            compare("inductor", given)
            print("the same")
            """
        self.assertEqual(program("-c", textwrap.dedent(code)), "the same\n")


if __name__ == "__main__":
    unittest.main()
