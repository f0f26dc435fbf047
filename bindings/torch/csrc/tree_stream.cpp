// SPDX-License-Identifier: Apache-2.0
#include "tree_stream.hpp"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rondo_torch {
namespace {

struct Streams {
  std::mutex mutex;
  std::unordered_map<rondo_stream*, StreamId> known;
  std::vector<StreamId> idle;  // of trees that are gone
};

std::array<Streams, kMaxDevices>& streams() {
  static auto* all = new std::array<Streams, kMaxDevices>;
  return *all;
}

rondo_status create_on(int index, void** out_stream) {
  try {
    Streams& of = streams()[static_cast<size_t>(index)];
    StreamId id = -1;
    {
      std::lock_guard<std::mutex> lock(of.mutex);
      if (!of.idle.empty()) {
        id = of.idle.back();
        of.idle.pop_back();
      }
    }
    if (id < 0) id = new_stream_id(index);
    rondo_stream* stream = stream_of(index, id);
    rondo_stream_retain(stream);
    std::lock_guard<std::mutex> lock(of.mutex);
    of.known[stream] = id;
    *out_stream = stream;
    return RONDO_OK;
  } catch (const std::exception& error) {
    return rondo_status_make(RONDO_CODE_INTERNAL, RONDO_LAYER_TREE, error.what());
  }
}

// The table's user is the native one's: the device is in the function.
template <int kIndex>
rondo_status create_stream(void*, void** out_stream) {
  return create_on(kIndex, out_stream);
}

using Create = rondo_status (*)(void*, void**);
template <size_t... kIndices>
constexpr std::array<Create, sizeof...(kIndices)> make_creators(std::index_sequence<kIndices...>) {
  return {&create_stream<static_cast<int>(kIndices)>...};
}
constexpr auto kCreators = make_creators(std::make_index_sequence<kMaxDevices>());

std::atomic<int64_t> g_invocations{0};
PyObject *g_tracker = nullptr, *g_marks = nullptr;
PyObject *g_generation_name = nullptr, *g_counter_name = nullptr;

// Of a class; what it has itself is in its dictionary, and is found there in a tenth of the time: the class changes at every
// call, so that the interpreter's own cache of it never serves.
RONDO_HOT int64_t number_of(PyObject* owner, PyObject* name) {
  PyObject* itself = PyType_Check(owner) ? reinterpret_cast<PyTypeObject*>(owner)->tp_dict : nullptr;
  PyObject* value = itself ? Py_XNewRef(PyDict_GetItemWithError(itself, name)) : nullptr;
  if (!value && !PyErr_Occurred()) value = PyObject_GetAttr(owner, name);
  long long number = value ? PyLong_AsLongLong(value) : 0;
  Py_XDECREF(value);
  if (PyErr_Occurred()) PyErr_Clear();
  return number;
}

}  // namespace

rondo_graph_ops tree_operations(int index) {
  rondo_graph_ops ops{};
  ops.struct_size = sizeof ops;
  check(rondo_graph_ops_native(device(index), &ops));
  ops.create_stream = kCreators[static_cast<size_t>(index)];
  return ops;
}

StreamId tree_stream_id(int index, rondo_stream* stream) {
  Streams& of = streams()[static_cast<size_t>(index)];
  std::lock_guard<std::mutex> lock(of.mutex);
  auto found = of.known.find(stream);
  TORCH_CHECK(found != of.known.end(), "rondo: a tree runs on a stream that it has not made");
  return found->second;
}

void return_tree_stream(int index, rondo_stream* stream) {
  Streams& of = streams()[static_cast<size_t>(index)];
  std::lock_guard<std::mutex> lock(of.mutex);
  auto found = of.known.find(stream);
  if (found == of.known.end()) return;
  of.idle.push_back(found->second);
  of.known.erase(found);
}

// Of the class of marks, which seldom changes: its version says whether it has.
RONDO_HOT int64_t marks_now() {
#ifdef Py_TPFLAGS_VALID_VERSION_TAG
  static int64_t known = 0;
  static unsigned int version = 0;
  auto* type = reinterpret_cast<PyTypeObject*>(g_marks);
  bool valid = PyType_Check(g_marks) && PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG);
  if (valid && version && type->tp_version_tag == version) return known;
  PyObject* value = PyObject_GetAttr(g_marks, g_counter_name);  // gives it a version
  if (!value) PyErr_Clear();
  Py_XDECREF(value);
  valid = PyType_Check(g_marks) && PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG);
  version = valid ? type->tp_version_tag : 0;
  known = number_of(g_marks, g_counter_name);
  return known;
#else
  return number_of(g_marks, g_counter_name);
#endif
}

RONDO_HOT int64_t tree_generation() {
  if (!g_marks) return 0;
  int64_t marks = marks_now();
  // Both only grow, and so their sum is another number after either has.
  return marks ? marks : number_of(g_tracker, g_generation_name) + g_invocations.load(std::memory_order_relaxed);
}

void begin_invocation() noexcept { g_invocations.fetch_add(1, std::memory_order_relaxed); }

void set_generation_sources(PyObject* tracker, PyObject* marks) {
  if (!g_generation_name) {
    g_generation_name = PyUnicode_InternFromString("generation");
    g_counter_name = PyUnicode_InternFromString("mark_step_counter");
  }
  Py_XSETREF(g_tracker, Py_NewRef(tracker));
  Py_XSETREF(g_marks, Py_NewRef(marks));
}

}  // namespace rondo_torch
