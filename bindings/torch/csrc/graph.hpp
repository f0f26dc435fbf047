// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/GraphImplInterface.h>
#include <rondo/rondo.h>

#include <memory>
#include <string>

#include "node.hpp"

namespace rondo_torch {

class RondoGraphImpl final : public at::GraphImplInterface {
 public:
  explicit RondoGraphImpl(const at::GraphImplArgs& args) : keep_(args.keep_graph) {}
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
  bool keep_, debug_ = false;
  int device_ = 0;
  uint64_t capture_id_ = 0;  // while it captures
  rondo_graph* graph_ = nullptr;
  std::shared_ptr<NodeList> nodes_;
};

}  // namespace rondo_torch
