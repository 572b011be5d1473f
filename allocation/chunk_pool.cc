#include "strata/allocation/chunk_pool.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <new>
#include <utility>

#include "strata/allocation/ended_pool.h"
#include "strata/allocation/size.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/platform/store_max.h"

namespace strata {
namespace {

// More than any device or host has: sums of such sizes do not overflow, and
// indices of free blocks know all that are less.
constexpr std::size_t kMaxChunkBytes = std::size_t{1} << 48;

}  // namespace

class ChunkPool::TakeStep final : public ReclaimSource {
 public:
  explicit TakeStep(ChunkPool& pool) : pool_(pool) {}
  // Moving a chunk gives the system nothing.
  std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
    return 0;
  }
  std::size_t Reclaim(Stream stream, std::size_t bytes) noexcept override {
    return pool_.MoveWithinReach(stream, bytes);
  }

 private:
  ChunkPool& pool_;
};

class ChunkPool::ReleaseStep final : public ReclaimSource {
 public:
  explicit ReleaseStep(ChunkPool& pool) : pool_(pool) {}
  std::size_t ReclaimableBytes(bool of_limit) const noexcept override {
    return pool_.ReclaimableBytes(of_limit);
  }
  std::size_t Reclaim(Stream /*stream*/, std::size_t bytes) noexcept override {
    return pool_.GiveBackAll(bytes);
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
      limit_bytes_(limit_bytes),
      limit_flag_(limit_flag),
      reclaimer_(std::move(reclaimer)),
      below_(below),
      visitors_(std::make_shared<const std::vector<Visitor>>()),
      holders_(std::make_shared<HolderList>()),
      take_step_(std::make_unique<TakeStep>(*this)),
      release_step_(std::make_unique<ReleaseStep>(*this)) {
  if (reclaimer_ == nullptr) return;
  take_registration_ = Reclaimer::Register(
      reclaimer_, ReclaimStep::kTakeIdleChunks, *take_step_);
  release_registration_ = Reclaimer::Register(
      reclaimer_, ReclaimStep::kReleaseIdleChunks, *release_step_);
}

ChunkPool::~ChunkPool() {
  take_registration_.Reset();
  release_registration_.Reset();
  if (ended_ != nullptr) {
    ended_.reset();
    --below_->ended_pools_;
  }
  Close();
  LOG_IF(ERROR, reserved_bytes() != 0)
      << "chunk_pool: " << reserved_bytes() << " bytes on " << ToString(place())
      << " were never freed";
}

bool ChunkPool::Claim(std::size_t bytes, Failure& failure) noexcept {
  if (bytes >= kMaxChunkBytes) {
    return RefuseClaim(Failure::Reason::kTooLarge, bytes, 0, failure);
  }
  std::size_t claimed = claimed_bytes_.load();
  do {
    const std::size_t held = claimed + unreturned_bytes();
    if (limit_bytes_ != 0 &&
        (held > limit_bytes_ || bytes > limit_bytes_ - held)) {
      return RefuseClaim(Failure::Reason::kLimit, bytes, held, failure);
    }
  } while (!claimed_bytes_.compare_exchange_weak(claimed, claimed + bytes));
  return true;
}

bool ChunkPool::RefuseClaim(Failure::Reason reason, std::size_t bytes,
                            std::size_t claimed,
                            Failure& failure) const noexcept {
  failure = Failure();
  failure.reason = reason;
  failure.layer = name();
  failure.reserved_bytes = claimed;
  Explain(failure, bytes);
  return false;
}

bool ChunkPool::FitsBesideChunks() noexcept {
  if (limit_bytes_ == 0) return true;
  const auto held = [this] { return chunk_bytes_ + unreturned_bytes(); };
  if (held() == 0) return true;
  const std::shared_ptr<DriverHeld> driver = driver_held();
  if (driver == nullptr || !driver->is_own()) return true;
  const auto fits = [&] {
    return driver->ReservedBytes() + held() <= limit_bytes_;
  };
  if (fits()) return true;
  driver->GiveBack();
  return fits();
}

bool ChunkPool::ClaimChunk(std::size_t bytes, Failure& failure) noexcept {
  if (!Claim(bytes, failure)) return false;
  chunk_bytes_ += bytes;
  if (FitsBesideChunks()) return true;
  UnclaimChunk(bytes);
  return RefuseClaim(Failure::Reason::kLimit, bytes, reserved_bytes(), failure);
}

void ChunkPool::UnclaimChunk(std::size_t bytes) noexcept {
  chunk_bytes_ -= bytes;
  Unclaim(bytes);
}

void ChunkPool::Unclaim(std::size_t bytes) noexcept {
  claimed_bytes_ -= bytes;
  // Meanwhile the limit may have refused another request.
  if (reclaimer_ != nullptr) {
    reclaimer_->retry().NotifyReturn(bytes, Failure::Reason::kLimit);
  }
}

void ChunkPool::Explain(Failure& failure, std::size_t bytes) const noexcept {
  failure.place = place();
  failure.requested_bytes = bytes;
  failure.rounded_bytes = bytes;
  // Without a limit of its own it was that of a pool below.
  if (limit_bytes_ != 0) {
    failure.limit_bytes = limit_bytes_;
    failure.limit_flag = limit_flag_;
  }
  if (failure.reserved_bytes == 0) failure.reserved_bytes = reserved_bytes();
}

Allocation* ChunkPool::TryAllocate(const Request& request,
                                   Failure& failure) noexcept {
  const bool claimed = ClaimChunk(request.bytes, failure);
  Allocation* chunk =
      claimed ? underlying()->TryAllocate(request, failure) : nullptr;
  if (chunk == nullptr) {
    if (claimed) {
      UnclaimChunk(request.bytes);
      Explain(failure, request.bytes);
      device_room_.Forget();
    }
    ++failures_;
    return nullptr;
  }
  // The system may give more than was asked; a limit bounds what we ask for.
  claimed_bytes_ += chunk->size() - request.bytes;
  chunk_bytes_ += chunk->size() - request.bytes;
  StoreMax(peak_reserved_bytes_,
           (reserved_bytes_ += chunk->size()) + unreturned_bytes());
  ++allocations_;
  Visit(chunk->data(), chunk->size(), +1);
  return chunk;
}

Allocation* ChunkPool::TryAllocateFor(const Request& request, ChainStream& user,
                                      Failure& failure) noexcept {
  if (Allocation* chunk = TakeOffered(request.bytes, user)) return chunk;
  return TryAllocate(request, failure);
}

ChunkPool::Idle ChunkPool::TakeOutLocked(
    std::vector<Idle>::iterator found) noexcept {
  if (found == offered_.end()) return Idle();
  Idle idle = std::move(*found);
  offered_.erase(found);
  ++taken_out_;
  return idle;
}

ChunkPool::Idle ChunkPool::TakeOut(std::size_t bytes) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  auto found = offered_.end();
  for (auto i = offered_.begin(); i != offered_.end(); ++i) {
    const std::size_t size = i->chunk->size();
    if (size < bytes || size - bytes > bytes) continue;
    if (found == offered_.end() || size < found->chunk->size()) found = i;
  }
  return TakeOutLocked(found);
}

ChunkPool::Idle ChunkPool::TakeOldestOut() noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  return TakeOutLocked(offered_.begin());
}

