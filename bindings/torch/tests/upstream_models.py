# SPDX-License-Identifier: Apache-2.0
"""Small programs for graph trees, called as Inductor calls them: with a list that the callee empties."""
import torch


def boxed(function):
    """A model in Inductor's calling convention: a list of inputs, emptied; a tuple of outputs."""

    def model(inputs):
        taken = list(inputs)
        inputs.clear()
        result = function(*taken)
        del taken
        return result if isinstance(result, tuple) else (result,)

    return model


def graphed(trees, function, inputs, *, outputs=1, static=(), index=0, mode="inference", **more):
    """The function under graph trees of the module `trees`; nothing runs before the first call."""
    run = trees.cudagraphify_impl(
        boxed(function), inputs, static, device_index=index, is_backward=mode == "backward", is_inference=mode == "inference",
        stack_traces=[f"output {i}" for i in range(outputs)], **more)
    return lambda *args: run(list(args))


def two(x, y):
    a = torch.mm(x, y)
    return torch.relu(a) + 1, a.sum(0)


def values(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))
