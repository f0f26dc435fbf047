// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's generator over Rondo's: the numbers of a capture are new at each replay.
#include "generator.hpp"

#include <ATen/Utils.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <c10/core/GeneratorImpl.h>

#include <array>
#include <cstring>
#include <mutex>

#include "runtime.hpp"

namespace rondo_torch {
namespace {

struct Generator final : c10::GeneratorImpl {
  explicit Generator(int index)
      : GeneratorImpl({kType, static_cast<c10::DeviceIndex>(index)}, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {
    check(rondo_generator_create(device(index), c10::default_rng_seed_val, &handle));
  }
  ~Generator() override { rondo_generator_release(handle); }
  static c10::DeviceType device_type() { return kType; }

  // A graph draws from what the state is at each replay: a seed that is set in a capture would act once, now.
  void set_current_seed(uint64_t seed) override {
    int index = device_.index();
    TORCH_CHECK(!capturing(current_stream(index)) || has_seed(seed),
                "rondo: a generator's seed cannot be changed while the current stream captures: set it before the capture, "
                "or before a replay");
    set_seed(seed);
  }
  // False too where a capture draws from the generator, whose seed is then nobody's to ask for.
  bool has_seed(uint64_t seed) const {
    uint64_t now = 0;
    rondo_status status = rondo_generator_get_seed(handle, &now);
    bool known = !status;
    rondo_status_release(status);
    return known && now == seed;
  }
  void set_seed(uint64_t seed) { check(rondo_generator_set_seed(handle, seed)); }
  uint64_t current_seed() const override {
    uint64_t seed = 0;
    check(rondo_generator_get_seed(handle, &seed));
    return seed;
  }
  uint64_t seed() override {
    uint64_t fresh = c10::detail::getNonDeterministicRandom(true);
    set_current_seed(fresh);
    return fresh;
  }
  void set_offset(uint64_t offset) override { check(rondo_generator_set_offset(handle, offset)); }
  uint64_t get_offset() const override {
    uint64_t offset = 0;
    check(rondo_generator_get_offset(handle, &offset));
    return offset;
  }
  // Seed, then offset, 8 bytes each: as the other devices keep it.
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor state = at::detail::empty_cpu({16}, at::kByte);
    uint64_t words[2] = {current_seed(), get_offset()};
    std::memcpy(state.mutable_data_ptr(), words, sizeof words);
    return state.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == 16, "rondo: a generator's state has 16 bytes, not ", state.numel());
    uint64_t words[2];
    std::memcpy(words, state.data(), sizeof words);
    set_current_seed(words[0]);
    set_offset(words[1]);
  }
  // One state for two generators, which a graph's host may exchange.
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    auto other = c10::make_intrusive<Generator>(static_cast<int>(device().index()));
    other->share(*this);
    return other;
  }
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) override {
    auto* known = dynamic_cast<Generator*>(other.get());
    TORCH_CHECK(known && known->device() == device(), "rondo: the state is of a generator of another device");
    share(*known);
  }
  void share(const Generator& other) {
    rondo_generator_retain(other.handle);
    rondo_generator_release(handle);
    handle = other.handle;
  }
  Generator* clone_impl() const override {
    auto* copy = new Generator(device().index());
    copy->set_seed(current_seed());
    copy->set_offset(get_offset());
    return copy;
  }
  // The base hides the namespace's function of that name.
  static rondo_device* device(int index) { return rondo_torch::device(index); }
  c10::Device device() const { return device_; }

  rondo_generator* handle = nullptr;
};

std::mutex g_mutex;
std::array<at::Generator, kMaxDevices>& defaults() {
  static auto* all = new std::array<at::Generator, kMaxDevices>;
  return *all;
}

std::array<std::optional<uint64_t>, kMaxDevices>& pending_seeds() {
  static auto* all = new std::array<std::optional<uint64_t>, kMaxDevices>;
  return *all;
}

int index_or_current(c10::DeviceIndex index) { return index < 0 ? current_device() : index; }

}  // namespace

at::Generator make_generator(c10::DeviceIndex index) { return at::make_generator<Generator>(index_or_current(index)); }

const at::Generator& default_generator(c10::DeviceIndex index) {
  int which = index_or_current(index);
  check_index(which);
  std::lock_guard<std::mutex> lock(g_mutex);
  at::Generator& generator = defaults()[static_cast<size_t>(which)];
  if (!generator.defined()) {
    generator = make_generator(static_cast<c10::DeviceIndex>(which));
    auto& seed = pending_seeds()[static_cast<size_t>(which)];
    if (seed) static_cast<Generator*>(generator.unsafeGetGeneratorImpl())->set_seed(*seed);
    seed.reset();
  }
  return generator;
}

void seed_default_generator(c10::DeviceIndex index, uint64_t seed) {
  int which = index_or_current(index);
  check_index(which);
  std::lock_guard<std::mutex> lock(g_mutex);
  at::Generator& generator = defaults()[static_cast<size_t>(which)];
  if (generator.defined()) generator.set_current_seed(seed);
  else pending_seeds()[static_cast<size_t>(which)] = seed;
}

rondo_generator* generator_handle(const std::optional<at::Generator>& given, int index) {
  const at::Generator& chosen =
      given.has_value() && given->defined() ? *given : default_generator(static_cast<c10::DeviceIndex>(index));
  TORCH_CHECK(chosen.device().type() == kType, "Expected a 'rondo' device type for generator but found '",
              chosen.device().type(), "'");
  // A generator of this device brings a tensor of the host here, too.
  TORCH_CHECK(index >= 0, "Expected a 'cpu' device type for generator but found '", chosen.device().type(), "'");
  TORCH_CHECK(chosen.device().index() == index, "rondo: the generator is on ", chosen.device(), ", the tensor on ",
              c10::Device(kType, static_cast<c10::DeviceIndex>(index)));
  return static_cast<Generator*>(chosen.unsafeGetGeneratorImpl())->handle;
}

}  // namespace rondo_torch
