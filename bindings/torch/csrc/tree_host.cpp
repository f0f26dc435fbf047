// SPDX-License-Identifier: Apache-2.0
//
// The table of PyTorch's tensors for trees (rondo_tensor_host): what is asked of a tensor, and what a model's run needs.
#include "tree_host.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>

#include <array>
#include <cstring>
#include <utility>

#include "allocator.hpp"
#include "node.hpp"
#include "tree_foreign.hpp"
#include "tree_stream.hpp"

namespace rondo_torch {

// ---------------------------------------------------------------------------------------------------------- lock

// No two threads that are alive have it at one address, and who ends has no lock.
RONDO_HOT uint64_t TreeLock::self() {
  thread_local char mark;
  return reinterpret_cast<uint64_t>(&mark);
}

bool TreeLock::try_acquire() {
  if (owner_) return false;
  owner_ = self();
  return true;
}

RONDO_HOT bool TreeLock::acquire() {
  uint64_t me = self();
  if (owner_ == me) return false;
  while (owner_) wait();
  owner_ = me;
  return true;
}

RONDO_HOT void TreeLock::release() {
  owner_ = 0;
  if (waiting_) wake();
}

// Who is inside may wait for the interpreter.
void TreeLock::wait() {
  uint64_t before = wakes_;
  waiting_++;
  {
    pybind11::gil_scoped_release without;
    std::unique_lock<std::mutex> lock(mutex_);
    free_.wait(lock, [&] { return wakes_ != before; });
  }
  waiting_--;
}

void TreeLock::wake() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    wakes_++;
  }
  free_.notify_all();
}

// ------------------------------------------------------------------------------------------------------ failures

rondo_status fail(rondo_code code, const std::string& text) { return rondo_status_make(code, RONDO_LAYER_TREE, text.c_str()); }

rondo_status Host::fail_stale(std::string text) {
  stale = std::move(text);
  return fail(RONDO_CODE_STALE, stale);
}

