// SPDX-License-Identifier: Apache-2.0
//
// The callable that stands for a compiled function: called with the list of its inputs, which it empties, it goes straight
// to the tree. Its recordings are of the tree of the thread that calls it.
#include "tree_function.hpp"

#include <structmember.h>
#include <torch/csrc/Exceptions.h>

#include <atomic>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "node.hpp"
#include "tree_foreign.hpp"
#include "tree_manager.hpp"
#include "tree_stream.hpp"

namespace rondo_torch {
namespace {

struct Binding {
  uint64_t context = 0;
  std::shared_ptr<Manager> manager;
  uint32_t id = 0;
};

std::atomic<uint64_t> g_next_function{1};

// What the function is, the same for all its trees.
struct Spec {
  const uint64_t number = g_next_function.fetch_add(1);
  PyObject* callable = nullptr;
  PyObject* constants = nullptr;  // a tuple of tensors
  PyObject* adapter = nullptr;    // of another package's device
  std::string name, skip;
  std::vector<std::string> traces;
  std::vector<uint32_t> static_inputs, mutated_inputs;
  c10::Device where{kType, 0};
  rondo_tree_mode mode = RONDO_TREE_INFERENCE;
  bool has_skip = false, simple = false, synchronize = false;
  TreeChoices choices;
  Py_ssize_t inputs = -1, outputs = -1;  // -1: not known yet
};

struct TreeFunction {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* attributes;
  PyObject* weak_references;
  Spec* spec;
  std::vector<Binding>* bindings;
  size_t last;
};

// All of them, under the interpreter's lock: a reset takes their trees away, whoever keeps them.
std::unordered_set<TreeFunction*>& all_functions() {
  static auto* all = new std::unordered_set<TreeFunction*>;
  return *all;
}

PyObject* g_log_callback = nullptr;  // (level, text): writes PyTorch's logs, counts what is skipped

// False: the callback has raised.
[[gnu::cold]] bool write_lines() {
  if (!g_log_callback) {
    (void)take_tree_lines();
    return true;
  }
  for (const auto& [level, text] : take_tree_lines()) {
    PyObject* result = PyObject_CallFunction(g_log_callback, "is", static_cast<int>(level), text.c_str());
    if (!result) return false;
    Py_DECREF(result);
  }
  return true;
}

// ------------------------------------------------------------------------------------------------------- binding

void release_model(void* of) {
  auto* model = static_cast<Model*>(of);
  Py_XDECREF(model->callable);
  delete model;
}

Model* make_model(const Spec& spec) {
  auto* model = new Model;
  model->callable = Py_NewRef(spec.callable);
  model->name = spec.name;
  bool gradient = spec.mode == RONDO_TREE_BACKWARD;
  model->origin = std::make_shared<Origin>(Origin{spec.name, "", gradient});
  for (const std::string& trace : spec.traces) {
    model->origins.push_back(std::make_shared<Origin>(Origin{spec.name, trace, gradient}));
  }
  return model;
}

uint32_t add_function(Manager& manager, const Spec& spec) {
  std::vector<void*> constants;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(spec.constants); i++) constants.push_back(PyTuple_GET_ITEM(spec.constants, i));
  Model* model = make_model(spec);
  rondo_tree_function function{};
  function.struct_size = sizeof function;
  function.mode = spec.mode;
  function.name = spec.name.c_str();
  function.model = model;
  function.release_model = release_model;
  function.input_count = static_cast<uint32_t>(spec.inputs);
  function.output_count = static_cast<uint32_t>(spec.outputs);
  function.static_inputs = spec.static_inputs.data();
  function.static_count = static_cast<uint32_t>(spec.static_inputs.size());
  function.mutated_inputs = spec.mutated_inputs.data();
  function.mutated_count = static_cast<uint32_t>(spec.mutated_inputs.size());
  function.constants = constants.data();
  function.constant_count = static_cast<uint32_t>(constants.size());
  function.skip = spec.has_skip ? spec.skip.c_str() : nullptr;
  function.simple = spec.simple ? 1 : 0;
  uint32_t id = 0;
  Inside inside(manager);
  rondo_status status = rondo_tree_add_function(manager.tree, &function, &id);
  if (status) release_model(model);
  check(status);
  return id;
}

void unbind(TreeFunction* self) {
  std::vector<Binding> all;
  all.swap(*self->bindings);
  self->last = 0;
  for (Binding& binding : all) {
    binding.manager->remove_function(binding.id);
    if (binding.manager->calls) binding.manager->kept = binding.manager;
  }
}

// Null: the thread is inside the tree, which takes no function now.
[[gnu::cold]] Binding* bind(TreeFunction* self, uint64_t context) {
  for (size_t i = 0; i < self->bindings->size(); i++) {
    if ((*self->bindings)[i].context != context) continue;
    self->last = i;
    return &(*self->bindings)[i];
  }
  Binding binding;
  binding.context = context;
  binding.manager = manager_for(self->spec->where, self->spec->adapter, context, self->spec->choices);
  if (binding.manager->lock.mine()) return nullptr;
  binding.id = add_function(*binding.manager, *self->spec);
  self->bindings->push_back(std::move(binding));
  self->last = self->bindings->size() - 1;
  return &self->bindings->back();
}

// ---------------------------------------------------------------------------------------------------------- call

// The references of the list's items move to `items`; the list is empty then, with the room that it had.
RONDO_HOT void take_inputs(PyObject* list, void** items, Py_ssize_t count) {
  TORCH_CHECK(PyList_GET_SIZE(list) == count, "the list of inputs has changed while a call waited for its turn");
  if (!count) return;
  std::memcpy(items, reinterpret_cast<PyListObject*>(list)->ob_item, static_cast<size_t>(count) * sizeof *items);
  Py_SET_SIZE(list, 0);
}

[[gnu::cold]] PyObject* raise_failure(Host* host, rondo_status status) {
  if (host->failure) {
    rondo_status_release(status);
    PyObject* value = std::exchange(host->failure, nullptr);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value)), value);
    Py_DECREF(value);
    return nullptr;
  }
  rondo_code code = rondo_status_code(status);
  std::string why = take_failure();
  std::string text = std::exchange(host->stale, {});
  if (code == RONDO_CODE_STALE) {
    if (text.empty()) text = rondo_status_message(status);
    rondo_status_release(status);
  } else {
    text = "rondo: " + text_of(status);
  }
  if (!why.empty()) text += "\n  " + why;
  PyErr_SetString(PyExc_RuntimeError, text.c_str());
  return nullptr;
}

