#include "strata/strategy/cuda_malloc_async/driver_pool.h"

#include <algorithm>
#include <utility>

#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/allocation/streams/host_order.h"
#include "strata/allocation/system/device_allocator.h"
#include "strata/base/log.h"
#include "strata/base/size.h"
#include "strata/base/store_max.h"

namespace strata {
namespace {

// kContextIsDestroyed is no failure: a driver that shuts down frees everything.
bool IsFailure(Status status) {
  return status != Status::kSuccess && status != Status::kContextIsDestroyed;
}

}  // namespace

DriverPool::DriverPool(Device& device, const CudaMallocAsyncOptions& options,
                       const StreamTimeline* timeline, std::size_t limit_bytes,
                       const char* limit_flag)
    : device_(device),
      use_default_pool_(options.cuda_malloc_async_pool == "default"),
      is_deterministic_(options.cuda_malloc_async_deterministic),
      has_peers_(options.cuda_malloc_async_peer_access),
      release_threshold_(options.cuda_memory_async_pool_release_threshold),
      preallocate_bytes_(options.cuda_malloc_async_preallocate_bytes),
      throttle_ratio_(options.cuda_malloc_async_pool_memory_throttle_ratio),
      limit_bytes_(limit_bytes),
      limit_flag_(limit_flag),
      gate_(timeline != nullptr ? timeline->gate() : nullptr),
      no_waits_(timeline != nullptr ? timeline->no_waits() : nullptr),
      free_streams_(device) {}

DriverPool::~DriverPool() {
  free_streams_.End();
  if (!is_open()) return;
  // Memory of other users of the default pool stays there.
  if (use_default_pool_) GiveBack();
  Destroy(pool());
}

std::size_t DriverPool::most_bytes() const {
  // Rounds down: the driver reserves in whole steps, and must not round the
  // limit up.
  return limit_bytes_ / kSystemStepBytes * kSystemStepBytes;
}

Status DriverPool::Create(MemPool* pool) noexcept {
  if (use_default_pool_) return device_.DefaultMemPool(pool);
  // For the driver, 0 means no limit.
  if (limit_bytes_ != 0 && most_bytes() == 0) return Status::kMemoryAllocation;
  MemProperties properties;
  properties.location.id = device_.ordinal();
  return device_.PoolCreate(pool, properties, most_bytes());
}

void DriverPool::Destroy(MemPool pool) noexcept {
  if (use_default_pool_) return;
  const Status status = device_.PoolDestroy(pool);
  STRATA_LOG_IF(Error, IsFailure(status))
      << "cuda_malloc_async: cannot destroy the pool of device "
      << device_.ordinal() << ": " << status;
}

Status DriverPool::Configure(MemPool pool) noexcept {
  Status status = device_.PoolSetAttribute(
      pool, PoolAttribute::kReleaseThreshold, release_threshold_);
  if (is_deterministic_) {
    // The remaining reuse, within a stream and along events, depends on the
    // program alone (P4, P5).
    for (const PoolAttribute attribute :
         {PoolAttribute::kReuseAllowOpportunistic,
          PoolAttribute::kReuseAllowInternalDependencies}) {
      if (status != Status::kSuccess) return status;
      status = device_.PoolSetAttribute(pool, attribute, 0);
    }
  }
  return status == Status::kSuccess && has_peers_ ? LetPeersIn(pool) : status;
}

Status DriverPool::LetPeersIn(MemPool pool) noexcept {
  // Ends at the first ordinal without a device.
  for (int peer = 0;; ++peer) {
    bool can = false;
    const Status status = device_.CanAccessPeer(peer, &can);
    if (status == Status::kInvalidDevice) return Status::kSuccess;
    if (status != Status::kSuccess) return status;
    if (peer == device_.ordinal() || !can) continue;
    const AccessDescriptor access{{Location::Kind::kDevice, peer},
                                  Access::kReadWrite};
    const Status given = device_.PoolSetAccess(pool, &access, 1);
    if (given != Status::kSuccess) return given;
  }
}

Status DriverPool::Open(Stream stream) noexcept {
  if (is_open()) return Status::kSuccess;
  MemPool made;
  Status status = Create(&made);
  if (status != Status::kSuccess) return status;
  status = Configure(made);
  void* none = nullptr;
  if (status != Status::kSuccess ||
      !pool_.compare_exchange_strong(none, made.value)) {
    Destroy(made);  // Another thread may have been faster.
    return status;
  }
  Preallocate(made, stream);
  return Status::kSuccess;
}

void DriverPool::Preallocate(MemPool pool, Stream stream) noexcept {
  if (preallocate_bytes_ == 0) return;
  DevicePtr ptr = 0;
  Status status =
      device_.MallocFromPoolAsync(&ptr, preallocate_bytes_, pool, stream);
  if (status == Status::kSuccess) status = device_.FreeAsync(ptr, stream);
  STRATA_LOG_IF(Error, status != Status::kSuccess)
      << "cuda_malloc_async: cannot preallocate " << preallocate_bytes_
      << " bytes on device " << device_.ordinal() << ": " << status;
}

DevicePtr DriverPool::Allocate(std::size_t bytes, Stream stream,
                               FunctionRef<bool()> fits,
                               Failure& failure) noexcept {
  failure = Failure();
  const CaptureGate::CallScope scope(gate_.get(), device_);
  if (!scope) {
    failure.reason = Failure::Reason::kDevice;
    failure.status = Status::kNotReady;
    return 0;
  }
  // A call in the legacy stream would end the captures of blocking streams.
  const bool is_aside = stream.uid == kLegacyStreamUid && DuringCapture();
  if (is_aside) stream = FreeStreamOf({}, nullptr);
  DevicePtr ptr = 0;
  Status status =
      stream.uid != 0 ? Open(stream) : Status::kStreamCaptureImplicit;
  if (status == Status::kSuccess) {
    status = device_.MallocFromPoolAsync(&ptr, bytes, pool(), stream);
  }
  if (is_aside && ptr != 0) {
    // After this wait, work of any stream may use the memory.
    status = device_.StreamSynchronize(stream);
    if (status != Status::kSuccess) device_.FreeAsync(ptr, stream);
  }
  if (status != Status::kSuccess) {
    Explain(status, bytes, failure);
    return 0;
  }
  // If it cannot be freed again, the memory is returned as a success.
  if (!fits() && device_.FreeAsync(ptr, stream) == Status::kSuccess) {
    // Releases the growth, if the stream has already executed the free.
    GiveBack();
    Explain(Status::kMemoryAllocation, bytes, failure);
    failure.reason = Failure::Reason::kLimit;
    failure.detail = "the driver would grow by more than chunks leave";
    return 0;
  }
  in_use_bytes_ += bytes;
  return ptr;
}

void DriverPool::Explain(Status status, std::size_t bytes,
                         Failure& failure) noexcept {
  ExplainDeviceFailure(device_, status, failure);
  failure.rounded_bytes = bytes;
  failure.in_use_bytes = in_use_bytes();
  failure.reserved_bytes = ReservedBytes();
  failure.limit_bytes = limit_bytes_;
  failure.limit_flag = limit_flag_;
  const bool is_at_limit =
      limit_bytes_ != 0 && (failure.reserved_bytes > most_bytes() ||
                            bytes > most_bytes() - failure.reserved_bytes);
  if (status == Status::kMemoryAllocation && is_at_limit) {
    failure.reason = Failure::Reason::kLimit;
    // A higher limit would have to allow this many bytes.
    failure.rounded_bytes = AlignUp(bytes, kSystemStepBytes);
  }
}

bool DriverPool::Freed(Status status, DevicePtr ptr,
                       std::size_t bytes) noexcept {
  if (IsFailure(status)) {
    STRATA_LOG(Error) << "cuda_malloc_async: cannot free " << bytes
                      << " bytes at " << reinterpret_cast<void*>(ptr) << ": "
                      << status;
    return false;
  }
  in_use_bytes_ -= bytes;
  return true;
}

bool DriverPool::Free(DevicePtr ptr, std::size_t bytes,
                      Stream stream) noexcept {
  // Another thread may have observed the end of the last use.
  AcquireHostOrder(device_);
  const Status status = device_.FreeAsync(ptr, stream);
  // A capturing stream refuses memory that is not of its graph. The timeline of
  // an ended stream logs that.
  if (IsFailure(status) &&
      (DuringCapture() || status == Status::kInvalidResourceHandle)) {
    return false;
  }
  return Freed(status, ptr, bytes);
}

bool DriverPool::FreeAside(DevicePtr ptr, std::size_t bytes,
                           const std::vector<Stream>& users,
                           const Stream* owner) noexcept {
  AcquireHostOrder(device_);
  const bool is_behind =
      owner != nullptr && users.empty() && free_streams_.Has(*owner);
  const Stream aside = is_behind ? *owner : FreeStreamOf(users, owner);
  bool ordered = owner == nullptr || is_behind || Order(aside, *owner);
  for (const Stream& user : users) ordered = ordered && Order(aside, user);
  if (!ordered) return false;
  if (aside.uid == 0) {
    const CaptureGate::CallScope scope(gate_.get(), device_);
    if (!scope) return false;
    // The host has waited for all streams.
    return Freed(owner != nullptr ? device_.FreeAsync(ptr, *owner)
                                  : device_.MemFree(ptr),
                 ptr, bytes);
  }
  if (!Freed(device_.FreeAsync(ptr, aside), ptr, bytes)) return false;
  CountAside(aside, bytes);
  return true;
}

bool DriverPool::FreeAfterAll(DevicePtr ptr, std::size_t bytes) noexcept {
  std::optional<CaptureGate::Calm> calm;
  if (gate_ != nullptr && !calm.emplace(*gate_)) return false;
  const Status status = device_.Synchronize();
  if (IsFailure(status)) return false;
  return Freed(device_.MemFree(ptr), ptr, bytes);
}

Stream DriverPool::FreeStreamOf(const std::vector<Stream>& users,
                                const Stream* owner) noexcept {
  SideStreams::Key key = SideStreams::kNone;
  if (owner != nullptr) key = SideStreams::With(key, *owner);
  for (const Stream& user : users) key = SideStreams::With(key, user);
  return free_streams_.Of(key, gate_.get());
}

bool DriverPool::Wait(Stream waiter, Stream stream) noexcept {
  Event event;
  if (device_.EventCreate(&event, kEventDisableTiming) != Status::kSuccess) {
    return false;
  }
  Status status = device_.EventRecord(event, stream, 0);
  // Recording an event does no harm. But a stream that waits for an event of a
  // capture joins the capture.
  if (status == Status::kSuccess && IsCapturing(stream)) {
    status = Status::kStreamCaptureUnsupported;
  }
  if (status == Status::kSuccess) {
    status = device_.StreamWaitEvent(waiter, event, 0);
  }
  const Status destroyed = device_.EventDestroy(event);
  STRATA_LOG_IF(Error, IsFailure(destroyed))
      << "cuda_malloc_async: cannot destroy an event: " << destroyed;
  return status == Status::kSuccess;
}

bool DriverPool::DuringCapture() const noexcept {
  return gate_ != nullptr && gate_->any();
}

bool DriverPool::ForbidsWaits() const noexcept {
  return no_waits_ != nullptr && no_waits_->any();
}

bool DriverPool::IsCapturing(Stream stream) noexcept {
  return gate_ != nullptr && gate_->IsCapturing(device_, stream);
}

bool DriverPool::WaitOnHost(Stream stream) noexcept {
  // ChainStream::Synchronize may wait for the whole device instead, which would
  // end captures (cuda_semantics.md C16).
  if (DuringCapture()) {
    const CaptureGate::CallScope scope(gate_.get(), device_);
    return scope && device_.StreamSynchronize(stream) == Status::kSuccess;
  }
  return ChainStream(device_, stream).Synchronize() == Status::kSuccess;
}

bool DriverPool::Order(Stream waiter, Stream stream) noexcept {
  if (waiter.uid != 0 && Wait(waiter, stream)) return true;
  return !IsCapturing(stream) && WaitOnHost(stream);
}

std::optional<Stream> DriverPool::StandIn(Stream stream) noexcept {
  const Stream aside = FreeStreamOf({}, &stream);
  if (aside.uid != 0 && Wait(aside, stream)) return aside;
  if (Order(Stream(), stream)) return Stream();
  return std::nullopt;
}

void DriverPool::CountAside(const Stream& aside, std::size_t bytes) noexcept {
  FreeStreams asides;
  const std::size_t count = free_streams_.List(asides);
  const auto end = asides.begin() + static_cast<std::ptrdiff_t>(count);
  const auto index = std::find(asides.begin(), end, aside) - asides.begin();
  freed_bytes_[static_cast<std::size_t>(index)] += bytes;
  aside_bytes_ += bytes;
}

std::uint64_t DriverPool::PendingOn(std::size_t index) const noexcept {
  // Load before the total.
  const std::uint64_t done = done_bytes_[index].load();
  return freed_bytes_[index].load() - done;
}

template <class Predicate>
std::uint64_t DriverPool::FindDone(Predicate is_done) noexcept {
  FreeStreams asides;
  const std::size_t count = free_streams_.List(asides);
  std::uint64_t pending = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t freed = freed_bytes_[i].load();
    if (freed != done_bytes_[i].load() && is_done(asides[i])) {
      StoreMax(done_bytes_[i], freed);
    }
    pending += PendingOn(i);
  }
  return pending;
}

