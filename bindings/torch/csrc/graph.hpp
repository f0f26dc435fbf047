// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/GraphImplInterface.h>
#include <rondo/rondo.h>

#include <memory>
#include <string>

#include "node.hpp"

namespace rondo_torch {

class HandledException;

class RondoGraphImpl final : public at::GraphImplInterface {
 public:
  explicit RondoGraphImpl(const at::GraphImplArgs& args);
  ~RondoGraphImpl() override;
  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode) override;
  void capture_end() override;
  void instantiate() override;
  void replay() override;
  void reset() override;
  c10::MempoolId_t pool() const override;
  void enable_debug_mode() override;
  void debug_dump(const std::string& path) override;

 private:
  void create();
  rondo_graph_state state() const;
  void finish(bool keep_nodes);
  bool keep_, debug_ = false, dumps_ = false;  // dumps_: what is captured now can be dumped
  int device_ = 0;
  uint64_t capture_id_ = 0;  // while it captures
  rondo_graph* graph_ = nullptr;
  std::shared_ptr<NodeList> nodes_;
  std::string refusal_;  // why the capture was spoilt, in the words of who refused something
  std::string dropped_;  // why there is nothing to replay, after a capture that came to nothing
  std::unique_ptr<HandledException> handled_;  // by Python, when the capture began
};

}  // namespace rondo_torch
