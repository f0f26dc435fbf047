// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/Generator.h>
#include <rondo/rondo.h>

#include <optional>

namespace rondo_torch {
// Index -1: the current device.
const at::Generator& default_generator(c10::DeviceIndex index);
// Of a device that has not been opened: when it is.
void seed_default_generator(c10::DeviceIndex index, uint64_t seed);
at::Generator make_generator(c10::DeviceIndex index);
// Rondo's, behind the one given or else the device's default one. Throws for a generator of another device.
rondo_generator* generator_handle(const std::optional<at::Generator>& given, int device);
}  // namespace rondo_torch
