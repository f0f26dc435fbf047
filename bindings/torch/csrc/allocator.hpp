// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/Allocator.h>

namespace rondo_torch {
// From the device's current stream; freed by the deleter of that device.
c10::DataPtr allocate_on(int device, size_t bytes);
c10::DeleterFnPtr deleter_of(int device);
c10::Allocator* device_allocator();
c10::Allocator* pinned_allocator();
bool is_pinned(const void* pointer);
at::HostStats host_memory_statistics();
// The peaks, or what has been summed up.
void reset_host_memory_statistics(bool peaks);
}  // namespace rondo_torch
