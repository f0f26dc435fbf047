# SPDX-License-Identifier: Apache-2.0
"""Compiles transformed texts: a whole module beside the installed one, or single members that see its globals.

The texts are known to linecache under names of their own, so that tracebacks and `inspect` show the lines that run. The
names begin with PyTorch's folder, because Dynamo leaves alone what lies there.
"""
import __future__
import ast
import importlib
import linecache
import os
import sys
import types

from . import table

_BESIDE = ":device-neutral"


def _name_of(file, text):
    """The name under which a text is known, registered with its lines."""
    name = os.path.join(table.root(), file) + _BESIDE
    # Without a time of modification the entry stays, although there is no such file.
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return name


def _flags(tree):
    names = [alias.name for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"
             for alias in node.names]
    return sum(getattr(__future__, name).compiler_flag for name in names)


def module_name(file):
    return file[:-len(".py")].replace("/__init__", "").replace("/", ".")


def beside(file, text):
    """A new module from a text, with the name of the installed one and in nobody's list of modules."""
    stock = importlib.import_module(module_name(file))
    module = types.ModuleType(stock.__name__, stock.__doc__)
    module.__file__, module.__package__, module.__spec__ = stock.__file__, stock.__package__, stock.__spec__
    exec(compile(text, _name_of(file, text), "exec", dont_inherit=True), module.__dict__)
    return module


def _definitions(tree, text):
    """Qualified name -> node, of functions and classes at the top and one level below; each node knows its text."""
    found, lines = {}, text.splitlines()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
            if isinstance(node, ast.ClassDef):
                found.update((f"{node.name}.{child.name}", child) for child in node.body
                             if isinstance(child, (ast.FunctionDef, ast.ClassDef)))
    for node in found.values():
        first = min([node.lineno] + [decorator.lineno for decorator in node.decorator_list])
        node.text = lines[first - 1:node.end_lineno]
    return found


def _imports(tree):
    return {alias.asname or alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}


def members(file, before, after):
    """What differs between two texts of a module: (qualified name, is new, make) with `make()` the member made anew."""
    old_tree, tree = ast.parse(before), ast.parse(after)
    old, new = _definitions(old_tree, before), _definitions(tree, after)
    module, flags = importlib.import_module(module_name(file)), _flags(tree)
    name = _name_of(file, after)

    def make(qualified):
        node, space = new[qualified], {}
        code = compile(ast.Module([node], []), name, "exec", flags=flags, dont_inherit=True)
        exec(code, module.__dict__, space)
        member = space[node.name]
        plain = getattr(member, "__func__", member)
        plain.__qualname__ = qualified
        plain.__module__ = module.__name__
        return member

    changed = [(word, word not in vars(module), lambda word=word: importlib.import_module(word))
               for word in sorted(_imports(tree) - _imports(old_tree))]
    for qualified, node in new.items():
        if qualified not in old:
            if "." not in qualified or qualified.split(".")[0] in old:
                changed.append((qualified, True, lambda qualified=qualified: make(qualified)))
        elif node.text != old[qualified].text and not (
                isinstance(node, ast.ClassDef) and _same_but_for_members(node, old[qualified])):
            changed.append((qualified, False, lambda qualified=qualified: make(qualified)))
    return changed


def _same_but_for_members(one, other):
    """Two classes that differ in functions and classes only, which are then replaced one by one."""
    def rest(node):
        return [ast.dump(child) for child in node.body if not isinstance(child, (ast.FunctionDef, ast.ClassDef))]
    return "." not in one.name and rest(one) == rest(other)


def swap(module):
    """Makes a module the one that its name stands for, and gives back the one that it was."""
    package, _, last = module.__name__.rpartition(".")
    before = sys.modules[module.__name__]
    sys.modules[module.__name__] = module
    setattr(sys.modules[package], last, module)
    return before
