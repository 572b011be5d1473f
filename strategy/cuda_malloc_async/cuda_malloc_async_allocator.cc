#include "strata/strategy/cuda_malloc_async/cuda_malloc_async_allocator.h"

#include <stdexcept>
#include <utility>

#include "strata/allocation/streams/stream_timeline.h"
#include "strata/base/log.h"
#include "strata/base/size.h"
#include "strata/base/store_max.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

std::shared_ptr<const CaptureGate> GateOf(const ChainStream& stream) {
  return stream.timeline() != nullptr ? stream.timeline()->gate() : nullptr;
}

}  // namespace

CudaMallocAsyncAllocator::CudaMallocAsyncAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    std::shared_ptr<DriverPool> driver, const StrategyOptions& options)
    : PoolingStrategy(std::move(pool), std::move(stream)),
      HitPath(chain_stream().state()),
      driver_(std::move(driver)),
      gate_(GateOf(chain_stream())),
      policy_(options),
      keeps_(gate_ != nullptr && policy_.max_block_bytes() != 0),
      cache_(keeps_ ? policy_.max_block_bytes() : 0, kAlignmentBytes,
             policy_.searches()) {
  if (keeps_ && reclaimer() != nullptr) {
    registration_ =
        this->pool().RegisterReclaim(Reclaimer::Step::kFlushCaches, *this);
  }
  this->pool().AddHolder(*this);
}

CudaMallocAsyncAllocator::~CudaMallocAsyncAllocator() {
  registration_.Reset();
  pool().RemoveHolder(*this);
  CloseCache();
  FreeWaiting(/*may_wait=*/true);
  FreeKept();
  const std::size_t left =
      uses_.live_allocations() + waiting_.load() + kept_.size();
  STRATA_LOG_IF(Error, left != 0)
      << "cuda_malloc_async: destroyed with " << left << " blocks on "
      << ToString(place()) << " that the driver still holds";
}

Allocation* CudaMallocAsyncAllocator::Refuse(const Failure& why,
                                             Failure& failure) noexcept {
  failure = why;
  failure.layer = name();
  failure.place = place();
  const std::lock_guard<ChainLock> guard(lock_);
  ++failures_;
  return nullptr;
}

Allocation* CudaMallocAsyncAllocator::TryAllocate(const Request& request,
                                                  Failure& failure) noexcept {
  const auto refuse = [&](Failure::Reason reason, const char* detail) {
    Failure why = Refusal(reason, request);
    why.detail = detail;
    return Refuse(why, failure);
  };
  const std::optional<std::size_t> size = SizeFor(request.bytes);
  if (!size) return refuse(Failure::Reason::kTooLarge, "");
  if (request.alignment > kAlignmentBytes) {
    return refuse(Failure::Reason::kBadRequest,
                  "this alignment needs the aligned layer");
  }
  const CallGate::Pass pass(stream_gate_);
  if (!pass || chain_stream().retired()) {
    return refuse(Failure::Reason::kBadRequest, "the stream was destroyed");
  }
  if (keeps_) {
    const std::lock_guard<ChainLock> guard(lock_);
    Block* const block = TakeKept(request.bytes, request.unpadded_bytes());
    if (block != nullptr) return block->allocation();
  }
  if ((request.flags & kNoGrowth) != 0) {
    return refuse(Failure::Reason::kNoGrowth, "");
  }
  Allocation* const fetched = FetchKept(request, *size);
  return fetched != nullptr ? fetched : AllocateOn(request, *size, failure);
}

