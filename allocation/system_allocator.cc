#include "strata/allocation/system_allocator.h"

#include "strata/allocation/record_slab.h"
#include "strata/platform/store_max.h"

namespace strata {

Allocation* SystemAllocator::TryAllocate(const Request& request,
                                         Failure& failure) noexcept {
  failure = Failure();
  failure.place = place_;
  failure.layer = name();
  failure.requested_bytes = request.bytes;
  failure.rounded_bytes = request.bytes;
  Block* block = nullptr;
  void* data = nullptr;
  if (request.alignment > max_alignment()) {
    failure.reason = Failure::Reason::kBadRequest;
    failure.detail = "alignment above what the system gives";
  } else if ((block = RecordSlab::Instance().Take()) == nullptr) {
    failure.reason = Failure::Reason::kHostMemory;
    failure.detail = "no record";
  } else {
    data = Obtain(request, failure);
    if (data == nullptr) RecordSlab::Instance().Give(block);
  }
  if (data == nullptr) {
    ++failures_;
    return nullptr;
  }
  failure.reason = Failure::Reason::kNone;
  block->data = static_cast<std::byte*>(data);
  block->size = request.bytes;
  block->requested = request.bytes;
  block->set_place(place_);
  block->flags = kBlockLive;
  ++allocations_;
  StoreMax(peak_in_use_bytes_, in_use_bytes_ += request.bytes);
  return block->allocation();
}

void SystemAllocator::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  CheckLive(*block, name());
  void* data = block->data;
  const std::size_t bytes = block->size;
  RecordSlab::Instance().Give(block);
  // Before another thread can be given the same memory.
  in_use_bytes_ -= bytes;
  Return(data, bytes);
  ++frees_;
}

bool SystemAllocator::RecordStream(Allocation* /*allocation*/,
                                   Stream /*stream*/) noexcept {
  return false;
}
void SystemAllocator::EraseStream(Allocation* /*allocation*/,
                                  Stream /*stream*/) noexcept {}
void SystemAllocator::StreamDestroyed(Stream /*stream*/) noexcept {}

Stats SystemAllocator::stats() const {
  Stats stats;
  stats.allocations = allocations_;
  stats.frees = frees_;
  stats.failures = failures_;
  stats.in_use_bytes = stats.requested_bytes = in_use_bytes_;
  stats.peak_in_use_bytes = peak_in_use_bytes_;
  stats.reserved_bytes = stats.in_use_bytes;
  stats.peak_reserved_bytes = stats.peak_in_use_bytes;
  return stats;
}

void SystemAllocator::ResetPeak() {
  strata::ResetPeak(peak_in_use_bytes_, in_use_bytes_);
}

void SystemAllocator::Accept(AllocatorVisitor& visitor) const {
  visitor.VisitLayer(*this);
}

}  // namespace strata
