// SPDX-License-Identifier: Apache-2.0
//
// The two tables of a tree for another package's device. What the device does is asked of Python (rondo_torch/foreign.py),
// and its storages, which know nothing of leases, are watched: slower than Rondo's own, and the same to who calls.
#include "tree_foreign.hpp"

#include <ATen/ops/empty_strided.h>
#include <c10/core/TensorOptions.h>

#include <cstdarg>
#include <utility>
#include <vector>

namespace rondo_torch {
namespace {

struct Locked {
  PyGILState_STATE state = PyGILState_Ensure();
  ~Locked() { PyGILState_Release(state); }
};

// The exception that is set, as a status. The adapter's own say which operation of the package failed, on what device.
rondo_status python_failure() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject* shown = value ? PyObject_Str(value) : nullptr;
  const char* utf8 = shown ? PyUnicode_AsUTF8(shown) : nullptr;
  std::string text = utf8 ? utf8 : "an exception without a text";
  if (!value || !PyErr_GivenExceptionMatches(value, PyExc_RuntimeError))
    text = std::string(value ? Py_TYPE(value)->tp_name : "error") + ": " + text;
  bool memory = value && PyErr_GivenExceptionMatches(value, PyExc_MemoryError);
  // No status can stand for it: it comes again as soon as Python runs.
  if (value && PyErr_GivenExceptionMatches(value, PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
  PyErr_Clear();
  Py_XDECREF(shown);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return fail(memory ? RONDO_CODE_OUT_OF_MEMORY : RONDO_CODE_UNSUPPORTED, text);
}

// adapter.name(*arguments): a new reference, or null with a status.
PyObject* ask(void* adapter, rondo_status* status, const char* name, const char* format, ...) {
  PyObject* method = PyObject_GetAttrString(static_cast<PyObject*>(adapter), name);
  PyObject* arguments = nullptr;
  if (method) {
    va_list values;
    va_start(values, format);
    arguments = Py_VaBuildValue(format, values);
    va_end(values);
  }
  PyObject* result = arguments ? PyObject_CallObject(method, arguments) : nullptr;
  Py_XDECREF(arguments);
  Py_XDECREF(method);
  if (!result) *status = python_failure();
  return result;
}

template <class... Values>
rondo_status tell(void* adapter, const char* name, const char* format, Values... values) {
  Locked locked;
  rondo_status status = RONDO_OK;
  Py_XDECREF(ask(adapter, &status, name, format, values...));
  return status;
}

// A question that is answered with yes or no; a failure counts as no.
bool says_yes(void* adapter, const char* name) {
  Locked locked;
  rondo_status status = RONDO_OK;
  PyObject* answer = ask(adapter, &status, name, "()");
  bool good = answer && PyObject_IsTrue(answer) == 1;
  Py_XDECREF(answer);
  rondo_status_release(status);
  return good;
}

bool supported(void* adapter) { return says_yes(adapter, "supported"); }
bool caching(void* adapter) { return says_yes(adapter, "caching"); }

using Word = unsigned long long;

rondo_status pool_handle(void* adapter, rondo_pool_id* out_pool) {
  Locked locked;
  rondo_status status = RONDO_OK;
  PyObject* number = ask(adapter, &status, "new_pool", "()");
  if (!number) return status;
  *out_pool = {PyLong_AsUnsignedLongLong(number), 0};
  Py_DECREF(number);
  return PyErr_Occurred() ? python_failure() : RONDO_OK;
}

rondo_status pool_begin(void* adapter, rondo_pool_id pool) { return tell(adapter, "begin", "(K)", Word{pool.automatic}); }
rondo_status pool_end(void* adapter, rondo_pool_id pool) { return tell(adapter, "end", "(K)", Word{pool.automatic}); }
rondo_status pool_release(void* adapter, rondo_pool_id pool) { return tell(adapter, "release", "(K)", Word{pool.automatic}); }

rondo_status get_state(void* adapter, rondo_pool_id pool, void** out_state) {
  Locked locked;
  rondo_status status = RONDO_OK;
  *out_state = ask(adapter, &status, "checkpoint", "(K)", Word{pool.automatic});
  return status;
}

void release_object(void*, void* object) {
  Locked locked;
  Py_XDECREF(static_cast<PyObject*>(object));
}

void retain_object(void*, void* object) {
  Locked locked;
  Py_XINCREF(static_cast<PyObject*>(object));
}

// A storage that a tree has handed out. One that was given other memory (resize_) is none of the tree's any more.
struct Watch {
  c10::weak_intrusive_ptr<c10::StorageImpl> weak;
  const void* pointer;
  std::shared_ptr<const Origin> origin;
  c10::VariableVersion version;  // of the tensor that is on it

  c10::intrusive_ptr<c10::StorageImpl> lock() const {
    auto storage = weak.lock();
    if (storage && storage->_mutable_data_ptr_no_checks().get() != pointer) storage.reset();
    return storage;
  }
};

Watch& watch_of(void* weak) { return *static_cast<Watch*>(weak); }

rondo_status set_state(void* adapter, rondo_pool_id pool, void* state, const rondo_tree_block* live, uint64_t live_count,
                       const uint64_t* dead, uint64_t dead_count) {
  Locked locked;
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> held;
  pybind11::list storages, pointers;
  for (uint64_t i = 0; i < live_count; i++) {
    auto storage = live[i].storage ? watch_of(live[i].storage).lock() : nullptr;
    if (!storage) {
      pointers.append(live[i].pointer);  // it has ended meanwhile
      continue;
    }
    storages.append(reinterpret_cast<uint64_t>(storage.get()));
    held.push_back(std::move(storage));
  }
  for (uint64_t i = 0; i < dead_count; i++) pointers.append(dead[i]);
  rondo_status status = RONDO_OK;
  Py_XDECREF(ask(adapter, &status, "restore", "(KOOO)", Word{pool.automatic}, static_cast<PyObject*>(state), storages.ptr(),
                 pointers.ptr()));
  return status;
}

rondo_status check_live(void* adapter, rondo_pool_id pool, const uint64_t* expected, uint64_t count, bool* out_equal) {
  Locked locked;
  pybind11::set pointers;
  for (uint64_t i = 0; i < count; i++) pointers.add(pybind11::int_(expected[i]));
  rondo_status status = RONDO_OK;
  PyObject* equal = ask(adapter, &status, "live_equals", "(KO)", Word{pool.automatic}, pointers.ptr());
  if (!equal) return status;
  *out_equal = PyObject_IsTrue(equal) == 1;
  Py_DECREF(equal);
  return RONDO_OK;
}

rondo_status prepare(void* adapter, bool recording, bool enter) {
  return tell(adapter, "prepare", "(ii)", static_cast<int>(recording), static_cast<int>(enter));
}

// Of a list of pairs (address, bytes): as many as there is room for. How many there are.
uint64_t snapshot(void* adapter, rondo_pool_id pool, rondo_tree_block* blocks, uint64_t* bytes, uint64_t capacity) {
  Locked locked;
  rondo_status status = RONDO_OK;
  PyObject* all = ask(adapter, &status, "snapshot", "(K)", Word{pool.automatic});
  rondo_status_release(status);
  Py_ssize_t count = all && PyList_Check(all) ? PyList_GET_SIZE(all) : 0;
  for (Py_ssize_t i = 0; i < count && static_cast<uint64_t>(i) < capacity; i++) {
    unsigned long long address = 0, size = 0;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(all, i), "KK", &address, &size)) PyErr_Clear();
    if (blocks) blocks[i] = {address, nullptr};
    if (bytes) bytes[i] = size;
  }
  Py_XDECREF(all);
  return static_cast<uint64_t>(count);
}

rondo_status pool_bytes(void* adapter, rondo_pool_id pool, uint64_t* out_reserved, uint64_t* out_allocated) {
  Locked locked;
  rondo_status status = RONDO_OK;
  unsigned long long reserved = 0, allocated = 0;
  PyObject* both = ask(adapter, &status, "bytes", "(K)", Word{pool.automatic});
  if (both && !PyArg_ParseTuple(both, "KK", &reserved, &allocated)) status = python_failure();
  Py_XDECREF(both);
  *out_reserved = reserved;
  *out_allocated = allocated;
  return status;
}

// A block whose storage has ended, and has freed it, after the tree had seen it alive: threads of autograd's engine end
// storages without the interpreter's lock. It is not freed again.
thread_local uint64_t t_ended = 0;

rondo_status raw_delete(void* adapter, uint64_t pointer) {
  if (pointer && std::exchange(t_ended, 0) == pointer) return RONDO_OK;
  return tell(adapter, "raw_delete", "(K)", Word{pointer});
}

rondo_status create_stream(void* adapter, void** out_stream) {
  Locked locked;
  rondo_status status = RONDO_OK;
  *out_stream = ask(adapter, &status, "new_stream", "()");
  return status;
}

rondo_status stream_wait(void* adapter, void* stream, void* other) {
  return tell(adapter, "wait", "(OO)", static_cast<PyObject*>(stream), static_cast<PyObject*>(other));
}
rondo_status synchronize(void* adapter, void* stream) {
  return tell(adapter, "synchronize", "(O)", static_cast<PyObject*>(stream));
}

rondo_status create_graph(void* adapter, const char* name, void** out_graph) {
  Locked locked;
  rondo_status status = RONDO_OK;
  *out_graph = ask(adapter, &status, "new_graph", "(s)", name ? name : "");
  return status;
}

rondo_status capture_begin(void* adapter, void* graph, void* stream, rondo_pool_id pool, rondo_capture_mode) {
  return tell(adapter, "capture_begin", "(OOK)", static_cast<PyObject*>(graph), static_cast<PyObject*>(stream),
              Word{pool.automatic});
}

rondo_status capture_end(void* adapter, void* graph, void* stream, rondo_tree_graph_facts* out_facts) {
  // Not every package tells how much it has recorded: one node stands for all.
  *out_facts = {1, 0, 1, 0};
  return tell(adapter, "capture_end", "(O)", static_cast<PyObject*>(graph));
}

void abort_capture(void* adapter, void* graph) {
  rondo_status_release(tell(adapter, "abort", "(O)", static_cast<PyObject*>(graph)));
}

rondo_status replay(void* adapter, void* graph, void* stream) {
  return tell(adapter, "replay", "(OO)", static_cast<PyObject*>(graph), static_cast<PyObject*>(stream));
}

rondo_status copy_bytes(void*, void*, const rondo_tree_copy*, uint64_t) {
  return fail(RONDO_CODE_INTERNAL, "a foreign device copies tensors, not bytes");
}

void destroy(void* adapter) {
  if (!Py_IsInitialized()) return;
  Locked locked;
  Py_DECREF(static_cast<PyObject*>(adapter));
}

// --------------------------------------------------------------------------------------------------- tensor host

Host* host_of(void* user) { return static_cast<Host*>(user); }

// PyTorch says itself that a storage was poisoned.
bool readable(const at::Tensor& tensor, std::string* why) {
  if (!tensor.has_storage()) return true;
  try {
    (void)tensor.storage().unsafeGetStorageImpl()->data();
    return true;
  } catch (const c10::Error& error) {
    if (why) *why = error.what_without_backtrace();
    return false;
  }
}

bool foreign_facts(void* user, void* const* tensors, uint32_t count, uint64_t* pointers, uint64_t* words) {
  bool good = host_facts(user, tensors, count, pointers, words);
  for (uint32_t i = 0; i < count && good; i++) {
    const at::Tensor* tensor = tensor_of(tensors[i]);
    if (tensor && tensor->device() == host_of(user)->where) good = readable(*tensor, nullptr);
  }
  return good;
}

rondo_status foreign_check(void* user, void* object) {
  const at::Tensor* tensor = tensor_of(object);
  std::string why;
  return !tensor || readable(*tensor, &why) ? RONDO_OK : host_of(user)->fail_stale(std::move(why));
}

void do_nothing(void*) {}

// Such a tensor on memory of the tree's, with a storage of the kind that the device's package has registered, if any.
at::Tensor make_here(const Kept& kept, void* pointer, uint64_t bytes, int64_t offset, c10::Device where) {
  c10::Storage storage(c10::make_storage_impl(c10::StorageImpl::use_byte_size_t(), static_cast<int64_t>(bytes),
                                              c10::DataPtr(pointer, nullptr, &do_nothing, where),
                                              c10::GetAllocator(where.type()), true, where));
  c10::DispatchKey key = c10::computeDispatchKey(c10::typeMetaToScalarType(kept.dtype), c10::kStrided, where);
  at::Tensor tensor =
      at::detail::make_tensor_base<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), kept.dtype);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(kept.sizes, kept.strides, offset);
  return tensor;
}

