// SPDX-License-Identifier: Apache-2.0
//
// CUDA through the contract: torch.cuda.CUDAGraph behind GraphImplInterface, registered when somebody asks for it and
// not before, since CUDA's own path needs no registration. It goes through Python, so it holds for every build of
// PyTorch.
#include <ATen/core/GraphImplInterface.h>

#include <memory>
#include <string>

#include "upstream.hpp"

namespace py = pybind11;

namespace rondo_torch {
namespace {

struct Mode {
  const char* name;
  at::GraphCaptureMode mode;
  const char* cuda;  // what torch.cuda calls it; its default is "global"
};
constexpr Mode kModes[] = {
    {"default", at::GraphCaptureMode::Default, "global"},
    {"global", at::GraphCaptureMode::Global, "global"},
    {"thread_local", at::GraphCaptureMode::ThreadLocal, "thread_local"},
    {"relaxed", at::GraphCaptureMode::Relaxed, "relaxed"},
};

// Eight calls, one line each. Whoever calls may hold the interpreter's lock or not.
class CUDAGraphImpl final : public at::GraphImplInterface {
 public:
  explicit CUDAGraphImpl(const at::GraphImplArgs& args) {
    py::gil_scoped_acquire lock;
    py::object make = py::module::import("torch").attr("cuda").attr("CUDAGraph");
    graph_ = args.keep_graph ? make(py::arg("keep_graph") = true) : make();
  }
  ~CUDAGraphImpl() override {
    py::gil_scoped_acquire lock;
    graph_ = py::object();
  }
  CUDAGraphImpl(const CUDAGraphImpl&) = delete;
  CUDAGraphImpl& operator=(const CUDAGraphImpl&) = delete;

  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode) override {
    py::gil_scoped_acquire lock;
    const char* name = kModes[static_cast<int>(mode)].cuda;
    if (pool.first || pool.second) {
      graph_.attr("capture_begin")(py::arg("pool") = py::make_tuple(pool.first, pool.second),
                                   py::arg("capture_error_mode") = name);
    } else {
      graph_.attr("capture_begin")(py::arg("capture_error_mode") = name);
    }
  }
  void capture_end() override { call("capture_end"); }
  void instantiate() override { call("instantiate"); }
  void replay() override { call("replay"); }
  void reset() override { call("reset"); }
  c10::MempoolId_t pool() const override {
    py::gil_scoped_acquire lock;
    return graph_.attr("pool")().cast<std::pair<c10::CaptureId_t, c10::CaptureId_t>>();
  }
  void enable_debug_mode() override { call("enable_debug_mode"); }
  void debug_dump(const std::string& path) override {
    py::gil_scoped_acquire lock;
    graph_.attr("debug_dump")(path);
  }

 private:
  void call(const char* name) {
    py::gil_scoped_acquire lock;
    graph_.attr(name)();
  }
  py::object graph_;
};

// False: a build of PyTorch has registered its own already, which is left alone. A registration lasts as long as the
// process.
bool register_cuda() {
  if (at::GraphImplRegistry()->Has("CUDA")) return false;
  at::GraphImplRegistry()->Register(
      "CUDA",
      [](const at::GraphImplArgs& args) -> std::unique_ptr<at::GraphImplInterface> {
        return std::make_unique<CUDAGraphImpl>(args);
      });
  return true;
}

// torch.accelerator.Graph makes graphs of the current accelerator only; this one is told the type.
class DeviceGraph {
 public:
  DeviceGraph(const std::string& type, bool keep_graph) {
    at::GraphImplArgs args;
    args.keep_graph = keep_graph;
    impl_ = at::create_graph_impl(c10::Device(type).type(), args);
    TORCH_CHECK(impl_, "rondo: Graph is not supported on device type ", type,
                ": it has no registered GraphImplInterface");
  }
  void capture_begin(std::pair<c10::CaptureId_t, c10::CaptureId_t> pool, const std::string& mode) {
    for (const Mode& known : kModes) {
      if (mode == known.name) return impl_->capture_begin(pool, known.mode);
    }
    TORCH_CHECK(false, "Unknown capture error mode. Expected `default`, `global`, `thread_local`, or `relaxed`, got ",
                mode);
  }
  at::GraphImplInterface& impl() { return *impl_; }

 private:
  std::unique_ptr<at::GraphImplInterface> impl_;
};

}  // namespace

void bind_contract(py::module& m) {
  m.def("register_cuda_graph_impl", &register_cuda);
  py::class_<DeviceGraph>(m, "DeviceGraph")
      .def(py::init<const std::string&, bool>(), py::arg("type"), py::arg("keep_graph") = false)
      .def("capture_begin", &DeviceGraph::capture_begin)
      .def("capture_end", [](DeviceGraph& graph) { graph.impl().capture_end(); })
      .def("instantiate", [](DeviceGraph& graph) { graph.impl().instantiate(); })
      .def("replay", [](DeviceGraph& graph) { graph.impl().replay(); })
      .def("reset", [](DeviceGraph& graph) { graph.impl().reset(); })
      .def("pool", [](DeviceGraph& graph) { return graph.impl().pool(); })
      .def("enable_debug_mode", [](DeviceGraph& graph) { graph.impl().enable_debug_mode(); })
      .def("debug_dump", [](DeviceGraph& graph, const std::string& path) { graph.impl().debug_dump(path); });
}

}  // namespace rondo_torch
