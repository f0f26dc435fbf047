# SPDX-License-Identifier: Apache-2.0
"""Sealed callables: what torch.compile has made for one set of arguments, below torch.compile's own floor.

A call through torch.compile looks its guards up, keeps books about streams, and goes through wrappers that most graphs
do not need. `seal` takes the one graph that was compiled for the examples and returns a callable that checks what the
graph depends on itself and then runs what Dynamo has made of the function. Whatever is not as it was goes to the compiled
function, which recompiles or raises as it always does; nothing is guessed.
"""
import functools
import inspect
import itertools
import sys
import threading
import weakref

import torch

from . import _C, patches

REASONS = ("arguments", "tensor", "aliasing", "mode", "hooks", "guards", "retired")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks",
                 "_global_backward_pre_hooks")
# Guards of the root that the modes' check stands for, and guards of an argument that its metadata's check stands for.
_ROOT_GUARDS = {"GLOBAL_STATE", "TORCH_FUNCTION_MODE_STACK", "DEFAULT_DEVICE"}
_TENSOR_GUARDS = {"TENSOR_MATCH", "DIMENSION_DYNAMIC_MARKING_GUARD", "NO_TENSOR_ALIASING", "NO_HASATTR"}
_SEQUENCE_GUARDS = {"TYPE_MATCH", "LENGTH_CHECK"}
_IDENTITY_GUARDS = {"ID_MATCH", "FUNCTION_MATCH", "CLOSURE_MATCH", "MODULE_MATCH", "BUILTIN_MATCH"}
_number = itertools.count()
_alive = weakref.WeakSet()
_probing = threading.Lock()


class SealError(RuntimeError):
    """What was compiled cannot be sealed; the text says why and what to do."""


class _Frame:
    """The function that Dynamo has compiled, and how a call's arguments become its local variables."""

    def __init__(self, compiled):
        module = getattr(compiled, "_orig_mod", None)
        called = compiled.forward if module is not None else compiled
        function = getattr(called, "_torchdynamo_orig_callable", None)
        self.module = self.self = None
        if module is not None:
            self.module = module
            if inspect.ismethod(function):  # the module's own call: its forward is what was compiled
                function = module.forward
        if inspect.ismethod(function):
            self.self, function = function.__self__, function.__func__
        if not inspect.isfunction(function):
            raise SealError(f"{compiled!r} is not what torch.compile returns for a function, a method or a module")
        self.function, self.code = function, function.__code__

    def locals(self, arguments, keywords):
        """(name, kind, value): what Sealed makes a guard's local variables of. Keywords count on after the arguments."""
        code, function = self.code, self.function
        names = code.co_varnames[:code.co_argcount]
        found, given = [], len(arguments)
        named = {name: given + index for index, name in enumerate(keywords)}
        if self.self is not None:
            found.append((names[0], "object", self.self))
            names = names[1:]
        defaults = dict(zip(names[len(names) - len(function.__defaults__ or ()):], function.__defaults__ or ()))
        for index, name in enumerate(names):
            if index < given:
                found.append((name, "argument", index))
            elif name in named and index + (self.self is not None) >= code.co_posonlyargcount:
                found.append((name, "argument", named.pop(name)))
            elif name in defaults:
                found.append((name, "object", defaults[name]))
            else:
                raise SealError(f"{function.__qualname__}: the examples have no argument '{name}'")
        at = code.co_argcount
        for name in code.co_varnames[at:at + code.co_kwonlyargcount]:
            if name in named:
                found.append((name, "argument", named.pop(name)))
            elif name in (function.__kwdefaults__ or {}):
                found.append((name, "object", function.__kwdefaults__[name]))
            else:
                raise SealError(f"{function.__qualname__}: the examples have no argument '{name}'")
        at += code.co_kwonlyargcount
        if code.co_flags & inspect.CO_VARARGS:
            found.append((code.co_varnames[at], "rest", min(len(names), given)))
            at += 1
        elif given > len(names):
            raise SealError(f"{function.__qualname__} takes {len(names)} arguments, the examples are {given}")
        if code.co_flags & inspect.CO_VARKEYWORDS:
            found.append((code.co_varnames[at], "keywords", tuple(named.items())))
        elif named:
            raise SealError(f"{function.__qualname__} takes no argument '{next(iter(named))}' by name")
        found.extend((name, "cell", cell) for name, cell in zip(code.co_freevars, function.__closure__ or ()))
        return found

    def defaults_by_name(self):
        """(dict, key, object) of what keywords are by default: the dict can be changed where it is."""
        by_name = self.function.__kwdefaults__ or {}
        return [(by_name, name, value) for name, value in by_name.items()]

    def hooks(self):
        """Dicts that make a module's call do more than its forward, when they hold something."""
        if self.module is None:
            return []
        general = torch.nn.modules.module
        return [getattr(self.module, name) for name in _HOOKS] + [getattr(general, name) for name in _GLOBAL_HOOKS]


