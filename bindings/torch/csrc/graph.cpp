// SPDX-License-Identifier: Apache-2.0
//
// torch.accelerator.Graph on the device: the eight calls over a rondo_graph, which has the states and says what is
// wrong. What is told here is what PyTorch's callers know by other names, and one thing that a rondo_graph cannot know:
// that a Python exception has left the block that was to be captured.
#include "graph.hpp"

#include "handled.hpp"
#include "node.hpp"
#include "runtime.hpp"

namespace rondo_torch {

RondoGraphImpl::RondoGraphImpl(const at::GraphImplArgs& args) : keep_(args.keep_graph) {}

rondo_graph_state RondoGraphImpl::state() const { return graph_ ? rondo_graph_get_state(graph_) : RONDO_GRAPH_EMPTY; }

namespace {
bool in_capture(rondo_graph_state state) { return state == RONDO_GRAPH_CAPTURING || state == RONDO_GRAPH_INVALIDATED; }
bool has_capture(rondo_graph_state state) { return state == RONDO_GRAPH_CAPTURED || state == RONDO_GRAPH_READY; }

// `call` needs a capture that has ended well.
void need_capture(const char* call, rondo_graph_state state, const std::string& dropped) {
  if (has_capture(state)) return;
  TORCH_CHECK(!in_capture(state), "rondo: called ", call, "() while the graph is capturing: call capture_end() first");
  TORCH_CHECK(false, "rondo: called ", call, "() without a preceding successful capture", dropped.empty() ? "" : ": ",
              dropped);
}
}  // namespace

void RondoGraphImpl::create() {
  if (graph_) return;
  rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
  options.keep_graph = keep_ ? 1 : 0;
  options.name = "torch.accelerator.Graph";
  check(rondo_graph_create(device(device_), &options, &graph_));
}

// The capture is over: its nodes go to the graph, or away. The graph no longer mentions them then.
void RondoGraphImpl::finish(bool keep_nodes) {
  refusal_.clear();
  handled_.reset();
  if (!capture_id_) return;
  auto nodes = take_nodes(capture_id_, &refusal_);
  capture_id_ = 0;
  if (keep_nodes) nodes_ = std::move(nodes);
}

void RondoGraphImpl::capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode) {
  TORCH_CHECK(!in_capture(state()),
              "rondo: called capture_begin() while the graph is capturing: call capture_end() first");
  TORCH_CHECK(!has_capture(state()),
              "rondo: this graph instance already owns a captured graph; reset() it, or create a new instance");
  int index = current_device();
  StreamId id = current_stream_id(index);
  TORCH_CHECK(id != 0, "rondo: graphs must be captured on a non-default stream; enter torch.Stream() first");
  if (graph_ && index != device_) rondo_graph_release(std::exchange(graph_, nullptr));
  device_ = index;
  create();
  if (debug_) check(rondo_graph_enable_debug_mode(graph_));
  dumps_ = debug_ || keep_;
  auto handled = std::make_unique<HandledException>();
  rondo_stream* stream = stream_of(index, id);
  {
    std::lock_guard<std::mutex> gate(capture_gate(index));
    check(rondo_graph_capture_begin(graph_, stream, {pool.first, pool.second}, static_cast<rondo_capture_mode>(mode)));
  }
  handled_ = std::move(handled);
  dropped_.clear();
  (void)capturing(stream, &capture_id_);
}

void RondoGraphImpl::capture_end() {
  TORCH_CHECK(in_capture(state()), "rondo: called capture_end() before capture_begin()");
  // "with graph:" ends the capture however its block is left, and does not say how. Half of what was to be captured is
  // not for replaying; the exception goes its way.
  HandledException now;
  if (now.any() && !(handled_ && now.same_as(*handled_))) {
    dropped_ = "an exception left the capture (" + now.text() + "), and what it had recorded was dropped";
    rondo_status_release(rondo_graph_abort(graph_));
    finish(false);
    return;
  }
  rondo_status status = rondo_graph_capture_end(graph_, current_stream(device_));
  if (in_capture(state())) check(status);  // refused: another stream or thread; the capture goes on
  finish(!status);
  if (!status) return;
  rondo_code code = rondo_status_code(status);
  std::string text = text_of(status);
  if (!refusal_.empty() && code == RONDO_CODE_CAPTURE_INVALIDATED) text = "the capture was broken: " + refusal_;
  dropped_ = text;
  TORCH_CHECK(false, "rondo: ", text);
}

void RondoGraphImpl::instantiate() {
  need_capture("instantiate", state(), dropped_);
  TORCH_CHECK(keep_, "rondo: capture_end() has instantiated the graph; only one made with keep_graph=True is "
              "instantiated again");
  check(rondo_graph_instantiate(graph_));
}

void RondoGraphImpl::replay() {
  need_capture("replay", state(), dropped_);
  rondo_stream* stream = current_stream(device_);
  uint64_t outer = 0;
  if (capturing(stream, &outer)) keep_in_capture(outer, nodes_);
  rondo_status status = rondo_graph_replay(graph_, stream);
  if (!status) return;
  std::string why = take_failure(), text = text_of(status);
  TORCH_CHECK(false, "rondo: ", text, why.empty() ? "" : "\n  ", why);
}

void RondoGraphImpl::reset() {
  dropped_.clear();
  if (!graph_) return;
  rondo_graph_reset(graph_);
  finish(false);
  nodes_.reset();
}

c10::MempoolId_t RondoGraphImpl::pool() const {
  need_capture("pool", state(), dropped_);
  rondo_pool_id pool = {0, 0};
  check(rondo_graph_pool(graph_, &pool));
  return {pool.automatic, pool.user};
}

// For the captures that begin from now on.
void RondoGraphImpl::enable_debug_mode() { debug_ = true; }

void RondoGraphImpl::debug_dump(const std::string& path) {
  need_capture("debug_dump", state(), dropped_);
  TORCH_CHECK(dumps_, "rondo: debug_dump() has nothing to show: call enable_debug_mode() before the capture, or make "
              "the graph with keep_graph=True");
  check(rondo_graph_debug_dump(graph_, path.c_str()));
}

RondoGraphImpl::~RondoGraphImpl() {
  rondo_graph_release(graph_);  // waits behind the last replay: then its nodes may go
  finish(false);
}

}  // namespace rondo_torch

namespace at {
using RondoGraphImpl = rondo_torch::RondoGraphImpl;
REGISTER_GRAPH_IMPL(RONDO, RondoGraphImpl)
}  // namespace at
