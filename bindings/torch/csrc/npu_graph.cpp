// SPDX-License-Identifier: Apache-2.0
//
// torch.accelerator.Graph for another package's device over AscendCL: Rondo's graph of the device type "ascend",
// captured on the package's own streams, so that the driver records what the package launches there. The package's
// allocator is diverted through its own names, which rondo_torch.npu binds. Registered when somebody asks for it.
#include <ATen/core/GraphImplInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <rondo/rondo.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "handled.hpp"
#include "node.hpp"
#include "npu_graph.hpp"
#include "runtime.hpp"
#include "upstream.hpp"

namespace py = pybind11;

namespace rondo_torch {
namespace {

// PyTorch's modes in their order; backends/ascend says which of the driver's each of them is.
constexpr rondo_capture_mode kModes[] = {RONDO_CAPTURE_MODE_DEFAULT, RONDO_CAPTURE_MODE_GLOBAL,
                                         RONDO_CAPTURE_MODE_THREAD_LOCAL, RONDO_CAPTURE_MODE_RELAXED};

// The devices of AscendCL, and what stands for the package's streams there. Nobody tells when a stream ends: as many
// stay here as the package has made.
class Ascend {
 public:
  static Ascend& get() {
    static auto* one = new Ascend;  // graphs may outlive everything else of the process
    return *one;
  }
  rondo_device* device(int index) {
    std::lock_guard<std::mutex> lock(mutex_);
    return opened(index);
  }
  rondo_stream* stream(int index, void* native) {
    std::lock_guard<std::mutex> lock(mutex_);
    rondo_stream*& known = streams_[{index, native}];
    if (!known) check(rondo_stream_wrap(opened(index), native, &known));
    return known;
  }

 private:
  Ascend() = default;
  rondo_device* opened(int index) {
    rondo_device*& known = devices_[index];
    if (!known) check(rondo_device_open(instance(), ("ascend:" + std::to_string(index)).c_str(), nullptr, &known));
    return known;
  }
  std::mutex mutex_;
  std::map<int, rondo_device*> devices_;
  std::map<std::pair<int, void*>, rondo_stream*> streams_;
};

// What the package is asked, by the names of rondo_torch.npu. Never let go, since graphs end late.
py::object* g_package = nullptr;

void of_pool(const char* name, int device, c10::MempoolId_t pool) {
  py::gil_scoped_acquire lock;
  g_package->attr(name)(device, py::make_tuple(pool.first, pool.second));
}

class NPUGraphImpl final : public at::GraphImplInterface {
 public:
  explicit NPUGraphImpl(const at::GraphImplArgs& args) {
    static std::atomic<bool> told{false};
    if (!args.keep_graph || told.exchange(true)) return;
    py::gil_scoped_acquire lock;
    std::string text = "keep_graph=True has no effect on " + c10::DeviceTypeName(kType, true) +
                       ": what the driver has captured runs as it is, and is not instantiated again";
    if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1)) throw py::error_already_set();
  }
  ~NPUGraphImpl() override {
    drop();
    rondo_graph_release(graph_);
  }
  NPUGraphImpl(const NPUGraphImpl&) = delete;
  NPUGraphImpl& operator=(const NPUGraphImpl&) = delete;

  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode) override {
    TORCH_CHECK(!capturing(), "rondo: called capture_begin() while the graph is capturing: call capture_end() first");
    TORCH_CHECK(!captured(), "rondo: this graph instance already owns a captured graph; reset() it, or create a new "
                "instance");
    const auto* guard = c10::impl::getDeviceGuardImpl(kType);
    c10::Device device = guard->getDevice();
    TORCH_CHECK(guard->getStream(device) != guard->getDefaultStream(device),
                "rondo: graphs must be captured on a non-default stream; enter torch.Stream() first");
    if (graph_ && device.index() != device_) rondo_graph_release(std::exchange(graph_, nullptr));
    device_ = device.index();
    if (!graph_) create();
    rondo_stream* stream = current_stream();
    auto handled = std::make_unique<HandledException>();
    if (!pool.first && !pool.second) pool = new_pool();
    of_pool("begin_allocate_current_stream_to_pool", device_, pool);
    pool_ = pool;
    rondo_status status = rondo_graph_capture_begin(graph_, stream, {0, 0}, kModes[static_cast<int>(mode)]);
    if (status) {
      end_diversion();
      release();
      check(status);
    }
    rondo_capture_status known = RONDO_CAPTURE_STATUS_INIT;
    check(rondo_stream_capture_status(stream, &known));
    capture_id_ = known.id;
    handled_ = std::move(handled);
    dropped_.clear();
  }

  void capture_end() override {
    TORCH_CHECK(capturing(), "rondo: called capture_end() before capture_begin()");
    HandledException now;
    bool left = now.any() && !(handled_ && now.same_as(*handled_));
    // The package may hold launches back: whoever asks for its stream has it hand them on, and they are still captured.
    rondo_stream* stream = current_stream();
    rondo_status status = left ? rondo_graph_abort(graph_) : rondo_graph_capture_end(graph_, stream);
    if (capturing()) check(status);  // refused: another stream or thread; the capture goes on
    handled_.reset();
    end_diversion();
    nodes_ = take_nodes(capture_id_);
    if (!left && !status) return;
    nodes_.reset();
    release();
    if (!left) {
      dropped_ = text_of(status);
      TORCH_CHECK(false, "rondo: ", dropped_);
    }
    rondo_status_release(status);
    dropped_ = "an exception left the capture (" + now.text() + "), and what it had recorded was dropped";
  }

  // The driver's capture is executable when it ends.
  void instantiate() override { need_capture("instantiate"); }

  void replay() override {
    need_capture("replay");
    check(rondo_graph_replay(graph_, current_stream()));
  }

  void reset() override {
    dropped_.clear();
    drop();
  }

  c10::MempoolId_t pool() const override {
    need_capture("pool");
    return pool_;
  }

  // What the driver has captured can be shown in any case.
  void enable_debug_mode() override {}

  void debug_dump(const std::string& path) override {
    need_capture("debug_dump");
    check(rondo_graph_debug_dump(graph_, path.c_str()));
  }

 private:
  bool in(rondo_graph_state one, rondo_graph_state other) const {
    rondo_graph_state state = graph_ ? rondo_graph_get_state(graph_) : RONDO_GRAPH_EMPTY;
    return state == one || state == other;
  }
  bool capturing() const { return in(RONDO_GRAPH_CAPTURING, RONDO_GRAPH_INVALIDATED); }
  bool captured() const { return in(RONDO_GRAPH_CAPTURED, RONDO_GRAPH_READY); }
  void need_capture(const char* call) const {
    if (captured()) return;
    TORCH_CHECK(!capturing(), "rondo: called ", call, "() while the graph is capturing: call capture_end() first");
    TORCH_CHECK(false, "rondo: called ", call, "() without a preceding successful capture",
                dropped_.empty() ? "" : ": ", dropped_);
  }
  void create() {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    options.name = "torch.accelerator.Graph";
    check(rondo_graph_create(Ascend::get().device(device_), &options, &graph_));
    check(rondo_graph_enable_debug_mode(graph_));
  }
  rondo_stream* current_stream() const { return npu_current_stream(device_); }

  // The package's pool: in use as long as this graph has its capture.
  static c10::MempoolId_t new_pool() {
    py::gil_scoped_acquire lock;
    return g_package->attr("graph_pool_handle")().cast<std::pair<c10::CaptureId_t, c10::CaptureId_t>>();
  }
  void end_diversion() { of_pool("end_allocate_to_pool", device_, pool_); }
  void release() { of_pool("release_pool", device_, std::exchange(pool_, {0, 0})); }
  // To an empty graph, from whatever it is.
  void drop() noexcept {
    bool began = capturing();
    handled_.reset();
    if (graph_) rondo_graph_reset(graph_);  // waits behind the last replay: then the pool may go
    if (began) (void)take_nodes(capture_id_);
    nodes_.reset();
    if (!(pool_.first || pool_.second) || !Py_IsInitialized()) return;
    try {
      if (began) end_diversion();
      release();
    } catch (const std::exception& error) {
      TORCH_WARN("rondo: the pool of a graph was not given back: ", error.what());
    }
  }

  int device_ = 0;
  rondo_graph* graph_ = nullptr;
  c10::MempoolId_t pool_{0, 0};  // none: there is no capture
  std::unique_ptr<HandledException> handled_;  // by Python, when the capture began
  uint64_t capture_id_ = 0;
  std::shared_ptr<NodeList> nodes_;  // what the replays use beside the package's memory
  std::string dropped_;  // why there is nothing to replay, after a capture that came to nothing
};

