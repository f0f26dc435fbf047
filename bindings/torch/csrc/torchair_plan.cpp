// SPDX-License-Identifier: Apache-2.0
//
// A plan over tensors of PyTorch's: inputs are read where they lie, outputs are new tensors that the plan writes. What
// lies otherwise than the plan was made for is copied first, and counted.
#include <ATen/Functions.h>
#include <c10/util/Exception.h>
#include <rondo/file.h>
#include <torch/csrc/autograd/python_variable.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "node.hpp"
#include "npu_graph.hpp"
#include "runtime.hpp"
#include "torchair.hpp"

namespace py = pybind11;

namespace rondo_torch {
namespace {

constexpr int kHost = -1;  // tensors of the host, which the device "cpu" runs on

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// The same object as the plugin's own device, where that is the cpu too: a device is opened once, with one set of settings.
rondo_device* host_device() {
  static rondo_device* one = [] {
    const char* settings = std::strcmp(backend(), "cpu") == 0 ? std::getenv("RONDO_TORCH_SETTINGS") : nullptr;
    rondo_device* handle = nullptr;
    check(rondo_device_open(instance(), "cpu", settings, &handle));
    return handle;
  }();
  return one;
}

struct Port {
  at::ScalarType type;
  std::vector<int64_t> sizes, strides;
  int64_t numel;

  explicit Port(const rondo_tensor_info& info)
      : type(type_of(info.dtype)), sizes(info.dims, info.dims + info.rank), strides(sizes.size()), numel(1) {
    for (size_t i = sizes.size(); i-- > 0; numel *= sizes[i]) strides[i] = numel;
  }
  explicit Port(const at::Tensor& like)
      : type(like.scalar_type()), sizes(like.sizes().vec()), strides(like.strides().vec()), numel(like.numel()) {}

  // How it lies in memory; the stride of an axis that nobody steps along says nothing.
  bool lies_as_wanted(const at::Tensor& tensor) const {
    if (tensor.is_conj() || tensor.is_neg()) return false;
    if (numel == 0) return true;
    if (reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % tensor.itemsize()) return false;
    for (size_t i = 0; i < sizes.size(); i++) {
      if (sizes[i] != 1 && tensor.stride(static_cast<int64_t>(i)) != strides[i]) return false;
    }
    return true;
  }
};

// One run at a time. On the host each has a stream of its own, so that threads need not wait for one another.
struct Lane {
  rondo_context* context = nullptr;
  rondo_stream* stream = nullptr;
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() {
    rondo_context_release(context);
    rondo_stream_release(stream);
  }
};

// What a capture has recorded uses the context's memory at each replay.
struct KeptLane final : Node {
  std::unique_ptr<Lane> lane;
  int32_t run(const uint64_t*) noexcept override { return 0; }
};

class Plan {
 public:
  Plan(const IrGraph& graph, int device, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs,
       uint32_t flags)
      : index_(device) {
    for (const at::Tensor& one : inputs) inputs_.emplace_back(one);
    for (const at::Tensor& one : outputs) outputs_.emplace_back(one);
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.flags = flags;
    uint64_t begin = now_ns();
    check(rondo_compile(instance(), graph.handle(), &options, nullptr, &plan_));
    compile_ns_ = now_ns() - begin;
    try {
      check_ports();
      begin = now_ns();
      check(rondo_executable_create(owner(), plan_, &executable_));
      load_ns_ = now_ns() - begin;
    } catch (...) {
      release();
      throw;
    }
  }
  // Of an offline file: its inputs and outputs are compact.
  Plan(const std::string& path, int device) : index_(device) {
    check(rondo_plan_open(instance(), path.c_str(), &plan_));
    try {
      rondo_plan_info known = RONDO_PLAN_INFO_INIT;
      check(rondo_plan_get_info(plan_, &known));
      rondo_tensor_info info = {};
      for (uint32_t i = 0; i < known.inputs; i++) {
        TORCH_CHECK(!rondo_plan_guard(plan_, i), "rondo: ", path, " holds for one value of its input ", i,
                    " only, which is not looked at here: run it with rondo run");
        check(rondo_plan_input(plan_, i, &info));
        names_.emplace_back(info.name);
        inputs_.emplace_back(info);
      }
      for (uint32_t i = 0; i < known.outputs; i++) {
        check(rondo_plan_output(plan_, i, &info));
        outputs_.emplace_back(info);
      }
      check(rondo_executable_create(owner(), plan_, &executable_));
    } catch (...) {
      release();
      throw;
    }
  }
  ~Plan() { release(); }
  const std::vector<std::string>& input_names() const { return names_; }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  py::list run(const py::sequence& given) {
    uint64_t begin = now_ns();
    size_t count = py::len(given);
    TORCH_CHECK(count == inputs_.size(), "rondo: the plan takes ", inputs_.size(), " tensors, got ", count);
    std::vector<at::Tensor> inputs, outputs;
    inputs.reserve(count);
    for (size_t i = 0; i < count; i++) inputs.push_back(input_of(i, py::object(given[i]).ptr()));
    outputs.reserve(outputs_.size());
    for (const Port& port : outputs_) outputs.push_back(at::empty_strided(port.sizes, port.strides, options_of(port)));
    launch(inputs, outputs);
    py::list result;
    for (at::Tensor& one : outputs) result.append(std::move(one));
    runs_.fetch_add(1, std::memory_order_relaxed);
    run_ns_.fetch_add(now_ns() - begin, std::memory_order_relaxed);
    return result;
  }

