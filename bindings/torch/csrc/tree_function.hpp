// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <torch/extension.h>

namespace rondo_torch {
// TreeFunction, the callable that Inductor gets for a compiled function, and what Python asks of trees.
void bind_trees(pybind11::module& m);
// Whether a compiled function may be graphed.
void bind_gates(pybind11::module& m);
}  // namespace rondo_torch
