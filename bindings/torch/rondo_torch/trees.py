# SPDX-License-Identifier: Apache-2.0
"""Graph trees in C under torch.compile(mode="reduce-overhead").

Inductor hands each compiled function, or each part of one that can be graphed, to compile_fx.cudagraphify. For devices of
ours it gets back the callable of the tree manager itself (csrc/tree_function.cpp): from then on no Python is in between.
What the manager has to say comes out of PyTorch's own logs, counters and warnings, as people know them from CUDA.
"""
import contextlib
import functools
import inspect
import operator
import os
import re
import threading
import types
import warnings

import torch

from . import _C, config as choice, gates, patches

MANAGER = "trees.cudagraphify"
BACKWARD = "trees.get_manager"
RESET = "trees.dynamo_reset"
RESET_TREES = "trees.reset_cudagraph_trees"
INCOMPLETE = "trees.mark_warmup_incomplete"
SKIPS = "trees.skips"
POST_COMPILE = "trees.post_compile"
NAMES = (MANAGER, BACKWARD, RESET, POST_COMPILE)

INFERENCE, FORWARD, BACKWARD_MODE = 0, 1, 2

_lock = threading.RLock()
_state = types.SimpleNamespace(installed=False)
_compiling = threading.local()  # .graph: the CompiledFxGraph whose callables are being made
_skips = {}  # reason -> how often
_mutations = {}  # name of a function -> what says where its inputs are written


# ------------------------------------------------------------------------------------------------------------ options


def _choices(triton):
    """rondo_tree_options by Inductor's settings; each setting that a release lacks has its usual value."""
    def setting(name, default):
        value = getattr(triton, name, default)
        return default if value is None else value

    return {
        "record_after": 1 if setting("skip_cudagraph_warmup", False) else 2,
        "always_warm_up": int(setting("force_cudagraphs_warmup", False)),
        "rerecord_limit": int(setting("cudagraph_unexpected_rerecord_limit", 128)),
        "size_limit": int(setting("cudagraph_max_recorded_sizes", 0)),
        "size_warning": int(setting("cudagraph_dynamic_shape_warn_limit", 0)),
        "check_pool": int(setting("slow_path_cudagraph_asserts", True)),
        "synchronize": int(setting("force_cudagraph_sync", False)),
        "conflict": int(os.environ.get("RONDO_TORCH_CONFLICT", "error") == "copy"),
    }


def _name(mode, stack_traces):
    """For messages and the report: the function of the user's program, the compilation, and which part of it."""
    found = [re.findall(r'File "[^"]*", line \d+, in (\S+)', trace) for trace in stack_traces or () if trace]
    function = next((names[-1] for names in found if names), "compiled function")
    try:
        compilation = torch._guards.CompileContext.current_compile_id()
    except AttributeError:
        compilation = None
    kind = ("inference", "forward", "backward")[mode]
    with _lock:
        _state.numbers = getattr(_state, "numbers", 0) + 1
        return f"{function} [{compilation or '-'}] {kind} #{_state.numbers}"


# -------------------------------------------------------------------------------------------------------- cudagraphify


def device_type_of(graph):
    """The one type of ours that a compiled graph runs on, or None."""
    found = [name for name in getattr(graph, "device_types", ()) if gates.has_trees(name)]
    return found[0] if len(found) == 1 else None


def _maker(device_type, index):
    """What makes the callable of a tree on that device."""
    attachment = gates.attachment(device_type)
    if attachment is None:
        return _C.tree_function
    from . import foreign

    return functools.partial(_C.tree_function, adapter=foreign.device_of(attachment, index))


def _sizes(inputs):
    numbers = tuple(item for item in inputs if isinstance(item, int))
    return numbers[0] if len(numbers) == 1 else (numbers or None)


