// SPDX-License-Identifier: Apache-2.0
//
// What rondo_torch.torchair builds and runs: a graph of Rondo's operators, and the plan that is compiled of it.
#pragma once
#include <ATen/core/Tensor.h>
#include <rondo/rondo.h>
#include <torch/csrc/utils/pybind.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rondo_torch {

// Refuses what Rondo has no type for, by name.
rondo_dtype dtype_of(at::ScalarType type);
at::ScalarType type_of(rondo_dtype dtype);

// A rondo_ir_graph under construction. Values are the graph's own numbers; -1 is an input that is absent.
class IrGraph {
 public:
  explicit IrGraph(const std::string& name);
  ~IrGraph();
  IrGraph(const IrGraph&) = delete;
  IrGraph& operator=(const IrGraph&) = delete;

  uint32_t input(const std::string& name, at::ScalarType type, const std::vector<int64_t>& dims);
  // Copies the elements, which must lie in host memory.
  uint32_t constant(const std::string& name, const at::Tensor& value);
  // Attributes get the kinds that the operator's prototype gives them.
  std::vector<uint32_t> node(const std::string& operator_name, const std::string& name,
                             const std::vector<int64_t>& inputs, const pybind11::dict& attributes, uint32_t outputs);
  void output(uint32_t value, const std::string& name);
  std::string dump(const std::string& format) const;
  rondo_ir_graph* handle() const { return graph_; }

 private:
  rondo_ir_graph* graph_ = nullptr;
};

void bind_plan(pybind11::module& m);
}  // namespace rondo_torch