rondo_status status_of_exception() noexcept {
  try {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    return fail(RONDO_CODE_OUT_OF_MEMORY, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    return fail(RONDO_CODE_INTERNAL, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return rondo_status_make(RONDO_CODE_OUT_OF_MEMORY, RONDO_LAYER_TREE, "no memory");
  } catch (const std::exception& error) {
    return rondo_status_make(RONDO_CODE_INTERNAL, RONDO_LAYER_TREE, error.what());
  } catch (...) {
    return rondo_status_make(RONDO_CODE_INTERNAL, RONDO_LAYER_TREE, "an unknown exception");
  }
}

namespace {

Host* host_of(void* user) { return static_cast<Host*>(user); }

// --------------------------------------------------------------------------------------------------------- facts

constexpr uint64_t kMix = 0x9e3779b97f4a7c15u;

inline uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * kMix;
  return hash ^ (hash >> 29);
}

enum : uint64_t { kTensor = 1, kInteger = 2, kFloat = 3, kObject = 4 };

uint64_t word_of_value(PyObject* value) {
  if (PyLong_Check(value)) {
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (!overflow) return mix(kInteger, static_cast<uint64_t>(number));
    return mix(kInteger, static_cast<uint64_t>(PyObject_Hash(value)));
  }
  if (PyFloat_Check(value)) {
    double number = PyFloat_AS_DOUBLE(value);
    uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    return mix(kFloat, bits);
  }
  return mix(kObject, reinterpret_cast<uint64_t>(value));
}

// Odd numbers without a pattern (splitmix64): a sum of products with them is another for other factors, with near certainty,
// and its products do not wait for one another.
constexpr size_t kFactors = 16;
constexpr std::array<uint64_t, 2 * kFactors> make_factors() {
  std::array<uint64_t, 2 * kFactors> all{};
  uint64_t state = kMix;
  for (uint64_t& one : all) {
    uint64_t z = state += kMix;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    one = (z ^ (z >> 31)) | 1;
  }
  return all;
}
constexpr auto kFactor = make_factors();

inline uint64_t word_of_tensor(const c10::TensorImpl* tensor) {
  c10::Device where = tensor->device();
  c10::IntArrayRef sizes = tensor->sizes(), strides = tensor->strides();
  uint64_t hash = (static_cast<uint64_t>(sizes.size()) << 32) | (static_cast<uint64_t>(where.type()) << 24) |
                  (static_cast<uint64_t>(where.index() + 1) << 12) |
                  static_cast<uint64_t>(c10::typeMetaToScalarType(tensor->dtype()));
  for (size_t i = 0; i < sizes.size() && i < kFactors; i++) {
    hash += static_cast<uint64_t>(sizes[i]) * kFactor[2 * i] + static_cast<uint64_t>(strides[i]) * kFactor[2 * i + 1];
  }
  for (size_t i = kFactors; i < sizes.size(); i++) {
    hash = mix(mix(hash, static_cast<uint64_t>(sizes[i])), static_cast<uint64_t>(strides[i]));
  }
  return mix(kTensor, hash);
}

// Addresses are read past PyTorch's checks: a storage that was poisoned is seen by its lease.
inline bool facts_of_tensor(const c10::TensorImpl* tensor, uint64_t* pointer, uint64_t* word) {
  *pointer = 0;
  *word = word_of_tensor(tensor);
  c10::StorageImpl* storage = tensor->unsafe_storage().unsafeGetStorageImpl();
  if (!storage) return true;
  const c10::DataPtr& data = storage->_mutable_data_ptr_no_checks();
  if (data.get())
    *pointer = reinterpret_cast<uint64_t>(data.get()) + static_cast<uint64_t>(tensor->storage_offset()) * tensor->itemsize();
  else if (tensor->numel() && !tensor->key_set().has(c10::DispatchKey::ZeroTensor)) return false;
  const Claim* claim = claim_of(storage);
  return !claim || !claim->stale();
}

}  // namespace

RONDO_HOT bool host_facts(void*, void* const* tensors, uint32_t count, uint64_t* pointers, uint64_t* words) {
  bool good = true;
  try {
    for (uint32_t i = 0; i < count; i++) {
      const at::Tensor* tensor = tensor_of(tensors[i]);
      if (tensor) {
        good = facts_of_tensor(tensor->unsafeGetTensorImpl(), &pointers[i], &words[i]) && good;
      } else {
        pointers[i] = 0;
        words[i] = tensors[i] ? word_of_value(static_cast<PyObject*>(tensors[i])) : 0;
      }
    }
  } catch (...) {
    return false;
  }
  return good;
}

namespace {

// What the poison of the storage says, which knows who took the memory.
std::string why_stale(const c10::StorageImpl& storage, const Claim& claim, const char* taker) {
  try {
    (void)storage.data();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return claim.message(taker);
}

rondo_status host_check(void* user, void* object) {
  Host* host = host_of(user);
  try {
    const at::Tensor* tensor = tensor_of(object);
    if (!tensor || !tensor->has_storage()) return RONDO_OK;
    (void)tensor->sizes();
    bool lost = tensor->numel() && !tensor->storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get() &&
                !tensor->_is_zerotensor();
    TORCH_CHECK(!lost, "rondo: an input of sizes ", tensor->sizes(), " has no memory: its storage was resized to ",
                tensor->storage().nbytes(), " bytes");
    const c10::StorageImpl* storage = tensor->storage().unsafeGetStorageImpl();
    const Claim* claim = claim_of(storage);
    if (!claim || !claim->stale()) return RONDO_OK;
    return host->fail_stale(why_stale(*storage, *claim, host->taker));
  } catch (...) {
    return status_of_exception();
  }
}

rondo_status host_describe(void* user, void* object, rondo_tensor_facts* out_facts) {
  Host* host = host_of(user);
  *out_facts = {};
  try {
    const at::Tensor* tensor = tensor_of(object);
    if (!tensor) return RONDO_OK;
    out_facts->rank = static_cast<int32_t>(tensor->dim());
    c10::Device where = tensor->device();
    bool here = where == host->where;
    if (here) out_facts->place = RONDO_TENSOR_DEVICE;
    else out_facts->place = where.is_cpu() ? RONDO_TENSOR_HOST : RONDO_TENSOR_OTHER;
    if (tensor->layout() != c10::kStrided || !tensor->has_storage()) {
      out_facts->place = RONDO_TENSOR_OTHER;
      return RONDO_OK;
    }
    c10::StorageImpl* storage = tensor->storage().unsafeGetStorageImpl();
    out_facts->storage = reinterpret_cast<uint64_t>(storage->_mutable_data_ptr_no_checks().get());
    out_facts->storage_bytes = storage->nbytes();
    uint64_t item = tensor->itemsize(), last = 0;
    if (tensor->numel() && out_facts->storage) {
      for (int64_t i = 0; i < tensor->dim(); i++)
        last += static_cast<uint64_t>(tensor->size(i) - 1) * static_cast<uint64_t>(tensor->stride(i));
      out_facts->bytes = (last + 1) * item;
    }
    if (out_facts->storage) out_facts->pointer = out_facts->storage + static_cast<uint64_t>(tensor->storage_offset()) * item;
    Claim* claim = claim_of(storage);
    if (claim && claim->held.load(std::memory_order_relaxed)) {
      out_facts->lease = claim->lease;
      out_facts->epoch = claim->epoch;
    }
    return RONDO_OK;
  } catch (...) {
    return status_of_exception();
  }
}

// ----------------------------------------------------------------------------------------------- references, runs

void* host_retain(void* user, void* tensor) { return Py_XNewRef(static_cast<PyObject*>(tensor)); }

// An output that is only kept to be handed out again is over with its last reference outside.
RONDO_HOT void host_release(void* user, void** tensors, uint32_t count) {
  Host* host = host_of(user);
  bool last = false;  // of one that may be an output, or hold one
  for (uint32_t i = 0; i < count; i++) {
    auto* object = static_cast<PyObject*>(std::exchange(tensors[i], nullptr));
    last = last || (object && Py_REFCNT(object) <= 2);
    Py_XDECREF(object);
  }
  if (last) host->sweep();
}

struct Environment {
  int device_before = -1, device = 0;
  StreamId stream_before = 0;
  bool changed = false;
  PyObject *adapter = nullptr, *token = nullptr;

  rondo_status enter(const Host* host, void* stream) {
    if (host->adapter) {
      adapter = host->adapter;
      return foreign_enter(adapter, stream, &token);
    }
    enter(host->device, stream);
    return RONDO_OK;
  }
  void enter(int index, void* stream) {
    device = index;
    device_before = current_device();
    set_device(index);
    stream_before = exchange_stream_id(index, tree_stream_id(index, static_cast<rondo_stream*>(stream)));
    changed = true;
  }
  ~Environment() {
    if (token) foreign_leave(adapter, token);
    if (!changed) return;
    try {
      (void)exchange_stream_id(device, stream_before);
    } catch (...) {  // it was there before
    }
    set_device_unchecked(device_before);
  }
};

// The exception that is set, kept for who called the tree.
rondo_status keep_failure(Host* host) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (value && trace) (void)PyException_SetTraceback(value, trace);
  std::string text = "an exception without a text";
  PyObject* shown = value ? PyObject_Str(value) : nullptr;
  const char* utf8 = shown ? PyUnicode_AsUTF8(shown) : nullptr;
  if (utf8) text = utf8;
  PyErr_Clear();
  Py_XDECREF(shown);
  std::string kind = value ? Py_TYPE(value)->tp_name : "error";
  Py_XDECREF(type);
  Py_XDECREF(trace);
  Py_XSETREF(host->failure, value);
  bool memory = value && PyErr_GivenExceptionMatches(value, PyExc_MemoryError);
  memory = memory || kind == "torch.OutOfMemoryError" || kind == "OutOfMemoryError";
  return fail(memory ? RONDO_CODE_OUT_OF_MEMORY : RONDO_CODE_KERNEL_FAILED, kind + ": " + text);
}

rondo_status take_results(Host* host, PyObject* result, void** outputs, uint32_t count) {
  PyObject* sequence = PySequence_Fast(result, "a compiled function returns a list or a tuple of its outputs");
  if (!sequence) return keep_failure(host);
  if (PySequence_Fast_GET_SIZE(sequence) != static_cast<Py_ssize_t>(count)) {
    Py_XSETREF(host->surplus, sequence);
    return fail(RONDO_CODE_INVALID_ARGUMENT, "the function returned another number of outputs than was expected");
  }
  for (uint32_t i = 0; i < count; i++) outputs[i] = Py_NewRef(PySequence_Fast_GET_ITEM(sequence, i));
  Py_DECREF(sequence);
  return RONDO_OK;
}

rondo_status call_model(Host* host, const Model* model, void** inputs, uint32_t input_count, void** outputs,
                        uint32_t output_count) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(input_count));
  if (!list) {
    host_release(host, inputs, input_count);
    return keep_failure(host);
  }
  for (uint32_t i = 0; i < input_count; i++) {
    auto* input = static_cast<PyObject*>(std::exchange(inputs[i], nullptr));
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), input ? input : Py_NewRef(Py_None));
  }
  PyObject* result = PyObject_CallOneArg(model->callable, list);
  (void)PyList_SetSlice(list, 0, PyList_GET_SIZE(list), nullptr);
  Py_DECREF(list);
  if (!result) return keep_failure(host);
  rondo_status status = take_results(host, result, outputs, output_count);
  Py_DECREF(result);
  return status;
}

