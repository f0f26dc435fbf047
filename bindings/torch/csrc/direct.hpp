// SPDX-License-Identifier: Apache-2.0
//
// The short way for an operator whose shape function ATen has as a class ("structured"): the class, run on the device's
// tensors, makes or checks the output, and a call holds the arguments in a tuple and calls ATen's CPU function by its
// address. No boxed values, no stack, no meta tensors.
#pragma once
#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/core/IListRef.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <tuple>
#include <type_traits>

#include "node.hpp"
#include "ops.hpp"
#include "runtime.hpp"

// Shape classes told the names of dimensions as long as tensors could have such.
#if __has_include(<ATen/core/NamedTensor.h>)
#include <ATen/core/NamedTensor.h>
#define RONDO_NAMES , at::DimnameList names
#define RONDO_PASS_NAMES , names
#else
#define RONDO_NAMES
#define RONDO_PASS_NAMES
#endif

namespace rondo_torch::direct {

// Tensors of a call while its arguments are put away.
struct Collector {
  const char* name;
  bool at_once;
  int device;
  const at::Tensor& output;
  Operands operands;
  int32_t output_number = -1;  // the output is an argument, too
  // The number of its view, or what it is itself.
  struct Kept {
    int32_t number = -1;
    at::Tensor host;
  };
  Kept keep(const at::Tensor& tensor);
};

// Of arguments: how one is put away, and how it is given back when the call runs.
using Views = c10::ArrayRef<at::Tensor>;

template <class T, class = void>
struct Argument {  // numbers, scalars, optional numbers
  using Stored = T;
  static Stored store(const T& value, Collector&) { return value; }
  static const T& load(const Stored& stored, Views) { return stored; }
};
template <>
struct Argument<at::Tensor> {
  using Stored = Collector::Kept;
  static Stored store(const at::Tensor& value, Collector& c) { return c.keep(value); }
  static const at::Tensor& load(const Stored& stored, Views views) {
    return stored.number < 0 ? stored.host : views[static_cast<size_t>(stored.number)];
  }
};
template <>
struct Argument<at::IntArrayRef> {
  using Stored = c10::SmallVector<int64_t, 4>;
  static Stored store(at::IntArrayRef value, Collector&) { return {value.begin(), value.end()}; }
  static at::IntArrayRef load(const Stored& stored, Views) { return stored; }
};
template <>
struct Argument<at::OptionalIntArrayRef> {
  using Stored = std::optional<c10::SmallVector<int64_t, 4>>;
  static Stored store(const at::OptionalIntArrayRef& value, Collector&) {
    if (!value.has_value()) return std::nullopt;
    return c10::SmallVector<int64_t, 4>(value->begin(), value->end());
  }
  static at::OptionalIntArrayRef load(const Stored& stored, Views) {
    return stored ? at::OptionalIntArrayRef(at::IntArrayRef(*stored)) : at::OptionalIntArrayRef();
  }
};
template <>
struct Argument<std::string_view> {
  using Stored = std::string;
  static Stored store(std::string_view value, Collector&) { return Stored(value); }
  static std::string_view load(const Stored& stored, Views) { return stored; }
};
template <>
struct Argument<at::ITensorListRef> {
  using Stored = std::vector<Collector::Kept>;
  static Stored store(const at::ITensorListRef& value, Collector& c) {
    Stored stored;
    for (const auto& tensor : value) stored.push_back(c.keep(tensor));
    return stored;
  }
  static std::vector<at::Tensor> load(const Stored& stored, Views views) {
    std::vector<at::Tensor> tensors;
    for (const auto& one : stored) tensors.push_back(Argument<at::Tensor>::load(one, views));
    return tensors;
  }
};

template <class T>
using Plain = std::remove_cv_t<std::remove_reference_t<T>>;
template <class T>
using Of = Argument<Plain<T>>;

// ATen's function, its output last, on what was put away.
template <auto kFunction, class... Args>
struct Call final : AtenNode {
  explicit Call(const char* title) : name(title) {}
  const char* name;
  Operands operands;
  size_t output = 0;
  std::tuple<typename Of<Args>::Stored...> stored;
  const char* title() const override { return name; }
  void work(const uint64_t* words) override {
    auto views = operands.views(words);
    std::apply([&](const auto&... one) { kFunction(Of<Args>::load(one, views)..., views[output]); }, stored);
  }
};

// Which device the operator is on: that of the first tensor of the device.
inline int find_device(const at::Tensor& tensor) { return on_device(tensor) ? tensor.device().index() : -1; }
inline int find_device(const at::ITensorListRef& list) {
  for (const auto& tensor : list) {
    if (on_device(tensor)) return tensor.device().index();
  }
  return -1;
}
template <class T>
int find_device(const T&) {
  return -1;
}

// Arguments as shape classes take them.
template <class T>
const T& for_shape(const T& value) {
  return value;
}
inline at::OptionalScalarRef for_shape(const std::optional<at::Scalar>& value) {
  return value.has_value() ? at::OptionalScalarRef(*value) : at::OptionalScalarRef();
}

at::Tensor make_output(at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options);
void check_output(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options);
void check_in_place(const at::Tensor& self, at::IntArrayRef sizes, const at::TensorOptions& options);

enum class Form { kNew, kOut, kInPlace };

// The shape class with an output of ours.
template <class Meta, Form kForm>
struct Shape final : Meta {
  explicit Shape(at::Tensor given) : output(std::move(given)) {}
  at::Tensor output;
  const at::Tensor& maybe_get_output(int64_t) override { return output; }
  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options RONDO_NAMES) override {
    settle(sizes, strides, options);
    tell(index, sizes, strides, options RONDO_PASS_NAMES);
  }
  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options RONDO_NAMES) override {
    settle(sizes, strides, options);
    tell(index, sizes, strides, options RONDO_PASS_NAMES);
  }
  void settle(at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options) {
    if constexpr (kForm == Form::kNew) output = make_output(sizes, strides, options);
    if constexpr (kForm == Form::kOut) check_output(output, sizes, strides, options);
    if constexpr (kForm == Form::kInPlace) check_in_place(output, sizes, options);
  }
  // An iterator wants to know its output, too.
  void tell(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options RONDO_NAMES) {
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Meta>) {
      Meta::set_output_raw_strided(index, sizes, strides, options RONDO_PASS_NAMES);
    }
  }
};

