#include "strata/strategy/virtual_memory/virtual_memory_allocator.h"

#include <mutex>
#include <utility>

#include "strata/base/log.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

Device* DeviceOf(const ChunkPool& pool, const ChainStream& stream,
                 const StrategyOptions& options) {
  Device* const device = stream.memory_device();
  const bool has_pages = pool.place().kind == PlaceKind::kDevice &&
                         !options.is_managed && device != nullptr &&
                         device->caps().virtual_memory;
  return has_pages ? device : nullptr;
}

// Whether `block`, the neighbour of another, is mapped, or there is none.
bool IsMapped(const Block* block) {
  return block == nullptr || BlockList::IsUsable(*block);
}

}  // namespace

VirtualMemoryAllocator::VirtualMemoryAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& options)
    : AutoGrowthAllocator(
          pool, stream,
          DeviceOf(*pool, *stream, options) != nullptr
              ? AutoGrowthPolicy::ForPages(options, VmmPolicy::kSmallLimitBytes)
              : AutoGrowthPolicy(options),
          /*is_complete=*/false),
      vmm_(options.Get<VirtualMemoryOptions>()),
      device_(DeviceOf(*pool, *stream, options)),
      location_{Location::Kind::kDevice, place().index},
      peers_(options.peers != nullptr
                 ? options.peers
                 : std::make_shared<PeerAccess>(location_)),
      may_share_(device_ != nullptr && device_->caps().share_fd),
      may_rdma_(device_ != nullptr && device_->caps().rdma) {
  has_ranges_ = device_ != nullptr;
  this->pool().AddHolder(*this);
  peers_->Add(*this);
}

VirtualMemoryAllocator::~VirtualMemoryAllocator() {
  // From here on no call of the pool reaches this object.
  pool().RemoveHolder(*this);
  peers_->Remove(*this);
  ReturnLoans(LoanRecall::kWait);
  AwaitPages();
  GiveUpIdle();
  ReleaseFree(SIZE_MAX, Wait::kForStream);
  std::vector<Block*> retired;
  if (ReserveForRetired(retired, SIZE_MAX) && retired.capacity() != 0) {
    {
      const std::lock_guard<ChainLock> guard(lock_);
      TakeRetired(Retired::kAll, retired);
    }
    std::size_t released = 0;
    UnmapTaken(retired, &released);
  }
  ReleaseRest();
  FreeRanges();
  LoseRefused();
}

void VirtualMemoryAllocator::AwaitPages() noexcept {
  if (is_over_ || handle_count_ == 0) return;
  const Status status = SynchronizeStream();
  STRATA_LOG_IF(Error, status != Status::kSuccess)
      << name() << ": pages of stream " << stream().uid << " on "
      << ToString(place())
      << " go to the system although their work cannot be waited for ("
      << status << ")";
  is_over_ = true;
}

// Without lock_: no other thread knows this object.
void VirtualMemoryAllocator::ReleaseRest() noexcept {
  Block* retired = nullptr;
  while (Block* const block = retired_.first()) {
    retired_.Remove(block);
    block->free_next = std::exchange(retired, block);
  }
  retired_count_ = 0;
  while (Block* block = retired) {
    retired = block->free_next;
    blocks_.SetUnusable(block, BlockList::kPendingPool);
    if (PageHandle* const handle = HandleElsewhere(*block)) ++handle->unmaps;
    std::size_t released = 0;
    UnmapTaken({&block, 1}, &released);
  }
  // The driver refused to unmap these: their handles stay mapped.
  for (Block* block = retired_.first(); block != nullptr;
       block = block->free_next) {
    if (PageHandle* const handle = HandleElsewhere(*block)) ++handle->unmaps;
  }
  for (Chunk* chunk = blocks_.first_chunk();
       chunk != nullptr && handle_count_ != 0; chunk = chunk->next) {
    if (!chunk->is_range) continue;
    const std::byte* end = nullptr;  // of the blocks seen
    for (Block* block = chunk->first; block != nullptr;) {
      const bool is_seen = block->data < end;
      if (is_seen || !BlockList::IsUsable(*block) || !block->is_free) {
        block = block->next;
        continue;
      }
      end = vmm::EndOf(*block);
      ReleaseBlock(block);
      block = chunk->first;  // Blocks may have been joined.
    }
  }
}