// ------------------------------------------------------------------------------------------------- random numbers

void note_generator(PyObject* noted, at::Generator generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  auto state = pybind11::reinterpret_steal<pybind11::object>(THPVariable_Wrap(at::Tensor(generator.get_state())));
  auto of = pybind11::reinterpret_steal<pybind11::object>(THPGenerator_Wrap(generator));
  if (!state || !of || PyList_Append(noted, pybind11::make_tuple(of, state).ptr())) throw pybind11::error_already_set();
}

// The states of the host's generator and the device's, which the model's next run in this call finds again.
void note_random(Host* host) {
  if (!host->random) {
    host->random = PyList_New(0);
    if (!host->random) throw pybind11::error_already_set();
    note_generator(host->random, at::detail::getDefaultCPUGenerator());
    try {
      note_generator(host->random, at::globalContext().defaultGenerator(host->where));
    } catch (const c10::Error&) {  // another package's device may have none
    }
  }
}

// Those that a model is given.
void note_random_of(Host* host, void* const* inputs, uint32_t count) {
  for (uint32_t i = 0; i < count && host->random; i++) {
    auto* input = static_cast<PyObject*>(inputs[i]);
    if (input && THPGenerator_Check(input)) note_generator(host->random, reinterpret_cast<THPGenerator*>(input)->cdata);
  }
}