rondo_status wrap(const at::Tensor& tensor, void** out_tensor) {
  PyObject* object = THPVariable_Wrap(tensor);
  if (!object) return python_failure();
  *out_tensor = object;
  return RONDO_OK;
}

struct OnStream {
  OnStream(PyObject* adapter, void* stream) : adapter_(adapter) {
    token_ = ask(adapter, &status, "enter", "(O)", stream ? static_cast<PyObject*>(stream) : Py_None);
  }
  ~OnStream() {
    if (!token_) return;
    rondo_status left = RONDO_OK;
    Py_XDECREF(ask(adapter_, &left, "leave", "(O)", token_));
    rondo_status_release(left);
    Py_DECREF(token_);
  }
  rondo_status status = RONDO_OK;

 private:
  PyObject *adapter_, *token_;
};

rondo_status foreign_make_input(void* user, void* like, void* stream, void** out_tensor) {
  const at::Tensor* tensor = tensor_of(like);
  if (!tensor) return fail(RONDO_CODE_INTERNAL, "an input is no tensor");
  try {
    OnStream on(host_of(user)->adapter, stream);
    if (on.status) return on.status;
    return wrap(at::empty_strided(tensor->sizes(), tensor->strides(), tensor->options()), out_tensor);
  } catch (...) {
    return status_of_exception();
  }
}

