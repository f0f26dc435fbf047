// SPDX-License-Identifier: Apache-2.0
//
// What torch.rondo asks beside what torch.accelerator has: streams of others, the forked child, and the end of a process.
#include "device.hpp"

#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/autograd.h>

#include <exception>
#include <thread>

#include "allocator.hpp"
#include "generator.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

// The autograd thread of a device lets go of the last backward's Python objects after the caller has its result. A thread
// has one task after the other, so when it works at a further one, from a thread that Python knows nothing of, it has let
// go. Without this, at the end of the process, it may ask for an interpreter that is no more, and end the process by that.
void settle_autograd() {
  std::exception_ptr failed;
  std::thread thread([&] {
    try {
      for (int i = 0; i < device_count(); i++) {
        if (!is_open(i)) continue;
        at::Tensor leaf = at::ones({1}, at::TensorOptions().device(kType, static_cast<c10::DeviceIndex>(i)));
        leaf.requires_grad_(true);
        torch::autograd::backward({leaf.clone()});
      }
    } catch (...) {
      failed = std::current_exception();
    }
  });
  thread.join();
  if (failed) std::rethrow_exception(failed);
}

pybind11::dict host_statistics() {
  const at::HostStats stats = host_memory_statistics();
  pybind11::dict result;
  auto put = [&](const char* name, const c10::CachingAllocator::Stat& stat) {
    result[(std::string(name) + ".current").c_str()] = stat.current;
    result[(std::string(name) + ".peak").c_str()] = stat.peak;
    result[(std::string(name) + ".allocated").c_str()] = stat.allocated;
    result[(std::string(name) + ".freed").c_str()] = stat.freed;
  };
  put("allocations", stats.allocations);
  put("allocated_bytes", stats.allocated_bytes);
  result["num_host_alloc"] = stats.num_host_alloc;
  result["num_host_free"] = stats.num_host_free;
  return result;
}

}  // namespace

void bind_device(pybind11::module& m) {
  m.def("is_open", &is_open);
  m.def("is_capturing", [](int index) { return is_open(index) && capturing(current_stream(index)); });
  m.def("forked", &forked);
  m.def("settle_autograd", &settle_autograd, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("external_stream", [](int index, uint64_t address) {
    return external_stream_id(index, reinterpret_cast<rondo_stream*>(address));
  });
  m.def("set_memory_fraction", [](int index, double part) { check(rondo_memory_set_fraction(device(index), part)); });
  m.def("host_statistics", &host_statistics);
  m.def("reset_host_statistics", &reset_host_memory_statistics);
  m.def("seed_default", [](int index, uint64_t seed) { seed_default_generator(static_cast<c10::DeviceIndex>(index), seed); });
  m.def("raw_allocate", [](int index, size_t bytes) {
    return reinterpret_cast<uint64_t>(allocate_on(index, bytes).release_context());
  });
}

}  // namespace rondo_torch
