#include "strata/allocation/allocator.h"

#include "strata/allocation/block_flags.h"
#include "strata/allocation/diagnostics/debug_fill.h"
#include "strata/allocation/error.h"
#include "strata/allocation/reclaim/reclaimer.h"
#include "strata/allocation/record_slab.h"
#include "strata/base/log.h"
#include "strata/base/size.h"

namespace strata {

void AllocatorVisitor::VisitBlocks(const Allocator& /*layer*/,
                                   const std::vector<BlockInfo>& /*blocks*/) {}

const char* ToString(BlockState state) {
  switch (state) {
    case BlockState::kLive:
      return "live";
    case BlockState::kFree:
      return "free";
    case BlockState::kDeferred:
      return "deferred";
    case BlockState::kLent:
      return "lent";
  }
  return "?";
}

namespace {

const char* StateOf(const Block& block) {
  if (block.is_free) return "free";
  if (block.chunk != nullptr) {
    return "on its way back to its pool, or kept whole there";
  }
  return "joined to a neighbour, or given back";
}

}  // namespace

void FailNotLive(const Block& block, const char* layer) {
  STRATA_FATAL << layer << ": double free of "
               << static_cast<const void*>(block.data) << " ("
               << HumanBytes(block.size) << " on " << ToString(block.place())
               << "), which is " << StateOf(block);
}

Allocator* FindLayer(Allocator* layer, std::string_view name) noexcept {
  while (layer != nullptr && layer->name() != name) {
    layer = layer->underlying();
  }
  return layer;
}

const Allocator& CarvingLayer(const Allocator& chain) noexcept {
  const Allocator* layer = &chain;
  const Allocator* below = layer->underlying();
  while (below != nullptr && below->name() != std::string_view("chunk_pool")) {
    layer = below;
    below = layer->underlying();
  }
  return *layer;
}

[[gnu::aligned(64)]] void FreeAllocation(Allocation* allocation) noexcept {
  if (IsPlain(*allocation->block())) [[likely]] {
    return allocation->owner()->FreePlain(allocation);
  }
  Allocator::FreeRecord(allocation);
}

void Allocator::FreeRecord(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  CheckLive(*block, "Free");
  if ((block->flags & kBlockZeroSize) != 0) {
    RecordSlab::Instance().Give(block);
    return;
  }
  block->owner->DoFree(allocation);
}

void Allocator::Free(AllocationPtr allocation, Stream stream) noexcept {
  if (allocation == nullptr) return;
  Allocator* owner = allocation->owner();
  if ((allocation->block()->flags & kBlockZeroSize) == 0) {
    owner->RecordStream(allocation.get(), stream);
  }
}

AllocationPtr Allocator::Allocate(const Request& request) {
  Failure failure;
  Allocation* allocation = AllocateRecord(request, failure);
  if (allocation == nullptr) ThrowFailure(failure, *this);
  return AllocationPtr(allocation);
}

AllocationPtr Allocator::AllocateOrNull(const Request& request,
                                        Failure& failure) noexcept {
  return AllocationPtr(AllocateRecord(request, failure));
}

Allocation* Allocator::AllocateRecord(const Request& request,
                                      Failure& failure) noexcept {
  if (request.alignment != 0 &&
      (!IsPowerOfTwo(request.alignment) || request.alignment > kMaxAlignment)) {
    failure = Refusal(Failure::Reason::kBadRequest, request,
                      "alignment must be a power of two up to 16 MiB");
    return nullptr;
  }
  if (request.bytes == 0 && !returns_handles()) {
    Allocation* zero = AllocateZero();
    if (zero == nullptr) {
      failure = Refusal(Failure::Reason::kHostMemory, request, "no record");
    }
    return zero;
  }
  Allocation* allocation = Attempt(request, failure);
  if (allocation == nullptr && failure.MayReclaim() &&
      (request.flags & kNoRetry) == 0) {
    allocation = Reclaim(request, failure);
  }
  return allocation == nullptr ? nullptr : Adopt(allocation, failure);
}

Failure Allocator::Refusal(Failure::Reason reason, const Request& request,
                           const char* detail) const {
  Failure failure;
  failure.reason = reason;
  failure.place = place();
  failure.layer = name();
  failure.detail = detail;
  failure.requested_bytes = request.bytes;
  return failure;
}

Allocation* Allocator::Attempt(const Request& request,
                               Failure& failure) noexcept {
  if (request.freed_by == nullptr) return TryAllocate(request, failure);
  Request now = request;
  now.freed_by = nullptr;
  now.freed_before = (*request.freed_by)();
  return TryAllocate(now, failure);
}

Allocation* Allocator::Reclaim(const Request& request,
                               Failure& failure) noexcept {
  Reclaimer* ladder = reclaimer();
  if (ladder == nullptr) return nullptr;
  Allocation* allocation = nullptr;
  ladder->Climb(stream(), failure, [&] {
    allocation = Attempt(request, failure);
    return allocation != nullptr;
  });
  return allocation;
}

Allocation* Allocator::Adopt(Allocation* allocation,
                             Failure& failure) noexcept {
  Block* block = allocation->block();
  if ((block->flags & kBlockRouted) == 0) block->owner = this;
  if (fill_ == nullptr) return allocation;
  const Status status = fill_->Apply(*allocation, stream());
  if (status == Status::kSuccess) return allocation;
  failure = Refusal(Failure::Reason::kDevice,
                    Request{allocation->requested_bytes()}, "debug fill");
  failure.status = status;
  block->owner->DoFree(allocation);
  return nullptr;
}

Allocation* Allocator::AllocateZero() noexcept {
  Block* block = RecordSlab::Instance().Take();
  if (block == nullptr) return nullptr;
  block->flags = kBlockLive | kBlockZeroSize;
  block->set_place(place());
  block->owner = this;
  block->requested = 0;
  return block->allocation();
}

}  // namespace strata
