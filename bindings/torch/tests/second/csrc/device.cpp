// SPDX-License-Identifier: Apache-2.0
//
// Two devices whose work runs at once: streams and events say only what a capture records.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include "second.hpp"

namespace second {
namespace {

thread_local int t_device = 0;
thread_local std::array<c10::StreamId, kDevices> t_streams{};

std::mutex g_streams_mutex;
c10::StreamId g_next = 1;
std::map<std::pair<int, c10::StreamId>, std::shared_ptr<Recording>> g_recordings;

std::shared_ptr<Recording> recording_of(int device, c10::StreamId stream) {
  std::lock_guard<std::mutex> lock(g_streams_mutex);
  auto found = g_recordings.find({device, stream});
  return found == g_recordings.end() ? nullptr : found->second;
}

struct Event {
  std::weak_ptr<Recording> in;
};

int index_of(c10::Device device) { return device.index() < 0 ? t_device : device.index(); }

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Stream stream(c10::Device device, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, {kType, static_cast<c10::DeviceIndex>(index_of(device))}, id);
  }
  static c10::Stream fresh(c10::Device device) {
    std::lock_guard<std::mutex> lock(g_streams_mutex);
    return stream(device, g_next++);
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
  c10::Stream getStream(c10::Device device) const override { return stream(device, current_stream(index_of(device))); }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(device, 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return fresh(device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return fresh(device); }
  c10::Stream exchangeStream(c10::Stream other) const override {
    c10::Stream before = getStream(other.device());
    t_streams.at(static_cast<size_t>(other.device_index())) = other.id();
    return before;
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream& s) const override {
    if (auto capture = recording_of(s.device_index(), s.id())) {
      capture->broken = "a stream that captures was waited for";
      TORCH_CHECK(false, "second: ", capture->broken);
    }
  }
  bool isStreamCapturing(const c10::Stream& s) const override {
    return recording_of(s.device_index(), s.id()) != nullptr;
  }
  void synchronizeDevice(const c10::DeviceIndex) const override {}
  void record(void** event, const c10::Stream& s, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (!*event) *event = new Event;
    static_cast<Event*>(*event)->in = recording_of(s.device_index(), s.id());
  }
  void block(void* event, const c10::Stream& s) const override {
    if (auto capture = event ? static_cast<Event*>(event)->in.lock() : nullptr) {
      second::record(s.device_index(), s.id(), capture);
    }
  }
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
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
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    c10::DataPtr memory = allocate(storage.device().index(), bytes);
    if (memory.get() && storage.data()) std::memcpy(memory.get(), storage.data(), std::min(bytes, storage.nbytes()));
    storage.set_data_ptr_noswap(std::move(memory));
    storage.set_nbytes(bytes);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    c10::DeviceIndex before = getCurrentDevice();
    if (index >= 0) set_current_device(index);
    return before;
  }
};

struct Registered {
  Registered() {
    c10::register_privateuse1_backend("second");
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    register_memory();
  }
} g_registered;

}  // namespace

int current_device() { return t_device; }
void set_current_device(int index) {
  TORCH_CHECK(index >= 0 && index < kDevices, "second: there is no device ", index);
  t_device = index;
}
c10::StreamId current_stream(int device) { return t_streams.at(static_cast<size_t>(device)); }

std::shared_ptr<Recording> recording(int device) { return recording_of(device, current_stream(device)); }

void record(int device, c10::StreamId stream, std::shared_ptr<Recording> into) {
  std::lock_guard<std::mutex> lock(g_streams_mutex);
  auto& now = g_recordings[{device, stream}];
  TORCH_CHECK(!now || now == into, "second: the stream captures already");
  now = std::move(into);
}

void stop_recording(const std::shared_ptr<Recording>& which) {
  std::lock_guard<std::mutex> lock(g_streams_mutex);
  std::erase_if(g_recordings, [&](auto& one) { return one.second == which; });
}

void enqueue(int device, std::function<void()> call) {
  if (auto capture = recording(device)) capture->calls.push_back(std::move(call));
  else call();
}

void refuse(int device, const std::string& what) {
  auto capture = recording(device);
  if (!capture) return;
  if (capture->broken.empty()) capture->broken = what;
  TORCH_CHECK(false, "second: ", what, " cannot be captured");
}

}  // namespace second