void ChunkPool::PutBack(const Idle& idle) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  --taken_out_;
  offered_.push_back(idle);  // its place was kept
}

void ChunkPool::GiveUpPlace() noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  --taken_out_;
}

Allocation* ChunkPool::TakeOffered(std::size_t bytes,
                                   ChainStream& user) noexcept {
  // A wait inside a capture would end it.
  if (user.timeline() != nullptr && !user.timeline()->MayTouch()) {
    return nullptr;
  }
  const Idle best = TakeOut(bytes);
  if (best.chunk == nullptr) return nullptr;
  if (!OrderAfter(best, user)) {
    // Not provably ours to use: it stays offered.
    PutBack(best);
    return nullptr;
  }
  GiveUpPlace();
  return best.chunk;
}

bool ChunkPool::OrderAfter(const Idle& idle, ChainStream& user) noexcept {
  if (idle.timeline == nullptr) return AwaitLastUse(idle);
  if (user.device() != nullptr && !user.retired() &&
      idle.timeline->OrderBefore(idle.tick, *user.device(), user.stream()) ==
          Status::kSuccess) {
    return true;
  }
  return AwaitLastUse(idle);
}

bool ChunkPool::AwaitLastUse(const Idle& idle) noexcept {
  Status status = Status::kSuccess;
  if (idle.timeline != nullptr) status = idle.timeline->Await(idle.tick);
  if (idle.stream != nullptr) status = idle.stream->Synchronize();
  return status == Status::kSuccess;
}

