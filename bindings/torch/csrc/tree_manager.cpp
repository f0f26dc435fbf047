// SPDX-License-Identifier: Apache-2.0
#include "tree_manager.hpp"

#include <ATen/ThreadLocalPythonObjects.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <map>

#include "tree_foreign.hpp"
#include "tree_stream.hpp"

namespace rondo_torch {
namespace {

// Short enough to need no memory when it is looked up.
constexpr const char* kContext = "rondo_context";

std::atomic<uint64_t> g_next_context{1};
std::atomic<uint64_t> g_next_tree{1};
thread_local uint64_t t_context = 0;
// A child process finds the parent's trees in memory, and must not use them.
std::atomic<uint64_t> g_generation{0};
thread_local uint64_t t_generation = 0;

// Of a thread of the autograd engine whose task's caller has none.
thread_local uint64_t t_worker_context = 0;

bool is_of_this_process() { return t_generation == g_generation.load(std::memory_order_relaxed); }

uint64_t make_context(uint64_t* context) {
  if (!is_of_this_process()) t_context = t_worker_context = 0;
  t_generation = g_generation.load(std::memory_order_relaxed);
  if (*context) return *context;
  *context = g_next_context.fetch_add(1);
  PyObject* number = PyLong_FromUnsignedLongLong(*context);
  if (!number) throw python_error();
  at::impl::ThreadLocalPythonObjects::set(kContext, std::make_shared<c10::SafePyObject>(number, getPyInterpreter()));
  return *context;
}

[[gnu::noinline]] uint64_t find_context() {
  if (torch::autograd::get_current_graph_task_id() == -1) return make_context(&t_context);
  if (!at::impl::ThreadLocalPythonObjects::contains(kContext)) return make_context(&t_worker_context);
  const auto& of_caller = at::impl::ThreadLocalPythonObjects::get(kContext);
  unsigned long long context = PyLong_AsUnsignedLongLong(of_caller->ptr(getPyInterpreter()));
  if (PyErr_Occurred()) throw python_error();
  return context;
}

// Under the interpreter's lock.
std::vector<std::weak_ptr<Manager>>& all_managers() {
  static auto* all = new std::vector<std::weak_ptr<Manager>>;
  return *all;
}

struct Lines {
  std::mutex mutex;
  std::vector<std::pair<rondo_log_level, std::string>> waiting;
};
std::atomic<bool> g_lines_waiting{false};
Lines& lines() {
  static auto* one = new Lines;
  return *one;
}

}  // namespace

RONDO_HOT uint64_t current_context() {
  // A backward in the caller's own thread is the caller's, too; a thread of the engine's has no context of its own.
  if (t_context && is_of_this_process()) return t_context;
  return find_context();
}

Manager::Manager(c10::Device of, PyObject* given_adapter, uint64_t user, const TreeChoices& given)
    : where(of), device(of.index()), adapter(given_adapter), context(user), choices(given) {
  rondo_graph_ops ops = adapter ? foreign_operations(adapter) : tree_operations(device);
  host = new Host(where, adapter);
  host->lock = &lock;
  rondo_tensor_host table = host->table();
  rondo_tree_options options{};
  options.struct_size = sizeof options;
  std::string type = c10::DeviceTypeName(where.type(), true);
  options.index = device;
  options.type = type.c_str();
  options.context = g_next_tree.fetch_add(1);  // two of one thread may differ in their choices
  options.ops = &ops;
  options.host = &table;
  options.record_after = given.record_after;
  options.always_warm_up = given.always_warm_up;
  options.rerecord_limit = given.rerecord_limit;
  options.size_limit = given.size_limit;
  options.size_warning = given.size_warning;
  options.recording_limit = given.recording_limit;
  options.loop_limit = given.loop_limit;
  options.seal_after = given.seal_after;
  options.cost_samples = given.cost_samples;
  options.strict = given.strict;
  options.check_pool = given.check_pool;
  options.conflict = static_cast<rondo_tree_conflict>(given.conflict);
  options.byte_limit = given.byte_limit;
  rondo_status status = rondo_tree_open(instance(), &options, &tree);
  if (status) {
    if (ops.destroy) ops.destroy(ops.user);
    delete host;
  }
  check(status);
}

Manager::~Manager() {
  // Nobody else has it. What its outputs hold stays usable.
  lock.acquire();
  bury();
  host->sweep();
  rondo_tree_release(tree);
  lock.release();
}

void Manager::remove_function(uint32_t id) {
  dead_functions.push_back(id);
  if (lock.mine() || !lock.try_acquire()) return;  // who is inside does it on the way out
  bury();
  lock.release();
}

RONDO_HOT void Manager::bury() {
  while (!dead_functions.empty()) {
    uint32_t id = dead_functions.back();
    dead_functions.pop_back();
    host->sweep();
    rondo_status status = rondo_tree_remove_function(tree, id);
    if (status) TORCH_WARN("rondo: ", text_of(status));
  }
}

std::shared_ptr<Manager> manager_for(c10::Device where, PyObject* adapter, uint64_t context, const TreeChoices& choices) {
  auto& all = all_managers();
  for (const auto& weak : all) {
    auto known = weak.lock();
    if (!known || known->where != where || known->adapter != adapter) continue;
    if (known->context == context && known->choices == choices) return known;
  }
  auto made = std::make_shared<Manager>(where, adapter, context, choices);
  all.erase(std::remove_if(all.begin(), all.end(), [](const auto& weak) { return weak.expired(); }), all.end());
  all.push_back(made);
  return made;
}

std::vector<std::shared_ptr<Manager>> managers(int device, uint64_t context) {
  std::vector<std::shared_ptr<Manager>> found;
  for (const auto& weak : all_managers()) {
    auto known = weak.lock();
    if (known && (device < 0 || known->device == device) && (!context || known->context == context)) found.push_back(known);
  }
  return found;
}

void forget_managers_after_fork() {
  g_generation.fetch_add(1);
  // Never ended: a lock of the parent's may be taken for good.
  auto* leaked = new std::vector<std::shared_ptr<Manager>>(managers(-1, 0));
  (void)leaked;
  all_managers().clear();
}

void queue_tree_line(rondo_log_level level, const char* text) {
  Lines& all = lines();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (all.waiting.size() < 1000) all.waiting.emplace_back(level, text);
  g_lines_waiting.store(true, std::memory_order_release);
}

bool tree_lines_waiting() { return g_lines_waiting.load(std::memory_order_acquire); }

std::vector<std::pair<rondo_log_level, std::string>> take_tree_lines() {
  Lines& all = lines();
  std::lock_guard<std::mutex> lock(all.mutex);
  g_lines_waiting.store(false, std::memory_order_relaxed);
  return std::exchange(all.waiting, {});
}

}  // namespace rondo_torch