// A plain call; of the first the number of outputs is learnt.
[[gnu::cold]] PyObject* call_directly(TreeFunction* self, PyObject* list) {
  PyObject* result = PyObject_CallOneArg(self->spec->callable, list);
  if (!result) return nullptr;
  (void)PyList_SetSlice(list, 0, PyList_GET_SIZE(list), nullptr);
  PyObject* outputs = PySequence_List(result);
  Py_DECREF(result);
  if (outputs && self->spec->outputs < 0) self->spec->outputs = PyList_GET_SIZE(outputs);
  return outputs;
}

void release_all(void** items, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) Py_CLEAR(reinterpret_cast<PyObject*&>(items[i]));
}

// The caller's own capture takes the kernels themselves: it has no use for a graph's memory.
RONDO_HOT bool in_capture_of_user(Manager& manager, rondo_stream* current) {
  return current && !manager.lock.mine() && capturing(current);
}

constexpr Py_ssize_t kFew = 64;

struct Room {
  explicit Room(Py_ssize_t count) : many(count > kFew ? static_cast<size_t>(count) : 0) {}
  void** data() { return many.empty() ? few : many.data(); }
  void* few[kFew];
  std::vector<void*> many;
};

// `current`: the device's current stream; null with another package's.
RONDO_HOT PyObject* run(TreeFunction* self, Binding& binding, PyObject* list, rondo_stream* current) {
  Py_ssize_t input_count = PyList_GET_SIZE(list), output_count = self->spec->outputs;
  Manager& manager = *binding.manager;
  Calling calling(manager);
  Host* host = manager.host;
  Room inputs(input_count), outputs(output_count);
  uint32_t id = binding.id;
  PyObject* results = nullptr;
  rondo_status status = RONDO_OK;
  // A call may let go of its function.
  auto kept = pybind11::reinterpret_borrow<pybind11::object>(reinterpret_cast<PyObject*>(self));
  {
    Inside inside(manager);
    if (inside.outer()) {
      host->sweep();
      host->running = nullptr;
      host->out_before = host->out.size();
      host->taker = self->spec->name.c_str();
      host->taker_number = self->spec->number;
    }
    PyObject* foreign = self->spec->adapter ? foreign_stream(self->spec->adapter) : nullptr;
    void* stream = foreign ? static_cast<void*>(foreign) : current;
    take_inputs(list, inputs.data(), input_count);
    status = rondo_tree_run(manager.tree, id, stream, inputs.data(), static_cast<uint32_t>(input_count), outputs.data(),
                            static_cast<uint32_t>(output_count));
    if (!status && self->spec->synchronize) {
      if (foreign) status = foreign_synchronize(self->spec->adapter, foreign);
      else if (!capturing(current)) status = rondo_stream_synchronize(current);
      if (status) release_all(outputs.data(), output_count);
    }
    Py_XDECREF(foreign);
    if (inside.outer()) {
      host->poison(host->out_before);
      host->out_before = 0;
      host->taker = "?";
      host->taker_number = 0;
      if (host->random) Py_CLEAR(host->random);
    }
    if (!status) {
      if (host->failure) Py_CLEAR(host->failure);
      results = PyList_New(output_count);
      for (Py_ssize_t i = 0; i < output_count; i++) {
        auto* output = static_cast<PyObject*>(outputs.data()[i]);
        if (!output) output = Py_NewRef(Py_None);
        if (results) PyList_SET_ITEM(results, i, output);
        else Py_DECREF(output);
      }
    } else if (host->surplus) {
      rondo_status_release(status);
      PyObject* surplus = std::exchange(host->surplus, nullptr);
      results = PySequence_List(surplus);
      Py_DECREF(surplus);
      if (results) self->spec->outputs = PyList_GET_SIZE(results);
    } else {
      results = raise_failure(host, status);
    }
  }
  if (results && self->spec->outputs != output_count) unbind(self);  // it is bound anew, with as many outputs as it has
  return results;
}

