// SPDX-License-Identifier: Apache-2.0
//
// Kernels that Inductor has generated: `int kernel(const int64_t *words)`, which no exception leaves. A word is a
// pointer, an integer, or a double by its bits; the kernel's file says which, one letter a word.
#pragma once
#include <Python.h>

namespace rondo_torch {
// The type of what `resolve_kernel` gives, added to the module. -1 with a Python error.
int add_kernel_type(PyObject* module);
// resolve_kernel(file, symbol, name): the packed entry of a file that Inductor has compiled.
PyObject* resolve_kernel(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
// launch_kernel(kernel, device_index, *arguments): enqueues on that device's current stream.
PyObject* launch_kernel(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
}  // namespace rondo_torch
