#include "strata/strategy/cuda_malloc_async_allocator.h"

#include <glog/logging.h>

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/lost_use.h"
#include "strata/allocation/size.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

DevicePtr AddressOf(const Block& block) {
  return reinterpret_cast<DevicePtr>(block.data);
}

std::shared_ptr<const CaptureGate> GateOf(const ChainStream& stream) {
  return stream.timeline() != nullptr ? stream.timeline()->gate() : nullptr;
}

}  // namespace

CudaMallocAsyncAllocator::CudaMallocAsyncAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    std::shared_ptr<DriverPool> driver, const StrategyOptions& options)
    : HitPath(options.biased_lock),
      pool_(std::move(pool)),
      stream_(std::move(stream)),
      driver_(std::move(driver)),
      gate_(GateOf(*stream_)),
      policy_(options),
      keeps_(gate_ != nullptr && policy_.max_block_bytes() != 0),
      cache_(keeps_ ? policy_.max_block_bytes() : 0, kAlignmentBytes,
             policy_.searches()) {
  if (gate_ != nullptr) driver_->Heed(gate_);
  if (keeps_ && pool_->reclaimer() != nullptr) {
    registration_ = pool_->RegisterReclaim(ReclaimStep::kFlushCaches, *this);
  }
  pool_->AddHolder(*this);
}

CudaMallocAsyncAllocator::~CudaMallocAsyncAllocator() {
  registration_.Reset();
  pool_->RemoveHolder(*this);
  CloseCache();
  FreeWaiting();
  FreeKept();
  const std::size_t left =
      uses_.live_allocations() + waiting_.load() + kept_.size();
  LOG_IF(ERROR, left != 0) << "cuda_malloc_async: destroyed with " << left
                           << " blocks on " << ToString(place())
                           << " that the driver still holds";
}

Failure CudaMallocAsyncAllocator::Refusal(Failure::Reason reason,
                                          const Request& request,
                                          const char* detail) noexcept {
  Failure failure;
  failure.reason = reason;
  failure.detail = detail;
  failure.requested_bytes = request.bytes;
  return failure;
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
  using Reason = Failure::Reason;
  const std::optional<std::size_t> size =
      CheckedAlignUp(request.bytes, kAlignmentBytes);
  if (!size) {
    return Refuse(Refusal(Reason::kTooLarge, request, ""), failure);
  }
  if (request.alignment > kAlignmentBytes) {
    return Refuse(Refusal(Reason::kBadRequest, request,
                          "this alignment needs the aligned layer"),
                  failure);
  }
  const CallGate::Pass pass(stream_gate_);
  if (!pass || stream_->retired()) {
    return Refuse(
        Refusal(Reason::kBadRequest, request, "the stream was destroyed"),
        failure);
  }
  if (keeps_) {
    const std::lock_guard<ChainLock> guard(lock_);
    Block* const block = TakeKept(request.bytes, request.unpadded_bytes());
    if (block != nullptr) return block->allocation();
  }
  if ((request.flags & kNoGrowth) != 0) {
    return Refuse(Refusal(Reason::kNoGrowth, request, ""), failure);
  }
  return AllocateOn(request, *size, failure);
}

Allocation* CudaMallocAsyncAllocator::AllocateOn(const Request& request,
                                                 std::size_t size,
                                                 Failure& failure) noexcept {
  if (!IsAnnounced()) FreeWaiting();
  Block* block = RecordSlab::Instance().Take();
  if (block == nullptr) {
    return Refuse(Refusal(Failure::Reason::kHostMemory, request, "no record"),
                  failure);
  }
  const bool is_of_capture = keeps_ && IsAnnounced();
  // A request that cannot be met costs nobody what is kept.
  if (IsLikelyGrowth(size) && driver_->CanHold(size)) FlushCache();
  Failure why;
  DevicePtr ptr = AskDriver(size, why);
  // What is kept may be what is missing.
  if (ptr == 0 && driver_->CanHold(size) && FlushForRequest() != 0) {
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
  // Announced at the start or by now: the driver may have captured the call.
  block->pool =
      is_of_capture || (keeps_ && IsAnnounced()) ? kMaybeOfGraph : kOwn;
  bool has_excess = false;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    uses_.Count(*block);
    if (block->pool == kOwn) {
      cache_.NoteSearch(size);
    } else {
      graph_bytes_ += size;
    }
    has_excess = LimitCache();
  }
  if (has_excess) Trim();
  return block->allocation();
}