def _values(described, arguments, keywords):
    every = (*arguments, *keywords.values())
    kinds = {"argument": lambda v: every[v], "rest": lambda v: tuple(arguments[v:]),
             "keywords": lambda v: {name: every[index] for name, index in v},
             "cell": lambda v: v.cell_contents, "object": lambda v: v}
    return {name: kinds[kind](value) for name, kind, value in described}


def _entry_for(frame, described, arguments, keywords):
    """Dynamo's cache entry that serves these arguments."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    values = _values(described, arguments, keywords)
    for entry in _debug_get_cache_entry_list(frame.code):
        if entry.guard_manager.check(values):
            return entry
    raise SealError(f"{frame.function.__qualname__} has no compiled form for the examples: it was skipped, or its first "
                    "part lies in another function. torch.compile(fullgraph=True) says where")


def _compiled_name(entry, frame):
    """The name under which the entry's code calls what was compiled: exactly one, and nothing goes on elsewhere."""
    names = entry.code.co_names
    broken = [name for name in names if name.startswith("__resume_at_")]
    if broken:
        raise SealError(f"{frame.function.__qualname__} breaks into several graphs ({broken[0]}); "
                        "torch.compile(fullgraph=True) says where. Only one graph can be sealed")
    compiled = [name for name in names if name.startswith("__compiled_fn_")]
    if len(compiled) != 1:
        raise SealError(f"{frame.function.__qualname__} has {len(compiled)} compiled graphs, not one")
    return compiled[0]


def _kinds(manager):
    return {type(guard).__name__ for guard in manager.get_leaf_guards()}


def _is_metadata(manager):
    """Whether the guards of an argument look at no more than the metadata of the tensors in it."""
    children = manager.get_child_managers()
    if children:
        return _kinds(manager) <= _SEQUENCE_GUARDS and all(_is_metadata(child) for child in children)
    return _kinds(manager) <= _TENSOR_GUARDS and "TENSOR_MATCH" in _kinds(manager)


def _identities(manager, holder, found):
    """Collects (dict, key, object) for guards below a dict or module that only ask whether an object is the same one.
    False where they ask for more."""
    names = holder if isinstance(holder, dict) else vars(holder)
    for child in manager.get_child_managers():
        rest = child.get_source()[len(manager.get_source()):]
        key = rest[2:-2] if rest.startswith("['") and rest.endswith("']") else rest[1:]
        if not key.isidentifier() or key not in names or not _kinds(child) <= _IDENTITY_GUARDS:
            return False
        found.append((names, key, names[key]))
        if child.get_child_managers():
            if not isinstance(names[key], (dict, type(torch))) or not _identities(child, names[key], found):
                return False
    return True


def _managers(manager):
    yield manager
    for child in manager.get_child_managers():
        yield from _managers(child)


def _modules_without_hooks(root, self_name):
    """Whether the guards look into modules inside the function and at no hooks of theirs: torch.compile leaves those
    guards out by itself, and would go on with what it has made when a hook comes."""
    inside, hooks = False, False
    for manager in _managers(root):
        kind = manager.get_type_of_guarded_value()
        inside = inside or (isinstance(kind, type) and issubclass(kind, torch.nn.Module)
                            and manager.get_source() != f"L['{self_name}']")
        hooks = hooks or manager.get_source().rpartition(".")[2] in _HOOKS
    return inside and not hooks


def _with_hooks(function):
    """What is compiled in the call has guards for the hooks of modules that it calls."""
    @functools.wraps(function)
    def call(*arguments, **keywords):
        with torch._dynamo.config.patch(skip_nnmodule_hook_guards=False):
            return function(*arguments, **keywords)
    return call


def _own_checks(root, described, scope):
    """(dict, key, object) to look at besides arguments' metadata and the thread's modes, when that is all that the guards
    depend on; else None."""
    names, found = {f"L['{name}']" for name, kind, _ in described if kind in ("argument", "rest")}, []
    for guard in root.get_leaf_guards():
        if type(guard).__name__ not in _ROOT_GUARDS and "top_saved_tensors_hooks" not in str(guard.verbose_code_parts()):
            return None
    if root.get_epilogue_lambda_guards():
        return None
    for child in root.get_child_managers():
        if child.get_source() == "G" and not _kinds(child):
            if not _identities(child, scope, found):
                return None
        elif child.get_source() not in names or not _is_metadata(child):
            return None
    return found