// The results, or null where writing the lines has raised.
[[gnu::cold]] PyObject* after_lines(PyObject* results) {
  // An exception that is already on its way stays the one that is raised.
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  bool good = write_lines();
  if (!results) {
    if (!good) PyErr_Clear();
    PyErr_Restore(type, value, trace);
  } else if (!good) {
    Py_CLEAR(results);
  }
  return results;
}

RONDO_HOT PyObject* call_unguarded(PyObject* of, PyObject* const* arguments, size_t flags, PyObject* names) {
  auto* self = reinterpret_cast<TreeFunction*>(of);
  if (PyVectorcall_NARGS(flags) != 1 || (names && PyTuple_GET_SIZE(names)) || !PyList_Check(arguments[0])) {
    PyErr_SetString(PyExc_TypeError, "a compiled function is called with the list of its inputs, which it empties");
    return nullptr;
  }
  PyObject* list = arguments[0];
  if (self->spec->outputs < 0) return call_directly(self, list);
  if (self->spec->inputs < 0) self->spec->inputs = PyList_GET_SIZE(list);
  if (PyList_GET_SIZE(list) != self->spec->inputs) {
    PyErr_Format(PyExc_TypeError, "'%s' was first called with %zd inputs, and now with %zd", self->spec->name.c_str(),
                 self->spec->inputs, PyList_GET_SIZE(list));
    return nullptr;
  }
  uint64_t context = current_context();
  Binding* binding = self->last < self->bindings->size() ? &(*self->bindings)[self->last] : nullptr;
  if (!binding || binding->context != context) {
    binding = bind(self, context);
    if (!binding) return call_directly(self, list);
  }
  rondo_stream* current = self->spec->adapter ? nullptr : current_stream(binding->manager->device);
  if (in_capture_of_user(*binding->manager, current)) return call_directly(self, list);
  PyObject* results = run(self, *binding, list, current);
  return tree_lines_waiting() ? after_lines(results) : results;
}

// What is being thrown, as Python's exception.
[[gnu::cold]] PyObject* raise_thrown() {
  HANDLE_TH_ERRORS
  throw;
  END_HANDLE_TH_ERRORS
}