Allocation* CudaMallocAsyncAllocator::AllocateOn(const Request& request,
                                                 std::size_t size,
                                                 Failure& failure) noexcept {
  if (!IsAnnounced()) FreeWaiting();
  Block* block = RecordSlab::Instance().Take();
  if (block == nullptr) {
    Failure why = Refusal(Failure::Reason::kHostMemory, request);
    why.detail = "no record";
    return Refuse(why, failure);
  }
  const std::size_t exact = AlignUp(request.bytes, kAlignmentBytes);
  const bool is_of_capture = keeps_ && IsAnnounced();
  if (is_of_capture) size = exact;  // Will never be cached.
  // Do not flush the cache for a request that the device cannot hold.
  if (IsLikelyGrowth(size) && driver_->CanHold(size)) FlushCache();
  Failure why;
  DevicePtr ptr = AskDriver(size, why);
  if (ptr == 0 && size != exact) {
    // The memory left may hold the request, but not its bin.
    size = exact;
    ptr = AskDriver(size, why);
  }
  // Flush the cache first: its memory may be enough for the request.
  if (ptr == 0 && driver_->CanHold(size) &&
      FlushCache(/*for_request=*/true) != 0) {
    ptr = AskDriver(size, why);
  }
  if (ptr == 0) {
    RecordSlab::Instance().Give(block);
    why.requested_bytes = request.bytes;
    return Refuse(why, failure);
  }
  block->data = reinterpret_cast<std::byte*>(ptr);
  block->size = size;
  block->requested = request.unpadded_bytes();
  block->set_place(place());
  block->flags = kBlockLive;
  // If a capture was announced before or during the call, the driver may have
  // captured it.
  block->pool =
      is_of_capture || (keeps_ && IsAnnounced()) ? kMaybeOfGraph : kOwn;
  bool has_excess = false;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    uses_.Count(*block);
    if (block->pool == kOwn) {
      if (policy_.MayComeAgain(size)) cache_.NoteSearch(size);
    } else {
      graph_bytes_ += size;
    }
    has_excess = LimitCache();
  }
  if (has_excess) Trim();
  return block->allocation();
}

std::optional<std::size_t> CudaMallocAsyncAllocator::SizeFor(
    std::size_t requested) const noexcept {
  return CheckedAlignUp(keeps_ ? policy_.SizeFor(requested) : requested,
                        kAlignmentBytes);
}

DevicePtr CudaMallocAsyncAllocator::AskDriver(std::size_t size,
                                              Failure& why) noexcept {
  if (!pool().budget().Claim(size, why)) {
    // Idle memory does not count as in use, so freeing it does not help against
    // this limit.
    why.reserved_bytes = std::max(why.reserved_bytes, driver_->ReservedBytes());
    return 0;
  }
  Throttle();
  bool is_within_limit = true;
  const DevicePtr ptr = driver_->Allocate(
      size, stream(),
      [&] { return is_within_limit = pool().budget().FitsBesideRanges(); },
      why);
  if (ptr == 0) {
    pool().budget().Unclaim(size);
    if (!is_within_limit) why.reserved_bytes = pool().reserved_bytes();
  }
  return ptr;
}

void CudaMallocAsyncAllocator::Throttle() noexcept {
  // In this order, so that the wait of another thread cannot make `pending`
  // wrap.
  const std::uint64_t waited = waited_bytes_.load();
  const std::uint64_t aside = driver_->aside_bytes();
  std::uint64_t pending = aside - waited;
  if (pending == 0 || !driver_->IsCrowded(pending) || IsCapturing()) return;
  const auto note = [&](std::uint64_t left) {
    pending = std::min(pending, left);
    StoreMax(waited_bytes_, aside - pending);
    return !driver_->IsCrowded(pending);
  };
  // Most of the pending frees may be done.
  if (note(driver_->AskPending())) return;
  // The driver counts cached blocks as in use.
  if (FlushCache() != 0 && !driver_->IsCrowded(pending)) return;
  note(driver_->MakeWait(stream(), [this](std::uint64_t left) {
    return !driver_->IsCrowded(left);
  }));
}

bool CudaMallocAsyncAllocator::IsCapturing() noexcept {
  Device& device = *chain_stream().device();
  const CallGate::Pass pass(stream_gate_);
  if (!pass || !device.caps().capture || chain_stream().retired() || IsLost()) {
    return false;
  }
  if (!CanNameStream()) return IsAnnounced();
  CaptureStatus status = CaptureStatus::kNone;
  const Status answer = device.StreamIsCapturing(stream(), &status);
  if (answer == Status::kInvalidResourceHandle &&
      chain_stream().timeline() != nullptr) {
    chain_stream().timeline()->Lose(answer);
    return !IsLost();
  }
  // A stream that cannot be queried may be part of a capture (C12).
  return answer != Status::kSuccess || status != CaptureStatus::kNone;
}

