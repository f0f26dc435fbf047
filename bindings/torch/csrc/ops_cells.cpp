// SPDX-License-Identifier: Apache-2.0
//
// The cells of recurrent layers. ATen asks a device that is not the CPU for fused ones, and the CPU has none: these are
// made of the device's other operators.
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include "ops.hpp"
#include "registration.hpp"

namespace rondo_torch {
namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;

Tensor with_bias(const Tensor& gates, const Optional& bias) {
  return bias.has_value() && bias->defined() ? gates.add(*bias) : gates;
}

Tensor one_less(const Tensor& y) { return y.neg().add_(1); }
Tensor slope_of_sigmoid(const Tensor& y) { return y.mul(one_less(y)); }
Tensor slope_of_tanh(const Tensor& y) { return one_less(y.mul(y)); }

// Input, forget, cell and output gate, side by side; the workspace holds them after their functions.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                             const Optional& input_bias, const Optional& hidden_bias) {
  auto gates = with_bias(input_gates, input_bias).add(with_bias(hidden_gates, hidden_bias)).chunk(4, 1);
  Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(), out = gates[3].sigmoid();
  Tensor cy = forget.mul(cx).add_(in.mul(cell));
  return {out.mul(cy.tanh()), cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const Optional& grad_hy, const Optional& grad_cy, const Tensor& cx,
                                                      const Tensor& cy, const Tensor& workspace, bool has_bias) {
  bool hy = grad_hy.has_value() && grad_hy->defined(), and_cy = grad_cy.has_value() && grad_cy->defined();
  if (!hy && !and_cy) return {};
  auto gates = workspace.chunk(4, 1);
  const Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  Tensor squashed = cy.tanh();
  Tensor to_cy = and_cy ? *grad_cy : at::zeros_like(cx);
  if (hy) to_cy = to_cy.add(grad_hy->mul(out).mul(slope_of_tanh(squashed)));
  Tensor to_out = hy ? grad_hy->mul(squashed).mul(slope_of_sigmoid(out)) : at::zeros_like(out);
  Tensor grad_gates = at::cat({to_cy.mul(cell).mul(slope_of_sigmoid(in)), to_cy.mul(cx).mul(slope_of_sigmoid(forget)),
                               to_cy.mul(in).mul(slope_of_tanh(cell)), to_out},
                              1);
  return {grad_gates, to_cy.mul(forget), has_bias ? grad_gates.sum(0) : Tensor()};
}

// Reset, update and new gate; the workspace holds them, the state before, and the hidden part of the new gate.
std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const Optional& input_bias, const Optional& hidden_bias) {
  auto input = with_bias(input_gates, input_bias).chunk(3, 1);
  auto hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  Tensor reset = input[0].add(hidden[0]).sigmoid_(), update = input[1].add(hidden[1]).sigmoid_();
  Tensor fresh = input[2].add(reset.mul(hidden[2])).tanh_();
  return {fresh.add(update.mul(hx.sub(fresh))), at::cat({reset, update, fresh, hx, hidden[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad_hy, const Tensor& workspace,
                                                                     bool has_bias) {
  auto kept = workspace.chunk(5, 1);
  const Tensor &reset = kept[0], &update = kept[1], &fresh = kept[2], &hx = kept[3], &hidden = kept[4];
  Tensor to_update = grad_hy.mul(hx.sub(fresh)).mul(slope_of_sigmoid(update));
  Tensor to_fresh = grad_hy.mul(one_less(update)).mul(slope_of_tanh(fresh));
  Tensor to_reset = to_fresh.mul(hidden).mul(slope_of_sigmoid(reset));
  Tensor input = at::cat({to_reset, to_update, to_fresh}, 1);
  Tensor of_hidden = at::cat({to_reset, to_update, to_fresh.mul(reset)}, 1);
  Tensor input_bias = has_bias ? input.sum(0) : Tensor(), hidden_bias = has_bias ? of_hidden.sum(0) : Tensor();
  return {input, of_hidden, grad_hy.mul(update), input_bias, hidden_bias};
}

RONDO_TORCH_KERNELS(aten, cells, m) {
  m.impl("_thnn_fused_lstm_cell", lstm_cell);
  m.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
  m.impl("_thnn_fused_gru_cell", gru_cell);
  m.impl("_thnn_fused_gru_cell_backward", gru_cell_backward);
}

}  // namespace
}  // namespace rondo_torch