bool ChunkPool::IsLastUseOver(const Idle& idle) noexcept {
  if (idle.stream != nullptr && !idle.stream->IsDone()) return false;
  if (idle.timeline == nullptr) return true;
  if (!idle.timeline->IsDone(idle.tick)) {
    return idle.timeline->Poll() >= idle.tick;
  }
  idle.timeline->AcquireDone();
  return true;
}

bool ChunkPool::Keep(const Idle& idle) noexcept {
  std::vector<Idle> larger;  // made and destroyed without the lock
  try {
    while (true) {
      std::size_t places = 0;
      {
        const std::lock_guard<SpinLock> guard(lock_);
        places = offered_.size() + taken_out_;
        if (places >= offered_.capacity() && places < larger.capacity()) {
          larger.assign(std::make_move_iterator(offered_.begin()),
                        std::make_move_iterator(offered_.end()));
          offered_.swap(larger);
        }
        if (places < offered_.capacity()) {
          offered_.push_back(idle);
          return true;
        }
      }
      larger.reserve(2 * places + 1);
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void ChunkPool::Offer(Allocation* chunk, ChainStream& last_user) noexcept {
  Idle idle;
  idle.chunk = chunk;
  if (last_user.timeline() != nullptr) {
    idle.timeline = last_user.shared_timeline();
    idle.tick = idle.timeline->Note();
    // If it fails, whoever wants the chunk tries again.
    static_cast<void>(idle.timeline->Close());
  } else if (last_user.Synchronize() != Status::kSuccess &&
             (idle.stream = last_user.weak_from_this().lock()) == nullptr) {
    LOG(ERROR) << "chunk_pool: " << chunk->size() << " bytes at "
               << chunk->data() << " stay reserved: the device does not say "
               << "when they are free";
    return;
  }
  if (Keep(idle)) {
    NotifyIdle();
    return;
  }
  GiveToSystem(idle, AwaitLastUse(idle));
}

std::size_t ChunkPool::GiveToSystem(const Idle& idle, bool is_done) noexcept {
  Allocation* const chunk = idle.chunk;
  if (!is_done && below_ != nullptr && idle.stream != nullptr) {
    // There it waits for the same work, as long as the place lasts.
    GiveBelow(chunk, [&] { below_->Offer(chunk, *idle.stream); });
    return 0;
  }
  LOG_IF(ERROR, !is_done)
      << "chunk_pool: " << chunk->size() << " bytes at " << chunk->data()
      << " go to the system although the stream that used them could not be "
         "waited for";
  return Return(chunk);
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
    NotifyIdle();
    return;
  }
  GiveBelow(chunk, [&] { underlying()->DoFree(chunk); });
}

void ChunkPool::GiveBelow(const Allocation* chunk,
                          FunctionRef<void()> give) noexcept {
  Visit(chunk->data(), chunk->size(), -1);
  const std::size_t bytes = chunk->size();
  // Before another thread can be given the same memory: what is counted as
  // reserved never exceeds what the system has. The claim lasts longer, so that
  // what is held never exceeds the limit.
  reserved_bytes_ -= bytes;
  give();
  chunk_bytes_ -= bytes;
  claimed_bytes_ -= bytes;
  ++frees_;
  NotifyIdle();
}

void ChunkPool::NotifyIdle() noexcept {
  // Its bytes were counted when its last block was freed.
  if (reclaimer_ != nullptr) reclaimer_->retry().NotifyFree(0);
}

std::size_t ChunkPool::Release() noexcept {
  const std::size_t given = GiveBackEnded() + GiveOffered(/*all=*/false);
  return below_ != nullptr ? given : given + underlying()->Release();
}

void ChunkPool::Close() noexcept {
  GiveOffered(/*all=*/true);
  if (below_ == nullptr) underlying()->Release();
}

void ChunkPool::EndAllocations() noexcept {
  if (below_ == nullptr || ended_ != nullptr || reserved_bytes_ == 0) return;
  GiveBackAll(SIZE_MAX);
  if (reserved_bytes_ == 0) return;
  try {
    ended_ = std::make_unique<EndedPool>(*this, *below_);
    ++below_->ended_pools_;
  } catch (const std::bad_alloc&) {
    LOG(ERROR) << "chunk_pool: no host memory to list " << reserved_bytes_
               << " bytes on " << ToString(place())
               << "; they go back with the last block";
  }
}

std::size_t ChunkPool::GiveOffered(bool all) noexcept {
  std::size_t given = 0;
  bool has_given = false;
  // What goes back may be the last loan of a holder that has retired, which
  // then leaves what it had.
  do {
    if (HasRetired()) RecallLoans(LoanRecall::kWait, Asked::kAll);
    const std::size_t buried = BuryRetired();
    has_given = buried != 0;
    given += buried + GiveListed(all, has_given);
  } while (has_given);
  return given;
}

std::size_t ChunkPool::GiveListed(bool all, bool& has_given) noexcept {
  std::size_t given = 0;
  std::size_t count = 0;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    count = offered_.size();
  }
  for (; count != 0; --count) {
    const Idle idle = TakeOldestOut();
    if (idle.chunk == nullptr) break;
    const bool is_done = AwaitLastUse(idle);
    if (!is_done && !all) {
      PutBack(idle);
      continue;
    }
    GiveUpPlace();
    has_given = true;
    given += GiveToSystem(idle, is_done);
  }
  return given;
}

std::size_t ChunkPool::RoomBytes(Device* device) noexcept {
  std::size_t room = SIZE_MAX;
  if (below_ != nullptr) {
    room = below_->RoomBytes(device);
  } else if (device != nullptr) {
    room = device_room_.Estimate(*device, reserved_bytes());
  }
  if (limit_bytes_ != 0) {
    const std::size_t held = claimed_bytes_ + unreturned_bytes();
    room = std::min(room, limit_bytes_ - std::min(limit_bytes_, held));
  }
  last_room_bytes_.store(room, std::memory_order_relaxed);
  return room;
}

std::size_t ChunkPool::GiveOfferedDone(std::size_t bytes) noexcept {
  std::size_t given = 0;
  std::size_t count = 0;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    count = offered_.size();
  }
  for (; count != 0 && given < bytes; --count) {
    const Idle idle = TakeOldestOut();
    if (idle.chunk == nullptr) break;
    if (!IsLastUseOver(idle)) {
      PutBack(idle);
      continue;
    }
    GiveUpPlace();
    given += Return(idle.chunk);
  }
  return given;
}

