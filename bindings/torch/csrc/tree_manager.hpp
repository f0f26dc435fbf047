// SPDX-License-Identifier: Apache-2.0
//
// Trees by device, user thread and options. A thread of the autograd engine that runs a backward belongs to the thread that
// asked for it. Nothing here outlives its functions but what tensors still hold.
#pragma once
#include <rondo/rondo.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tree_host.hpp"

namespace rondo_torch {

// What of rondo_tree_options a function was compiled with. Functions with other choices are in another tree.
struct TreeChoices {
  uint32_t record_after = 2, always_warm_up = 0, rerecord_limit = 128, size_limit = 0, size_warning = 8, recording_limit = 4096,
           loop_limit = 8, seal_after = 16, cost_samples = 0, strict = 0, check_pool = 1, conflict = 0;
  uint64_t byte_limit = 0;
  bool operator==(const TreeChoices& other) const { return words() == other.words(); }

 private:
  std::array<uint64_t, 13> words() const {
    return {record_after, always_warm_up, rerecord_limit, size_limit,   size_warning, recording_limit, loop_limit,
            seal_after,   cost_samples,   strict,         check_pool,   conflict,     byte_limit};
  }
};

// The calling thread's, or that of the thread whose backward it runs.
uint64_t current_context();

struct Manager {
  Manager(c10::Device where, PyObject* adapter, uint64_t context, const TreeChoices& choices);
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  const c10::Device where;
  const int device;  // its index
  PyObject* const adapter;  // of another package's device; the host has it
  const uint64_t context;
  const TreeChoices choices;
  TreeLock lock;
  Host* host = nullptr;  // the tree's
  rondo_tree* tree = nullptr;
  std::vector<uint32_t> dead_functions;  // to be removed by who leaves the tree next
  uint32_t calls = 0;                    // that are inside; under the interpreter's lock, as the next
  std::shared_ptr<Manager> kept;         // itself, once nobody else has it in the middle of a call

  void remove_function(uint32_t id);
  void bury();
};

// Inside a tree: for one call, or the outer one's.
class Inside {
 public:
  explicit Inside(Manager& manager) : manager_(manager), outer_(manager.lock.acquire()) {}
  ~Inside() {
    if (!outer_) return;
    manager_.bury();
    manager_.lock.release();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  bool outer() const { return outer_; }

 private:
  Manager& manager_;
  bool outer_;
};

// A call may reset all trees: its own outlives it. A count under the interpreter's lock, where a shared pointer's are locked
// instructions.
class Calling {
 public:
  explicit Calling(Manager& manager) : manager_(manager) { manager_.calls++; }
  ~Calling() {
    if (--manager_.calls || !manager_.kept) return;
    std::shared_ptr<Manager> last = std::move(manager_.kept);
  }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

 private:
  Manager& manager_;
};

std::shared_ptr<Manager> manager_for(c10::Device where, PyObject* adapter, uint64_t context, const TreeChoices& choices);
// Those that are alive; of one device and context, or with -1 and 0 all.
std::vector<std::shared_ptr<Manager>> managers(int device, uint64_t context);
// The process is a child: trees of the parent, whose threads may have been inside, are nobody's.
void forget_managers_after_fork();

// Lines of trees for PyTorch's logs, which only somebody with the interpreter's lock can write.
void queue_tree_line(rondo_log_level level, const char* text);
bool tree_lines_waiting();
std::vector<std::pair<rondo_log_level, std::string>> take_tree_lines();

}  // namespace rondo_torch