def _only_sizes(model, graphed, wanted):
    """Other sizes than those that are wanted are called as they are."""
    wanted = {tuple(size) if isinstance(size, (list, tuple)) else size for size in wanted}

    def run(inputs):
        return (graphed if _sizes(inputs) in wanted else model)(inputs)

    run.graphed = graphed
    return run


def _inner(placeholders):
    """Inputs of a part of a compiled function that are not the function's own: other parts, or what lies between them, made
    them for this one, which may write them."""
    graph = getattr(_compiling, "graph", None)
    known = graph.cudagraph_info if graph is not None else None
    names = {placeholder.name for placeholder in known.placeholders} if known is not None else ()
    return [index for index, placeholder in enumerate(placeholders) if names and placeholder.name not in names]


def _place(value):
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None


def _copied(tensor):
    """The same layout on memory of its own."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    whole = tensor.as_strided((span,), (1,), tensor.storage_offset())
    return whole.clone().as_strided(tensor.shape, tensor.stride(), 0)


def _off_inputs(model, indices):
    """The model with no output on the memory of these inputs. Where a recording has a copy of such an input, the model
    writes the copy, and the tensor that came in, on which the tree would hand out the output, has what was there before."""
    def run(inputs):
        places = {place for place in (_place(inputs[index]) for index in indices) if place is not None}
        outputs = model(inputs)
        return [_copied(output) if _place(output) in places and output.numel() else output for output in outputs]

    return run


def make(model, device_type, static_input_idxs=(), *, device_index, is_backward, is_inference, stack_traces=None,
         constants=(), placeholders=(), mutated_input_idxs=(), skip=None, **_others):
    """The callable of a tree for a compiled function of that device."""
    from torch._inductor import config

    attachment = gates.attachment(device_type)
    if attachment is not None and attachment.why_no_trees:  # it passed gates that do not know of this
        _say(1, f"'{device_type}' is called directly from now on: {attachment.why_no_trees}")
        return model
    mode = BACKWARD_MODE if is_backward else INFERENCE if is_inference else FORWARD
    name = _name(mode, stack_traces)
    if mutated_input_idxs:
        _mutations[name] = (placeholders, tuple(mutated_input_idxs), tuple(static_input_idxs))
    constants = tuple(item for item in constants
                      if isinstance(item, torch.Tensor) and item.device == torch.device(device_type, device_index))
    inner = _inner(placeholders)
    model = _off_inputs(model, inner) if inner else model
    graphed = _maker(device_type, device_index)(
        model, name=name, device=device_index, mode=mode, static=tuple(static_input_idxs), mutated=tuple(mutated_input_idxs),
        constants=constants, outputs=len(stack_traces) if stack_traces else None, traces=list(stack_traces or ()), skip=skip,
        simple=not config.triton.cudagraph_trees, options=_choices(config.triton))
    wanted = getattr(config.triton, "cudagraph_capture_sizes", None)
    return _only_sizes(model, graphed, wanted) if wanted else graphed


def _undecided(original, model, static_input_idxs, options):
    """Somebody asks for a callable outside a compilation: the device is that of the first call's tensors."""
    chosen = None

    def run(inputs):
        nonlocal chosen
        if chosen is None:
            tensors = [item for item in (*inputs, *options.get("constants", ())) if isinstance(item, torch.Tensor)]
            kind = next((item.device.type for item in tensors if gates.has_trees(item.device.type)), None)
            if kind is None:
                chosen = original(model, static_input_idxs, **options)
            else:
                chosen = make(model, kind, static_input_idxs, **options)
        return chosen(inputs)

    return run


def _cudagraphify(original):
    @functools.wraps(original)
    def cudagraphify(model, static_input_idxs=(), **options):
        graph = getattr(_compiling, "graph", None)
        if graph is not None and _is_nobodys(graph):
            return model
        if choice.trees == "upstream":
            return original(model, static_input_idxs, **options)
        if graph is None:
            return _undecided(original, model, static_input_idxs, options)
        kind = device_type_of(graph)
        if kind is None:
            return original(model, static_input_idxs, **options)
        if choice.trees == "off":
            return model
        return make(model, kind, static_input_idxs, **options)

    return cudagraphify