std::uint64_t DriverPool::AskPending() noexcept {
  std::optional<CaptureGate::Calm> calm;
  const bool may_ask =
      !is_deterministic_ && (gate_ == nullptr || calm.emplace(*gate_));
  return FindDone([&](const Stream& aside) {
    return may_ask && device_.StreamQuery(aside) == Status::kSuccess;
  });
}

std::uint64_t DriverPool::MakeWait(
    Stream stream, FunctionRef<bool(std::uint64_t)> is_enough) noexcept {
  FreeStreams asides;
  const std::size_t count = free_streams_.List(asides);
  std::array<std::uint64_t, SideStreams::kMost> pending{};
  std::uint64_t left = 0;
  for (std::size_t i = 0; i < count; ++i) left += pending[i] = PendingOn(i);
  if (ForbidsWaits()) return left;
  while (left != 0 && !is_enough(left)) {
    const auto most = std::max_element(pending.begin(), pending.end());
    const auto index = static_cast<std::size_t>(most - pending.begin());
    if (*most == 0 || !Wait(stream, asides[index])) break;
    left -= std::exchange(*most, 0);
  }
  return left;
}

void DriverPool::Synchronize() noexcept {
  // Also those without counted bytes: they stand in for streams that ended.
  FreeStreams asides;
  const std::size_t count = free_streams_.List(asides);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t freed = freed_bytes_[i].load();
    if (WaitOnHost(asides[i])) StoreMax(done_bytes_[i], freed);
  }
}

