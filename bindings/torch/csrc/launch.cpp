// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include <ATen/EmptyTensor.h>
#include <dlfcn.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "node.hpp"
#include "ops.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

using Packed = int (*)(const int64_t* words);

// What the packed entry answers: rondo_torch/inductor/scheduling.py writes it.
enum { kFine = 0, kThrew = 1, kDividedByZero = 2 };

// Never freed: graphs have its address as their calls' context, and the file that it is from is never unloaded.
struct Entry {
  Packed function;
  std::string kinds;  // a letter a word: r and b are pointers (read; read and written), i an integer, f a number
  std::string name;
};

struct Kernel {
  PyObject_HEAD
  const Entry* entry;
};

PyTypeObject* g_kernel_type = nullptr;

const Entry* entry_of(Packed function, const char* kinds, const char* name) {
  static std::mutex mutex;
  static auto* all = new std::map<std::pair<Packed, std::string>, std::unique_ptr<Entry>>;
  std::lock_guard<std::mutex> lock(mutex);
  auto& place = (*all)[{function, name}];
  if (!place) place = std::make_unique<Entry>(Entry{function, kinds, name});
  return place.get();
}

RONDO_HOT int32_t run_packed(const void* context, const uint64_t* words) {
  const Entry* entry = static_cast<const Entry*>(context);
  int failed = entry->function(reinterpret_cast<const int64_t*>(words));
  if (!failed) return 0;
  try {
    bool zero = failed == kDividedByZero;
    const char* why = zero ? "ZeroDivisionError: an integer was divided by zero" : "it has thrown an exception";
    set_failure((entry->name + ": " + why).c_str());
  } catch (...) {
  }
  return failed;
}

// A call whose words do not all fit, or that needs more than words: what it holds lives as long as the call's graph, or
// until it has run. Words of tensors are stored by calls before it, so that each is an argument of a call: checked,
// counted, and bound anew like any other.
struct Words {
  explicit Words(const Entry* which) : entry(which) {}
  const Entry* entry;
  std::vector<uint64_t> all;
  std::vector<std::unique_ptr<char[]>> values;  // of tensors of the host
};

struct PartNode final : Node {
  PartNode(std::shared_ptr<Words> whole, size_t from, size_t size, bool final_part)
      : words_(std::move(whole)), from_(from), size_(size), final_(final_part) {}
  int32_t run(const uint64_t* words) noexcept override {
    std::memcpy(words_->all.data() + from_, words, size_ * sizeof *words);
    return final_ ? run_packed(words_->entry, words_->all.data()) : 0;
  }

 private:
  std::shared_ptr<Words> words_;
  size_t from_, size_;
  bool final_;
};

struct Gathered {
  std::vector<rondo_argument> words;
  std::vector<std::unique_ptr<char[]>> values;
};

// A kernel reads a tensor of the host when it runs, and that may be later, or at each replay: it gets the value that
// the tensor has now, as ATen's own operators do with such a number.
uint64_t value_of(const at::Tensor& tensor, Gathered& gathered) {
  size_t bytes = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
  auto value = std::make_unique<char[]>(bytes + 64);  // vectors may be loaded beyond the end
  std::memcpy(value.get(), tensor.const_data_ptr(), bytes);
  gathered.values.push_back(std::move(value));
  return reinterpret_cast<uint64_t>(gathered.values.back().get());
}

rondo_argument pointer_of(PyObject* argument, char kind, int device, const Entry& entry, Gathered& gathered) {
  TORCH_CHECK_TYPE(THPVariable_Check(argument), "rondo: ", entry.name, " got ", Py_TYPE(argument)->tp_name,
                   " for a tensor");
  const at::Tensor& tensor = THPVariable_Unpack(argument);
  if (tensor.device().type() == kType) {
    TORCH_CHECK(tensor.device().index() == device, "rondo: ", entry.name, " is for rondo:", device,
                " and got a tensor of ", tensor.device());
    if (!tensor.numel()) return {reinterpret_cast<uint64_t>(tensor.const_data_ptr()), 0, RONDO_ACCESS_VALUE, 0};
    return argument_of(tensor, kind == 'r' ? RONDO_ACCESS_READ : RONDO_ACCESS_BOTH);
  }
  TORCH_CHECK(tensor.device().is_cpu() && kind == 'r', "rondo: ", entry.name, " is for rondo:", device,
              kind == 'r' ? " and got a tensor of " : " and would write to a tensor of ", tensor.device());
  return {tensor.numel() ? value_of(tensor, gathered) : 0, 0, RONDO_ACCESS_VALUE, 0};
}

