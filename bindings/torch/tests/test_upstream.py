# SPDX-License-Identifier: Apache-2.0
"""Inductor's own modules made device-neutral: the edits, what they refuse, putting them in place and out, the
patches."""
import ast
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import traceback
import unittest
from unittest import mock

import torch

import rondo_torch
from rondo_torch import __main__ as command, patches, upstream
from rondo_torch.upstream import diff, edit, table
from upstream_models import graphed, two, values

# Folders that have torch/ of other releases, as they come out of a wheel.
TEXTS = list(filter(None, os.environ.get("RONDO_TORCH_TEXTS", "").split(os.pathsep)))
SAMPLE = textwrap.dedent('''
    """torch.cuda.synchronize() in a description."""


    class Node:
        """Of torch.cuda."""

        def run(self, first, second=1):
            # torch.cuda.synchronize() in a comment
            text = "torch.cuda.synchronize()"
            torch.cuda.synchronize()
            if first:
                torch.cuda.synchronize()
            made = torch.cuda.CUDAGraph()
            pool = torch.cuda.graph_pool_handle()
            return check(
                made,
                pool,
            )


    def other(é="ü"):
        torch.cuda.synchronize(); mytorch.cuda.synchronize()
    ''')


def edited(*rules, layout="2.13"):
    return edit.transform("sample.py", SAMPLE, rules, layout)


def forks(self, where):
    """CUDA's own path is two constructions and two captures, and only where it is kept."""
    count = {"kept": (2, 1), "contract": (0, 0), "duck": (0, 0)}
    for variant, (constructions, captures) in count.items():
        text = edit.Text("t", table.transformed(table.TREES, variant, where))
        self.assertEqual(len(text.find("", "torch.cuda.CUDAGraph()")), constructions, variant)
        self.assertEqual(len(text.find("", "torch.cuda.graph(")), captures, variant)
        self.assertEqual(len(text.find("", "_graph_capture_context(")), 3, variant)  # its definition and two calls
    self.assertEqual(len(text.find("", "prepare_for_capture(")), 0, "the clean-ups are guarded, not merged")


