// SPDX-License-Identifier: Apache-2.0
//
// Rondo's devices as PyTorch sees them: which are there, each thread's current device and streams, and statuses as
// exceptions. Everything else of the plugin stands on this.
#pragma once
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <rondo/rondo.h>

#include <mutex>
#include <string>

// What every replay goes through lies side by side: between two calls the interpreter's own code fills the caches.
#define RONDO_HOT __attribute__((hot))

namespace rondo_torch {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
constexpr int kMaxDevices = 16;

// Throws what the status says (its message, then its notes, a line each), or returns. Takes it over.
void check(rondo_status status);
// The text, for who cannot throw. Takes it over.
std::string text_of(rondo_status status);

// The backend that RONDO_TORCH_DEVICE names (cpu, sim), opened at the first use of a device of it.
const char* backend();
rondo_instance* instance();
int device_count() noexcept;
// Throws for an index that is none; where there is none at all it says why.
void check_index(int index);
// Throws for an index that is none, and in a child process of a fork, which has the parent's devices but not its threads.
rondo_device* device(int index);
bool is_open(int index) noexcept;
// This process is a child that was forked after a device had been opened.
bool forked() noexcept;
// Whether calls on the current stream have run when they return.
bool runs_inline(int index);
// -1 stands for the current one.
int index_of(c10::Device device);

int current_device() noexcept;
void set_device(int index);
void set_device_unchecked(int index) noexcept;

// Streams are numbered: 0 is the device's default; the others come from a pool for each priority, as with other devices,
// and live as long as the process.
using StreamId = c10::StreamId;
StreamId current_stream_id(int device) noexcept;
StreamId exchange_stream_id(int device, StreamId id);
// One that is in no pool: nobody else has it.
StreamId new_stream_id(int device);
// The next one of the pool that no capture records. Priority 0, or below for what is more urgent.
StreamId pooled_stream_id(int device, int priority);
// A stream of Rondo's that somebody else has made, and keeps until the process ends.
StreamId external_stream_id(int device, rondo_stream* stream);
rondo_stream* stream_of(int device, StreamId id);
rondo_stream* current_stream(int device);

// Whether a capture records the stream, and which.
bool capturing(rondo_stream* stream, uint64_t* id = nullptr);
// Makes a capture of the stream fail, because something was asked for that it cannot hold.
void spoil_capture(rondo_stream* stream);

void synchronize(int device);
// Held while a capture begins, so that nobody who waits for the whole device meets a stream that has just begun one.
std::mutex& capture_gate(int device);
}  // namespace rondo_torch
