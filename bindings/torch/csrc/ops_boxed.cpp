// SPDX-License-Identifier: Apache-2.0
//
// Every operator without a kernel of its own: ATen's CPU kernel on the device's memory, as one call of a stream. Outputs
// that are given (out=, in place) are written there; outputs that are new have the shape that the operator's meta kernel
// says. What cannot be had so runs on the host at once, and is refused by name in a capture.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <string>

#include "boxed.hpp"
#include "node.hpp"
#include "ops.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

using torch::jit::Stack;

// A tensor of a call: where it stands among the arguments, and which word has its address.
struct Place {
  size_t argument;
  int64_t element;  // of a list; -1: the argument itself
  size_t word;
  TensorShape shape;
};

struct BoxedNode final : Node {
  explicit BoxedNode(c10::OperatorHandle handle) : op(std::move(handle)) {}
  c10::OperatorHandle op;
  Stack arguments;  // tensors left out
  std::vector<Place> places, results;
  std::string name;

  int32_t run(const uint64_t* words) noexcept override {
    try {
      c10::impl::ExcludeDispatchKeyGuard no_autograd(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
      Stack stack = arguments;
      for (const Place& place : places) {
        at::Tensor tensor = place.shape.sizes.empty() || words[place.word] ? host_view(place.shape, words[place.word])
                                                                           : empty_like_shape(place.shape);
        if (place.element < 0) stack[place.argument] = tensor;
        else set_element(stack[place.argument], static_cast<size_t>(place.element), tensor);
      }
      op.callBoxed(&stack);
      for (size_t i = 0; i < results.size(); i++) {
        const at::Tensor made = stack[results[i].argument].toTensor();
        if (made.numel()) host_view(results[i].shape, words[results[i].word]).copy_(made);
      }
      return 0;
    } catch (const std::exception& error) {
      set_failure((name + ": " + error.what()).c_str());
      return 1;
    }
  }

  static at::Tensor empty_like_shape(const TensorShape& shape) {
    return at::empty_strided(shape.sizes, shape.strides, at::TensorOptions().dtype(shape.dtype));
  }

  // Lists are shared between copies of a stack: each run has its own.
  static void set_element(c10::IValue& list, size_t index, const at::Tensor& tensor) {
    if (list.isTensorList()) {
      auto copy = list.toTensorList().copy();
      copy.set(index, tensor);
      list = copy;
    } else {
      auto copy = list.toList().copy();
      copy.set(index, tensor);
      list = copy;
    }
  }
};

std::string name_of(const c10::OperatorHandle& op) {
  const std::string& overload = op.schema().overload_name();
  return overload.empty() ? op.schema().name() : op.schema().name() + "." + overload;
}

bool ours(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kType; }

// All tensors of the call: the device ones as places; small CPU ones are copied into the arguments.
struct Gathering {
  std::unique_ptr<BoxedNode> node;
  std::vector<rondo_argument> words;
  int device = -1;
  bool possible = true;

