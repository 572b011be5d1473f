#include "strata/allocation/failure.h"

#include "strata/allocation/size.h"

namespace strata {
namespace {

std::string ReasonText(const Failure& f) {
  switch (f.reason) {
    case Failure::Reason::kNone:
      return "nothing failed";
    case Failure::Reason::kDeviceMemory:
      return "the device is out of memory";
    case Failure::Reason::kHostMemory:
      return "the host is out of memory";
    case Failure::Reason::kLimit:
      return HumanBytes(f.reserved_bytes) + " reserved of " +
             HumanBytes(f.limit_bytes) + " allowed";
    case Failure::Reason::kBudget:
      return HumanBytes(f.in_use_bytes) + " in use of " +
             HumanBytes(f.limit_bytes) + " allowed";
    case Failure::Reason::kNoGrowth:
      return "no cached block fits and growth was forbidden";
    case Failure::Reason::kTooLarge:
      return "no device can address as much";
    case Failure::Reason::kBadRequest:
      return "bad request";
    case Failure::Reason::kDevice:
      return "a device call failed with " + strata::ToString(f.status);
  }
  return "unknown reason";
}

}  // namespace

std::string Failure::ToString() const {
  std::string text = std::string(layer) + ": cannot allocate " +
                     HumanBytes(requested_bytes) + " on " +
                     strata::ToString(place) + ": " + ReasonText(*this);
  if (detail[0] != '\0') text += std::string(" (") + detail + ")";
  if (reason == Reason::kDeviceMemory || reason == Reason::kLimit) {
    const auto add = [&text](const char* label, std::size_t bytes) {
      if (bytes != 0) text += std::string("; ") + label + HumanBytes(bytes);
    };
    add("asked of the system: ", rounded_bytes);
    add("largest cached block: ", largest_free_bytes);
    if (reason == Reason::kDeviceMemory) add("reserved: ", reserved_bytes);
    if (device_total_bytes != 0) {
      text += "; device: " + HumanBytes(device_free_bytes) + " free of " +
              HumanBytes(device_total_bytes);
    }
  }
  if (reason == Reason::kDevice && !during_capture) text += CaptureHint(status);
  if (during_capture) {
    text += "; a capture is under way, so nothing was given back for it";
  }
  if (waited_ms != 0) {
    text += "; waited " + std::to_string(waited_ms) + " ms for memory";
  }
  return text;
}

const char* CaptureHint(Status status) {
  switch (status) {
    case Status::kStreamCaptureUnsupported:
    case Status::kStreamCaptureInvalidated:
    case Status::kStreamCaptureImplicit:
      return "; a capture is under way that was not announced: call "
             "CaptureGuard or PrepareMemoryPoolForCUDAGraph before it begins "
             "(in C, strata_capture_begin)";
    default:
      return "";
  }
}

}  // namespace strata
