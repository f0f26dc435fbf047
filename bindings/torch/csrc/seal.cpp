// SPDX-License-Identifier: Apache-2.0
//
// Sealed callables. torch.compile looks its guards up, keeps books about streams and wraps each call; a sealed one looks
// at the arguments' metadata and the thread's modes itself, and calls what was compiled. Whatever is not as it was when it
// was sealed goes to torch.compile, which decides anew: a sealed callable never guesses.
#include "seal.hpp"

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/python_variable.h>
#include <structmember.h>
#include <torch/csrc/utils/pybind.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tree_stream.hpp"

namespace py = pybind11;

namespace rondo_torch {
namespace {

// Why a call went to torch.compile; the names are Python's (rondo_torch/sealing.py).
enum Reason { kArguments, kTensor, kAliasing, kMode, kHooks, kGuards, kRetired, kReasons };

struct TensorCheck {
  PyTypeObject* type = nullptr;
  c10::DispatchKeySet keys;
  caffe2::TypeMeta dtype;
  std::optional<c10::Device> device;
  std::vector<int64_t> sizes, strides;
  bool requires_grad = false;

  bool holds(PyObject* object) const {
    if (Py_TYPE(object) != type) return false;
    const at::Tensor& tensor = THPVariable_Unpack(object);
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    return impl->key_set() == keys && impl->dtype() == dtype && tensor.device() == *device &&
           impl->requires_grad() == requires_grad && impl->sizes() == c10::IntArrayRef(sizes) &&
           impl->strides() == c10::IntArrayRef(strides);
  }
};

// One leaf of the arguments: a tensor, or something that has to be the same again.
struct Argument {
  bool tensor = false;
  TensorCheck check;
  py::object same;
  // Of a tuple or list: its elements, each a leaf or one of these.
  PyTypeObject* sequence = nullptr;
  std::vector<Argument> elements;
};

struct Local {  // how a guard's local variable comes about
  py::object name;
  enum { kArgument, kRest, kKeywords, kObject, kCell } kind;
  Py_ssize_t index = 0;  // of an argument; of the rest the first one
  py::object object;
  std::vector<std::pair<py::object, Py_ssize_t>> named;  // of keywords: name, index
};

struct Identity {  // what a name has to stand for
  py::object names, key, object;
};

struct Function {  // what a program can put in place of what was compiled
  py::object function, code, defaults, keyword_defaults;

  static bool same(PyObject* now, const py::object& then) { return (now ? now : Py_None) == then.ptr(); }
  bool holds() const {
    PyObject* object = function.ptr();
    return PyFunction_GET_CODE(object) == code.ptr() && same(PyFunction_GET_DEFAULTS(object), defaults) &&
           same(PyFunction_GET_KW_DEFAULTS(object), keyword_defaults);
  }
};

struct Overlap {  // of two tensors on one storage
  size_t first, second;
  int64_t apart;  // bytes from where the one begins to where the other does
  bool operator==(const Overlap& other) const {
    return first == other.first && second == other.second && apart == other.apart;
  }
};

struct Sealed {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* weakrefs;
  struct State* state;
};

struct State {
  py::object body, fallback, self;  // self: none, or the first argument of the body
  std::vector<Argument> arguments;   // those by name are the last
  std::vector<py::object> keywords;  // their names
  std::vector<size_t> aliases;  // for each tensor leaf the first leaf that is the same object
  bool writes = false;  // it changes tensors that it is given
  std::vector<Overlap> overlaps;
  bool own = false;             // the checks here are enough; else the guards are asked
  py::object guards, mode;      // root.check, GlobalStateGuard.check
  std::vector<Local> locals;
  std::vector<py::object> empty;  // dicts that must be so: hooks
  std::vector<Identity> identities;
  Function function;
  py::dict device_module;
  py::object device_name, device_value;
  c10::impl::LocalDispatchKeySet keys;
  bool inference = false, retired = false;
  uint64_t calls = 0, left[kReasons] = {};

