// SPDX-License-Identifier: Apache-2.0
#include <c10/util/Exception.h>
#include <rondo/operator.h>

#include <array>
#include <deque>
#include <utility>

#include "runtime.hpp"
#include "torchair.hpp"
#include "upstream.hpp"

namespace py = pybind11;

namespace rondo_torch {
namespace {

constexpr std::array<std::pair<at::ScalarType, rondo_dtype>, 15> kTypes = {{
    {at::kFloat, RONDO_DTYPE_F32},
    {at::kDouble, RONDO_DTYPE_F64},
    {at::kLong, RONDO_DTYPE_I64},
    {at::kInt, RONDO_DTYPE_I32},
    {at::kShort, RONDO_DTYPE_I16},
    {at::kChar, RONDO_DTYPE_I8},
    {at::kByte, RONDO_DTYPE_U8},
    {at::kBool, RONDO_DTYPE_BOOL},
    {at::kHalf, RONDO_DTYPE_F16},
    {at::kBFloat16, RONDO_DTYPE_BF16},
    {at::kUInt16, RONDO_DTYPE_U16},
    {at::kUInt32, RONDO_DTYPE_U32},
    {at::kUInt64, RONDO_DTYPE_U64},
    {at::kComplexFloat, RONDO_DTYPE_C64},
    {at::kComplexDouble, RONDO_DTYPE_C128},
}};

int32_t append(void* user, const char* data, size_t size) {
  static_cast<std::string*>(user)->append(data, size);
  return 0;
}

rondo_operator_info operator_of(const std::string& name) {
  rondo_operator_info info = RONDO_OPERATOR_INFO_INIT;
  check(rondo_operator_find(instance(), name.c_str(), &info));
  return info;
}

rondo_attribute_kind kind_of(const rondo_operator_info& info, const std::string& name) {
  for (uint32_t i = 0; i < info.attribute_count; i++) {
    rondo_operator_attribute_info known = {};
    check(rondo_operator_info_attribute(&info, i, &known));
    if (name == known.name) return known.kind;
  }
  return RONDO_ATTRIBUTE_NONE;
}

// Attributes and all that they point to, until the graph has copied them.
struct Attributes {
  std::vector<rondo_attribute> all;
  std::deque<std::string> texts;
  std::deque<std::vector<int64_t>> ints;
  std::deque<std::vector<float>> floats;
  std::deque<std::vector<rondo_string>> strings;
  std::deque<at::Tensor> tensors;
  std::deque<rondo_tensor_view> views;

  rondo_string text(const py::handle& value) {
    texts.push_back(py::cast<std::string>(value));
    return {texts.back().data(), texts.back().size()};
  }

  void add(const char* name, rondo_attribute_kind kind, const py::handle& value) {
    rondo_attribute attribute = {};
    attribute.name = name;
    attribute.kind = kind;
    attribute.count = 1;
    switch (kind) {
      case RONDO_ATTRIBUTE_INT: attribute.value.i = py::cast<int64_t>(value); break;
      case RONDO_ATTRIBUTE_FLOAT: attribute.value.f = py::cast<float>(value); break;
      case RONDO_ATTRIBUTE_STRING: attribute.value.s = text(value); break;
      case RONDO_ATTRIBUTE_INTS:
        ints.push_back(py::cast<std::vector<int64_t>>(value));
        attribute.count = static_cast<uint32_t>(ints.back().size());
        attribute.value.ints = ints.back().data();
        break;
      case RONDO_ATTRIBUTE_FLOATS:
        floats.push_back(py::cast<std::vector<float>>(value));
        attribute.count = static_cast<uint32_t>(floats.back().size());
        attribute.value.floats = floats.back().data();
        break;
      case RONDO_ATTRIBUTE_STRINGS:
        strings.emplace_back();
        for (const py::handle& one : value) strings.back().push_back(text(one));
        attribute.count = static_cast<uint32_t>(strings.back().size());
        attribute.value.strings = strings.back().data();
        break;
      case RONDO_ATTRIBUTE_TENSOR: attribute.value.tensor = view(py::cast<at::Tensor>(value)); break;
      default: TORCH_CHECK(false, "rondo: attribute '", name, "' has a kind that Python cannot give");
    }
    all.push_back(attribute);
  }

