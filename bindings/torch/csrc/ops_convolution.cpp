// SPDX-License-Identifier: Apache-2.0
//
// Convolution: what ATen calls on a device of another's are two operators of their own, which are the plain ones here.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "boxed.hpp"
#include "registration.hpp"

namespace rondo_torch {
namespace {

using torch::jit::Stack;

// What compiles expects rows, columns, channels in the order of the sizes from such a device, whatever the inputs have.
void in_order_of_sizes(Stack* stack, size_t begin, size_t count) {
  for (size_t i = begin; i < begin + count; i++) {
    const at::Tensor tensor = (*stack)[i].toTensor();
    if (tensor.defined() && !tensor.is_contiguous()) (*stack)[i] = tensor.contiguous();
  }
}

void forward(const c10::OperatorHandle& called, Stack* stack) {
  in_order_of_sizes(stack, stack->size() - called.schema().arguments().size(), 2);
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
  run_boxed(op, stack);
}

void backward(const c10::OperatorHandle& called, Stack* stack) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution_backward", "");
  // (grad, input, weight, stride, padding, dilation, transposed, output_padding, groups, mask): the plain one also wants
  // the size of the bias, behind the weight.
  size_t begin = stack->size() - called.schema().arguments().size();
  in_order_of_sizes(stack, begin, 3);
  const at::Tensor weight = (*stack)[begin + 2].toTensor();
  bool transposed = (*stack)[begin + 6].toBool();
  int64_t groups = (*stack)[begin + 8].toInt();
  int64_t channels = transposed ? weight.size(1) * groups : weight.size(0);
  stack->insert(stack->begin() + static_cast<ptrdiff_t>(begin + 3), c10::IValue(std::vector<int64_t>{channels}));
  run_boxed(op, stack);
}

RONDO_TORCH_KERNELS(aten, convolution, m) {
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&forward>());
  m.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&backward>());
}

}  // namespace
}  // namespace rondo_torch
