// SPDX-License-Identifier: Apache-2.0
//
// A storage that fails when it is read says so by a text, which PyTorch sets and clears together with the flag. An output
// that is held over a call fails until it is handed out again: every other call, with the same text. Here the text stays,
// and the flags alone go up and down: half of what held outputs cost. The flags are private; a name of a private member may
// be given in an explicit instantiation ([temp.spec.general]/6), and CMakeLists.txt looks whether they are there.
#pragma once
#include <c10/core/StorageImpl.h>

namespace rondo_torch {

#ifdef RONDO_STORAGE_FLAGS

namespace flags {
template <class Tag, auto kMember>
struct Expose {
  friend constexpr auto member(Tag) { return kMember; }
};
// clang-format off
struct Checks { friend constexpr auto member(Checks); };
struct Immutable { friend constexpr auto member(Immutable); };
struct Mutable { friend constexpr auto member(Mutable); };
struct Deprecated { friend constexpr auto member(Deprecated); };
// clang-format on
template struct Expose<Checks, &c10::StorageImpl::has_mutable_data_ptr_check_>;
template struct Expose<Immutable, &c10::StorageImpl::throw_on_immutable_data_ptr_>;
template struct Expose<Mutable, &c10::StorageImpl::throw_on_mutable_data_ptr_>;
template struct Expose<Deprecated, &c10::StorageImpl::warn_deprecated_on_mutable_data_ptr_>;
#ifdef RONDO_STORAGE_COW  // PyTorch 2.12 asks for copy-on-write alone, and keeps to itself whether it is
// clang-format off
struct CopyOnWrite { friend constexpr auto member(CopyOnWrite); };
// clang-format on
template struct Expose<CopyOnWrite, &c10::StorageImpl::is_cow>;
inline bool materializes(const c10::StorageImpl& storage) { return (storage.*member(CopyOnWrite()))(); }
#else
inline bool materializes(const c10::StorageImpl& storage) { return storage.has_materializer(); }
#endif
}  // namespace flags

constexpr bool kStorageFlags = true;
// Whether it fails when it is read, with the text that it has.
inline void set_failing(c10::StorageImpl& storage, bool failing) {
  storage.*member(flags::Immutable()) = failing;
  storage.*member(flags::Checks()) = failing || flags::materializes(storage) || storage.*member(flags::Mutable()) ||
                                     storage.*member(flags::Deprecated());
}

#else

constexpr bool kStorageFlags = false;
inline void set_failing(c10::StorageImpl&, bool) {}

#endif

}  // namespace rondo_torch
