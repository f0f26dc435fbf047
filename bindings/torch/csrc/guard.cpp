// SPDX-License-Identifier: Apache-2.0
//
// What c10 asks of a device: current device and stream, events.
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>

#include "registration.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

struct Event {
  rondo_event* handle = nullptr;
  int device = 0;
  std::chrono::steady_clock::time_point time;  // of the record, on the host
  bool timed = false;
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device getDevice() const override { return {kType, static_cast<c10::DeviceIndex>(current_device())}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device before = getDevice();
    if (device.index() >= 0) set_device(device.index());
    return before;
  }
  void setDevice(c10::Device device) const override {
    if (device.index() >= 0) set_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override { set_device_unchecked(device.index()); }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(device_count()); }

  static c10::Stream stream(c10::Device device, StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, {kType, static_cast<c10::DeviceIndex>(index_of(device))}, id);
  }
  c10::Stream getStream(c10::Device device) const override { return stream(device, current_stream_id(index_of(device))); }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(device, 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return stream(device, pooled_stream_id(index_of(device)));
  }
  c10::Stream getNewStream(c10::Device device, int) const override { return stream(device, new_stream_id(index_of(device))); }
  c10::Stream exchangeStream(c10::Stream other) const override {
    return stream(other.device(), exchange_stream_id(other.device_index(), other.id()));
  }
  void* getStreamNativeHandle(const c10::Stream s) const override { return stream_of(s.device_index(), s.id()); }
  bool queryStream(const c10::Stream& s) const override {
    bool done = false;
    check(rondo_stream_query(stream_of(s.device_index(), s.id()), &done));
    return done;
  }
  void synchronizeStream(const c10::Stream& s) const override {
    check(rondo_stream_synchronize(stream_of(s.device_index(), s.id())));
  }
  bool isStreamCapturing(const c10::Stream& s) const override { return capturing(stream_of(s.device_index(), s.id())); }
  void synchronizeDevice(const c10::DeviceIndex index) const override { synchronize(index < 0 ? current_device() : index); }

  void record(void** event, const c10::Stream& s, const c10::DeviceIndex, const c10::EventFlag flag) const override {
    auto* known = static_cast<Event*>(*event);
    if (!known) {
      known = new Event;
      known->device = s.device_index();
      rondo_status status = rondo_event_create(device(known->device), &known->handle);
      if (status) delete known;
      check(status);
      *event = known;
    }
    known->timed = flag != c10::EventFlag::PYTORCH_DEFAULT;
    known->time = std::chrono::steady_clock::now();
    check(rondo_event_record(known->handle, stream_of(s.device_index(), s.id())));
  }
  void block(void* event, const c10::Stream& s) const override {
    if (event) check(rondo_event_wait(static_cast<Event*>(event)->handle, stream_of(s.device_index(), s.id())));
  }
  bool queryEvent(void* event) const override {
    bool done = true;
    if (event) check(rondo_event_query(static_cast<Event*>(event)->handle, &done));
    return done;
  }
  void synchronizeEvent(void* event) const override {
    if (event) check(rondo_event_synchronize(static_cast<Event*>(event)->handle));
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (!event) return;
    rondo_event_release(static_cast<Event*>(event)->handle);
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    TORCH_CHECK(first && second, "rondo: both events must be recorded before their times are compared");
    synchronizeEvent(first);
    synchronizeEvent(second);
    std::chrono::duration<double, std::milli> between = static_cast<Event*>(second)->time - static_cast<Event*>(first)->time;
    return between.count();
  }
  void recordDataPtrOnStream(const c10::DataPtr& pointer, const c10::Stream& s) const override {
    if (!pointer.get()) return;
    rondo_status_release(
        rondo_memory_record_stream(device(s.device_index()), pointer.get(), stream_of(s.device_index(), s.id())));
  }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }
};

const Registration g_registration([] { c10::impl::DeviceGuardImplRegistrar(kType, new Guard); });

}  // namespace
}  // namespace rondo_torch