# ------------------------------------------------------------------------------------------------- compiled graphs, skips


def _skip_was_counted(reason):
    """A skip that Inductor has counted and not told, since the device is not CUDA."""
    from torch._inductor import config, cudagraph_utils

    text = reason if reason.startswith("skipping cudagraphs") else f"skipping cudagraphs due to {reason}"
    note_skip(text)
    cudagraph_utils.cudagraphs_log.warning(text)
    if config.triton.cudagraph_or_error:
        raise RuntimeError(text)


def note_skip(text):
    with _lock:
        _skips[text] = _skips.get(text, 0) + 1


def skips():
    """Reason -> how often a compiled function was not graphed for it."""
    with _lock:
        return dict(_skips)


def forget_skips():
    with _lock:
        _skips.clear()


def _is_nobodys(graph):
    """Of a package's device that is not attached any more: a compiled graph out of Inductor's caches may say that it could be
    graphed, as it could when it was made."""
    types = set(graph.device_types) - {"cpu", "meta"}
    return types == {torch._C._get_privateuse1_backend_name()} and device_type_of(graph) is None


def _ours_alone(graph):
    return device_type_of(graph) is not None and "cuda" not in graph.device_types


def _init(original):
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self, *arguments, **options):
        given = signature.bind(self, *arguments, **options).arguments
        wanted = bool(given["cudagraphs"])
        original(self, *arguments, **options)
        self.rondo_views = _views(given["gm"].graph) if wanted else {}  # a cached graph has them, too
        if wanted and self.disabled_cudagraphs_reason and _ours_alone(self):
            _skip_was_counted(self.disabled_cudagraphs_reason)

    return __init__


def _post_compile(original):
    @functools.wraps(original)
    def post_compile(self, example_inputs, constants, graph_kwargs):
        before, _compiling.graph = getattr(_compiling, "graph", None), self
        wanted = bool(graph_kwargs["cudagraphs"])
        if not wanted and graph_kwargs["is_backward"]:
            _tell_backward(self, graph_kwargs)
        kept = self.fx_kwargs
        if wanted and choice.trees == "rondo" and _ours_alone(self):
            self.fx_kwargs = {**kept, "static_input_idxs": _static(self, graph_kwargs)}
        try:
            result = original(self, example_inputs, constants, graph_kwargs)
        finally:
            _compiling.graph, self.fx_kwargs = before, kept
        if wanted and not graph_kwargs["cudagraphs"] and _ours_alone(self):
            _tell_skip(self)
        return result

    return post_compile


def _views(graph):
    """Name of an output -> name of the input whose memory it may lie on, through operators that make views."""
    found = {}
    for output in graph.find_nodes(op="output"):
        for value in torch.utils._pytree.tree_leaves(output.args):
            node = value
            while isinstance(node, torch.fx.Node) and node.op == "call_function" and node.args:
                getitem = node.target is operator.getitem
                if not (getitem or getattr(node.target, "is_view", False) or node.target is torch.ops.aten.reshape.default):
                    break
                node = node.args[0]
            if isinstance(node, torch.fx.Node) and node.op == "placeholder":
                found[value.name] = node.name
    return found


def _static(graph, graph_kwargs):
    """Inputs that stay where they are. Inductor takes all that a forward has saved for such; but of the forward's own
    inputs, saved as they are or through views, only those stay that stay for the forward. The others are tensors of the
    user's, new ones at each step. A backward is told by the object that its forward shares with it."""
    static = tuple(graph.fx_kwargs.get("static_input_idxs") or ())
    boxed, known = graph_kwargs.get("boxed_forward_device_index"), graph.cudagraph_info
    if boxed is None or known is None or graph.fx_kwargs.get("is_inference"):
        return static
    names = [placeholder.name for placeholder in known.placeholders]
    if not graph_kwargs["is_backward"]:
        moving = {name for index, name in enumerate(names) if index not in static}
        views = getattr(graph, "rondo_views", {})
        boxed.rondo_moving = moving | {name for name, root in views.items() if root in moving}
        return static
    moving = getattr(boxed, "rondo_moving", ())
    return tuple(index for index in static if index >= len(names) or names[index] not in moving)


