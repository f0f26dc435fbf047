// SPDX-License-Identifier: Apache-2.0
//
// Claims: what connects a storage with the lease whose memory it is on.
#include <c10/core/DeviceType.h>

#include <sstream>

#include "tree_host.hpp"

namespace rondo_torch {
void end_claimed_storage(void* context) {
  auto* claim = static_cast<Claim*>(context);
  claim->end();
  claim->let_go();
}

void Claim::link() {
  std::lock_guard<std::mutex> lock(ledger->mutex);
  if (linked) return;
  next = ledger->first.load(std::memory_order_relaxed);
  if (next) next->previous = this;
  ledger->first = this;
  linked = true;
}

void Claim::unlink() {
  std::lock_guard<std::mutex> lock(ledger->mutex);
  if (!linked) return;
  if (next) next->previous = previous;
  if (previous) previous->next = next;
  else ledger->first = next;
  next = previous = nullptr;
  linked = false;
}

void Claim::let_go() {
  if (references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  unlink();
  delete this;
}

std::string Claim::message(const char* taker) const {
  std::string text =
      "Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run: its memory went to '";
  text += taker;
  text += "'. It is an output of '" + (origin ? origin->function : std::string("?")) + "'";
  if (origin && !origin->trace.empty()) text += ", from\n" + origin->trace;
  if (origin && origin->gradient) {
    text +=
        "\nIt is a gradient. To accumulate gradients over backwards, have .grad tensors that no recording made: of a first "
        "step without compiling, or zeros; else set .grad to None before each backward.";
  }
  text +=
      "\nTo prevent overwriting, clone the tensor outside of torch.compile() before the next call, or call "
      "torch.compiler.cudagraph_mark_step_begin() before each step and use outputs of a step only in it.";
  return text;
}

Claim* claim_storage(const c10::intrusive_ptr<c10::StorageImpl>& storage, void* pointer, c10::Device device,
                     const std::shared_ptr<Ledger>& ledger, rondo_tree_lease* lease, uint64_t epoch) {
  auto* claim = new Claim(c10::weak_intrusive_ptr<c10::StorageImpl>(storage));
  claim->lease = lease;
  claim->epoch = epoch;
  claim->ledger = ledger;
  storage->_mutable_data_ptr_no_checks() = c10::DataPtr(pointer, claim, &end_claimed_storage, device);
  rondo_tree_lease_set_storage(lease, claim);
  return claim;
}

}  // namespace rondo_torch
