// SPDX-License-Identifier: Apache-2.0
//
// What c10 asks of a device: current device and stream, events.
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "node.hpp"
#include "registration.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

using Clock = std::chrono::steady_clock;

// When a stream came to where an event was recorded: a call before the record writes it.
struct Stamp {
  std::atomic<Clock::rep> time{0};
};

struct Event {
  rondo_event* handle = nullptr;
  int device = 0;
  std::shared_ptr<Stamp> stamp;  // if it is timed
};

// Makes a stream the current one of its device for a while.
struct OnStream {
  explicit OnStream(const c10::Stream& s) : device(s.device_index()), before(exchange_stream_id(device, s.id())) {}
  ~OnStream() { (void)exchange_stream_id(device, before); }
  int device;
  StreamId before;
};

struct StampNode final : Node {
  std::shared_ptr<Stamp> stamp;
  int32_t run(const uint64_t*) noexcept override {
    stamp->time = Clock::now().time_since_epoch().count();
    return 0;
  }
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
  c10::Stream getStream(c10::Device device) const override {
    int index = index_of(device);
    check_index(index);
    return stream(device, current_stream_id(index));
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(device, 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool urgent) const override {
    return stream(device, pooled_stream_id(index_of(device), urgent ? -1 : 0));
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return stream(device, pooled_stream_id(index_of(device), priority));
  }
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
    known->stamp = nullptr;
    if (flag != c10::EventFlag::PYTORCH_DEFAULT && !isStreamCapturing(s)) {
      known->stamp = std::make_shared<Stamp>();
      auto node = std::make_unique<StampNode>();
      node->stamp = known->stamp;
      OnStream here(s);
      enqueue(s.device_index(), std::move(node), {}, "rondo::event_time");
    }
    check(rondo_event_record(known->handle, stream_of(s.device_index(), s.id())));
  }
  void block(void* event, const c10::Stream& s) const override {
    if (!event) return;
    auto* known = static_cast<Event*>(event);
    // Between two devices only the host can keep the order.
    if (known->device != s.device_index()) check(rondo_event_synchronize(known->handle));
    else check(rondo_event_wait(known->handle, stream_of(s.device_index(), s.id())));
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
    auto *from = static_cast<Event*>(first), *to = static_cast<Event*>(second);
    TORCH_CHECK(from->device == to->device, "rondo: the events are of two devices, ", from->device, " and ", to->device);
    TORCH_CHECK(from->stamp && to->stamp,
                "rondo: both events must have been made with enable_timing=True, and recorded outside a capture");
    return std::chrono::duration<double, std::milli>(Clock::duration(to->stamp->time - from->stamp->time)).count();
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
