// SPDX-License-Identifier: Apache-2.0
//
// The graph object of the device, and what Python sees. It is in PyTorch's registry of graphs only if a test asks.
#include <ATen/core/GraphImplInterface.h>
#include <pybind11/stl.h>

#include "second.hpp"

namespace py = pybind11;

namespace second {
namespace {

int g_captures = 0, g_replays = 0;

class Graph {
 public:
  ~Graph() { reset(); }
  void capture_begin(std::optional<PoolId> pool, const std::string& mode) {
    TORCH_CHECK(!capture_ && !done_, "second: the graph has a capture already");
    int device = current_device();
    TORCH_CHECK(current_stream(device), "second: the default stream cannot be captured");
    auto capture = std::make_shared<Recording>();
    capture->device = device;
    capture->pool = pool.value_or(new_pool(false));
    begin_capture_pool(capture);
    try {
      record(device, current_stream(device), capture);
    } catch (...) {
      end_pool(device, capture->pool);
      release_pool(device, capture->pool);
      throw;
    }
    capture_ = std::move(capture);
    mode_ = mode;
  }
  void capture_end() {
    TORCH_CHECK(capture_, "second: capture_end() before capture_begin()");
    TORCH_CHECK(recording(capture_->device) == capture_, "second: the capture ends on the stream that began it");
    auto capture = std::move(capture_);
    capture_ = nullptr;
    stop(capture);
    if (!capture->broken.empty()) {
      release_pool(capture->device, capture->pool);
      TORCH_CHECK(false, "second: the capture was broken: ", capture->broken);
    }
    done_ = std::move(capture);
    g_captures++;
  }
  void replay() {
    TORCH_CHECK(done_, "second: there is nothing to replay");
    g_replays++;
    for (auto& one : done_->calls) one();
  }
  void reset() {
    for (auto* one : {&capture_, &done_}) {
      if (!*one) continue;
      stop(*one);
      release_pool((*one)->device, (*one)->pool);
      *one = nullptr;
    }
  }
  PoolId pool() const {
    TORCH_CHECK(done_, "second: there is no capture");
    return done_->pool;
  }
  size_t nodes() const { return done_ ? done_->calls.size() : 0; }
  std::string mode() const { return mode_; }

 private:
  static void stop(const std::shared_ptr<Recording>& which) {
    stop_recording(which);
    end_pool(which->device, which->pool);
  }
  std::shared_ptr<Recording> capture_, done_;
  std::string mode_;
};

class GraphImpl final : public at::GraphImplInterface {
 public:
  void capture_begin(PoolId pool, at::GraphCaptureMode mode) override {
    bool given = pool.first || pool.second;
    graph_.capture_begin(given ? std::optional(pool) : std::nullopt,
                         mode == at::GraphCaptureMode::ThreadLocal ? "thread_local" : "global");
  }
  void capture_end() override { graph_.capture_end(); }
  void instantiate() override {}
  void replay() override { graph_.replay(); }
  void reset() override { graph_.reset(); }
  PoolId pool() const override { return graph_.pool(); }
  void enable_debug_mode() override {}
  void debug_dump(const std::string&) override {}

 private:
  Graph graph_;
};

void register_graph_impl() {
  at::GraphImplRegistry()->Register(c10::DeviceTypeName(kType, false), [](const at::GraphImplArgs&) {
    return std::unique_ptr<at::GraphImplInterface>(std::make_unique<GraphImpl>());
  });
}

}  // namespace
}  // namespace second

PYBIND11_MODULE(_second, m) {
  using second::Graph;
  py::class_<Graph>(m, "Graph")
      .def(py::init<>())
      .def("capture_begin", &Graph::capture_begin, py::arg("pool") = py::none(),
           py::arg("capture_error_mode") = "thread_local")
      .def("capture_end", &Graph::capture_end)
      .def("replay", &Graph::replay)
      .def("reset", &Graph::reset)
      .def("pool", &Graph::pool)
      .def_property_readonly("nodes", &Graph::nodes)
      .def_property_readonly("mode", &Graph::mode);
  m.def("current_device", &second::current_device);
  m.def("set_device", &second::set_current_device);
  m.def("device_count", [] { return second::kDevices; });
  m.def("register_graph_impl", &second::register_graph_impl);
  m.def("counts", [] { return py::make_tuple(second::g_captures, second::g_replays); });
  second::bind_memory(m);
}