def _tell_backward(graph, graph_kwargs):
    """A backward without graphs, by an annotation say: forwards that were graphed wait no more when it runs."""
    boxed = graph_kwargs.get("boxed_forward_device_index")
    if boxed is None or boxed.value is None or device_type_of(graph) is None:
        return
    model, manager = graph.current_callable, Manager(boxed.value)

    def run(inputs):
        manager.set_to_running_backward()
        return model(inputs)

    graph.current_callable = run


def _tell_skip(graph):
    from torch._inductor import config, cudagraph_utils

    if graph.disabled_cudagraphs_reason:
        return _skip_was_counted(graph.disabled_cudagraphs_reason)
    reasons = graph.cudagraph_info.cudagraph_fail_reasons if graph.cudagraph_info else ()
    if not reasons:
        return None
    text = f"skipping cudagraphs due to {reasons}"
    note_skip(text)
    if config.graph_partition and getattr(config, "cudagraph_policy", None) is None:
        return None  # of the parts of a function nobody is told
    return cudagraph_utils.log_cudagraph_skip_and_bump_counter(text)


# --------------------------------------------------------------------------------------------------- what managers say


def _mutation_text(text):
    """With the place in the user's program, as far as Inductor knows it."""
    from torch._inductor import cudagraph_utils

    name = text.rpartition(" of '")[2].rstrip("'")
    placeholders, mutated, static = _mutations.get(name, ((), (), ()))
    indices = [index for index in mutated if index not in static]
    if indices and len(placeholders) > max(indices):
        return cudagraph_utils.get_mutation_stack_trace(placeholders, indices)
    return text


_SIZES = ("CUDAGraph supports dynamic shapes by recording a new graph for each distinct input size. Recording too many graphs "
          "may lead to extra overhead: {}")
_PENDING = ("Unable to hit fast path of CUDAGraphs because of pending, uninvoked backwards. Consider running with "
            "torch.no_grad() or using torch.compiler.cudagraph_mark_step_begin() before each model invocation ({})")


def perf_hints():
    """The log that TORCH_LOGS=perf_hints shows."""
    return torch._logging.getArtifactLogger("torch._inductor.cudagraph_utils", "perf_hints")


def _say(level, text):
    """A line of a manager's, where people look for it."""
    from torch._inductor import cudagraph_utils

    log = cudagraph_utils.cudagraphs_log
    if level > 1:
        log.debug(text)
    elif text.startswith("unable to hit fast path"):
        warnings.warn(_PENDING.format(text))
    elif "sizes, and each recording takes time" in text:
        perf_hints().warning(_SIZES.format(text))
    elif text.startswith("skipping cudagraphs due to mutated inputs"):
        text = _mutation_text(text)
        note_skip(text)
        cudagraph_utils.log_cudagraph_skip_and_bump_counter(text)
    elif "exceeds the limit of" in text:
        text = "skipping cudagraph due to exceeding max re-recording limit: " + text
        note_skip(text)
        cudagraph_utils.log_cudagraph_skip_and_bump_counter(text)
    elif "is called directly from now on" in text:
        text = "skipping cudagraphs: " + text
        note_skip(text)
        cudagraph_utils.log_cudagraph_skip_and_bump_counter(text)
    else:
        log.warning(text)


# -------------------------------------------------------------------------------------------------- backwards, reset


