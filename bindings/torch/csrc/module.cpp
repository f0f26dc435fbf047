// SPDX-License-Identifier: Apache-2.0
//
// What rondo_torch's Python calls.
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/extension.h>
#include <torch/version.h>

#include "device.hpp"
#include "generator.hpp"
#include "launch.hpp"
#include "node.hpp"
#include "pool.hpp"
#include "registration.hpp"
#include "runtime.hpp"
#include "seal.hpp"
#include "tree_function.hpp"
#include "upstream.hpp"

namespace py = pybind11;
using namespace rondo_torch;

namespace {

PyMethodDef g_fast[] = {
    {"launch_kernel", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(launch_kernel)), METH_FASTCALL, nullptr},
    {"resolve_kernel", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(resolve_kernel)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

int exchange(int index) {
  int before = current_device();
  if (index >= 0) set_device(index);
  return before;
}

py::dict statistics(int index) {
  rondo_memory_statistics now = RONDO_MEMORY_STATISTICS_INIT;
  check(rondo_memory_get_statistics(device(index), {0, 0}, &now));
  py::dict result;
  result["allocated_bytes"] = now.allocated_bytes;
  result["allocated_peak"] = now.allocated_peak;
  result["reserved_bytes"] = now.reserved_bytes;
  result["reserved_peak"] = now.reserved_peak;
  result["allocations"] = now.allocations;
  result["segments"] = now.segments;
  result["out_of_memory"] = now.out_of_memory;
  return result;
}

uint64_t counter(int index, const std::string& name) {
  uint64_t value = 0;
  check(rondo_device_counter(device(index), name.c_str(), &value));
  return value;
}

py::dict properties(int index) {
  const rondo_device_properties* known = rondo_device_info(device(index));
  py::dict result;
  result["name"] = std::string(known->name);
  result["description"] = std::string(known->description);
  result["total_memory"] = known->memory_total;
  result["capabilities"] = known->capabilities;
  return result;
}

// None: the current accelerator, which is this device when anybody asks here.
bool has_graph_impl(const std::string& type) {
  c10::DeviceType which = c10::Device(type).type();
  return at::has_graph_impl(which);
}

}  // namespace

PYBIND11_MODULE(_C, m) {
  m.def("version", &rondo_version);
  m.def("built_for", [] {
    return std::to_string(TORCH_VERSION_MAJOR) + "." + std::to_string(TORCH_VERSION_MINOR) + "." +
           std::to_string(TORCH_VERSION_PATCH);
  });
  m.def("backend", &backend);
  m.def("register_device", &register_device);
  m.def("device_count", &device_count);
  m.def("current_device", &current_device);
  m.def("set_device", &set_device);
  m.def("exchange_device", &exchange);
  m.def("synchronize", [](int index) {
    py::gil_scoped_release without;
    synchronize(index);
  });
  m.def("properties", &properties);
  m.def("statistics", &statistics);
  m.def("counter", &counter);
  m.def("has_graph_impl", &has_graph_impl);
  m.def("default_generator", [](int index) { return default_generator(static_cast<c10::DeviceIndex>(index)); });
  m.def("current_raw_stream", [](int index) { return reinterpret_cast<uint64_t>(current_stream(index)); });
  bind_pools(m);
  bind_device(m);
  bind_seal(m);
  bind_trees(m);
  bind_gates(m);
  bind_upstream(m);
  bind_contract(m);
  bind_npu(m);
  bind_torchair(m);
  if (PyModule_AddFunctions(m.ptr(), g_fast) < 0 || add_kernel_type(m.ptr()) < 0) throw py::error_already_set();
}
