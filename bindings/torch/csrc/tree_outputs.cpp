// SPDX-License-Identifier: Apache-2.0
//
// Outputs of replays. Each keeps up to two tensor objects on its lease's memory: one may be in the caller's hands while
// the next call hands out the other. An object is handed out again only when nothing can tell: no reference to it, to its
// storage or to its gradient's graph is left, and it is as it was made.
#include <ATen/CachedTensorUtils.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "allocator.hpp"
#include "storage_flags.hpp"
#include "tree_host.hpp"

namespace rondo_torch {
namespace {

// Releases of PyTorch without it make storages anew.
template <class Storage>
auto clear_text(Storage* storage, int) -> decltype(storage->clear_data_ptr_access_error_msg_(), bool()) {
  storage->clear_data_ptr_access_error_msg_();
  return true;
}
template <class Storage>
bool clear_text(Storage*, long) {
  return false;
}

bool clear_poison(Cached& cached) {
  if (!kStorageFlags) return clear_text(cached.storage, 0);
  set_failing(*cached.storage, false);
  return true;
}

const at::Tensor& tensor_in(const Cached& cached) { return THPVariable_Unpack(cached.object); }

c10::Device device_at(int index) { return {kType, static_cast<c10::DeviceIndex>(index)}; }

// Whenever it matters, since PyTorch's own reset of trees turns it off for everybody.
void enable_cached_tensors() { at::caching::set_cached_tensors_enabled(true); }

// Nobody but the cache can reach the object.
bool unreachable(const Cached& cached) { return Py_REFCNT(cached.object) == 1 && tensor_in(cached).use_count() == 1; }

bool has_weak_references(PyObject* object) {
  Py_ssize_t offset = Py_TYPE(object)->tp_weaklistoffset;
  return offset > 0 && *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset);
}

bool has_attributes(PyObject* object) {
  Py_ssize_t offset = Py_TYPE(object)->tp_dictoffset;
  PyObject** place = offset > 0 ? reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset)
                                : _PyObject_GetDictPtr(object);
  return place && *place && PyDict_GET_SIZE(*place) != 0;
}

// One number after the other: there are few, and a call of memcmp costs more.
bool same_dims(const c10::TensorImpl& tensor, const Kept& kept) {
  const Look& look = kept.look;
  at::IntArrayRef sizes = tensor.sizes();
  if (sizes.size() != look.rank) return false;
  at::IntArrayRef strides = tensor.strides();
  if (look.rank > Look::kRank) return sizes == at::IntArrayRef(kept.sizes) && strides == at::IntArrayRef(kept.strides);
  for (size_t i = 0; i < look.rank; i++) {
    if (sizes[i] != look.dims[2 * i] || strides[i] != look.dims[2 * i + 1]) return false;
  }
  return true;
}

Look look_of(const c10::TensorImpl& tensor) {
  Look look;
  look.keys = tensor.key_set().raw_repr();
  look.offset = tensor.storage_offset();
  look.dtype = tensor.dtype();
  look.rank = static_cast<uint32_t>(tensor.dim());
  for (size_t i = 0; i < std::min<size_t>(look.rank, Look::kRank); i++) {
    look.dims[2 * i] = tensor.sizes()[i];
    look.dims[2 * i + 1] = tensor.strides()[i];
  }
  return look;
}

// What a user may have changed of the object or its metadata.
bool as_made(const Cached& cached) {
  const Look& look = cached.kept->look;
  const c10::TensorImpl* tensor = tensor_in(cached).unsafeGetTensorImpl();
  return Py_TYPE(cached.object) == reinterpret_cast<PyTypeObject*>(THPVariableClass) && !has_weak_references(cached.object) &&
         !has_attributes(cached.object) && tensor->key_set().raw_repr() == look.keys && tensor->dtype() == look.dtype &&
         tensor->storage_offset() == look.offset && same_dims(*tensor, *cached.kept) &&
         tensor->unsafe_storage().unsafeGetStorageImpl() == cached.storage &&
         cached.claim->references.load(std::memory_order_relaxed) == 2;
}

