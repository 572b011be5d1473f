#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_VIRTUAL_MEMORY_ALLOCATOR_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_VIRTUAL_MEMORY_ALLOCATOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "strata/base/function_ref.h"
#include "strata/platform/device.h"
#include "strata/strategy/auto_growth/auto_growth_allocator.h"
#include "strata/strategy/blocks/block_list.h"
#include "strata/strategy/blocks/open_blocks.h"
#include "strata/strategy/virtual_memory/address_range.h"
#include "strata/strategy/virtual_memory/growth_plan.h"
#include "strata/strategy/virtual_memory/sharing/exported_memory.h"
#include "strata/strategy/virtual_memory/sharing/peer_access.h"
#include "strata/strategy/virtual_memory/vmm_policy.h"

namespace strata {

// Best fit over address ranges; only the used parts hold memory.
//
// Model: as AutoGrowthAllocator, but growth maps pages where a block lacks the
//   fewest bytes, and free handles (pieces of physical memory) move to the
//   place that needs them. Blocks of up to 256 KiB have ranges of their own. A
//   hit does not read the page table.
//   - A handle with all addresses in one free block is a free handle: no live
//     byte is in it. Only free handles move or are released.
//   - A free handle moves at once: it is mapped a second time, for blocks of
//     the same stream. Its old addresses serve no request. They are unmapped
//     after the end of the work that used them. Without aliases, a growth
//     waits for that work first. If the wait fails, no handle moves.
//   - The limit counts bytes of handles before the driver creates them.
//   - A growth changes nothing if a driver call fails. Memory that the driver
//     also refuses to unmap or to release serves no request. It stays counted
//     as reserved and idle, and a later release releases it.
//   - If the device refuses memory, the growth measures its free bytes again,
//     requests less, moves free handles, and takes idle memory of other
//     streams. Then it fails.
//   - An exported handle is pinned: it does not move, and is not released.
//   - A block of kOneHandle is all of a handle; kLegacyIpc allocates a chunk.
//   Without virtual memory on the device, or without address space left for the
//   place, the strategy grows by chunks as AutoGrowthAllocator does. Loans
//   between streams are as in AutoGrowthAllocator.
// Threads: any thread. No lock is held during a device call.
// Cost: a hit costs the same as in AutoGrowthAllocator. A growth makes two
//   device calls per handle and one per contiguous run. It is O(holes, blocks
//   between holes squared, n log n) for n free handles.
//   While there are more retired addresses than handles, a request that the
//   front does not serve from its cache unmaps some.
// Source: memory_policy.md §5, §9; cuda_semantics.md §1, §5.
class VirtualMemoryAllocator final : public AutoGrowthAllocator,
                                     private PeerAccess::Mapper {
 public:
  VirtualMemoryAllocator(std::shared_ptr<ChunkPool> pool,
                         std::shared_ptr<ChainStream> stream,
                         const StrategyOptions& options);
  ~VirtualMemoryAllocator() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;

  // HitPath. A request that must unmap retired addresses walks the layers.
  Block* TakeCached(std::size_t bytes) noexcept override {
    return MustUnmap() ? nullptr : AutoGrowthAllocator::TakeCached(bytes);
  }
  bool finds_all() const noexcept override { return requests_to_unmap_ != 1; }

  const char* name() const override { return "virtual_memory"; }
  std::uint32_t unserved_flags() const override {
    return device_ == nullptr ? std::uint32_t{kOneHandle} : 0;
  }
  Stats stats() const override;
  bool IsConsistent() const override;

 private:
  friend Status ExportMapped(const Allocation& allocation,
                             ExportedMemory* exported);
  friend std::optional<AddressSpan> MappedSpanOf(const Allocation& allocation);

  enum class Attempt {
    kServed,
    kPlanned,      // The lists match the plan; next: the driver calls.
    kNoAddresses,  // no run of addresses is large enough
    kShort,        // memory is short
    kFailed,       // The failure has the reason.
    kNoMove,       // The stream cannot be waited for, so no handle moves.
    kAgain,        // Records or vectors were too short for the plan.
  };
  struct Effort {
    std::size_t room_bytes = 0;  // Bytes by which the place can grow.
    std::size_t most_handle_bytes = SIZE_MAX;
    bool may_create = true;
    bool may_move = true;
    bool only_tails = false;
    int refusals = 0;  // Refusals of memory to earlier attempts.
    // Bytes that the plan of an earlier attempt lacked.
    std::size_t lacks_bytes = 0;
    bool is_one_handle = false;  // See kOneHandle.
  };

  // AutoGrowthAllocator.
  bool GrowByPages(Pool own, std::size_t size, Block** block,
                   Failure& failure) noexcept override;

  // ChunkHolder.
  IdleInfo Idle(std::size_t fit_bytes) const noexcept override;
  std::size_t GiveBackBestFit(std::size_t bytes) noexcept override;
  std::size_t GiveBackDone(std::size_t bytes,
                           std::size_t least_bytes) noexcept override;
  std::size_t GiveBackAll() noexcept override;
  void GiveUpIdle() noexcept override;
  Allocation* Lend(const LoanRequest& request) noexcept override;
  bool EndLending(End end) noexcept override;

  // Requests for special memory: virtual_memory_special.cc.
  Allocation* AllocateHandle(const Request& request, Failure& failure) noexcept;
  Allocation* AllocateForIpc(const Request& request, Failure& failure) noexcept;
  // Takes a free handle of exactly `size` bytes; null if there is none. Hold
  // lock_, with two records in stock.
  Block* TakeWholeHandle(std::size_t size) noexcept;
  // The idle chunks that may be split.
  enum class Cuts {
    kAsPolicy,  // as for other requests
    kEnds,      // if the rest is less than a page
    kAll,
  };
  // Splits the smallest free block of a pool that `cuts` permits; looks at all
  // blocks. Null if there is none. Hold lock_, with a record in stock.
  Block* CarveAny(Pool own, std::size_t size, Cuts cuts) noexcept;
  // Plans one new handle of `size` bytes in a hole. Hold lock_.
  Attempt PlanHandle(Pool own, std::size_t size, const Effort& effort,
                     GrowthPlan& plan) noexcept;

  // Export: virtual_memory_export.cc.
  class Pin;
  // The strategy of the range that contains `allocation`, and that range; null
  // if it is in no range.
  static VirtualMemoryAllocator* StrategyOf(const Allocation& allocation,
                                            const AddressRange** range);
  // Sets the descriptors of the pieces, as far as the device exports them.
  Status ExportPieces(const std::vector<PageHandle*>& handles,
                      std::vector<SharedPiece>& pieces) const noexcept;
  // Removes pins. True if the pool can end the strategy now.
  bool Unpin(const std::vector<PageHandle*>& handles) noexcept;
  // Grants of peers: as PeerAccess::Mapper. Call it without the lock.
  Status ApplyGrants() noexcept override;
  // Pins mapped handles with grants older than `version`, as far as `handles`
  // has room. Returns their number. ~VirtualMemoryAllocator waits for
  // ApplyGrants. Hold lock_.
  std::size_t PinOutdated(std::uint64_t version,
                          std::vector<PageHandle*>& handles) noexcept;
  // Applies grants that some handles may lack.
  void CatchUpGrants() noexcept;
  // A mapping that lacks grants; null: none does.
  struct Outdated {
    PageHandle* handle = nullptr;
    std::byte* at = nullptr;
  };
  using FindOutdated = FunctionRef<Outdated(std::uint64_t version)>;
  // Calls `publish` with the lock held, once `find` finds no pending mapping
  // with grants older than `version`. Sets their access first. On an error,
  // does not call `publish`.
  Status PublishGranted(FindOutdated find,
                        FunctionRef<void()> publish) noexcept;
  // As PublishGranted, but calls `restore` also after an error. A later growth
  // applies the grants then.
  void RestoreGranted(FindOutdated find, FunctionRef<void()> restore) noexcept;
  // A mapping that UndoPlan makes usable again.
  static Outdated OutdatedOf(const GrowthPlan& plan, std::uint64_t version);

  // Growth: virtual_memory_growth.cc. Without the lock.
  // As GrowByPages; false if there are no addresses.
  bool GrowWith(Effort effort, Pool own, std::size_t size, Block** block,
                Failure& failure) noexcept;
  // Plans under the lock, and removes the blocks of the plan from the lists.
  Attempt PlanUnderLock(Pool own, std::size_t size, const Effort& effort,
                        GrowthPlan& plan, Block** block) noexcept;
  // Fetches host memory for a plan that lacked it. False: there is none.
  bool Extend(GrowthPlan& plan) const noexcept;
  // Makes the driver calls of the plan, and commits or undoes it.
  Attempt Execute(Pool own, GrowthPlan& plan, Block** block,
                  Failure& failure) noexcept;
  Attempt Undo(GrowthPlan& plan) noexcept;
  // Whether another attempt may succeed. False: `failure` explains the
  // shortage.
  bool MayTryAgain(Effort& effort, Failure& failure) noexcept;
  // After a refusal: makes the next attempt request less. False: nothing less
  // is left to request.
  bool AskForLess(const GrowthPlan& plan, Effort& effort) noexcept;
  // Explains why a growth of `bytes` is refused. False: the place has room now.
  bool ExplainShortage(std::size_t bytes, Failure& failure) noexcept;
  // Whether the plan, which lacked memory, could be met if all idle memory were
  // released. The plan itself uses some of it.
  bool MayEverFit(const GrowthPlan& plan, const Effort& effort) noexcept;
  // The failure of a growth by `bytes` that the device refused.
  void ExplainRefusal(Status status, std::size_t bytes,
                      Failure& failure) noexcept;
  // Obtains idle memory of other streams, or releases free handles of this one.
  bool MakeRoom(std::size_t bytes, const Effort& effort,
                bool* gave_own) noexcept;
  // Reserves a range for `size`, or a smaller one. False: there are no
  // addresses.
  bool AddRange(Pool own, std::size_t size) noexcept;
  std::unique_ptr<AddressRange> ReserveRange(std::size_t bytes) noexcept;

  // Driver calls: virtual_memory_driver.cc. Without the lock.
  // Creates and maps the pieces. If a call fails, undoes the calls before it.
  // The pieces record the calls that it could not undo.
  Status MapPieces(std::vector<GrowthPiece>& pieces) noexcept;
  Status MapPiece(GrowthPiece& piece) noexcept;
  Status Create(GrowthPiece& piece) noexcept;
  Status UnmapOld(GrowthPiece& piece) noexcept;
  Status Map(std::byte* at, const PageHandle& handle) noexcept;
  // Grants access to the devices of the place.
  Status SetAccess(std::byte* at, std::size_t bytes,
                   const PeerAccess::Grants& grants) noexcept;
  void UndoPiece(GrowthPiece& piece) noexcept;
  GrowthPiece::Old MapOldAgain(PageHandle& handle) noexcept;
  Status ReleaseMemory(const PageHandle& handle) noexcept;
  Status Unmap(std::byte* at, std::size_t bytes) noexcept;

  // Lists: virtual_memory_lists.cc. Hold lock_.
  // Makes the addresses of the plan pending, and the handles that it moves.
  void TakePlanned(GrowthPlan& plan) noexcept;
  // Splits `block` so that a block begins at `at`; returns that block.
  Block* CutAt(Block* block, std::byte* at) noexcept;
  // Removes a free block or a hole from its list.
  void MakePending(Block* block) noexcept;
  // Splits the handle's block from its free block; makes it pending.
  void TakeFreeHandle(FreeHandle& free) noexcept;
  void Restore(Block* block) noexcept;
  // Makes an unusable block a hole, joined with adjacent holes.
  void MakeHole(Block* block) noexcept;
  // Undoes TakePlanned, except for driver calls that could not be undone.
  void UndoPlan(GrowthPlan& plan) noexcept;
  // Restores a hole whose first piece is `first`. Returns the number of the
  // first piece after it.
  std::size_t UndoHole(Block* block, const GrowthPlan& plan,
                       std::size_t first) noexcept;
  void UndoHandle(const GrowthPiece& piece, AddressRange& range) noexcept;
  void Retire(Block* block, FreeEpochs::Epoch epoch) noexcept;
  // Records an unmapped handle for ReleaseRefused.
  void Refuse(PageHandle* handle) noexcept;
  // Makes the addresses of the plan one live block, and frees the rests.
  Block* CommitPlan(GrowthPlan& plan, Pool own) noexcept;
  void CommitMoves(GrowthPlan& plan) noexcept;
  template <class Visit>
  void ForEachFreeHandle(Visit visit) const;
  template <class Visit>
  static void ForEachFreeHandleOf(Block& block, Visit visit);
  // Lists the handles that a growth may move. False: the list has no room.
  bool CollectFree(GrowthPlan& plan) const;
  // Bytes of free and refused handles. Hold lock_.
  std::size_t IdlePageBytesLocked() const;
  // Bytes of the pages that loans and the free memory beside them touch,
  // without free handles. An upper bound of the bytes that a recall gains:
  // pages at the ends may hold live bytes. Hold lock_.
  std::size_t LentPageBytes() const;
  std::size_t IdlePageBytes() const noexcept;
  VmmPolicy::Held held() const {
    return {blocks_.chunk_bytes(), peak_taken_bytes_, moved_since_peak_,
            moves_since_peak_, created_while_lent_};
  }
  BlockChain& HolesOf(const Block& block) {
    return holes_[vmm::RangeOf(block).pool];
  }

  // Release: virtual_memory_idle.cc. Without the lock.
  enum class Wait { kForStream, kNever };
  // Releases free handles of `bytes`; returns the released bytes.
  std::size_t ReleaseFree(std::size_t bytes, Wait wait) noexcept;
  std::size_t ReleaseMapped(std::size_t bytes, Wait wait) noexcept;
  // Removes free handles of `bytes` from the lists: the smallest that suffices,
  // else the largest first. Also removes their retired addresses; if `retired`
  // has no room for them, removes nothing.
  void DetachFree(std::size_t bytes, std::vector<FreeHandle>& handles,
                  std::vector<Block*>& retired) noexcept;
  std::size_t ReleaseDetached(std::vector<FreeHandle>& handles) noexcept;
  // Undoes DetachFree for these handles and retired addresses.
  void RestoreDetached(std::span<const FreeHandle> handles,
                       std::span<Block* const> retired) noexcept;
  // Releases an unmapped handle, or records it for ReleaseRefused. Returns the
  // bytes released.
  std::size_t ReleaseHandle(PageHandle* handle) noexcept;
  std::size_t ReleaseHandles(PageHandle* handles) noexcept;
  std::size_t ReleaseRefused() noexcept;
  // Unmaps at most `most` retired addresses without pending work. Returns the
  // bytes released with them.
  std::size_t UnmapRetired(std::size_t most) noexcept;
  // The number of retired addresses that a growth by `size` unmaps.
  std::size_t UnmapsOfGrowth(std::size_t size) const noexcept;
  // Counts a request, and returns whether it must call UnmapSurplus.
  bool MustUnmap() noexcept {
    const std::uint32_t requests =
        requests_to_unmap_.load(std::memory_order_relaxed);
    if (requests <= 1) [[likely]] {
      return requests == 1;
    }
    requests_to_unmap_.store(requests - 1, std::memory_order_relaxed);
    return false;
  }
  // Unmaps a few retired addresses during a surplus.
  void UnmapSurplus() noexcept;
  // The retired addresses beyond the number of handles. Hold lock_.
  std::size_t SurplusLocked() const noexcept {
    return retired_count_ - std::min(retired_count_, handle_count_);
  }
  enum class Retired {
    kDone,     // Without pending work.
    kLeaving,  // Of a handle with is_leaving, or of an unknown one.
    kAll,
  };
  // Takes retired addresses off their list while `retired` has room. Hold
  // lock_.
  void TakeRetired(Retired which, std::vector<Block*>& retired) noexcept;
  bool MayTake(const Block& retired, Retired which) const noexcept;
  // Its handle, if that is mapped elsewhere; else null. Hold lock_.
  static PageHandle* HandleElsewhere(const Block& retired);
  // Undoes TakeRetired for one block. Hold lock_.
  void RetireAgain(Block* block) noexcept;
  // Reserves room for at most `most` of them. False: no host memory.
  bool ReserveForRetired(std::vector<Block*>& retired,
                         std::size_t most) noexcept;
  // Unmaps removed addresses, and releases handles mapped only there. False if
  // the driver refused; those addresses retire again.
  bool UnmapTaken(std::span<Block*> retired, std::size_t* released) noexcept;
  // Makes unmapped addresses holes; returns the handles mapped only there. Hold
  // lock_.
  PageHandle* MakeHoles(Block* const* first, std::size_t count) noexcept;
  void TellOf(Block* const* first, std::size_t count,
              int count_change) noexcept;
  void FreeRanges() noexcept;
  void DetachRanges() noexcept;
  // At the end: waits for the work that used the pages. Logged if that fails;
  // the pages are released all the same.
  void AwaitPages() noexcept;
  // At the end: releases the pages that remain, without host memory.
  void ReleaseRest() noexcept;
  // Releases all handles of a free block, which no other block shares. Does
  // nothing if one of them is still mapped elsewhere.
  void ReleaseBlock(Block* block) noexcept;
  // At the end: logs and forgets memory that the driver still refuses.
  void LoseRefused() noexcept;

  const VmmPolicy vmm_;
  Device* const device_;  // Null: the device has no virtual memory.
  const Location location_;
  const std::shared_ptr<PeerAccess> peers_;
  // Whether to create handles for export, and for network cards.
  std::atomic<bool> may_share_;
  std::atomic<bool> may_rdma_;
  // Number of the next request that unmaps some of a surplus of retired
  // addresses: 1 is the next request. 0: there is no surplus. Requests that run
  // at the same time may count as one.
  std::atomic<std::uint32_t> requests_to_unmap_{0};

  // Guarded by lock_.
  std::array<BlockChain, AutoGrowthPolicy::kPoolCount> holes_;
  std::array<std::size_t, AutoGrowthPolicy::kPoolCount> last_range_bytes_{};
  BlockChain retired_;
  std::size_t retired_count_ = 0;
  PageHandle* refused_ = nullptr;  // Handles that the driver did not release.
  // Bytes of refused_, and of handles mapped only at retired addresses.
  std::size_t refused_bytes_ = 0;
  Chunk* unused_ranges_ = nullptr;  // To be freed, linked by `next`.
  std::size_t range_count_ = 0;
  std::size_t handle_count_ = 0;
  std::size_t peak_taken_bytes_ = 0;  // Peak of taken_bytes_ at growths.
  std::size_t moved_since_peak_ = 0;  // Bytes; see VmmPolicy::Held.
  std::size_t moves_since_peak_ = 0;
  std::size_t created_while_lent_ = 0;
  std::size_t credit_bytes_ = 0;  // See VmmPolicy::PrefersFree.
  std::size_t pin_count_ = 0;     // Handles of all Pins.
  bool has_no_chain_ = false;     // No chain allocates here any more.
  bool may_lack_grants_ = false;  // Grants changed; a handle may lack them.
};

template <class Visit>
void VirtualMemoryAllocator::ForEachFreeHandleOf(Block& block, Visit visit) {
  if (block.size < kPageBytes || !block.chunk->is_range) return;
  const AddressRange& range = vmm::RangeOf(block);
  std::byte* const end = vmm::EndOf(block);
  std::byte* at = range.PageUp(block.data);
  while (at < end) {
    PageHandle* const handle = range.HandleAt(at);
    if (handle->base >= block.data && handle->end() <= end) {
      if (handle->pins == 0) visit(block, *handle);
    }
    at = handle->end();
  }
}

template <class Visit>
void VirtualMemoryAllocator::ForEachFreeHandle(Visit visit) const {
  const auto visit_block = [&](Block& block) {
    ForEachFreeHandleOf(block, visit);
  };
  for (const FreeIndex& blocks : index_) {
    blocks.FindBest(kPageBytes, [&](Block& block) {
      visit_block(block);
      return false;
    });
  }
  for (const OpenBlocks& blocks : open_) blocks.ForEach(visit_block);
}

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_VIRTUAL_MEMORY_ALLOCATOR_H_
