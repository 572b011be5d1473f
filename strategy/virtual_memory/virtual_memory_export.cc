// Sharing of handles: with other processes, with other devices, and with
// programs that register memory.

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "strata/base/log.h"
#include "strata/strategy/virtual_memory/virtual_memory_allocator.h"

namespace strata {

// Pins handles at their addresses, and holds their strategy and its pool.
class VirtualMemoryAllocator::Pin {
 public:
  Pin(VirtualMemoryAllocator& strategy, std::vector<PageHandle*> handles)
      : pool_(strategy.shared_pool()),
        strategy_(strategy),
        handles_(std::move(handles)) {
    const std::lock_guard<ChainLock> guard(strategy_.lock_);
    for (PageHandle* handle : handles_) ++handle->pins;
    strategy_.pin_count_ += handles_.size();
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() {
    // From here on the strategy may end at any time.
    if (strategy_.Unpin(handles_)) {
      pool_->Release();
    } else {
      pool_->budget().NotifyIdle();
    }
  }

  const std::vector<PageHandle*>& handles() const { return handles_; }

 private:
  const std::shared_ptr<ChunkPool> pool_;
  VirtualMemoryAllocator& strategy_;
  const std::vector<PageHandle*> handles_;
};

VirtualMemoryAllocator* VirtualMemoryAllocator::StrategyOf(
    const Allocation& allocation, const AddressRange** range) {
  const Chunk* chunk = allocation.block()->chunk;
  // A chunk may be a block that another stream lent.
  while (chunk != nullptr && !chunk->is_range) {
    chunk = chunk->memory->block()->chunk;
  }
  if (chunk == nullptr) return nullptr;
  *range = static_cast<const AddressRange*>(chunk);
  return static_cast<VirtualMemoryAllocator*>(chunk->owner);
}

std::optional<AddressSpan> MappedSpanOf(const Allocation& allocation) {
  const AddressRange* range = nullptr;
  const auto* const strategy =
      VirtualMemoryAllocator::StrategyOf(allocation, &range);
  if (strategy == nullptr) return std::nullopt;
  const auto* const first = static_cast<const std::byte*>(allocation.data());
  const std::lock_guard<ChainLock> guard(strategy->lock_);
  std::byte* const begin = range->HandleAt(first)->base;
  std::byte* const end = range->HandleAt(first + allocation.size() - 1)->end();
  return AddressSpan{begin, static_cast<std::size_t>(end - begin)};
}

Status ExportMapped(const Allocation& allocation, ExportedMemory* exported) {
  const AddressRange* range = nullptr;
  auto* const strategy = VirtualMemoryAllocator::StrategyOf(allocation, &range);
  if (strategy == nullptr) return Status::kNotSupported;
  const auto* const begin = static_cast<const std::byte*>(allocation.data());
  const std::byte* const end = begin + allocation.size();
  std::vector<PageHandle*> handles;
  // A handle is at least a page.
  handles.reserve(allocation.size() / kPageBytes + 2);
  std::vector<SharedPiece> pieces;
  pieces.reserve(handles.capacity());
  {
    const std::lock_guard<ChainLock> guard(strategy->lock_);
    for (const std::byte* at = begin; at < end;) {
      PageHandle* const handle = range->HandleAt(at);
      if (!handle->is_shareable) return Status::kNotSupported;
      SharedPiece piece;
      piece.handle_bytes = handle->bytes;
      piece.offset = static_cast<std::size_t>(at - handle->base);
      piece.bytes = static_cast<std::size_t>(
          std::min<const std::byte*>(end, handle->end()) - at);
      pieces.push_back(piece);
      handles.push_back(handle);
      at = handle->end();
    }
  }
  // The allocation holds the handles until they are pinned.
  const auto pin = std::make_shared<VirtualMemoryAllocator::Pin>(
      *strategy, std::move(handles));
  const Status status = strategy->ExportPieces(pin->handles(), pieces);
  ExportedMemory result(std::move(pieces), pin);
  if (status == Status::kSuccess) *exported = std::move(result);
  return status;
}

Status VirtualMemoryAllocator::ExportPieces(
    const std::vector<PageHandle*>& handles,
    std::vector<SharedPiece>& pieces) const noexcept {
  for (std::size_t i = 0; i < handles.size(); ++i) {
    Shareable shareable;
    const Status status = device_->ExportMemory(
        handles[i]->memory, ShareType::kPosixFd, &shareable);
    if (status != Status::kSuccess) return status;
    pieces[i].fd = shareable.fd;
  }
  return Status::kSuccess;
}

bool VirtualMemoryAllocator::Unpin(
    const std::vector<PageHandle*>& handles) noexcept {
  const std::lock_guard<ChainLock> guard(lock_);
  for (PageHandle* handle : handles) --handle->pins;
  pin_count_ -= handles.size();
  return pin_count_ == 0 && has_no_chain_;
}

std::size_t VirtualMemoryAllocator::PinOutdated(
    std::uint64_t version, std::vector<PageHandle*>& handles) noexcept {
  std::size_t outdated = 0;
  const PageHandle* last = nullptr;  // It may lie in several blocks.
  bool is_pending = false;
  for (const Chunk* chunk = blocks_.first_chunk(); chunk != nullptr;
       chunk = chunk->next) {
    if (!chunk->is_range) continue;
    const auto& range = *static_cast<const AddressRange*>(chunk);
    for (const Block* block = chunk->first; block != nullptr;
         block = block->next) {
      if (block->pool == BlockList::kPendingPool) is_pending = true;
      if (!BlockList::IsUsable(*block)) continue;
      std::byte* const end = block->data + block->size;
      for (std::byte* at = block->data; at < end;) {
        PageHandle* const handle = range.HandleAt(at);
        at = handle->end();
        if (handle->access_version >= version || handle == last) continue;
        last = handle;
        ++outdated;
        if (handles.size() == handles.capacity()) continue;
        ++handle->pins;
        handles.push_back(handle);
      }
    }
  }
  // Only a call that finds no outdated handle clears it. So after a failure of
  // ApplyGrants, the next growth calls ApplyGrants again.
  may_lack_grants_ =
      outdated != 0 || is_pending || version != peers_->version();
  return outdated;
}

Status VirtualMemoryAllocator::ApplyGrants() noexcept {
  if (device_ == nullptr) return Status::kSuccess;
  const PeerAccess::GrantsPtr grants = peers_->grants();
  std::vector<PageHandle*> handles;
  // The first round has no room; it counts the handles.
  for (std::size_t outdated = 0;;) {
    try {
      handles.clear();
      handles.reserve(outdated);
    } catch (const std::bad_alloc&) {
      return Status::kMemoryAllocation;
    }
    {
      const auto joined = LockJoined();
      outdated = PinOutdated(grants->version, handles);
    }
    if (handles.empty()) {
      if (outdated == 0) return Status::kSuccess;
      continue;
    }
    Status status = Status::kSuccess;
    std::size_t done = 0;
    for (; done < handles.size(); ++done) {
      const PageHandle& handle = *handles[done];
      status = SetAccess(handle.base, handle.bytes, *grants);
      if (status != Status::kSuccess) break;
    }
    {
      const std::lock_guard<ChainLock> guard(lock_);
      for (PageHandle* handle : handles) --handle->pins;
      // Not earlier: other threads may rely on the access then.
      for (std::size_t i = 0; i < done; ++i) {
        handles[i]->access_version =
            std::max(handles[i]->access_version, grants->version);
      }
    }
    pool().budget().NotifyIdle();
    if (status != Status::kSuccess) return status;
  }
}

void VirtualMemoryAllocator::CatchUpGrants() noexcept {
  {
    const std::lock_guard<ChainLock> guard(lock_);
    if (!may_lack_grants_) return;
  }
  const Status status = ApplyGrants();
  STRATA_LOG_IF(Error, status != Status::kSuccess)
      << name() << ": other devices cannot be granted access to mapped memory ("
      << status << ")";
}

Status VirtualMemoryAllocator::PublishGranted(
    FindOutdated find, FunctionRef<void()> publish) noexcept {
  while (true) {
    const PeerAccess::GrantsPtr grants = peers_->grants();
    Outdated outdated;
    {
      const auto joined = LockJoined();
      // PinOutdated sets may_lack_grants_ if it meets pending blocks. If it has
      // not run since the grants changed, it finds the published handles.
      if (may_lack_grants_) outdated = find(peers_->version());
      if (outdated.handle == nullptr) {
        publish();
        return Status::kSuccess;
      }
    }
    PageHandle& handle = *outdated.handle;
    const Status status = SetAccess(outdated.at, handle.bytes, *grants);
    if (status != Status::kSuccess) return status;
    const std::lock_guard<ChainLock> guard(lock_);
    handle.access_version = std::max(handle.access_version, grants->version);
  }
}

void VirtualMemoryAllocator::RestoreGranted(
    FindOutdated find, FunctionRef<void()> restore) noexcept {
  if (PublishGranted(find, restore) != Status::kSuccess) {
    const auto joined = LockJoined();
    restore();
  }
  CatchUpGrants();
}

VirtualMemoryAllocator::Outdated VirtualMemoryAllocator::OutdatedOf(
    const GrowthPlan& plan, std::uint64_t version) {
  for (const GrowthPiece& piece : plan.pieces) {
    if (piece.is_new() || piece.old != GrowthPiece::Old::kUsable) continue;
    PageHandle* const handle = piece.handle;
    if (handle->access_version < version) return {handle, handle->base};
  }
  const AddressRange& range = *plan.target.range;
  for (std::byte* at = plan.low; at < plan.high;) {
    PageHandle* const handle = range.HandleAt(at);
    // Holes have no handle.
    if (handle == nullptr) {
      at = range.PageDown(at) + kPageBytes;
      continue;
    }
    if (handle->access_version < version) return {handle, handle->base};
    at = handle->end();
  }
  return {};
}

}  // namespace strata
