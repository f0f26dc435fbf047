// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's two allocators over Rondo's memory room: device memory, and pinned host memory.
#include "allocator.hpp"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "registration.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

using c10::CachingDeviceAllocator::DeviceStats;

void free_on(int index, void* pointer) {
  if (!pointer) return;
  // A deleter may run in a destructor: what cannot be freed is said and left.
  rondo_status status = rondo_memory_free(device(index), pointer);
  if (status) TORCH_WARN("rondo: ", text_of(status));
}

// One function a device, so that a pointer alone is enough to free it.
template <int kIndex>
void delete_on(void* pointer) {
  free_on(kIndex, pointer);
}

template <size_t... kIndices>
constexpr std::array<c10::DeleterFnPtr, sizeof...(kIndices)> make_deleters(std::index_sequence<kIndices...>) {
  return {&delete_on<static_cast<int>(kIndices)>...};
}
constexpr auto kDeleters = make_deleters(std::make_index_sequence<kMaxDevices>());

void delete_current(void* pointer) { free_on(current_device(), pointer); }

void fill(c10::CachingAllocator::Stat& stat, uint64_t now, uint64_t peak) {
  stat.current = static_cast<int64_t>(now);
  stat.peak = static_cast<int64_t>(peak);
}

struct DeviceMemory final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t bytes) override { return allocate_on(current_device(), bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return &delete_current; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  bool initialized() override { return device_count() > 0; }

  void emptyCache(c10::MempoolId_t) override {
    for (int i = 0; i < device_count(); i++) check(rondo_memory_trim(device(i)));
  }

  void recordStream(const c10::DataPtr& pointer, c10::Stream stream) override {
    if (!pointer.get()) return;
    int index = stream.device_index();
    rondo_stream* other = stream_of(index, stream.id());
    // Memory that a tree lends out is not a block of the allocator's now: its order is the tree's.
    rondo_status_release(rondo_memory_record_stream(device(index), pointer.get(), other));
  }

  DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    rondo_memory_statistics now = RONDO_MEMORY_STATISTICS_INIT;
    check(rondo_memory_get_statistics(device(index), {0, 0}, &now));
    DeviceStats stats{};
    constexpr size_t kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    fill(stats.allocated_bytes[kAll], now.allocated_bytes, now.allocated_peak);
    fill(stats.active_bytes[kAll], now.allocated_bytes + now.pending_bytes, now.allocated_peak);
    fill(stats.reserved_bytes[kAll], now.reserved_bytes, now.reserved_peak);
    fill(stats.requested_bytes[kAll], now.requested_bytes, now.requested_bytes);
    fill(stats.inactive_split_bytes[kAll], now.inactive_bytes, now.inactive_bytes);
    fill(stats.allocation[kAll], now.allocations, now.allocations);
    fill(stats.active[kAll], now.allocations, now.allocations);
    fill(stats.segment[kAll], now.segments, now.segments);
    stats.num_alloc_retries = static_cast<int64_t>(now.allocation_retries);
    stats.num_ooms = static_cast<int64_t>(now.out_of_memory);
    stats.num_device_alloc = static_cast<int64_t>(now.segment_allocations);
    stats.num_device_free = static_cast<int64_t>(now.segment_frees);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "rondo: accumulated memory statistics cannot be reset");
  }
  void resetPeakStats(c10::DeviceIndex) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "rondo: peaks of memory statistics cannot be reset");
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    uint64_t available = 0, total = 0;
    check(rondo_device_memory_info(device(index), &available, &total));
    return {available, total};
  }
};

// Ranges of pinned memory, to answer whether a pointer lies in one.
std::mutex g_pinned_mutex;
std::map<const char*, size_t> g_pinned;

struct HostMemory final : at::HostAllocator {
  static void remove(void* pointer) {
    if (!pointer) return;
    {
      std::lock_guard<std::mutex> lock(g_pinned_mutex);
      g_pinned.erase(static_cast<const char*>(pointer));
    }
    rondo_status status = rondo_memory_host_free(device(0), pointer);
    if (status) TORCH_WARN("rondo: ", text_of(status));
  }
  c10::DataPtr allocate(size_t bytes) override {
    void* pointer = nullptr;
    if (bytes) {
      check(rondo_memory_host_allocate(device(0), bytes, &pointer));
      std::lock_guard<std::mutex> lock(g_pinned_mutex);
      g_pinned[static_cast<const char*>(pointer)] = bytes;
    }
    return {pointer, pointer, &remove, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &remove; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

DeviceMemory& device_memory() {
  static DeviceMemory* one = new DeviceMemory;
  return *one;
}
HostMemory& host_memory() {
  static HostMemory* one = new HostMemory;
  return *one;
}

const Registration g_registration([] {
  c10::SetAllocator(kType, &device_memory());
  at::setHostAllocator(kType, &host_memory());
});

}  // namespace

c10::DataPtr allocate_on(int index, size_t bytes) {
  c10::Device where(kType, static_cast<c10::DeviceIndex>(index));
  c10::DeleterFnPtr deleter = deleter_of(index);
  if (!bytes) return {nullptr, nullptr, deleter, where};
  void* pointer = nullptr;
  check(rondo_memory_allocate_on(current_stream(index), bytes, &pointer));
  return {pointer, pointer, deleter, where};
}

c10::DeleterFnPtr deleter_of(int index) { return kDeleters[static_cast<size_t>(index)]; }
c10::Allocator* device_allocator() { return &device_memory(); }
c10::Allocator* pinned_allocator() { return &host_memory(); }

bool is_pinned(const void* pointer) {
  std::lock_guard<std::mutex> lock(g_pinned_mutex);
  auto next = g_pinned.upper_bound(static_cast<const char*>(pointer));
  if (next == g_pinned.begin()) return false;
  auto range = std::prev(next);
  return static_cast<const char*>(pointer) < range->first + range->second;
}

}  // namespace rondo_torch
