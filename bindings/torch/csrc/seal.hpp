// SPDX-License-Identifier: Apache-2.0
//
// A sealed callable: what torch.compile has made for one set of arguments, behind checks that cost less than its own.
#pragma once
#include <pybind11/pybind11.h>

namespace rondo_torch {
void bind_seal(pybind11::module& m);
}