  void write(const std::string& path) const { check(rondo_plan_write(instance(), plan_, path.c_str())); }

  std::string dump(const std::string& format) const {
    std::string text;
    rondo_dump_format which = format == "dot" ? RONDO_DUMP_DOT : format == "json" ? RONDO_DUMP_JSON : RONDO_DUMP_TEXT;
    auto append = [](void* user, const char* data, size_t size) -> int32_t {
      static_cast<std::string*>(user)->append(data, size);
      return 0;
    };
    check(rondo_plan_dump(plan_, which, append, &text));
    return text;
  }

  py::dict info() const {
    rondo_plan_info known = RONDO_PLAN_INFO_INIT;
    check(rondo_plan_get_info(plan_, &known));
    py::dict result;
    result["nodes"] = known.nodes_in;
    result["calls"] = known.calls;
    result["segments"] = known.segments;
    result["arena_bytes"] = known.arena_bytes;
    result["weight_bytes"] = known.weight_bytes;
    result["compile_ns"] = compile_ns_;
    result["load_ns"] = load_ns_;
    result["runs"] = runs_.load();
    result["run_ns"] = run_ns_.load();
    result["kernel_ns"] = kernel_ns_.load();
    result["copies"] = copies_.load();
    result["copied_bytes"] = copied_bytes_.load();
    return result;
  }

  std::vector<std::string> remarks() const {
    std::vector<std::string> all;
    for (uint32_t i = 0; const char* text = rondo_plan_remark(plan_, i); i++) all.emplace_back(text);
    return all;
  }

 private:
  rondo_device* owner() const {
    if (index_ == kHost) return host_device();
    return is_npu() ? npu_device(index_) : device(index_);
  }

  // The stream to enqueue on; null on the host, where each lane has its own.
  rondo_stream* stream_of_now() const {
    if (index_ == kHost) return nullptr;
    return is_npu() ? npu_current_stream(index_) : current_stream(index_);
  }

  void release() {
    free_.clear();
    rondo_executable_release(executable_);
    rondo_plan_release(plan_);
  }

  at::TensorOptions options_of(const Port& port) const {
    auto options = at::TensorOptions().dtype(port.type);
    if (index_ == kHost) return options.device(at::kCPU);
    return options.device(kType, static_cast<c10::DeviceIndex>(index_));
  }

