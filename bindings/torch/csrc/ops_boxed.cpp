// SPDX-License-Identifier: Apache-2.0
//
// Every operator without a kernel of its own: ATen's CPU kernel on the device's memory, as one call of a stream. Outputs
// that are given (out=, in place) are written there; the shapes of outputs that are new are known before the call runs
// where that matters (infer). What depends on data runs at once, and waits; a capture refuses it by name.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cstring>
#include <set>
#include <unordered_map>

#include "boxed.hpp"
#include "generator.hpp"
#include "node.hpp"
#include "ops.hpp"
#include "registration.hpp"
#include "runtime.hpp"

namespace rondo_torch {

std::string name_of(const c10::OperatorHandle& op) {
  const std::string& overload = op.schema().overload_name();
  return overload.empty() ? op.schema().name() : op.schema().name() + "." + overload;
}

namespace {

using torch::jit::Stack;

// A tensor of a call: where it stands among the arguments.
struct Place {
  size_t argument;
  int64_t element;  // of a list; -1: the argument itself
  bool out;
};

struct BoxedNode final : AtenNode {
  BoxedNode(c10::OperatorHandle handle, std::string title) : op(std::move(handle)), name(std::move(title)) {}
  c10::OperatorHandle op;
  std::string name;
  Stack arguments;  // tensors left out
  std::vector<Place> places;
  Operands operands;  // of the places, then of the new results, then the seed
  size_t results = 0;
  int64_t generator = -1;  // the argument that gets a generator which starts at the seed
  bool keeps = false;      // what the operator makes is left in `made`
  Stack made;

  const char* title() const override { return name.c_str(); }

  void work(const uint64_t* words) override {
    auto tensors = operands.views(words);
    Stack stack = arguments;
    for (size_t i = 0; i < places.size(); i++) {
      if (places[i].element < 0) stack[places[i].argument] = tensors[i];
      else set_element(stack[places[i].argument], static_cast<size_t>(places[i].element), tensors[i]);
    }
    if (generator >= 0) {
      uint64_t seed = 0;
      std::memcpy(&seed, tensors.back().const_data_ptr(), sizeof seed);
      stack[static_cast<size_t>(generator)] = at::detail::createCPUGenerator(seed);
    }
    op.callBoxed(&stack);
    for (size_t i = 0; i < places.size(); i++) {
      if (places[i].out) operands.finish(i, tensors[i], words);
    }
    if (keeps) made = std::move(stack);
    else copy_results(stack, tensors);
  }

  void copy_results(const Stack& stack, c10::ArrayRef<at::Tensor> tensors) const {
    size_t next = places.size();
    for (const auto& value : stack) {
      if (next == places.size() + results) return;
      if (value.isTensor()) {
        // A kernel may leave empty what the meta kernel promises (batch norm's saved statistics in inference).
        const at::Tensor& result = value.toTensor();
        if (result.defined() && (result.numel() || !tensors[next].numel())) tensors[next].copy_(result);
        next += result.defined();
      } else if (value.isTensorList()) {
        auto list = value.toTensorList();
        for (size_t k = 0; k < list.size(); k++) tensors[next++].copy_(list.get(k));
      }
    }
  }

  // Lists are shared between copies of a stack: each run has its own.
  static void set_element(c10::IValue& list, size_t index, const at::Tensor& tensor) {
    if (list.isTensorList()) {
      if (list.use_count() > 1) list = list.toTensorList().copy();
      list.toTensorList().set(index, tensor);
    } else {
      if (list.use_count() > 1) list = list.toList().copy();
      list.toList().set(index, tensor);
    }
  }
};

// Operators that take index tensors of the CPU beside tensors of the device.
bool takes_host_tensors(const std::string& name) {
  static const std::set<std::string> known = {"aten::index", "aten::index_put_", "aten::_index_put_impl_",
                                              "aten::_unsafe_index", "aten::_unsafe_index_put", "aten::index_put"};
  return known.count(name) > 0;
}

// Running statistics, which the operator changes although its schema does not say so.
bool changes_unsaid(const std::string& name, size_t argument) {
  return (argument == 3 || argument == 4) && name == "aten::native_batch_norm";
}

// The tensors of a call: the device's as operands; those of the CPU are copied into the arguments.
struct Gathering {
  std::unique_ptr<BoxedNode> node;
  at::Tensor seed;  // until the call that reads it is enqueued
  int device = -1;
  bool host = false;  // a CPU tensor with more than a number in it