  State() : keys(c10::impl::tls_local_dispatch_key_set()) {}
};

bool arguments_hold(const std::vector<Argument>& wanted, PyObject* const* given, Reason& reason,
                    std::vector<PyObject*>& tensors) {
  for (size_t i = 0; i < wanted.size(); i++) {
    const Argument& argument = wanted[i];
    if (argument.tensor) {
      reason = kTensor;
      if (!argument.check.holds(given[i])) return false;
      tensors.push_back(given[i]);
    } else if (argument.sequence) {
      reason = kArguments;
      if (Py_TYPE(given[i]) != argument.sequence) return false;
      if (PySequence_Fast_GET_SIZE(given[i]) != static_cast<Py_ssize_t>(argument.elements.size())) return false;
      if (!arguments_hold(argument.elements, PySequence_Fast_ITEMS(given[i]), reason, tensors)) return false;
    } else if (given[i] != argument.same.ptr()) {
      reason = kArguments;
      if (Py_TYPE(given[i]) != Py_TYPE(argument.same.ptr())) return false;
      if (PyFloat_CheckExact(given[i])) {  // by its bits: 0.0 and -0.0 are equal, and not the same factor
        double now = PyFloat_AS_DOUBLE(given[i]), then = PyFloat_AS_DOUBLE(argument.same.ptr());
        if (std::memcmp(&now, &then, sizeof now)) return false;
        continue;
      }
      int equal = PyObject_RichCompareBool(given[i], argument.same.ptr(), Py_EQ);
      if (equal < 0) PyErr_Clear();
      if (equal <= 0) return false;
    }
  }
  return true;
}

bool aliases_hold(const State& state, const std::vector<PyObject*>& tensors) {
  for (size_t i = 1; i < tensors.size(); i++) {
    size_t first = 0;
    while (tensors[first] != tensors[i]) first++;
    if (first != state.aliases[i]) return false;
  }
  return true;
}

std::pair<int64_t, int64_t> bytes_of(const c10::TensorImpl& tensor) {
  int64_t item = static_cast<int64_t>(tensor.itemsize()), last = 0;
  for (int64_t i = 0; i < tensor.dim(); i++) last += (tensor.size(i) - 1) * tensor.stride(i);
  int64_t first = tensor.storage_offset() * item;
  return {first, tensor.numel() ? first + (last + 1) * item : first};
}

std::vector<Overlap> overlaps_of(const std::vector<PyObject*>& tensors) {
  std::vector<Overlap> found;
  for (size_t i = 0; i < tensors.size(); i++) {
    const c10::TensorImpl& one = *THPVariable_Unpack(tensors[i]).unsafeGetTensorImpl();
    for (size_t k = 0; k < i; k++) {
      const c10::TensorImpl& other = *THPVariable_Unpack(tensors[k]).unsafeGetTensorImpl();
      if (one.unsafe_storage().unsafeGetStorageImpl() != other.unsafe_storage().unsafeGetStorageImpl()) continue;
      auto [first, end] = bytes_of(one);
      auto [begin, last] = bytes_of(other);
      if (tensors[i] != tensors[k] && first < last && begin < end) found.push_back({k, i, first - begin});
    }
  }
  return found;
}

// What torch.compile has made for separate tensors is wrong for some that overlap, if it writes to them, and its guards do
// not say so.
void check_overlaps(const State& state, const std::vector<PyObject*>& tensors) {
  if (!state.writes) return;
  for (const Overlap& now : overlaps_of(tensors)) {
    bool known = false;
    for (const Overlap& then : state.overlaps) known = known || now == then;
    TORCH_CHECK(known, "rondo_torch.seal: tensors ", now.first, " and ", now.second, " of the arguments overlap in memory, as "
                "they did not when it was sealed, and it changes tensors that it is given: what was compiled would give other "
                "numbers. Give it a clone of one, or seal the function with arguments that overlap in this way");
  }
}

// A call of a function of nothing that answers True or False. What it raises counts as False.
bool says_yes(PyObject* result) {
  if (!result) {
    PyErr_Clear();
    return false;
  }
  bool yes = result == Py_True;
  Py_DECREF(result);
  return yes;
}

bool modes_hold(const State& state) {
  const c10::impl::LocalDispatchKeySet now = c10::impl::tls_local_dispatch_key_set();
  if (now.included_ != state.keys.included_ || now.excluded_ != state.keys.excluded_) return false;
  if (c10::InferenceMode::is_enabled() != state.inference) return false;
  if (at::impl::PythonTorchFunctionTLS::stack_len() || c10::impl::TorchDispatchModeTLS::stack_len()) return false;
  if (PyDict_GetItem(state.device_module.ptr(), state.device_name.ptr()) != state.device_value.ptr()) return false;
  return says_yes(PyObject_CallNoArgs(state.mode.ptr()));
}

// `count`: of the arguments that have no name.
py::object local_value(const Local& local, PyObject* const* given, Py_ssize_t count) {
  switch (local.kind) {
    case Local::kArgument: return py::reinterpret_borrow<py::object>(given[local.index]);
    case Local::kRest: {
      py::tuple rest(static_cast<size_t>(count - local.index));
      for (Py_ssize_t i = local.index; i < count; i++) {
        rest[static_cast<size_t>(i - local.index)] = py::reinterpret_borrow<py::object>(given[i]);
      }
      return rest;
    }
    case Local::kKeywords: {
      py::dict named;
      for (const auto& [name, index] : local.named) named[name] = py::reinterpret_borrow<py::object>(given[index]);
      return named;
    }
    case Local::kCell: {
      PyObject* content = PyCell_GET(local.object.ptr());
      return content ? py::reinterpret_borrow<py::object>(content) : py::none();
    }
    default: return local.object;
  }
}

bool guards_hold(const State& state, PyObject* const* given, Py_ssize_t count) {
  py::dict locals;
  for (const Local& local : state.locals) {
    py::object value = local_value(local, given, count);
    if (PyDict_SetItem(locals.ptr(), local.name.ptr(), value.ptr())) throw py::error_already_set();
  }
  return says_yes(PyObject_CallOneArg(state.guards.ptr(), locals.ptr()));
}

// The values in the order of the sealed arguments; null where other ones are given. `room` is used where a call names them
// in another order.
PyObject* const* in_order(const State& state, PyObject* const* given, Py_ssize_t count, PyObject* names,
                          std::vector<PyObject*>& room) {
  Py_ssize_t wanted = static_cast<Py_ssize_t>(state.keywords.size()), named = names ? PyTuple_GET_SIZE(names) : 0;
  if (named != wanted || count + named != static_cast<Py_ssize_t>(state.arguments.size())) return nullptr;
  Py_ssize_t same = 0;
  while (same < named && PyTuple_GET_ITEM(names, same) == state.keywords[static_cast<size_t>(same)].ptr()) same++;
  if (same == named) return given;
  room.assign(given, given + count);
  for (const py::object& keyword : state.keywords) {
    Py_ssize_t i = 0;
    while (i < named && PyUnicode_Compare(PyTuple_GET_ITEM(names, i), keyword.ptr())) i++;
    if (i == named) return nullptr;
    room.push_back(given[count + i]);
  }
  return room.data();
}

bool all_holds(const State& state, PyObject* const* given, Py_ssize_t count, PyObject* names, Reason& reason) {
  reason = kRetired;
  if (state.retired) return false;
  reason = kHooks;
  for (const py::object& hooks : state.empty) {
    if (PyDict_GET_SIZE(hooks.ptr())) return false;
  }
  reason = kArguments;
  thread_local std::vector<PyObject*> tensors, room;
  given = in_order(state, given, count, names, room);
  if (!given) return false;
  tensors.clear();
  if (!arguments_hold(state.arguments, given, reason, tensors)) return false;
  reason = kAliasing;
  if (!aliases_hold(state, tensors)) return false;
  check_overlaps(state, tensors);
  reason = kMode;
  if (!modes_hold(state)) return false;
  reason = kGuards;
  if (!state.function.holds()) return false;
  for (const Identity& identity : state.identities) {
    if (PyDict_GetItem(identity.names.ptr(), identity.key.ptr()) != identity.object.ptr()) return false;
  }
  return state.own || guards_hold(state, given, count);
}

PyObject* sealed_call(PyObject* object, PyObject* const* given, size_t flags, PyObject* keywords) {
  State& state = *reinterpret_cast<Sealed*>(object)->state;
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  Reason reason = kArguments;
  bool holds = false;
  try {
    holds = all_holds(state, given, count, keywords, reason);
  } catch (py::error_already_set& error) {
    error.restore();
    PyErr_Clear();
    reason = kGuards;
  } catch (const c10::Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what_without_backtrace());
    return nullptr;
  }
  if (!holds) {
    state.left[reason]++;
    return PyObject_Vectorcall(state.fallback.ptr(), given, flags, keywords);
  }
  state.calls++;
  begin_invocation();
  if (!state.self) return PyObject_Vectorcall(state.body.ptr(), given, static_cast<size_t>(count), keywords);
  std::vector<PyObject*> all{state.self.ptr()};
  all.insert(all.end(), given, given + state.arguments.size());
  return PyObject_Vectorcall(state.body.ptr(), all.data(), static_cast<size_t>(count) + 1, keywords);
}

// ------------------------------------------------------------------------------------------------------------- making

Argument argument_of(py::handle given) {
  Argument argument;
  if (THPVariable_Check(given.ptr())) {
    const at::Tensor& tensor = THPVariable_Unpack(given.ptr());
    TORCH_CHECK(tensor.layout() == at::kStrided, "rondo_torch.seal: a tensor of layout ", tensor.layout(), " cannot be sealed");
    argument.tensor = true;
    argument.check.type = Py_TYPE(given.ptr());
    argument.check.keys = tensor.key_set();
    argument.check.dtype = tensor.dtype();
    argument.check.device = tensor.device();
    argument.check.sizes = tensor.sizes().vec();
    argument.check.strides = tensor.strides().vec();
    argument.check.requires_grad = tensor.requires_grad();
  } else if (PyTuple_CheckExact(given.ptr()) || PyList_CheckExact(given.ptr())) {
    argument.sequence = Py_TYPE(given.ptr());
    for (py::handle element : given) argument.elements.push_back(argument_of(element));
  } else {
    bool plain = given.is_none() || PyBool_Check(given.ptr()) || PyLong_CheckExact(given.ptr()) ||
                 PyFloat_CheckExact(given.ptr()) || PyUnicode_CheckExact(given.ptr());
    TORCH_CHECK(plain, "rondo_torch.seal: an argument of type ", Py_TYPE(given.ptr())->tp_name,
                " cannot be sealed: tensors, numbers, strings, None, and tuples and lists of them can");
    argument.same = py::reinterpret_borrow<py::object>(given);
  }
  return argument;
}

void tensors_of(const std::vector<Argument>& wanted, PyObject* const* given, std::vector<PyObject*>& out) {
  for (size_t i = 0; i < wanted.size(); i++) {
    if (wanted[i].tensor) out.push_back(given[i]);
    else if (wanted[i].sequence) tensors_of(wanted[i].elements, PySequence_Fast_ITEMS(given[i]), out);
  }
}

Local local_of(const py::tuple& described) {
  Local local;
  local.name = described[0];
  const std::string kind = described[1].cast<std::string>();
  local.kind = kind == "argument"   ? Local::kArgument
               : kind == "rest"     ? Local::kRest
               : kind == "keywords" ? Local::kKeywords
               : kind == "cell"     ? Local::kCell
                                    : Local::kObject;
  if (local.kind == Local::kKeywords) {
    for (py::handle entry : described[2]) {
      py::tuple parts = py::reinterpret_borrow<py::tuple>(entry);
      local.named.emplace_back(parts[0], parts[1].cast<Py_ssize_t>());
    }
  } else if (local.kind == Local::kArgument || local.kind == Local::kRest) {
    local.index = described[2].cast<Py_ssize_t>();
  } else {
    local.object = described[2];
  }
  return local;
}

PyTypeObject* sealed_type();

py::object make_sealed(const py::dict& what) {
  auto state = std::make_unique<State>();
  py::tuple examples = what["examples"];
  for (py::handle example : examples) state->arguments.push_back(argument_of(example));
  for (py::handle name : what["keywords"]) state->keywords.push_back(py::reinterpret_borrow<py::object>(name));
  std::vector<PyObject*> tensors;
  tensors_of(state->arguments, PySequence_Fast_ITEMS(examples.ptr()), tensors);
  for (PyObject* tensor : tensors) {
    size_t first = 0;
    while (tensors[first] != tensor) first++;
    state->aliases.push_back(first);
  }
  state->writes = what["writes"].cast<bool>();
  state->overlaps = overlaps_of(tensors);
  state->body = what["body"];
  state->fallback = what["fallback"];
  if (!what["self"].is_none()) state->self = what["self"];
  state->own = what["own"].cast<bool>();
  state->guards = what["guards"];
  state->mode = what["mode"];
  for (py::handle local : what["locals"]) state->locals.push_back(local_of(py::reinterpret_borrow<py::tuple>(local)));
  for (py::handle hooks : what["empty"]) state->empty.push_back(py::reinterpret_borrow<py::dict>(hooks));
  for (py::handle entry : what["identities"]) {
    py::tuple parts = py::reinterpret_borrow<py::tuple>(entry);
    state->identities.push_back({parts[0], parts[1], parts[2]});
  }
  py::object function = what["function"];
  TORCH_CHECK(PyFunction_Check(function.ptr()), "rondo_torch.seal: what was compiled is no function");
  state->function = {function, function.attr("__code__"), function.attr("__defaults__"), function.attr("__kwdefaults__")};
  state->device_module = what["device_module"];
  state->device_name = py::str("CURRENT_DEVICE");
  state->device_value = state->device_module["CURRENT_DEVICE"];
  state->inference = c10::InferenceMode::is_enabled();
  auto* sealed = PyObject_GC_New(Sealed, sealed_type());
  if (!sealed) throw py::error_already_set();
  sealed->call = sealed_call;
  sealed->weakrefs = nullptr;
  sealed->state = state.release();
  PyObject_GC_Track(sealed);
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(sealed));
}