  // What the compiler infers must be what PyTorch expects: the converters are held to it at each port.
  void check_ports() const {
    rondo_plan_info known = RONDO_PLAN_INFO_INIT;
    check(rondo_plan_get_info(plan_, &known));
    TORCH_CHECK(known.inputs == inputs_.size() && known.outputs == outputs_.size(), "rondo: the plan has ", known.inputs,
                " inputs and ", known.outputs, " outputs, the graph ", inputs_.size(), " and ", outputs_.size());
    for (uint32_t i = 0; i < known.outputs; i++) {
      rondo_tensor_info info = {};
      check(rondo_plan_output(plan_, i, &info));
      const Port& port = outputs_[i];
      int64_t numel = 1;
      for (int32_t axis = 0; axis < info.rank; axis++) numel *= info.dims[axis];
      TORCH_CHECK(info.dtype == dtype_of(port.type) && numel == port.numel, "rondo: output '", info.name, "' is ",
                  rondo_dtype_name(info.dtype), " with ", numel, " elements by Rondo's inference, and ", port.type,
                  " with ", port.numel, " by PyTorch's: the operator's meta and its converter disagree");
    }
  }

  at::Tensor input_of(size_t i, PyObject* object) {
    TORCH_CHECK_TYPE(THPVariable_Check(object), "rondo: input ", i, " of the plan is a ", Py_TYPE(object)->tp_name,
                     ", not a tensor");
    const at::Tensor& tensor = THPVariable_Unpack(object);
    const Port& port = inputs_[i];
    bool here = index_ == kHost ? tensor.is_cpu() : tensor.device().type() == kType && tensor.device().index() == index_;
    TORCH_CHECK(here && tensor.scalar_type() == port.type && tensor.sizes() == at::IntArrayRef(port.sizes),
                "rondo: input ", i, " of the plan is ", tensor.scalar_type(), tensor.sizes(), " on ", tensor.device(),
                "; the plan was made for ", port.type, at::IntArrayRef(port.sizes), " on ", options_of(port).device());
    if (port.lies_as_wanted(tensor)) return tensor;
    at::Tensor copy = at::empty_strided(port.sizes, port.strides, options_of(port));
    copy.copy_(tensor);
    copies_.fetch_add(1, std::memory_order_relaxed);
    copied_bytes_.fetch_add(copy.nbytes(), std::memory_order_relaxed);
    return copy;
  }

  std::unique_ptr<Lane> take() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!free_.empty()) {
        auto lane = std::move(free_.back());
        free_.pop_back();
        return lane;
      }
    }
    auto lane = std::make_unique<Lane>();
    check(rondo_context_create(executable_, &lane->context));
    if (index_ == kHost) check(rondo_stream_create(owner(), nullptr, &lane->stream));
    return lane;
  }

  static void bind(rondo_context* context, const std::vector<at::Tensor>& inputs,
                   const std::vector<at::Tensor>& outputs) {
    for (size_t i = 0; i < inputs.size(); i++) {
      if (!inputs[i].numel()) continue;
      check(rondo_context_bind_input(context, static_cast<uint32_t>(i), const_cast<void*>(inputs[i].const_data_ptr())));
    }
    for (size_t i = 0; i < outputs.size(); i++) {
      if (!outputs[i].numel()) continue;
      check(rondo_context_bind_output(context, static_cast<uint32_t>(i), outputs[i].mutable_data_ptr()));
    }
  }

  void launch(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs) {
    rondo_stream* stream = stream_of_now();
    uint64_t capture = 0;
    bool recorded = stream && capturing(stream, &capture);
    TORCH_CHECK(recorded || !stream || !is_npu() || !npu_captures(index_),
                "rondo: the package's own graph cannot record a compiled graph of Rondo's: nobody would keep its memory for "
                "the replays. Capture with torch.accelerator.Graph, which rondo_torch.npu.install() brings");
    std::unique_ptr<Lane> lane;
    if (recorded) {  // of its own: the replays use its memory
      lane = std::make_unique<Lane>();
      check(rondo_context_create(executable_, &lane->context));
    } else {
      lane = take();
    }
    rondo_context* context = lane->context;
    if (!stream) stream = lane->stream;
    {
      py::gil_scoped_release without;
      bind(context, inputs, outputs);
      uint64_t begin = now_ns();
      rondo_status status = rondo_context_run(context, stream);
      kernel_ns_.fetch_add(now_ns() - begin, std::memory_order_relaxed);
      if (status) check(status);  // the lane goes: what it had begun is waited for
    }
    if (recorded) {
      auto kept = std::make_unique<KeptLane>();
      kept->lane = std::move(lane);
      auto nodes = std::make_shared<NodeList>();
      nodes->push_back(std::move(kept));
      keep_in_capture(capture, std::move(nodes));
      return;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(lane));
  }

  int index_;
  std::vector<Port> inputs_, outputs_;
  std::vector<std::string> names_;  // of an offline file's inputs
  rondo_plan* plan_ = nullptr;
  rondo_executable* executable_ = nullptr;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> free_;
  uint64_t compile_ns_ = 0, load_ns_ = 0;
  std::atomic<uint64_t> runs_{0}, run_ns_{0}, kernel_ns_{0}, copies_{0}, copied_bytes_{0};
};

