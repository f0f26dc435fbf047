// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <torch/extension.h>

namespace rondo_torch {
// Bindings of graph trees that PyTorch has in its CUDA module only, under their names there, for any device.
void bind_upstream(pybind11::module& m);
// CUDA's graphs as an implementation of GraphImplInterface, and graphs of a type of device that is not the accelerator.
void bind_contract(pybind11::module& m);
// An implementation of GraphImplInterface for another package's device over AscendCL.
void bind_npu(pybind11::module& m);
// Graphs of Rondo's operators and their plans, for rondo_torch.torchair.
void bind_torchair(pybind11::module& m);
}  // namespace rondo_torch
