// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <torch/extension.h>

namespace rondo_torch {
// The pool operations that graph trees need of a device (GraphOps), for Python.
void bind_pools(pybind11::module& m);
}  // namespace rondo_torch
