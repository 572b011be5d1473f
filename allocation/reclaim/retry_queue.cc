#include "strata/allocation/reclaim/retry_queue.h"

#include <algorithm>
#include <utility>

#include "strata/base/log.h"
#include "strata/platform/device.h"

namespace strata {
namespace {

// Entry of the request that this thread is searching for; null: none.
thread_local constinit RetryQueue::Stay* t_searching = nullptr;

constexpr std::uint64_t kSearching = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

// Most bytes that can be live at once for such a request to succeed.
std::size_t CeilingOf(const Failure& failure) {
  std::size_t ceiling = kUnknown;
  if (failure.limit_bytes != 0) ceiling = failure.limit_bytes;
  // Managed memory may exceed the device.
  if (failure.reason == Failure::Reason::kDeviceMemory &&
      failure.place.kind == PlaceKind::kDevice &&
      failure.device_total_bytes != 0) {
    ceiling = std::min(ceiling, failure.device_total_bytes);
  }
  return ceiling;
}

std::chrono::nanoseconds DeadlineOf(const RetryOptions& options) {
  const auto now = options.clock->Now();
  // Avoids an overflow for a wait without end.
  const auto most = std::chrono::nanoseconds::max() - now;
  return options.time >
                 std::chrono::duration_cast<std::chrono::milliseconds>(most)
             ? std::chrono::nanoseconds::max()
             : now + options.time;
}

}  // namespace

RetryQueue::RetryQueue(const RetryOptions& options)
    : options_(options),
      place_(is_on() ? ThreadCensus::Instance().AddPlace() : 0) {}

RetryQueue::~RetryQueue() {
  if (is_on()) ThreadCensus::Instance().RemovePlace(place_);
}

bool RetryQueue::IsCapturing(Stream stream) const noexcept {
  if (options_.platform == nullptr || stream.uid == 0 ||
      !options_.platform->HasDevice(stream.device)) {
    return false;
  }
  CaptureStatus capture = CaptureStatus::kNone;
  const Status status = options_.platform->device(stream.device)
                            .StreamIsCapturing(stream, &capture);
  // The legacy stream does not report its state while another stream is
  // capturing.
  if (status == Status::kStreamCaptureImplicit) return true;
  return status == Status::kSuccess && capture != CaptureStatus::kNone;
}

bool RetryQueue::MayWait(Stream stream, const Failure& failure) noexcept {
  if (!is_on() || !failure.MayReclaim()) return false;
  if (failure.requested_bytes > CeilingOf(failure)) return false;
  CountThread();
  if (!options_.alone && !ThreadCensus::Instance().WasShared(place_)) {
    return false;
  }
  return !IsCapturing(stream);
}

RetryWaits RetryQueue::waits() const noexcept {
  const std::lock_guard<std::mutex> guard(ThreadCensus::Instance().mutex());
  return waits_;
}

void RetryQueue::Wake(std::size_t bytes, Failure::Reason reason) noexcept {
  const std::lock_guard<std::mutex> guard(ThreadCensus::Instance().mutex());
  freed_bytes_ += bytes;
  const Stay* searcher = t_searching;
  if (searcher != nullptr && &searcher->queue_ != this) searcher = nullptr;
  for (Stay* stay = first_; stay != nullptr; stay = stay->next_) {
    const bool concerns =
        reason == Failure::Reason::kNone || reason == stay->reason_;
    if (!concerns || !stay->CouldFit()) continue;
    if (searcher != nullptr && !stay->MissedBy(*searcher)) continue;
    stay->Signal();
    return;
  }
}

RetryQueue::Stay::Stay(RetryQueue& queue, const Failure& failure) noexcept
    : queue_(queue),
      deadline_(DeadlineOf(queue.options_)),
      reason_(failure.reason),
      bytes_(failure.requested_bytes),
      ceiling_bytes_(CeilingOf(failure)) {
  const std::lock_guard<std::mutex> guard(ThreadCensus::Instance().mutex());
  waiter_.place = queue_.place_;
  previous_ = queue_.last_;
  (previous_ != nullptr ? previous_->next_ : queue_.first_) = this;
  queue_.last_ = this;
  queue_.AddWaiter();
}

RetryQueue::Stay::~Stay() {
  const PlaceUsage* usage = queue_.options_.usage;
  const std::size_t live =
      was_signalled_ && usage != nullptr && queue_.waiters_.load() > 1
          ? usage->LiveBytes()
          : 0;
  t_searching = nullptr;
  const std::lock_guard<std::mutex> guard(ThreadCensus::Instance().mutex());
  if (was_signalled_ || signalled_) PassOn(signalled_ ? 0 : live);
  (previous_ != nullptr ? previous_->next_ : queue_.first_) = next_;
  (next_ != nullptr ? next_->previous_ : queue_.last_) = previous_;
  queue_.RemoveWaiter();
}

bool RetryQueue::Stay::MissedBy(const Stay& searcher) const {
  return this != &searcher && failed_at_ >= searcher.search_;
}

bool RetryQueue::Stay::CouldFit() const {
  return queue_.freed_bytes_ - freed_when_known_ >= missing_bytes_;
}

bool RetryQueue::Stay::CouldFitBeside(std::size_t live_bytes) const {
  // A budget counts requested bytes, which are fewer than live bytes.
  return reason_ == Failure::Reason::kBudget ||
         bytes_ <= ceiling_bytes_ - std::min(ceiling_bytes_, live_bytes);
}

void RetryQueue::Stay::Signal() noexcept {
  signalled_ = true;
  ThreadCensus::Unblock(waiter_);
  waiter_.wake.notify_one();
}

void RetryQueue::Stay::PassOn(std::size_t live_bytes) noexcept {
  for (Stay* stay = next_; stay != nullptr; stay = stay->next_) {
    if (!stay->CouldFit() || !stay->CouldFitBeside(live_bytes)) continue;
    stay->Signal();
    return;
  }
}

void RetryQueue::Stay::BeginSearch() noexcept {
  const std::lock_guard<std::mutex> guard(ThreadCensus::Instance().mutex());
  was_signalled_ = signalled_;
  signalled_ = false;
  search_ = ++queue_.searches_;
  failed_at_ = kSearching;
  freed_before_search_ = queue_.freed_bytes_;
  t_searching = this;
}

bool RetryQueue::Stay::Wait(const Failure& failure) noexcept {
  t_searching = nullptr;
  if (!failure.MayReclaim() || is_last_search_) return false;
  const PlaceUsage* usage = queue_.options_.usage;
  const bool is_budget = failure.reason == Failure::Reason::kBudget;
  std::size_t live = 0;
  std::optional<std::uint64_t> count_if_unused;
  // A budget is updated shortly after the memory is free. When nothing is in
  // use, it refuses only requests that exceed it.
  if (usage != nullptr && !is_budget) {
    live = usage->LiveBytes();
    count_if_unused = usage->CountIfUnused();
  }
  const std::size_t known = is_budget ? failure.in_use_bytes : live;

  std::unique_lock<std::mutex> lock(ThreadCensus::Instance().mutex());
  reason_ = failure.reason;
  failed_at_ = queue_.searches_;
  ceiling_bytes_ = CeilingOf(failure);
  const std::size_t room = ceiling_bytes_ - std::min(ceiling_bytes_, known);
  missing_bytes_ = bytes_ - std::min(bytes_, room);
  freed_when_known_ = freed_before_search_;
  if (was_signalled_) PassOn(live);
  was_signalled_ = false;
  is_last_search_ = queue_.options_.clock->Now() >= deadline_;
  if (signalled_ || is_last_search_) return true;
  // If no memory was in use during the search, there is no reason to wait.
  // Search once more if memory was freed meanwhile.
  const auto before = std::exchange(count_if_unused_, count_if_unused);
  if (count_if_unused) return before != count_if_unused;
  const bool may_search = WaitForSignal(lock);
  lock.unlock();  // a log sink may allocate
  STRATA_VLOG(2) << "retry: waited " << waited_ / std::chrono::milliseconds(1)
                 << " ms so far for " << bytes_ << " bytes";
  return may_search;
}

bool RetryQueue::Stay::WaitForSignal(
    std::unique_lock<std::mutex>& lock) noexcept {
  Clock& clock = *queue_.options_.clock;
  ThreadCensus& census = ThreadCensus::Instance();
  if (!queue_.options_.alone && !census.Block(waiter_)) return false;
  const auto begin = clock.Now();
  while (!signalled_ && !waiter_.hopeless && clock.Now() < deadline_) {
    clock.WaitUntil(waiter_.wake, lock, deadline_);
  }
  ThreadCensus::Unblock(waiter_);
  const std::chrono::nanoseconds slept = clock.Now() - begin;
  waited_ += slept;
  ++queue_.waits_.count;
  queue_.waits_.time += slept;
  is_last_search_ = !signalled_;
  return true;
}

}  // namespace strata
