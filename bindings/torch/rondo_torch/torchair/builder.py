# SPDX-License-Identifier: Apache-2.0
"""A graph of Rondo's operators, made from a graph of ATen's with every size a number."""
import operator

import torch

from .. import _C
from . import ge
from .registry import ConversionError, find

CONSTANT_BYTES_MAX = 64 << 20  # of what a node without inputs makes


class Builder:
    """What a converter gets. `op` makes a node and returns its first output, `node` all of them."""

    def __init__(self, name="graph"):
        self.graph = _C.IrGraph(name)
        self._constants = {}
        self._numbered = 0
        self.prefix = None  # the FX node that is being converted
        self.wanted = None  # which of its results somebody uses; None: all

    def name(self, base):
        self._numbered += 1
        return f"{base}.{self._numbered}"

    def input(self, name, like, order=None):
        """An input that lies in memory as `order` says: the axes from the outermost in."""
        dims = list(like.shape)
        if order is None:
            value = self.graph.input(name, like, dims)
            return ge.Tensor(self, value, tuple(dims), like.dtype)
        value = ge.Tensor(self, self.graph.input(name, like, [dims[axis] for axis in order]))
        back = [order.index(axis) for axis in range(len(order))]
        turned = self.op("Transpose", value, perm=back)
        turned.shape, turned.dtype = tuple(dims), like.dtype
        if order == [1, 0]:
            turned.transposed = value
        return turned

    def constant(self, value, name="constant"):
        made = ge.Tensor(self, self.graph.constant(self.name(name), value), tuple(value.shape), value.dtype)
        made.value = value
        return made

    def ints(self, values):
        """A one-dimensional constant, as shapes, axes and pads are."""
        key = ("ints", tuple(values))
        if key not in self._constants:
            self._constants[key] = self.constant(torch.tensor(list(values), dtype=torch.int64), "ints")
        return self._constants[key]

    def scalar(self, value, dtype):
        key = ("scalar", repr(value), type(value), dtype)
        if key not in self._constants:
            self._constants[key] = self.constant(torch.tensor(value, dtype=dtype), "scalar")
        return self._constants[key]

    def node(self, operator_name, inputs, outputs, attributes, name=None):
        numbers = [-1 if one is None else one.number for one in inputs]
        made = self.graph.node(operator_name, name or self.name(self.prefix or operator_name), numbers, attributes, outputs)
        return [ge.Tensor(self, number) for number in made]

    def op(self, operator_name, *inputs, **attributes):
        return self.node(operator_name, inputs, 1, attributes)[0]

    def cast(self, value, dtype):
        """The value as that type. `value` may be a number."""
        if not isinstance(value, ge.Tensor):
            return self.scalar(value, dtype)
        if value.dtype == dtype:
            return value
        made = self.op("Cast", value, to=_C.dtype_number(torch.empty(0, dtype=dtype)))
        made.shape, made.dtype = value.shape, dtype
        return made

    def reshape(self, value, shape):
        if value.shape is not None and tuple(value.shape) == tuple(shape):
            return value
        # 0 is a size here, and not "as the input has it".
        made = self.op("Reshape", value, self.ints(shape), **({"allowzero": 1} if 0 in shape else {}))
        made.shape, made.dtype = tuple(shape), value.dtype
        return made

    def is_wanted(self, index):
        return self.wanted is None or index in self.wanted


def dense_order(tensor):
    """The axes from the outermost in, where the tensor fills its memory without gaps: None when they are in order; False
    when it does not."""
    if tensor.is_contiguous():
        return None
    axes = sorted(range(tensor.dim()), key=lambda axis: (-tensor.stride(axis), axis))
    expected = 1
    for axis in reversed(axes):
        if tensor.shape[axis] != 1 and tensor.stride(axis) != expected:
            return False
        expected *= tensor.shape[axis]
    return axes if axes != list(range(len(axes))) else None


def contiguous_like(tensor):
    return torch.empty(tuple(tensor.shape), dtype=tensor.dtype, device="meta")


def layout_of(tensor):
    """(`tensor` as a meta tensor in the layout that its memory will have, the order of its axes there or None)."""
    order = dense_order(tensor)
    if order is False:
        return contiguous_like(tensor), None
    return torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta"), order


def fills_its_storage(tensor):
    """Whether each byte of the tensor's storage is of one of its elements."""
    return (tensor.storage_offset() == 0 and dense_order(tensor) is not False
            and tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes())