  void word_of(const at::Tensor& tensor, bool written) {
    words.push_back(argument_of(tensor, written ? RONDO_ACCESS_BOTH : RONDO_ACCESS_READ));
  }
  void add(const at::Tensor& tensor, size_t argument, int64_t element, bool written) {
    if (!tensor.defined()) return;
    if (!ours(tensor)) {
      possible = possible && tensor.device().is_cpu() && tensor.dim() == 0 && !written;
      return;
    }
    if (device < 0) device = tensor.device().index();
    possible = possible && tensor.device().index() == device && tensor.layout() == at::kStrided && !tensor.is_neg() &&
               !tensor.is_conj();
    if (!possible) return;
    node->places.push_back({argument, element, words.size(), shape_of(tensor)});
    word_of(tensor, written);
  }
};

c10::IValue host_copy(const c10::IValue& value) {
  if (value.isTensor() && value.toTensor().defined() && value.toTensor().device().is_cpu()) return value.toTensor().clone();
  if (value.isTensor() && ours(value.toTensor())) return at::Tensor();
  return value;
}

void gather_argument(Gathering& g, const c10::IValue& value, size_t index, bool written) {
  if (value.isTensor()) {
    g.add(value.toTensor(), index, -1, written);
  } else if (value.isTensorList()) {
    auto list = value.toTensorList();
    for (size_t k = 0; k < list.size(); k++) g.add(list.get(k), index, static_cast<int64_t>(k), written);
  } else if (value.isList()) {
    auto list = value.toList();
    for (size_t k = 0; k < list.size(); k++) {
      const c10::IValue element = list.get(k);
      if (element.isTensor()) g.add(element.toTensor(), index, static_cast<int64_t>(k), written);
    }
  } else if (value.isGenerator()) {
    g.possible = false;
  }
}

c10::IValue without_tensors(const c10::IValue& value) {
  if (value.isTensorList()) {
    auto list = value.toTensorList().copy();
    for (size_t k = 0; k < list.size(); k++) {
      if (ours(list.get(k))) list.set(k, at::Tensor());
    }
    return list;
  }
  if (value.isList()) {
    auto list = value.toList().copy();
    for (size_t k = 0; k < list.size(); k++) {
      const c10::IValue element = list.get(k);
      if (element.isTensor() && ours(element.toTensor())) list.set(k, c10::IValue(at::Tensor()));
    }
    return list;
  }
  return host_copy(value);
}

Gathering gather(const c10::OperatorHandle& op, const Stack& stack) {
  const auto& schema = op.schema();
  size_t count = schema.arguments().size(), begin = stack.size() - count;
  Gathering g;
  g.node = std::make_unique<BoxedNode>(op);
  g.node->name = name_of(op);
  for (size_t i = 0; i < count && g.possible; i++) {
    const auto* alias = schema.arguments()[i].alias_info();
    gather_argument(g, stack[begin + i], i, alias && alias->isWrite());
    if (g.possible) g.node->arguments.push_back(without_tensors(stack[begin + i]));
  }
  g.possible = g.possible && g.device >= 0 && g.words.size() <= RONDO_ARGUMENT_MAX;
  return g;
}

// Results that are arguments, in the schema's order; false: some are new.
bool results_given(const c10::FunctionSchema& schema, const Stack& stack, std::vector<c10::IValue>& out) {
  size_t begin = stack.size() - schema.arguments().size();
  for (const auto& result : schema.returns()) {
    if (!result.alias_info() || !result.alias_info()->isWrite()) return false;
    bool found = false;
    for (size_t i = 0; i < schema.arguments().size() && !found; i++) {
      const auto* alias = schema.arguments()[i].alias_info();
      if (!alias || !alias->isWrite() || alias->beforeSets() != result.alias_info()->beforeSets()) continue;
      out.push_back(stack[begin + i]);
      found = true;
    }
    if (!found) return false;
  }
  return true;
}

bool results_new(const c10::FunctionSchema& schema) {
  for (const auto& result : schema.returns()) {
    if (result.alias_info() || result.type()->kind() != c10::TypeKind::TensorType) return false;
  }
  for (const auto& argument : schema.arguments()) {
    if (argument.alias_info() && argument.alias_info()->isWrite()) return false;
  }
  return !schema.returns().empty();
}

at::Tensor to_meta(const at::Tensor& tensor) {
  if (!tensor.defined() || !ours(tensor)) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

c10::IValue to_meta(const c10::IValue& value) {
  if (value.isTensor()) return to_meta(value.toTensor());
  if (value.isTensorList()) {
    auto list = value.toTensorList().copy();
    for (size_t k = 0; k < list.size(); k++) list.set(k, to_meta(list.get(k)));
    return list;
  }
  if (value.isList()) {
    auto list = value.toList().copy();
    for (size_t k = 0; k < list.size(); k++) {
      const c10::IValue element = list.get(k);
      if (element.isTensor()) list.set(k, c10::IValue(to_meta(element.toTensor())));
    }
    return list;
  }
  if (value.isDevice() && value.toDevice().type() == kType) return c10::Device(at::kMeta);
  return value;
}

// Shapes of what the operator makes, without data; false where nobody can say (they depend on data).
bool infer(const c10::OperatorHandle& op, const Stack& stack, std::vector<at::Tensor>& made) {
  size_t count = op.schema().arguments().size(), begin = stack.size() - count;
  Stack copy;
  for (size_t i = 0; i < count; i++) copy.push_back(to_meta(stack[begin + i]));
  try {
    c10::impl::ExcludeDispatchKeyGuard no_autograd(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
    op.callBoxed(&copy);
  } catch (const std::exception&) {
    return false;
  }
  for (const auto& value : copy) {
    if (!value.isTensor()) return false;
    made.push_back(value.toTensor());
  }
  return true;
}

// An output that is given empty gets the shape that the operator wants: a call cannot resize it later.
void size_empty_outputs(const c10::OperatorHandle& op, const Stack& stack) {
  const auto& schema = op.schema();
  size_t count = schema.arguments().size(), begin = stack.size() - count;
  bool any = false;
  for (size_t i = 0; i < count; i++) {
    const auto& argument = schema.arguments()[i];
    any = any || (argument.is_out() && stack[begin + i].isTensor() && !stack[begin + i].toTensor().numel());
  }
  if (!any) return;
  Stack copy;
  for (size_t i = 0; i < count; i++) copy.push_back(to_meta(stack[begin + i]));
  std::vector<at::Tensor> wanted;
  for (size_t i = 0; i < count; i++) wanted.push_back(copy[i].isTensor() ? copy[i].toTensor() : at::Tensor());
  try {
    c10::impl::ExcludeDispatchKeyGuard no_autograd(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
    op.callBoxed(&copy);
  } catch (const std::exception&) {
    return;  // the call itself will say what is wrong
  }
  for (size_t i = 0; i < count; i++) {
    if (!schema.arguments()[i].is_out() || !wanted[i].defined()) continue;
    const at::Tensor out = stack[begin + i].toTensor();
    if (out.numel() || !wanted[i].numel()) continue;
    out.resize_(wanted[i].sizes());
    if (out.strides() != wanted[i].strides()) out.as_strided_(wanted[i].sizes(), wanted[i].strides());
  }
}

void enqueue_new(const c10::OperatorHandle& op, Gathering& g, Stack* stack, const std::vector<at::Tensor>& shapes) {
  std::vector<at::Tensor> outputs;
  for (size_t i = 0; i < shapes.size(); i++) {
    const at::Tensor& shape = shapes[i];
    if (!shape.defined()) {
      outputs.emplace_back();
      continue;
    }
    outputs.push_back(at::empty_strided(shape.sizes(), shape.strides(),
                                        shape.options().device(kType, static_cast<c10::DeviceIndex>(g.device))));
    g.node->results.push_back({i, -1, g.words.size(), shape_of(outputs.back())});
    g.words.push_back(argument_of(outputs.back(), RONDO_ACCESS_WRITE));
  }
  const std::string name = g.node->name;
  enqueue(g.device, std::move(g.node), g.words, name.c_str());
  torch::jit::drop(*stack, op.schema().arguments().size());
  for (auto& output : outputs) stack->push_back(std::move(output));
}

void run_on_host(const c10::OperatorHandle& op, Stack* stack) {
  refuse_in_capture(current_device(), ("operator " + name_of(op) + ", which has no kernel on the device,").c_str());
  synchronize(current_device());
  at::native::cpu_fallback(op, stack);
}

}  // namespace

void run_boxed(const c10::OperatorHandle& op, Stack* stack) {
  bool random = op.hasTag(at::Tag::nondeterministic_seeded);
  if (!random) size_empty_outputs(op, *stack);
  Gathering g = random ? Gathering{} : gather(op, *stack);
  if (random || !g.possible) return run_on_host(op, stack);
  c10::DeviceGuard guard({kType, static_cast<c10::DeviceIndex>(g.device)});
  std::vector<c10::IValue> given;
  std::vector<at::Tensor> shapes;
  if (results_given(op.schema(), *stack, given)) {
    const std::string name = g.node->name;
    enqueue(g.device, std::move(g.node), g.words, name.c_str());
    torch::jit::drop(*stack, op.schema().arguments().size());
    for (auto& value : given) stack->push_back(std::move(value));
  } else if (results_new(op.schema()) && infer(op, *stack, shapes) && shapes.size() + g.words.size() <= RONDO_ARGUMENT_MAX) {
    enqueue_new(op, g, stack, shapes);
  } else {
    run_on_host(op, stack);
  }
}

namespace {
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_boxed>()); }
}  // namespace

}  // namespace rondo_torch