// What tensors were when their values were taken: which object, which storage, where, and how often it had been written
// to, as far as the version counter was told. The weak references keep the addresses from being given to others.
class Watch {
 public:
  explicit Watch(const py::sequence& tensors) {
    for (const py::handle& one : tensors) {
      const at::Tensor& tensor = tensor_of(one.ptr());
      TORCH_CHECK(!tensor.is_inference(), "rondo: a tensor that was made in inference mode has no version counter");
      seen_.push_back({TensorReference(tensor.getIntrusivePtr()), tensor.storage().getWeakStorageImpl(),
                       tensor.const_data_ptr(), tensor._version()});
    }
  }
  // Whether they are what they were.
  bool same(const py::sequence& tensors) const {
    if (py::len(tensors) != seen_.size()) return false;
    for (size_t i = 0; i < seen_.size(); i++) {
      py::object held = tensors[i];
      const at::Tensor& tensor = tensor_of(held.ptr());
      const Seen& was = seen_[i];
      if (tensor.unsafeGetTensorImpl() != was.tensor._unsafe_get_target() || tensor.is_inference() ||
          tensor.storage().unsafeGetStorageImpl() != was.storage._unsafe_get_target() || tensor.const_data_ptr() != was.data ||
          tensor._version() != was.version)
        return false;
    }
    return true;
  }

 private:
  using TensorReference = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  using StorageReference = c10::weak_intrusive_ptr<c10::StorageImpl>;
  struct Seen {
    TensorReference tensor;
    StorageReference storage;
    const void* data;
    int64_t version;
  };
  static const at::Tensor& tensor_of(PyObject* object) {
    TORCH_CHECK_TYPE(THPVariable_Check(object), "rondo: a parameter is a ", Py_TYPE(object)->tp_name, ", not a tensor");
    return THPVariable_Unpack(object);
  }
  std::vector<Seen> seen_;
};

// Another tensor over the same memory, `offset` elements further on: no view to autograd, and with a counter of its own.
at::Tensor reinterpret(const at::Tensor& base, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                       int64_t offset) {
  auto made = at::detail::make_tensor<at::TensorImpl>(c10::Storage(base.storage()), base.key_set(), base.dtype());
  auto* impl = made.unsafeGetTensorImpl();
  impl->set_storage_offset(base.storage_offset() + offset);
  impl->set_sizes_and_strides(sizes, strides);
  return made;
}

}  // namespace

void bind_plan(py::module& m) {
  py::class_<Plan>(m, "Plan")
      .def(py::init<const IrGraph&, int, const std::vector<at::Tensor>&, const std::vector<at::Tensor>&, uint32_t>())
      .def(py::init<const std::string&, int>())
      .def_property_readonly("input_names", &Plan::input_names)
      .def("run", &Plan::run)
      .def("write", &Plan::write)
      .def("dump", &Plan::dump)
      .def("info", &Plan::info)
      .def("remarks", &Plan::remarks);
  m.def("reinterpret", &reinterpret);
  py::class_<Watch>(m, "Watch").def(py::init<const py::sequence&>()).def("same", &Watch::same);
}

}  // namespace rondo_torch
