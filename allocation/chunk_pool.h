#ifndef STRATA_ALLOCATION_CHUNK_POOL_H_
#define STRATA_ALLOCATION_CHUNK_POOL_H_

#include <cstddef>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "strata/allocation/chain_stream.h"
#include "strata/allocation/chunk_holder.h"
#include "strata/allocation/chunks/chunk_visitors.h"
#include "strata/allocation/chunks/holder_list.h"
#include "strata/allocation/chunks/idle_market.h"
#include "strata/allocation/chunks/loans.h"
#include "strata/allocation/chunks/memory_budget.h"
#include "strata/allocation/decorator.h"
#include "strata/allocation/reclaimer.h"
#include "strata/platform/function_ref.h"

namespace strata {

class EndedPool;

// The edge between the strategies of one place and the system.
//
// Model: a strategy takes memory here as chunks, or maps pages and reports
//   them. Three parts share the work:
//   - MemoryBudget counts every byte held and enforces the limit;
//   - Loans has one strategy use what another one has left over;
//   - IdleMarket moves idle memory to other streams and to the system.
//   HolderList knows the strategies. When memory is exhausted, two rungs of the
//   ladder of the place move an idle chunk of another stream within reach, then
//   give all idle memory to the system.
// Threads: any thread. No lock is held during a call of the device, of the
//   layer below, of a holder or of a visitor.
// Source: paddle.md §2 gpu_memory_limit_mb, §3.13; cuda_semantics.md §5.2 M3,
//   M6.
class ChunkPool final : public Decorator, private IdleMarket::Sink {
 public:
  // `limit_bytes` 0: no limit. `reclaimer` is the ladder of the place.
  // `limit_flag` is the name for failures: Failure::limit_flag.
  ChunkPool(std::shared_ptr<Allocator> system, std::size_t limit_bytes,
            std::shared_ptr<Reclaimer> reclaimer, const char* limit_flag = "");
  // On another one, which gets the chunks that this one cannot wait for when it
  // ends.
  ChunkPool(std::shared_ptr<ChunkPool> below, std::size_t limit_bytes,
            std::shared_ptr<Reclaimer> reclaimer);
  ~ChunkPool() override;

  // The parts.
  MemoryBudget& budget() { return budget_; }
  const MemoryBudget& budget() const { return budget_; }
  HolderList& holders() { return holders_; }
  Loans& loans() { return loans_; }
  IdleMarket& market() { return market_; }
  // A strategy that may have idle memory, until it is removed; RemoveHolder
  // waits for calls in flight.
  void AddHolder(ChunkHolder& holder) { holders_.Add(holder); }
  void RemoveHolder(ChunkHolder& holder) noexcept { holders_.Remove(holder); }

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  // As TryAllocate, but work of `user` will be the first to use the chunk. An
  // offered chunk of at most twice the size serves, if there is one.
  Allocation* TryAllocateFor(const Request& request, ChainStream& user,
                             Failure& failure) noexcept;
  // Every use of the chunk is complete. A loan goes to its lender.
  void DoFree(Allocation* chunk) noexcept override;
  // The same; the bytes that the system took (0 if it refused to), or that went
  // home to their lender.
  std::size_t Return(Allocation* chunk) noexcept;
  // Takes over a chunk that work of `last_user` may still use: see IdleMarket.
  void Offer(Allocation* chunk, ChainStream& last_user) noexcept {
    market_.Offer(chunk, last_user);
  }