rondo_status foreign_copy_inputs(void* user, void* stream, const rondo_tree_copy* copies, uint64_t count) {
  Host* host = host_of(user);
  try {
    OnStream on(host->adapter, stream);
    if (on.status) return on.status;
    at::NoGradGuard without;
    for (uint64_t i = 0; i < count; i++) {
      const at::Tensor* source = tensor_of(copies[i].tensor);
      const auto* kept = static_cast<const Kept*>(copies[i].metadata);
      if (!source || !kept) return fail(RONDO_CODE_INTERNAL, "a copy of an input without its tensor");
      auto* destination = reinterpret_cast<void*>(copies[i].destination);
      at::Tensor target = make_here(*kept, destination, copies[i].bytes, 0, host->where);
      // Dimensions that repeat are one element wide in memory.
      at::Tensor from = *source;
      for (int64_t d = 0; d < from.dim(); d++) {
        if (from.stride(d) || from.size(d) < 2) continue;
        from = from.narrow(d, 0, 1);
        target = target.narrow(d, 0, 1);
      }
      target.copy_(from, true);
    }
    return RONDO_OK;
  } catch (...) {
    return status_of_exception();
  }
}

rondo_status foreign_own(void* user, void* stream, void* object, void** out_tensor) {
  const at::Tensor* tensor = tensor_of(object);
  if (!tensor) {
    *out_tensor = Py_XNewRef(static_cast<PyObject*>(object));
    return RONDO_OK;
  }
  try {
    OnStream on(host_of(user)->adapter, stream);
    if (on.status) return on.status;
    return wrap(tensor->detach().clone(), out_tensor);
  } catch (...) {
    return status_of_exception();
  }
}

