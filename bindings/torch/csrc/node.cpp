// SPDX-License-Identifier: Apache-2.0
#include "node.hpp"

#include <c10/util/Exception.h>

#include <mutex>
#include <string>
#include <unordered_map>

#include "runtime.hpp"

namespace rondo_torch {
namespace {

// Of captures in progress, by the capture's id.
struct Capture {
  std::shared_ptr<NodeList> nodes = std::make_shared<NodeList>();
  std::string refusal;
};
std::mutex g_mutex;
std::unordered_map<uint64_t, Capture> g_captures;
std::string g_failure;

int32_t run_kept(const void* context, const uint64_t* words) {
  return const_cast<Node*>(static_cast<const Node*>(context))->run(words);
}

int32_t run_once(const void* context, const uint64_t* words) {
  std::unique_ptr<Node> node(const_cast<Node*>(static_cast<const Node*>(context)));
  return node->run(words);
}

void launch(rondo_stream* stream, rondo_kernel kernel, const std::vector<rondo_argument>& arguments, const char* name) {
  rondo_call call = RONDO_CALL_INIT;
  call.kernel = kernel;
  call.arguments = arguments.data();
  call.argument_count = static_cast<uint32_t>(arguments.size());
  call.name = name;
  rondo_status status = rondo_stream_launch(stream, &call);
  if (!status) return;
  std::string why = take_failure();
  std::string text = text_of(status);
  TORCH_CHECK(false, "rondo: ", text, why.empty() ? "" : "\n  ", why);
}

// Runs nothing: it keeps the nodes of a graph that became part of another.
struct KeptNodes final : Node {
  explicit KeptNodes(std::shared_ptr<NodeList> list) : nodes(std::move(list)) {}
  int32_t run(const uint64_t*) noexcept override { return 0; }
  std::shared_ptr<NodeList> nodes;
};

}  // namespace

std::string take_failure() {
  std::lock_guard<std::mutex> lock(g_mutex);
  return std::exchange(g_failure, {});
}

void set_failure(const char* text) {
  std::lock_guard<std::mutex> lock(g_mutex);
  g_failure = text;
}

std::shared_ptr<NodeList> take_nodes(uint64_t capture_id, std::string* refusal) {
  std::lock_guard<std::mutex> lock(g_mutex);
  auto found = g_captures.find(capture_id);
  if (found == g_captures.end()) return nullptr;
  auto nodes = std::move(found->second.nodes);
  if (refusal) *refusal = std::move(found->second.refusal);
  g_captures.erase(found);
  return nodes;
}

void keep_in_capture(uint64_t capture_id, std::shared_ptr<NodeList> nodes) {
  if (!nodes) return;
  auto kept = std::make_unique<KeptNodes>(std::move(nodes));
  std::lock_guard<std::mutex> lock(g_mutex);
  g_captures[capture_id].nodes->push_back(std::move(kept));
}

void note_refusal(uint64_t capture_id, const std::string& why) {
  std::lock_guard<std::mutex> lock(g_mutex);
  std::string& known = g_captures[capture_id].refusal;
  if (known.empty()) known = why;
}

void enqueue(int device, std::unique_ptr<Node> node, const std::vector<rondo_argument>& arguments, const char* name) {
  rondo_stream* stream = current_stream(device);
  uint64_t id = 0;
  if (!capturing(stream, &id)) {
    const rondo_device_properties* properties = rondo_device_info(rondo_torch::device(device));
    if (properties->capabilities & RONDO_DEVICE_INLINE) {
      launch(stream, {run_kept, node.get()}, arguments, name);  // it has run when this returns
      return;
    }
    launch(stream, {run_once, node.get()}, arguments, name);  // a failure here means that it never will
    (void)node.release();
    return;
  }
  Node* kept = node.get();
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    g_captures[id].nodes->push_back(std::move(node));
  }
  launch(stream, {run_kept, kept}, arguments, name);
}

void enqueue(int device, rondo_kernel kernel, const std::vector<rondo_argument>& arguments, const char* name) {
  launch(current_stream(device), kernel, arguments, name);
}

}  // namespace rondo_torch
