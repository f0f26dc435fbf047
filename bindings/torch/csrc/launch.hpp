// SPDX-License-Identifier: Apache-2.0
//
// Kernels that Inductor has generated: `int kernel(const int64_t *words)`, which no exception leaves. A word is a
// pointer, an integer, or a double by its bits.
#pragma once
#include <Python.h>

namespace rondo_torch {
// launch(kernel, device_index, *arguments): a fast call; kernel is what `resolve` knows.
PyObject* launch_kernel(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
// resolve(kernel, file, symbol): finds the packed entry of the module that the kernel comes from.
PyObject* resolve_kernel(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
}  // namespace rondo_torch