class Edits(unittest.TestCase):
    def test_only_code_of_the_scope_is_replaced(self):
        text = edited(edit.Replace("s", "PR-5a", "Node.run", "torch.cuda.synchronize()", "di.synchronize()", 2))
        self.assertEqual(text.count("di.synchronize()"), 2)
        self.assertEqual(text.replace("di.synchronize()", "torch.cuda.synchronize()"), SAMPLE)

    def test_a_fragment_is_a_whole_name(self):
        text = edited(edit.Replace("s", "PR-5a", "other", "torch.cuda.synchronize()", "x"))
        self.assertIn("x; mytorch.cuda.synchronize()", text)

    def test_fork_keeps_the_lines_under_the_condition(self):
        text = edited(edit.Fork("g", "PR-5b", "Node.run", "torch.cuda.CUDAGraph()", 'kind == "cuda"', "made = pool = 1",
                                last="torch.cuda.graph_pool_handle()"))
        self.assertIn(textwrap.indent(textwrap.dedent('''
            if kind == "cuda":
                made = torch.cuda.CUDAGraph()
                pool = torch.cuda.graph_pool_handle()
            else:
                made = pool = 1
            return check(
            ''').strip("\n"), "        "), text)

    def test_insertions_parameters_and_arguments(self):
        text = edited(edit.Insert("t", "p", "Node.run", "top", "begin()"), edit.Insert("e", "p", "Node", "end",
                                                                                       "def last(self): pass"),
                      edit.Insert("a", "p", "other", "above", "HERE = 1"), edit.Insert("b", "p", "other", "below",
                                                                                       "AFTER = 1"),
                      edit.Parameter("p", "p", "Node.run", "third=3"), edit.Parameter("q", "p", "other", "more=1"),
                      edit.Argument("c", "p", "Node.run", "check", "third=third"),
                      edit.Insert("x", "p", "Node.run", "before", "prepare()", fragment="torch.cuda.CUDAGraph()"),
                      edit.Insert("y", "p", "Node.run", "after", "done()", fragment="torch.cuda.CUDAGraph()"))
        self.assertIn("def run(self, first, second=1, third=3):\n        # torch.cuda.synchronize() in a comment\n"
                      "        begin()\n", text)
        self.assertIn("            pool,\n            third=third,\n        )\n\n    def last(self): pass\n", text)
        self.assertIn("HERE = 1\n\n\ndef other(é=\"ü\", more=1):", text)
        self.assertTrue(text.endswith("mytorch.cuda.synchronize()\n\n\nAFTER = 1\n"), text[-60:])
        self.assertIn("prepare()\n        made = torch.cuda.CUDAGraph()\n        done()\n        pool", text)
        compile(text, "sample.py", "exec")

    def test_a_statement_goes_and_another_comes(self):
        text = edited(edit.Statement("g", "p", "Node.run", "torch.cuda.CUDAGraph()", ""),
                      edit.Statement("r", "p", "Node.run", "check", "return pool"))
        self.assertNotIn("CUDAGraph", text)
        self.assertIn("graph_pool_handle()\n        return pool\n\n\ndef other", text)

    def test_a_count_that_does_not_fit_is_loud(self):
        rule = edit.Replace("synchronise", "PR-5a", "Node.run", "torch.cuda.synchronize()", "x", count=3)
        with self.assertRaisesRegex(edit.Moved, r'sample\.py: the rule "synchronise" expects 3 places and found 2'):
            edited(rule)
        for rule in (edit.Replace("no scope", "p", "Gone.run", "torch", "x"), edit.Insert("no scope", "p", "Gone",
                                                                                          "end", "x"),
                     edit.Argument("no call", "p", "Node.run", "gone", "x"), edit.Parameter("no function", "p", "gone",
                                                                                            "x"),
                     edit.Replace("by layout", "p", "Node.run", "torch.cuda.synchronize()", "x", {"2.12": 2})):
            with self.assertRaises(edit.Moved) as caught:
                edited(rule)
            self.assertEqual(caught.exception.file, "sample.py")
        self.assertIn("x", edited(edit.Replace("by layout", "p", "Node.run", "torch.cuda.synchronize()", "x",
                                               {"2.12": 2}),
                                  layout="2.12"))

    def test_places_from_a_layout_on_and_up_to_one(self):
        self.assertEqual(edit.until("2.13"), {"2.12": 1, "2.13": 1})
        self.assertEqual(edit.since("2.14", 2), dict.fromkeys(edit.LAYOUTS[2:], 2))

    def test_what_names_cuda_is_counted_and_left(self):
        rule = edit.Mentions("all", "p", "", 6)
        self.assertEqual(edited(rule), SAMPLE)
        more = SAMPLE + 'torch._C._cuda_one()\nx.is_cuda\nof("cuda")\nf"cuda:{1}"\n'
        with self.assertRaisesRegex(edit.Moved, '"all" expects 6 places and found 10'):
            edit.transform("sample.py", more, [rule], "2.13")

    def test_two_rules_for_one_place_are_an_error(self):
        with self.assertRaisesRegex(ValueError, "two rules"):
            edited(edit.Replace("a", "p", "Node.run", "torch.cuda.CUDAGraph()", "x"),
                   edit.Statement("b", "p", "Node.run", "torch.cuda.CUDAGraph()", "y"))