// Outputs of the replay that goes on, until they are watched.
thread_local std::vector<std::pair<const void*, std::shared_ptr<const Origin>>> t_made;

std::shared_ptr<const Origin> origin_of(const Host* host, const void* object) {
  for (auto made = t_made.begin(); made != t_made.end(); ++made) {
    if (made->first != object) continue;
    auto origin = std::move(made->second);
    t_made.erase(made);
    return origin;
  }
  return host->origin_of(object);
}

rondo_status foreign_output(Host* host, const rondo_tree_output& output, void* const* inputs, void** tensors, uint32_t index) {
  auto* kept = static_cast<Kept*>(output.metadata);
  if (output.kind == RONDO_TREE_OUTPUT_FRESH) {
    auto* pointer = reinterpret_cast<void*>(rondo_tree_lease_pointer(output.lease));
    uint64_t bytes = rondo_tree_lease_bytes(output.lease);
    rondo_status status = wrap(make_here(*kept, pointer, bytes, kept->offset, host->where), &tensors[index]);
    if (!status) t_made.emplace_back(tensors[index], kept->origin);
    return status;
  }
  if (output.kind == RONDO_TREE_OUTPUT_PATH) {
    void* weak = rondo_tree_lease_storage(output.lease);
    auto storage = weak ? watch_of(weak).lock() : nullptr;
    if (!storage) return fail(RONDO_CODE_STALE, "the output of an earlier run, which another one lies on, has ended");
    return host->view(output, c10::Storage(std::move(storage)), watch_of(weak).version, kept->offset, &tensors[index]);
  }
  return host->make_output(output, inputs, tensors, index);
}