class _Spy:
    """Looks at one call of what was compiled: what goes into Inductor's graph, and what comes of it."""

    def __init__(self, function):
        self.function, self.graphs, self.given, self.made, self.versions = function, [], None, None, None

    def __call__(self, *given):
        from torch._inductor.output_code import CompiledFxGraph

        original, owner = CompiledFxGraph.__call__, threading.get_ident()

        @functools.wraps(original)
        def watched(graph, inputs):
            if threading.get_ident() != owner:
                return original(graph, inputs)
            seen = list(inputs)
            before = [_version(value) for value in seen]
            outputs = original(graph, inputs)
            self.graphs.append((graph, seen, list(outputs), before, [_version(value) for value in seen]))
            return outputs

        self.given, self.versions = given, [_version(value) for value in given]
        CompiledFxGraph.__call__ = watched
        try:
            self.made = self.function(*given)
        finally:
            CompiledFxGraph.__call__ = original
        return self.made

    def graph(self):
        """Inductor's graph, when the wrappers around it do nothing for this call: the same tensors go in and come out,
        and none counts as changed because of a wrapper."""
        if len(self.graphs) != 1:
            return None
        graph, seen, outputs, before, after = self.graphs[0]
        same = len(seen) == len(self.given) and all(a is b for a, b in zip(seen, self.given))
        same = same and len(outputs) == len(self.made) and all(a is b for a, b in zip(outputs, self.made))
        same = same and before == self.versions and after == [_version(value) for value in seen]
        return graph if same else None

    def forget(self):
        self.graphs, self.given, self.made = [], None, None


def _version(value):
    return value._version if isinstance(value, torch.Tensor) and not value.is_inference() else None


class _NoBooks:
    """Stands in for the modules that Dynamo's code calls to keep books about streams and profiles: a graph without
    streams of its own needs none of them."""

    def __init__(self, module):
        self._module = module

    @staticmethod
    def _nothing(*_):
        return None

    store_user_object_weakrefs = get_current_stream = _nothing
    record_pregraph_bytecode_enter = record_pregraph_bytecode_exit = _nothing

    def __getattr__(self, name):
        return getattr(self._module, name)


