// SPDX-License-Identifier: Apache-2.0
//
// The operators that programs call most, the short way: elementwise ones of two and three operands, products of matrices.
#include "direct.hpp"
#include "registration.hpp"

#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/add_meta.h>
#include <ATen/ops/addcdiv_cpu_dispatch.h>
#include <ATen/ops/addcdiv_meta.h>
#include <ATen/ops/addcmul_cpu_dispatch.h>
#include <ATen/ops/addcmul_meta.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/bmm_meta.h>
#include <ATen/ops/clamp_min_cpu_dispatch.h>
#include <ATen/ops/clamp_min_meta.h>
#include <ATen/ops/div_cpu_dispatch.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/eq_cpu_dispatch.h>
#include <ATen/ops/eq_meta.h>
#include <ATen/ops/ge_cpu_dispatch.h>
#include <ATen/ops/ge_meta.h>
#include <ATen/ops/gt_cpu_dispatch.h>
#include <ATen/ops/gt_meta.h>
#include <ATen/ops/le_cpu_dispatch.h>
#include <ATen/ops/le_meta.h>
#include <ATen/ops/leaky_relu_cpu_dispatch.h>
#include <ATen/ops/leaky_relu_meta.h>
#include <ATen/ops/lerp_cpu_dispatch.h>
#include <ATen/ops/lerp_meta.h>
#include <ATen/ops/lt_cpu_dispatch.h>
#include <ATen/ops/lt_meta.h>
#include <ATen/ops/maximum_cpu_dispatch.h>
#include <ATen/ops/maximum_meta.h>
#include <ATen/ops/minimum_cpu_dispatch.h>
#include <ATen/ops/minimum_meta.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/mm_meta.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/mul_meta.h>
#include <ATen/ops/ne_cpu_dispatch.h>
#include <ATen/ops/ne_meta.h>
#include <ATen/ops/pow_cpu_dispatch.h>
#include <ATen/ops/pow_meta.h>
#include <ATen/ops/sigmoid_backward_cpu_dispatch.h>
#include <ATen/ops/sigmoid_backward_meta.h>
#include <ATen/ops/silu_backward_cpu_dispatch.h>
#include <ATen/ops/silu_backward_meta.h>
#include <ATen/ops/sub_cpu_dispatch.h>
#include <ATen/ops/sub_meta.h>
#include <ATen/ops/tanh_backward_cpu_dispatch.h>
#include <ATen/ops/tanh_backward_meta.h>
#include <ATen/ops/threshold_backward_cpu_dispatch.h>
#include <ATen/ops/threshold_backward_meta.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