class Manager:
    """What Inductor asks of a tree manager: the trees of the device that the calling thread, or whoever it works for, has."""

    def __init__(self, device_index):
        self.device_index = device_index

    def set_to_running_backward(self):
        for manager in _C.tree_managers(self.device_index, _C.tree_context()):  # of whatever type
            manager.set_to_running_backward()


def _get_manager(original):
    signature = inspect.signature(original)

    @functools.wraps(original)
    def get_manager(*arguments, **options):
        given = signature.bind(*arguments, **options).arguments  # without a device: of the current one
        graph = getattr(_compiling, "graph", None)
        ours = graph is not None and not given.get("create_if_none_exists", True) and "cuda" not in graph.device_types
        if ours and choice.trees != "upstream":
            return Manager(given.get("device_index"))
        return original(*arguments, **options)

    return get_manager


def managers():
    """All trees of the process (_C.TreeManager)."""
    return _C.tree_managers()


def reset():
    """Drops all recordings; outputs that are alive stay usable. The memory of the pools goes back to the device: what is
    recorded next has pools of its own."""
    _C.tree_reset()
    if hasattr(torch, "rondo") and torch.rondo.is_initialized():
        with contextlib.suppress(RuntimeError):  # while something captures
            torch.rondo.empty_cache()
    with _lock:
        _mutations.clear()


def _and_reset(original):
    @functools.wraps(original)
    def function(*arguments, **options):
        result = original(*arguments, **options)
        from torch._inductor import cudagraph_trees

        cudagraph_trees.MarkStepBox.mark_step_counter = 0
        reset()
        return result

    return function


def mark_warmup_incomplete():
    """From inside a function that warms up: its next call warms up once more, instead of being recorded. At any other time
    nothing. PyTorch has it from 2.14 on as torch.compiler.cudagraph_mark_warmup_incomplete, which does this as well."""
    for manager in _C.tree_managers(-1, _C.tree_context()):
        manager.mark_warmup_incomplete()


def _and_mark_incomplete(original):
    @functools.wraps(original)
    def function(*arguments, **options):
        mark_warmup_incomplete()
        return original(*arguments, **options)

    return function


def install():
    """Whether graph trees are in place; what is missing is in patches.refused."""
    with _lock:
        post, trees = "torch._inductor.output_code:CompiledFxGraph.", "torch._inductor.cudagraph_trees:"
        patches.install(POST_COMPILE, post + "post_compile", _post_compile,
                        parameters=("self", "example_inputs", "constants", "graph_kwargs"))
        patches.install(SKIPS, post + "__init__", _init, parameters=("self", "gm", "cudagraphs", "disabled_cudagraphs_reason"))
        patches.install(BACKWARD, trees + "get_manager", _get_manager, parameters=("device_index", "create_if_none_exists"))
        patches.install(RESET_TREES, trees + "reset_cudagraph_trees", _and_reset)
        patches.install(RESET, "torch._dynamo:reset", _and_reset)
        if not why_off():
            patches.install(MANAGER, "torch._inductor.compile_fx:cudagraphify", _cudagraphify,
                            parameters=("model", "static_input_idxs", "device_index", "is_backward", "is_inference"))
            from torch._inductor import cudagraph_trees

            if hasattr(cudagraph_trees, "mark_warmup_incomplete"):
                patches.install(INCOMPLETE, trees + "mark_warmup_incomplete", _and_mark_incomplete)
        if not _state.installed and not why_off():
            from torch._dynamo.mutation_guard import GenerationTracker
            from torch._inductor.cudagraph_trees import MarkStepBox

            _C.tree_sources(GenerationTracker, MarkStepBox)
            _C.tree_log(_say)
            os.register_at_fork(after_in_child=_C.tree_forget_after_fork)
            _state.installed = True
        return not why_off() and gates.install()


def why_off():
    """Why functions of the device are not graphed, or ""."""
    return "; ".join(f"{name}: {patches.refused[name]}" for name in NAMES if name in patches.refused)