// A warm-up before a recording, or a recording that failed, has drawn numbers that the call draws again.
void restore_random(Host* host) {
  for (Py_ssize_t i = 0; host->random && i < PyList_GET_SIZE(host->random); i++) {
    PyObject* pair = PyList_GET_ITEM(host->random, i);
    try {
      at::Generator generator = reinterpret_cast<THPGenerator*>(PyTuple_GET_ITEM(pair, 0))->cdata;
      std::lock_guard<std::mutex> lock(generator.mutex());
      generator.set_state(THPVariable_Unpack(PyTuple_GET_ITEM(pair, 1)));
    } catch (...) {
      TORCH_WARN("rondo: a generator's state could not be brought back after a run whose numbers nobody has seen");
    }
  }
}

// -------------------------------------------------------------------------------------------------------- the run

rondo_status host_run(void* user, const rondo_tree_run_context* context, void** inputs, uint32_t input_count,
                      void** outputs, uint32_t output_count) {
  Host* host = host_of(user);
  const auto* model = static_cast<const Model*>(context->model);
  const Model* running_before = host->running;
  bool pool_before = host->in_pool;
  for (uint32_t i = 0; i < output_count; i++) outputs[i] = nullptr;
  rondo_status status = RONDO_OK;
  try {
    host->poison(host->out_before);
    Environment environment;
    bool direct = context->phase == RONDO_TREE_DIRECT;
    // Others may come into the tree while a model runs outside of it.
    bool leaves = direct && !pool_before && host->lock && host->lock->mine();
    if (direct && !pool_before) restore_random(host);
    if (context->phase == RONDO_TREE_WARMUP) note_random_of(host, inputs, input_count);
    rondo_status ran = direct ? RONDO_OK : environment.enter(host, context->stream);
    host->in_pool = pool_before || !direct;
    host->running = model;
    if (leaves) host->lock->release();
    if (!ran) ran = call_model(host, model, inputs, input_count, outputs, output_count);
    if (leaves) {
      PyObject* failure = std::exchange(host->failure, nullptr);
      PyObject* surplus = std::exchange(host->surplus, nullptr);
      host->lock->acquire();
      Py_XSETREF(host->failure, failure);
      Py_XSETREF(host->surplus, surplus);
    }
    status = ran;
  } catch (...) {
    status = status_of_exception();
  }
  host->in_pool = pool_before;
  // Those of the run are asked for until the next call: whoever keeps an output asks whose it is.
  host->running = running_before ? running_before : model;
  host->made = outputs;
  host->made_count = output_count;
  host_release(host, inputs, input_count);
  if (status) host_release(host, outputs, output_count);
  return status;
}