// Without the macro's handler of warnings, which nothing needs here: a model has its own.
RONDO_HOT PyObject* call(PyObject* of, PyObject* const* arguments, size_t flags, PyObject* names) {
  try {
    return call_unguarded(of, arguments, flags, names);
  } catch (...) {
    return raise_thrown();
  }
}

// ---------------------------------------------------------------------------------------------------------- type

std::vector<uint32_t> indices(const pybind11::handle& sequence) {
  std::vector<uint32_t> all;
  for (const auto& index : sequence) all.push_back(index.cast<uint32_t>());
  return all;
}

TreeChoices choices_of(const pybind11::dict& given, bool* synchronize) {
  TreeChoices choices;
  std::pair<const char*, uint32_t TreeChoices::*> members[] = {
      {"record_after", &TreeChoices::record_after},       {"always_warm_up", &TreeChoices::always_warm_up},
      {"rerecord_limit", &TreeChoices::rerecord_limit},   {"size_limit", &TreeChoices::size_limit},
      {"size_warning", &TreeChoices::size_warning},       {"recording_limit", &TreeChoices::recording_limit},
      {"loop_limit", &TreeChoices::loop_limit},           {"seal_after", &TreeChoices::seal_after},
      {"cost_samples", &TreeChoices::cost_samples},       {"strict", &TreeChoices::strict},
      {"check_pool", &TreeChoices::check_pool},           {"conflict", &TreeChoices::conflict}};
  for (const auto& item : given) {
    std::string name = pybind11::str(item.first);
    bool known = name == "byte_limit";
    if (known) choices.byte_limit = item.second.cast<uint64_t>();
    if (name == "synchronize") {
      *synchronize = item.second.cast<int>() != 0;
      known = true;
    }
    for (const auto& [text, member] : members) {
      if (name != text) continue;
      choices.*member = item.second.cast<uint32_t>();
      known = true;
    }
    TORCH_CHECK_VALUE(known, "a tree has no option '", name, "'");
  }
  return choices;
}

void finalize(PyObject* of) {
  auto* self = reinterpret_cast<TreeFunction*>(of);
  if (self->bindings) {
    try {
      unbind(self);
    } catch (const std::exception& error) {
      TORCH_WARN("rondo: ", error.what());
    }
  }
}

int traverse(PyObject* of, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<TreeFunction*>(of);
  if (self->spec) {
    Py_VISIT(self->spec->callable);
    Py_VISIT(self->spec->constants);
    Py_VISIT(self->spec->adapter);
  }
  Py_VISIT(self->attributes);
  return 0;
}

int clear(PyObject* of) {
  auto* self = reinterpret_cast<TreeFunction*>(of);
  finalize(of);
  if (self->spec) Py_CLEAR(self->spec->constants);
  Py_CLEAR(self->attributes);
  return 0;
}

void deallocate(PyObject* of) {
  auto* self = reinterpret_cast<TreeFunction*>(of);
  PyObject_GC_UnTrack(of);
  all_functions().erase(self);
  if (self->weak_references) PyObject_ClearWeakRefs(of);
  finalize(of);
  if (self->spec) {
    Py_CLEAR(self->spec->callable);
    Py_CLEAR(self->spec->constants);
    Py_CLEAR(self->spec->adapter);
  }
  Py_CLEAR(self->attributes);
  delete self->spec;
  delete self->bindings;
  PyTypeObject* type = Py_TYPE(of);
  type->tp_free(of);
  Py_DECREF(type);
}

PyObject* represent(PyObject* of) {
  auto* self = reinterpret_cast<TreeFunction*>(of);
  return PyUnicode_FromFormat("<rondo_torch TreeFunction '%s' on %s>", self->spec->name.c_str(),
                              self->spec->where.str().c_str());
}

