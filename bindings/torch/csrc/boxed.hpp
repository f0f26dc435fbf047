// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

namespace rondo_torch {
// The operator with the arguments on the stack, as one call of the current stream.
void run_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack);
}  // namespace rondo_torch
