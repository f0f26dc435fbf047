// SPDX-License-Identifier: Apache-2.0
//
// What kernels of random numbers are made of: draws that a replay makes anew, and numbers from their bits.
#pragma once
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <rondo/rondo.h>

#include <memory>

#include "node.hpp"
#include "runtime.hpp"

namespace rondo_torch {

using Given = std::optional<at::Generator>;

// Compact numbers of the distribution's own type into the tensor, which is compact and on the current device.
void draw_into(const at::Tensor& numbers, const Given& given, rondo_distribution distribution, double a, double b);
// So many times 32 bits, on the device of `like`.
at::Tensor draw_bits(const at::Tensor& like, int64_t count, const Given& given);
// Now, where calls run at once, with what it throws; else later.
void launch_node(int device, std::unique_ptr<AtenNode> node, Arguments arguments, const char* name);

// Numbers of (0, 1), neither 0 nor 1, of 32 or of 53 bits.
struct Uniforms {
  const uint32_t* bits;
  bool wide;
  double next() {
    if (!wide) return (static_cast<double>(*bits++) + 0.5) * 0x1p-32;
    uint64_t both = bits[0] | (static_cast<uint64_t>(bits[1]) << 32);
    bits += 2;
    return (static_cast<double>(both >> 12) + 0.5) * 0x1p-52;
  }
};

}  // namespace rondo_torch
