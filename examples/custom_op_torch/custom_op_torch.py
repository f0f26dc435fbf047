# SPDX-License-Identifier: Apache-2.0
"""An operator of one's own in a graph that torch.compile makes: schema, meta, converter, implementation.

    python examples/custom_op_torch/custom_op_torch.py build/bin/examples/operators_add_custom.so
"""
import sys

import torch

import rondo_torch.torchair as torchair

# Implementation: my.domain::AddCustom of the shared library, x + y for two tensors of one shape.
torchair.load_operators(sys.argv[1])

# Schema: what the operator is called, what it takes and gives. PyTorch refuses a second definition.
library = torch.library.Library("ascendc_ops", "DEF")
library.define("ascendc_add(Tensor x, Tensor y) -> Tensor")


# Meta: shape and type of the result without its data, and which inputs are accepted.
@torch.library.impl(library, "ascendc_add", "Meta")
def ascendc_add_meta(x, y):
    torch._check(x.shape == y.shape, lambda: "shape mismatch")
    torch._check(x.dtype == torch.float32 and y.dtype == torch.float32, lambda: "float32 required")
    return torch.empty_like(x)


# Converter: which node of the graph it becomes. It computes nothing.
@torchair.register_fx_node_ge_converter(torch.ops.ascendc_ops.ascendc_add.default)
def convert_ascendc_add(x, y, meta_outputs=None):
    return torchair.ge.custom_op("AddCustom", inputs={"x": x, "y": y}, outputs=["z"])


class AddModel(torch.nn.Module):
    def forward(self, x, y):
        return torch.ops.ascendc_ops.ascendc_add(x, y)


def main():
    config = torchair.CompilerConfig()
    backend = torchair.get_npu_backend(compiler_config=config)
    model = torch.compile(AddModel(), backend=backend, fullgraph=True, dynamic=False)

    x, y = torch.rand(8, 2048), torch.rand(8, 2048)
    z = model(x, y)
    away = (z - (x + y)).abs().max().item()
    print(f"my.domain::AddCustom of {list(x.shape)}: {away:.1e} away from x + y")
    if not torch.allclose(z, x + y, rtol=1e-4, atol=1e-4):
        return "the result is wrong"

    try:
        model(torch.rand(8, 2048), torch.rand(8, 1))
    except Exception as error:  # the meta refuses it, while Dynamo traces
        print("other shapes are refused by the meta:", "shape mismatch" in str(error))
        return 0 if "shape mismatch" in str(error) else "refused for another reason"
    return "two shapes were accepted"


if __name__ == "__main__":
    sys.exit(main())