std::size_t DriverPool::TotalBytes() noexcept {
  std::size_t total = total_bytes_.load();
  if (total != 0) return total;
  std::size_t free_bytes = 0;
  if (device_.MemGetInfo(&free_bytes, &total) != Status::kSuccess) return 0;
  if (limit_bytes_ != 0) total = std::min(total, limit_bytes_);
  total_bytes_ = total;
  return total;
}

bool DriverPool::CanHold(std::size_t bytes) noexcept {
  const std::size_t total = TotalBytes();
  return total == 0 || bytes <= total;
}

bool DriverPool::IsCrowded(std::uint64_t pending_bytes) noexcept {
  const std::size_t total = TotalBytes();
  return total != 0 && static_cast<double>(in_use_bytes() + pending_bytes) >
                           throttle_ratio_ * static_cast<double>(total);
}

std::size_t DriverPool::ReadAttribute(PoolAttribute attribute,
                                      std::atomic<std::size_t>& last) noexcept {
  if (!is_open()) return 0;
  std::uint64_t value = 0;
  const CaptureGate::CallScope scope(gate_.get(), device_);
  if (!scope ||
      device_.PoolGetAttribute(pool(), attribute, &value) != Status::kSuccess) {
    // The driver may never have answered.
    return std::max(last.load(), in_use_bytes());
  }
  last = value;
  return value;
}

