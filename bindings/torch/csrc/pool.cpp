// SPDX-License-Identifier: Apache-2.0
//
// The operations of pools that PyTorch's graph trees ask of a device, over Rondo's memory room.
#include "pool.hpp"

#include <c10/core/StorageImpl.h>

#include <memory>
#include <set>

#include "allocator.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

using PoolId = std::pair<uint64_t, uint64_t>;

rondo_pool_id of(PoolId id) { return {id.first, id.second}; }

PoolId pool_handle() {
  rondo_pool_id id = rondo_pool_handle(instance());
  return {id.automatic, id.user};
}

void begin_thread(int index, PoolId pool) {
  rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
  filter.kind = RONDO_MEMORY_FILTER_THREAD;
  check(rondo_memory_pool_begin(device(index), of(pool), &filter));
}
void end(int index, PoolId pool) { check(rondo_memory_pool_end(device(index), of(pool))); }
void release(int index, PoolId pool) { check(rondo_memory_pool_release(device(index), of(pool))); }

struct Checkpoint {
  rondo_memory_checkpoint* handle = nullptr;
  ~Checkpoint() { rondo_memory_checkpoint_release(handle); }
};

std::shared_ptr<Checkpoint> get_checkpoint(int index, PoolId pool) {
  auto state = std::make_shared<Checkpoint>();
  check(rondo_memory_checkpoint_create(device(index), of(pool), &state->handle));
  return state;
}

void do_nothing(void*) {}

// As torch._C._cuda_setCheckpointPoolState: storages of `stale` lose their deleters, those of `live` own their blocks
// from now on. A block that is alive and has no storage is the caller's to delete.
void set_checkpoint(int index, const std::shared_ptr<Checkpoint>& state, const std::vector<uint64_t>& stale,
                    const std::vector<uint64_t>& live) {
  rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
  check(rondo_memory_checkpoint_restore(state->handle, &delta));
  std::set<void*> created(delta.created, delta.created + delta.created_count);
  rondo_memory_delta_release(device(index), &delta);
  for (uint64_t address : stale) {
    auto* storage = reinterpret_cast<c10::StorageImpl*>(address);
    (void)storage->_mutable_data_ptr_no_checks().compare_exchange_deleter(deleter_of(index), &do_nothing);
  }
  for (uint64_t address : live) {
    auto* storage = reinterpret_cast<c10::StorageImpl*>(address);
    void* pointer = storage->_mutable_data_ptr_no_checks().get();
    if (!created.count(pointer)) continue;
    TORCH_CHECK(!storage->_mutable_data_ptr_no_checks().get_context(),
                "rondo: a storage of a replay has an owner already");
    c10::DataPtr owned(pointer, pointer, deleter_of(index), storage->device());
    (void)storage->set_data_ptr(std::move(owned));
  }
}

bool check_live(int index, PoolId pool, const std::set<uint64_t>& expected) {
  std::vector<const void*> pointers;
  for (uint64_t pointer : expected) pointers.push_back(reinterpret_cast<const void*>(pointer));
  bool equal = false;
  check(rondo_memory_pool_live(device(index), of(pool), pointers.data(), pointers.size(), &equal));
  return equal;
}

// Addresses of all devices lie in one space, so the owner is whoever knows the pointer. The current device goes first.
void raw_delete(uint64_t address) {
  auto* pointer = reinterpret_cast<void*>(address);
  int first = current_device();
  rondo_status status = rondo_memory_free(device(first), pointer);
  for (int i = 0; i < device_count() && status && rondo_status_code(status) == RONDO_CODE_INVALID_ARGUMENT; i++) {
    if (i == first) continue;
    rondo_status other = rondo_memory_free(device(i), pointer);
    if (other && rondo_status_code(other) == RONDO_CODE_INVALID_ARGUMENT) {
      rondo_status_release(other);
      continue;
    }
    rondo_status_release(status);
    status = other;
    break;
  }
  check(status);
}

int32_t append(void* user, const char* data, size_t size) {
  static_cast<std::string*>(user)->append(data, size);
  return 0;
}

std::string snapshot(int index) {
  std::string text;
  check(rondo_memory_snapshot(device(index), {0, 0}, append, &text));
  return text;
}

}  // namespace

void bind_pools(pybind11::module& m) {
  pybind11::class_<Checkpoint, std::shared_ptr<Checkpoint>>(m, "CheckpointState");
  m.def("graph_pool_handle", &pool_handle);
  m.def("begin_allocate_current_thread_to_pool", &begin_thread);
  m.def("end_allocate_to_pool", &end);
  m.def("release_pool", &release);
  m.def("get_checkpoint_state", &get_checkpoint);
  m.def("set_checkpoint_pool_state", &set_checkpoint);
  m.def("check_pool_live_allocations", &check_live);
  m.def("raw_delete", &raw_delete);
  m.def("memory_snapshot", &snapshot);
}

}  // namespace rondo_torch