class Table(unittest.TestCase):
    def test_every_rule_fits_the_installed_pytorch(self):
        for variant in table.VARIANTS:
            for file, _, rule, expected, found in diff.rules(variant):
                self.assertEqual(expected, found, f"{variant}: {file}: {rule}")

    def test_rules_quote_no_line_of_pytorch(self):
        # A line that a rule brings along and that PyTorch has, too, would be a copy. Short ones are grammar, not text.
        theirs = {line.strip() for file in table.files("kept") for line in table.read(file).splitlines()}
        # What a member of an interface has to be called, and a model be called with, is a contract.
        allowed = ("def ", "except NotImplementedError", "torch._C.", "if isinstance(", "if not isinstance(", ") -> ",
                   "class ", "@", "raise NotImplementedError", "return", "if device_index is None:",
                   "self.device_index", "get_interface_for_device",
                   "from torch._dynamo.device_interface", "static_outputs = model",
                   "from torch._inductor.cudagraph_trees")
        folder = os.path.dirname(table.__file__)
        for name in sorted(os.listdir(folder)):
            if not name.startswith("rules_"):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as source:
                tree = ast.parse(source.read())
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
                    for line in map(str.strip, node.value.splitlines()):
                        if len(line) > 20 and not line.startswith(allowed):
                            self.assertFalse(line in theirs, f"{name}: {line}")

    def test_layouts(self):
        self.assertEqual(table.layout_of("graph_capture_lock = 1"), "2.13")
        self.assertEqual(table.layout_of("kernel_free_cudagraph graph_capture_lock"), "2.14")
        self.assertEqual(table.layout_of("def _is_cuda_graph_recorded_tensor"), "2.12")
        self.assertEqual(table.layout_of("_LivenessCheckState kernel_free_cudagraph"), "2.15")
        with self.assertRaisesRegex(edit.Moved, "layout"):
            table.layout_of("nothing that is known")

    def test_a_layout_that_nobody_has_counted_is_refused_by_name(self):
        newer = (("_a_word_of_then", "2.99"), *table._LAYOUTS)
        with mock.patch.object(table, "_LAYOUTS", newer):
            self.assertEqual(table.layout_of("_LivenessCheckState"), "2.15")
            known = re.escape(", ".join(edit.LAYOUTS))
            with self.assertRaisesRegex(edit.Moved, rf"layout 2\.99 \(.* a layout of {known} .*uncounted"):
                table.layout_of("_a_word_of_then _LivenessCheckState")

    def test_a_newer_text_that_looks_like_a_known_one_is_refused_by_what_is_new(self):
        text = table.read(table.TREES) + '\n\ndef _of_then():\n    return torch.cuda.is_available(), "cuda:0"\n'
        with self.assertRaisesRegex(edit.Moved, r'the rule "all that names CUDA" expects (\d+) places and found'):
            edit.transform(table.TREES, text, table.files("kept")[table.TREES], table.layout_of(text))

    def test_what_2_15_writes_otherwise(self):
        """Its shapes of the same places, in a text of ours."""
        text = textwrap.dedent('''
            class TreeManagerContainer:
                def get_tree_manager(self, first=None):
                    self.tree_manager = CUDAGraphTreeManager(
                        self.device_index, first=first
                    )


            def cudagraphify_impl(**kwargs):
                def run_eager(inputs):
                    return get_manager(kwargs["device_index"])


            class CUDAGraphTreeManager:
                def __init__(self, device_index):
                    torch.empty(4, device=f"cuda:{device_index}")


            def check_multiple_devices_or_any_cpu_nodes(device_node_mapping):
                return next(iter(device_node_mapping)).type in _CUDAGRAPH_SUPPORTED_DEVICE_TYPES
            ''')
        names = ("container: manager", "a backward pass that is not captured: whose", "manager: its first memory",
                 "one device that can capture, of a set")
        known = [rule for rules in table.files("kept").values() for rule in rules if rule.name in names]
        self.assertEqual(len(known), 4)
        result = edit.transform("t", text, known, "2.15")
        for line in ("torch.device(self.device_type, self.device_index), first=first",
                     'get_manager(_graph_device(kwargs["device_index"], kwargs.get("device"), inputs))',
                     "torch.empty(4, device=torch.device(self.device_type, device_index))",
                     "return _graph_capture_supported(next(iter(device_node_mapping)).type)"):
            self.assertIn(line, result)
        compile(result, "t", "exec")

    def test_a_variant_that_is_none(self):
        with self.assertRaisesRegex(ValueError, "kept, contract, duck, not 'all'"):
            table.files("all")

    def test_forks(self):
        forks(self, None)


