// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <rondo/rondo.h>

#include "tree_host.hpp"

namespace rondo_torch {

// The operations of another package's device, by an object of Python's (rondo_torch/foreign.py).
rondo_graph_ops foreign_operations(PyObject* adapter);
// Changes the table of a host into one whose storages are watched.
void make_foreign(rondo_tensor_host* table);
// The caller's stream: a new reference to the same object each time. Throws.
PyObject* foreign_stream(PyObject* adapter);
rondo_status foreign_synchronize(PyObject* adapter, PyObject* stream);
// The device and the stream become current until leave.
rondo_status foreign_enter(PyObject* adapter, void* stream, PyObject** out_token);
void foreign_leave(PyObject* adapter, PyObject* token);

}  // namespace rondo_torch
