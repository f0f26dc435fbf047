// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <pybind11/pybind11.h>

#include <functional>
#include <utility>

#include "npu.hpp"

namespace npu {

using PoolId = c10::MempoolId_t;

// Allocations of streams that the filter takes go to the pool.
void begin_pool(int device, PoolId pool, std::function<bool(aclrtStream)> filter);
void end_pool(int device, PoolId pool);
void release_pool(int device, PoolId pool);
PoolId new_pool(bool of_the_user);
void bind_memory(pybind11::module& m);

}  // namespace npu
