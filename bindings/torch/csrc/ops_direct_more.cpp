// SPDX-License-Identifier: Apache-2.0
//
// Further operators the short way: of one operand, reductions, softmax, and lists.
#include "direct.hpp"
#include "registration.hpp"

#include <ATen/ops/_log_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_log_softmax_backward_data_meta.h>
#include <ATen/ops/_log_softmax_cpu_dispatch.h>
#include <ATen/ops/_log_softmax_meta.h>
#include <ATen/ops/_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_softmax_backward_data_meta.h>
#include <ATen/ops/_softmax_cpu_dispatch.h>
#include <ATen/ops/_softmax_meta.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/addmm_meta.h>
#include <ATen/ops/amax_cpu_dispatch.h>
#include <ATen/ops/amax_meta.h>
#include <ATen/ops/amin_cpu_dispatch.h>
#include <ATen/ops/amin_meta.h>
#include <ATen/ops/baddbmm_cpu_dispatch.h>
#include <ATen/ops/baddbmm_meta.h>
#include <ATen/ops/cat_cpu_dispatch.h>
#include <ATen/ops/cat_meta.h>
#include <ATen/ops/clamp_cpu_dispatch.h>
#include <ATen/ops/clamp_meta.h>
#include <ATen/ops/cos_cpu_dispatch.h>
#include <ATen/ops/cos_meta.h>
#include <ATen/ops/erf_cpu_dispatch.h>
#include <ATen/ops/erf_meta.h>
#include <ATen/ops/exp_cpu_dispatch.h>
#include <ATen/ops/exp_meta.h>
#include <ATen/ops/gather_cpu_dispatch.h>
#include <ATen/ops/gather_meta.h>
#include <ATen/ops/gelu_backward_cpu_dispatch.h>
#include <ATen/ops/gelu_backward_meta.h>
#include <ATen/ops/gelu_cpu_dispatch.h>
#include <ATen/ops/gelu_meta.h>
#include <ATen/ops/leaky_relu_backward_cpu_dispatch.h>
#include <ATen/ops/leaky_relu_backward_meta.h>
#include <ATen/ops/log_cpu_dispatch.h>
#include <ATen/ops/log_meta.h>
#include <ATen/ops/mean_cpu_dispatch.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/neg_cpu_dispatch.h>
#include <ATen/ops/neg_meta.h>
#include <ATen/ops/reciprocal_cpu_dispatch.h>
#include <ATen/ops/reciprocal_meta.h>
#include <ATen/ops/rsqrt_cpu_dispatch.h>
#include <ATen/ops/rsqrt_meta.h>
#include <ATen/ops/sigmoid_cpu_dispatch.h>
#include <ATen/ops/sigmoid_meta.h>
#include <ATen/ops/silu_cpu_dispatch.h>
#include <ATen/ops/silu_meta.h>
#include <ATen/ops/sin_cpu_dispatch.h>
#include <ATen/ops/sin_meta.h>
#include <ATen/ops/sqrt_cpu_dispatch.h>
#include <ATen/ops/sqrt_meta.h>
#include <ATen/ops/sum_cpu_dispatch.h>
#include <ATen/ops/sum_meta.h>
#include <ATen/ops/tanh_cpu_dispatch.h>
#include <ATen/ops/tanh_meta.h>