  // Memory that a strategy creates and maps by itself, in place of chunks: see
  // MemoryBudget.
  bool ClaimPages(std::size_t bytes, Failure& failure) noexcept {
    return budget_.ClaimPages(bytes, failure);
  }
  void UnclaimPages(std::size_t bytes, bool was_refused) noexcept {
    budget_.UnclaimPages(bytes, was_refused);
  }
  bool HasRoomNow(Device& device, std::size_t bytes) noexcept {
    return budget_.HasRoomNow(device, bytes);
  }
  void HoldPages(std::size_t bytes, std::size_t handles) noexcept {
    budget_.HoldPages(bytes, handles);
  }
  void ReturnPages(std::size_t bytes, FunctionRef<bool()> give) noexcept {
    budget_.ReturnPages(bytes, give);
  }
  bool ClaimAddresses(std::size_t bytes, std::size_t most) noexcept {
    return budget_.ClaimAddresses(bytes, most);
  }
  void UnclaimAddresses(std::size_t bytes) noexcept {
    budget_.UnclaimAddresses(bytes);
  }
  std::size_t RoomBytes(Device* device) noexcept {
    return budget_.RoomBytes(device);
  }
  // Tells the visitors, here and below, that `bytes` at `data` were mapped
  // (+1), or are about to be unmapped (-1).
  void TellOfRange(void* data, std::size_t bytes, int count_change) noexcept;
  // Gives idle memory of all holders but `asking`, here and below, to the
  // system whose last use is over, until it is `bytes`; returns the bytes
  // given. Waits for nothing.
  std::size_t GiveBackOfOthers(std::size_t bytes,
                               const ChunkHolder& asking) noexcept;

  // Ranges that exist already are not visited.
  using Visitor = ChunkVisitors::Visitor;
  void AddVisitor(Visitor visitor) { visitors_.Add(std::move(visitor)); }
  // The blocks of the place that belong to none of the layers `listed`: blocks
  // of strategies whose chains are gone, offered chunks, and memory that the
  // system refused to take back. With the blocks of `listed` they are all that
  // is reserved.
  //
  // Errors: std::bad_alloc.
  std::vector<BlockInfo> BlocksBeside(
      const std::set<const Allocator*>& listed) const;

  // An upper bound on the bytes that the system gains if all idle memory is
  // given back; `of_limit`: on the bytes that the limit gains.
  std::size_t ReclaimableBytes(bool of_limit) const noexcept;
  std::size_t Release() noexcept override { return market_.Release(); }
  // Nobody allocates here any more: releases all. A chunk that cannot be waited
  // for goes to the pool below; without one, to the system, which is logged.
  void Close() noexcept { market_.Close(); }
  // Of a pool on another one: nobody allocates here any more, but blocks may be
  // live. Gives all idle memory back; the pool below asks for what is idle
  // later.
  void EndAllocations() noexcept;

  std::size_t limit_bytes() const { return budget_.limit_bytes(); }
  const char* limit_flag() const { return budget_.limit_flag(); }
  std::size_t reserved_bytes() const noexcept {
    return budget_.reserved_bytes();
  }
  const char* name() const override { return "chunk_pool"; }
  Stats stats() const override;
  void ResetPeak() override { budget_.ResetPeak(); }
  Reclaimer* reclaimer() const override { return reclaimer_.get(); }
  // Adds a rung to the ladder of the place; there is one.
  Reclaimer::Registration RegisterReclaim(ReclaimStep step,
                                          ReclaimSource& source,
                                          int priority = 0) const {
    return Reclaimer::Register(reclaimer_, step, source, priority);
  }
  HitPath* hit_path() override { return nullptr; }

 private:
  // The two rungs of the ladder that the pool stands for.
  class TakeStep;
  class ReleaseStep;

  ChunkPool(std::shared_ptr<Allocator> underlying, ChunkPool* below,
            std::size_t limit_bytes, std::shared_ptr<Reclaimer> reclaimer,
            const char* limit_flag);
  // IdleMarket::Sink.
  std::size_t Give(const OfferedChunk& offered, bool is_over) noexcept override;
  std::size_t ReleaseBelow() noexcept override;
  // The layer below gets the chunk, by `give`; it is held here no more.
  void GiveBelow(const Allocation* chunk, FunctionRef<void()> give) noexcept;

  const std::shared_ptr<Reclaimer> reclaimer_;
  ChunkPool* const below_;  // null: the layer below is the system's
  ChunkVisitors visitors_;
  MemoryBudget budget_;
  HolderList holders_;
  Loans loans_;
  IdleMarket market_;
  // This one as a holder of below_, once it has ended; else null. Written once.
  std::unique_ptr<EndedPool> ended_;

  std::unique_ptr<ReclaimSource> take_step_;
  std::unique_ptr<ReclaimSource> release_step_;
  Reclaimer::Registration take_registration_;
  Reclaimer::Registration release_registration_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNK_POOL_H_
