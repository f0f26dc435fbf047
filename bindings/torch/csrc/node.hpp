// SPDX-License-Identifier: Apache-2.0
//
// A call of PyTorch's on a stream of Rondo's. The node is the call's context: it says what to do with the words, and owns
// what it needs but no memory of tensors, so that a replay sees new contents, and new addresses. A node that a capture
// recorded lives as long as the graph; another until it has run.
#pragma once
#include <rondo/rondo.h>

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

// Enqueues on the current stream of the device, or records where a capture does.
void enqueue(int device, std::unique_ptr<Node> node, const std::vector<rondo_argument>& arguments, const char* name);
// The same for a plain function, which needs no node; its words are what it gets.
void enqueue(int device, rondo_kernel kernel, const std::vector<rondo_argument>& arguments, const char* name);

// What the capture has recorded so far, for the graph to keep; and why it was spoilt, if somebody has noted that.
std::shared_ptr<NodeList> take_nodes(uint64_t capture_id, std::string* refusal = nullptr);
// The capture has taken over calls of another graph: their nodes live as long as what it becomes.
void keep_in_capture(uint64_t capture_id, std::shared_ptr<NodeList> nodes);
// Why the capture is about to be spoilt. The first reason stays.
void note_refusal(uint64_t capture_id, const std::string& why);

// Why the last node that failed did: statuses of kernels carry a number only. Of this thread, empties it.
std::string take_failure();
void set_failure(const char* text);
}  // namespace rondo_torch
