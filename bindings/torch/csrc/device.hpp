// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <torch/extension.h>

namespace rondo_torch {
// What torch.rondo asks beside what torch.accelerator has.
void bind_device(pybind11::module& m);
}  // namespace rondo_torch