State& state_of(py::handle sealed) {
  TORCH_CHECK(Py_TYPE(sealed.ptr()) == sealed_type(), "this is no sealed callable");
  return *reinterpret_cast<Sealed*>(sealed.ptr())->state;
}

// --------------------------------------------------------------------------------------------------------- the Python type

int sealed_traverse(PyObject* object, visitproc visit, void* arg) {
  State* state = reinterpret_cast<Sealed*>(object)->state;
  Py_VISIT(Py_TYPE(object));
  if (!state) return 0;
  Py_VISIT(state->body.ptr());
  Py_VISIT(state->fallback.ptr());
  Py_VISIT(state->self.ptr());
  Py_VISIT(state->guards.ptr());
  Py_VISIT(state->function.function.ptr());
  for (const Local& local : state->locals) Py_VISIT(local.object.ptr());
  return 0;
}

int sealed_clear(PyObject* object) {
  delete std::exchange(reinterpret_cast<Sealed*>(object)->state, nullptr);
  return 0;
}

void sealed_free(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  if (reinterpret_cast<Sealed*>(object)->weakrefs) PyObject_ClearWeakRefs(object);
  (void)sealed_clear(object);
  PyObject_GC_Del(object);
  Py_DECREF(type);
}

constexpr int kSizeMember = T_PYSSIZET, kReadOnly = READONLY;