  void check_one(const at::Tensor& tensor) {
    TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == at::kStrided, "rondo: ", node->name, " got a tensor of layout ",
                                tensor.layout(), "; the device has only strided ones: use to_dense()");
    TORCH_CHECK_NOT_IMPLEMENTED(!tensor.is_quantized(), "rondo: ", node->name,
                                " got a quantized tensor; the device has none: use dequantize()");
  }
  c10::IValue add(const at::Tensor& tensor, size_t argument, int64_t element, uint32_t access) {
    if (!tensor.defined()) return tensor;
    check_one(tensor);
    if (on_device(tensor)) {
      int index = tensor.device().index();
      if (device < 0) device = index;
      TORCH_CHECK(device == index, "Expected all tensors to be on the same device, but ", node->name,
                  " got tensors of at least two devices, rondo:", device, " and rondo:", index, "!");
      node->places.push_back({argument, element, access == RONDO_ACCESS_WRITE});
      node->operands.add(tensor, access);
      return at::Tensor();
    }
    bool number = tensor.device().is_cpu() && tensor.dim() == 0 && access == RONDO_ACCESS_READ;
    bool indices = tensor.device().is_cpu() && takes_host_tensors(node->op.schema().name());
    TORCH_CHECK(number || indices, "Expected all tensors to be on the same device, but ", node->name,
                " got tensors of at least two devices, rondo and ", tensor.device(), "!");
    host = host || !number;
    at::Tensor copy = tensor.clone();
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) copy.unsafeGetTensorImpl()->set_wrapped_number(true);
    return copy;
  }
  c10::IValue add(const c10::IValue& value, size_t index, uint32_t access) {
    if (value.isTensor()) return add(value.toTensor(), index, -1, access);
    if (value.isTensorList()) {
      auto list = value.toTensorList().copy();
      for (size_t k = 0; k < list.size(); k++) {
        list.set(k, add(list.get(k), index, static_cast<int64_t>(k), access).toTensor());
      }
      return list;
    }
    if (value.isList()) {
      auto list = value.toList().copy();
      for (size_t k = 0; k < list.size(); k++) {
        const c10::IValue element = list.get(k);
        if (element.isTensor()) list.set(k, add(element.toTensor(), index, static_cast<int64_t>(k), access));
      }
      return list;
    }
    if (value.isDevice() && value.toDevice().type() == kType) {
      if (device < 0) device = index_of(value.toDevice());
      return c10::Device(at::kCPU);
    }
    return value;
  }
};

// A seed on the device, which a replay draws anew.
void add_seed(Gathering& g, size_t argument, const c10::IValue& generator) {
  std::optional<at::Generator> given;
  if (generator.isGenerator()) given = generator.toGenerator();
  g.seed = at::empty({4}, at::TensorOptions().dtype(at::kInt).device(kType, static_cast<c10::DeviceIndex>(g.device)));
  check(rondo_random_fill(current_stream(g.device), generator_handle(given, g.device), RONDO_DISTRIBUTION_BITS,
                          g.seed.mutable_data_ptr(), 4, 0, 0));
  g.node->generator = static_cast<int64_t>(argument);
  g.node->operands.add(g.seed, RONDO_ACCESS_READ);
}

Gathering gather(const c10::OperatorHandle& op, const std::string& name, const Stack& stack) {
  const auto& schema = op.schema();
  size_t count = schema.arguments().size(), begin = stack.size() - count;
  Gathering g;
  g.node = std::make_unique<BoxedNode>(op, name);
  g.node->arguments.reserve(count);
  for (size_t i = 0; i < count; i++) {
    const auto& argument = schema.arguments()[i];
    bool written = (argument.alias_info() && argument.alias_info()->isWrite()) || changes_unsaid(name, i);
    uint32_t access = argument.is_out() ? RONDO_ACCESS_WRITE : written ? RONDO_ACCESS_BOTH : RONDO_ACCESS_READ;
    g.node->arguments.push_back(g.add(stack[begin + i], i, access));
  }
  if (g.device < 0) g.device = current_device();
  return g;
}

// The argument that a result is, or -1: it is new.
int64_t given_for(const c10::FunctionSchema& schema, const c10::Argument& result) {
  if (!result.alias_info()) return -1;
  for (size_t i = 0; i < schema.arguments().size(); i++) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias && alias->isWrite() && alias->beforeSets() == result.alias_info()->beforeSets()) return static_cast<int64_t>(i);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, "rondo: ", schema.operator_name(), " makes a view; the device has no kernel for it");
}

struct Results {
  std::vector<int64_t> given;  // per result
  bool all_given = true, tensors = true;
};

