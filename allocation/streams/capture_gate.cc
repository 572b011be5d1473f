#include "strata/allocation/streams/capture_gate.h"

#include <thread>

#include "strata/base/log.h"

namespace strata {

thread_local const CaptureGate::Calm* CaptureGate::Calm::innermost_ = nullptr;

CaptureGate::Calm::Calm(const CaptureGate& gate) noexcept
    : gate_(gate), outer_(innermost_) {
  innermost_ = this;
  ++gate_.calms_;
  // A nested Calm succeeds: Announce() already waits for the outer one.
  for (const Calm* one = outer_; one != nullptr && !is_calm_;
       one = one->outer_) {
    is_calm_ = one->is_calm_ && &one->gate_ == &gate_;
  }
  is_calm_ = is_calm_ || gate_.announced_.load() == 0;
  if (!is_calm_) --gate_.calms_;
}

CaptureGate::Calm::~Calm() {
  if (is_calm_) --gate_.calms_;
  innermost_ = outer_;
}

bool CaptureGate::IsCapturing(Device& device,
                              const Stream& stream) const noexcept {
  if (!any() || !device.caps().capture) return false;
  CaptureStatus status = CaptureStatus::kNone;
  return device.StreamIsCapturing(stream, &status) != Status::kSuccess ||
         status != CaptureStatus::kNone;
}

bool CaptureGate::MayTouch(Device& device,
                           const Stream& stream) const noexcept {
  if (!any() || !device.caps().capture) return true;
  // A use of the legacy stream is a use of every blocking stream
  // (cuda_semantics.md C16).
  if (stream.uid == kLegacyStreamUid) return false;
  return !IsCapturing(device, stream);
}

void CaptureGate::EndLater(Postponable& what) noexcept {
  {
    const Calm calm(*this);
    if (calm) return what.End();
  }
  Push(what);
  // The last capture may have ended before Push(). Then no other call would end
  // the object.
  EndPostponed();
}

void CaptureGate::Push(Postponable& what) noexcept {
  ++postponed_count_;
  Postponable* first = postponed_.load(std::memory_order_relaxed);
  do {
    what.next_ = first;
  } while (!postponed_.compare_exchange_weak(first, &what));
}

bool CaptureGate::Postpone(Postponable& what) noexcept {
  if (is_closed_) return false;
  Push(what);
  // The last EndPostponed() may have run before Push().
  if (is_closed_) EndPostponed();
  return true;
}

void CaptureGate::Announce() noexcept {
  ++attention_;
  ++announced_;
  // The work under a Calm may wait for a device.
  while (calms_.load() != 0) std::this_thread::yield();
}

void CaptureGate::EndPostponed() noexcept {
  const Calm calm(*this);
  if (!calm) return;
  Postponable* what = postponed_.exchange(nullptr);
  while (what != nullptr) {
    Postponable* const next = what->next_;
    what->End();
    --postponed_count_;
    what = next;
  }
}

void CaptureGate::RelaxedScope::Enter(Device& device) noexcept {
  if (!device.caps().capture) return;
  CaptureMode mode = CaptureMode::kRelaxed;
  const Status status = device.ThreadExchangeCaptureMode(&mode);
  is_refused_ = status != Status::kSuccess;
  if (is_refused_) {
    static std::atomic<bool> is_logged{false};
    STRATA_LOG_IF(Error, !is_logged.exchange(true))
        << "cannot relax the thread's capture mode (" << status
        << "): what captures forbid is not done";
    return;
  }
  device_ = &device;
  previous_ = mode;
}

void CaptureGate::RelaxedScope::Leave() noexcept {
  const Status status = device_->ThreadExchangeCaptureMode(&previous_);
  STRATA_LOG_IF(Error, status != Status::kSuccess)
      << "cannot restore the thread's capture mode: " << status;
}

}  // namespace strata
