// SPDX-License-Identifier: Apache-2.0
//
// torch.autocast("rondo"): the lists of operators are PyTorch's own, the same for every accelerator.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "registration.hpp"

namespace rondo_torch {
namespace {

at::Tensor binary_cross_entropy(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast: the input may lie "
              "outside what a lower precision holds. Use binary_cross_entropy_with_logits or BCEWithLogitsLoss instead.");
}

RONDO_TORCH_KERNELS_OF(_, AutocastPrivateUse1, autocast_others, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

RONDO_TORCH_KERNELS_OF(aten, AutocastPrivateUse1, autocast, m) {
  using namespace at;  // the lists write types without it: some of them in some releases only
#define RONDO_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define RONDO_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define RONDO_FP32_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define RONDO_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(RONDO_LOWER)
  AT_FORALL_FP32(RONDO_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(RONDO_FP32_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(RONDO_PROMOTE)
  KERNEL_PRIVATEUSEONE(stack, promote)
  KERNEL_PRIVATEUSEONE(cat, promote)
  KERNEL_PRIVATEUSEONE(index_copy, promote)
  m.impl("binary_cross_entropy", binary_cross_entropy);
}

}  // namespace
}  // namespace rondo_torch
