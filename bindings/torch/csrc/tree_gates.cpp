// SPDX-License-Identifier: Apache-2.0
//
// Rondo's gates for Python: whether a compiled function may be graphed, and if not, why.
#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "tree_function.hpp"
#include "tree_stream.hpp"

namespace rondo_torch {
namespace {

rondo_gates* gates() {
  static rondo_gates* one = [] {
    rondo_gates* made = nullptr;
    check(rondo_gates_create(instance(), &made));
    return made;
  }();
  return one;
}

// Of the device itself, to be asked what it can. They live as long as the process.
const rondo_graph_ops* operations_of(int index) {
  static std::mutex mutex;
  static auto* all = new std::array<rondo_graph_ops*, kMaxDevices>{};
  std::lock_guard<std::mutex> lock(mutex);
  rondo_graph_ops*& ops = (*all)[static_cast<size_t>(index)];
  if (!ops) ops = new rondo_graph_ops(tree_operations(index));
  return ops;
}

std::string text_or_nothing(const pybind11::handle& text) { return text.is_none() ? "" : text.cast<std::string>(); }

// devices: (type, index, flags, node, trace, native). The name of the gate that refuses, its text, and whether the device
// has a path of its own: ("", "", False) passes.
pybind11::tuple ask(const pybind11::list& devices, uint32_t flags, uint64_t only) {
  std::vector<std::array<std::string, 3>> texts;
  std::vector<rondo_gate_device> described;
  texts.reserve(devices.size());
  for (const auto& item : devices) {
    auto given = pybind11::cast<pybind11::tuple>(item);
    texts.push_back({given[0].cast<std::string>(), text_or_nothing(given[3]), text_or_nothing(given[4])});
    const auto& text = texts.back();
    rondo_gate_device device{};
    device.type = text[0].c_str();
    device.index = given[1].cast<int32_t>();
    device.flags = given[2].cast<uint32_t>();
    device.node = text[1].empty() ? nullptr : text[1].c_str();
    device.trace = text[2].empty() ? nullptr : text[2].c_str();
    if (given[5].cast<bool>()) device.ops = operations_of(device.index);
    described.push_back(device);
  }
  rondo_gate_facts facts{};
  facts.struct_size = sizeof facts;
  facts.flags = flags;
  facts.only = only;
  facts.device_count = static_cast<uint32_t>(described.size());
  facts.devices = described.data();
  rondo_gate_verdict verdict{};
  verdict.struct_size = sizeof verdict;
  check(rondo_gates_check(gates(), &facts, &verdict));
  bool own = (verdict.flags & RONDO_GATE_VERDICT_OWN_PATH) != 0;
  std::string name = verdict.gate == RONDO_GATE_NONE ? "" : rondo_gate_name(verdict.gate);
  return pybind11::make_tuple(name, std::string(verdict.text), own);
}

// (why) of an operator that cannot be captured, else None. `tags`: bits of RONDO_GATE_TAG_*.
pybind11::object ask_operator(const std::string& name, uint32_t tags, uint32_t flags) {
  rondo_gate_operator candidate{};
  candidate.name = name.c_str();
  candidate.tags = tags;
  rondo_gate_verdict verdict{};
  verdict.struct_size = sizeof verdict;
  check(rondo_gates_check_operator(gates(), flags, &candidate, &verdict));
  if (verdict.gate == RONDO_GATE_NONE) return pybind11::none();
  return pybind11::str(verdict.text);
}

int32_t append(void* user, const char* data, size_t size) {
  static_cast<std::string*>(user)->append(data, size);
  return 0;
}

std::string report(bool json) {
  std::string text;
  check(rondo_gates_report(gates(), json, append, &text));
  return text;
}

pybind11::dict numbers() {
  pybind11::dict all;
#define RONDO_X(name, number, text) all[#name] = uint64_t{1} << (number);
  RONDO_GATES(RONDO_X)
#undef RONDO_X
  return all;
}

}  // namespace

void bind_gates(pybind11::module& m) {
  m.def("gates_ask", &ask, pybind11::arg("devices"), pybind11::arg("flags"), pybind11::arg("only"));
  m.def("gates_ask_operator", &ask_operator, pybind11::arg("name"), pybind11::arg("tags") = 0, pybind11::arg("flags") = 0);
  m.def("gates_report", &report, pybind11::arg("json") = false);
  m.def("gates_reset_counts", [] { rondo_gates_reset_counts(gates()); });
  m.attr("GATES") = numbers();
  m.attr("GATE_CAPABLE") = static_cast<uint32_t>(RONDO_GATE_DEVICE_CAPABLE);
  m.attr("GATE_UNCACHED") = static_cast<uint32_t>(RONDO_GATE_DEVICE_UNCACHED);
  m.attr("GATE_UNAVAILABLE") = static_cast<uint32_t>(RONDO_GATE_DEVICE_UNAVAILABLE);
  m.attr("GATE_PARTITION") = static_cast<uint32_t>(RONDO_GATE_FLAG_PARTITION);
}

}  // namespace rondo_torch