DevicePtr CudaMallocAsyncAllocator::AskDriver(std::size_t size,
                                              Failure& why) noexcept {
  if (!pool_->Claim(size, why)) {
    // Idle memory is not in use: giving it back meets no such limit.
    why.reserved_bytes = std::max(why.reserved_bytes, driver_->ReservedBytes());
    return 0;
  }
  Throttle();
  const DevicePtr ptr = driver_->Allocate(size, stream(), why);
  if (ptr == 0) pool_->Unclaim(size);
  return ptr;
}

void CudaMallocAsyncAllocator::Throttle() noexcept {
  // In this order: another thread's wait must not make it less than nothing.
  const std::uint64_t waited = waited_bytes_.load();
  const std::uint64_t aside = driver_->aside_bytes();
  const std::uint64_t pending = aside - waited;
  if (pending == 0 || !driver_->IsCrowded(pending) || IsCapturing()) return;
  // What is kept is in use as far as the driver knows.
  if (FlushCache() != 0 && !driver_->IsCrowded(pending)) return;
  if (driver_->MakeWait(stream())) waited_bytes_ = aside;
}

bool CudaMallocAsyncAllocator::IsCapturing() noexcept {
  Device& device = *stream_->device();
  const CallGate::Pass pass(stream_gate_);
  if (!pass || !device.caps().capture || stream_->retired()) return false;
  CaptureStatus status = CaptureStatus::kNone;
  // A stream that cannot be asked may be part of a capture (C12).
  return device.StreamIsCapturing(stream(), &status) != Status::kSuccess ||
         status != CaptureStatus::kNone;
}

void CudaMallocAsyncAllocator::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  CheckLive(*block, name());
  if (IsUseLost(*block)) {
    KeepForEver(*block, name());
    return;
  }
  Marks::node_type marked;
  const bool may_keep = keeps_ && IsPlain(*block) && !IsAnnounced();
  if ((block->flags & kBlockMarkedBelow) != 0) {
    const std::lock_guard<std::mutex> guard(marks_mutex_);
    marked = marks_.extract(block);
    ++marked_frees_;
  }
  bool has_excess = false;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    if (may_keep && GiveCached(block)) return;
    SetFlags(*block, 0);
    uses_.Uncount(*block);
    if (block->pool != kOwn) graph_bytes_ -= block->size;
    has_excess = LimitCache();
  }
  if (has_excess) Trim();
  FreeOrWait(block, std::move(marked));
  if (!IsAnnounced()) FreeWaiting();
}

bool CudaMallocAsyncAllocator::IsForbidden(const Mark* mark,
                                           bool has_stream) const noexcept {
  const auto may_touch = [this](const Stream& stream) {
    return gate_->MayTouch(*stream_->device(), stream);
  };
  return (has_stream && !may_touch(stream())) ||
         (mark != nullptr &&
          !std::all_of(mark->streams.begin(), mark->streams.end(), may_touch));
}

bool CudaMallocAsyncAllocator::TryFree(Block* block,
                                       const Mark* mark) noexcept {
  const CallGate::Pass pass(stream_gate_);
  // No capture begins meanwhile, or else the thread is relaxed, and looks.
  std::optional<CaptureGate::Calm> calm;
  std::optional<RelaxedCaptureScope> relaxed;
  if (gate_ != nullptr && !calm.emplace(*gate_)) {
    relaxed.emplace(*stream_->device());
    if (IsForbidden(mark, pass && !stream_->retired())) return false;
  }
  if (FreeWith(*block, mark)) {
    Finish(block);
    return true;
  }
  // One of the streams may capture by now.
  if (relaxed) return false;
  Keep(block);
  return true;
}

void CudaMallocAsyncAllocator::FreeOrWait(Block* block,
                                          Marks::node_type marked) noexcept {
  const bool is_marked = !marked.empty();
  if (!TryFree(block, is_marked ? &marked.mapped() : nullptr)) {
    Wait(block, std::move(marked));
  }
  if (is_marked) EndMarkedFree();
}

