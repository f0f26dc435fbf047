// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>
#include <string>
#include <vector>

namespace rondo_torch {
// The operator with the arguments on the stack, as one call of the current stream.
void run_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack);

std::string name_of(const c10::OperatorHandle& op);

// What an operator makes, without data: tensors without memory (undefined where it makes none), a list's elements one
// after the other.
struct Inferred {
  struct Result {
    bool list = false;
    std::vector<at::Tensor> tensors;
  };
  bool known = false;
  bool unsaid = false;  // it has no meta kernel
  std::string why;  // if it is not: the shapes depend on data, or the arguments are wrong
  std::vector<Result> results;
  // Shapes that the operator gives to outputs of zero or other size, by the argument's number; undefined: it leaves it.
  std::vector<at::Tensor> outputs;
};
// Answers for the same shapes, types and numbers are kept.
std::shared_ptr<const Inferred> infer(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
}  // namespace rondo_torch
