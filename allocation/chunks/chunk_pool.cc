#include "strata/allocation/chunks/chunk_pool.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

#include "strata/base/log.h"

namespace strata {

class ChunkPool::TakeStep final : public Reclaimer::Source {
 public:
  explicit TakeStep(ChunkPool& pool) : pool_(pool) {}
  // Moving a chunk releases nothing to the system.
  std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
    return 0;
  }
  std::size_t Reclaim(Stream stream, std::size_t bytes) noexcept override {
    return pool_.market_.MoveWithinReach(stream, bytes);
  }

 private:
  ChunkPool& pool_;
};

class ChunkPool::ReleaseStep final : public Reclaimer::Source {
 public:
  explicit ReleaseStep(ChunkPool& pool) : pool_(pool) {}
  std::size_t ReclaimableBytes(bool of_limit) const noexcept override {
    return pool_.ReclaimableBytes(of_limit);
  }
  std::size_t Reclaim(Stream /*stream*/, std::size_t bytes) noexcept override {
    return pool_.market_.GiveBackAll(bytes);
  }

 private:
  ChunkPool& pool_;
};

ChunkPool::ChunkPool(std::shared_ptr<Allocator> system, std::size_t limit_bytes,
                     std::shared_ptr<Reclaimer> reclaimer,
                     const char* limit_flag)
    : ChunkPool(std::move(system), nullptr, limit_bytes, std::move(reclaimer),
                limit_flag) {}

ChunkPool::ChunkPool(std::shared_ptr<ChunkPool> below, std::size_t limit_bytes,
                     std::shared_ptr<Reclaimer> reclaimer)
    : ChunkPool(below, below.get(), limit_bytes, std::move(reclaimer), "") {}

ChunkPool::ChunkPool(std::shared_ptr<Allocator> underlying, ChunkPool* below,
                     std::size_t limit_bytes,
                     std::shared_ptr<Reclaimer> reclaimer,
                     const char* limit_flag)
    : Decorator(std::move(underlying)),
      reclaimer_(std::move(reclaimer)),
      below_(below),
      budget_(*this, below != nullptr ? &below->budget_ : nullptr, limit_bytes,
              limit_flag, reclaimer_),
      loans_(holders_, budget_),
      market_(*this, budget_, holders_, loans_),
      take_step_(std::make_unique<TakeStep>(*this)),
      release_step_(std::make_unique<ReleaseStep>(*this)) {
  if (reclaimer_ == nullptr) return;
  take_registration_ = Reclaimer::Register(
      reclaimer_, Reclaimer::Step::kTakeIdleChunks, *take_step_);
  release_registration_ = Reclaimer::Register(
      reclaimer_, Reclaimer::Step::kReleaseIdleChunks, *release_step_);
}

ChunkPool::~ChunkPool() {
  take_registration_.Reset();
  release_registration_.Reset();
  Close();
  STRATA_LOG_IF(Error, reserved_bytes() != 0)
      << "chunk_pool: " << reserved_bytes() << " bytes on " << ToString(place())
      << " were never freed";
}

Allocation* ChunkPool::TryAllocate(const Request& request,
                                   Failure& failure) noexcept {
  if (!budget_.ClaimRange(request.bytes, failure)) return nullptr;
  Allocation* chunk = underlying()->TryAllocate(request, failure);
  if (chunk == nullptr) {
    budget_.UnclaimRange(request.bytes, /*was_refused=*/true);
    budget_.Explain(failure, request.bytes);
    return nullptr;
  }
  budget_.Hold(request.bytes, chunk->size(), /*pieces=*/1);
  Visit(chunk->data(), chunk->size(), +1);
  return chunk;
}

Allocation* ChunkPool::TryAllocateFor(const Request& request, ChainStream& user,
                                      Failure& failure) noexcept {
  if (Allocation* chunk = market_.offered().TakeFor(request.bytes, user)) {
    return chunk;
  }
  return TryAllocate(request, failure);
}

std::size_t ChunkPool::Give(const OfferedChunks::Entry& offered,
                            bool is_over) noexcept {
  Allocation* const chunk = offered.chunk;
  if (!is_over && below_ != nullptr && offered.stream != nullptr) {
    // The pool below waits for the same work; it lives as long as the place.
    GiveBelow(chunk, [&] { below_->Offer(chunk, *offered.stream); });
    return 0;
  }
  STRATA_LOG_IF(Error, !is_over)
      << "chunk_pool: " << chunk->size() << " bytes at " << chunk->data()
      << " go to the system although the stream that used them could not be "
         "waited for";
  return Return(chunk);
}

