// SPDX-License-Identifier: Apache-2.0
#include "runtime.hpp"

#include <c10/util/Exception.h>

#include <pthread.h>

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

constexpr size_t kStreams = 1024, kPooled = 32;

struct Device {
  std::once_flag once;
  std::atomic<rondo_device*> handle{nullptr};
  bool runs_inline = false;
  std::mutex mutex;  // for a stream more
  std::mutex gate;   // see capture_gate
  std::array<std::atomic<rondo_stream*>, kStreams> streams{};  // by id; [0] is the default one, borrowed
  std::array<std::atomic<bool>, kStreams> foreign{};           // who knows how they run
  std::atomic<size_t> count{0};
  struct Pool {
    std::vector<StreamId> ids;
    size_t next = 0;
  } pools[2];  // of priority 0, and of those more urgent
};

std::atomic<bool> g_open{false}, g_forked{false};

struct World {
  rondo_instance* instance = nullptr;
  const char* backend = "cpu";
  std::string why_none;  // of no devices
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
    rondo_status status = rondo_device_type_count(instance, backend, &found);
    if (status) why_none = std::string(" (RONDO_TORCH_DEVICE=") + backend + ": " + text_of(status) + ")";
    count = found < kMaxDevices ? static_cast<int>(found) : kMaxDevices;
  }
};

// Never destroyed: tensors may outlive everything else of the process.
World& world() {
  static World* one = new World;
  return *one;
}

struct Current {
  int device = 0;
  std::array<StreamId, kMaxDevices> streams{};
  std::array<rondo_stream*, kMaxDevices> handles{};  // of those, where somebody has asked; they live as long as the process
};
thread_local Current t_current;

Device& at(int index) {
  check_index(index);
  return world().devices[static_cast<size_t>(index)];
}

Device& opened(int index) {
  Device& device = at(index);
  TORCH_CHECK(!g_forked.load(std::memory_order_relaxed),
              "rondo: Cannot re-initialize rondo in a forked subprocess. To use rondo with multiprocessing, you must use "
              "the 'spawn' start method");
  if (device.handle.load(std::memory_order_acquire)) return device;
  std::call_once(device.once, [&] {
    std::string name = std::string(world().backend) + ":" + std::to_string(index);
    const char* settings = std::getenv("RONDO_TORCH_SETTINGS");
    rondo_device* handle = nullptr;
    check(rondo_device_open(world().instance, name.c_str(), settings, &handle));
    device.runs_inline = (rondo_device_info(handle)->capabilities & RONDO_DEVICE_INLINE) != 0;
    device.streams[0] = rondo_stream_default(handle);
    device.count = 1;
    if (!g_open.exchange(true)) (void)pthread_atfork(nullptr, nullptr, [] { g_forked = true; });
    device.handle.store(handle, std::memory_order_release);
  });
  return device;
}

// Under the device's mutex.
StreamId add_stream(Device& device, rondo_stream* stream, bool foreign) {
  size_t id = device.count.load();
  TORCH_CHECK(id < kStreams, "rondo: a device has at most ", kStreams, " streams");
  device.foreign[id] = foreign;
  device.streams[id] = stream;
  device.count.store(id + 1, std::memory_order_release);
  return static_cast<StreamId>(id);
}

// Under the device's mutex.
StreamId make_stream(Device& device, int priority) {
  TORCH_CHECK(device.count.load() < kStreams, "rondo: a device has at most ", kStreams, " streams");
  rondo_stream_options options = RONDO_STREAM_OPTIONS_INIT;
  options.priority = priority;
  rondo_stream* stream = nullptr;
  check(rondo_stream_create(device.handle, &options, &stream));
  return add_stream(device, stream, false);
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

void check_index(int index) {
  TORCH_CHECK(index >= 0 && index < device_count(), "rondo: there is no device ", index, "; there are ", device_count(),
              world().why_none);
}

rondo_device* device(int index) { return opened(index).handle; }
bool is_open(int index) noexcept {
  return index >= 0 && index < device_count() && world().devices[static_cast<size_t>(index)].handle.load();
}
bool forked() noexcept { return g_forked.load(std::memory_order_relaxed); }
bool runs_inline(int index) {
  Device& device = opened(index);
  return device.runs_inline && !device.foreign[static_cast<size_t>(current_stream_id(index))];
}

int index_of(c10::Device device) { return device.index() < 0 ? current_device() : device.index(); }

int current_device() noexcept { return t_current.device; }

void set_device(int index) {
  (void)at(index);
  t_current.device = index;
}

void set_device_unchecked(int index) noexcept {
  if (index >= 0 && index < kMaxDevices) t_current.device = index;
}

RONDO_HOT StreamId current_stream_id(int device) noexcept { return t_current.streams[static_cast<size_t>(device)]; }

StreamId exchange_stream_id(int device, StreamId id) {
  rondo_stream* stream = stream_of(device, id);
  t_current.handles[static_cast<size_t>(device)] = stream;
  return std::exchange(t_current.streams[static_cast<size_t>(device)], id);
}

StreamId new_stream_id(int index) {
  Device& device = opened(index);
  std::lock_guard<std::mutex> lock(device.mutex);
  return make_stream(device, 0);
}

StreamId pooled_stream_id(int index, int priority) {
  Device& device = opened(index);
  std::lock_guard<std::mutex> lock(device.mutex);
  auto& pool = device.pools[priority < 0];
  if (pool.ids.size() < kPooled) {
    pool.ids.push_back(make_stream(device, priority));
    return pool.ids.back();
  }
  for (size_t tried = 0;; tried++) {
    StreamId id = pool.ids[pool.next++ % kPooled];
    if (tried >= kPooled || !capturing(device.streams[static_cast<size_t>(id)])) return id;
  }
}

StreamId external_stream_id(int index, rondo_stream* stream) {
  Device& device = opened(index);
  TORCH_CHECK(stream && rondo_stream_device(stream) == device.handle, "rondo: that is no stream of device ", index);
  std::lock_guard<std::mutex> lock(device.mutex);
  for (size_t i = 0; i < device.count; i++) {
    if (device.streams[i] == stream) return static_cast<StreamId>(i);
  }
  rondo_stream_retain(stream);
  return add_stream(device, stream, true);
}

RONDO_HOT rondo_stream* stream_of(int index, StreamId id) {
  Device& device = opened(index);
  TORCH_CHECK(id >= 0 && static_cast<size_t>(id) < device.count.load(std::memory_order_acquire), "rondo: device ", index,
              " has no stream ", id);
  return device.streams[static_cast<size_t>(id)].load(std::memory_order_relaxed);
}

RONDO_HOT rondo_stream* current_stream(int device) {
  TORCH_CHECK(device >= 0 && device < kMaxDevices, "rondo: there is no device ", device);
  rondo_stream*& known = t_current.handles[static_cast<size_t>(device)];
  if (!known || g_forked.load(std::memory_order_relaxed)) known = stream_of(device, current_stream_id(device));
  return known;
}

RONDO_HOT bool capturing(rondo_stream* stream, uint64_t* id) {
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
  size_t count = device.count.load(std::memory_order_acquire);
  TORCH_CHECK(!capturing(current_stream(index)), "rondo: the device cannot be waited for while the current stream captures");
  for (size_t i = 0; i < count; i++) {
    rondo_stream* stream = stream_of(index, static_cast<StreamId>(i));
    std::lock_guard<std::mutex> gate(device.gate);
    if (!capturing(stream)) check(rondo_stream_synchronize(stream));
  }
}

}  // namespace rondo_torch