std::size_t ChunkPool::reserved_bytes() const noexcept {
  const std::shared_ptr<DriverHeld> held = driver_held();
  return reserved_bytes_.load() + unreturned_bytes() +
         (held ? held->ReservedBytes() : 0);
}

Stats ChunkPool::stats() const {
  Stats stats;
  stats.allocations = allocations_;
  stats.frees = frees_;
  stats.failures = failures_;
  stats.reserved_bytes = reserved_bytes_ + unreturned_bytes();
  // Others may have added to the one and not yet to the other.
  stats.peak_reserved_bytes =
      std::max<std::uint64_t>(peak_reserved_bytes_, stats.reserved_bytes);
  LimitReserved(stats, limit_bytes_, limit_flag_);
  stats.chunks = stats.allocations - stats.frees;
  if (const std::shared_ptr<DriverHeld> held = driver_held()) {
    stats.reserved_bytes += held->ReservedBytes();
    stats.peak_reserved_bytes += held->PeakReservedBytes();
  }
  const std::lock_guard<SpinLock> guard(lock_);
  for (const Idle& idle : offered_) stats.idle_bytes += idle.chunk->size();
  return stats;
}

void ChunkPool::ResetPeak() {
  strata::ResetPeak(peak_reserved_bytes_, reserved_bytes_);
  StoreMax(peak_reserved_bytes_, reserved_bytes_ + unreturned_bytes());
  if (const std::shared_ptr<DriverHeld> held = driver_held()) {
    held->ResetPeak();
  }
}

void ChunkPool::AddVisitor(Visitor visitor) {
  const std::lock_guard<std::mutex> guard(lists_mutex_);
  auto grown = std::make_shared<std::vector<Visitor>>(*visitors_);
  grown->push_back(std::move(visitor));
  visitors_ = std::move(grown);
}

void ChunkPool::Visit(void* data, std::size_t bytes,
                      int count_change) noexcept {
  std::shared_ptr<const std::vector<Visitor>> visitors;
  {
    const std::lock_guard<std::mutex> guard(lists_mutex_);
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

}  // namespace strata