class InPlace(unittest.TestCase):
    def setUp(self):
        self.addCleanup(upstream.remove)

    @staticmethod
    def touched():
        """Every attribute of the modules that the table names, by identity."""
        import torch._inductor.cudagraph_trees  # noqa: F401

        found = {}
        for file in table.files("kept"):
            module = sys.modules[file[:-3].replace("/__init__", "").replace("/", ".")]
            for name, value in vars(module).items():
                found[f"{file}:{name}"] = value
                if isinstance(value, type) and value.__module__ == module.__name__:
                    found.update((f"{file}:{name}.{member}", entry) for member, entry in vars(value).items()
                                 if not member.startswith("__"))
        found.update((f"torch._C:{name}", value) for name, value in vars(torch._C).items())
        return found

    def test_in_and_out_leaves_nothing(self):
        import torch._inductor.cudagraph_trees as stock

        upstream.install()  # once, so that everything is imported and registered
        upstream.remove()
        before = self.touched()
        for variant in table.VARIANTS:
            self.assertTrue(upstream.install(variant))
            self.assertEqual(upstream.installed(), variant)
            self.assertIsNot(torch._inductor.cudagraph_trees, stock)
            self.assertTrue(any(name.startswith("upstream: ") for name in patches.installed()))
        self.assertTrue(upstream.remove())
        self.assertIsNone(upstream.installed())
        after = self.touched()
        self.assertEqual([name for name in after if before.get(name, self) is not after[name]], [])
        self.assertEqual(set(before), set(after))
        self.assertIs(torch._inductor.cudagraph_trees, stock)
        left = [name for name in patches.installed() if name.startswith("upstream: ")]
        self.assertEqual([name for name in left if not name.startswith("upstream: torch._C:")], [])

    def test_what_was_compiled_keeps_its_manager(self):
        """Also when PyTorch's own modules are back."""
        from rondo_torch import config, inductor

        before, config.trees = config.trees, "upstream"
        try:
            inductor.install()
            compiled = torch.compile(lambda x: (x * 3).relu() + 1, mode="reduce-overhead")
            inputs = [torch.randn(4) for _ in range(7)]
            results = [compiled(x.to("rondo")).cpu() for x in inputs[:3]]
            self.assertTrue(upstream.remove())
            results += [compiled(x.to("rondo")).cpu() for x in inputs[3:]]
        finally:
            config.trees = before
            torch._dynamo.reset()
            torch._inductor.cudagraph_trees.reset_cudagraph_trees()
        for x, result in zip(inputs, results):
            torch.testing.assert_close(result, (x * 3).relu() + 1)

    def test_again_is_nothing(self):
        upstream.install()
        before = torch._inductor.cudagraph_trees
        self.assertTrue(upstream.install())
        self.assertIs(torch._inductor.cudagraph_trees, before)

    def test_a_moved_pytorch_changes_nothing(self):
        before = self.touched()
        text = table.read(table.TREES).replace("torch.cuda.memory_snapshot()", "torch.accelerator.memory_snapshot()")
        real = table.read
        with mock.patch.object(table, "read", lambda file, where=None: text if file == table.TREES else real(file,
                                                                                                             where)):
            with self.assertRaisesRegex(edit.Moved,
                                        "cudagraph_trees.py: the rule \"segments.* expects 1 place and found 0"):
                upstream.install()
        after = self.touched()
        self.assertEqual([name for name in after if before.get(name, self) is not after[name]], [])

    def test_what_somebody_replaced_since_stays(self):
        import torch._inductor.compile_fx as compile_fx

        upstream.install()
        ours, theirs = compile_fx.cudagraphify, lambda *args: None
        compile_fx.cudagraphify = theirs
        try:
            self.assertFalse(upstream.remove())
            self.assertIs(compile_fx.cudagraphify, theirs)
        finally:
            compile_fx.cudagraphify = ours
        self.assertTrue(upstream.remove())

    def test_tracebacks_show_our_lines(self):
        upstream.install()
        trees = torch._inductor.cudagraph_trees

        def fails(x):
            raise ValueError("inside the model")

        try:
            graphed(trees, fails, [])(torch.ones(2, device="rondo"))
            self.fail("the model's error was lost")
        except ValueError as error:
            shown = "".join(traceback.format_exception(error))
        self.assertIn("cudagraph_trees.py:device-neutral", shown)
        self.assertIn("out = self.wrapped_function.model(new_inputs)", shown)

    def test_managers_of_before_are_seen(self):
        import torch._inductor.cudagraph_trees as stock

        upstream.install()
        trees = torch._inductor.cudagraph_trees
        self.assertIs(trees.local, stock.local)
        self.assertIs(trees.MarkStepBox, stock.MarkStepBox)
        self.assertIs(trees.get_obj(trees.local, "tree_manager_containers"), stock.get_obj(stock.local,
                                                                                           "tree_manager_containers"))


