// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Python.h>
#include <pybind11/pybind11.h>

#include <string>

namespace rondo_torch {

// The exception that Python is handling: the object, and the traceback that tells how far it has come. Whoever is told
// that a block has ended learns by it whether the block was left in the middle.
class HandledException {
 public:
  HandledException() {
    if (!Py_IsInitialized()) return;
    pybind11::gil_scoped_acquire lock;
    PyObject* type = nullptr;
    PyErr_GetExcInfo(&type, &value_, &traceback_);
    Py_XDECREF(type);
    drop_none(&value_);
    drop_none(&traceback_);
  }
  ~HandledException() {
    if ((!value_ && !traceback_) || !Py_IsInitialized()) return;
    pybind11::gil_scoped_acquire lock;
    Py_XDECREF(value_);
    Py_XDECREF(traceback_);
  }
  HandledException(const HandledException&) = delete;
  HandledException& operator=(const HandledException&) = delete;

  bool same_as(const HandledException& other) const { return value_ == other.value_ && traceback_ == other.traceback_; }
  bool any() const { return value_ != nullptr; }
  // "ValueError: no such thing"
  std::string text() const {
    pybind11::gil_scoped_acquire lock;
    std::string text = Py_TYPE(value_)->tp_name;
    PyObject* message = PyObject_Str(value_);
    const char* bytes = message ? PyUnicode_AsUTF8(message) : nullptr;
    if (bytes && *bytes) text += std::string(": ") + bytes;
    PyErr_Clear();
    Py_XDECREF(message);
    return text;
  }

 private:
  static void drop_none(PyObject** object) {
    if (*object == Py_None) Py_CLEAR(*object);
  }
  PyObject *value_ = nullptr, *traceback_ = nullptr;
};

}  // namespace rondo_torch