at::Tensor make_tensor(const Kept& kept, c10::Storage storage, int64_t offset) {
  c10::DispatchKey key = c10::computeDispatchKey(c10::typeMetaToScalarType(kept.dtype), c10::kStrided, storage.device());
  at::Tensor tensor =
      at::detail::make_tensor_base<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), kept.dtype);
  c10::TensorImpl* made = tensor.unsafeGetTensorImpl();
  made->set_sizes_and_strides(kept.sizes, kept.strides, offset);
  return tensor;
}

c10::intrusive_ptr<c10::StorageImpl> empty_storage(int device, uint64_t bytes) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                               c10::DataPtr(nullptr, device_at(device)), device_allocator(), true);
}

void prefetch(const void* of, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(static_cast<const char*>(of) + at);
}

}  // namespace

// ------------------------------------------------------------------------------------------------------ liveness

void Host::drop(Cached& cached) {
  if (!cached.object) return;
  let_go = true;
  PyObject* object = std::exchange(cached.object, nullptr);
  Claim* claim = std::exchange(cached.claim, nullptr);
  enable_cached_tensors();
  at::caching::remove_cached_tensor(THPVariable_Unpack(object));
  if (cached.out && claim->held.load(std::memory_order_relaxed) && !cached.poisoned) claim->link();
  cached.out = cached.poisoned = false;
  cached.text_taker = 0;
  cached.tensor = nullptr;
  cached.storage = nullptr;
  claim->let_go();
  Py_DECREF(object);
}

// In order: those that were there before a call stand first.
void Host::strike(const Cached& cached) {
  for (size_t i = 0; cached.out && i < out.size(); i++) {
    if (out[i] != &cached) continue;
    out.erase(out.begin() + static_cast<ptrdiff_t>(i));
    if (i < out_before) out_before--;
    return;
  }
}

namespace {
[[gnu::noinline]] void clear_gradient(THPVariable* variable, c10::TensorImpl* tensor) {
  tensor->set_autograd_meta(nullptr);
  Py_CLEAR(variable->backward_hooks);
  Py_CLEAR(variable->post_accumulate_grad_hooks);
}
}  // namespace

// Also: whether the object cannot be handed out again, and is dropped for that.
RONDO_HOT bool Host::dead(Cached& cached) {
  if (!unreachable(cached)) return false;
  auto* variable = reinterpret_cast<THPVariable*>(cached.object);
  c10::TensorImpl* tensor = tensor_in(cached).unsafeGetTensorImpl();
  // Its gradient's graph may be what holds its storage, or those of other outputs.
  if (tensor->autograd_meta() || variable->backward_hooks || variable->post_accumulate_grad_hooks) {
    let_go = true;
    clear_gradient(variable, tensor);
    if (!cached.object) return true;  // what was cleared may have run anything
    if (!unreachable(cached)) return false;
  }
  if (!as_made(cached) || cached.storage->pyobj_slot()->load_pyobj()) {
    // The end of the storage, if this is it, tells the lease.
    drop(cached);
    return true;
  }
  if (tensor->unsafe_storage().use_count() != 1) return false;
  cached.claim->end_alone();
  return true;
}

