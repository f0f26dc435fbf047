# SPDX-License-Identifier: Apache-2.0
"""What converters build with: tensors of the graph that is being built, and `custom_op`."""
import contextlib
import contextvars

from .. import _C
from .registry import ConversionError

_building = contextvars.ContextVar("rondo_torch.torchair.ge")
REQUIRED, OPTIONAL, DYNAMIC = 0, 1, 2  # rondo_operator_presence


class Tensor:
    """A value of a graph that is being built. It has no data: `shape` and `dtype` are what PyTorch expects, or None
    between the nodes that one converter makes."""

    __slots__ = ("builder", "number", "shape", "dtype", "transposed", "value", "convolution", "like")

    def __init__(self, builder, number, shape=None, dtype=None):
        self.builder, self.number, self.shape, self.dtype = builder, number, shape, dtype
        self.transposed = None  # the matrix that this is the transposed of
        self.value = None  # of a constant: PyTorch's tensor
        self.like = None  # the fake tensor that it is in PyTorch's graph
        self.convolution = None  # (inputs, attributes) of the convolution that this is, where one node alone reads it

    def __repr__(self):
        return f"ge.Tensor({self.number}, shape={self.shape}, dtype={self.dtype})"

    def __bool__(self):
        raise ConversionError("converter", "a graph's tensor has no value while the graph is built")

    def _no_arithmetic(self, *_):
        raise ConversionError("converter", "a converter describes nodes, it computes nothing: use ge.custom_op")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __matmul__ = _no_arithmetic


class attr:
    """Attributes of a stated kind, as TorchAir writes them. Plain Python values do as well."""

    class _Value:
        def __init__(self, value):
            self.value = value

    Int = type("Int", (_Value,), {})
    Float = type("Float", (_Value,), {})
    Str = type("Str", (_Value,), {})
    Bool = type("Bool", (_Value,), {})
    ListInt = type("ListInt", (_Value,), {})
    ListFloat = type("ListFloat", (_Value,), {})
    ListStr = type("ListStr", (_Value,), {})


@contextlib.contextmanager
def building(builder):
    token = _building.set(builder)
    try:
        yield
    finally:
        _building.reset(token)


def prototype(name):
    """The operator of that name, or the one operator `domain::name`."""
    all_of_them = _C.operators()
    if name in all_of_them:
        return _C.operator_info(name)
    found = [one for one in all_of_them if one.rpartition("::")[2] == name]
    if len(found) == 1:
        return _C.operator_info(found[0])
    if found:
        raise ConversionError("prototype", f"'{name}' may be {' or '.join(found)}: say which")
    raise ConversionError("prototype", f"there is no operator '{name}': register it (rondo_operator_register, or a "
                          "library named in RONDO_OPERATOR_PATH or given to torchair.load_operators)")


def _names(known, part):
    return ", ".join(name + ("" if presence == REQUIRED else "?" if presence == OPTIONAL else "...")
                     for name, presence in known[part])


def _inputs(known, given):
    """The tensors in the prototype's order, None for what is absent."""
    what = f"'{known['name']}' has the inputs {_names(known, 'inputs')}"
    order = [name for name, _ in known["inputs"]]
    unknown = [name for name in given if name not in order]
    if unknown:
        raise ConversionError("converter", f"{what}, and none called {', '.join(unknown)}")
    if sorted(given, key=order.index) != list(given):
        raise ConversionError("converter", f"{what}, in this order; the converter gives {', '.join(given)}")
    values = []
    for name, presence in known["inputs"]:
        value = given.get(name)
        if value is None and presence == REQUIRED:
            raise ConversionError("converter", f"{what}, and the converter gives no {name}")
        many = presence == DYNAMIC and isinstance(value, (list, tuple))
        for one in value if many else [value]:
            if one is not None and not isinstance(one, Tensor):
                raise ConversionError("converter", f"input '{name}' of '{known['name']}' is a {type(one).__name__}: it "
                                      "must be a tensor of the graph; numbers are attributes")
            values.append(one)
    while values and values[-1] is None:
        values.pop()
    return values


def _outputs(known, given):
    """The number of values of each output that is named."""
    wanted = [(one, 1) if isinstance(one, str) else (one[0], int(one[1])) for one in given]
    have = [name for name, _ in known["outputs"]]
    named = [name for name, _ in wanted]
    if named != have[:len(named)] or not named:
        raise ConversionError("converter", f"'{known['name']}' has the outputs {_names(known, 'outputs')}, in this "
                              f"order; the converter names {', '.join(named) or 'none'}")
    missing = [name for name, presence in known["outputs"][len(named):] if presence == REQUIRED]
    if missing:
        raise ConversionError("converter", f"'{known['name']}' also has the output {', '.join(missing)}")
    for (name, count), (_, presence) in zip(wanted, known["outputs"]):
        if count != 1 and presence != DYNAMIC:
            raise ConversionError("converter", f"output '{name}' of '{known['name']}' is one tensor, not {count}")
    return [count for _, count in wanted]


def custom_op(op_type, *args, inputs=None, outputs=None, attrs=None, node_name=None):
    """A node of the operator `op_type`, whose prototype is registered with Rondo. `inputs` maps the prototype's names to
    tensors, `outputs` lists its outputs (a dynamic one as `(name, count)`), both in its order; `attrs` maps names to
    values. Positional tensors are the inputs in order. Returns a tensor, or as many as there are outputs."""
    builder = _building.get(None)
    if builder is None:
        raise ConversionError("converter", f"ge.custom_op('{op_type}') outside of a converter: no graph is being built")
    known = prototype(op_type)
    if args:
        if inputs is not None:
            raise ConversionError("converter", f"'{op_type}': inputs are given twice, by position and by name")
        if len(args) > len(known["inputs"]):
            raise ConversionError("converter", f"'{op_type}' has the inputs {_names(known, 'inputs')}, not {len(args)}")
        inputs = {name: value for (name, _), value in zip(known["inputs"], args)}
    counts = _outputs(known, outputs if outputs is not None else [known["outputs"][0][0]])
    values = _inputs(known, dict(inputs or {}))
    plain = {name: getattr(value, "value", value) for name, value in (attrs or {}).items()}
    names = [name for name, _, _ in known["attributes"]]
    unknown = [name for name in plain if name not in names]
    if unknown:
        raise ConversionError("converter", f"'{known['name']}' has the attributes {', '.join(names) or '(none)'}, and "
                              f"none called {', '.join(unknown)}")
    made = builder.node(known["name"], values, sum(counts), plain, node_name)
    results, at = [], 0
    for count, wanted in zip(counts, outputs or [""]):
        part = made[at:at + count]
        results.append(part[0] if isinstance(wanted, str) else part)
        at += count
    return results[0] if len(results) == 1 else tuple(results)