template <auto kFunction, class... Args>
void prepare(Call<kFunction, Args...>& call, bool at_once, int device, const at::Tensor& out, const Args&... args) {
  Collector collector{call.name, at_once, device, out, {}};
  call.stored = std::tuple<typename Of<Args>::Stored...>{Of<Args>::store(args, collector)...};
  bool also_argument = collector.output_number >= 0;
  call.output = also_argument ? static_cast<size_t>(collector.output_number) : collector.operands.add(out, RONDO_ACCESS_WRITE);
  collector.operands.close();
  call.operands = std::move(collector.operands);
}

template <auto kFunction, class... Args>
void launch(int device, const char* name, const at::Tensor& out, const Args&... args) {
  if (runs_at_once(device)) {
    Call<kFunction, Args...> call(name);
    prepare<kFunction, Args...>(call, true, device, out, args...);
    if (call.operands.size() <= RONDO_ARGUMENT_MAX) return run_now(device, call, call.operands.arguments(), name);
  }
  auto call = std::make_unique<Call<kFunction, Args...>>(name);
  prepare<kFunction, Args...>(*call, false, device, out, args...);
  const std::vector<rondo_argument> arguments = call->operands.arguments();
  enqueue(device, std::move(call), arguments, name);
}

// The three forms of an operator. kFunction: at::cpu::NAME_outf.
template <class Meta, auto kFunction, const char* kName, class Signature = decltype(kFunction)>
struct Operator;

template <class Meta, auto kFunction, const char* kName, class... All>
struct Operator<Meta, kFunction, kName, at::Tensor& (*)(All...)> {
  // All is the arguments, then the output.
  template <class Tuple, class Sequence>
  struct Forms;
  template <class... All2, size_t... kIndices>
  struct Forms<std::tuple<All2...>, std::index_sequence<kIndices...>> {
    template <size_t kIndex>
    using At = std::tuple_element_t<kIndex, std::tuple<All2...>>;

    template <Form kForm>
    static at::Tensor run(at::Tensor given, At<kIndices>... args) {
      int device = -1;
      ((device = device < 0 ? find_device(args) : device), ...);
      if (device < 0) device = find_device(given);
      c10::DeviceGuard guard({kType, static_cast<c10::DeviceIndex>(device)});
      Shape<Meta, kForm> shape(std::move(given));
      (void)shape.meta(for_shape(args)...);
      if (shape.output.numel()) launch<kFunction, Plain<At<kIndices>>...>(device, kName, shape.output, args...);
      return std::move(shape.output);
    }
    static at::Tensor fresh(At<kIndices>... args) { return run<Form::kNew>(at::Tensor(), args...); }
    static at::Tensor& into(At<kIndices>... args, at::Tensor& out) {
      run<Form::kOut>(out, args...);
      return out;
    }
    template <class First, class... Rest>
    struct InPlace {
      static at::Tensor& call(at::Tensor& self, Rest... rest) {
        run<Form::kInPlace>(self, self, rest...);
        return self;
      }
    };
    using In = InPlace<At<kIndices>...>;
  };
  using F = Forms<std::tuple<All...>, std::make_index_sequence<sizeof...(All) - 1>>;
};

// Registers a new result and a given one, and for operators that have it what changes the first argument.
template <class Op>
void two_forms(torch::Library& m, const char* fresh, const char* into) {
  m.impl(fresh, Op::fresh);
  m.impl(into, Op::into);
}
template <class Op>
void three_forms(torch::Library& m, const char* fresh, const char* into, const char* in_place) {
  two_forms<Op>(m, fresh, into);
  m.impl(in_place, Op::In::call);
}

}  // namespace rondo_torch::direct

#undef RONDO_NAMES
#undef RONDO_PASS_NAMES
