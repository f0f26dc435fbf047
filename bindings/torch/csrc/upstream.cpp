// SPDX-License-Identifier: Apache-2.0
//
// What PyTorch's own graph trees ask of torch._C beyond a device's graph operations. PyTorch binds it in its CUDA
// module, so that a build without CUDA has none of it; here it is for storages of any device.
#include "upstream.hpp"

#include <ATen/EmptyTensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/UniqueVoidPtr.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/autograd/python_variable.h>

namespace py = pybind11;

namespace rondo_torch {
namespace {

c10::StorageImpl* storage_of(uintptr_t address) {
  TORCH_CHECK(address, "rondo: expected the address of a storage, got 0");
  return reinterpret_cast<c10::StorageImpl*>(address);
}

// Whether a storage frees what it points to. One that was made over an address does not, and one whose block was freed
// already does not any more. What frees is the allocator's own affair: some have a deleter a device.
bool owns_its_block(c10::StorageImpl* storage) {
  c10::DeleterFnPtr deleter = storage->_mutable_data_ptr_no_checks().get_deleter();
  return deleter && deleter != &c10::detail::deleteNothing;
}

// Whether the tensors at the indices have the addresses that are expected of them: the hot question of a replay.
bool pointers_equal(const py::list& tensors, const py::list& pointers, const py::list& indices) {
  for (py::handle item : indices) {
    Py_ssize_t index = PyLong_AsSsize_t(item.ptr());
    if (index == -1 && PyErr_Occurred()) throw py::error_already_set();
    TORCH_CHECK_INDEX(index >= 0 && index < PyList_GET_SIZE(tensors.ptr()) && index < PyList_GET_SIZE(pointers.ptr()),
                      "rondo: index ", index, " of ", PyList_GET_SIZE(tensors.ptr()), " tensors and ",
                      PyList_GET_SIZE(pointers.ptr()), " addresses");
    PyObject* tensor = PyList_GET_ITEM(tensors.ptr(), index);
    PyObject* pointer = PyList_GET_ITEM(pointers.ptr(), index);
    if (!THPVariable_Check(tensor) || pointer == Py_None) return false;
    size_t expected = PyLong_AsSize_t(pointer);
    if (expected == static_cast<size_t>(-1) && PyErr_Occurred()) throw py::error_already_set();
    if (reinterpret_cast<size_t>(THPVariable_Unpack(tensor).const_data_ptr()) != expected) return false;
  }
  return true;
}

// A tensor over a storage, without an allocation.
at::Tensor tensor_over(const py::dict& metadata, const py::object& storage) {
  at::Storage on = torch::createStorage(storage.ptr());
  TORCH_CHECK(THPDtype_Check(py::object(metadata["dtype"]).ptr()), "rondo: metadata[\"dtype\"] is no torch.dtype");
  at::ScalarType type = reinterpret_cast<THPDtype*>(py::object(metadata["dtype"]).ptr())->scalar_type;
  c10::DispatchKey key = c10::computeDispatchKey(type, c10::kStrided, on.device());
  at::Tensor result =
      at::detail::make_tensor_base<c10::TensorImpl>(std::move(on), c10::DispatchKeySet(key),
                                                    c10::scalarTypeToTypeMeta(type));
  result.unsafeGetTensorImpl()->set_sizes_and_strides(metadata["size"].cast<std::vector<int64_t>>(),
                                                      metadata["stride"].cast<std::vector<int64_t>>());
  result.unsafeGetTensorImpl()->set_storage_offset(metadata["storage_offset"].cast<int64_t>());
  return result;
}

bool has_standard_deleter(uintptr_t address) { return owns_its_block(storage_of(address)); }

// Frees a storage's block now; the storage, which may live on, frees nothing any more.
void free_and_remove_deleter(uintptr_t address) {
  c10::StorageImpl* storage = storage_of(address);
  TORCH_CHECK(owns_its_block(storage), "Expected standard deleter: the storage does not own a block");
  c10::DataPtr& data = storage->_mutable_data_ptr_no_checks();
  c10::DeleterFnPtr deleter = data.get_deleter();
  void* block = data.get_context();
  TORCH_CHECK(data.compare_exchange_deleter(deleter, &c10::detail::deleteNothing), "Expected standard deleter");
  deleter(block);
}

void poison_tensor(const at::Tensor& tensor, const std::string& message) {
  tensor.unsafeGetTensorImpl()->release_storage_and_set_meta_custom_data_ptr_error_msg_(message);
}

void poison_storage(uintptr_t address, const std::string& message) {
  storage_of(address)->release_data_and_set_meta_custom_data_ptr_error_msg_(message);
}

}  // namespace

void bind_upstream(py::module& m) {
  py::module bindings = m.def_submodule("bindings",
                                        "Bindings of PyTorch's CUDA module that graph trees need, for any device");
  bindings.def("_tensors_data_ptrs_at_indices_equal", &pointers_equal);
  bindings.def("_construct_CUDA_Tensor_From_Storage_And_Metadata", &tensor_over);
  bindings.def("_has_Standard_Deleter", &has_standard_deleter);
  bindings.def("_free_And_Remove_DeleterFn", &free_and_remove_deleter);
  bindings.def("_set_storage_access_error_msg", &poison_tensor);
  bindings.def("_set_storage_data_ptr_access_error_msg", &poison_storage);
}

}  // namespace rondo_torch
