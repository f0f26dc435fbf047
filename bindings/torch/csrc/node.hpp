// SPDX-License-Identifier: Apache-2.0
//
// A call of PyTorch's on a stream of Rondo's. The node is the call's context: it says what to do with the words, and owns
// what it needs but no memory of tensors, so that a replay sees new contents, and new addresses. A node that a capture
// recorded lives as long as the graph; another until it has run.
#pragma once
#include <c10/util/ArrayRef.h>
#include <rondo/rondo.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace rondo_torch {

struct Node {
  virtual ~Node() = default;
  // 0, or a reason. Throws nothing.
  virtual int32_t run(const uint64_t* words) noexcept = 0;
};
using NodeList = std::vector<std::unique_ptr<Node>>;
using Arguments = c10::ArrayRef<rondo_argument>;

// A node that calls ATen: below every mode of the thread that it happens to run on, and what is thrown is kept.
struct AtenNode : Node {
  int32_t run(const uint64_t* words) noexcept final;
  virtual void work(const uint64_t* words) = 0;
  // For the text of a failure.
  virtual const char* title() const = 0;
  std::exception_ptr thrown;
};

// Enqueues on the current stream of the device, or records where a capture does. More arguments than a call has reach the
// node all the same, by calls of their own before it.
void enqueue(int device, std::unique_ptr<Node> node, Arguments arguments, const char* name);
// The same for a plain function, which needs no node; its words are what it gets.
void enqueue(int device, rondo_kernel kernel, Arguments arguments, const char* name);

// Whether what is enqueued now has run when the call returns: the device runs calls inline, and no capture records them.
bool runs_at_once(int device);
// For such a device: runs the node, which stays the caller's, and throws what it threw.
void run_now(int device, AtenNode& node, Arguments arguments, const char* name);

// What the capture has recorded so far, for the graph to keep; and why it was spoilt, if somebody has noted that.
std::shared_ptr<NodeList> take_nodes(uint64_t capture_id, std::string* refusal = nullptr);
// The capture has taken over calls of another graph: their nodes live as long as what it becomes.
void keep_in_capture(uint64_t capture_id, std::shared_ptr<NodeList> nodes);
// Why the capture is about to be spoilt. The first reason stays.
void note_refusal(uint64_t capture_id, const std::string& why);

// Why the last node that failed did: statuses of kernels carry a number only. Of this process, empties it.
std::string take_failure();
void set_failure(const char* text);
}  // namespace rondo_torch
