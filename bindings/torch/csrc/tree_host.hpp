// SPDX-License-Identifier: Apache-2.0
//
// Tensors of PyTorch for Rondo's trees. A tensor of the tree's is a Python object (one reference of it), so that nothing is
// wrapped or unwrapped on the way of a call. Memory that a tree lends out is behind a storage whose context is a Claim: the
// storage's end tells the lease, whatever views, aliases, resize_ or set_ have done with it meanwhile.
//
// Everything here runs under the interpreter's lock, but for the end of a claim, which comes from any thread.
#pragma once
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/DimVector.h>
#include <rondo/rondo.h>
#include <torch/csrc/autograd/python_variable.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime.hpp"

namespace rondo_torch {

struct Claim;

constexpr size_t kLine = 64;  // bytes that a processor fetches at once

// Claims of storages that nobody keeps for a tree; who looks for those whose memory was taken finds them here.
struct Ledger {
  std::mutex mutex;
  std::atomic<Claim*> first{nullptr};  // changes under the lock
};

// Where an output comes from, for messages.
struct Origin {
  std::string function, trace;
  bool gradient = false;  // a backward made it
};

// What a call looks at of it is its first line.
struct alignas(kLine) Claim {
  rondo_tree_lease* lease = nullptr;
  uint64_t epoch = 0;
  std::atomic<bool> held{true};     // the lease waits for the end of this claim
  std::atomic<int> references{1};   // the storage; and the output that keeps it to be handed out again
  bool linked = false;
  Claim *next = nullptr, *previous = nullptr;
  std::shared_ptr<Ledger> ledger;
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  std::shared_ptr<const Origin> origin;
  c10::VariableVersion version{c10::VariableVersion::DISABLED};  // of the tensors on the storage

  explicit Claim(c10::weak_intrusive_ptr<c10::StorageImpl> of) : storage(std::move(of)) {}
  bool stale() const { return !rondo_tree_lease_alive(lease, epoch); }
  void link();
  void unlink();
  // The storage is over, or has other memory: once, unless somebody else has seen to it.
  void end() {
    if (held.exchange(false, std::memory_order_acq_rel)) rondo_tree_lease_release(lease, epoch);
  }
  // The same where nobody else can be at it: who asks has the only reference to the storage, and the interpreter's lock.
  void end_alone() {
    if (!held.load(std::memory_order_relaxed)) return;
    held.store(false, std::memory_order_release);
    rondo_tree_lease_release(lease, epoch);
  }
  void let_go();
  std::string message(const char* taker) const;
};

void end_claimed_storage(void* claim);  // what a claimed storage's memory is let go with
// The claim behind the storage; null when its memory is no tree's.
inline Claim* claim_of(const c10::StorageImpl* storage) {
  const c10::DataPtr& pointer = const_cast<c10::StorageImpl*>(storage)->_mutable_data_ptr_no_checks();
  return pointer.get_deleter() == &end_claimed_storage ? static_cast<Claim*>(pointer.get_context()) : nullptr;
}
// The storage's memory is the lease's from now on. Nobody keeps the claim but the storage.
Claim* claim_storage(const c10::intrusive_ptr<c10::StorageImpl>& storage, void* pointer, c10::Device device,
                     const std::shared_ptr<Ledger>& ledger, rondo_tree_lease* lease, uint64_t epoch);

struct Kept;

// A tensor object that is handed out again when it is provably dead: an output of a replay that costs nothing. What a call
// looks at of it is one line.
struct alignas(kLine) Cached {
  PyObject* object = nullptr;
  const c10::TensorImpl* tensor = nullptr;  // as it was made: the object may have another one by now
  c10::StorageImpl* storage = nullptr;      // alive with the object
  Claim* claim = nullptr;
  Kept* kept = nullptr;
  uint64_t text_taker = 0;  // whose its memory was the last time, as the storage says; most often it is the same again
  bool out = false, poisoned = false, inference = false;
};

// How a tensor looks, so far as somebody can change it in place. Of up to two dimensions it is one line, and no lists of
// numbers elsewhere are read.
struct alignas(kLine) Look {
  static constexpr size_t kRank = 6;
  uint64_t keys = 0;
  int64_t offset = 0;  // in elements
  caffe2::TypeMeta dtype;
  uint16_t last = 0;  // Kept's, which has its line anyway
  uint32_t rank = 0;
  int64_t dims[2 * kRank] = {};  // size, stride, size, stride, ...; of more there are the lists
};

// What a recording remembers of an output: the object itself, or what makes such a tensor on a lease's memory.
struct Kept {
  Look look;
  Cached slots[2];
  PyObject* itself = nullptr;
  c10::DimVector sizes, strides;
  int64_t offset = 0;  // in elements
  caffe2::TypeMeta dtype;
  std::shared_ptr<const Origin> origin;
};

// What a tree's function runs.
struct Model {
  PyObject* callable = nullptr;
  std::string name;
  std::vector<std::shared_ptr<const Origin>> origins;  // by output; as long as there are traces
  std::shared_ptr<const Origin> origin;                // of any other
};

// A lock that a thread waits for without the interpreter's; its owner may come again. It is taken and let go under the
// interpreter's lock, so that who finds it free needs no locked instruction.
class TreeLock {
 public:
  bool acquire();  // false: the thread has it already
  void release();
  bool mine() const { return owner_ == self(); }
  bool try_acquire();