  const rondo_tensor_view* view(const at::Tensor& value) {
    tensors.push_back(value.cpu().contiguous());
    const at::Tensor& kept = tensors.back();
    rondo_tensor_view view = {};
    view.data = const_cast<void*>(kept.const_data_ptr());
    view.device_type = 1;
    view.rank = static_cast<int32_t>(kept.dim());
    view.dtype = dtype_of(kept.scalar_type());
    view.shape = kept.sizes().data();
    views.push_back(view);
    return &views.back();
  }
};

// What Python's value is, for an attribute that the prototype does not have: the graph then refuses it by name.
rondo_attribute_kind guess(const py::handle& value) {
  if (py::isinstance<py::str>(value)) return RONDO_ATTRIBUTE_STRING;
  if (py::isinstance<py::float_>(value)) return RONDO_ATTRIBUTE_FLOAT;
  if (py::isinstance<py::int_>(value)) return RONDO_ATTRIBUTE_INT;
  if (THPVariable_Check(value.ptr())) return RONDO_ATTRIBUTE_TENSOR;
  return RONDO_ATTRIBUTE_INTS;
}

py::dict describe(const std::string& name) {
  rondo_operator_info info = operator_of(name);
  py::list inputs, outputs, attributes;
  auto operand = [](const rondo_operator_operand& one) {
    return py::make_tuple(std::string(one.name), static_cast<int>(one.presence));
  };
  for (uint32_t i = 0; i < info.input_count; i++) {
    rondo_operator_operand one = {};
    check(rondo_operator_info_input(&info, i, &one));
    inputs.append(operand(one));
  }
  for (uint32_t i = 0; i < info.output_count; i++) {
    rondo_operator_operand one = {};
    check(rondo_operator_info_output(&info, i, &one));
    outputs.append(operand(one));
  }
  for (uint32_t i = 0; i < info.attribute_count; i++) {
    rondo_operator_attribute_info one = {};
    check(rondo_operator_info_attribute(&info, i, &one));
    attributes.append(py::make_tuple(std::string(one.name), static_cast<int>(one.kind), one.required != 0));
  }
  py::dict result;
  result["name"] = std::string(info.name);
  result["inputs"] = inputs;
  result["outputs"] = outputs;
  result["attributes"] = attributes;
  return result;
}

std::vector<std::string> operators() {
  std::vector<std::string> all;
  for (uint32_t i = 0;; i++) {
    rondo_operator_info info = RONDO_OPERATOR_INFO_INIT;
    rondo_status status = rondo_operator_at(instance(), i, &info);
    if (status) {
      rondo_status_release(status);
      return all;
    }
    all.emplace_back(info.name);
  }
}

}  // namespace

rondo_dtype dtype_of(at::ScalarType type) {
  for (const auto& [ours, theirs] : kTypes) {
    if (ours == type) return theirs;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, "rondo: tensors of ", type, " have no type in Rondo's graphs");
}

at::ScalarType type_of(rondo_dtype dtype) {
  for (const auto& [ours, theirs] : kTypes) {
    if (theirs == dtype) return ours;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, "rondo: ", rondo_dtype_name(dtype), " is no type of PyTorch's tensors");
}

IrGraph::IrGraph(const std::string& name) { check(rondo_ir_graph_create(instance(), name.c_str(), &graph_)); }
IrGraph::~IrGraph() { rondo_ir_graph_release(graph_); }

uint32_t IrGraph::input(const std::string& name, at::ScalarType type, const std::vector<int64_t>& dims) {
  rondo_ir_value value = RONDO_IR_NONE;
  check(rondo_ir_graph_add_input(graph_, name.c_str(), dtype_of(type), static_cast<int32_t>(dims.size()), dims.data(),
                                 nullptr, &value));
  return value;
}

uint32_t IrGraph::constant(const std::string& name, const at::Tensor& value) {
  at::Tensor host = value.detach().cpu().contiguous();
  rondo_ir_value result = RONDO_IR_NONE;
  check(rondo_ir_graph_add_constant(graph_, name.c_str(), dtype_of(host.scalar_type()),
                                    static_cast<int32_t>(host.dim()), host.sizes().data(), host.const_data_ptr(),
                                    &result));
  return result;
}

std::vector<uint32_t> IrGraph::node(const std::string& operator_name, const std::string& name,
                                    const std::vector<int64_t>& inputs, const py::dict& attributes,
                                    uint32_t outputs) {
  rondo_operator_info info = operator_of(operator_name);
  Attributes given;
  std::deque<std::string> names;
  for (const auto& [key, value] : attributes) {
    names.push_back(py::cast<std::string>(key));
    rondo_attribute_kind kind = kind_of(info, names.back());
    given.add(names.back().c_str(), kind == RONDO_ATTRIBUTE_NONE ? guess(value) : kind, value);
  }
  std::vector<rondo_ir_value> values;
  for (int64_t one : inputs) values.push_back(one < 0 ? RONDO_IR_NONE : static_cast<rondo_ir_value>(one));
  std::vector<rondo_ir_value> results(outputs, RONDO_IR_NONE);
  check(rondo_ir_graph_add_node(graph_, operator_name.c_str(), name.empty() ? nullptr : name.c_str(), values.data(),
                                static_cast<uint32_t>(values.size()), given.all.data(),
                                static_cast<uint32_t>(given.all.size()), results.data(), outputs));
  return {results.begin(), results.end()};
}

void IrGraph::output(uint32_t value, const std::string& name) {
  check(rondo_ir_graph_add_output(graph_, value, name.c_str()));
}

std::string IrGraph::dump(const std::string& format) const {
  std::string text;
  rondo_dump_format which = format == "dot" ? RONDO_DUMP_DOT : format == "json" ? RONDO_DUMP_JSON : RONDO_DUMP_TEXT;
  check(rondo_ir_graph_dump(graph_, which, append, &text));
  return text;
}

void bind_torchair(py::module& m) {
  py::class_<IrGraph>(m, "IrGraph")
      .def(py::init<const std::string&>())
      .def("input", [](IrGraph& self, const std::string& name, const at::Tensor& like,
                       const std::vector<int64_t>& dims) { return self.input(name, like.scalar_type(), dims); })
      .def("constant", &IrGraph::constant)
      .def("node", &IrGraph::node)
      .def("output", &IrGraph::output)
      .def("verify", [](IrGraph& self) { check(rondo_ir_graph_verify(self.handle())); })
      .def("dump", &IrGraph::dump);
  m.def("operators", &operators);
  m.def("operator_info", &describe);
  m.def("operator_load", [](const std::string& path) { check(rondo_operator_load(instance(), path.c_str())); });
  m.def("dtype_number", [](const at::Tensor& like) { return dtype_of(like.scalar_type()); });
  bind_plan(m);
}

}  // namespace rondo_torch
