// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace second {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
constexpr int kDevices = 2;
using PoolId = c10::MempoolId_t;

struct Recording {
  int device = 0;
  PoolId pool{0, 0};
  std::string broken;  // why it cannot become a graph
  std::vector<std::function<void()>> calls;
};

int current_device();
void set_current_device(int index);
c10::StreamId current_stream(int device);
// Null unless a capture records the device's current stream.
std::shared_ptr<Recording> recording(int device);
void record(int device, c10::StreamId stream, std::shared_ptr<Recording> into);
void stop_recording(const std::shared_ptr<Recording>& which);
// Now, or in the graph.
void enqueue(int device, std::function<void()> call);
// Throws and breaks the capture when there is one.
void refuse(int device, const std::string& what);

c10::Allocator* memory();
void register_memory();
c10::DataPtr allocate(int device, size_t bytes);
// Which allocations go to the pool: of a thread, or of a capture.
void begin_thread_pool(int device, PoolId pool);
void begin_capture_pool(const std::shared_ptr<Recording>& capture);
void end_pool(int device, PoolId pool);
void release_pool(int device, PoolId pool);
PoolId new_pool(bool of_the_user);
void bind_memory(pybind11::module& m);

}  // namespace second
