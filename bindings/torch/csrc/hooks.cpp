// SPDX-License-Identifier: Apache-2.0
//
// The device's name, its generators, and what ATen asks of an accelerator.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceGuard.h>

#include <cstring>

#include "allocator.hpp"
#include "generator.hpp"
#include "registration.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  void init() const override {}
  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(device_count()); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(current_device()); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    c10::DeviceIndex before = getCurrentDevice();
    set_device(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    c10::DeviceIndex before = getCurrentDevice();
    if (index >= 0) set_device(index);
    return before;
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return make_generator(index); }
  at::Device getDeviceFromPtr(void*) const override { return {kType, static_cast<c10::DeviceIndex>(current_device())}; }
  bool isPinnedPtr(const void* pointer) const override { return is_pinned(pointer); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto* impl = storage.unsafeGetStorageImpl();
    int index = index_of(impl->device());
    rondo_stream* stream = current_stream(index);
    c10::DataPtr fresh = allocate_on(index, bytes);
    size_t kept = std::min(bytes, impl->nbytes());
    if (kept) check(rondo_stream_copy(stream, fresh.get(), impl->data(), kept, RONDO_COPY_DEVICE_TO_DEVICE));
    impl->set_data_ptr_noswap(std::move(fresh));
    impl->set_nbytes(bytes);
  }
};

const Registration g_registration([] {
  c10::register_privateuse1_backend("rondo");
  at::RegisterPrivateUse1HooksInterface(new Hooks);
});

}  // namespace
}  // namespace rondo_torch
