// SPDX-License-Identifier: Apache-2.0
#include "node.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "ops.hpp"
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

rondo_status try_launch(rondo_stream* stream, rondo_kernel kernel, Arguments arguments, const char* name) {
  rondo_call call = RONDO_CALL_INIT;
  call.kernel = kernel;
  call.arguments = arguments.data();
  call.argument_count = static_cast<uint32_t>(arguments.size());
  call.name = name;
  return rondo_stream_launch(stream, &call);
}

// A capture that was spoilt is told in the words of who did it.
std::string refusal_of(rondo_stream* stream) {
  uint64_t id = 0;
  if (!capturing(stream, &id)) return {};
  std::lock_guard<std::mutex> lock(g_mutex);
  auto found = g_captures.find(id);
  return found == g_captures.end() ? std::string() : found->second.refusal;
}

void launch(rondo_stream* stream, rondo_kernel kernel, Arguments arguments, const char* name) {
  rondo_status status = try_launch(stream, kernel, arguments, name);
  if (!status) return;
  std::string why = refusal_of(stream);
  if (why.empty()) check(status);
  TORCH_CHECK(false, "rondo: the capture records nothing more: ", why, "\n  ", text_of(status));
}

// Runs nothing: it keeps the nodes of a graph that became part of another.
struct KeptNodes final : Node {
  explicit KeptNodes(std::shared_ptr<NodeList> list) : nodes(std::move(list)) {}
  int32_t run(const uint64_t*) noexcept override { return 0; }
  std::shared_ptr<NodeList> nodes;
};

// A node with more words than a call has. Calls before the node's own bring the words that have no place in it; so each
// memory is named to Rondo in a call, and a replay that binds other addresses brings those.
struct WideNode final : Node {
  struct Part final : Node {
    std::vector<uint64_t>* into = nullptr;
    size_t first = 0, count = 0;
    int32_t run(const uint64_t* words) noexcept override {
      std::copy(words, words + count, into->begin() + static_cast<ptrdiff_t>(first));
      return 0;
    }
  };
  std::unique_ptr<Node> inner;
  std::vector<uint64_t> words;
  std::vector<std::unique_ptr<Part>> parts;
  int32_t run(const uint64_t*) noexcept override { return inner->run(words.data()); }
};

void enqueue_wide(int device, std::unique_ptr<Node> node, Arguments arguments, const char* name) {
  auto wide = std::make_unique<WideNode>();
  wide->inner = std::move(node);
  wide->words.resize(arguments.size());
  rondo_stream* stream = current_stream(device);
  WideNode* kept = wide.get();
  uint64_t id = 0;
  bool recorded = capturing(stream, &id);
  for (size_t first = 0; first < arguments.size(); first += RONDO_ARGUMENT_MAX) {
    auto part = std::make_unique<WideNode::Part>();
    part->into = &wide->words;
    part->first = first;
    part->count = std::min<size_t>(RONDO_ARGUMENT_MAX, arguments.size() - first);
    kept->parts.push_back(std::move(part));
  }
  if (recorded) {
    std::lock_guard<std::mutex> lock(g_mutex);
    g_captures[id].nodes->push_back(std::move(wide));
  }
  try {
    for (const auto& part : kept->parts) {
      launch(stream, {run_kept, part.get()}, arguments.slice(part->first, part->count), name);
    }
    bool last = !recorded && !runs_at_once(device);
    launch(stream, {last ? run_once : run_kept, kept}, {}, name);
    if (last) (void)wide.release();
  } catch (...) {
    // Parts may be waiting to run: what they write to has to stay.
    if (!recorded && !runs_at_once(device)) (void)wide.release();
    throw;
  }
}

}  // namespace

int32_t AtenNode::run(const uint64_t* words) noexcept {
  try {
    BelowEverything guard;
    work(words);
    return 0;
  } catch (const c10::Error& error) {
    thrown = std::current_exception();
    set_failure((std::string(title()) + ": " + error.what_without_backtrace()).c_str());
  } catch (const std::exception& error) {
    thrown = std::current_exception();
    set_failure((std::string(title()) + ": " + error.what()).c_str());
  }
  return 1;
}

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

bool runs_at_once(int device) { return runs_inline(device) && !capturing(current_stream(device)); }

void run_now(int device, AtenNode& node, Arguments arguments, const char* name) {
  TORCH_INTERNAL_ASSERT(arguments.size() <= RONDO_ARGUMENT_MAX);
  rondo_status status = try_launch(current_stream(device), {run_kept, &node}, arguments, name);
  if (!status) return;
  if (!node.thrown) check(status);
  rondo_status_release(status);
  (void)take_failure();
  std::rethrow_exception(node.thrown);
}

void enqueue(int device, std::unique_ptr<Node> node, Arguments arguments, const char* name) {
  if (arguments.size() > RONDO_ARGUMENT_MAX) return enqueue_wide(device, std::move(node), arguments, name);
  rondo_stream* stream = current_stream(device);
  uint64_t id = 0;
  if (!capturing(stream, &id)) {
    if (runs_inline(device)) {
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

void enqueue(int device, rondo_kernel kernel, Arguments arguments, const char* name) {
  launch(current_stream(device), kernel, arguments, name);
}

}  // namespace rondo_torch
