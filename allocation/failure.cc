#include "strata/allocation/failure.h"

#include <array>
#include <cstdio>

#include "strata/base/size.h"

namespace strata {
namespace {

// Writes all sizes of a text in one unit, so that a reader can compare them;
// but sizes below 1 MiB in bytes, because they would round to nothing.
class Sizes {
 public:
  explicit Sizes(const Failure& f) : in_gib_(IsLarge(f)) {}

  std::string operator()(std::size_t bytes) const {
    if (bytes != 0 && bytes < Mebibytes(1)) {
      return std::to_string(bytes) + " bytes";
    }
    const double size =
        static_cast<double>(bytes) /
        static_cast<double>(in_gib_ ? Gibibytes(1) : Mebibytes(1));
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.*f", in_gib_ ? 2 : 1, size);
    return std::string(text.data()) + (in_gib_ ? " GiB" : " MiB");
  }

 private:
  // True if the request and the device are at least 1 GiB, and all other sizes
  // at least a tenth of that. False with a limit, because limits are set in
  // MiB.
  static bool IsLarge(const Failure& f) {
    if (f.limit_bytes != 0 || f.requested_bytes < Gibibytes(1) ||
        (f.device_total_bytes != 0 && f.device_total_bytes < Gibibytes(1))) {
      return false;
    }
    for (const std::size_t bytes :
         {f.largest_free_bytes, f.live_bytes, f.cached_bytes, f.reserved_bytes,
          f.device_free_bytes}) {
      if (bytes != 0 && bytes < Gibibytes(1) / 10) return false;
    }
    return true;
  }

  const bool in_gib_;
};

std::string AllowedText(const Failure& f, const Sizes& size) {
  const std::string text = " of " + size(f.limit_bytes) + " allowed";
  return *f.limit_flag == '\0' ? text : text + " by " + f.limit_flag;
}

std::string ReasonText(const Failure& f, const Sizes& size) {
  switch (f.reason) {
    case Failure::Reason::kNone:
      return "nothing failed";
    case Failure::Reason::kDeviceMemory:
      return "the device is out of memory";
    case Failure::Reason::kHostMemory:
      return "the host is out of memory";
    case Failure::Reason::kLimit:
      return size(f.reserved_bytes) + " reserved" + AllowedText(f, size);
    case Failure::Reason::kBudget:
      return size(f.in_use_bytes) + " in use" + AllowedText(f, size);
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

// The known numbers of the place and of the device.
std::string MemoryText(const Failure& f, const Sizes& size) {
  std::string text;
  const auto add = [&](const char* label, std::size_t bytes) {
    text += std::string("; ") + label + size(bytes);
  };
  if (f.rounded_bytes != 0 && f.reason != Failure::Reason::kBudget) {
    add("asked of the system: ", f.rounded_bytes);
  }
  if (f.knows_place) {
    add("in use: ", f.live_bytes);
    add("free in cached blocks: ", f.cached_bytes);
  }
  if (f.largest_free_bytes != 0) {
    add("largest cached block: ", f.largest_free_bytes);
  }
  if (f.reason != Failure::Reason::kLimit && f.reserved_bytes != 0) {
    add("reserved: ", f.reserved_bytes);
  }
  if (f.device_total_bytes != 0) {
    add("device: ", f.device_free_bytes);
    text += " free of " + size(f.device_total_bytes);
  }
  return text;
}

}  // namespace

std::string Failure::ToString() const {
  const Sizes size(*this);
  // A size that stands alone needs no common unit.
  const std::string asked =
      IsExhaustion() ? size(requested_bytes) : HumanBytes(requested_bytes);
  std::string text = std::string(layer) + ": cannot allocate " + asked +
                     " on " + strata::ToString(place) + ": " +
                     ReasonText(*this, size);
  if (detail[0] != '\0') text += std::string(" (") + detail + ")";
  if (IsExhaustion()) text += MemoryText(*this, size);
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
