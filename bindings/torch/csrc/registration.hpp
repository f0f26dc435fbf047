// SPDX-License-Identifier: Apache-2.0
//
// What makes the device known to PyTorch is registered when that is asked for, and not when the library is loaded:
// PyTorch has room for one device of its kind, and where another package has taken it the rest of this one works.
#pragma once
#include <torch/library.h>

namespace rondo_torch {

// A function that register_device calls.
struct Registration {
  explicit Registration(void (*function)());
};
// Once; later calls do nothing.
void register_device();

}  // namespace rondo_torch

// Like TORCH_LIBRARY_IMPL(ns, key, m); `id` names the block.
#define RONDO_TORCH_KERNELS_OF(ns, key, id, m)                                                            \
  static void kernels_of_##id(torch::Library&);                                                           \
  static const rondo_torch::Registration registration_of_##id([] {                                        \
    /* never destroyed: PyTorch's dispatcher may be gone by then */                                       \
    auto* library = new torch::Library(torch::Library::IMPL, #ns, c10::DispatchKey::key, __FILE__, __LINE__); \
    kernels_of_##id(*library);                                                                            \
  });                                                                                                     \
  static void kernels_of_##id(torch::Library& m)
#define RONDO_TORCH_KERNELS(ns, id, m) RONDO_TORCH_KERNELS_OF(ns, PrivateUse1, id, m)
