// SPDX-License-Identifier: Apache-2.0
//
// Random numbers: Rondo's own fills, which draw anew at each replay of a graph, and what is made of their bits.
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "generator.hpp"
#include "node.hpp"
#include "ops.hpp"
#include "registration.hpp"
#include "runtime.hpp"

namespace rondo_torch {
namespace {

using Given = std::optional<at::Generator>;

// Compact float32 numbers of the distribution, or 32 bits each.
at::Tensor draw(const at::Tensor& like, int64_t count, const Given& given, rondo_distribution distribution, double a, double b) {
  int device = like.device().index();
  bool bits = distribution == RONDO_DISTRIBUTION_BITS, bytes = distribution == RONDO_DISTRIBUTION_BERNOULLI;
  at::Tensor numbers = at::empty({count}, like.options().dtype(bits ? at::kInt : bytes ? at::kByte : at::kFloat));
  check(rondo_random_fill(current_stream(device), generator_handle(given, device), distribution, numbers.mutable_data_ptr(),
                          static_cast<uint64_t>(count), static_cast<float>(a), static_cast<float>(b)));
  return numbers;
}

at::Tensor& fill_from(at::Tensor& self, const Given& given, rondo_distribution distribution, double a, double b) {
  if (!self.numel()) return self;
  c10::DeviceGuard guard(self.device());
  at::Tensor numbers = draw(self, self.numel(), given, distribution, a, b);
  enqueue_copy(self, numbers.view(self.sizes()));
  return self;
}

at::Tensor& uniform(at::Tensor& self, double from, double to, Given given) {
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  return fill_from(self, given, RONDO_DISTRIBUTION_UNIFORM, from, to);
}

at::Tensor& normal(at::Tensor& self, double mean, double std, Given given) {
  TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  return fill_from(self, given, RONDO_DISTRIBUTION_NORMAL, mean, std);
}

at::Tensor& bernoulli(at::Tensor& self, double p, Given given) {
  TORCH_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  return fill_from(self, given, RONDO_DISTRIBUTION_BERNOULLI, p, 0);
}

at::Tensor& bernoulli_tensor(at::Tensor& self, const at::Tensor& p, Given given) {
  if (!self.numel()) return self;
  c10::DeviceGuard guard(self.device());
  at::Tensor numbers = draw(self, self.numel(), given, RONDO_DISTRIBUTION_UNIFORM, 0, 1).view(self.sizes());
  enqueue_copy(self, numbers.lt(p.to(self.device(), at::kFloat)));
  return self;
}

// Two words of 32 bits a number, low one first, brought into [from, from + range); range 0: all 64 bits.
struct IntegersNode final : AtenNode {
  const char* title() const override { return "aten::random_"; }
  TensorShape to;
  int64_t count = 0, from = 0;
  uint64_t range = 0;
  void work(const uint64_t* words) override {
    const auto* bits = reinterpret_cast<const uint64_t*>(words[1]);
    at::Tensor numbers = at::empty({count}, at::kLong);
    auto* out = numbers.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < count; i++) {
      uint64_t number = range ? bits[i] % range : bits[i];
      out[i] = static_cast<int64_t>(static_cast<uint64_t>(from) + number);
    }
    host_view(to, words[0]).copy_(numbers.view(to.sizes));
  }
};

at::Tensor& integers(at::Tensor& self, int64_t from, uint64_t range, const Given& given) {
  if (!self.numel()) return self;
  c10::DeviceGuard guard(self.device());
  at::Tensor bits = draw(self, self.numel() * 2, given, RONDO_DISTRIBUTION_BITS, 0, 0);
  auto node = std::make_unique<IntegersNode>();
  node->to = shape_of(self);
  node->count = self.numel();
  node->from = from;
  node->range = range;
  enqueue(self.device().index(), std::move(node), {argument_of(self, RONDO_ACCESS_WRITE), argument_of(bits, RONDO_ACCESS_READ)},
          "aten::random_");
  return self;
}

// How many numbers from 0 on the type holds exactly.
uint64_t exact_range(at::ScalarType dtype) {
  switch (dtype) {
    case at::kBool: return 2;
    case at::kByte: return 256;
    case at::kChar: return 128;
    case at::kShort: return 1u << 15;
    case at::kInt: return 1u << 31;
    case at::kLong: return 1ull << 63;
    case at::kHalf: return (1u << 11) + 1;
    case at::kBFloat16: return (1u << 8) + 1;
    case at::kFloat: return (1u << 24) + 1;
    case at::kDouble: return (1ull << 53) + 1;
    default: TORCH_CHECK(false, "random_ is not implemented for ", dtype, " on rondo");
  }
}

at::Tensor& random(at::Tensor& self, Given given) { return integers(self, 0, exact_range(self.scalar_type()), given); }

at::Tensor& random_to(at::Tensor& self, int64_t to, Given given) {
  TORCH_CHECK(to > 0, "random_ expects 'from' to be less than 'to', but got from=0 >= to=", to);
  return integers(self, 0, static_cast<uint64_t>(to), given);
}

at::Tensor& random_from(at::Tensor& self, int64_t from, std::optional<int64_t> to, Given given) {
  if (!to.has_value()) return integers(self, from, exact_range(self.scalar_type()) - static_cast<uint64_t>(from), given);
  TORCH_CHECK(from < *to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", *to);
  return integers(self, from, static_cast<uint64_t>(*to) - static_cast<uint64_t>(from), given);
}

at::Tensor& exponential(at::Tensor& self, double lambda, Given given) {
  TORCH_CHECK(lambda > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  if (!self.numel()) return self;
  c10::DeviceGuard guard(self.device());
  // 1 - u lies in (0, 1], so that the logarithm is finite.
  at::Tensor numbers = draw(self, self.numel(), given, RONDO_DISTRIBUTION_UNIFORM, 0, 1);
  numbers.neg_().add_(1).log_().div_(-lambda);
  enqueue_copy(self, numbers.view(self.sizes()));
  return self;
}

RONDO_TORCH_KERNELS(aten, random, m) {
  m.impl("uniform_", uniform);
  m.impl("normal_", normal);
  m.impl("bernoulli_.float", bernoulli);
  m.impl("bernoulli_.Tensor", bernoulli_tensor);
  m.impl("random_", rondo_torch::random);
  m.impl("random_.to", random_to);
  m.impl("random_.from", random_from);
  m.impl("exponential_", exponential);
}

}  // namespace
}  // namespace rondo_torch