namespace rondo_torch {
namespace {

namespace cpu = at::cpu;
namespace meta = at::meta;

// By the kinds of the arguments: T a tensor, S a scalar, and so on; the output comes last.
using CL = at::Tensor& (*)(const at::ITensorListRef&, int64_t, at::Tensor&);
using T = at::Tensor& (*)(const at::Tensor&, at::Tensor&);
using TA = at::Tensor& (*)(const at::Tensor&, std::string_view, at::Tensor&);
using TDBY = at::Tensor& (*)(const at::Tensor&, at::OptionalIntArrayRef, bool, std::optional<at::ScalarType>, at::Tensor&);
using TIB = at::Tensor& (*)(const at::Tensor&, at::IntArrayRef, bool, at::Tensor&);
using TLB = at::Tensor& (*)(const at::Tensor&, int64_t, bool, at::Tensor&);
using TLTB = at::Tensor& (*)(const at::Tensor&, int64_t, const at::Tensor&, bool, at::Tensor&);
using TOO = at::Tensor& (*)(const at::Tensor&, const std::optional<at::Scalar>&, const std::optional<at::Scalar>&, at::Tensor&);
using TTA = at::Tensor& (*)(const at::Tensor&, const at::Tensor&, std::string_view, at::Tensor&);
using TTLZ = at::Tensor& (*)(const at::Tensor&, const at::Tensor&, int64_t, at::ScalarType, at::Tensor&);
using TTSB = at::Tensor& (*)(const at::Tensor&, const at::Tensor&, const at::Scalar&, bool, at::Tensor&);
using TTTSS = at::Tensor& (*)(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Scalar&, const at::Scalar&, at::Tensor&);

// Name, overload if there is one, and the arguments' kinds.
#define RONDO_DIRECT(id, name, kind, function) \
  constexpr char kName_##id[] = "aten::" name;   \
  using Op_##id = direct::Operator<meta::structured_##id, static_cast<kind>(cpu::function##_outf), kName_##id>::F;
#define RONDO_PLAIN(id, kind) RONDO_DIRECT(id, #id, kind, id)
#define RONDO_OVERLOAD(id, overload, kind) RONDO_DIRECT(id##_##overload, #id "." #overload, kind, id)

RONDO_PLAIN(neg, T)
RONDO_PLAIN(exp, T)
RONDO_PLAIN(log, T)
RONDO_PLAIN(sqrt, T)
RONDO_PLAIN(rsqrt, T)
RONDO_PLAIN(reciprocal, T)
RONDO_PLAIN(sin, T)
RONDO_PLAIN(cos, T)
RONDO_PLAIN(tanh, T)
RONDO_PLAIN(sigmoid, T)
RONDO_PLAIN(erf, T)
RONDO_PLAIN(silu, T)
RONDO_PLAIN(gelu, TA)
RONDO_PLAIN(clamp, TOO)
RONDO_PLAIN(gelu_backward, TTA)
RONDO_PLAIN(leaky_relu_backward, TTSB)
RONDO_PLAIN(addmm, TTTSS)
RONDO_PLAIN(baddbmm, TTTSS)
RONDO_OVERLOAD(sum, dim_IntList, TDBY)
RONDO_OVERLOAD(mean, dim, TDBY)
RONDO_PLAIN(amax, TIB)
RONDO_PLAIN(amin, TIB)
RONDO_PLAIN(_softmax, TLB)
RONDO_PLAIN(_log_softmax, TLB)
RONDO_PLAIN(_softmax_backward_data, TTLZ)
RONDO_PLAIN(_log_softmax_backward_data, TTLZ)
RONDO_PLAIN(cat, CL)
RONDO_PLAIN(gather, TLTB)

#undef RONDO_OVERLOAD
#undef RONDO_PLAIN
#undef RONDO_DIRECT

RONDO_TORCH_KERNELS(aten, direct_more, m) {
  direct::three_forms<Op_neg>(m, "neg", "neg.out", "neg_");
  direct::three_forms<Op_exp>(m, "exp", "exp.out", "exp_");
  direct::three_forms<Op_log>(m, "log", "log.out", "log_");
  direct::three_forms<Op_sqrt>(m, "sqrt", "sqrt.out", "sqrt_");
  direct::three_forms<Op_rsqrt>(m, "rsqrt", "rsqrt.out", "rsqrt_");
  direct::three_forms<Op_reciprocal>(m, "reciprocal", "reciprocal.out", "reciprocal_");
  direct::three_forms<Op_sin>(m, "sin", "sin.out", "sin_");
  direct::three_forms<Op_cos>(m, "cos", "cos.out", "cos_");
  direct::three_forms<Op_tanh>(m, "tanh", "tanh.out", "tanh_");
  direct::three_forms<Op_sigmoid>(m, "sigmoid", "sigmoid.out", "sigmoid_");
  direct::three_forms<Op_erf>(m, "erf", "erf.out", "erf_");
  direct::three_forms<Op_silu>(m, "silu", "silu.out", "silu_");
  direct::three_forms<Op_gelu>(m, "gelu", "gelu.out", "gelu_");
  direct::three_forms<Op_clamp>(m, "clamp", "clamp.out", "clamp_");
  direct::two_forms<Op_gelu_backward>(m, "gelu_backward", "gelu_backward.grad_input");
  direct::two_forms<Op_leaky_relu_backward>(m, "leaky_relu_backward", "leaky_relu_backward.grad_input");
  direct::three_forms<Op_addmm>(m, "addmm", "addmm.out", "addmm_");
  direct::three_forms<Op_baddbmm>(m, "baddbmm", "baddbmm.out", "baddbmm_");
  direct::two_forms<Op_sum_dim_IntList>(m, "sum.dim_IntList", "sum.IntList_out");
  direct::two_forms<Op_mean_dim>(m, "mean.dim", "mean.out");
  direct::two_forms<Op_amax>(m, "amax", "amax.out");
  direct::two_forms<Op_amin>(m, "amin", "amin.out");
  direct::two_forms<Op__softmax>(m, "_softmax", "_softmax.out");
  direct::two_forms<Op__log_softmax>(m, "_log_softmax", "_log_softmax.out");
  direct::two_forms<Op__softmax_backward_data>(m, "_softmax_backward_data", "_softmax_backward_data.out");
  direct::two_forms<Op__log_softmax_backward_data>(m, "_log_softmax_backward_data", "_log_softmax_backward_data.out");
  direct::two_forms<Op_cat>(m, "cat", "cat.out");
  direct::two_forms<Op_gather>(m, "gather", "gather.out");
}

}  // namespace
}  // namespace rondo_torch
