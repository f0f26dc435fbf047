// SPDX-License-Identifier: Apache-2.0
//
// Devices, streams, events and kernels of the driver, as PyTorch asks for them; the graph object; what Python sees.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <acl_simulator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime.hpp"

namespace py = pybind11;

namespace npu {
namespace {

constexpr int kDevices = 2;
constexpr size_t kStreams = 16;  // of a device; who asks for more gets one of these again

thread_local int t_device = 0, t_entered = -1;
thread_local std::array<c10::StreamId, kDevices> t_streams{};

std::mutex g_mutex;
std::string g_failure;  // of a kernel, until somebody is told
struct Streams {
  std::vector<aclrtStream> all;  // [0] is the driver's default one
  size_t next = 1;
};
std::array<Streams, kDevices> g_streams;

Streams& streams_of(int device) {
  enter(device);
  Streams& streams = g_streams.at(static_cast<size_t>(device));
  if (streams.all.empty()) {
    streams.all.emplace_back();
    NPU_CALL(aclrtCtxGetCurrentDefaultStream, &streams.all[0]);
  }
  return streams;
}

c10::StreamId new_stream(int device) {
  std::lock_guard<std::mutex> lock(g_mutex);
  Streams& streams = streams_of(device);
  if (streams.all.size() < kStreams) {
    aclrtStream made = nullptr;
    NPU_CALL(aclrtCreateStreamWithConfig, &made, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC);
    NPU_CALL(aclrtSetStreamFailureMode, made, ACL_STOP_ON_FAILURE);
    streams.all.push_back(made);
    return static_cast<c10::StreamId>(streams.all.size() - 1);
  }
  streams.next = streams.next % (kStreams - 1) + 1;
  return static_cast<c10::StreamId>(streams.next);
}

aclrtStream stream_at(int device, c10::StreamId id) {
  std::lock_guard<std::mutex> lock(g_mutex);
  return streams_of(device).all.at(static_cast<size_t>(id));
}

int index_of(c10::Device device) { return device.index() < 0 ? t_device : device.index(); }

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Stream stream(c10::Device device, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, {kType, static_cast<c10::DeviceIndex>(index_of(device))}, id);
  }
  c10::DeviceType type() const override { return kType; }
  c10::Device getDevice() const override { return {kType, static_cast<c10::DeviceIndex>(t_device)}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override {
    if (device.index() >= 0) set_current_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override { t_device = device.index(); }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  c10::Stream getStream(c10::Device device) const override {
    return stream(device, t_streams.at(static_cast<size_t>(index_of(device))));
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(device, 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return stream(device, new_stream(index_of(device)));
  }
  c10::Stream exchangeStream(c10::Stream other) const override {
    c10::Stream before = getStream(other.device());
    t_streams.at(static_cast<size_t>(other.device_index())) = other.id();
    return before;
  }
  bool queryStream(const c10::Stream& s) const override {
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    NPU_CALL(aclrtStreamQuery, native(s), &status);
    return status == ACL_STREAM_STATUS_COMPLETE;
  }
  void synchronizeStream(const c10::Stream& s) const override { NPU_CALL(aclrtSynchronizeStream, native(s)); }
  bool isStreamCapturing(const c10::Stream& s) const override { return capture_of(native(s)) != nullptr; }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    enter(index);
    check(aclrtSynchronizeDevice(), "aclrtSynchronizeDevice");
  }
  void record(void** event, const c10::Stream& s, const c10::DeviceIndex, const c10::EventFlag) const override {
    aclrtStream stream = native(s);
    if (!*event) NPU_CALL(aclrtCreateEventExWithFlag, event, ACL_EVENT_SYNC);
    NPU_CALL(aclrtRecordEvent, *event, stream);
  }
  void block(void* event, const c10::Stream& s) const override {
    if (event) NPU_CALL(aclrtStreamWaitEvent, native(s), event);
  }
  bool queryEvent(void* event) const override {
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
    if (event) NPU_CALL(aclrtQueryEventStatus, event, &status);
    return status == ACL_EVENT_RECORDED_STATUS_COMPLETE;
  }
  void synchronizeEvent(void* event) const override {
    if (event) NPU_CALL(aclrtSynchronizeEvent, event);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event) (void)aclrtDestroyEvent(event);
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  void init() const override {}
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(t_device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    c10::DeviceIndex before = getCurrentDevice();
    set_current_device(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    c10::DeviceIndex before = getCurrentDevice();
    if (index >= 0) set_current_device(index);
    return before;
  }
};

struct Registered {
  Registered() {
    c10::register_privateuse1_backend("npu");
    at::RegisterPrivateUse1HooksInterface(new Hooks);
  }
} g_registered;

// ----------------------------------------------------------------------------------------------------------- kernels

struct Call {
  std::function<void()> work;
  bool once;
};
std::map<aclmdlRI, std::deque<Call>> g_kept;  // what graphs will call

int32_t run(const aclsim_launch* launch) noexcept {
  Call* call = nullptr;
  std::memcpy(&call, launch->arguments, sizeof call);
  int32_t failed = 0;
  try {
    call->work();
  } catch (const std::exception& error) {
    std::lock_guard<std::mutex> lock(g_mutex);
    g_failure = error.what();
    failed = 1;
  }
  if (call->once) delete call;
  return failed;
}

void drop(void* model) noexcept {
  std::lock_guard<std::mutex> lock(g_mutex);
  g_kept.erase(model);
}

aclrtFuncHandle kernel(int device) {
  static std::array<aclrtFuncHandle, kDevices> handles{};
  static const aclsim_kernel kernels[] = {{"npu_call", run, ACLSIM_VECTOR, 1}};
  static const aclsim_image image = {ACLSIM_MAGIC, 1, kernels};
  std::lock_guard<std::mutex> lock(g_mutex);
  aclrtFuncHandle& handle = handles.at(static_cast<size_t>(device));
  if (!handle) {
    aclrtBinHandle binary = nullptr;
    NPU_CALL(aclrtBinaryLoadFromData, &image, sizeof image, nullptr, &binary);
    NPU_CALL(aclrtBinaryGetFunction, binary, "npu_call", &handle);
  }
  return handle;
}

Call* keep(aclmdlRI model, std::function<void()> work) {
  bool first = false;
  Call* kept = nullptr;
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    auto [entry, fresh] = g_kept.try_emplace(model);
    first = fresh;
    kept = &entry->second.emplace_back(Call{std::move(work), false});
  }
  if (first) NPU_CALL(aclmdlRIDestroyRegisterCallback, model, &drop, model);
  return kept;
}

// -------------------------------------------------------------------------------------------------------------- graph

// The vendor's own: what is captured is the driver's graph, and there is no instantiation.
class NPUGraph {
 public:
  ~NPUGraph() { reset(); }
  void capture_begin(std::optional<PoolId> pool, const std::string& mode) {
    static const std::map<std::string, aclmdlRICaptureMode> modes = {
        {"global", ACL_MODEL_RI_CAPTURE_MODE_GLOBAL},
        {"thread_local", ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL},
        {"relaxed", ACL_MODEL_RI_CAPTURE_MODE_RELAXED}};
    TORCH_CHECK(!stream_ && !model_, "npu: the graph has a capture already");
    TORCH_CHECK(modes.count(mode), "npu: ", mode, " is no capture mode");
    device_ = t_device;
    aclrtStream stream = current_stream(device_);
    PoolId chosen = pool.value_or(new_pool(false));
    begin_pool(device_, chosen, [stream](aclrtStream other) {
      aclmdlRI mine = capture_of(stream);
      return mine && mine == capture_of(other);
    });
    aclError error = aclmdlRICaptureBegin(stream, modes.at(mode));
    if (error) {
      end_pool(device_, chosen);
      release_pool(device_, chosen);
      check(error, "aclmdlRICaptureBegin");
    }
    stream_ = stream;
    pool_ = chosen;
  }
  void capture_end() {
    TORCH_CHECK(stream_, "npu: capture_end() before capture_begin()");
    aclError error = aclmdlRICaptureEnd(stream_, &model_);
    stream_ = nullptr;
    end_pool(device_, pool_);
    if (error) {
      model_ = nullptr;
      release_pool(device_, pool_);
    }
    check(error, "aclmdlRICaptureEnd");
  }
  void replay() {
    TORCH_CHECK(model_, "npu: there is nothing to replay");
    NPU_CALL(aclmdlRIExecuteAsync, model_, current_stream(device_));
  }
  void reset() {
    if (stream_) {
      (void)aclmdlRICaptureEnd(stream_, &model_);
      end_pool(device_, pool_);
    }
    if (model_) (void)aclmdlRIDestroy(model_);
    if (stream_ || model_) release_pool(device_, pool_);
    stream_ = model_ = nullptr;
  }
  PoolId pool() const {
    TORCH_CHECK(model_, "npu: there is no capture");
    return pool_;
  }

 private:
  int device_ = 0;
  aclrtStream stream_ = nullptr;  // while it captures
  aclmdlRI model_ = nullptr;
  PoolId pool_{0, 0};
};

}  // namespace

void check(aclError error, const char* call) {
  if (!error) return;
  const char* recent = aclGetRecentErrMsg();
  std::string text = recent ? recent : "failed", why;
  text.resize(std::min(text.size(), text.find('\n')));  // below it the driver traces back
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    why.swap(g_failure);
  }
  TORCH_CHECK(false, "npu: ", call, ": ", text, " [", error, "]", why.empty() ? "" : "\n  ", why);
}

