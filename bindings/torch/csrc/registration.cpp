// SPDX-License-Identifier: Apache-2.0
#include "registration.hpp"

#include <mutex>
#include <vector>

namespace rondo_torch {
namespace {
std::vector<void (*)()>& waiting() {
  static auto* all = new std::vector<void (*)()>;
  return *all;
}
}  // namespace

Registration::Registration(void (*function)()) { waiting().push_back(function); }

void register_device() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (void (*function)() : waiting()) function();
  });
}

}  // namespace rondo_torch