ChunkHolder::IdleInfo CudaMallocAsyncAllocator::Idle(
    std::size_t /*fit_bytes*/) const noexcept {
  IdleInfo idle;
  idle.bytes = IdleBytes();
  // Includes the blocks that wait, and those that the driver refused to free.
  idle.bytes_with_lent = idle.bytes + waiting_bytes_.load() + unfreed_bytes_;
  // The driver mixes it with other memory in its steps: DriverPool counts the
  // steps.
  idle.system_bytes = idle.bytes_with_lent;
  return idle;
}

void CudaMallocAsyncAllocator::StreamEnds(Stream stream) noexcept {
  if (stream == this->stream()) {
    GiveUpIdle();
  } else {
    StreamDestroyed(stream);
  }
}

std::size_t CudaMallocAsyncAllocator::GiveBackAll() noexcept {
  if (!driver_->is_open() || IsCapturing()) return 0;
  const std::size_t flushed = FlushCache();
  {
    const std::lock_guard<ChainLock> guard(lock_);
    most_held_bytes_ = HeldBytes();
  }
  FreeWaiting(/*may_wait=*/true);
  FreeKept();
  const Status status = chain_stream().Synchronize();
  // kNotReady is no error: a capture was announced meanwhile.
  STRATA_LOG_IF(Error,
                status != Status::kSuccess && status != Status::kNotReady)
      << "cuda_malloc_async: what stream " << stream().uid
      << " has freed is not given back: " << status;
  driver_->Synchronize();
  return flushed;  // The trim reports the other bytes.
}

std::size_t CudaMallocAsyncAllocator::GiveBackDone(
    std::size_t /*bytes*/, std::size_t /*least_bytes*/) noexcept {
  if (driver_->is_open() && CanNameStream() && !IsCapturing() &&
      chain_stream().IsDone()) {
    FlushCache();
  }
  return 0;  // The trim reports the bytes.
}

std::size_t CudaMallocAsyncAllocator::Release() noexcept {
  if (!driver_->is_open() || IsCapturing()) return 0;
  GiveBackAll();
  return driver_->GiveBack();
}

void CudaMallocAsyncAllocator::GiveUpIdle() noexcept {
  if (!driver_->is_open()) return;
  FreeWaiting();
  if (gate_ == nullptr) return;
  const CaptureGate::Calm calm(*gate_);
  if (calm && chain_stream().IsDone()) driver_->GiveBack();
}

Stats CudaMallocAsyncAllocator::stats() const {
  const std::lock_guard<ChainLock> guard(lock_);
  Stats stats;
  stats.failures = failures_;
  uses_.FillIn(stats);
  if (keeps_) {
    stats.cache_hits = cache_.hits();
    stats.cache_misses = stats.allocations - stats.cache_hits;
  }
  return stats;
}

void CudaMallocAsyncAllocator::ResetPeak() {
  {
    const std::lock_guard<ChainLock> guard(lock_);
    uses_.ResetPeak();
  }
  PoolingStrategy::ResetPeak();
}

void CudaMallocAsyncAllocator::Accept(AllocatorVisitor& visitor) const {
  visitor.VisitLayer(*this);
  pool().Accept(visitor);
}

// Drivers pool device memory only. Other places use the direct strategy.
std::shared_ptr<Allocator> MakeCudaMallocAsyncAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& options) {
  const Place place = pool->place();
  if (place.kind != PlaceKind::kDevice) {
    return MakeDirectAllocator(std::move(pool), std::move(stream), options);
  }
  Device& device = *stream->device();
  if (!device.caps().mem_pools) {
    throw std::invalid_argument(
        "allocator_strategy=cuda_malloc_async: " + ToString(place) +
        " has no stream-ordered pools");
  }
  auto driver =
      std::static_pointer_cast<DriverPool>(pool->budget().ShareDriverHeld([&] {
        return std::make_shared<DriverPool>(
            device, options.Get<CudaMallocAsyncOptions>(), stream->timeline(),
            pool->limit_bytes(), pool->limit_flag());
      }));
  return std::make_shared<CudaMallocAsyncAllocator>(
      std::move(pool), std::move(stream), std::move(driver), options);
}

}  // namespace strata
