#include "strata/strategy/bfc/bfc_allocator.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "strata/base/log.h"
#include "strata/base/size.h"
#include "strata/base/store_max.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

constexpr std::size_t kFirstRegionBytes = Mebibytes(2);  // R15

// Whether the memory of the device bounds the memory of the place.
bool IsOnDevice(Place place) {
  return place.kind == PlaceKind::kDevice || place.kind == PlaceKind::kManaged;
}

// Whether the memory may exceed the device's. With use_cuda_managed_memory,
// that also applies to device places.
bool IsManaged(const ChunkPool& pool) {
  const Allocator* system = &pool;
  while (system->underlying() != nullptr) system = system->underlying();
  return std::string_view(system->name()) == "managed";
}

}  // namespace

BfcAllocator::BfcAllocator(std::shared_ptr<ChunkPool> pool,
                           std::shared_ptr<ChainStream> stream,
                           BfcOptions options)
    : PoolingStrategy(std::move(pool), std::move(stream)),
      options_(std::move(options)),
      arena_(options_) {
  const bool asks_device =
      chain_stream().device() != nullptr && IsOnDevice(place());
  const std::size_t limit = options_.memory_limit_bytes != 0
                                ? options_.memory_limit_bytes
                                : this->pool().limit_bytes();
  if (options_.memory_limit_bytes != 0 ||
      (limit != 0 && options_.limit_of == nullptr)) {
    StartPlan({limit, limit}, /*is_all_there_is=*/false);
  } else if (!asks_device) {
    if (!options_.allow_growth) {
      throw std::invalid_argument(
          "bfc_allow_growth=false needs bfc_memory_limit: " +
          ToString(place()) + " has no limit of its own");
    }
    StartPlan({kBfcMaxBytes, kBfcMaxBytes}, /*is_all_there_is=*/true);
  }
  if (options_.memory_map_sink != nullptr && reclaimer() != nullptr) {
    map_registration_ =
        this->pool().RegisterReclaim(Reclaimer::Step::kReport, map_source_);
  }
  this->pool().AddHolder(*this);
}

BfcAllocator::~BfcAllocator() {
  map_registration_.Reset();
  pool().RemoveHolder(*this);
  // The streams have been waited for, so stamps are irrelevant.
  SetSafeFrontier(std::numeric_limits<std::uint64_t>::max());
  GiveBackAll();
  STRATA_LOG_IF(Error, arena_.region_count() != 0)
      << "bfc: destroyed with live blocks; " << arena_.region_bytes()
      << " bytes on " << ToString(place()) << " are lost";
}

void BfcAllocator::StartPlan(const BfcMemoryLimit& limit,
                             bool is_all_there_is) {
  plan_.Start(limit.most_bytes,
              options_.allow_growth ? kFirstRegionBytes : limit.start_bytes);
  if (options_.fragmentation_fraction > 0) {
    const auto waste =
        static_cast<std::size_t>(options_.fragmentation_fraction *
                                 static_cast<double>(plan_.limit_bytes()));
    arena_.set_most_waste(std::max(waste, kBfcGranuleBytes));
  }
  limit_is_all_ = is_all_there_is;
  knows_limit_ = true;
}

Allocation* BfcAllocator::TryAllocate(const Request& request,
                                      Failure& failure) noexcept {
  BfcAsk ask;
  ask.bytes = request.bytes;
  const std::optional<std::size_t> rounded = BfcRounded(request.bytes);
  if (!rounded || request.alignment > max_alignment() ||
      (request.alignment != 0 && !IsPowerOfTwo(request.alignment))) {
    failure = Refusal(
        rounded ? Failure::Reason::kBadRequest : Failure::Reason::kTooLarge,
        ask);
    if (rounded) failure.detail = "alignment";
    return nullptr;
  }
  ask.rounded = *rounded;
  ask.alignment = std::max(request.alignment, kBfcGranuleBytes);
  ask.freed_before = request.freed_before;
  if (options_.has_two_ends && (request.flags & kUpperEnd) != 0) {
    ask.end = BfcEnd::kUpper;
  }
  if (options_.keep_annotations) ask.annotation = BfcAnnotation::TakeCurrent();

  const std::uint64_t turns_before = turn_.count();
  Block* block = FindHeld(ask, failure);
  if (block != nullptr) return block->allocation();
  if (failure.reason != Failure::Reason::kHostMemory) {
    if ((request.flags & kNoGrowth) == 0) {
      block = Grow(ask, turns_before, failure);
    } else {
      failure = Refusal(Failure::Reason::kNoGrowth, ask);
      block = FindUnsafe(ask, failure);
    }
  }
  if (block != nullptr) {
    const std::lock_guard<SpinLock> guard(lock_);
    ++met_late_;
    return block->allocation();
  }
  BfcAnnotation::LetGo(ask.annotation);
  NoteRefusal(request, ask, failure);
  return nullptr;
}