Results results_of(const c10::FunctionSchema& schema) {
  Results r;
  for (const auto& result : schema.returns()) {
    r.given.push_back(given_for(schema, result));
    if (r.given.back() >= 0) continue;
    r.all_given = false;
    auto kind = result.type()->kind();
    bool list = kind == c10::TypeKind::ListType && result.type()->containedType(0)->kind() == c10::TypeKind::TensorType;
    r.tensors = r.tensors && (kind == c10::TypeKind::TensorType || list);
  }
  return r;
}

int64_t generator_argument(const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  static const auto generator = c10::OptionalType::create(c10::GeneratorType::get());
  for (size_t i = 0; i < arguments.size(); i++) {
    if (*arguments[i].type() == *generator || arguments[i].type()->kind() == c10::TypeKind::GeneratorType) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

// What is the same at each call of an operator.
struct Facts {
  std::string name;
  Results results;
  bool outputs;       // its last arguments are outputs
  bool depends;       // its results' shapes, or what they are, depend on data
  bool unlike;        // the CPU's kernel makes results of other shapes than the shape function says
  bool random;
  int64_t generator;  // the argument, or -1
};

std::unique_ptr<Facts> make_facts(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  auto facts = std::make_unique<Facts>();
  facts->name = name_of(op);
  facts->results = results_of(schema);
  facts->outputs = !schema.arguments().empty() && schema.arguments().back().is_out();
  facts->depends = op.hasTag(at::Tag::dynamic_output_shape) || op.hasTag(at::Tag::data_dependent_output) ||
                   !facts->results.tensors;
  facts->unlike = facts->name == "aten::_embedding_bag" || facts->name == "aten::_embedding_bag_forward_only";
  facts->random = op.hasTag(at::Tag::nondeterministic_seeded);
  facts->generator = facts->random ? generator_argument(op) : -1;
  for (const char* made : {"aten::quantize_per_", "aten::_make_per_", "aten::_to_sparse"}) {
    TORCH_CHECK_NOT_IMPLEMENTED(facts->name.rfind(made, 0) != 0, "rondo: ", facts->name,
                                " makes a tensor of a kind that the device has not: neither sparse nor quantized ones");
  }
  return facts;
}

const Facts& facts_of(const c10::OperatorHandle& op) {
  thread_local std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<Facts>> known;
  auto& found = known[&op.schema()];
  if (!found) found = make_facts(op);
  return *found;
}

// A call cannot resize its outputs when it runs: they get their shapes before.
void size_outputs(const Inferred& answer, const Stack& stack, size_t begin) {
  for (size_t i = 0; i < answer.outputs.size(); i++) {
    const at::Tensor& wanted = answer.outputs[i];
    if (!wanted.defined() || !on_device(stack[begin + i].toTensor())) continue;
    const at::Tensor out = stack[begin + i].toTensor();
    if (out.sizes() == wanted.sizes()) continue;
    at::native::resize_output(out, wanted.sizes());
    if (out.numel() && out.strides() != wanted.strides()) out.as_strided_(wanted.sizes(), wanted.strides());
  }
}

at::Tensor empty_on(int device, const at::Tensor& like) {
  return at::empty_strided(like.sizes(), like.strides(),
                           at::TensorOptions().dtype(like.dtype()).device(kType, static_cast<c10::DeviceIndex>(device)));
}

at::Tensor to_device(const BoxedNode& node, int device, const at::Tensor& made) {
  if (!made.defined()) return made;
  TORCH_CHECK_NOT_IMPLEMENTED(made.layout() == at::kStrided && !made.is_quantized(), "rondo: ", node.name, " makes a ",
                              made.is_quantized() ? "quantized" : "sparse", " tensor, which the device has none of");
  at::Tensor source = made.is_non_overlapping_and_dense() ? made : made.contiguous();
  at::Tensor result = empty_on(device, source);
  if (made.is_conj() || made.is_neg()) return result.copy_(made);
  if (result.numel()) {
    // Taken at once, as all copies from memory that is not pinned are.
    check(rondo_stream_copy(current_stream(device), result.mutable_data_ptr(), source.const_data_ptr(), source.nbytes(),
                            RONDO_COPY_HOST_TO_DEVICE));
  }
  return result;
}

// Puts in the operator's results, new ones from what it has made, in place of its arguments.
void finish(const c10::OperatorHandle& op, const Results& r, const BoxedNode& node, int device, Stack* stack) {
  size_t count = op.schema().arguments().size(), begin = stack->size() - count;
  Stack out;
  for (size_t i = 0; i < r.given.size(); i++) {
    if (r.given[i] >= 0) {
      out.push_back((*stack)[begin + static_cast<size_t>(r.given[i])]);
    } else if (node.made[i].isTensor()) {
      out.emplace_back(to_device(node, device, node.made[i].toTensor()));
    } else if (node.made[i].isTensorList()) {
      c10::List<at::Tensor> list;
      auto made = node.made[i].toTensorList();
      for (size_t k = 0; k < made.size(); k++) list.push_back(to_device(node, device, made.get(k)));
      out.emplace_back(std::move(list));
    } else {
      out.push_back(node.made[i]);
    }
  }
  torch::jit::drop(*stack, count);
  for (auto& value : out) stack->push_back(std::move(value));
}

int device_of(const Stack& stack, size_t begin) {
  for (size_t i = begin; i < stack.size(); i++) {
    const auto& value = stack[i];
    if (value.isTensor() && on_device(value.toTensor())) return value.toTensor().device().index();
    if (value.isDevice() && value.toDevice().type() == kType) return index_of(value.toDevice());
    if (!value.isTensorList()) continue;
    auto list = value.toTensorList();
    for (size_t k = 0; k < list.size(); k++) {
      if (on_device(list.get(k))) return list.get(k).device().index();
    }
  }
  return current_device();
}

void run_on_host(const c10::OperatorHandle& op, const Facts& facts, Stack* stack, const std::string& why) {
  size_t begin = stack->size() - op.schema().arguments().size();
  int device = device_of(*stack, begin);
  c10::DeviceGuard guard({kType, static_cast<c10::DeviceIndex>(device)});
  refuse_in_capture(device, "operator " + facts.name + " (" + why + ")");
  // Outputs are given to it empty on the CPU, where it can give them any size.
  Stack arguments(stack->begin() + static_cast<ptrdiff_t>(begin), stack->end());
  std::vector<std::pair<size_t, at::Tensor>> outputs;
  for (size_t i = 0; i < arguments.size(); i++) {
    if (!op.schema().arguments()[i].is_out() || !on_device(arguments[i].toTensor())) continue;
    outputs.emplace_back(i, arguments[i].toTensor());
    arguments[i] = at::Tensor();
  }
  Gathering g = gather(op, facts.name, arguments);
  for (auto& [i, out] : outputs) g.node->arguments[i] = at::empty({0}, at::TensorOptions().dtype(out.dtype()));
  g.node->keeps = true;
  if (facts.generator >= 0) {
    auto argument = static_cast<size_t>(facts.generator);
    add_seed(g, argument, arguments[argument]);
  }
  g.node->operands.close();
  BoxedNode& node = *g.node;
  std::vector<at::Tensor> filled;
  for (auto& [i, out] : outputs) filled.push_back(node.arguments[i].toTensor());
  if (runs_at_once(device)) {
    run_now(device, node, node.operands.arguments(), node.name.c_str());
  } else {
    // The node has to be here when it has run.
    struct Borrowed final : AtenNode {
      AtenNode& inner;
      explicit Borrowed(AtenNode& node) : inner(node) {}
      void work(const uint64_t* words) override { inner.work(words); }
      const char* title() const override { return inner.title(); }
    };
    enqueue(device, std::make_unique<Borrowed>(node), node.operands.arguments(), node.name.c_str());
    check(rondo_stream_synchronize(current_stream(device)));
  }
  for (size_t k = 0; k < outputs.size(); k++) {
    at::native::resize_output(outputs[k].second, filled[k].sizes());
    outputs[k].second.copy_(filled[k]);
  }
  finish(op, facts.results, node, device, stack);
}

// New results get memory of the device's, and what is enqueued writes to it.
Stack new_results(Gathering& g, const Inferred& answer, const Results& r, const Stack& stack, size_t begin) {
  Stack out;
  BoxedNode& node = *g.node;
  auto make = [&](const at::Tensor& shape) {
    if (!shape.defined()) return at::Tensor();
    at::Tensor result = empty_on(g.device, shape);
    node.operands.add(result, RONDO_ACCESS_WRITE);
    node.results++;
    return result;
  };
  for (size_t i = 0; i < r.given.size(); i++) {
    const auto& result = answer.results[i];
    if (r.given[i] >= 0) {
      out.push_back(stack[begin + static_cast<size_t>(r.given[i])]);
    } else if (result.list) {
      c10::List<at::Tensor> list;
      for (const auto& shape : result.tensors) list.push_back(make(shape));
      out.emplace_back(std::move(list));
    } else {
      out.emplace_back(make(result.tensors[0]));
    }
  }
  return out;
}

void enqueue_node(Gathering& g) {
  BoxedNode& node = *g.node;
  node.operands.close();
  enqueue(g.device, std::move(g.node), node.operands.arguments(), node.name.c_str());
}

}  // namespace

namespace {

// Why no call of it can be had, whatever its arguments are; null: it can.
const char* why_on_host(const Facts& facts) {
  if (facts.random && facts.generator < 0) return "it draws random numbers that it takes no generator for";
  if (facts.unlike) return "the CPU's kernel for it gives other shapes than it says";
  return facts.depends ? "what it gives depends on data" : nullptr;
}

// What the operator gives are arguments.
Stack given_results(const Results& r, const Stack& stack, size_t begin) {
  Stack out;
  for (int64_t i : r.given) out.push_back(stack[begin + static_cast<size_t>(i)]);
  return out;
}

void run_here(const c10::OperatorHandle& op, const Facts& facts, Stack* stack, size_t begin, int device) {
  const Results& r = facts.results;
  int64_t generator = facts.generator;
  if (const char* why = why_on_host(facts)) return run_on_host(op, facts, stack, why);
  bool at_once = runs_at_once(device);
  std::shared_ptr<const Inferred> answer;
  if (!at_once || facts.outputs) {
    answer = infer(op, *stack);
    if (answer->known) {
      if (facts.outputs) size_outputs(*answer, *stack, begin);
    } else if (at_once || facts.outputs || !r.all_given || !answer->unsaid) {
      return run_on_host(op, facts, stack, answer->why);
    }
  }
  Gathering g = gather(op, facts.name, *stack);
  if (g.host) refuse_in_capture(device, "operator " + g.node->name + " with a CPU tensor");
  if (at_once && generator < 0 && g.node->operands.size() <= RONDO_ARGUMENT_MAX) {
    g.node->keeps = !r.all_given;
    g.node->operands.close();
    run_now(device, *g.node, g.node->operands.arguments(), g.node->name.c_str());
    return finish(op, r, *g.node, device, stack);
  }
  if (!r.all_given && !answer) answer = infer(op, *stack);
  if (!r.all_given && !answer->known) return run_on_host(op, facts, stack, answer->why);
  Stack out = r.all_given ? given_results(r, *stack, begin) : new_results(g, *answer, r, *stack, begin);
  if (generator >= 0) {
    auto argument = static_cast<size_t>(generator);
    add_seed(g, argument, (*stack)[begin + argument]);
  }
  enqueue_node(g);
  // Only now: an argument that nobody else has is there until the call that reads it is enqueued.
  torch::jit::drop(*stack, op.schema().arguments().size());
  for (auto& value : out) stack->push_back(std::move(value));
}

}  // namespace

void run_boxed(const c10::OperatorHandle& op, Stack* stack) {
  size_t begin = stack->size() - op.schema().arguments().size();
  int device = device_of(*stack, begin);
  c10::DeviceGuard guard({kType, static_cast<c10::DeviceIndex>(device)});
  try {
    run_here(op, facts_of(op), stack, begin, device);
  } catch (const std::exception& error) {
    // Half of what was asked for is in no graph.
    uint64_t id = 0;
    rondo_stream* stream = current_stream(device);
    if (capturing(stream, &id)) {
      note_refusal(id, name_of(op) + ": " + error.what());
      spoil_capture(stream);
    }
    throw;
  }
}

namespace {

// In place and list forms, which ATen would take apart for a device that it does not know.
std::vector<std::string> list_operators() {
  std::vector<std::string> names;
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    bool list = name.name.rfind("aten::_foreach_", 0) == 0 || name.name.rfind("aten::_fused_", 0) == 0;
    bool out = name.overload_name == "out" || name.overload_name.find("_out") != std::string::npos;
    auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!list || out || !op || op->schema().arguments().empty()) continue;
    if (op->schema().arguments()[0].type()->kind() != c10::TypeKind::ListType) continue;
    names.push_back(name.overload_name.empty() ? name.name : name.name + "." + name.overload_name);
  }
  return names;
}

RONDO_TORCH_KERNELS(_, all_others, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_boxed>()); }

RONDO_TORCH_KERNELS(aten, boxed, m) {
  for (const auto& name : list_operators()) {
    if (name != "aten::_foreach_copy_") m.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_boxed>());
  }
}

}  // namespace

}  // namespace rondo_torch
