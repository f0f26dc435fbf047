// SPDX-License-Identifier: Apache-2.0
//
// Another package's device over AscendCL, as Rondo sees it.
#pragma once
#include <rondo/rondo.h>

namespace rondo_torch {

// Whether this process's device is such a package's.
bool is_npu();
// The driver's device of that number, opened by Rondo, too.
rondo_device* npu_device(int index);
// What stands for the package's current stream there. It takes the interpreter to ask.
rondo_stream* npu_current_stream(int index);
// Whether the package says that somebody captures its current stream.
bool npu_captures(int index);
}  // namespace rondo_torch
