# SPDX-License-Identifier: Apache-2.0
"""What torch.compile's default mode refuses, each by name, and what is off where PyTorch has moved what is replaced."""
import contextlib
import ctypes
import importlib.machinery
import os
import sys
import textwrap
import types
import unittest
from unittest import mock

import forks
import torch
from torch._inductor import config as inductor_config
from torch._inductor.codecache import PyCodeCache
from torch._inductor.scheduler import Scheduler

import rondo_torch  # noqa: F401
from rondo_torch import _C, inductor, patches
from rondo_torch.inductor import hooks, scheduling

DEVICE = "rondo"
WRAPPER = "torch._inductor.codegen.wrapper:PythonWrapperCodegen."


def doubled(x):
    return x * 2 + 1


def compiled(x, function=doubled):
    torch._dynamo.reset()
    return torch.compile(function)(x)


def setUpModule():
    inductor.install()


@contextlib.contextmanager
def moved(where, value=None):
    """PyTorch without an attribute, or with another in its place, as the plugin finds it at its first compilation."""
    for name in reversed(patches.installed()):
        if name.startswith("inductor."):
            assert patches.remove(name), name
    owner, attribute = patches._resolve(where)
    original = owner.__dict__[attribute]
    delattr(owner, attribute)
    if value is not None:
        setattr(owner, attribute, value)
    try:
        hooks.install()
        yield
    finally:
        for name in reversed(patches.installed()):
            if name.startswith("inductor."):
                assert patches.remove(name), name
        setattr(owner, attribute, original)
        hooks.install()


class Moved(unittest.TestCase):
    def refused(self, name, reason):
        with self.assertRaisesRegex(Exception, f"torch.compile is off for this device.*{name}: .*{reason}"):
            with inductor_config.patch(force_disable_caches=True):
                compiled(torch.ones(4, device=DEVICE))
        self.assertIn(name, inductor.why_off())
        host = torch.ones(4)
        self.assertTrue(compiled(host).equal(doubled(host)))  # the CPU's functions go on

    def tearDown(self):
        # With everything where it was, it works again.
        self.assertEqual(inductor.why_off(), "")
        self.assertEqual(compiled(torch.ones(4, device=DEVICE)).tolist(), [3, 3, 3, 3])

    @unittest.skipUnless(hasattr(Scheduler, "_try_reindex_pointwise_for_reduction"),
                         "no pointwise is regrouped for a reduction here: nothing fails without the replacement")
    def test_groups_of_nodes(self):
        where = "torch._inductor.scheduler:BaseSchedulerNode.is_cpu"
        original = torch._inductor.scheduler.BaseSchedulerNode.is_cpu
        with moved(where, lambda this: original(this)):
            self.refused(hooks.CPU_NODE, "it takes no self")

    def test_name_of_the_backend(self):
        original = torch._inductor.utils.get_current_backend
        with moved("torch._inductor.utils:get_current_backend", lambda device=None: original(device)):
            self.refused(hooks.BACKEND, "it takes no device_type")

    def test_guards_of_devices(self):
        original = torch._inductor.scheduler.device_need_guard
        with moved("torch._inductor.scheduler:device_need_guard", lambda *names: original(*names)):
            self.refused(hooks.GUARD, "it takes no device")

    def test_launches(self):
        original = torch._inductor.codegen.wrapper.PythonWrapperCodegen._generate_kernel_call_helper
        with moved(WRAPPER + "_generate_kernel_call_helper", lambda self, *a, **k: original(self, *a, **k)):
            self.refused(hooks.LAUNCH, "it takes no kernel_name, call_args, device, triton")

    def test_allocations(self):
        original = torch._inductor.codegen.wrapper.PythonWrapperCodegen.make_allocation
        with moved(WRAPPER + "make_allocation", lambda self, *a, **k: original(self, *a, **k)):
            self.refused(hooks.ALLOCATION, "it takes no name, device")

    def test_definitions_of_kernels(self):
        original = torch._inductor.codegen.cpp.CppScheduling.define_kernel
        with moved("torch._inductor.codegen.cpp:CppScheduling.define_kernel", lambda self, *a: original(self, *a)):
            self.refused(hooks.DEFINITION, "it takes no src_code, nodes, kernel_args")

    def test_an_allocation_that_names_no_device(self):
        line = "buf0 = empty_strided_somehow((4, ), (1, ), torch.float32)"
        owner = torch._inductor.codegen.wrapper.PythonWrapperCodegen
        original = owner.make_allocation

        def other(self, name, device, dtype, shape, stride, allocation_shape=None, is_pinned=False):
            return line if device.type == "rondo" else original(self, name, device, dtype, shape, stride)

        with mock.patch.object(owner, "make_allocation", other), inductor_config.patch(force_disable_caches=True):
            with self.assertRaisesRegex(Exception, "names no device that could be made device='rondo:0'"):
                compiled(torch.ones(4, device=DEVICE))

    def test_a_class_that_is_gone(self):
        # In a process of its own: the plugin's classes are made once.
        script = """
            import sys, torch, rondo_torch
            sys.modules["rondo_torch.inductor.codegen"] = None  # its import fails
            print(torch.compile(lambda x: x * 2 + 1)(torch.ones(4)).tolist())
            try:
                torch.compile(lambda x: x * 2 + 1)(torch.ones(4, device="rondo"))
            except Exception as error:
                print(error)
        """
        done = forks.python(["-c", textwrap.dedent(script)])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[3.0, 3.0, 3.0, 3.0]", done.stdout)
        self.assertRegex(done.stdout, "torch.compile is off for this device.*inductor.import: .*inductor.codegen")


    def test_a_manager_that_cannot_be_installed(self):
        module = types.ModuleType("rondo_torch.upstream")
        module.__spec__ = importlib.machinery.ModuleSpec("rondo_torch.upstream", None)
        module.install = mock.Mock(side_effect=RuntimeError("a rule does not fit"))
        with mock.patch.dict(sys.modules, {"rondo_torch.upstream": module}):
            with mock.patch.object(rondo_torch.config, "trees", "upstream"):
                with self.assertWarnsRegex(UserWarning, "rondo_torch.upstream is off: a rule does not fit"):
                    self.assertTrue(inductor.install())
        self.assertEqual(patches.refused.pop("upstream.install"), "RuntimeError: a rule does not fit")
        self.assertTrue(inductor.install())


