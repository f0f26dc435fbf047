// SPDX-License-Identifier: Apache-2.0
#include "runtime.hpp"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "node.hpp"

namespace rondo_torch {
void queue_tree_line(rondo_log_level level, const char* text);  // tree_manager.cpp
namespace {

void write_line(void*, rondo_log_level level, const char* text) {
  // Trees speak through PyTorch's own logs, as people know them.
  if (std::strncmp(text, "trees: ", 7) == 0) return queue_tree_line(level, text + 7);
  if (level == RONDO_LOG_ERROR || level == RONDO_LOG_WARNING) TORCH_WARN("rondo: ", text);
}

struct Device {
  std::once_flag opened;
  rondo_device* handle = nullptr;
  bool runs_inline = false;
  std::mutex mutex;                     // streams
  std::mutex gate;                      // see capture_gate
  std::vector<rondo_stream*> streams;   // by id; [0] is the default one, borrowed
  std::atomic<size_t> next_pooled{0};
};

struct World {
  rondo_instance* instance = nullptr;
  const char* backend = "cpu";
  int count = 0;
  std::array<Device, kMaxDevices> devices;

  World() {
    const char* wanted = std::getenv("RONDO_TORCH_DEVICE");
    if (wanted && *wanted && std::strcmp(wanted, "none") != 0) backend = wanted;
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    options.log = write_line;
    options.log_level = RONDO_LOG_DEBUG;
    check(rondo_instance_create(&options, &instance));
    uint32_t found = 0;
    check(rondo_device_type_count(instance, backend, &found));
    count = found < kMaxDevices ? static_cast<int>(found) : kMaxDevices;
  }
};

// Never destroyed: tensors may outlive everything else of the process.
World& world() {
  static World* one = new World;
  return *one;
}

constexpr size_t kPooledStreams = 32;

struct Current {
  int device = 0;
  std::array<StreamId, kMaxDevices> streams{};
};
thread_local Current t_current;

Device& at(int index) {
  TORCH_CHECK(index >= 0 && index < device_count(), "rondo: there is no device ", index, "; there are ", device_count());
  return world().devices[static_cast<size_t>(index)];
}

Device& opened(int index) {
  Device& device = at(index);
  std::call_once(device.opened, [&] {
    std::string name = std::string(world().backend) + ":" + std::to_string(index);
    const char* settings = std::getenv("RONDO_TORCH_SETTINGS");
    check(rondo_device_open(world().instance, name.c_str(), settings, &device.handle));
    device.runs_inline = (rondo_device_info(device.handle)->capabilities & RONDO_DEVICE_INLINE) != 0;
    device.streams.push_back(rondo_stream_default(device.handle));
  });
  return device;
}

StreamId make_stream(Device& device) {
  rondo_stream* stream = nullptr;
  check(rondo_stream_create(device.handle, nullptr, &stream));
  std::lock_guard<std::mutex> lock(device.mutex);
  device.streams.push_back(stream);
  return static_cast<StreamId>(device.streams.size() - 1);
}

}  // namespace

std::string text_of(rondo_status status) {
  std::string text = rondo_status_message(status);
  for (size_t i = 0; i < rondo_status_note_count(status); i++) {
    text += "\n  ";
    text += rondo_status_note(status, i);
  }
  rondo_status_release(status);
  return text;
}

void check(rondo_status status) {
  if (!status) return;
  rondo_code code = rondo_status_code(status);
  std::string text = "rondo: " + text_of(status);
  if (code == RONDO_CODE_KERNEL_FAILED) {
    std::string why = take_failure();
    if (!why.empty()) text += "\n  " + why;
  }
  if (code == RONDO_CODE_OUT_OF_MEMORY) TORCH_CHECK_WITH(OutOfMemoryError, false, text);
  if (code == RONDO_CODE_UNSUPPORTED) TORCH_CHECK_NOT_IMPLEMENTED(false, text);
  TORCH_CHECK(false, text);
}

const char* backend() { return world().backend; }
rondo_instance* instance() { return world().instance; }

int device_count() noexcept {
  try {
    return world().count;
  } catch (...) {
    return 0;
  }
}

rondo_device* device(int index) { return opened(index).handle; }
bool runs_inline(int index) { return opened(index).runs_inline; }

int index_of(c10::Device device) { return device.index() < 0 ? current_device() : device.index(); }

int current_device() noexcept { return t_current.device; }

void set_device(int index) {
  (void)at(index);
  t_current.device = index;
}

void set_device_unchecked(int index) noexcept {
  if (index >= 0 && index < kMaxDevices) t_current.device = index;
}

StreamId current_stream_id(int device) noexcept { return t_current.streams[static_cast<size_t>(device)]; }

StreamId exchange_stream_id(int device, StreamId id) {
  (void)stream_of(device, id);
  StreamId before = t_current.streams[static_cast<size_t>(device)];
  t_current.streams[static_cast<size_t>(device)] = id;
  return before;
}

StreamId new_stream_id(int device) { return make_stream(opened(device)); }

StreamId pooled_stream_id(int index) {
  Device& device = opened(index);
  size_t number = device.next_pooled.fetch_add(1);
  if (number < kPooledStreams) return make_stream(device);
  std::lock_guard<std::mutex> lock(device.mutex);
  size_t others = device.streams.size() - 1;
  return static_cast<StreamId>(1 + number % others);
}

rondo_stream* stream_of(int index, StreamId id) {
  Device& device = opened(index);
  std::lock_guard<std::mutex> lock(device.mutex);
  TORCH_CHECK(id >= 0 && static_cast<size_t>(id) < device.streams.size(), "rondo: device ", index, " has no stream ", id);
  return device.streams[static_cast<size_t>(id)];
}

rondo_stream* current_stream(int device) { return stream_of(device, current_stream_id(device)); }

bool capturing(rondo_stream* stream, uint64_t* id) {
  rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
  check(rondo_stream_capture_status(stream, &status));
  if (id) *id = status.id;
  return status.active != 0;
}

void spoil_capture(rondo_stream* stream) {
  // To wait for a stream that captures is what no capture bears.
  if (capturing(stream)) rondo_status_release(rondo_stream_synchronize(stream));
}

std::mutex& capture_gate(int index) { return at(index).gate; }

void synchronize(int index) {
  Device& device = opened(index);
  size_t count = 0;
  {
    std::lock_guard<std::mutex> lock(device.mutex);
    count = device.streams.size();
  }
  TORCH_CHECK(!capturing(current_stream(index)), "rondo: the device cannot be waited for while the current stream captures");
  for (size_t i = 0; i < count; i++) {
    rondo_stream* stream = stream_of(index, static_cast<StreamId>(i));
    std::lock_guard<std::mutex> gate(device.gate);
    if (!capturing(stream)) check(rondo_stream_synchronize(stream));
  }
}

}  // namespace rondo_torch
