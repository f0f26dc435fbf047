// SPDX-License-Identifier: Apache-2.0
//
// Shapes of what an operator makes, asked of its meta kernel. Many of these are Python, two hundred times slower than the
// operator itself: so what was answered once is kept.
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>

#include <cstring>
#include <mutex>
#include <unordered_map>

#include "boxed.hpp"
#include "ops.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

using torch::jit::Stack;

// A text that is the same for calls with the same answer.
struct Key {
  std::string text;
  bool possible = true;

  void bytes(const void* data, size_t size) { text.append(static_cast<const char*>(data), size); }
  template <class T>
  void plain(T value) {
    bytes(&value, sizeof value);
  }
  void tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) return plain('u');
    plain('t');
    plain(static_cast<char>(tensor.device().type()));
    plain(static_cast<char>(tensor.scalar_type()));
    plain(static_cast<char>(tensor.unsafeGetTensorImpl()->is_wrapped_number()));
    plain(static_cast<char>(tensor.dim()));
    bytes(tensor.sizes().data(), tensor.sizes().size() * sizeof(int64_t));
    bytes(tensor.strides().data(), tensor.strides().size() * sizeof(int64_t));
  }
  void scalar(const c10::IValue& value) {
    if (value.isInt()) plain('i'), plain(value.toInt());
    else if (value.isDouble()) plain('d'), plain(value.toDouble());
    else if (value.isBool()) plain('b'), plain(value.toBool());
    else if (value.isComplexDouble()) plain('c'), plain(value.toComplexDouble());
    else if (value.isNone() || value.isGenerator()) plain('n');
    else if (value.isString()) plain('s'), plain(value.toStringRef().size()), text += value.toStringRef();
    else if (value.isDevice()) plain('v'), plain(static_cast<char>(value.toDevice().type()));
    else possible = false;
  }
  void value(const c10::IValue& value) {
    if (value.isTensor()) return tensor(value.toTensor());
    if (value.isIntList()) {
      auto list = value.toIntVector();
      plain('I'), plain(list.size()), bytes(list.data(), list.size() * sizeof(int64_t));
    } else if (value.isTensorList()) {
      auto list = value.toTensorList();
      plain('T'), plain(list.size());
      for (size_t i = 0; i < list.size(); i++) tensor(list.get(i));
    } else if (value.isList()) {
      auto list = value.toList();
      plain('L'), plain(list.size());
      for (size_t i = 0; i < list.size(); i++) {
        const c10::IValue element = list.get(i);
        if (element.isTensor()) tensor(element.toTensor());
        else scalar(element);
      }
    } else {
      scalar(value);
    }
  }
};

at::Tensor to_meta(const at::Tensor& tensor) {
  if (!on_device(tensor)) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), at::TensorOptions().dtype(tensor.dtype()).device(at::kMeta));
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
  if (value.isDevice()) return c10::Device(at::kMeta);
  if (value.isGenerator()) return c10::IValue();
  return value;
}

// No mode of the caller's thread has a say in what a meta kernel makes.
struct Alone {
  BelowEverything below;
  c10::AutoGradMode no_gradients{false};
  at::impl::TorchFunctionDisabledState before = at::impl::PythonTorchFunctionTLS::get_disabled_state();
  Alone() { at::impl::PythonTorchFunctionTLS::set_disabled_state(at::impl::TorchFunctionDisabledState::ALL_DISABLED); }
  ~Alone() { at::impl::PythonTorchFunctionTLS::set_disabled_state(before); }
};

bool fits(const at::Tensor& tensor) {
  return !tensor.defined() || (tensor.layout() == at::kStrided && !c10::isQIntType(tensor.scalar_type()));
}

bool take_result(const c10::IValue& value, Inferred& into) {
  Inferred::Result result;
  if (value.isTensor()) {
    result.tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    result.list = true;
    auto list = value.toTensorList();
    for (size_t i = 0; i < list.size(); i++) result.tensors.push_back(list.get(i));
  } else if (value.isNone()) {
    result.tensors.emplace_back();
  } else {
    return false;
  }
  for (const auto& tensor : result.tensors) {
    if (!fits(tensor)) return false;
  }
  into.results.push_back(std::move(result));
  return true;
}

std::shared_ptr<const Inferred> ask(const c10::OperatorHandle& op, const Stack& stack) {
  auto answer = std::make_shared<Inferred>();
  const auto& schema = op.schema();
  size_t count = schema.arguments().size(), begin = stack.size() - count;
  try {
    Alone alone;
    Stack copy;
    for (size_t i = 0; i < count; i++) copy.push_back(to_meta(stack[begin + i]));
    for (size_t i = 0; i < count; i++) {
      bool out = schema.arguments()[i].is_out() && copy[i].isTensor();
      answer->outputs.push_back(out ? copy[i].toTensor() : at::Tensor());
    }
    op.callBoxed(&copy);
    for (const auto& value : copy) {
      if (take_result(value, *answer)) continue;
      answer->why = "it makes what is no plain tensor";
      return answer;
    }
    answer->known = true;
  } catch (const c10::NotImplementedError& error) {
    answer->unsaid = true;
    answer->why = "it has no meta kernel";
  } catch (const c10::Error& error) {
    answer->why = error.what_without_backtrace();
  } catch (const std::exception& error) {
    answer->why = error.what();
  }
  return answer;
}

std::mutex g_mutex;
std::unordered_map<std::string, std::shared_ptr<const Inferred>>& answers() {
  static auto* all = new std::unordered_map<std::string, std::shared_ptr<const Inferred>>;
  return *all;
}
constexpr size_t kAnswers = 8192;

}  // namespace

std::shared_ptr<const Inferred> infer(const c10::OperatorHandle& op, const Stack& stack) {
  Key key;
  key.plain(&op.schema());
  key.plain(c10::get_default_dtype_as_scalartype());
  size_t count = op.schema().arguments().size();
  for (size_t i = stack.size() - count; i < stack.size() && key.possible; i++) key.value(stack[i]);
  if (!key.possible) return ask(op, stack);
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    auto found = answers().find(key.text);
    if (found != answers().end()) return found->second;
  }
  auto answer = ask(op, stack);  // without the lock: it may ask for the interpreter's
  std::lock_guard<std::mutex> lock(g_mutex);
  if (answers().size() >= kAnswers) answers().clear();
  answers()[key.text] = answer;
  return answer;
}

}  // namespace rondo_torch
