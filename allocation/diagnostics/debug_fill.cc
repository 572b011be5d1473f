#include "strata/allocation/diagnostics/debug_fill.h"

#include <cstring>

namespace strata {

DebugFill::DebugFill(Device* device, std::optional<unsigned char> value,
                     bool sync, const CaptureGate* gate)
    : device_(device), value_(value), sync_(sync), gate_(gate) {}

Status DebugFill::Apply(Allocation& allocation, Stream stream) const noexcept {
  const PlaceKind kind = allocation.place().kind;
  const bool on_host = kind == PlaceKind::kHost || kind == PlaceKind::kPinned;
  if (value_ && on_host) {
    std::memset(allocation.data(), *value_, allocation.size());
  } else if (value_ && device_ != nullptr) {
    const Stream order = stream.uid != 0 ? stream : device_->LegacyStream();
    // A fill would end the captures of blocking streams (cuda_semantics.md
    // C16).
    const bool is_forbidden =
        gate_ != nullptr && gate_->any() && order.uid == kLegacyStreamUid;
    if (is_forbidden) return Status::kSuccess;
    const Status status =
        device_->MemsetAsync(reinterpret_cast<DevicePtr>(allocation.data()),
                             *value_, allocation.size(), order);
    if (status != Status::kSuccess) return status;
  }
  if (!sync_ || device_ == nullptr) return Status::kSuccess;
  // A wait would end the capture (cuda_semantics.md C16).
  if (gate_ != nullptr && gate_->any()) return Status::kSuccess;
  return device_->Synchronize();
}

}  // namespace strata
