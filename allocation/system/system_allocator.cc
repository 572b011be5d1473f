#include "strata/allocation/system/system_allocator.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "strata/base/list_under_lock.h"
#include "strata/base/log.h"
#include "strata/base/store_max.h"

namespace strata {

SystemAllocator::~SystemAllocator() {
  if (unreturned_.empty()) return;
  STRATA_LOG(Error) << ToString(place_) << ": " << unreturned_bytes_
                    << " bytes are lost, as the system never took them back";
  while (Block* block = unreturned_.Pop()) RecordSlab::Instance().Give(block);
}

Allocation* SystemAllocator::TryAllocate(const Request& request,
                                         Failure& failure) noexcept {
  failure = Refusal(Failure::Reason::kNone, request);
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
  block->size = system_size(request.bytes);
  block->requested = request.bytes;
  block->set_place(place_);
  block->flags = kBlockLive;
  ++allocations_;
  StoreMax(peak_in_use_bytes_, in_use_bytes_ += block->size);
  return block->allocation();
}

void SystemAllocator::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  CheckLive(*block, name());
  block->flags = 0;
  // Before another thread can obtain the same memory.
  in_use_bytes_ -= block->size;
  ++frees_;
  const Status status = Return(block->data, block->size);
  if (status == Status::kSuccess) {
    RecordSlab::Instance().Give(block);
    return;
  }
  STRATA_LOG(Error) << name() << ": cannot free " << block->size << " bytes at "
                    << static_cast<void*>(block->data) << " on "
                    << ToString(place_) << ": " << status
                    << (status == Status::kInvalidValue
                            ? ""
                            : "; they stay reserved");
  if (status == Status::kInvalidValue) {
    RecordSlab::Instance().Give(block);
    return;
  }
  unreturned_bytes_ += block->size;
  const std::lock_guard<SpinLock> guard(lock_);
  unreturned_.Push(block);
}

std::size_t SystemAllocator::Release() noexcept {
  if (unreturned_bytes_ == 0) return 0;
  RecordSlab::List refused;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    std::swap(refused, unreturned_);
  }
  std::size_t given = 0;
  while (Block* block = refused.Pop()) {
    const Status status = Return(block->data, block->size);
    // If the system does not know the address, an earlier call has returned it.
    if (status != Status::kSuccess && status != Status::kInvalidValue) {
      const std::lock_guard<SpinLock> guard(lock_);
      unreturned_.Push(block);
      continue;
    }
    given += block->size;
    unreturned_bytes_ -= block->size;
    RecordSlab::Instance().Give(block);
  }
  return given;
}

void SystemAllocator::AppendUnreturned(std::vector<BlockInfo>& blocks) const {
  const std::size_t before = blocks.size();
  ListUnderLock(
      lock_, [this] { return unreturned_.size(); },
      [&](std::size_t count) { blocks.reserve(before + count); },
      [&] {
        for (const Block* block = unreturned_.first(); block != nullptr;
             block = block->next) {
          blocks.push_back(
              {block->data, block->size, block->data, BlockState::kFree});
        }
      });
}

Stats SystemAllocator::stats() const {
  Stats stats;
  stats.allocations = allocations_;
  stats.frees = frees_;
  stats.failures = failures_;
  stats.in_use_bytes = stats.requested_bytes = in_use_bytes_;
  stats.peak_in_use_bytes = peak_in_use_bytes_;
  stats.reserved_bytes = stats.in_use_bytes + unreturned_bytes_;
  stats.peak_reserved_bytes =
      std::max(stats.peak_in_use_bytes, stats.reserved_bytes);
  return stats;
}

void SystemAllocator::ResetPeak() {
  strata::ResetPeak(peak_in_use_bytes_, in_use_bytes_);
}

void SystemAllocator::Accept(AllocatorVisitor& visitor) const {
  visitor.VisitLayer(*this);
}

}  // namespace strata