rondo_status host_enter(void* user, rondo_tree_phase phase, void* stream) {
  Host* host = host_of(user);
  try {
    // From here on the allocator has what is alive: who ends a storage frees its block.
    host->forget_outputs();
    // One call both warms up and records on the simple path: its numbers are those of the replay.
    restore_random(host);
    note_random(host);
    return RONDO_OK;
  } catch (...) {
    return status_of_exception();
  }
}

void host_leave(void*, rondo_tree_phase) {}

// -------------------------------------------------------------------------------------------------------- memory

// A tensor like this one, strides and all, so that its copy is a copy of its bytes.
at::Tensor make_like(const at::Tensor& like, rondo_stream* stream, int device, uint64_t bytes) {
  void* pointer = nullptr;
  if (bytes) check(rondo_memory_allocate_on(stream, bytes, &pointer));
  c10::DataPtr data(pointer, pointer, deleter_of(device), like.device());
  c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, std::move(data),
                                                             device_allocator(), true));
  at::Tensor made = at::detail::make_tensor_base<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), like.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), 0);
  return made;
}

rondo_status wrapped(const at::Tensor& tensor, void** out_tensor) {
  PyObject* object = THPVariable_Wrap(tensor);
  if (!object) {
    PyErr_Clear();
    return fail(RONDO_CODE_OUT_OF_MEMORY, "a tensor object could not be made");
  }
  *out_tensor = object;
  return RONDO_OK;
}

rondo_status host_make_input(void* user, void* like, void* stream, void** out_tensor) {
  Host* host = host_of(user);
  try {
    const at::Tensor* tensor = tensor_of(like);
    rondo_tensor_facts facts{};
    rondo_status status = host_describe(user, like, &facts);
    if (status) return status;
    if (!tensor || facts.place != RONDO_TENSOR_DEVICE) return fail(RONDO_CODE_UNSUPPORTED, "an input is not on the device");
    return wrapped(make_like(*tensor, static_cast<rondo_stream*>(stream), host->device, facts.bytes), out_tensor);
  } catch (...) {
    return status_of_exception();
  }
}

rondo_status host_own(void* user, void* stream, void* object, void** out_tensor) {
  Host* host = host_of(user);
  try {
    const at::Tensor* tensor = tensor_of(object);
    rondo_tensor_facts facts{};
    rondo_status status = host_describe(user, object, &facts);
    if (status) return status;
    if (!tensor || facts.place == RONDO_TENSOR_NONE || facts.place == RONDO_TENSOR_OTHER) {
      *out_tensor = host_retain(user, object);
      return RONDO_OK;
    }
    if (facts.place == RONDO_TENSOR_HOST) return wrapped(tensor->detach().clone(), out_tensor);
    at::Tensor copy = make_like(*tensor, static_cast<rondo_stream*>(stream), host->device, facts.bytes);
    if (facts.bytes)
      check(rondo_stream_copy(static_cast<rondo_stream*>(stream), copy.storage().mutable_data(),
                              reinterpret_cast<const void*>(facts.pointer), facts.bytes, RONDO_COPY_DEVICE_TO_DEVICE));
    return wrapped(copy, out_tensor);
  } catch (...) {
    return status_of_exception();
  }
}