PyMemberDef g_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(TreeFunction, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(TreeFunction, attributes), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TreeFunction, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef g_properties[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                              {nullptr, nullptr, nullptr, nullptr, nullptr}};

template <class Function>
void* slot_of(Function function) {
  return reinterpret_cast<void*>(function);
}

PyType_Slot g_slots[] = {{Py_tp_dealloc, slot_of(deallocate)},  {Py_tp_traverse, slot_of(traverse)},
                         {Py_tp_clear, slot_of(clear)},         {Py_tp_call, slot_of(PyVectorcall_Call)},
                         {Py_tp_repr, slot_of(represent)},      {Py_tp_members, g_members},
                         {Py_tp_getset, g_properties},          {0, nullptr}};
PyType_Spec g_spec = {"rondo_torch._C.TreeFunction", sizeof(TreeFunction), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      g_slots};
PyTypeObject* g_type = nullptr;

pybind11::object make_function(pybind11::object callable, std::string name, int device, int mode, pybind11::object statics,
                               pybind11::object mutated, pybind11::object constants, pybind11::object outputs,
                               pybind11::object traces, pybind11::object skip, bool simple, pybind11::dict options,
                               pybind11::object adapter) {
  if (adapter.is_none()) (void)rondo_torch::device(device);
  auto spec = std::make_unique<Spec>();
  spec->name = std::move(name);
  spec->where = c10::Device(kType, static_cast<c10::DeviceIndex>(device));
  if (!adapter.is_none()) {
    spec->where = pybind11::cast<c10::Device>(adapter.attr("device"));
    spec->adapter = adapter.release().ptr();
  }
  spec->mode = static_cast<rondo_tree_mode>(mode);
  spec->static_inputs = indices(statics);
  spec->mutated_inputs = indices(mutated);
  if (!outputs.is_none()) spec->outputs = outputs.cast<Py_ssize_t>();
  if (!traces.is_none())
    for (const auto& trace : traces) spec->traces.push_back(trace.is_none() ? "" : trace.cast<std::string>());
  spec->has_skip = !skip.is_none();
  if (spec->has_skip) spec->skip = skip.cast<std::string>();
  spec->simple = simple;
  spec->choices = choices_of(options, &spec->synchronize);
  auto* self = PyObject_GC_New(TreeFunction, g_type);
  if (!self) throw pybind11::error_already_set();
  self->vectorcall = call;
  self->attributes = self->weak_references = nullptr;
  self->last = 0;
  self->spec = spec.release();
  self->bindings = new std::vector<Binding>;
  self->spec->callable = callable.release().ptr();
  self->spec->constants = pybind11::tuple(constants).release().ptr();
  all_functions().insert(self);
  PyObject_GC_Track(self);
  return pybind11::reinterpret_steal<pybind11::object>(reinterpret_cast<PyObject*>(self));
}

// -------------------------------------------------------------------------------------------------------- Python

int32_t append(void* user, const char* data, size_t size) {
  static_cast<std::string*>(user)->append(data, size);
  return 0;
}

std::string report(Manager& manager, bool json) {
  std::string text;
  Inside inside(manager);
  manager.host->sweep();
  check(rondo_tree_report(manager.tree, json, append, &text));
  return text;
}

pybind11::dict info(Manager& manager) {
  Inside inside(manager);
  manager.host->sweep();
  rondo_tree_info now{};
  now.struct_size = sizeof now;
  check(rondo_tree_get_info(manager.tree, &now));
  pybind11::dict all;
  static const char* const states[] = {"nothing", "warming", "recording", "executing"};
  all["device"] = manager.device;
  all["context"] = manager.context;
  all["state"] = states[now.state];
  all["functions"] = now.functions;
  all["recordings"] = now.recordings;
  all["roots"] = now.roots;
  all["depth"] = now.depth;
  all["directs"] = now.directs;
  all["warmups"] = now.warmups;
  all["records"] = now.records;
  all["replays"] = now.replays;
  all["sealed"] = now.sealed;
  all["checkpoints"] = now.checkpoints;
  all["steps"] = now.steps;
  all["carried"] = now.carried;
  all["evacuated"] = now.evacuated;
  all["live"] = now.live;
  all["pool_reserved"] = now.pool_reserved;
  all["pool_allocated"] = now.pool_allocated;
  all["pool"] = std::make_pair(now.pool.automatic, now.pool.user);
  return all;
}

pybind11::list functions(Manager& manager) {
  Inside inside(manager);
  manager.host->sweep();
  pybind11::list all;
  rondo_tree_info now{};
  now.struct_size = sizeof now;
  check(rondo_tree_get_info(manager.tree, &now));
  uint32_t left = now.functions;
  for (uint32_t id = 0; left && id < 1u << 20; id++) {
    rondo_tree_function_info one{};
    one.struct_size = sizeof one;
    rondo_status status = rondo_tree_get_function_info(manager.tree, id, &one);
    if (status) {
      rondo_status_release(status);
      continue;
    }
    left--;
    pybind11::dict entry, reasons;
    for (int i = 0; i < RONDO_TREE_REASON_COUNT; i++)
      if (one.reasons[i]) reasons[rondo_tree_reason_name(i)] = one.reasons[i];
    entry["id"] = id;
    entry["name"] = std::string(one.name);
    entry["mode"] = static_cast<int>(one.mode);
    entry["recordings"] = one.recordings;
    entry["roots"] = one.roots;
    entry["sizes"] = one.sizes;
    entry["stopped"] = rondo_tree_reason_name(one.stopped);
    entry["directs"] = one.directs;
    entry["warmups"] = one.warmups;
    entry["records"] = one.records;
    entry["replays"] = one.replays;
    entry["copies"] = one.copies;
    entry["reasons"] = reasons;
    all.append(entry);
  }
  return all;
}

void reset(Manager& manager) {
  TORCH_CHECK(!manager.lock.mine(), "rondo: trees cannot be reset from inside one of their calls");
  Inside inside(manager);
  manager.host->sweep();
  check(rondo_tree_reset(manager.tree));
}

// Functions that somebody keeps get trees anew when they are called again; a tree in the middle of a call goes after it.
void reset_all() {
  std::vector<TreeFunction*> all(all_functions().begin(), all_functions().end());
  for (TreeFunction* self : all) Py_INCREF(self);
  for (TreeFunction* self : all) unbind(self);
  for (TreeFunction* self : all) Py_DECREF(self);
}

}  // namespace

