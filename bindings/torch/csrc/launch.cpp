// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include <dlfcn.h>
#include <torch/csrc/autograd/python_variable.h>

#include <c10/util/bit_cast.h>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "node.hpp"
#include "ops.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

using Packed = int (*)(const int64_t* words);

struct Entry {
  Packed function;
  std::string name;
};
// By the Python object of the kernel, which lives as long as its module does, and that is for ever. Under the GIL.
std::unordered_map<PyObject*, Entry>& entries() {
  static auto* all = new std::unordered_map<PyObject*, Entry>;
  return *all;
}

int32_t run_packed(const void* context, const uint64_t* words) {
  auto function = reinterpret_cast<Packed>(const_cast<void*>(context));
  int failed = function(reinterpret_cast<const int64_t*>(words));
  if (failed) set_failure("a kernel that Inductor generated has thrown an exception (a division by zero, say)");
  return failed;
}

// Whole storages: a kernel's loops may begin anywhere in them.
rondo_argument word_of(PyObject* argument) {
  if (THPVariable_Check(argument)) {
    const at::Tensor& tensor = THPVariable_Unpack(argument);
    if (!tensor.numel()) return {0, 0, RONDO_ACCESS_VALUE, 0};
    if (tensor.device().type() == kType) return argument_of(tensor, RONDO_ACCESS_BOTH);
    TORCH_CHECK(tensor.device().is_cpu(), "rondo: a generated kernel got a tensor of device ", tensor.device());
    return {reinterpret_cast<uint64_t>(tensor.data_ptr()), 0, RONDO_ACCESS_VALUE, 0};
  }
  if (PyFloat_Check(argument)) return {c10::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(argument)), 0, RONDO_ACCESS_VALUE, 0};
  long long number = PyLong_AsLongLong(argument);
  if (number == -1 && PyErr_Occurred()) throw python_error();
  return {static_cast<uint64_t>(number), 0, RONDO_ACCESS_VALUE, 0};
}

// More words than a call has: the words are kept in memory of the call's own. Their addresses cannot be bound anew, and
// each is checked all the same: as a call without work.
struct WideNode final : Node {
  Packed function = nullptr;
  std::vector<int64_t> words;
  int32_t run(const uint64_t*) noexcept override { return run_packed(reinterpret_cast<const void*>(function), reinterpret_cast<const uint64_t*>(words.data())); }
};

}  // namespace

PyObject* resolve_kernel(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  TORCH_CHECK(count == 3, "resolve_kernel(kernel, file, symbol)");
  const char* file = PyUnicode_AsUTF8(arguments[1]);
  const char* symbol = PyUnicode_AsUTF8(arguments[2]);
  if (!file || !symbol) throw python_error();
  void* library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
  if (!library) library = dlopen(file, RTLD_NOW);
  TORCH_CHECK(library, "rondo: ", dlerror());
  auto function = reinterpret_cast<Packed>(dlsym(library, symbol));
  TORCH_CHECK(function, "rondo: ", file, " has no ", symbol);
  Py_INCREF(arguments[0]);
  entries()[arguments[0]] = {function, "inductor kernel"};
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyObject* launch_kernel(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  TORCH_CHECK(count >= 2, "launch_kernel(kernel, device_index, *arguments)");
  auto found = entries().find(arguments[0]);
  if (found == entries().end()) {
    PyErr_SetString(PyExc_LookupError, "the kernel has not been resolved");
    return nullptr;
  }
  int device = static_cast<int>(PyLong_AsLong(arguments[1]));
  thread_local std::vector<rondo_argument> words;
  words.clear();
  for (Py_ssize_t i = 2; i < count; i++) words.push_back(word_of(arguments[i]));
  if (words.size() <= RONDO_ARGUMENT_MAX) {
    rondo_kernel kernel = {run_packed, reinterpret_cast<const void*>(found->second.function)};
    enqueue(device, kernel, words, found->second.name.c_str());
  } else {
    auto node = std::make_unique<WideNode>();
    node->function = found->second.function;
    for (const rondo_argument& word : words) node->words.push_back(static_cast<int64_t>(word.word));
    enqueue(device, std::move(node), words, found->second.name.c_str());
  }
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

}  // namespace rondo_torch