// -------------------------------------------------------------------------------------------------------- leases

void host_adopt(void* user, void* object, rondo_tree_lease* lease, uint64_t epoch) {
  Host* host = host_of(user);
  const at::Tensor* tensor = tensor_of(object);
  if (!tensor) return;
  c10::intrusive_ptr<c10::StorageImpl> storage = tensor->storage().getWeakStorageImpl().lock();
  c10::DataPtr& data = storage->_mutable_data_ptr_no_checks();
  void* pointer = data.get();
  c10::Device where = data.device();
  (void)data.release_context();  // the lease frees the block
  Claim* claim = claim_storage(storage, pointer, where, host->ledger, lease, epoch);
  claim->origin = host->origin_of(object);
  claim->version = tensor->unsafeGetTensorImpl()->version_counter();
  claim->link();
}

rondo_status host_evacuate(void* user, void* stream, void* of, uint64_t pointer, uint64_t bytes) {
  Host* host = host_of(user);
  auto* claim = static_cast<Claim*>(of);
  try {
    auto storage = claim->storage.lock();
    if (!storage || claim_of(storage.get()) != claim) return fail(RONDO_CODE_NOT_FOUND, "the output has ended meanwhile");
    void* memory = nullptr;
    check(rondo_memory_allocate_on(static_cast<rondo_stream*>(stream), bytes, &memory));
    c10::DataPtr& data = storage->_mutable_data_ptr_no_checks();
    c10::DataPtr moved(memory, memory, deleter_of(host->device), data.device());
    check(rondo_stream_copy(static_cast<rondo_stream*>(stream), memory, reinterpret_cast<const void*>(pointer), bytes,
                            RONDO_COPY_DEVICE_TO_DEVICE));
    claim->held.store(false, std::memory_order_release);  // the tree forgets it
    data = std::move(moved);
    return RONDO_OK;
  } catch (...) {
    return status_of_exception();
  }
}

int64_t host_generation(void*) { return tree_generation(); }

void host_destroy(void* user) { delete host_of(user); }

}  // namespace

std::shared_ptr<const Origin> Host::origin_of(const void* tensor) const {
  if (!running) return nullptr;
  for (uint32_t i = 0; i < made_count; i++) {
    if (made && made[i] == tensor && i < running->origins.size()) return running->origins[i];
  }
  return running->origin;
}

Host::Host(c10::Device of, PyObject* given)
    : where(of), device(of.index()), adapter(Py_XNewRef(given)), ledger(std::make_shared<Ledger>()) {}

Host::~Host() {
  Py_XDECREF(adapter);
  Py_XDECREF(failure);
  Py_XDECREF(surplus);
  Py_XDECREF(random);
}

namespace {
// Autograd compares the counts: a forward that saved them is told by its backward, where it would get other numbers.
void host_overwritten(void*, void* const* objects, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const at::Tensor* tensor = tensor_of(objects[i]);
    if (tensor && !tensor->is_inference()) tensor->unsafeGetTensorImpl()->bump_version();
  }
}
}  // namespace

rondo_tensor_host Host::table() {
  rondo_tensor_host all{};
  all.struct_size = sizeof all;
  all.user = this;
  all.facts = host_facts;
  all.check = host_check;
  all.describe = host_describe;
  all.run = host_run;
  all.retain = host_retain;
  all.release = host_release;
  all.make_input = host_make_input;
  all.keep = host_keep;
  all.drop = host_drop;
  all.adopt = host_adopt;
  all.make_outputs = host_make_outputs;
  all.own = host_own;
  all.evacuate = host_evacuate;
  all.enter = host_enter;
  all.leave = host_leave;
  all.generation = host_generation;
  all.destroy = host_destroy;
  all.overwritten = host_overwritten;
  if (adapter) make_foreign(&all);
  return all;
}

}  // namespace rondo_torch