def run_command(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = command.main(list(arguments))
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rondo-upstream-")
        self.addCleanup(shutil.rmtree, self.folder)

    def copies(self, where=None):
        for file in table.files("kept"):
            os.makedirs(os.path.dirname(os.path.join(self.folder, file)), exist_ok=True)
            shutil.copy(os.path.join(where or table.root(), file), os.path.join(self.folder, file))
        return self.folder

    def test_the_patches_apply_and_the_result_is_what_is_installed_in_memory(self):
        self.patched(table.root())

    @unittest.skipUnless(TEXTS, "RONDO_TORCH_TEXTS names no folders with torch/ of other releases")
    def test_the_patches_apply_to_other_releases(self):
        for where in TEXTS:
            with self.subTest(where):
                self.patched(where)
                for name in ("def _graph_device_type(", "def _graph_device_interface(", "def _graph_capture_context(",
                             "def get_container(device:", "CUDAGraphTreeManager = GraphTreeManager\n"):
                    self.assertIn(name, table.read(table.TREES, self.folder))
                forks(self, where)

    def patched(self, where):
        for variant in table.VARIANTS:
            folder = self.copies(where)
            status, text, err = run_command("upstream", "--diff", "--variant", variant, "--torch", where)
            self.assertEqual((status, err), (0, ""))
            positions = [text.index(f"# {part}: ") for part in table.PARTS]
            self.assertEqual(positions, sorted(positions))
            done = subprocess.run(["patch", "-p1", "--no-backup-if-mismatch", "-d", folder], input=text, text=True,
                                  capture_output=True,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotIn("fuzz", done.stdout)
            for file in table.files(variant):
                result = table.transformed(file, variant, where)
                self.assertEqual(table.read(file, folder), result, file)
                compile(result, file, "exec")

    def test_the_patched_copies_import(self):
        folder = self.copies()
        _, text, _ = run_command("upstream", "--diff")
        subprocess.run(["patch", "-p1", "-s", "-d", folder], input=text, text=True, check=True)
        code = """
            import importlib.abc, importlib.util, os, sys
            FOLDER = sys.argv[1]
            class Finder(importlib.abc.MetaPathFinder):
                def find_spec(self, name, path, target=None):
                    for ending in (".py", "/__init__.py"):
                        file = os.path.join(FOLDER, name.replace(".", "/") + ending)
                        if os.path.exists(file):
                            where = [os.path.join(path[0], name.rpartition(".")[2])] if ending != ".py" else None
                            return importlib.util.spec_from_file_location(name, file, submodule_search_locations=where)
            sys.meta_path.insert(0, Finder())
            import torch._inductor.compile_fx, torch._inductor.cudagraph_trees as trees, torch._inductor.ir
            from torch._dynamo.device_interface import CudaInterface, DeviceInterface
            for module in (trees, torch._inductor.compile_fx, torch._inductor.ir, torch._dynamo,
                           torch._inductor.cudagraph_utils):
                assert module.__file__.startswith(FOLDER), module.__file__
            assert trees.CUDAGraphTreeManager is trees.GraphTreeManager
            assert CudaInterface.is_graph_capture_supported() and not DeviceInterface.is_graph_capture_supported()
            assert trees._graph_device_type() == "cuda" and trees.get_manager(0, False) is None
            f = torch.compile(lambda x: (x + 1).sum(), backend="eager")
            assert f(torch.ones(3)).item() == 6
            torch._dynamo.reset()
            print("imported")
            """
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), folder], capture_output=True, text=True,
                              check=False,
                              env=dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0", PYTHONDONTWRITEBYTECODE="1"))
        self.assertEqual(done.stdout, "imported\n", done.stderr[-2000:])

    def test_rules_are_listed(self):
        status, text, _ = run_command("upstream")
        self.assertEqual(status, 0)
        self.assertEqual(len(text.splitlines()), sum(map(len, table.files("kept").values())))
        self.assertNotIn("BAD", text)

    def test_a_pytorch_that_has_moved_ends_with_1(self):
        folder = self.copies()
        file = os.path.join(folder, table.TREES)
        with open(file, encoding="utf-8") as source:
            text = source.read()
        with open(file, "w", encoding="utf-8") as target:
            target.write(text.replace("torch.cuda.Stream()", "torch.cuda.Stream(None)"))
        status, out, err = run_command("upstream", "--diff", "--torch", folder)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("cudagraph_trees.py: the rule \"manager: torch.cuda.Stream()\" expects 1 place and found 0", err)
        status, out, _ = run_command("upstream", "--torch", folder)
        self.assertEqual((status, out.count("BAD")), (1, 1))

    def test_usage(self):
        self.assertEqual(run_command()[0], 2)
        self.assertEqual(run_command("upstream", "--variant", "none")[0], 2)
        status, _, err = run_command("upstream", "--torch", self.folder)
        self.assertEqual(status, 2)
        self.assertIn("name the folder that has torch/", err)
        status, text, _ = run_command("upstream", "--help")
        self.assertEqual(status, 0)
        self.assertIn("Exit status", text)

    def test_as_a_program(self):
        done = subprocess.run([sys.executable, "-m", "rondo_torch", "upstream", "--diff"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("# PR-5b: ", done.stdout)


class Page(unittest.TestCase):
    def test_every_test_that_the_comparison_names_is_there(self):
        here = os.path.dirname(os.path.abspath(__file__))
        page = os.path.join(here, "..", "..", "..", "docs", "variants.md")
        if not os.path.exists(page):
            self.skipTest("the pages are not where this test is")
        with open(page, encoding="utf-8") as file:
            named = re.findall(r"\[(\w+)\.(test_\w+)\]\(([^)]+)\)", file.read())
        self.assertGreaterEqual(len(named), 25)
        for owner, method, target in named:
            with open(os.path.join(os.path.dirname(page), target), encoding="utf-8") as file:
                tree = ast.parse(file.read())
            found = [node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner
                     for node in node.body if isinstance(node, ast.FunctionDef)]
            self.assertIn(method, found, f"{owner} in {target}")


class OnTheDevice(unittest.TestCase):
    """The trees themselves run on the device: each variant, against the host's numbers."""

    def setUp(self):
        self.addCleanup(upstream.remove)

    def test_each_variant_warms_up_records_and_replays(self):
        for variant in table.VARIANTS:
            upstream.install(variant)
            trees = torch._inductor.cudagraph_trees
            run = graphed(trees, two, [], outputs=2)
            for step in range(5):
                x, y = values((8, 4), step), values((4, 8), 100 + step)
                got = run(x.to("rondo"), y.to("rondo"))
                for one, other in zip(got, two(x, y)):
                    torch.testing.assert_close(one.cpu(), other)
                del got, one
                torch.compiler.cudagraph_mark_step_begin()
            manager = trees.get_manager(0, create_if_none_exists=False)
            self.assertEqual((manager.device_type, manager.path_state.name), ("rondo", "EXECUTION"), variant)
            self.assertEqual(len(list(manager.get_roots())), 1)
            trees.reset_cudagraph_trees()


if __name__ == "__main__":
    unittest.main()
