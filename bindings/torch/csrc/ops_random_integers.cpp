// SPDX-License-Identifier: Apache-2.0
//
// Random integers, permutations and picks, from Rondo's bits.
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "generator.hpp"
#include "ops.hpp"
#include "random.hpp"
#include "registration.hpp"

namespace rondo_torch {

void draw_into(const at::Tensor& numbers, const Given& given, rondo_distribution distribution, double a, double b) {
  int device = numbers.device().index();
  check(rondo_random_fill(current_stream(device), generator_handle(given, device), distribution, numbers.mutable_data_ptr(),
                          static_cast<uint64_t>(numbers.numel()), static_cast<float>(a), static_cast<float>(b)));
}

at::Tensor draw_bits(const at::Tensor& like, int64_t count, const Given& given) {
  at::Tensor bits = at::empty({count}, at::TensorOptions().dtype(at::kInt).device(like.device()));
  draw_into(bits, given, RONDO_DISTRIBUTION_BITS, 0, 0);
  return bits;
}

void launch_node(int device, std::unique_ptr<AtenNode> node, Arguments arguments, const char* name) {
  if (runs_at_once(device)) run_now(device, *node, arguments, name);
  else enqueue(device, std::move(node), arguments, name);
}

namespace {

// Two words of 32 bits a number, low one first, brought into [from, from + range); range 0: all 64 bits.
struct IntegersNode final : AtenNode {
  TensorShape to;
  int64_t count = 0, from = 0;
  uint64_t range = 0;
  const char* title() const override { return "aten::random_"; }
  void work(const uint64_t* words) override {
    const auto* bits = reinterpret_cast<const char*>(words[1]);
    at::Tensor numbers = at::empty({count}, at::kLong);
    auto* out = numbers.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < count; i++) {
      uint64_t number = 0;
      std::memcpy(&number, bits + 8 * i, sizeof number);
      out[i] = static_cast<int64_t>(static_cast<uint64_t>(from) + (range ? number % range : number));
    }
    host_view(to, words[0]).copy_(numbers.view(to.sizes));
  }
};

at::Tensor& integers(at::Tensor& self, int64_t from, uint64_t range, const Given& given) {
  at::assert_no_internal_overlap(self);
  if (!self.numel()) return self;
  c10::DeviceGuard guard(self.device());
  at::Tensor bits = draw_bits(self, self.numel() * 2, given);
  auto node = std::make_unique<IntegersNode>();
  node->to = shape_of(self);
  node->count = self.numel();
  node->from = from;
  node->range = range;
  launch_node(self.device().index(), std::move(node),
              {argument_of(self, RONDO_ACCESS_WRITE), argument_of(bits, RONDO_ACCESS_READ)}, "aten::random_");
  return self;
}

// The least and the greatest integer that the type holds, and up to which it holds all.
struct Bounds {
  int64_t low, high, exact;
};
Bounds bounds_of(at::ScalarType dtype) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max(), kNone = std::numeric_limits<int64_t>::min();
  switch (dtype) {
    case at::kBool: return {0, 1, 1};
    case at::kByte: return {0, 255, 255};
    case at::kChar: return {-128, 127, 127};
    case at::kShort: return {-(1 << 15), (1 << 15) - 1, (1 << 15) - 1};
    case at::kInt: return {-(1ll << 31), (1ll << 31) - 1, (1ll << 31) - 1};
    case at::kLong: return {kNone, kAll, kAll};
    case at::kHalf: return {-65504, 65504, 1ll << 11};
    case at::kBFloat16: return {kNone, kAll, 1ll << 8};
    case at::kFloat: return {kNone, kAll, 1ll << 24};
    case at::kDouble: return {kNone, kAll, 1ll << 53};
    default: TORCH_CHECK_NOT_IMPLEMENTED(false, "random_ is not implemented for ", dtype, " on rondo");
  }
}

at::Tensor& random(at::Tensor& self, Given given) {
  return integers(self, 0, static_cast<uint64_t>(bounds_of(self.scalar_type()).exact) + 1, given);
}

