#ifndef STRATA_ALLOCATION_CHUNKS_CHUNK_POOL_H_
#define STRATA_ALLOCATION_CHUNKS_CHUNK_POOL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/allocation/chunks/holder_list.h"
#include "strata/allocation/chunks/idle_market.h"
#include "strata/allocation/chunks/loans.h"
#include "strata/allocation/chunks/memory_budget.h"
#include "strata/allocation/decorator.h"
#include "strata/allocation/reclaim/reclaimer.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/base/function_ref.h"

namespace strata {

// The boundary between the strategies of one place and the system.
//
// Model: a strategy allocates chunks here, or maps pages and reports them. When
//   memory is exhausted, two steps of the Reclaimer of the place run: move an
//   idle chunk of another stream within reach, then release all idle memory to
//   the system. The parts of the pool are:
//   - MemoryBudget counts every byte held and enforces the limit;
//   - Loans lets one strategy use idle memory of another;
//   - IdleMarket moves idle memory to other streams and to the system;
//   - HolderList lists the strategies.
// Threads: any thread. No lock is held during a call of the device, of the
//   layer below, of a holder or of a visitor.
// Source: paddle.md §2 gpu_memory_limit_mb, §3.13; cuda_semantics.md §5.2 M3,
//   M6.
class ChunkPool final : public Decorator,
                        private IdleMarket::Sink,
                        public std::enable_shared_from_this<ChunkPool> {
 public:
  // `limit_bytes` 0: no limit. `reclaimer` belongs to the place. `limit_flag`
  // is the flag named in failures: Failure::limit_flag.
  ChunkPool(std::shared_ptr<Allocator> system, std::size_t limit_bytes,
            std::shared_ptr<Reclaimer> reclaimer, const char* limit_flag = "");
  // A pool on top of another pool. When this pool ends, `below` receives the
  // chunks that cannot be waited for.
  ChunkPool(std::shared_ptr<ChunkPool> below, std::size_t limit_bytes,
            std::shared_ptr<Reclaimer> reclaimer);
  ~ChunkPool() override;

  // The parts of the pool.
  MemoryBudget& budget() { return budget_; }
  const MemoryBudget& budget() const { return budget_; }
  HolderList& holders() { return holders_; }
  Loans& loans() { return loans_; }
  IdleMarket& market() { return market_; }
  // Adds a strategy that may have idle memory. RemoveHolder() removes it and
  // waits for calls in flight.
  void AddHolder(ChunkHolder& holder) { holders_.Add(holder); }
  void RemoveHolder(ChunkHolder& holder) noexcept { holders_.Remove(holder); }

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  // Like TryAllocate(), but work of `user` will be the first to use the chunk.
  // May return an offered chunk of at most twice the size.
  Allocation* TryAllocateFor(const Request& request, ChainStream& user,
                             Failure& failure) noexcept;
  // Frees `chunk`; every use of it must be complete. A loan goes to its lender.
  void DoFree(Allocation* chunk) noexcept override;
  // Like DoFree(). Returns the bytes that the system (0 if it refused) or the
  // lender received.
  std::size_t Return(Allocation* chunk) noexcept;
  // Takes over a chunk that work of `last_user` may still use: see IdleMarket.
  void Offer(Allocation* chunk, ChainStream& last_user) noexcept {
    market_.Offer(chunk, last_user);
  }

  // Notifies the visitors of this pool and of the pool below that `bytes` at
  // `data` were mapped (+1), or are about to be unmapped (-1).
  void TellOfRange(void* data, std::size_t bytes, int count_change) noexcept;
  // Upper bound of the idle bytes here and in the pool below.
  std::size_t IdleBytes() const noexcept;
  // Releases idle memory of all holders but `asking`, here and in the pool
  // below, if its last use has completed, until the sum is `bytes`. Releases
  // nothing if all holders together have less than `least_bytes` idle. Returns
  // the bytes released. Never waits.
  std::size_t GiveBackOfOthers(std::size_t bytes, std::size_t least_bytes,
                               const ChunkHolder& asking) noexcept;

  // Is called for each range of memory that the system gives or receives: a
  // chunk, or mapped pages. `count_change`: +1 after a range is acquired, -1
  // before it is released. Must not throw.
  using Visitor =
      std::function<void(void* data, std::size_t bytes, int count_change)>;
  // Adds a visitor. It is not called for ranges that exist already. Visitors
  // run in the order of this call for a new range, and in reverse order for a
  // range that is released.
  //
  // Errors: std::bad_alloc.
  void AddVisitor(Visitor visitor);
  // Lists the blocks of the place that belong to none of the layers `listed`:
  // blocks that remain from destroyed chains, offered chunks, and memory that
  // the system refused to take back. Together with the blocks of `listed` they
  // are all reserved memory.
  //
  // Errors: std::bad_alloc.
  std::vector<BlockInfo> BlocksBeside(
      const std::set<const Allocator*>& listed) const;

  // Upper bound of the bytes that the system gains if all idle memory is
  // released; if `of_limit`, of the bytes that the limit gains.
  std::size_t ReclaimableBytes(bool of_limit) const noexcept;
  std::size_t Release() noexcept override { return market_.Release(); }
  // Releases all memory after the last allocation. A chunk that cannot be
  // waited for goes to the pool below. Without one it goes to the system, which
  // is logged.
  void Close() noexcept { market_.Close(); }
  // For a pool on top of another: releases all idle memory after the last
  // allocation. Blocks may still be live. The pool below later releases memory
  // that becomes idle. A shared pointer must own this pool.
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
  // Adds a source to the Reclaimer of the place, which must exist.
  Reclaimer::Registration RegisterReclaim(Reclaimer::Step step,
                                          Reclaimer::Source& source,
                                          int priority = 0) const {
    return Reclaimer::Register(reclaimer_, step, source, priority);
  }
  HitPath* hit_path() override { return nullptr; }

 private:
  // The two reclaim steps of the pool.
  class TakeStep;
  class ReleaseStep;

  ChunkPool(std::shared_ptr<Allocator> underlying, ChunkPool* below,
            std::size_t limit_bytes, std::shared_ptr<Reclaimer> reclaimer,
            const char* limit_flag);
  // IdleMarket::Sink.
  std::size_t Give(const OfferedChunks::Entry& offered,
                   bool is_over) noexcept override;
  std::size_t ReleaseBelow() noexcept override;
  // Calls the visitors of this pool.
  void Visit(void* data, std::size_t bytes, int count_change) const noexcept;
  // Passes the chunk to the layer below, by `give`, and no longer counts it
  // here.
  void GiveBelow(const Allocation* chunk, FunctionRef<void()> give) noexcept;

  const std::shared_ptr<Reclaimer> reclaimer_;
  ChunkPool* const below_;  // null: the layer below belongs to the system
  mutable std::mutex visitors_mutex_;
  // The list is replaced, never changed: readers copy the pointer. Guarded by
  // visitors_mutex_.
  std::shared_ptr<const std::vector<Visitor>> visitors_ =
      std::make_shared<const std::vector<Visitor>>();
  MemoryBudget budget_;
  HolderList holders_;
  Loans loans_;
  IdleMarket market_;
  std::unique_ptr<Reclaimer::Source> take_step_;
  std::unique_ptr<Reclaimer::Source> release_step_;
  Reclaimer::Registration take_registration_;
  Reclaimer::Registration release_registration_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_CHUNK_POOL_H_
