// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <acl/acl.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>
#include <string>

namespace npu {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

// Throws what the driver says, with the call's name and the error's number.
void check(aclError error, const char* call);
#define NPU_CALL(function, ...) ::npu::check(function(__VA_ARGS__), #function)

int current_device();
void set_current_device(int index);
// The device becomes the thread's for the driver, too.
void enter(int device);
// The driver's stream.
aclrtStream native(const c10::Stream& stream);
// The driver's, which the thread has chosen for the device.
aclrtStream current_stream(int device);
// The driver's graph that records the stream, or null.
aclmdlRI capture_of(aclrtStream stream);

c10::Allocator* memory();

// A function of the host's as a kernel of the device's current stream. A capture keeps it as long as its graph lives.
void launch(int device, std::function<void()> work);

}  // namespace npu