void CudaMallocAsyncAllocator::EndMarkedFree() noexcept {
  if (--marked_frees_ == 0) marked_frees_.notify_all();
}

void CudaMallocAsyncAllocator::Wait(Block* block,
                                    Marks::node_type marked) noexcept {
  try {
    if (marked.empty()) {
      Marks unmarked;
      unmarked[block].block = block;
      marked = unmarked.extract(block);
    }
    const std::lock_guard<std::mutex> guard(marks_mutex_);
    waiting_marks_.insert(std::move(marked));
    ++waiting_;
  } catch (const std::bad_alloc&) {
    Keep(block);
  }
}

void CudaMallocAsyncAllocator::FreeWaiting() noexcept {
  if (waiting_.load() == 0) return;
  Marks taken;
  {
    const std::lock_guard<std::mutex> guard(marks_mutex_);
    std::swap(taken, waiting_marks_);
    waiting_ = 0;
    ++marked_frees_;
  }
  while (!taken.empty()) {
    Marks::node_type node = taken.extract(taken.begin());
    const Mark& mark = node.mapped();
    Block* const block = mark.block;
    const bool is_marked = !mark.streams.empty() || mark.is_aside;
    if (!TryFree(block, is_marked ? &mark : nullptr)) {
      Wait(block, std::move(node));
    }
  }
  EndMarkedFree();
}

void CudaMallocAsyncAllocator::FreeOrKeep(Block* block,
                                          const Mark* mark) noexcept {
  if (FreeWith(*block, mark)) {
    Finish(block);
  } else {
    Keep(block);
  }
}

void CudaMallocAsyncAllocator::Keep(Block* block) noexcept {
  // Its marks are dropped: it goes after a wait for the whole device.
  LOG(ERROR) << "cuda_malloc_async: " << block->size << " bytes at "
             << static_cast<void*>(block->data)
             << " stay reserved until memory is given back";
  const std::lock_guard<ChainLock> guard(lock_);
  kept_.Push(block);
}

bool CudaMallocAsyncAllocator::FreeWith(const Block& block,
                                        const Mark* mark) noexcept {
  const CallGate::Pass pass(stream_gate_);
  const bool has_stream = pass && !stream_->retired();
  const Stream own = stream();
  const DevicePtr ptr = AddressOf(block);
  if (mark == nullptr && has_stream) {
    if (driver_->Free(ptr, block.size, own)) return true;
    // It may be capturing, and another one that waits for it would be, too.
    if (IsAnnounced()) return false;
  }
  const std::vector<Stream> nobody;
  return driver_->FreeAside(ptr, block.size,
                            mark != nullptr ? mark->streams : nobody,
                            has_stream ? &own : nullptr);
}

void CudaMallocAsyncAllocator::Finish(Block* block) noexcept {
  pool_->Unclaim(block->size);
  RecordSlab::Instance().Give(block);
}

void CudaMallocAsyncAllocator::FreeKept() noexcept {
  RecordList kept;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    std::swap(kept, kept_);
  }
  while (Block* block = kept.Pop()) {
    if (driver_->FreeAfterAll(AddressOf(*block), block->size)) {
      Finish(block);
      continue;
    }
    const std::lock_guard<ChainLock> guard(lock_);
    kept_.Push(block);
  }
}

std::size_t CudaMallocAsyncAllocator::GiveBackAll() noexcept {
  if (!driver_->is_open() || IsCapturing()) return 0;
  const std::size_t flushed = FlushCache();
  {
    const std::lock_guard<ChainLock> guard(lock_);
    most_held_bytes_ = HeldBytes();
  }
  FreeWaiting();
  FreeKept();
  const Status status = stream_->Synchronize();
  // Not ready: a capture was announced meanwhile, which is no error.
  LOG_IF(ERROR, status != Status::kSuccess && status != Status::kNotReady)
      << "cuda_malloc_async: what stream " << stream().uid
      << " has freed is not given back: " << status;
  driver_->Synchronize();
  return flushed;  // the trim says what else it gives
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
  if (calm && stream_->IsDone()) driver_->GiveBack();
}

