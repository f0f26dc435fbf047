# SPDX-License-Identifier: Apache-2.0
"""Converters: from an operator of PyTorch's to the function that makes Rondo's nodes of it."""


class ConversionError(RuntimeError):
    """A node cannot become part of a graph of Rondo's. `layer` says which contract was broken: converter, prototype,
    meta, kernel."""

    def __init__(self, layer, text):
        super().__init__(f"{layer}: {text}")
        self.layer = layer


BUILT_IN = {}  # overload -> function(builder, out, *args, **kwargs)
REGISTERED = {}  # overload -> function(*args, meta_outputs=..., **kwargs)


def converts(*overloads):
    """For the converters of this package. `out` is what PyTorch expects: a fake tensor, or a tuple of them."""

    def keep(function):
        for one in overloads:
            BUILT_IN[one] = function
        return function

    return keep


def register_fx_node_ge_converter(aten_op):
    """Decorates the converter of an operator (`torch.ops.domain.name.default`). It is called while a graph is built, with
    the node's arguments (tensors are `ge.Tensor`), and `meta_outputs`, what the operator's meta said; it returns a
    `ge.Tensor`, or a tuple of them. A later registration takes the place of an earlier one, and of a built-in one."""
    import torch

    if isinstance(aten_op, torch._ops.OpOverloadPacket):
        raise TypeError(f"register_fx_node_ge_converter: {aten_op} has overloads; name one, as in {aten_op}.default")
    if not isinstance(aten_op, torch._ops.OpOverload):
        raise TypeError(f"register_fx_node_ge_converter: {aten_op!r} is no operator such as torch.ops.aten.relu.default")

    def keep(converter):
        if not callable(converter):
            raise TypeError(f"register_fx_node_ge_converter: {converter!r} cannot be called")
        REGISTERED[aten_op] = converter
        return converter

    return keep


def find(overload):
    """The function that converts it, called as a built-in one is; None where there is none."""
    converter = REGISTERED.get(overload)
    if converter is None:
        return BUILT_IN.get(overload)

    def call(builder, out, *args, **kwargs):
        return converter(*args, **kwargs, meta_outputs=out)

    return call