void bind_trees(pybind11::module& m) {
  g_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_spec));
  if (!g_type) throw pybind11::error_already_set();
  m.attr("TreeFunction") = pybind11::handle(reinterpret_cast<PyObject*>(g_type));
  namespace py = pybind11;
  m.def("tree_function", &make_function, py::arg("callable"), py::kw_only(), py::arg("name"), py::arg("device"), py::arg("mode"),
        py::arg("static"), py::arg("mutated"), py::arg("constants"), py::arg("outputs"), py::arg("traces"), py::arg("skip"),
        py::arg("simple"), py::arg("options"), py::arg("adapter") = py::none());
  py::class_<Manager, std::shared_ptr<Manager>>(m, "TreeManager")
      .def_readonly("device", &Manager::device)
      .def_property_readonly("type", [](Manager& manager) { return c10::DeviceTypeName(manager.where.type(), true); })
      .def_readonly("context", &Manager::context)
      .def("__eq__", [](Manager& one, py::object other) {
        return py::isinstance<Manager>(other) && other.cast<Manager*>() == &one;
      })
      .def("__hash__", [](Manager& one) { return reinterpret_cast<uintptr_t>(&one); })
      .def("info", &info)
      .def("functions", &functions)
      .def("report", &report, py::arg("json") = false)
      .def("reset", &reset)
      .def("mark_step", [](Manager& manager) { rondo_tree_mark_step(manager.tree); })
      .def("mark_warmup_incomplete", [](Manager& manager) { rondo_tree_mark_warmup_incomplete(manager.tree); })
      .def("set_to_running_backward", [](Manager& manager) { rondo_tree_set_running_backward(manager.tree); });
  m.def("tree_reset", &reset_all);
  m.def("tree_context", &current_context);
  m.def("tree_managers", &managers, py::arg("device") = -1, py::arg("context") = 0);
  m.def("tree_forget_after_fork", &forget_managers_after_fork);
  m.def("tree_sources", [](py::object tracker, py::object marks) { set_generation_sources(tracker.ptr(), marks.ptr()); });
  m.def("begin_invocation", &begin_invocation);
  m.def("tree_log", [](py::object callback) {
    PyObject* one = callback.is_none() ? nullptr : callback.release().ptr();
    Py_XSETREF(g_log_callback, one);
  });
}

}  // namespace rondo_torch