std::size_t DriverPool::ReservedBytes() noexcept {
  return ReadAttribute(PoolAttribute::kReservedCurrent, last_reserved_);
}

std::size_t DriverPool::PeakReservedBytes() noexcept {
  return ReadAttribute(PoolAttribute::kReservedHigh, last_peak_);
}

void DriverPool::ResetPeak() noexcept {
  if (!is_open()) return;
  const CaptureGate::CallScope scope(gate_.get(), device_);
  const Status status =
      scope ? device_.PoolSetAttribute(pool(), PoolAttribute::kReservedHigh, 0)
            : Status::kNotReady;
  STRATA_LOG_IF(Error, IsFailure(status))
      << "cuda_malloc_async: cannot reset the peak: " << status;
}

std::size_t DriverPool::IdleBytes() noexcept {
  const std::size_t reserved = ReservedBytes();
  return reserved - std::min(reserved, in_use_bytes());
}

std::size_t DriverPool::MoveWithinReach(Stream stream) noexcept {
  const std::uint64_t pending = FindDone([](const Stream&) { return false; });
  if (ForbidsWaits()) {
    return pending -
           FindDone([this](const Stream& aside) { return WaitOnHost(aside); });
  }
  return pending - MakeWait(stream, [](std::uint64_t) { return false; });
}

std::size_t DriverPool::GiveBack() noexcept {
  if (!is_open()) return 0;
  const CaptureGate::CallScope scope(gate_.get(), device_);
  if (!scope) return 0;
  const std::size_t before = ReservedBytes();
  const Status status = device_.PoolTrimTo(pool(), 0);
  STRATA_LOG_IF(Error, IsFailure(status))
      << "cuda_malloc_async: cannot trim the pool of device "
      << device_.ordinal() << ": " << status;
  const std::size_t after = ReservedBytes();
  return before - std::min(before, after);
}

}  // namespace strata