def _body(frame, entry, name, core, graph):
    """Dynamo's code for the function, which calls `core` instead of what was compiled."""
    scope = frame.function.__globals__
    renamed = {name: f"__rondo_sealed_{next(_number)}"}
    scope[renamed[name]] = core
    if graph is not None and "get_external_object_by_index" not in (getattr(graph, "source_code", None) or ""):
        for module in ("__import_torch_dot__dynamo_dot_graph_bytecode_inputs", "__import_torch_dot__dynamo_dot_utils"):
            if module in entry.code.co_names and module in scope:
                renamed[module] = f"__rondo_sealed_{next(_number)}"
                scope[renamed[module]] = _NoBooks(scope[module])
    code = entry.code.replace(co_names=tuple(renamed.get(word, word) for word in entry.code.co_names))
    function = frame.function
    made = type(function)(code, scope, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made, tuple(renamed.values())


def _begin_step():
    """As the program has it: who has marked a step once has to mark all of them, and nobody else shall have to."""
    from torch._inductor.cudagraph_trees import MarkStepBox

    if MarkStepBox.mark_step_counter:
        torch.compiler.cudagraph_mark_step_begin()
    else:
        _C.begin_invocation()


def _run(compiled, examples, keywords, times):
    for _ in range(times):
        _begin_step()
        compiled(*examples, **keywords)


def _versions(values):
    """How often each tensor among the arguments was changed; None of one where nobody counts."""
    if isinstance(values, torch.Tensor):
        return [None if values.is_inference() else values._version]
    return [count for value in values for count in _versions(value)] if isinstance(values, (tuple, list)) else []


def _direct(graph):
    """Calls Inductor's code as the graph has it now: it is exchanged when it is graphed."""
    def call(*inputs):
        return graph.current_callable(list(inputs))
    return call


def seal(compiled, examples=(), keywords=None, *, warmups=3):
    """Seals what torch.compile made of a function, a method or a module for these arguments.

    `compiled` is what torch.compile returned; `examples` the arguments (a tuple, or one tensor) and `keywords` those that
    are given by name (a dict), of the shapes, strides, data types and devices that calls will have. It is called
    `warmups` times, so that it is compiled, warmed up and recorded; tensors that the function changes are changed.

    Returns a callable of the same arguments, those by name in any order. A call whose arguments, modes (grad, autocast,
    inference, default device and data type, torch function and dispatch modes), hooks or guards are not what they were
    goes to `compiled`: it recompiles or raises. rondo_torch.seal_info() counts such calls by reason. Each call begins a
    step, as one of `compiled` does. Where the function changes tensors that it is given, a call whose tensors overlap in
    memory in another way than the examples raises. SealError: it cannot be sealed, and why.
    """
    arguments = (examples,) if isinstance(examples, torch.Tensor) else tuple(examples)
    keywords = {sys.intern(name): value for name, value in (keywords or {}).items()}
    frame = _Frame(compiled)
    busy = [hooks for hooks in frame.hooks() if hooks]
    if busy:
        raise SealError(f"{type(frame.module).__name__} has hooks, which only a call of the module runs: remove them, or "
                        "compile a function that calls the module")
    if frame.module is not None and "forward" in vars(frame.module) and frame.self is frame.module:
        raise SealError(f"{type(frame.module).__name__} has a forward of its own on the object")
    described = frame.locals(arguments, keywords)
    again = _with_hooks(compiled)
    _run(again, arguments, keywords, warmups)
    entry = _entry_for(frame, described, arguments, keywords)
    if _modules_without_hooks(entry.guard_manager.root, described[0][0] if frame.self is not None else None):
        # It was compiled before, or calls none of these modules: anew, with guards that see a hook come.
        torch._dynamo.reset_code(frame.code)
        _run(again, arguments, keywords, warmups)
        entry = _entry_for(frame, described, arguments, keywords)
    name = _compiled_name(entry, frame)
    spy = _Spy(frame.function.__globals__[name])
    leaves = (*arguments, *keywords.values())
    before = _versions(leaves)
    with _probing:
        body, names = _body(frame, entry, name, spy, None)
        _begin_step()
        body(*(() if frame.self is None else (frame.self,)), *arguments, **keywords)
    writes = None in before or _versions(leaves) != before
    for word in names:
        del frame.function.__globals__[word]
    graph, core = spy.graph(), spy.function
    if graph is not None:
        core = _direct(graph)
    spy.forget()
    body, names = _body(frame, entry, name, core, graph)
    root = entry.guard_manager.root
    identities = None
    if frame.self is None and frame.module is None:
        identities = _own_checks(root, described, frame.function.__globals__)
    what = {
        "examples": leaves, "writes": writes, "keywords": tuple(keywords), "body": body, "fallback": again,
        "self": frame.self, "guards": root.check,
        "own": identities is not None, "identities": [*(identities or []), *frame.defaults_by_name()],
        "function": frame.function,
        "mode": torch._C._dynamo.guards.GlobalStateGuard().check, "locals": described, "empty": frame.hooks(),
        "device_module": vars(torch.utils._device),
    }
    try:
        sealed = _C.make_sealed(what)
    except RuntimeError as error:
        for word in names:
            del frame.function.__globals__[word]
        raise SealError(str(error)) from None
    _watch(sealed, frame.function.__globals__, names)
    return sealed


def _retire_all(original):
    """torch._dynamo.reset: what was compiled is forgotten, and what was sealed of it as well."""
    @functools.wraps(original)
    def reset(*arguments, **keywords):
        for sealed in list(_alive):
            _C.sealed_retire(sealed)
        return original(*arguments, **keywords)

    return reset


def _watch(sealed, scope, names):
    """Retires it when Dynamo throws away what it was made of, and cleans up when it goes."""
    for name in ("reset", "reset_code_caches"):
        if not patches.install(f"sealing.{name}", f"torch._dynamo:{name}", _retire_all):
            raise SealError(f"nobody would say when it is out of date: {patches.refused[f'sealing.{name}']}")
    _alive.add(sealed)

    def clean():
        for word in names:
            scope.pop(word, None)

    weakref.finalize(sealed, clean).atexit = False


def seal_info(sealed):
    """How a sealed callable was used: `calls` that it served, `left` by reason, and whether its own checks are all."""
    calls, left, own = _C.sealed_counts(sealed)
    return {"calls": calls, "left": {name: count for name, count in zip(REASONS, left) if count}, "guards": not own}