RONDO_HOT void Host::sweep() {
  // Five places each of what may be dead, far from one another: waiting for all at once costs as much as for one.
  for (const Cached* cached : out) __builtin_prefetch(cached->object);
  for (const Cached* cached : out) {
    if (!cached->object || Py_REFCNT(cached->object) != 1) continue;
    prefetch(cached->tensor, sizeof(c10::TensorImpl));
    prefetch(cached->storage, 2 * kLine);
    prefetch(cached->claim, kLine);
    prefetch(&cached->kept->look, kLine);
  }
  bool again = !out.empty();
  while (again) {
    let_go = false;
    for (size_t i = 0; i < out.size();) {
      Cached* cached = out[i];
      if (cached->object && Py_REFCNT(cached->object) != 1) {
        i++;
      } else if (!cached->object || dead(*cached)) {
        cached->out = false;
        // What runs at the end of others may have made the list shorter.
        for (size_t k = i < out.size() && out[i] == cached ? i : 0; k < out.size(); k++) {
          if (out[k] != cached) continue;
          out[k] = out.back();
          out.pop_back();
          break;
        }
      } else {
        i++;
      }
    }
    again = let_go && !out.empty();  // what was let go may have been what others lived by
  }
}

void Host::forget_outputs() {
  sweep();
  std::vector<Cached*> all;
  all.swap(out);
  out_before = 0;
  for (Cached* cached : all) drop(*cached);
}

void Host::poison_with_text(Cached& cached) {
  cached.storage->release_data_and_set_meta_custom_data_ptr_error_msg_(cached.claim->message(taker));
  cached.text_taker = taker_number;
}

RONDO_HOT void Host::poison(size_t first_cached) {
  for (size_t i = 0; i < first_cached && i < out.size(); i++) {
    Cached& cached = *out[i];
    if (!cached.object || cached.poisoned || !cached.claim->stale()) continue;
    cached.poisoned = true;
    if (claim_of(cached.storage) != cached.claim) continue;
    if (kStorageFlags && taker_number && cached.text_taker == taker_number) {
      set_failing(*cached.storage, true);
      continue;
    }
    poison_with_text(cached);
  }
  if (ledger->first.load(std::memory_order_relaxed)) poison_others();
}

void Host::poison_others() {
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> taken;
  std::vector<std::string> messages;
  {
    std::lock_guard<std::mutex> lock(ledger->mutex);
    for (Claim* claim = ledger->first.load(std::memory_order_relaxed); claim;) {
      Claim* next = claim->next;
      if (claim->stale()) {
        auto storage = claim->storage.lock();
        if (storage && claim_of(storage.get()) == claim) {
          messages.push_back(claim->message(taker));
          taken.push_back(std::move(storage));
        }
        if (claim->next) claim->next->previous = claim->previous;
        if (claim->previous) claim->previous->next = claim->next;
        else ledger->first = claim->next;
        claim->next = claim->previous = nullptr;
        claim->linked = false;
      }
      claim = next;
    }
  }
  for (size_t i = 0; i < taken.size(); i++) {
    taken[i]->release_data_and_set_meta_custom_data_ptr_error_msg_(std::move(messages[i]));
  }
}

// ---------------------------------------------------------------------------------------------------------- make

// One of the two that nobody has, as it was made; null where there is none.
inline Cached* Host::hand_out(const rondo_tree_output& output, bool inference) {
  auto* kept = static_cast<Kept*>(output.metadata);
  unsigned which = kept->look.last;
  auto usable = [inference](const Cached& one) { return one.object && !one.out && one.inference == inference; };
  if (!usable(kept->slots[which])) {
    which ^= 1u;
    if (!usable(kept->slots[which])) return nullptr;
    kept->look.last = static_cast<uint16_t>(which);
  }
  Cached& cached = kept->slots[which];
  if (cached.poisoned && !clear_poison(cached)) return nullptr;
  cached.poisoned = false;
  cached.claim->epoch = output.epoch;
  cached.claim->held.store(true, std::memory_order_release);
  rondo_tree_lease_set_storage(output.lease, cached.claim);
  cached.out = true;
  out.push_back(&cached);
  return &cached;
}