Block* BfcAllocator::FindHeld(const BfcAsk& ask, Failure& failure) noexcept {
  failure.reason = Failure::Reason::kNone;
  do {
    const std::lock_guard<SpinLock> guard(lock_);
    if (arena_.has_waiting()) arena_.MergeSafe(frontier_.load());
    Block* block = TakeLocked(ask);
    if (block != nullptr || !arena_.IsShortOfRecords()) return block;
  } while (arena_.records().Restock(lock_));
  failure = Refusal(Failure::Reason::kHostMemory, ask);
  return nullptr;
}

Block* BfcAllocator::FindUnsafe(const BfcAsk& ask, Failure& failure) noexcept {
  if (ask.freed_before != 0) return nullptr;
  do {
    const std::lock_guard<SpinLock> guard(lock_);
    if (!arena_.has_waiting()) return nullptr;
    if (!arena_.MergeUnsafe(ask)) return nullptr;
    Block* block = TakeLocked(ask);
    if (block != nullptr || !arena_.IsShortOfRecords()) return block;
  } while (arena_.records().Restock(lock_));
  failure = Refusal(Failure::Reason::kHostMemory, ask);
  return nullptr;
}

void BfcAllocator::DoFree(Allocation* allocation) noexcept {
  const BfcAnnotation* annotation = nullptr;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    annotation = arena_.Give(allocation->block());
  }
  BfcAnnotation::LetGo(annotation);
}

Block* BfcAllocator::TakeCached(std::size_t bytes) noexcept {
  const std::optional<std::size_t> rounded = BfcRounded(bytes);
  if (!rounded) return nullptr;
  BfcAsk ask;
  ask.bytes = bytes;
  ask.rounded = *rounded;
  const std::lock_guard<SpinLock> guard(lock_);
  return TakeLocked(ask);
}

bool BfcAllocator::GiveCached(Block* block) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  arena_.Give(block);
  return true;
}

HitPath* BfcAllocator::hit_path() {
  // The hit path carries no stamp and no annotation.
  return options_.counter != nullptr || options_.keep_annotations ? nullptr
                                                                  : this;
}

void BfcAllocator::SetSafeFrontier(std::uint64_t count) noexcept {
  if (frontier_.load() >= count) return;
  StoreMax(frontier_, count);
  if (reclaimer() == nullptr) return;
  RetryQueue& waiters = reclaimer()->retry();
  waiters.CountThread();  // Its work makes memory available.
  waiters.NotifyFree(0);
}

Failure BfcAllocator::Refusal(Failure::Reason reason, const BfcAsk& ask) const {
  Failure failure = PoolingStrategy::Refusal(reason, Request{ask.bytes});
  failure.rounded_bytes = ask.rounded;
  return failure;
}

void BfcAllocator::NoteRefusal(const Request& request, const BfcAsk& ask,
                               Failure& failure) noexcept {
  failure.requested_bytes = ask.bytes;
  {
    const auto joined = LockJoined();
    // Not a failure: a probe that may not grow precedes the request itself.
    if ((request.flags & kNoGrowth) == 0) ++failures_;
    failure.largest_free_bytes = arena_.LargestFreeBytes();
    failure.in_use_bytes = arena_.in_use_bytes();
    // A request that is not retried climbs no ladder.
    if (!failure.IsExhaustion() || (request.flags & kNoRetry) != 0) return;
    if (mapped_bytes_ == 0 || ask.rounded < mapped_bytes_) {
      refused_bytes_ = ask.rounded;
    }
  }
  // Without a reclaimer, this attempt was the last one.
  if (reclaimer() == nullptr) WriteMap();
}

void BfcAllocator::WriteMap() noexcept {
  if (options_.memory_map_sink == nullptr) return;
  std::size_t refused_bytes = 0;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    if (refused_bytes_ == 0) return;
    mapped_bytes_ = refused_bytes = std::exchange(refused_bytes_, 0);
  }
  try {
    BfcSnapshot snapshot = Snapshot();
    snapshot.refused_bytes = refused_bytes;
    options_.memory_map_sink(snapshot);
  } catch (const std::exception& error) {
    STRATA_LOG(Error) << "bfc: no memory map: " << error.what();
  } catch (...) {
    STRATA_LOG(Error) << "bfc: no memory map";
  }
}

void CheckBfcAllocator(const StrategyOptions& options,
                       std::uint64_t /*limit_mb*/) {
  ReadBfcOptions(options);
  CheckBfcLimits(options.Get<BfcFlags>());
}

std::shared_ptr<Allocator> MakeBfcAllocator(std::shared_ptr<ChunkPool> pool,
                                            std::shared_ptr<ChainStream> stream,
                                            const StrategyOptions& options) {
  BfcOptions bfc = ReadBfcOptions(options, stream->device(), IsManaged(*pool));
  bfc.streams_are_all = true;
  return std::make_shared<BfcAllocator>(std::move(pool), std::move(stream),
                                        std::move(bfc));
}

}  // namespace strata