class Needed(unittest.TestCase):
    """Each replacement against what happens without it, which is why it is there."""

    def setUp(self):
        torch.manual_seed(0)

    def program(self, function, *inputs, rtol=1e-4):
        want = function(*inputs)
        torch.testing.assert_close(compiled(inputs[0].to(DEVICE), function).cpu(), want, rtol=rtol, atol=rtol)

    def without(self, name):
        """The names that were removed, so that they come back."""
        names = [n for n in reversed(patches.installed()) if n == name or n.startswith(name + ":")]
        self.assertIn(name, names)
        for one in names:
            self.assertTrue(patches.remove(one))
        self.addCleanup(hooks.install)

    def fails_without(self, name, function, x):
        self.program(function, x, rtol=1e-2 if x.dtype is torch.bfloat16 else 1e-4)
        self.without(name)
        with inductor_config.patch(force_disable_caches=True), self.assertRaises(Exception):
            compiled(x.to(DEVICE), function)

    @unittest.skipUnless(hasattr(Scheduler, "_try_reindex_pointwise_for_reduction"),
                         "no pointwise is regrouped for a reduction here: nothing fails without the replacement")
    def test_groups_of_nodes(self):
        self.fails_without(hooks.CPU_NODE, lambda x: (x * 2).t().sum(0) + x.sum(), torch.randn(4, 6))

    def test_name_of_the_backend(self):
        self.fails_without(hooks.BACKEND, lambda x: torch.nn.functional.pad(x, (1, 2)) + 1, torch.randn(3, 4))

    def test_guards_of_devices(self):
        self.without(hooks.GUARD)
        from torch._inductor.utils import run_and_get_code

        with inductor_config.patch(force_disable_caches=True):
            torch._dynamo.reset()
            _, code = run_and_get_code(torch.compile(doubled), torch.ones(4, device=DEVICE))
            self.assertNotIn("torch.rondo.device(0)", code[0])
            hooks.install()
            torch._dynamo.reset()
            _, code = run_and_get_code(torch.compile(doubled), torch.ones(4, device=DEVICE))
        self.assertIn("torch.rondo.device(0)", code[0])