at::Tensor& random_from(at::Tensor& self, int64_t from, std::optional<int64_t> to, Given given) {
  const Bounds bounds = bounds_of(self.scalar_type());
  TORCH_CHECK(from >= bounds.low && from <= bounds.high, "from is out of bounds for ", self.scalar_type());
  if (!to.has_value()) {
    return integers(self, from, static_cast<uint64_t>(bounds.exact) + 1 - static_cast<uint64_t>(from), given);
  }
  TORCH_CHECK(from < *to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", *to);
  TORCH_CHECK(*to - 1 >= bounds.low && *to - 1 <= bounds.high, "to - 1 is out of bounds for ", self.scalar_type());
  return integers(self, from, static_cast<uint64_t>(*to) - static_cast<uint64_t>(from), given);
}

at::Tensor& random_to(at::Tensor& self, int64_t to, Given given) { return random_from(self, 0, to, std::move(given)); }

// 0 to n - 1 by the order of n keys.
struct PermutationNode final : AtenNode {
  TensorShape to;
  int64_t count = 0;
  const char* title() const override { return "aten::randperm"; }
  void work(const uint64_t* words) override {
    std::vector<uint64_t> keys(static_cast<size_t>(count));
    std::memcpy(keys.data(), reinterpret_cast<const void*>(words[1]), keys.size() * sizeof(uint64_t));
    at::Tensor numbers = at::empty({count}, at::kLong);
    auto* out = numbers.mutable_data_ptr<int64_t>();
    std::iota(out, out + count, 0);
    std::stable_sort(out, out + count, [&](int64_t i, int64_t k) {
      return keys[static_cast<size_t>(i)] < keys[static_cast<size_t>(k)];
    });
    host_view(to, words[0]).copy_(numbers);
  }
};

at::Tensor& permutation(int64_t n, Given given, at::Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got ", n);
  TORCH_CHECK(n - 1 <= bounds_of(out.scalar_type()).exact, "n is too large for result tensor type: '", out.toString(), "'");
  at::native::resize_output(out, {n});
  if (!n) return out;
  c10::DeviceGuard guard(out.device());
  at::Tensor bits = draw_bits(out, 2 * n, given);
  auto node = std::make_unique<PermutationNode>();
  node->to = shape_of(out);
  node->count = n;
  launch_node(out.device().index(), std::move(node),
              {argument_of(out, RONDO_ACCESS_WRITE), argument_of(bits, RONDO_ACCESS_READ)}, "aten::randperm");
  return out;
}

at::Tensor& permutation_plain(int64_t n, at::Tensor& out) { return permutation(n, std::nullopt, out); }

struct PickNode final : AtenNode {
  TensorShape to, from;
  int64_t rows = 0, categories = 0, picks = 0;
  bool again = false;
  const char* title() const override { return "aten::multinomial"; }

  static double total(const double* weights, int64_t count) {
    double sum = 0;
    for (int64_t k = 0; k < count; k++) {
      TORCH_CHECK(weights[k] >= 0 && std::isfinite(weights[k]),
                  "probability tensor contains either `inf`, `nan` or element < 0");
      sum += weights[k];
    }
    TORCH_CHECK(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
    return sum;
  }
  // Each pick by itself: where a number of (0, sum) lies.
  void with_replacement(const double* weights, Uniforms& uniforms, int64_t* out) const {
    std::vector<double> ends(static_cast<size_t>(categories));
    std::partial_sum(weights, weights + categories, ends.begin());
    for (int64_t i = 0; i < picks; i++) {
      double where = uniforms.next() * ends.back();
      auto found = std::upper_bound(ends.begin(), ends.end(), where) - ends.begin();
      out[i] = std::min<int64_t>(found, categories - 1);
      while (weights[out[i]] == 0) out[i]--;  // rounding has gone past the last that can be
    }
  }
  // The order in which clocks ring whose rates are the weights.
  void without_replacement(const double* weights, Uniforms& uniforms, int64_t* out) const {
    std::vector<double> times(static_cast<size_t>(categories));
    for (int64_t k = 0; k < categories; k++) {
      double u = uniforms.next();
      times[static_cast<size_t>(k)] = weights[k] > 0 ? -std::log(u) / weights[k] : std::numeric_limits<double>::infinity();
    }
    std::vector<int64_t> order(static_cast<size_t>(categories));
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + picks, order.end(), [&](int64_t i, int64_t k) {
      return times[static_cast<size_t>(i)] < times[static_cast<size_t>(k)];
    });
    std::copy(order.begin(), order.begin() + picks, out);
    TORCH_CHECK(std::isfinite(times[static_cast<size_t>(out[picks - 1])]),
                "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample)");
  }
  void work(const uint64_t* words) override {
    at::Tensor weights = host_view(from, words[1]).to(at::kDouble).contiguous();
    Uniforms uniforms{reinterpret_cast<const uint32_t*>(words[2]), true};
    at::Tensor numbers = at::empty({rows * picks}, at::kLong);
    for (int64_t i = 0; i < rows; i++) {
      const double* row = weights.const_data_ptr<double>() + i * categories;
      int64_t* out = numbers.mutable_data_ptr<int64_t>() + i * picks;
      (void)total(row, categories);
      if (again) with_replacement(row, uniforms, out);
      else without_replacement(row, uniforms, out);
    }
    host_view(to, words[0]).copy_(numbers.view(to.sizes));
  }
};

at::Tensor& pick(const at::Tensor& self, int64_t picks, bool again, Given given, at::Tensor& out) {
  TORCH_CHECK(self.dim() > 0 && self.dim() <= 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(self.is_floating_point(), "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(out.scalar_type() == at::kLong, "multinomial expects Long tensor out, got: ", out.scalar_type());
  TORCH_CHECK(picks > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(again || picks <= self.size(-1), "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  TORCH_CHECK(self.size(-1) > 0, "number of categories is 0");
  auto sizes = self.dim() == 1 ? std::vector<int64_t>{picks} : std::vector<int64_t>{self.size(0), picks};
  at::native::resize_output(out, sizes);
  if (!out.numel()) return out;
  c10::DeviceGuard guard(self.device());
  auto node = std::make_unique<PickNode>();
  node->to = shape_of(out);
  node->from = shape_of(self);
  node->rows = self.dim() == 1 ? 1 : self.size(0);
  node->categories = self.size(-1);
  node->picks = picks;
  node->again = again;
  at::Tensor bits = draw_bits(self, 2 * node->rows * (again ? picks : self.size(-1)), given);
  launch_node(self.device().index(), std::move(node),
              {argument_of(out, RONDO_ACCESS_WRITE), argument_of(self, RONDO_ACCESS_READ),
               argument_of(bits, RONDO_ACCESS_READ)},
              "aten::multinomial");
  return out;
}

at::Tensor pick_new(const at::Tensor& self, int64_t picks, bool again, Given given) {
  at::Tensor out = at::empty({0}, self.options().dtype(at::kLong));
  return pick(self, picks, again, std::move(given), out);
}

RONDO_TORCH_KERNELS(aten, random_integers, m) {
  m.impl("random_", rondo_torch::random);
  m.impl("random_.to", random_to);
  m.impl("random_.from", random_from);
  m.impl("randperm.generator_out", permutation);
  m.impl("randperm.out", permutation_plain);
  m.impl("multinomial", pick_new);
  m.impl("multinomial.out", pick);
}

}  // namespace
}  // namespace rondo_torch
