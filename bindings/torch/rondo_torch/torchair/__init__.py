# SPDX-License-Identifier: Apache-2.0
"""`torch.compile` through Rondo's graph compiler, with the names of TorchAir.

    import rondo_torch.torchair as torchair

    backend = torchair.get_npu_backend(compiler_config=torchair.CompilerConfig())
    model = torch.compile(model, backend=backend, fullgraph=True, dynamic=False)

`torch.compile(model, backend="rondo")` is the same with the default configuration. docs/torch-backend.md tells the whole.
Importing this imports neither Dynamo nor Inductor: what compiles is loaded by the first compilation.
"""
from . import ge
from .backend import Backend, export_model, get_compiler, get_npu_backend, load_model, load_operators, rondo
from .config import CompilerConfig
from .registry import ConversionError, register_fx_node_ge_converter

__all__ = ["Backend", "CompilerConfig", "ConversionError", "export_model", "ge", "get_compiler", "get_npu_backend",
           "load_model", "load_operators", "register_fx_node_ge_converter", "rondo"]