class Refused(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def tearDown(self):
        self.assertEqual(compiled(torch.ones(4, device=DEVICE)).tolist(), [3, 3, 3, 3])

    def test_cpp_wrapper(self):
        with inductor_config.patch(cpp_wrapper=True):
            with self.assertRaisesRegex(Exception, "rondo: cpp_wrapper .* not supported .*TORCHINDUCTOR_CPP_WRAPPER"):
                torch.compile(doubled)(torch.ones(4, device=DEVICE))

    def test_fx_wrapper(self):
        with inductor_config.patch(fx_wrapper=True):
            with self.assertRaisesRegex(Exception, "rondo: fx_wrapper is not supported"):
                torch.compile(doubled)(torch.ones(4, device=DEVICE))

    def test_ahead_of_time(self):
        model = torch.nn.Linear(4, 3).to(DEVICE)
        exported = torch.export.export(model, (torch.ones(2, 4, device=DEVICE),))
        path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"rondo-refused-{os.getpid()}.pt2")
        with self.assertRaisesRegex(Exception, "AOTInductor, which needs it.* move the model to the CPU"):
            torch._inductor.aoti_compile_and_package(exported, package_path=path)
        self.assertFalse(os.path.exists(path))

    @unittest.skipUnless(scheduling.notes_divisions_by_zero(), "PyTorch's own kernels divide by zero unchecked here")
    def test_division_by_zero(self):
        function = torch.compile(lambda x, y: x // y)
        x = torch.arange(4, device=DEVICE)
        function(x, x + 1)
        with self.assertRaisesRegex(RuntimeError, "cpp_fused_floor_divide_0"):
            function(x, x)
            torch.rondo.synchronize()
        self.assertEqual(function(x, x + 1).tolist(), [0, 0, 0, 0])
        graph = torch.accelerator.Graph()
        y = x + 1
        with torch.Stream(), graph:
            function(x, y)
        graph.replay()
        torch.rondo.synchronize()
        y.fill_(0)
        with self.assertRaisesRegex(RuntimeError, "cpp_fused_floor_divide_0"):
            graph.replay()
            torch.rondo.synchronize()


class Kernels(unittest.TestCase):
    """The C entry, called as generated code calls it."""

    @classmethod
    def setUpClass(cls):
        compiled(torch.ones(4, device=DEVICE))
        module = PyCodeCache.modules[-1]
        cls.kernel = next(value for value in vars(module).values() if isinstance(value, _C.Kernel))
        cls.x, cls.y = torch.full((4,), 3.0, device=DEVICE), torch.zeros(4, device=DEVICE)

    def test_it_says_what_it_takes(self):
        self.assertEqual((self.kernel.name, self.kernel.kinds), ("cpp_fused_add_mul_0", "rb"))
        self.assertEqual(repr(self.kernel), "<rondo kernel cpp_fused_add_mul_0>")
        _C.launch_kernel(self.kernel, 0, self.x, self.y)
        self.assertEqual(self.y.tolist(), [7, 7, 7, 7])

    def test_wrong_calls(self):
        with self.assertRaisesRegex(TypeError, "cpp_fused_add_mul_0 takes 2 arguments, got 1"):
            _C.launch_kernel(self.kernel, 0, self.x)
        with self.assertRaisesRegex(TypeError, "got int for a tensor"):
            _C.launch_kernel(self.kernel, 0, self.x, 5)
        with self.assertRaisesRegex(TypeError, "what resolve_kernel gave"):
            _C.launch_kernel(doubled, 0, self.x, self.y)
        with self.assertRaisesRegex(RuntimeError, "would write to a tensor of cpu"):
            _C.launch_kernel(self.kernel, 0, self.x, torch.zeros(4))
        if torch.rondo.device_count() > 1:
            with self.assertRaisesRegex(RuntimeError, "is for rondo:1 and got a tensor of rondo:0"):
                _C.launch_kernel(self.kernel, 1, self.x, self.y)
        with self.assertRaises(TypeError):
            type(self.kernel)()

    def test_files_that_have_none(self):
        with self.assertRaisesRegex(RuntimeError, "cpp_none cannot be loaded"):
            _C.resolve_kernel("/nowhere/kernel.so", "kernel_packed", "cpp_none")
        with self.assertRaisesRegex(ValueError, "has no kernel_packed"):
            _C.resolve_kernel(_C.__file__, "kernel_packed", "cpp_none")

    def test_a_kernel_has_its_own_note_of_a_division_by_zero(self):
        from torch._inductor.codecache import CppPythonBindingsCodeCache

        compiled(torch.arange(4))
        compiled(torch.arange(4, device=DEVICE))
        notes = set()
        for name in CppPythonBindingsCodeCache._loaded_module_names:
            library = ctypes.CDLL(sys.modules[name].__spec__.origin)
            note = hasattr(library, "inductor_cpu_integer_div_error_flag")
            notes.add((hasattr(library, "kernel_packed"), note))
        self.assertNotIn((True, True), notes)
        self.assertIn((True, False), notes)
        if (False, True) not in notes:
            self.skipTest("PyTorch's own kernels have no such note")


if __name__ == "__main__":
    unittest.main()