void VirtualMemoryAllocator::ReleaseBlock(Block* block) noexcept {
  AddressRange& range = vmm::RangeOf(*block);
  const auto for_each = [&](auto visit) {
    for (std::byte* at = block->data; at < vmm::EndOf(*block);) {
      PageHandle* const handle = range.HandleAt(at);
      at = handle->end();
      visit(*handle);
    }
  };
  const auto tell = [&](int count_change) {
    for_each([&](const PageHandle& handle) {
      pool().TellOfRange(handle.base, handle.bytes, count_change);
    });
  };
  bool is_elsewhere = false;
  for_each([&](const PageHandle& handle) {
    is_elsewhere = is_elsewhere || handle.unmaps != 0;
  });
  if (is_elsewhere) return;
  tell(-1);
  MakePending(block);
  if (Unmap(block->data, block->size) != Status::kSuccess) {
    tell(+1);
    Restore(block);
    return;
  }
  PageHandle* handles = nullptr;
  for_each([&](PageHandle& handle) {
    handle.next = std::exchange(handles, &handle);
    --handle_count_;
  });
  range.SetHandle(block->data, block->size, nullptr);
  MakeHole(block);
  ReleaseHandles(handles);
}

void VirtualMemoryAllocator::LoseRefused() noexcept {
  while (unused_ranges_ != nullptr) {
    const std::unique_ptr<AddressRange> lost(
        static_cast<AddressRange*>(unused_ranges_));
    unused_ranges_ = unused_ranges_->next;
  }
  while (refused_ != nullptr) {
    const std::unique_ptr<PageHandle> lost(refused_);
    refused_ = refused_->next;
    STRATA_LOG(Error) << name() << ": " << lost->bytes << " bytes on "
                      << ToString(place())
                      << " cannot be released and are lost";
  }
}

Stats VirtualMemoryAllocator::stats() const {
  const auto joined = LockJoined();
  Stats stats = StatsLocked();
  stats.reserved_bytes += refused_bytes_;
  stats.idle_bytes += IdlePageBytesLocked() + idle_loans_.bytes();
  stats.chunks = stats.chunks - range_count_ + handle_count_;
  return stats;
}

bool VirtualMemoryAllocator::IsConsistent() const {
  if (!AutoGrowthAllocator::IsConsistent()) return false;
  const auto joined = LockJoined();
  std::size_t handles = 0;
  for (const Chunk* chunk = blocks_.first_chunk(); chunk != nullptr;
       chunk = chunk->next) {
    if (!chunk->is_range) continue;
    const AddressRange& range = *static_cast<const AddressRange*>(chunk);
    for (const Block* block = chunk->first; block != nullptr;
         block = block->next) {
      const bool is_usable = BlockList::IsUsable(*block);
      const bool is_pending = block->pool == BlockList::kPendingPool;
      const bool is_retired = block->pool == BlockList::kRetiredPool;
      std::byte* const end = vmm::EndOf(*block);
      for (std::byte* at = range.PageDown(block->data); at < end;
           at += kPageBytes) {
        const PageHandle* handle = range.HandleAt(at);
        // A mapping that the driver refuses to unmap retires with its handle.
        if (!is_pending && !is_retired && (handle != nullptr) != is_usable) {
          return false;
        }
        if (handle == nullptr) continue;
        if (at < handle->base || at >= handle->end()) {
          // Retired addresses of a handle that is mapped elsewhere.
          if (is_usable) return false;
          continue;
        }
        // Count each handle once, at the block with its first byte.
        if (handle->base == at && at >= block->data) ++handles;
      }
      if (!is_usable || !block->is_free) continue;
      // An open block stays open while its hole gets smaller, or is pending.
      const bool is_in_mapped =
          IsMapped(block->previous) && IsMapped(block->next);
      if (IsInOpenBlocks(*block) ? is_in_mapped : OpenBlocks::IsOpen(*block)) {
        return false;
      }
    }
  }
  return handles == handle_count_;
}

void CheckVirtualMemoryAllocator(const StrategyOptions& options,
                                 std::uint64_t /*limit_mb*/) {
  static_cast<void>(VmmPolicy(options.Get<VirtualMemoryOptions>()));
}

std::shared_ptr<Allocator> MakeVirtualMemoryAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& options) {
  return AutoGrowthAllocator::MakeLender(
      std::make_unique<VirtualMemoryAllocator>(std::move(pool),
                                               std::move(stream), options));
}

}  // namespace strata