std::size_t ChunkPool::ReleaseBelow() noexcept {
  return below_ != nullptr ? 0 : underlying()->Release();
}

std::size_t ChunkPool::Return(Allocation* chunk) noexcept {
  const std::size_t bytes = chunk->size();
  const std::size_t unreturned = unreturned_bytes();
  DoFree(chunk);
  return unreturned_bytes() > unreturned ? 0 : bytes;
}

void ChunkPool::DoFree(Allocation* chunk) noexcept {
  if (const Chunk* lent_from = chunk->block()->chunk) {
    lent_from->owner->TakeBack(chunk);
    budget_.NotifyIdle();
    return;
  }
  GiveBelow(chunk, [&] { underlying()->DoFree(chunk); });
}

void ChunkPool::GiveBelow(const Allocation* chunk,
                          FunctionRef<void()> give) noexcept {
  const std::size_t bytes = chunk->size();
  Visit(chunk->data(), bytes, -1);
  budget_.Return(bytes, [&] {
    give();
    return true;
  });
}

void ChunkPool::AddVisitor(Visitor visitor) {
  const std::lock_guard<std::mutex> guard(visitors_mutex_);
  auto grown = std::make_shared<std::vector<Visitor>>(*visitors_);
  grown->push_back(std::move(visitor));
  visitors_ = std::move(grown);
}

void ChunkPool::Visit(void* data, std::size_t bytes,
                      int count_change) const noexcept {
  std::shared_ptr<const std::vector<Visitor>> visitors;
  {
    const std::lock_guard<std::mutex> guard(visitors_mutex_);
    visitors = visitors_;
  }
  const auto visit = [&](const Visitor& visitor) {
    visitor(data, bytes, count_change);
  };
  if (count_change > 0) {
    std::for_each(visitors->begin(), visitors->end(), visit);
  } else {
    std::for_each(visitors->rbegin(), visitors->rend(), visit);
  }
}

void ChunkPool::TellOfRange(void* data, std::size_t bytes,
                            int count_change) noexcept {
  if (below_ != nullptr) below_->TellOfRange(data, bytes, count_change);
  Visit(data, bytes, count_change);
}

std::size_t ChunkPool::IdleBytes() const noexcept {
  return market_.Idle().bytes_with_lent +
         (below_ != nullptr ? below_->IdleBytes() : 0);
}

std::size_t ChunkPool::GiveBackOfOthers(std::size_t bytes,
                                        std::size_t least_bytes,
                                        const ChunkHolder& asking) noexcept {
  if (IdleBytes() < least_bytes) return 0;
  std::size_t given = market_.GiveBackDone(bytes, &asking);
  if (below_ != nullptr && given < bytes) {
    given += below_->GiveBackOfOthers(bytes - given, /*least_bytes=*/0, asking);
  }
  return given;
}

void ChunkPool::EndAllocations() noexcept {
  if (below_ == nullptr || budget_.held_bytes() == 0) return;
  market_.GiveBackAll(SIZE_MAX);
  if (budget_.held_bytes() == 0) return;
  try {
    below_->market_.AddEnded(
        std::shared_ptr<IdleMarket>(shared_from_this(), &market_));
  } catch (const std::bad_alloc&) {
    STRATA_LOG(Error) << "chunk_pool: no host memory to list "
                      << budget_.held_bytes() << " bytes on "
                      << ToString(place())
                      << "; they go back with the last block";
  }
}

std::size_t ChunkPool::ReclaimableBytes(bool of_limit) const noexcept {
  const ChunkHolder::IdleInfo idle = market_.Idle();
  return unreturned_bytes() +
         (of_limit ? idle.bytes_with_lent : idle.system_bytes);
}

std::vector<BlockInfo> ChunkPool::BlocksBeside(
    const std::set<const Allocator*>& listed) const {
  std::vector<BlockInfo> blocks;
  market_.AppendBlocks(listed, blocks);
  AppendUnreturned(blocks);
  market_.offered().AppendBlocks(blocks);
  return blocks;
}

Stats ChunkPool::stats() const {
  Stats stats = budget_.stats();
  stats.idle_bytes += market_.offered().Bytes();
  return stats;
}

}  // namespace strata