def storage_of(tensor):
    return tensor.untyped_storage()._cdata


class Concrete(torch.fx.Interpreter):
    """Every node's value for inputs of known sizes, as fake tensors."""

    def __init__(self, module):
        super().__init__(module)
        self.values = {}

    def run_node(self, node):
        self.values[node] = value = super().run_node(node)
        return value


class Like:
    """What a tensor is like, where there is none."""

    def __init__(self, shape, stride, dtype, device):
        self.shape, self._stride, self.dtype, self.device = shape, stride, dtype, device

    def stride(self):
        return self._stride


def concrete_values(module, inputs):
    """`inputs`: tensors, or what they are like, or numbers."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    interpreter = Concrete(module)
    with FakeTensorMode(allow_non_fake_inputs=True):
        fakes = [torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device=one.device)
                 if isinstance(one, (torch.Tensor, Like)) else one for one in inputs]
        interpreter.run(*fakes)
    return interpreter.values


def is_tensors(value):
    if isinstance(value, torch.Tensor):
        return True
    return isinstance(value, (list, tuple)) and bool(value) and any(is_tensors(one) for one in value)


def describe(value):
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return repr(value)


class Refused(Exception):
    """A node that cannot be converted, and why."""

    def __init__(self, node, why, layer="converter"):
        super().__init__(f"{node.target} ({node.name}): {why}")
        self.node, self.why, self.layer = node, why, layer


def _is_plain(target, out):
    """Of numbers, not of tensors: it is computed while the graph is built. What calls a graph (torch.cond) is not."""
    return not isinstance(target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)) and not is_tensors(out)


class Conversion:
    """Node by node from `module` to a Builder. `values` are the fake values of its nodes. `device`: what is on
    another one is refused. `refused`: where given, a node that cannot be converted is put there, and what it makes is
    taken for an input. `frozen`: placeholder -> the constant that it is. `names`: placeholder -> the input's name."""

    def __init__(self, module, values, *, device, frozen=None, refused=None, names=None):
        self.module, self.values, self.frozen, self.device = module, values, frozen or {}, device
        self.refused, self.names = refused, names or {}
        self.builder = Builder(getattr(module, "rondo_name", "graph"))
        self.env, self.inputs, self.outputs = {}, [], []
        self._bases, self._numbers = None, {}  # storage -> the first node that fills it; node -> its output of the plan
        # Of the output node: an output of the plan, a view of one, an input, a view of one, or a value as it is.
        self.results = []

    def run(self):
        with ge.building(self.builder):
            for node in self.module.graph.nodes:
                getattr(self, f"_{node.op}")(node)
        return self

    def _placeholder(self, node):
        value = self.values[node]
        if not isinstance(value, torch.Tensor):
            self.env[node] = value
            return
        if node.name in self.frozen:
            self.env[node] = self.builder.constant(self.frozen[node.name], node.name)
            return
        if not node.users:
            return
        like, order = layout_of(value)
        self.env[node] = self.builder.input(self.names.get(node.name, node.name), like, order)
        self.env[node].like = value
        self.inputs.append((node, like))

    def _get_attr(self, node):
        value = self.module
        for part in node.target.split("."):
            value = getattr(value, part)
        self.env[node] = self.builder.constant(value, node.name) if isinstance(value, torch.Tensor) else value

    def _arguments(self, node):
        def of(one):
            return self.env[one]

        return torch.fx.map_arg(node.args, of), torch.fx.map_arg(node.kwargs, of)

    def _call_function(self, node):
        args, kwargs = self._arguments(node)
        if node.target is operator.getitem:
            self.env[node] = args[0][args[1]]
            return
        out = self.values[node]
        if _is_plain(node.target, out):
            self.env[node] = out
            return
        if node.target is torch.ops.aten.sym_size.int:
            self.env[node] = args[0].shape[args[1]]
            return
        if self.refused is None:
            self.env[node] = self._convert(node, out, args, kwargs)
            return
        if node not in self.refused:
            try:
                self.env[node] = self._convert(node, out, args, kwargs)
                return
            except Refused as refusal:
                self.refused[node] = (refusal.layer, refusal.why)
        self.env[node] = self._stand_in(node, out)

    def _stand_in(self, node, out, suffix=""):
        """An input in the place of what is computed elsewhere."""
        if isinstance(out, (list, tuple)):
            return [self._stand_in(node, one, f"{suffix}.{i}") for i, one in enumerate(out)]
        if not isinstance(out, torch.Tensor):
            return out
        like = contiguous_like(out)
        self.inputs.append((node, like))
        return self.builder.input(f"{node.name}{suffix}.computed", like)

    def _check_device(self, node, out):
        for source in [*node.all_input_nodes, node]:
            for one in torch.utils._pytree.tree_leaves(self.values[source]):
                if isinstance(one, torch.Tensor) and one.device != self.device and source.op != "get_attr":
                    raise Refused(node, f"it has a tensor of {one.device}, and the graph is compiled for {self.device}")

    def _convert(self, node, out, args, kwargs):
        if not is_tensors(out):
            raise Refused(node, f"its result is {describe(out)}, not a tensor")
        self._check_device(node, out)
        convert = find(node.target)
        if convert is None:
            raise Refused(node, "no converter is registered for it")
        builder = self.builder
        builder.prefix = node.name
        several = not isinstance(out, torch.Tensor)
        builder.wanted = {user.args[1] for user in node.users if user.users} if several else None
        try:
            made = convert(builder, out, *args, **kwargs)
        except ConversionError as error:
            raise Refused(node, str(error), error.layer) from error
        except NotImplementedError as error:
            raise Refused(node, str(error), "kernel") from error
        except RuntimeError as error:
            raise Refused(node, str(error)) from error
        finally:
            builder.prefix = None
        return self._settle(node, out, made)

    def _settle(self, node, out, made):
        if not isinstance(out, torch.Tensor):
            if not isinstance(made, (list, tuple)) or len(made) != len(out):
                raise Refused(node, f"its converter gives {made!r} for {len(out)} results")
            return [self._settle(node, one, value) for one, value in zip(out, made)]
        if made is None:
            return None
        if not isinstance(made, ge.Tensor):
            raise Refused(node, f"its converter gives a {type(made).__name__}, not a ge.Tensor")
        if made.shape is not None and made.dtype is not None:
            if tuple(made.shape) == tuple(out.shape) and made.dtype == out.dtype:
                return made  # it may be an input: that one stays as it is
        fresh = ge.Tensor(self.builder, made.number, tuple(out.shape), out.dtype)
        fresh.like = out
        fresh.transposed = made.transposed
        fresh.convolution = made.convolution if len(node.users) == 1 else None
        return fresh

    def _output(self, node):
        for source in node.args[0]:
            self.results.append(self._result(source))

    def _result(self, source):
        if not isinstance(source, torch.fx.Node):
            return "value", source
        value = self.env.get(source)
        if source.op == "placeholder":
            return "input", source
        if not isinstance(value, ge.Tensor):
            return "value", value
        base = self._base_of(source)
        if base is source:
            return "output", self._add_output(source)
        view, whole = self.values[source], self.values[base]
        place = tuple(view.shape), view.stride(), view.storage_offset() - whole.storage_offset()
        if base.op == "placeholder":
            return "input view", (base, whole.stride(), *place)
        return "view", (self._add_output(base), *place)

    def _base_of(self, source):
        """The node of whose memory `source` is a view in PyTorch, where the two are of one type: itself for the most."""
        view = self.values[source]
        if self._bases is None:
            self._bases = {}
            for node in self.module.graph.nodes:
                one = self.values.get(node)
                if not isinstance(one, torch.Tensor) or not isinstance(self.env.get(node), ge.Tensor):
                    continue
                # An input may be a view itself, of what nobody here knows.
                if node.op == "placeholder" or (node.op == "call_function" and fills_its_storage(one)):
                    self._bases.setdefault(storage_of(one), node)
        base = self._bases.get(storage_of(view), source)
        same = self.values[base].dtype == view.dtype and (self.refused is None or base not in self.refused)
        return base if same else source

    def _add_output(self, source):
        if source not in self._numbers:
            self._numbers[source] = len(self.outputs)
            self._write_output(source, self.env[source])
        return self._numbers[source]

    def _write_output(self, source, value):
        like, order = layout_of(self.values[source])
        if order is not None:
            value = self.builder.op("Transpose", value, perm=list(order))
        self.builder.graph.output(value.number, f"output_{len(self.outputs)}")
        self.outputs.append(like)

    def plan(self, config, host=False):
        """Compiled. `host`: for the host, whatever device the tensors are on."""
        index = -1 if host or self.device.type == "cpu" else self.device.index
        return _C.Plan(self.builder.graph, index, [like for _, like in self.inputs], self.outputs, config.flags())
