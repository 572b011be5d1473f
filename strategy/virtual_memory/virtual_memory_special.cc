// Special requests of VirtualMemoryAllocator: a handle of its own, or a chunk
// for cudaIpcGetMemHandle.

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>

#include "strata/base/size.h"
#include "strata/strategy/virtual_memory/virtual_memory_allocator.h"

namespace strata {
namespace {

// Larger requests would overflow when rounded.
constexpr std::size_t kMostBytes = std::size_t{1} << 47;
// Records to split both ends of a block.
constexpr std::size_t kCuts = 2;

}  // namespace

using vmm::EndOf;
using vmm::RangeOf;

Allocation* VirtualMemoryAllocator::TryAllocate(const Request& request,
                                                Failure& failure) noexcept {
  constexpr std::uint32_t kSpecial = kOneHandle | kLegacyIpc;
  if (device_ == nullptr || (request.flags & kSpecial) == 0) [[likely]] {
    if ((request.flags & kNoGrowth) == 0 && MustUnmap()) UnmapSurplus();
    return AutoGrowthAllocator::TryAllocate(request, failure);
  }
  if (request.bytes > kMostBytes) {
    failure = Refusal(Failure::Reason::kTooLarge, request);
    return nullptr;
  }
  const bool is_handle = (request.flags & kOneHandle) != 0;
  const char* refusal = nullptr;
  if ((request.flags & kSpecial) == kSpecial) {
    refusal = "memory for cudaIpcGetMemHandle has no handle";
  } else if (is_handle && request.alignment > kPageBytes) {
    refusal = "a handle is aligned to 2 MiB";
  } else if (!is_handle && request.alignment > max_alignment()) {
    refusal = "alignment above 256 needs the aligned layer";
  }
  if (refusal != nullptr) {
    failure = Refusal(Failure::Reason::kBadRequest, request, refusal);
    return nullptr;
  }
  return is_handle ? AllocateHandle(request, failure)
                   : AllocateForIpc(request, failure);
}

Block* VirtualMemoryAllocator::TakeWholeHandle(std::size_t size) noexcept {
  PageHandle* found = nullptr;
  Block* around = nullptr;
  ForEachFreeHandle([&](Block& block, PageHandle& handle) {
    if (found != nullptr || handle.bytes != size) return;
    found = &handle;
    around = &block;
  });
  if (found == nullptr) return nullptr;
  Block* const block = CutAt(around, found->base);
  if (EndOf(*block) != found->end()) CutAt(block, found->end());
  RemoveFree(block);
  block->pool = RangeOf(*block).pool;
  block->is_free = false;
  block->flags = kBlockLive;
  block->offset_units = 0;
  taken_bytes_ += block->size;
  ++takes_;
  return block;
}

Allocation* VirtualMemoryAllocator::AllocateHandle(const Request& request,
                                                   Failure& failure) noexcept {
  const std::size_t size = AlignUp(request.bytes, kPageBytes);
  Block* block = nullptr;
  bool has_records = false;
  do {
    const auto joined = LockJoined();
    has_records = records_.Has(kCuts);
    if (has_records) block = TakeWholeHandle(size);
  } while (!has_records && records_.Restock(lock_));
  if (!has_records) {
    failure = Refusal(Failure::Reason::kHostMemory, request);
    return nullptr;
  }
  if (block == nullptr && (request.flags & kNoGrowth) != 0) {
    failure = Refusal(Failure::Reason::kNoGrowth, request);
    return nullptr;
  }
  if (block == nullptr) {
    Effort effort;
    effort.may_move = false;
    effort.is_one_handle = true;
    failure = Failure();
    if (!GrowWith(effort, Pool::kLarge, size, &block, failure)) {
      failure = Refusal(Failure::Reason::kTooLarge, request,
                        "no addresses are left (--strata_vmm_reserve)");
    }
    if (block == nullptr) {
      failure.requested_bytes = request.bytes;
      return nullptr;
    }
    const std::lock_guard<ChainLock> guard(lock_);
    ++misses_;
    ++untold_takes_;
  }
  block->requested = request.bytes;
  return block->allocation();
}

VirtualMemoryAllocator::Attempt VirtualMemoryAllocator::PlanHandle(
    Pool own, std::size_t size, const Effort& effort,
    GrowthPlan& plan) noexcept {
  plan.Clear();
  GrowthTarget& target = plan.target;
  std::size_t least = SIZE_MAX;
  for (Block* hole = holes_[static_cast<std::size_t>(own)].first();
       hole != nullptr; hole = hole->free_next) {
    AddressRange& range = RangeOf(*hole);
    std::byte* const begin = range.PageUp(hole->data);
    std::byte* const end = std::min(EndOf(*hole), range.map_end());
    const auto bytes = static_cast<std::size_t>(std::max(begin, end) - begin);
    if (bytes < size || bytes >= least) continue;
    least = bytes;
    target.range = &range;
    target.first = hole;
    target.begin = begin;
    target.end = begin + size;
  }
  if (target.range == nullptr) return Attempt::kNoAddresses;
  target.missing_bytes = size;
  if (effort.room_bytes < size) {
    plan.short_bytes = size;
    return Attempt::kShort;
  }
  if (plan.pieces.capacity() == 0) {
    plan.lacks_host_memory = true;
    return Attempt::kAgain;
  }
  plan.pieces.push_back({.at = target.begin, .bytes = size});
  plan.new_bytes = size;
  plan.low = target.begin;
  plan.high = target.end;
  // Two splits at the edges, and two that a commit may need.
  plan.records = 2 * kCuts;
  if (!records_.Has(plan.records)) return Attempt::kAgain;
  TakePlanned(plan);
  for (std::size_t i = 0; i < kCuts; ++i) plan.spare.Push(records_.Pop());
  return Attempt::kPlanned;
}

Block* VirtualMemoryAllocator::CarveAny(Pool own, std::size_t size,
                                        Cuts cuts) noexcept {
  Block* const found = index(own).FindBest(size, [&](const Block& block) {
    if (!BlockList::IsWholeChunk(&block) || cuts == Cuts::kAll) return true;
    return cuts == Cuts::kEnds ? block.size - size < kPageBytes
                               : MayCut(block, size);
  });
  return found != nullptr ? Carve(found, size) : nullptr;
}

Allocation* VirtualMemoryAllocator::AllocateForIpc(const Request& request,
                                                   Failure& failure) noexcept {
  // A separate pool: no block of it lies in a range, or in a loan. So it takes
  // no chunk that another stream offers, which may be a loan.
  constexpr Pool kChunks = Pool::kLongLived;
  const std::size_t size = AlignUp(request.bytes, max_alignment());
  const bool may_grow = (request.flags & kNoGrowth) == 0;
  Block* block = nullptr;
  bool has_records = false;
  do {
    const auto joined = LockJoined();
    has_records = records_.Has(kCuts);
    if (has_records) {
      block = CarveAny(kChunks, size, may_grow ? Cuts::kEnds : Cuts::kAll);
    }
  } while (!has_records && records_.Restock(lock_));
  if (block == nullptr && !may_grow) {
    failure = Refusal(Failure::Reason::kNoGrowth, request);
    return nullptr;
  }
  if (block == nullptr) {
    RecordStock supply(RecordSlab::Instance());
    std::unique_ptr<Chunk> chunk(new (std::nothrow) Chunk());
    if (chunk == nullptr || !supply.Fill(kCuts)) {
      failure = Refusal(Failure::Reason::kHostMemory, request);
      return nullptr;
    }
    failure = Failure();
    // As large as the request, so that importers see few other blocks.
    for (const std::size_t bytes : {AlignUp(size, kPageBytes), size}) {
      chunk->memory = pool().TryAllocate(Request{bytes}, failure);
      const bool is_last = bytes == size;
      if (chunk->memory != nullptr || !failure.IsExhaustion() || is_last) break;
    }
    const auto joined = LockJoined();
    records_.TakeFrom(supply);
    block = chunk->memory != nullptr
                ? Publish(*this, kChunks, chunk.release(), size)
                : CarveAny(kChunks, size, Cuts::kAll);
    if (block == nullptr) {
      failure.requested_bytes = request.bytes;
      return nullptr;
    }
    ++misses_;
    ++untold_takes_;
  }
  block->requested = request.bytes;
  return block->allocation();
}

}  // namespace strata