rondo_status Host::make_fresh(const rondo_tree_output& output, void** out_tensor) {
  auto* kept = static_cast<Kept*>(output.metadata);
  auto storage = empty_storage(device, rondo_tree_lease_bytes(output.lease));
  auto* pointer = reinterpret_cast<void*>(rondo_tree_lease_pointer(output.lease));
  Claim* claim = claim_storage(storage, pointer, device_at(device), ledger, output.lease, output.epoch);
  claim->origin = kept->origin;
  c10::StorageImpl* known = storage.get();
  at::Tensor tensor = make_tensor(*kept, c10::Storage(std::move(storage)), kept->offset);
  claim->version = tensor.unsafeGetTensorImpl()->version_counter();
  PyObject* object = THPVariable_Wrap(tensor);
  if (!object) {
    claim->held.store(false);
    PyErr_Clear();
    return fail(RONDO_CODE_OUT_OF_MEMORY, "a tensor object for an output could not be made");
  }
  *out_tensor = object;
  if (output.shared) {
    claim->link();
    return RONDO_OK;
  }
  unsigned which = kept->slots[kept->look.last].object ? 1u - kept->look.last : kept->look.last;
  Cached& cached = kept->slots[which];
  strike(cached);
  drop(cached);  // one that is alive is poisoned with the others that nobody keeps
  kept->look = look_of(*tensor.unsafeGetTensorImpl());
  enable_cached_tensors();
  at::caching::add_cached_tensor(tensor);
  claim->references.fetch_add(1, std::memory_order_relaxed);
  cached.object = Py_NewRef(object);
  cached.tensor = tensor.unsafeGetTensorImpl();
  cached.inference = tensor.is_inference();
  cached.storage = known;
  cached.claim = claim;
  cached.poisoned = false;
  cached.out = true;
  cached.kept = kept;
  out.push_back(&cached);
  kept->look.last = static_cast<uint16_t>(which);
  return RONDO_OK;
}

// `version`: of what lies on the storage already. Autograd asks it whether what a forward has saved was changed meanwhile.
rondo_status Host::view(const rondo_tree_output& output, c10::Storage storage, const c10::VariableVersion& version,
                        int64_t offset, void** out_tensor) {
  at::Tensor tensor = make_tensor(*static_cast<Kept*>(output.metadata), std::move(storage), offset);
  if (version.enabled() && !tensor.is_inference()) tensor.unsafeGetTensorImpl()->set_version_counter(version);
  PyObject* object = THPVariable_Wrap(tensor);
  if (!object) {
    PyErr_Clear();
    return fail(RONDO_CODE_OUT_OF_MEMORY, "a tensor object for an output could not be made");
  }
  *out_tensor = object;
  return RONDO_OK;
}

// All of the input is the input itself, as a model returns it: autograd knows what a forward has saved by its object.
rondo_status Host::of_input(const rondo_tree_output& output, void* object, void** out_tensor) {
  auto* kept = static_cast<Kept*>(output.metadata);
  const at::Tensor* input = tensor_of(object);
  if (!input) return fail(RONDO_CODE_INTERNAL, "the input that an output lies on is no tensor any more");
  bool all = !output.offset && input->dtype() == kept->dtype && input->sizes() == c10::IntArrayRef(kept->sizes) &&
             input->strides() == c10::IntArrayRef(kept->strides);
  if (all) {
    *out_tensor = Py_NewRef(static_cast<PyObject*>(object));
    return RONDO_OK;
  }
  int64_t bytes = input->storage_offset() * static_cast<int64_t>(input->itemsize()) + output.offset;
  int64_t item = static_cast<int64_t>(kept->dtype.itemsize());
  if (bytes % item) return fail(RONDO_CODE_UNSUPPORTED, "an output lies between two elements of an input's storage");
  return view(output, input->storage(), input->unsafeGetTensorImpl()->version_counter(), bytes / item, out_tensor);
}