rondo_status foreign_make_outputs(void* user, const rondo_tree_output* outputs, uint32_t count, void* const* inputs,
                                  void** out_tensors) {
  t_made.clear();
  for (uint32_t i = 0; i < count; i++) {
    rondo_status status = RONDO_OK;
    out_tensors[i] = nullptr;
    try {
      status = foreign_output(host_of(user), outputs[i], inputs, out_tensors, i);
    } catch (...) {
      status = status_of_exception();
    }
    if (!status) continue;
    for (uint32_t k = i; k-- > 0;) Py_XDECREF(static_cast<PyObject*>(std::exchange(out_tensors[k], nullptr)));
    t_made.clear();
    return status;
  }
  return RONDO_OK;
}

rondo_status foreign_watch(void* user, void* object, void** out_weak) {
  const at::Tensor* tensor = tensor_of(object);
  if (!tensor) return fail(RONDO_CODE_INTERNAL, "what is to be watched is no tensor");
  c10::Storage storage = tensor->storage();
  const void* pointer = storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
  auto version = tensor->is_inference() ? c10::VariableVersion(c10::VariableVersion::DISABLED)
                                        : tensor->unsafeGetTensorImpl()->version_counter();
  *out_weak = new Watch{storage.getWeakStorageImpl(), pointer, origin_of(host_of(user), object), std::move(version)};
  return RONDO_OK;
}

// A storage whose Python object is all that is left of it is nobody's.
bool foreign_alive(void*, void* weak) {
  auto storage = watch_of(weak).lock();
  if (!storage) return false;
  uint32_t others = storage.use_count() - 1;
  PyObject* object = storage->pyobj_slot()->load_pyobj();
  return !(object && others == 1 && Py_REFCNT(object) == 1);
}

void foreign_unwatch(void*, void* weak) { delete &watch_of(weak); }

void foreign_poison(void* user, void* weak, const char*) {
  const Watch& watch = watch_of(weak);
  auto storage = watch.lock();
  t_ended = storage ? 0 : reinterpret_cast<uint64_t>(watch.pointer);
  if (!storage) return;
  c10::DataPtr& data = storage->_mutable_data_ptr_no_checks();
  void* pointer = data.get();
  c10::Device where = data.device();
  (void)data.release_context();  // the tree has its memory
  data = c10::DataPtr(pointer, nullptr, &do_nothing, where);
  Claim about{watch.weak};
  about.origin = watch.origin;
  storage->release_data_and_set_meta_custom_data_ptr_error_msg_(about.message(host_of(user)->taker));
}