bool CudaMallocAsyncAllocator::RecordStream(Allocation* allocation,
                                            Stream stream) noexcept {
  Block* block = allocation->block();
  const Stream own = this->stream();
  if (stream.uid == 0 || stream == own || stream.device != own.device ||
      HasFlag(*block, kBlockZeroSize)) {
    return false;
  }
  try {
    const std::lock_guard<std::mutex> guard(marks_mutex_);
    Mark& mark = marks_[block];
    mark.block = block;
    std::vector<Stream>& streams = mark.streams;
    // From here on, so that the mark goes with the block whatever happens.
    AddFlag(*block, kBlockMarkedBelow);
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
    return true;
  } catch (const std::bad_alloc&) {
    return !AwaitOrLoseUse(*block, *stream_->device(), stream, gate_.get(),
                           name());
  }
}

void CudaMallocAsyncAllocator::EraseStream(Allocation* allocation,
                                           Stream stream) noexcept {
  Block* block = allocation->block();
  const std::lock_guard<std::mutex> guard(marks_mutex_);
  const auto found = marks_.find(block);
  if (found == marks_.end()) return;
  std::vector<Stream>& streams = found->second.streams;
  streams.erase(std::remove(streams.begin(), streams.end(), stream),
                streams.end());
  if (!streams.empty() || found->second.is_aside) return;
  marks_.erase(found);
  RemoveFlag(*block, kBlockMarkedBelow);
}

void CudaMallocAsyncAllocator::StreamDestroyed(Stream stream) noexcept {
  if (stream.uid == 0 || stream.device != this->stream().device) return;
  const bool is_own = stream == this->stream();
  if (is_own) CloseCache();
  PutAside(stream, is_own && driver_->is_open());
  if (is_own) stream_gate_.Close();
  do {
    // Frees that know the stream from a mark still use it.
    for (int frees = marked_frees_; frees != 0; frees = marked_frees_) {
      marked_frees_.wait(frees);
    }
    // One that captures did not allow has put its mark back.
    PutAside(stream, /*is_user=*/false);
  } while (IsKnown(stream));
}

bool CudaMallocAsyncAllocator::IsNamed(const Marks& marks,
                                       const Stream& stream) {
  return std::any_of(marks.begin(), marks.end(), [&](const auto& entry) {
    return entry.second.IsOf(stream);
  });
}

bool CudaMallocAsyncAllocator::IsKnown(const Stream& stream) noexcept {
  const std::lock_guard<std::mutex> guard(marks_mutex_);
  return marked_frees_ != 0 || IsNamed(marks_, stream) ||
         IsNamed(waiting_marks_, stream);
}

void CudaMallocAsyncAllocator::PutAside(const Stream& stream,
                                        bool is_user) noexcept {
  {
    const std::lock_guard<std::mutex> guard(marks_mutex_);
    is_user =
        is_user || IsNamed(marks_, stream) || IsNamed(waiting_marks_, stream);
  }
  if (!is_user) return;
  // All work of the stream is submitted: what is freed aside comes after it.
  if (!driver_->OrderAfter(stream)) {
    LOG(ERROR) << "cuda_malloc_async: work in stream " << stream.uid
               << ", which is about to go, could not be waited for";
  }
  const std::lock_guard<std::mutex> guard(marks_mutex_);
  for (Marks* marks : {&marks_, &waiting_marks_}) {
    for (auto& [block, mark] : *marks) {
      if (std::erase(mark.streams, stream) != 0) mark.is_aside = true;
    }
  }
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
  pool_->ResetPeak();
}

void CudaMallocAsyncAllocator::Accept(AllocatorVisitor& visitor) const {
  visitor.VisitLayer(*this);
  pool_->Accept(visitor);
}

// Memory of other kinds than a device's is not pooled by drivers.
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
  auto driver = std::static_pointer_cast<DriverPool>(pool->ShareDriverHeld([&] {
    return std::make_shared<DriverPool>(device, options, pool->limit_bytes());
  }));
  return std::make_shared<CudaMallocAsyncAllocator>(
      std::move(pool), std::move(stream), std::move(driver), options);
}

}  // namespace strata
