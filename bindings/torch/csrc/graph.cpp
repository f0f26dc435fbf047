// SPDX-License-Identifier: Apache-2.0
//
// torch.accelerator.Graph on the device: the eight calls over a rondo_graph, which has the states and says what is wrong.
#include <ATen/core/GraphImplInterface.h>

#include <map>
#include <mutex>

#include "graph.hpp"
#include "node.hpp"
#include "runtime.hpp"

namespace rondo_torch {

void RondoGraphImpl::create() {
  if (graph_) return;
  rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
  options.keep_graph = keep_ ? 1 : 0;
  options.name = "torch.accelerator.Graph";
  check(rondo_graph_create(device(device_), &options, &graph_));
  if (debug_) check(rondo_graph_enable_debug_mode(graph_));
}

void RondoGraphImpl::capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode) {
  if (graph_) {
    TORCH_CHECK(rondo_graph_get_state(graph_) == RONDO_GRAPH_EMPTY,
                "rondo: this graph instance already owns a captured graph; reset() it, or create a new instance");
  }
  int index = current_device();
  StreamId id = current_stream_id(index);
  TORCH_CHECK(id != 0, "rondo: graphs must be captured on a non-default stream; enter torch.Stream() first");
  if (graph_ && index != device_) reset();
  device_ = index;
  create();
  rondo_stream* stream = stream_of(index, id);
  check(rondo_graph_capture_begin(graph_, stream, {pool.first, pool.second}, static_cast<rondo_capture_mode>(mode)));
  (void)capturing(stream, &capture_id_);
}

void RondoGraphImpl::capture_end() {
  TORCH_CHECK(graph_, "rondo: capture_end() called before capture_begin()");
  rondo_status status = rondo_graph_capture_end(graph_, current_stream(device_));
  rondo_graph_state state = rondo_graph_get_state(graph_);
  bool over = state != RONDO_GRAPH_CAPTURING && state != RONDO_GRAPH_INVALIDATED;
  if (over && capture_id_) {
    auto nodes = take_nodes(capture_id_);
    if (!status) nodes_ = std::move(nodes);
    capture_id_ = 0;
  }
  check(status);
  rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
  check(rondo_graph_get_info(graph_, &info));
  if (info.empty) TORCH_WARN("The graph is empty: nothing was captured. This usually means that it was captured on the wrong device or stream.");
}

void RondoGraphImpl::instantiate() {
  TORCH_CHECK(graph_, "rondo: instantiate() called before capture_end()");
  check(rondo_graph_instantiate(graph_));
}

void RondoGraphImpl::replay() {
  TORCH_CHECK(graph_, "rondo: called replay() without a preceding successful capture");
  rondo_status status = rondo_graph_replay(graph_, current_stream(device_));
  if (!status) return;
  std::string why = take_failure(), text = text_of(status);
  TORCH_CHECK(false, "rondo: ", text, why.empty() ? "" : "\n  ", why);
}

void RondoGraphImpl::reset() {
  if (!graph_) return;
  rondo_graph_reset(graph_);
  if (capture_id_) (void)take_nodes(capture_id_);
  capture_id_ = 0;
  nodes_.reset();
}

c10::MempoolId_t RondoGraphImpl::pool() const {
  rondo_pool_id pool = {0, 0};
  TORCH_CHECK(graph_, "rondo: called pool() without a preceding successful capture");
  check(rondo_graph_pool(graph_, &pool));
  return {pool.automatic, pool.user};
}

void RondoGraphImpl::enable_debug_mode() {
  debug_ = true;
  if (graph_) check(rondo_graph_enable_debug_mode(graph_));
}

void RondoGraphImpl::debug_dump(const std::string& path) {
  TORCH_CHECK(graph_, "rondo: debug_dump() needs a captured graph");
  check(rondo_graph_debug_dump(graph_, path.c_str()));
}

RondoGraphImpl::~RondoGraphImpl() {
  rondo_graph_release(graph_);  // waits behind the last replay: then its nodes may go
  if (capture_id_) (void)take_nodes(capture_id_);
}

}  // namespace rondo_torch

namespace at {
using RondoGraphImpl = rondo_torch::RondoGraphImpl;
REGISTER_GRAPH_IMPL(RONDO, RondoGraphImpl)
}  // namespace at