// False: the package has registered its own, which is left alone. A registration lasts as long as the process.
bool register_npu(py::object package) {
  std::string key = c10::DeviceTypeName(kType, false);
  TORCH_CHECK(key == "NPU", "rondo: the device of this process is ", key, " and not NPU");
  if (!g_package) g_package = new py::object(std::move(package));
  if (at::GraphImplRegistry()->Has(key)) return false;
  at::GraphImplRegistry()->Register(
      key, [](const at::GraphImplArgs& args) -> std::unique_ptr<at::GraphImplInterface> {
        return std::make_unique<NPUGraphImpl>(args);
      });
  return true;
}

// Whether the package says that the driver captures its current stream. Where PyTorch has no such question, nobody knows.
template <typename Guard>
auto package_captures(const Guard* guard, int index) -> decltype(guard->isStreamCapturing(guard->getStream({kType, 0}))) {
  return guard->isStreamCapturing(guard->getStream({kType, static_cast<c10::DeviceIndex>(index)}));
}
[[maybe_unused]] bool package_captures(...) { return false; }

}  // namespace

bool is_npu() {
  static const bool known = c10::DeviceTypeName(kType, false) == "NPU";
  return known;
}

rondo_device* npu_device(int index) { return Ascend::get().device(index); }

rondo_stream* npu_current_stream(int index) {
  uint64_t native = 0;
  {
    py::gil_scoped_acquire lock;
    TORCH_CHECK(g_package, "rondo: the streams of npu are not known: import rondo_torch.npu and call its install()");
    native = g_package->attr("raw_stream")(index).cast<uint64_t>();
  }
  return Ascend::get().stream(index, reinterpret_cast<void*>(native));
}

bool npu_captures(int index) { return package_captures(c10::impl::getDeviceGuardImpl(kType), index); }

void bind_npu(py::module& m) {
  m.def("register_npu_graph_impl", &register_npu);
  m.def("use_npu_package", [](py::object package) {
    if (!g_package) g_package = new py::object(std::move(package));
  });
  m.def("npu_runs_host_kernels", [](int index) {
    return (rondo_device_info(npu_device(index))->capabilities & RONDO_DEVICE_HOST_KERNELS) != 0;
  });
}

}  // namespace rondo_torch