rondo_status foreign_evacuate(void* user, void* stream, void* weak, uint64_t pointer, uint64_t bytes) {
  Host* host = host_of(user);
  t_ended = 0;
  try {
    auto storage = watch_of(weak).lock();
    if (!storage) return fail(RONDO_CODE_NOT_FOUND, "the output has ended meanwhile");
    OnStream on(host->adapter, stream);
    if (on.status) return on.status;
    at::NoGradGuard without;
    Kept all;
    all.sizes = {static_cast<int64_t>(bytes)};
    all.strides = {1};
    all.dtype = caffe2::TypeMeta::Make<uint8_t>();
    at::Tensor moved = at::empty_strided(all.sizes, all.strides, at::TensorOptions(host->where).dtype(at::kByte));
    moved.copy_(make_here(all, reinterpret_cast<void*>(pointer), bytes, 0, host->where), true);
    c10::DataPtr& data = storage->_mutable_data_ptr_no_checks();
    (void)data.release_context();  // the tree has its memory
    data = std::exchange(moved.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks(),
                         c10::DataPtr(nullptr, host->where));
    return RONDO_OK;
  } catch (...) {
    return status_of_exception();
  }
}

}  // namespace

rondo_graph_ops foreign_operations(PyObject* adapter) {
  Locked locked;
  rondo_graph_ops ops{};
  ops.struct_size = sizeof ops;
  ops.user = Py_NewRef(adapter);
  ops.is_graph_capture_supported = supported;
  ops.caching_allocator_enabled = caching;
  ops.graph_pool_handle = pool_handle;
  ops.begin_allocate_current_thread_to_pool = pool_begin;
  ops.end_allocate_to_pool = pool_end;
  ops.release_pool = pool_release;
  ops.get_checkpoint_state = get_state;
  ops.release_checkpoint_state = release_object;
  ops.set_checkpoint_pool_state = set_state;
  ops.check_pool_live_allocations = check_live;
  ops.raw_delete = raw_delete;
  if (says_yes(adapter, "prepares")) ops.prepare_for_capture = prepare;
  if (says_yes(adapter, "sees")) {
    ops.memory_snapshot = snapshot;
    ops.pool_bytes = pool_bytes;
  }
  ops.create_stream = create_stream;
  ops.release_stream = release_object;
  ops.retain_stream = retain_object;
  ops.stream_wait = stream_wait;
  ops.synchronize = synchronize;
  ops.create_graph = create_graph;
  ops.capture_begin = capture_begin;
  ops.capture_end = capture_end;
  ops.abort = abort_capture;
  ops.replay = replay;
  ops.release_graph = release_object;
  ops.copy = copy_bytes;
  ops.destroy = destroy;
  return ops;
}

void make_foreign(rondo_tensor_host* table) {
  table->flags |= RONDO_TENSOR_HOST_WEAK;
  table->facts = foreign_facts;
  table->check = foreign_check;
  table->make_input = foreign_make_input;
  table->copy_inputs = foreign_copy_inputs;
  table->make_outputs = foreign_make_outputs;
  table->own = foreign_own;
  table->poison = foreign_poison;
  table->watch = foreign_watch;
  table->alive = foreign_alive;
  table->unwatch = foreign_unwatch;
  table->adopt = nullptr;
  table->evacuate = foreign_evacuate;
}

rondo_status foreign_synchronize(PyObject* adapter, PyObject* stream) { return synchronize(adapter, stream); }

PyObject* foreign_stream(PyObject* adapter) {
  rondo_status status = RONDO_OK;
  PyObject* stream = ask(adapter, &status, "current_stream", "()");
  check(status);
  return stream;
}

rondo_status foreign_enter(PyObject* adapter, void* stream, PyObject** out_token) {
  rondo_status status = RONDO_OK;
  *out_token = ask(adapter, &status, "enter", "(O)", static_cast<PyObject*>(stream));
  return status;
}

void foreign_leave(PyObject* adapter, PyObject* token) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  rondo_status status = RONDO_OK;
  Py_XDECREF(ask(adapter, &status, "leave", "(O)", token));
  rondo_status_release(status);
  Py_DECREF(token);
  PyErr_Restore(type, value, trace);
}

}  // namespace rondo_torch
