// SPDX-License-Identifier: Apache-2.0
//
// What a tree needs besides tensors: the graph operations of a device, with streams that PyTorch knows by number, and the
// step in which the program is.
#pragma once
#include <rondo/rondo.h>
#include <torch/csrc/python_headers.h>

#include "runtime.hpp"

namespace rondo_torch {

// rondo_graph_ops_native, but its streams have numbers. Throws.
rondo_graph_ops tree_operations(int device);
// The number of a stream that a tree of the device has made. Throws.
StreamId tree_stream_id(int device, rondo_stream* stream);
// The tree of that stream is gone.
void return_tree_stream(int device, rondo_stream* stream);

// Below 0 when steps are marked, else counting calls of compiled code.
int64_t tree_generation();
// A call of compiled code that does not go through torch.compile, which counts the others.
void begin_invocation() noexcept;
// The classes that count: GenerationTracker.generation, MarkStepBox.mark_step_counter.
void set_generation_sources(PyObject* tracker, PyObject* marks);

}  // namespace rondo_torch
