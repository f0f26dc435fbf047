// SPDX-License-Identifier: Apache-2.0
//
// Memory of the driver's in blocks of whole multiples of 512 bytes, kept when they are freed and never split. Each
// belongs to a pool ({0, 0} is the device's own) and to the stream that it was for: only that one gets it again.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StorageImpl.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "runtime.hpp"

namespace py = pybind11;

namespace npu {
namespace {

struct Block {
  size_t size;
  int device;
  PoolId pool;
  aclrtStream stream;
  bool live;
  std::vector<aclrtStream> users;  // other streams that work with it
};
struct Diversion {
  int device;
  PoolId pool;
  std::function<bool(aclrtStream)> filter;
};

std::recursive_mutex g_blocks_mutex;
using Lock = std::lock_guard<std::recursive_mutex>;
std::map<char*, Block>& blocks() {
  static auto* all = new std::map<char*, Block>;
  return *all;
}
std::list<Diversion>& diversions() {  // newest first
  static auto* all = new std::list<Diversion>;
  return *all;
}
std::map<std::pair<int, PoolId>, int> g_uses;  // 0: released

PoolId route(int device, aclrtStream stream) {
  for (const Diversion& one : diversions()) {
    if (one.device == device && one.filter(stream)) return one.pool;
  }
  return {0, 0};
}

void free_block(void* pointer) {
  if (!pointer) return;
  std::vector<aclrtStream> users;
  {
    Lock lock(g_blocks_mutex);
    users.swap(blocks().at(static_cast<char*>(pointer)).users);
  }
  for (aclrtStream user : users) {  // a graph that is being captured keeps its own memory
    if (!capture_of(user)) (void)aclrtSynchronizeStream(user);
  }
  Lock lock(g_blocks_mutex);
  Block& block = blocks().at(static_cast<char*>(pointer));
  TORCH_INTERNAL_ASSERT(block.live, "npu: a block is freed twice");
  block.live = false;
  auto uses = g_uses.find({block.device, block.pool});
  if (uses != g_uses.end() && !uses->second) block.pool = {0, 0};
}

void nothing(void*) {}

template <typename Function>
void each_of(int device, PoolId pool, Function function) {
  for (auto& [pointer, block] : blocks()) {
    if (block.device == device && block.pool == pool) function(pointer, block);
  }
}

c10::DataPtr allocate_on(int device, size_t bytes) {
  c10::Device where(kType, static_cast<c10::DeviceIndex>(device));
  if (!bytes) return {nullptr, nullptr, &free_block, where};
  size_t size = (bytes + 511) / 512 * 512;
  aclrtStream stream = current_stream(device);
  Lock lock(g_blocks_mutex);
  PoolId pool = route(device, stream);
  char* found = nullptr;
  each_of(device, pool, [&](char* pointer, Block& block) {
    if (!found && !block.live && block.size == size && block.stream == stream) found = pointer;
  });
  if (!found) {
    void* made = nullptr;
    NPU_CALL(aclrtMalloc, &made, size, ACL_MEM_MALLOC_HUGE_FIRST);
    found = static_cast<char*>(made);
    blocks()[found] = {size, device, pool, stream, false, {}};
  }
  blocks()[found].live = true;
  return {found, found, &free_block, where};
}

struct Memory final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t bytes) override { return allocate_on(current_device(), bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    NPU_CALL(aclrtMemcpy, to, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    int device = current_device();
    enter(device);
    if (aclrtSynchronizeDevice()) return;  // a stream captures: what is free stays
    Lock lock(g_blocks_mutex);
    for (auto one = blocks().begin(); one != blocks().end();) {
      bool gone = !one->second.live && one->second.pool == PoolId{0, 0} && one->second.device == device;
      if (gone) (void)aclrtFree(one->first);
      one = gone ? blocks().erase(one) : std::next(one);
    }
  }
  void recordStream(const c10::DataPtr& pointer, c10::Stream stream) override {
    aclrtStream user = native(stream);
    Lock lock(g_blocks_mutex);
    auto found = blocks().find(static_cast<char*>(pointer.get()));
    if (found != blocks().end() && found->second.stream != user) found->second.users.push_back(user);
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
};

// Pinned: PyTorch empties its cache before a capture, so there has to be one.
struct HostMemory final : at::HostAllocator {
  static void remove(void* pointer) {
    if (pointer) (void)aclrtFreeHost(pointer);
  }
  c10::DataPtr allocate(size_t bytes) override {
    void* pointer = nullptr;
    enter(current_device());
    if (bytes) NPU_CALL(aclrtMallocHost, &pointer, bytes);
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

struct RegisteredMemory {
  RegisteredMemory() {
    c10::SetAllocator(kType, memory());
    at::setHostAllocator(kType, new HostMemory);
  }
} g_memory_registered;

// -------------------------------------------------------------------------------------------------------- checkpoints

struct Checkpoint {
  int device;
  PoolId pool;
  std::map<char*, bool> live;
};

std::shared_ptr<Checkpoint> get_checkpoint(int device, PoolId pool) {
  Lock lock(g_blocks_mutex);
  TORCH_CHECK(g_uses.count({device, pool}), "npu: there is no such pool");
  auto state = std::make_shared<Checkpoint>(Checkpoint{device, pool, {}});
  each_of(device, pool, [&](char* pointer, Block& block) { state->live[pointer] = block.live; });
  return state;
}

void set_checkpoint(int device, const std::shared_ptr<Checkpoint>& state, const std::vector<uint64_t>& stale,
                    const std::vector<uint64_t>& live) {
  Lock lock(g_blocks_mutex);
  TORCH_CHECK(device == state->device, "npu: the checkpoint is another device's");
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
    TORCH_CHECK(!storage->_mutable_data_ptr_no_checks().get_context(), "npu: a storage has an owner already");
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

}  // namespace

c10::Allocator* memory() {
  static auto* one = new Memory;
  return one;
}

void begin_pool(int device, PoolId pool, std::function<bool(aclrtStream)> filter) {
  Lock lock(g_blocks_mutex);
  for (const Diversion& one : diversions()) {
    TORCH_CHECK(one.device != device || one.pool != pool, "npu: already recording to the pool");
  }
  auto [uses, fresh] = g_uses.emplace(std::make_pair(device, pool), 0);
  TORCH_CHECK(fresh || uses->second, "npu: the pool was released");
  uses->second++;
  diversions().push_front({device, pool, std::move(filter)});
}

void end_pool(int device, PoolId pool) {
  Lock lock(g_blocks_mutex);
  diversions().remove_if([&](const Diversion& one) { return one.device == device && one.pool == pool; });
}

void release_pool(int device, PoolId pool) {
  Lock lock(g_blocks_mutex);
  int& uses = g_uses.at({device, pool});
  TORCH_CHECK(uses > 0, "npu: the pool was released");
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
  py::class_<Checkpoint, std::shared_ptr<Checkpoint>>(m, "_npu_NPUAllocator_AllocatorState");
  m.def("_graph_pool_handle", [] { return new_pool(true); });
  m.def("_npu_beginAllocateCurrentThreadToPool", [](int device, PoolId pool) {
    begin_pool(device, pool, [mine = std::this_thread::get_id()](aclrtStream) {
      return mine == std::this_thread::get_id();
    });
  });
  m.def("_npu_beginAllocateCurrentStreamToPool", [](int device, PoolId pool) {
    begin_pool(device, pool, [mine = current_stream(device)](aclrtStream other) { return mine == other; });
  });
  m.def("_npu_endAllocateToPool", &end_pool);
  m.def("_npu_releasePool", &release_pool);
  m.def("_npu_getCheckpointState", &get_checkpoint);
  m.def("_npu_setCheckpointPoolState", &set_checkpoint);
  m.def("_npu_checkPoolLiveAllocations", &check_live);
  m.def("_npu_npuCachingAllocator_raw_delete", [](uint64_t pointer) { free_block(reinterpret_cast<void*>(pointer)); });
  m.def("_npu_memorySnapshot", &snapshot);
}

}  // namespace npu