rondo_argument word_of(PyObject* argument, char kind, int device, const Entry& entry, Gathered& gathered) {
  if (kind == 'r' || kind == 'b') return pointer_of(argument, kind, device, entry, gathered);
  if (kind == 'f') {
    double number = PyFloat_AsDouble(argument);
    if (number == -1.0 && PyErr_Occurred()) throw python_error();
    uint64_t word;
    std::memcpy(&word, &number, sizeof word);
    return {word, 0, RONDO_ACCESS_VALUE, 0};
  }
  long long number = PyLong_AsLongLong(argument);
  if (number == -1 && PyErr_Occurred()) throw python_error();
  return {static_cast<uint64_t>(number), 0, RONDO_ACCESS_VALUE, 0};
}

void launch_in_parts(int device, const Entry* entry, Gathered gathered) {
  auto whole = std::make_shared<Words>(entry);
  whole->all.resize(gathered.words.size());
  whole->values = std::move(gathered.values);
  size_t count = gathered.words.size(), from = 0;
  do {
    size_t size = std::min<size_t>(count - from, RONDO_ARGUMENT_MAX);
    std::vector<rondo_argument> part(gathered.words.begin() + from, gathered.words.begin() + from + size);
    bool final_part = from + size == count;
    std::string name = final_part ? entry->name : entry->name + " (arguments from " + std::to_string(from) + ")";
    enqueue(device, std::make_unique<PartNode>(whole, from, size, final_part), part, name.c_str());
    from += size;
  } while (from < count);
}

const char* utf8(PyObject* object) {
  const char* text = PyUnicode_AsUTF8(object);
  if (!text) throw python_error();
  return text;
}

const Entry& of(PyObject* kernel) { return *reinterpret_cast<Kernel*>(kernel)->entry; }
PyObject* kernel_name(PyObject* self, void*) { return PyUnicode_FromString(of(self).name.c_str()); }
PyObject* kernel_kinds(PyObject* self, void*) { return PyUnicode_FromString(of(self).kinds.c_str()); }
PyObject* kernel_repr(PyObject* self) { return PyUnicode_FromFormat("<rondo kernel %s>", of(self).name.c_str()); }

void kernel_free(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

}  // namespace

int add_kernel_type(PyObject* module) {
  static PyGetSetDef members[] = {{"name", kernel_name, nullptr, "What errors and dumps call it.", nullptr},
                                  {"kinds", kernel_kinds, nullptr, "A letter an argument: r, b, i, f.", nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(kernel_free)},
                                {Py_tp_repr, reinterpret_cast<void*>(kernel_repr)},
                                {Py_tp_getset, members},
                                {0, nullptr}};
  static PyType_Spec spec = {"rondo_torch._C.Kernel", sizeof(Kernel), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) return -1;
  g_kernel_type = reinterpret_cast<PyTypeObject*>(type);
  return PyModule_AddObjectRef(module, "Kernel", type);
}

PyObject* resolve_kernel(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  TORCH_CHECK_TYPE(count == 3, "resolve_kernel(file, symbol, name) takes 3 arguments, got ", count);
  const char* file = utf8(arguments[0]);
  std::string symbol = utf8(arguments[1]);
  const char* name = utf8(arguments[2]);
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  TORCH_CHECK(library, "rondo: ", name, " cannot be loaded: ", dlerror());
  auto function = reinterpret_cast<Packed>(dlsym(library, symbol.c_str()));
  auto kinds = static_cast<const char*>(dlsym(library, (symbol + "_kinds").c_str()));
  if (!function || !kinds) {
    dlclose(library);
    TORCH_CHECK_VALUE(false, "rondo: ", file, " has no ", symbol, ": it was not generated for this device");
  }
  const Entry* entry = entry_of(function, kinds, name);
  auto* kernel = PyObject_New(Kernel, g_kernel_type);
  if (!kernel) return nullptr;
  kernel->entry = entry;
  return reinterpret_cast<PyObject*>(kernel);
  END_HANDLE_TH_ERRORS
}

PyObject* launch_kernel(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  TORCH_CHECK_TYPE(count >= 2 && Py_TYPE(arguments[0]) == g_kernel_type,
                   "launch_kernel(kernel, device_index, *arguments): the kernel is what resolve_kernel gave");
  const Entry* entry = reinterpret_cast<Kernel*>(arguments[0])->entry;
  int device = static_cast<int>(PyLong_AsLong(arguments[1]));
  if (device == -1 && PyErr_Occurred()) return nullptr;
  TORCH_CHECK_TYPE(static_cast<size_t>(count - 2) == entry->kinds.size(), "rondo: ", entry->name, " takes ",
                   entry->kinds.size(), " arguments, got ", count - 2);
  Gathered gathered;
  gathered.words.reserve(entry->kinds.size());
  for (size_t i = 0; i < entry->kinds.size(); i++) {
    gathered.words.push_back(word_of(arguments[2 + i], entry->kinds[i], device, *entry, gathered));
  }
  if (gathered.words.size() <= RONDO_ARGUMENT_MAX && gathered.values.empty()) {
    enqueue(device, rondo_kernel{run_packed, entry}, gathered.words, entry->name.c_str());
  } else {
    launch_in_parts(device, entry, std::move(gathered));
  }
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

}  // namespace rondo_torch
