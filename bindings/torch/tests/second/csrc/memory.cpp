// SPDX-License-Identifier: Apache-2.0
//
// Blocks of whole multiples of 512 bytes, kept when they are freed and never split. Each belongs to a pool; {0, 0} is
// the device's own.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StorageImpl.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "second.hpp"

namespace py = pybind11;

namespace second {
namespace {

struct Block {
  size_t size;
  int device;
  PoolId pool;
  bool live;
};
struct Diversion {
  int device;
  PoolId pool;
  std::thread::id thread;
  std::shared_ptr<Recording> capture;  // or this
};
using PoolKey = std::pair<int, PoolId>;

std::recursive_mutex g_blocks_mutex;
std::map<char*, Block>& blocks() {
  static auto* all = new std::map<char*, Block>;
  return *all;
}
std::list<Diversion> g_diversions;  // newest first
std::map<PoolKey, int> g_uses;      // 0: released
using Lock = std::lock_guard<std::recursive_mutex>;

PoolId route(int device) {
  auto capture = recording(device);
  for (const Diversion& one : g_diversions) {
    if (one.device != device) continue;
    if (one.capture ? one.capture == capture : one.thread == std::this_thread::get_id()) return one.pool;
  }
  return {0, 0};
}

void free_block(void* pointer) {
  if (!pointer) return;
  Lock lock(g_blocks_mutex);
  Block& block = blocks().at(static_cast<char*>(pointer));
  TORCH_INTERNAL_ASSERT(block.live, "second: a block is freed twice");
  block.live = false;
  auto uses = g_uses.find({block.device, block.pool});
  if (uses != g_uses.end() && !uses->second) block.pool = {0, 0};
}

void nothing(void*) {}

void begin(Diversion diversion) {
  Lock lock(g_blocks_mutex);
  for (const Diversion& one : g_diversions) {
    TORCH_CHECK(one.device != diversion.device || one.pool != diversion.pool, "second: already recording to the pool");
  }
  auto [uses, fresh] = g_uses.emplace(PoolKey{diversion.device, diversion.pool}, 0);
  TORCH_CHECK(fresh || uses->second, "second: the pool was released");
  uses->second++;
  g_diversions.push_front(std::move(diversion));
}

struct Checkpoint {
  int device;
  PoolId pool;
  std::map<char*, bool> live;
};

template <typename Function>
void each_of(int device, PoolId pool, Function function) {
  for (auto& [pointer, block] : blocks()) {
    if (block.device == device && block.pool == pool) function(pointer, block);
  }
}

std::shared_ptr<Checkpoint> get_checkpoint(int device, PoolId pool) {
  Lock lock(g_blocks_mutex);
  TORCH_CHECK(g_uses.count({device, pool}), "second: there is no such pool");
  auto state = std::make_shared<Checkpoint>(Checkpoint{device, pool, {}});
  each_of(device, pool, [&](char* pointer, Block& block) { state->live[pointer] = block.live; });
  return state;
}

void set_checkpoint(int device, const std::shared_ptr<Checkpoint>& state, const std::vector<uint64_t>& stale,
                    const std::vector<uint64_t>& live) {
  Lock lock(g_blocks_mutex);
  TORCH_CHECK(device == state->device, "second: the checkpoint is another device's");
  std::set<void*> created;
  each_of(device, state->pool, [&](char* pointer, Block& block) {
    bool wanted = state->live.count(pointer) && state->live[pointer];
    if (wanted && !block.live) created.insert(pointer);
    block.live = wanted;
  });
  for (uint64_t address : stale) {
    auto* storage = reinterpret_cast<c10::StorageImpl*>(address);
    (void)storage->_mutable_data_ptr_no_checks().compare_exchange_deleter(&free_block, &nothing);
  }
  for (uint64_t address : live) {
    auto* storage = reinterpret_cast<c10::StorageImpl*>(address);
    void* pointer = storage->_mutable_data_ptr_no_checks().get();
    if (!created.count(pointer)) continue;
    TORCH_CHECK(!storage->_mutable_data_ptr_no_checks().get_context(), "second: a storage has an owner already");
    (void)storage->set_data_ptr(c10::DataPtr(pointer, pointer, &free_block, storage->device()));
  }
}

bool check_live(int device, PoolId pool, const std::set<uint64_t>& expected) {
  Lock lock(g_blocks_mutex);
  std::set<uint64_t> found;
  each_of(device, pool, [&](char* pointer, Block& block) {
    if (block.live) found.insert(reinterpret_cast<uint64_t>(pointer));
  });
  return found == expected;
}

py::list snapshot() {
  Lock lock(g_blocks_mutex);
  py::list segments;
  for (auto& [pointer, block] : blocks()) {
    py::dict inside, segment;
    for (py::dict one : {inside, segment}) one["address"] = reinterpret_cast<uint64_t>(pointer);
    inside["size"] = block.size;
    segment["total_size"] = block.size;
    inside["state"] = block.live ? "active_allocated" : "inactive";
    segment["device"] = block.device;
    segment["segment_pool_id"] = py::make_tuple(block.pool.first, block.pool.second);
    segment["blocks"] = py::make_tuple(inside);
    segments.append(segment);
  }
  return segments;
}

struct Memory final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t bytes) override { return second::allocate(current_device(), bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    Lock lock(g_blocks_mutex);
    std::erase_if(blocks(), [](auto& one) {
      bool gone = !one.second.live && one.second.pool == PoolId{0, 0};
      if (gone) std::free(one.first);
      return gone;
    });
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
};

// All of the host's memory is as good as pinned. PyTorch's graphs want such an allocator of each device.
struct HostMemory final : at::HostAllocator {
  c10::DataPtr allocate(size_t bytes) override { return c10::GetCPUAllocator()->allocate(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

// Storages of the device are of a class of the package's own, as large packages have them.
struct OwnStorage final : c10::StorageImpl {
  using c10::StorageImpl::StorageImpl;
};

c10::intrusive_ptr<c10::StorageImpl> make_storage(c10::StorageImpl::use_byte_size_t tag, c10::SymInt bytes,
                                                  c10::DataPtr data, c10::Allocator* allocator, bool resizable) {
  if (!data.get() && bytes.expect_int()) data = allocator->allocate(static_cast<size_t>(bytes.expect_int()));
  return c10::make_intrusive<OwnStorage>(tag, std::move(bytes), std::move(data), allocator, resizable);
}

}  // namespace

void register_memory() {
  c10::SetAllocator(kType, memory());
  c10::SetStorageImplCreate(kType, &make_storage);
  at::setHostAllocator(kType, new HostMemory);
}

c10::Allocator* memory() {
  static auto* one = new Memory;
  return one;
}

c10::DataPtr allocate(int device, size_t bytes) {
  c10::Device where(kType, static_cast<c10::DeviceIndex>(device));
  if (!bytes) return {nullptr, nullptr, &free_block, where};
  size_t size = (bytes + 511) / 512 * 512;
  Lock lock(g_blocks_mutex);
  PoolId pool = route(device);
  char* found = nullptr;
  each_of(device, pool, [&](char* pointer, Block& block) {
    if (!found && !block.live && block.size == size) found = pointer;
  });
  if (!found) {
    found = static_cast<char*>(std::aligned_alloc(512, size));
    TORCH_CHECK(found, "second: no memory");
    blocks()[found] = {size, device, pool, false};
  }
  blocks()[found].live = true;
  return {found, found, &free_block, where};
}

void begin_thread_pool(int device, PoolId pool) { begin({device, pool, std::this_thread::get_id(), nullptr}); }
void begin_capture_pool(const std::shared_ptr<Recording>& capture) {
  begin({capture->device, capture->pool, {}, capture});
}

void end_pool(int device, PoolId pool) {
  Lock lock(g_blocks_mutex);
  g_diversions.remove_if([&](const Diversion& one) { return one.device == device && one.pool == pool; });
}

void release_pool(int device, PoolId pool) {
  Lock lock(g_blocks_mutex);
  int& uses = g_uses.at({device, pool});
  TORCH_CHECK(uses > 0, "second: the pool was released");
  if (--uses) return;
  each_of(device, pool, [](char*, Block& block) {
    if (!block.live) block.pool = {0, 0};
  });
}

PoolId new_pool(bool of_the_user) {
  static std::atomic<uint64_t> next{1};
  return of_the_user ? PoolId{0, next++} : PoolId{next++, 0};
}

void bind_memory(py::module& m) {
  py::class_<Checkpoint, std::shared_ptr<Checkpoint>>(m, "Checkpoint");
  m.def("graph_pool_handle", [] { return new_pool(true); });
  m.def("begin_allocate_current_thread_to_pool", &begin_thread_pool);
  m.def("end_allocate_to_pool", &end_pool);
  m.def("release_pool", &release_pool);
  m.def("get_checkpoint_state", &get_checkpoint);
  m.def("set_checkpoint_pool_state", &set_checkpoint);
  m.def("check_pool_live_allocations", &check_live);
  m.def("raw_delete", [](uint64_t pointer) { free_block(reinterpret_cast<void*>(pointer)); });
  m.def("memory_snapshot", &snapshot);
  m.def("has_own_storage", [](uint64_t storage) {
    return dynamic_cast<OwnStorage*>(reinterpret_cast<c10::StorageImpl*>(storage)) != nullptr;
  });
  m.def("live_blocks", [](int device) {
    Lock lock(g_blocks_mutex);
    return std::count_if(blocks().begin(), blocks().end(),
                         [&](auto& one) { return one.second.device == device && one.second.live; });
  });
}

}  // namespace second