PyMemberDef g_members[] = {
    {"__vectorcalloffset__", kSizeMember, offsetof(Sealed, call), kReadOnly, nullptr},
    {"__weaklistoffset__", kSizeMember, offsetof(Sealed, weakrefs), kReadOnly, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot g_slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_traverse, reinterpret_cast<void*>(sealed_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(sealed_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(sealed_free)},
    {Py_tp_members, g_members},
    {Py_tp_doc, const_cast<char*>("What torch.compile has made for one set of arguments: rondo_torch.seal().")},
    {0, nullptr},
};
PyType_Spec g_spec = {"rondo_torch._C.Sealed", sizeof(Sealed), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                          Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      g_slots};

PyTypeObject* sealed_type() {
  static auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_spec));
  if (!type) throw py::error_already_set();
  return type;
}

}  // namespace

void bind_seal(py::module& m) {
  m.attr("Sealed") = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(sealed_type()));
  m.def("make_sealed", &make_sealed);
  m.def("sealed_retire", [](py::handle sealed) { state_of(sealed).retired = true; });
  m.def("sealed_counts", [](py::handle sealed) {
    const State& state = state_of(sealed);
    py::tuple left(static_cast<size_t>(kReasons));
    for (size_t i = 0; i < kReasons; i++) left[i] = state.left[i];
    return py::make_tuple(state.calls, left, state.own);
  });
}

}  // namespace rondo_torch