 private:
  static uint64_t self();
  [[gnu::cold]] void wait();
  [[gnu::cold]] void wake();
  uint64_t owner_ = 0;
  uint32_t waiting_ = 0;
  uint64_t wakes_ = 0;  // changes under the mutex as well, where those who wait look at it
  std::mutex mutex_;
  std::condition_variable free_;
};

struct Host {
  // With an adapter it is another package's device, and its storages are watched (tree_foreign.hpp).
  Host(c10::Device of, PyObject* given);
  ~Host();

  const c10::Device where;
  const int device;  // its index
  PyObject* const adapter;
  TreeLock* lock = nullptr;  // of who opened the tree; outlives it
  std::shared_ptr<Ledger> ledger;
  std::vector<Cached*> out;  // handed out, and not seen dead yet

  // Of the model that runs.
  const Model* running = nullptr;
  void* const* made = nullptr;
  uint32_t made_count = 0;
  bool in_pool = false;
  bool let_go = false;       // a sweep has let go of what may have held other outputs
  size_t out_before = 0;     // of `out`, what was there before the call
  const char* taker = "?";   // the function whose call it is
  uint64_t taker_number = 0; // of that function, which no other has had

  PyObject* failure = nullptr;  // an exception that a model has raised
  PyObject* surplus = nullptr;  // what a model returned, when it is not as many outputs as were expected
  PyObject* random = nullptr;   // state of the CPU's generator before a recording
  std::string stale;            // why an input is stale, in full: a status has room for one line of it

  rondo_tensor_host table();

  rondo_status fail_stale(std::string text);

  // Outputs that were handed out and are dead by now give up their leases.
  void sweep();
  // Outputs that are alive and whose memory was taken fail from now on.
  void poison(size_t first_cached);
  [[gnu::noinline]] void poison_others();
  [[gnu::noinline]] void poison_with_text(Cached& cached);
  // Nothing is handed out again: storages belong to those who hold them.
  void forget_outputs();
  bool dead(Cached& cached);
  void drop(Cached& cached);
  void strike(const Cached& cached);
  std::shared_ptr<const Origin> origin_of(const void* tensor) const;

  Cached* hand_out(const rondo_tree_output& output, bool inference);
  [[gnu::noinline]] rondo_status make_fresh(const rondo_tree_output& output, void** out_tensor);
  rondo_status view(const rondo_tree_output& output, c10::Storage storage, const c10::VariableVersion& version,
                    int64_t offset, void** out_tensor);
  rondo_status of_input(const rondo_tree_output& output, void* input, void** out_tensor);
  rondo_status make_output(const rondo_tree_output& output, void* const* inputs, void** tensors, uint32_t index);
};

[[gnu::cold]] rondo_status fail(rondo_code code, const std::string& text);
// What is being thrown, as a status: only inside a catch.
rondo_status status_of_exception() noexcept;
inline const at::Tensor* tensor_of(void* object) {
  auto* python = static_cast<PyObject*>(object);
  if (!python || !(THPVariable_CheckExact(python) || THPVariable_Check(python))) return nullptr;
  return &THPVariable_Unpack(python);
}

bool host_facts(void* user, void* const* tensors, uint32_t count, uint64_t* pointers, uint64_t* words);

rondo_status host_keep(void* user, void* tensor, bool itself, void** out_metadata);
void host_drop(void* user, void* metadata);
rondo_status host_make_outputs(void* user, const rondo_tree_output* outputs, uint32_t count, void* const* inputs,
                               void** out_tensors);

}  // namespace rondo_torch