namespace rondo_torch {
namespace {

namespace cpu = at::cpu;
namespace meta = at::meta;

// By the kinds of the arguments: T a tensor, S a scalar, and so on; the output comes last.
using TS = at::Tensor& (*)(const at::Tensor&, const at::Scalar&, at::Tensor&);
using TT = at::Tensor& (*)(const at::Tensor&, const at::Tensor&, at::Tensor&);
using TTS = at::Tensor& (*)(const at::Tensor&, const at::Tensor&, const at::Scalar&, at::Tensor&);
using TTTS = at::Tensor& (*)(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Scalar&, at::Tensor&);

// Name, overload if there is one, and the arguments' kinds.
#define RONDO_DIRECT(id, name, kind, function) \
  constexpr char kName_##id[] = "aten::" name;   \
  using Op_##id = direct::Operator<meta::structured_##id, static_cast<kind>(cpu::function##_outf), kName_##id>::F;
#define RONDO_PLAIN(id, kind) RONDO_DIRECT(id, #id, kind, id)
#define RONDO_OVERLOAD(id, overload, kind) RONDO_DIRECT(id##_##overload, #id "." #overload, kind, id)

RONDO_OVERLOAD(add, Tensor, TTS)
RONDO_OVERLOAD(sub, Tensor, TTS)
RONDO_OVERLOAD(mul, Tensor, TT)
RONDO_OVERLOAD(div, Tensor, TT)
RONDO_PLAIN(maximum, TT)
RONDO_PLAIN(minimum, TT)
RONDO_OVERLOAD(eq, Tensor, TT)
RONDO_OVERLOAD(eq, Scalar, TS)
RONDO_OVERLOAD(ne, Tensor, TT)
RONDO_OVERLOAD(ne, Scalar, TS)
RONDO_OVERLOAD(lt, Tensor, TT)
RONDO_OVERLOAD(lt, Scalar, TS)
RONDO_OVERLOAD(le, Tensor, TT)
RONDO_OVERLOAD(le, Scalar, TS)
RONDO_OVERLOAD(gt, Tensor, TT)
RONDO_OVERLOAD(gt, Scalar, TS)
RONDO_OVERLOAD(ge, Tensor, TT)
RONDO_OVERLOAD(ge, Scalar, TS)
RONDO_OVERLOAD(pow, Tensor_Scalar, TS)
RONDO_OVERLOAD(pow, Tensor_Tensor, TT)
RONDO_PLAIN(clamp_min, TS)
RONDO_PLAIN(leaky_relu, TS)
RONDO_PLAIN(threshold_backward, TTS)
RONDO_PLAIN(silu_backward, TT)
RONDO_PLAIN(tanh_backward, TT)
RONDO_PLAIN(sigmoid_backward, TT)
RONDO_PLAIN(addcmul, TTTS)
RONDO_PLAIN(addcdiv, TTTS)
RONDO_OVERLOAD(lerp, Scalar, TTS)
RONDO_PLAIN(mm, TT)
RONDO_PLAIN(bmm, TT)

// A relu is this clamp, under its own name.
constexpr char kName_relu[] = "aten::relu";
using Op_relu = direct::Operator<meta::structured_clamp_min, static_cast<TS>(cpu::clamp_min_outf), kName_relu>::F;

#undef RONDO_OVERLOAD
#undef RONDO_PLAIN
#undef RONDO_DIRECT

void check_relu(const at::Tensor& self) {
  TORCH_CHECK(self.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
}
at::Tensor relu(const at::Tensor& self) {
  check_relu(self);
  return Op_relu::fresh(self, 0);
}
at::Tensor& relu_in_place(at::Tensor& self) {
  check_relu(self);
  return Op_relu::In::call(self, 0);
}

RONDO_TORCH_KERNELS(aten, direct, m) {
  direct::three_forms<Op_add_Tensor>(m, "add.Tensor", "add.out", "add_.Tensor");
  direct::three_forms<Op_sub_Tensor>(m, "sub.Tensor", "sub.out", "sub_.Tensor");
  direct::three_forms<Op_mul_Tensor>(m, "mul.Tensor", "mul.out", "mul_.Tensor");
  direct::three_forms<Op_div_Tensor>(m, "div.Tensor", "div.out", "div_.Tensor");
  direct::two_forms<Op_maximum>(m, "maximum", "maximum.out");
  direct::two_forms<Op_minimum>(m, "minimum", "minimum.out");
  direct::three_forms<Op_eq_Tensor>(m, "eq.Tensor", "eq.Tensor_out", "eq_.Tensor");
  direct::three_forms<Op_eq_Scalar>(m, "eq.Scalar", "eq.Scalar_out", "eq_.Scalar");
  direct::three_forms<Op_ne_Tensor>(m, "ne.Tensor", "ne.Tensor_out", "ne_.Tensor");
  direct::three_forms<Op_ne_Scalar>(m, "ne.Scalar", "ne.Scalar_out", "ne_.Scalar");
  direct::three_forms<Op_lt_Tensor>(m, "lt.Tensor", "lt.Tensor_out", "lt_.Tensor");
  direct::three_forms<Op_lt_Scalar>(m, "lt.Scalar", "lt.Scalar_out", "lt_.Scalar");
  direct::three_forms<Op_le_Tensor>(m, "le.Tensor", "le.Tensor_out", "le_.Tensor");
  direct::three_forms<Op_le_Scalar>(m, "le.Scalar", "le.Scalar_out", "le_.Scalar");
  direct::three_forms<Op_gt_Tensor>(m, "gt.Tensor", "gt.Tensor_out", "gt_.Tensor");
  direct::three_forms<Op_gt_Scalar>(m, "gt.Scalar", "gt.Scalar_out", "gt_.Scalar");
  direct::three_forms<Op_ge_Tensor>(m, "ge.Tensor", "ge.Tensor_out", "ge_.Tensor");
  direct::three_forms<Op_ge_Scalar>(m, "ge.Scalar", "ge.Scalar_out", "ge_.Scalar");
  direct::three_forms<Op_pow_Tensor_Scalar>(m, "pow.Tensor_Scalar", "pow.Tensor_Scalar_out", "pow_.Scalar");
  direct::three_forms<Op_pow_Tensor_Tensor>(m, "pow.Tensor_Tensor", "pow.Tensor_Tensor_out", "pow_.Tensor");
  direct::three_forms<Op_clamp_min>(m, "clamp_min", "clamp_min.out", "clamp_min_");
  direct::three_forms<Op_leaky_relu>(m, "leaky_relu", "leaky_relu.out", "leaky_relu_");
  direct::two_forms<Op_threshold_backward>(m, "threshold_backward", "threshold_backward.grad_input");
  direct::two_forms<Op_silu_backward>(m, "silu_backward", "silu_backward.grad_input");
  direct::two_forms<Op_tanh_backward>(m, "tanh_backward", "tanh_backward.grad_input");
  direct::two_forms<Op_sigmoid_backward>(m, "sigmoid_backward", "sigmoid_backward.grad_input");
  direct::three_forms<Op_addcmul>(m, "addcmul", "addcmul.out", "addcmul_");
  direct::three_forms<Op_addcdiv>(m, "addcdiv", "addcdiv.out", "addcdiv_");
  direct::three_forms<Op_lerp_Scalar>(m, "lerp.Scalar", "lerp.Scalar_out", "lerp_.Scalar");
  direct::two_forms<Op_mm>(m, "mm", "mm.out");
  direct::two_forms<Op_bmm>(m, "bmm", "bmm.out");
  m.impl("relu", relu);
  m.impl("relu_", relu_in_place);
}

}  // namespace

namespace direct {

Collector::Kept Collector::keep(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  if (on_device(tensor)) {
    TORCH_CHECK(tensor.device().index() == device, "Expected all tensors to be on the same device, but ", name,
                " got tensors of at least two devices, rondo:", device, " and ", tensor.device(), "!");
    bool written = tensor.is_same(output);
    auto number = static_cast<int32_t>(operands.add(tensor, written ? RONDO_ACCESS_BOTH : RONDO_ACCESS_READ));
    if (written) output_number = number;
    return {number, {}};
  }
  bool number = tensor.device().is_cpu() && tensor.dim() == 0;
  TORCH_CHECK(number, "Expected all tensors to be on the same device, but ", name,
              " got tensors of at least two devices, rondo:", device, " and ", tensor.device(), "!");
  // A number of Python's is nobody else's; another may change before the call runs.
  if (at_once || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return {-1, tensor};
  return {-1, tensor.clone()};
}

at::Tensor make_output(at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options) {
  return strides.empty() ? at::empty(sizes, options) : at::empty_strided(sizes, strides, options);
}

void check_output(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options) {
  TORCH_CHECK(out.dtype() == options.dtype(), "Expected out tensor to have dtype ", options.dtype(), ", but got ", out.dtype(),
              " instead");
  TORCH_CHECK(out.device() == options.device(), "Expected out tensor to have device ", options.device(), ", but got ",
              out.device(), " instead");
  if (!at::native::resize_output(out, sizes)) return;
  if (!strides.empty()) out.as_strided_(sizes, strides);
  else if (options.memory_format_opt().has_value()) out.unsafeGetTensorImpl()->empty_tensor_restride(*options.memory_format_opt());
}

void check_in_place(const at::Tensor& self, at::IntArrayRef sizes, const at::TensorOptions& options) {
  TORCH_CHECK(self.dtype() == options.dtype(), "Bad in-place call: input tensor dtype ", self.dtype(),
              " and output tensor dtype ", options.dtype(), " should match");
  TORCH_CHECK(self.sizes() == sizes, "Bad in-place call: input tensor size ", self.sizes(), " and output tensor size ", sizes,
              " should match");
}

}  // namespace direct
}  // namespace rondo_torch
