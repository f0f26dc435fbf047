// SPDX-License-Identifier: Apache-2.0
//
// Random numbers: Rondo's own fills, which draw anew at each replay, and calls that make other distributions of their
// bits. What is not here (poisson, gamma, ...) goes through the boxed path, with a seed that is drawn anew.
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cmath>

#include "ops.hpp"
#include "random.hpp"
#include "registration.hpp"

namespace rondo_torch {
namespace {

// One uniform number a random one, or two.
enum class Kind { kUniform, kNormal, kExponential, kGeometric, kLogNormal, kCauchy };

double transform(Kind kind, double a, double b, double u, double v) {
  constexpr double kPi = 3.14159265358979323846;
  switch (kind) {
    case Kind::kUniform: return a + u * (b - a);
    case Kind::kNormal: return a + b * std::sqrt(-2 * std::log(u)) * std::cos(2 * kPi * v);
    case Kind::kExponential: return -std::log(u) / a;
    case Kind::kGeometric: return std::ceil(std::log(u) / std::log1p(-a));
    case Kind::kLogNormal: return std::exp(a + b * std::sqrt(-2 * std::log(u)) * std::cos(2 * kPi * v));
    default: return a + b * std::tan(kPi * (u - 0.5));
  }
}

struct TransformNode final : AtenNode {
  TensorShape to;
  Kind kind = Kind::kUniform;
  double a = 0, b = 0;
  int64_t count = 0;
  bool wide = false, two = false;
  const char* name = "";
  const char* title() const override { return name; }
  void work(const uint64_t* words) override {
    Uniforms uniforms{reinterpret_cast<const uint32_t*>(words[1]), wide};
    at::Tensor numbers = at::empty({count}, at::kDouble);
    auto* out = numbers.mutable_data_ptr<double>();
    for (int64_t i = 0; i < count; i++) {
      double u = uniforms.next();
      double v = two ? uniforms.next() : 0;
      out[i] = transform(kind, a, b, u, v);
    }
    host_view(to, words[0]).copy_(numbers.view(to.sizes));
  }
};

at::Tensor& transformed(at::Tensor& self, const Given& given, Kind kind, double a, double b, const char* name) {
  TORCH_CHECK(self.is_floating_point() || kind == Kind::kGeometric, name, " is not implemented for ", self.scalar_type(),
              " on rondo");
  at::assert_no_internal_overlap(self);
  if (!self.numel()) return self;
  c10::DeviceGuard guard(self.device());
  auto node = std::make_unique<TransformNode>();
  node->to = shape_of(self);
  node->kind = kind;
  node->a = a;
  node->b = b;
  node->count = self.numel();
  node->wide = self.scalar_type() == at::kDouble;
  node->two = kind == Kind::kNormal || kind == Kind::kLogNormal;
  node->name = name;
  at::Tensor bits = draw_bits(self, self.numel() * (node->wide ? 2 : 1) * (node->two ? 2 : 1), given);
  launch_node(self.device().index(), std::move(node),
              {argument_of(self, RONDO_ACCESS_WRITE), argument_of(bits, RONDO_ACCESS_READ)}, name);
  return self;
}

// Float32 is what Rondo's own fills make, compact tensors without a step between.
at::Tensor& filled(at::Tensor& self, const Given& given, rondo_distribution distribution, double a, double b) {
  at::assert_no_internal_overlap(self);
  if (!self.numel()) return self;
  c10::DeviceGuard guard(self.device());
  bool direct = self.scalar_type() == at::kFloat && self.is_contiguous();
  at::Tensor numbers = direct ? self : at::empty(self.sizes(), self.options().dtype(at::kFloat));
  draw_into(numbers, given, distribution, a, b);
  if (!direct) enqueue_copy(self, numbers);
  return self;
}

bool fits_float(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}

at::Tensor& uniform(at::Tensor& self, double from, double to, Given given) {
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  if (self.is_complex()) {
    at::Tensor parts = at::view_as_real(self);
    uniform(parts, from, to, given);
    return self;
  }
  if (fits_float(self)) return filled(self, given, RONDO_DISTRIBUTION_UNIFORM, from, to);
  return transformed(self, given, Kind::kUniform, from, to, "aten::uniform_");
}

at::Tensor& normal(at::Tensor& self, double mean, double std, Given given) {
  TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  if (self.is_complex()) {
    at::Tensor parts = at::view_as_real(self);
    normal(parts, 0, std / std::sqrt(2.0), given);
    if (mean != 0) self.add_(mean);
    return self;
  }
  if (fits_float(self)) return filled(self, given, RONDO_DISTRIBUTION_NORMAL, mean, std);
  return transformed(self, given, Kind::kNormal, mean, std, "aten::normal_");
}

at::Tensor& exponential(at::Tensor& self, double lambda, Given given) {
  TORCH_CHECK(lambda > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  return transformed(self, given, Kind::kExponential, lambda, 0, "aten::exponential_");
}

at::Tensor& geometric(at::Tensor& self, double p, Given given) {
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  return transformed(self, given, Kind::kGeometric, p, 0, "aten::geometric_");
}

at::Tensor& log_normal(at::Tensor& self, double mean, double std, Given given) {
  TORCH_CHECK(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
  return transformed(self, given, Kind::kLogNormal, mean, std, "aten::log_normal_");
}

at::Tensor& cauchy(at::Tensor& self, double median, double sigma, Given given) {
  TORCH_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  return transformed(self, given, Kind::kCauchy, median, sigma, "aten::cauchy_");
}

at::Tensor& bernoulli(at::Tensor& self, double p, Given given) {
  TORCH_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  at::assert_no_internal_overlap(self);
  if (!self.numel()) return self;
  c10::DeviceGuard guard(self.device());
  at::Tensor numbers = at::empty(self.sizes(), self.options().dtype(at::kByte));
  draw_into(numbers, given, RONDO_DISTRIBUTION_BERNOULLI, p, 0);
  enqueue_copy(self, numbers);
  return self;
}

struct BernoulliNode final : AtenNode {
  TensorShape to, from;
  const char* title() const override { return "aten::bernoulli_.Tensor"; }
  void work(const uint64_t* words) override {
    at::Tensor p = host_view(from, words[1]).to(at::kDouble).contiguous();
    Uniforms uniforms{reinterpret_cast<const uint32_t*>(words[2]), true};
    at::Tensor numbers = at::empty({p.numel()}, at::kBool);
    auto* out = numbers.mutable_data_ptr<bool>();
    const auto* chance = p.const_data_ptr<double>();
    for (int64_t i = 0; i < p.numel(); i++) {
      TORCH_CHECK(chance[i] >= 0 && chance[i] <= 1, "Expected p_in >= 0 && p_in <= 1 to be true, but got ", chance[i]);
      out[i] = uniforms.next() < chance[i];
    }
    host_view(to, words[0]).copy_(numbers.view(to.sizes));
  }
};

at::Tensor& bernoulli_tensor(at::Tensor& self, const at::Tensor& p, Given given) {
  at::assert_no_internal_overlap(self);
  TORCH_CHECK(p.is_floating_point(), "bernoulli_ wants probabilities of a floating type, not ", p.scalar_type());
  if (!self.numel()) return self;
  c10::DeviceGuard guard(self.device());
  auto expanded = at::expand_inplace(self, p.device() == self.device() ? p : p.to(self.device()), "bernoulli_");
  auto node = std::make_unique<BernoulliNode>();
  node->to = shape_of(self);
  node->from = shape_of(*expanded);
  at::Tensor bits = draw_bits(self, self.numel() * 2, given);
  launch_node(self.device().index(), std::move(node),
              {argument_of(self, RONDO_ACCESS_WRITE), argument_of(*expanded, RONDO_ACCESS_READ),
               argument_of(bits, RONDO_ACCESS_READ)},
              "aten::bernoulli_.Tensor");
  return self;
}

at::Tensor& bernoulli_out(const at::Tensor& p, Given given, at::Tensor& out) {
  at::native::resize_output(out, p.sizes());
  return bernoulli_tensor(out, p, given);
}

// A normal distribution of means or deviations that are tensors: the standard one, brought there.
void check_deviations(const at::Tensor& std) {
  TORCH_CHECK(!std.is_complex(), "normal expects standard deviation to be non-complex");
  if (!std.numel() || capturing(current_stream(std.device().index()))) return;
  TORCH_CHECK(std.min().ge(0).item<bool>(), "normal expects all elements of std >= 0.0");
}

at::Tensor& normal_tensor_float_out(const at::Tensor& mean, double std, Given given, at::Tensor& out) {
  TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  at::native::resize_output(out, mean.sizes());
  return normal(out, 0, std, given).add_(mean);
}

at::Tensor& normal_float_tensor_out(double mean, const at::Tensor& std, Given given, at::Tensor& out) {
  check_deviations(std);
  at::native::resize_output(out, std.sizes());
  return normal(out, 0, 1, given).mul_(std).add_(mean);
}

at::Tensor& normal_tensor_tensor_out(const at::Tensor& mean, const at::Tensor& std, Given given, at::Tensor& out) {
  check_deviations(std);
  at::native::resize_output(out, at::infer_size(mean.sizes(), std.sizes()));
  return normal(out, 0, 1, given).mul_(std).add_(mean);
}

at::Tensor normal_tensor_float(const at::Tensor& mean, double std, Given given) {
  at::Tensor out = at::empty_like(mean, at::MemoryFormat::Contiguous);
  return normal_tensor_float_out(mean, std, std::move(given), out);
}

at::Tensor normal_float_tensor(double mean, const at::Tensor& std, Given given) {
  at::Tensor out = at::empty_like(std, at::MemoryFormat::Contiguous);
  return normal_float_tensor_out(mean, std, std::move(given), out);
}

at::Tensor normal_tensor_tensor(const at::Tensor& mean, const at::Tensor& std, Given given) {
  at::Tensor out = at::empty(at::infer_size(mean.sizes(), std.sizes()), mean.options());
  return normal_tensor_tensor_out(mean, std, std::move(given), out);
}

std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& input, double p, std::optional<bool> train) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  c10::DeviceGuard guard(input.device());
  if (!train.value_or(true) || p == 0 || !input.numel()) {
    return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  }
  at::Tensor mask = at::empty(input.sizes(), input.options().dtype(at::kBool));
  if (p == 1) return {at::zeros_like(input), mask.zero_()};
  draw_into(mask, std::nullopt, RONDO_DISTRIBUTION_BERNOULLI, 1 - p, 0);
  return {input.mul(mask).mul_(1 / (1 - p)), mask};
}

RONDO_TORCH_KERNELS(aten, random, m) {
  m.impl("uniform_", uniform);
  m.impl("normal_", normal);
  m.impl("normal.Tensor_float", normal_tensor_float);
  m.impl("normal.Tensor_float_out", normal_tensor_float_out);
  m.impl("normal.float_Tensor", normal_float_tensor);
  m.impl("normal.float_Tensor_out", normal_float_tensor_out);
  m.impl("normal.Tensor_Tensor", normal_tensor_tensor);
  m.impl("normal.Tensor_Tensor_out", normal_tensor_tensor_out);
  m.impl("bernoulli_.float", bernoulli);
  m.impl("bernoulli_.Tensor", bernoulli_tensor);
  m.impl("bernoulli.out", bernoulli_out);
  m.impl("exponential_", exponential);
  m.impl("geometric_", geometric);
  m.impl("log_normal_", log_normal);
  m.impl("cauchy_", cauchy);
  m.impl("native_dropout", dropout);
}

}  // namespace
}  // namespace rondo_torch
