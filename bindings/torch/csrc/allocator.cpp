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
  if (!pointer || forked()) return;  // a child of a fork has the parent's memory, and nobody to ask
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

// Since the beginning; Rondo's sums never go back, so what was there when they were reset is taken off.
struct Sums {
  uint64_t allocations = 0, allocated = 0, requested = 0, reserved = 0, segments = 0, segment_frees = 0;
  uint64_t live_allocations = 0, live_allocated = 0, live_requested = 0, live_reserved = 0, live_segments = 0;
};

Sums sums_of(const rondo_memory_statistics& now) {
  return {now.allocations_sum, now.allocated_sum,  now.requested_sum,   now.reserved_sum,    now.segment_allocations,
          now.segment_frees,   now.allocations,    now.allocated_bytes, now.requested_bytes, now.reserved_bytes,
          now.segments};
}

// What was given since the reset, and what was taken back: that, and what was live at the reset, less what is live now.
void fill(c10::CachingAllocator::Stat& stat, uint64_t now, uint64_t peak, uint64_t sum, uint64_t sum_before,
          uint64_t live_before) {
  stat.current = static_cast<int64_t>(now);
  stat.peak = static_cast<int64_t>(peak);
  stat.allocated = static_cast<int64_t>(sum - sum_before);
  stat.freed = static_cast<int64_t>(sum - sum_before + live_before - now);
}

void fill_now(c10::CachingAllocator::Stat& stat, uint64_t now) {
  stat.current = static_cast<int64_t>(now);
  stat.peak = static_cast<int64_t>(now);
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
    std::lock_guard<std::mutex> lock(mutex);
    const Sums& was = reset.at(static_cast<size_t>(index));
    DeviceStats stats{};
    // Rondo keeps no figures of small and large blocks apart: those stay 0.
    constexpr size_t kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    fill(stats.allocation[kAll], now.allocations, now.allocations_peak, now.allocations_sum, was.allocations,
         was.live_allocations);
    stats.active[kAll] = stats.allocation[kAll];
    fill(stats.allocated_bytes[kAll], now.allocated_bytes, now.allocated_peak, now.allocated_sum, was.allocated,
         was.live_allocated);
    stats.active_bytes[kAll] = stats.allocated_bytes[kAll];
    stats.active_bytes[kAll].current += static_cast<int64_t>(now.pending_bytes);
    fill(stats.requested_bytes[kAll], now.requested_bytes, now.requested_peak, now.requested_sum, was.requested,
         was.live_requested);
    fill(stats.reserved_bytes[kAll], now.reserved_bytes, now.reserved_peak, now.reserved_sum, was.reserved,
         was.live_reserved);
    fill(stats.segment[kAll], now.segments, now.segments_peak, now.segment_allocations, was.segments, was.live_segments);
    fill_now(stats.inactive_split_bytes[kAll], now.inactive_bytes);
    stats.num_alloc_retries = static_cast<int64_t>(now.allocation_retries);
    stats.num_ooms = static_cast<int64_t>(now.out_of_memory);
    stats.num_device_alloc = static_cast<int64_t>(now.segment_allocations);
    stats.num_device_free = static_cast<int64_t>(now.segment_frees);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    rondo_memory_statistics now = RONDO_MEMORY_STATISTICS_INIT;
    check(rondo_memory_get_statistics(device(index), {0, 0}, &now));
    std::lock_guard<std::mutex> lock(mutex);
    reset.at(static_cast<size_t>(index)) = sums_of(now);
  }
  void resetPeakStats(c10::DeviceIndex index) override { check(rondo_memory_reset_peaks(device(index), {0, 0})); }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    uint64_t available = 0, total = 0;
    check(rondo_device_memory_info(device(index), &available, &total));
    return {available, total};
  }

 private:
  std::mutex mutex;
  std::array<Sums, kMaxDevices> reset;  // by device: what there was at the last reset
};

// Ranges of pinned memory, to answer whether a pointer lies in one.
std::mutex g_pinned_mutex;
std::map<const char*, size_t> g_pinned;
c10::CachingAllocator::Stat g_pinned_counts, g_pinned_bytes;

struct HostMemory final : at::HostAllocator {
  static void remove(void* pointer) {
    if (!pointer || forked()) return;
    {
      std::lock_guard<std::mutex> lock(g_pinned_mutex);
      auto found = g_pinned.find(static_cast<const char*>(pointer));
      if (found != g_pinned.end()) {
        g_pinned_counts.decrease(1);
        g_pinned_bytes.decrease(found->second);
        g_pinned.erase(found);
      }
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
      g_pinned_counts.increase(1);
      g_pinned_bytes.increase(bytes);
    }
    return {pointer, pointer, &remove, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &remove; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  // Counted here: Rondo has no public figures of pinned memory.
  at::HostStats get_stats() override {
    std::lock_guard<std::mutex> lock(g_pinned_mutex);
    at::HostStats stats;
    stats.active_requests = stats.allocations = g_pinned_counts;
    stats.active_bytes = stats.allocated_bytes = g_pinned_bytes;
    stats.num_host_alloc = g_pinned_counts.allocated;
    stats.num_host_free = g_pinned_counts.freed;
    return stats;
  }
  void reset_accumulated_stats() override {
    std::lock_guard<std::mutex> lock(g_pinned_mutex);
    g_pinned_counts.reset_accumulated();
    g_pinned_bytes.reset_accumulated();
  }
  void reset_peak_stats() override {
    std::lock_guard<std::mutex> lock(g_pinned_mutex);
    g_pinned_counts.reset_peak();
    g_pinned_bytes.reset_peak();
  }
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

at::HostStats host_memory_statistics() { return host_memory().get_stats(); }

void reset_host_memory_statistics(bool peaks) {
  if (peaks) host_memory().reset_peak_stats();
  else host_memory().reset_accumulated_stats();
}

bool is_pinned(const void* pointer) {
  if (forked()) return false;
  std::lock_guard<std::mutex> lock(g_pinned_mutex);
  auto next = g_pinned.upper_bound(static_cast<const char*>(pointer));
  if (next == g_pinned.begin()) return false;
  auto range = std::prev(next);
  return static_cast<const char*>(pointer) < range->first + range->second;
}

}  // namespace rondo_torch
