#include "strata/allocation/streams/capture_gate.h"

#include <glog/logging.h>

namespace strata {

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
  // Its use would be a use of every blocking stream (cuda_semantics.md C16).
  if (stream.uid == kLegacyStreamUid) return false;
  return !IsCapturing(device, stream);
}

void RelaxedCaptureScope::Enter(Device& device) noexcept {
  if (!device.caps().capture) return;
  CaptureMode mode = CaptureMode::kRelaxed;
  if (device.ThreadExchangeCaptureMode(&mode) != Status::kSuccess) return;
  device_ = &device;
  previous_ = mode;
}

void RelaxedCaptureScope::Leave() noexcept {
  const Status status = device_->ThreadExchangeCaptureMode(&previous_);
  LOG_IF(ERROR, status != Status::kSuccess)
      << "cannot restore the thread's capture mode: " << ToString(status);
}

}  // namespace strata