rondo_status Host::make_output(const rondo_tree_output& output, void* const* inputs, void** tensors, uint32_t index) {
  auto* kept = static_cast<Kept*>(output.metadata);
  switch (output.kind) {
    case RONDO_TREE_OUTPUT_FRESH: return make_fresh(output, &tensors[index]);
    case RONDO_TREE_OUTPUT_KEPT:
      tensors[index] = kept ? Py_XNewRef(kept->itself) : nullptr;
      return RONDO_OK;
    case RONDO_TREE_OUTPUT_ALIAS: {
      const at::Tensor* first = output.index < index ? tensor_of(tensors[output.index]) : nullptr;
      if (!first) return fail(RONDO_CODE_INTERNAL, "the output that another one lies on was not made");
      return view(output, first->storage(), first->unsafeGetTensorImpl()->version_counter(), kept->offset, &tensors[index]);
    }
    case RONDO_TREE_OUTPUT_PATH: {
      auto* claim = static_cast<Claim*>(rondo_tree_lease_storage(output.lease));
      auto storage = claim && claim->epoch == output.epoch ? claim->storage.lock() : nullptr;
      if (!storage) return fail(RONDO_CODE_STALE, "the output of an earlier run, which another one lies on, has ended");
      return view(output, c10::Storage(std::move(storage)), claim->version, kept->offset, &tensors[index]);
    }
    default: return of_input(output, inputs ? inputs[output.index] : nullptr, &tensors[index]);
  }
}

RONDO_HOT rondo_status host_make_outputs(void* user, const rondo_tree_output* outputs, uint32_t count, void* const* inputs,
                               void** out_tensors) {
  auto* host = static_cast<Host*>(user);
  bool inference = c10::InferenceMode::is_enabled();
  for (uint32_t i = 0; i < count; i++) {
    rondo_status status = RONDO_OK;
    out_tensors[i] = nullptr;
    try {
      if (outputs[i].kind == RONDO_TREE_OUTPUT_FRESH && !outputs[i].shared) {
        if (const Cached* cached = host->hand_out(outputs[i], inference)) {
          out_tensors[i] = Py_NewRef(cached->object);
          continue;
        }
      }
      status = host->make_output(outputs[i], inputs, out_tensors, i);
    } catch (...) {
      status = status_of_exception();
    }
    if (!status) continue;
    // Those made are unmade; what they lease was never theirs.
    for (uint32_t k = i; k-- > 0;) {
      auto* object = static_cast<PyObject*>(std::exchange(out_tensors[k], nullptr));
      if (outputs[k].kind == RONDO_TREE_OUTPUT_FRESH) {
        Claim* claim = claim_of(tensor_of(object)->storage().unsafeGetStorageImpl());
        if (claim) claim->held.store(false);
      }
      Py_XDECREF(object);
    }
    return status;
  }
  return RONDO_OK;
}

// ---------------------------------------------------------------------------------------------------- keep, drop

rondo_status host_keep(void* user, void* tensor, bool itself, void** out_metadata) {
  auto* host = static_cast<Host*>(user);
  try {
    auto kept = std::make_unique<Kept>();
    if (itself) {
      kept->itself = Py_NewRef(static_cast<PyObject*>(tensor));
    } else {
      const at::Tensor* known = tensor_of(tensor);
      if (!known) return fail(RONDO_CODE_INTERNAL, "what is to be kept is no tensor");
      kept->sizes = known->sizes();
      kept->strides = known->strides();
      kept->offset = known->storage_offset();
      kept->dtype = known->dtype();
      kept->origin = host->origin_of(tensor);
    }
    *out_metadata = kept.release();
    return RONDO_OK;
  } catch (...) {
    return status_of_exception();
  }
}

void host_drop(void* user, void* metadata) {
  auto* host = static_cast<Host*>(user);
  auto* kept = static_cast<Kept*>(metadata);
  if (!kept) return;
  for (Cached& cached : kept->slots) {
    host->strike(cached);
    host->drop(cached);
  }
  Py_XDECREF(kept->itself);
  delete kept;
}

}  // namespace rondo_torch