void enter(int device) {
  static const aclError begun = aclInit(nullptr);
  constexpr aclError kAgain = 100002;
  TORCH_CHECK(!begun || begun == kAgain, "npu: aclInit: ", begun);
  if (t_entered == device) return;
  check(aclrtSetDevice(device), "aclrtSetDevice");
  t_entered = device;
}

aclrtStream native(const c10::Stream& stream) { return stream_at(stream.device_index(), stream.id()); }

int current_device() { return t_device; }
void set_current_device(int index) {
  TORCH_CHECK(index >= 0 && index < kDevices, "npu: there is no device ", index);
  t_device = index;
}

aclrtStream current_stream(int device) { return stream_at(device, t_streams.at(static_cast<size_t>(device))); }

aclmdlRI capture_of(aclrtStream stream) {
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  aclmdlRI model = nullptr;
  NPU_CALL(aclmdlRICaptureGetInfo, stream, &status, &model);
  return status == ACL_MODEL_RI_CAPTURE_STATUS_NONE ? nullptr : model;
}

void launch(int device, std::function<void()> work) {
  aclrtStream stream = current_stream(device);
  aclrtFuncHandle handle = kernel(device);
  aclmdlRI model = capture_of(stream);
  Call* call = model ? keep(model, std::move(work)) : new Call{std::move(work), true};
  aclError error = aclrtLaunchKernelWithHostArgs(handle, 1, stream, nullptr, &call, sizeof call, nullptr, 0);
  if (error && !model) delete call;
  check(error, "aclrtLaunchKernelWithHostArgs");
}

}  // namespace npu

PYBIND11_MODULE(_C, m) {
  using npu::NPUGraph;
  py::class_<NPUGraph>(m, "_NPUGraph")
      .def(py::init<>())
      .def("capture_begin", &NPUGraph::capture_begin, py::arg("pool") = py::none(),
           py::arg("capture_error_mode") = "global")
      .def("capture_end", &NPUGraph::capture_end)
      .def("replay", &NPUGraph::replay)
      .def("reset", &NPUGraph::reset)
      .def("pool", &NPUGraph::pool);
  m.def("_npu_getDevice", &npu::current_device);
  m.def("_npu_setDevice", &npu::set_current_device);
  m.def("_npu_getDeviceCount", [] { return npu::kDevices; });
  m.def("_npu_getCurrentRawStream", [](int device) { return reinterpret_cast<uint64_t>(npu::current_stream(device)); });
  npu::bind_memory(m);
}
