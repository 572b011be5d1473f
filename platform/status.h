#ifndef STRATA_PLATFORM_STATUS_H_
#define STRATA_PLATFORM_STATUS_H_

#include <cstdint>
#include <iosfwd>
#include <string>

#include "strata/base/require_cxx20.h"

namespace strata {

// Result of a device call. The numbers are the numbers of `cudaError_t`, so
// that a report from the simulated device can be looked up in CUDA's
// documentation. A GPU may return a number that is not listed here. Such a
// number is kept, because it says more than kUnknown.
//
// Source: CUDA 13.0 driver_types.h.
enum class Status : std::int32_t {
  kSuccess = 0,
  kInvalidValue = 1,
  kMemoryAllocation = 2,
  kInvalidDevice = 101,
  kInvalidResourceHandle = 400,
  kIllegalState = 401,
  kNotReady = 600,
  kIllegalAddress = 700,
  kPeerAccessAlreadyEnabled = 704,
  kContextIsDestroyed = 709,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kNotPermitted = 800,
  kNotSupported = 801,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kStreamCaptureMerge = 902,
  kStreamCaptureUnmatched = 903,
  kStreamCaptureUnjoined = 904,
  kStreamCaptureIsolation = 905,
  kStreamCaptureImplicit = 906,
  kCapturedEvent = 907,
  kStreamCaptureWrongThread = 908,
  kGraphExecUpdateFailure = 910,
  kUnknown = 999,
};

// The enumerator without its `k` ("MemoryAllocation"), or "Unrecognized" for a
// number that is not listed above. The result is static.
const char* StatusName(Status status);

// "MemoryAllocation (2)".
std::string ToString(Status status);
// Writes the text of ToString() without a heap allocation.
std::ostream& operator<<(std::ostream& out, Status status);

// Finds the status with this number or this name (with or without the leading
// `k`). Returns false and leaves `status` unchanged if there is none.
bool ParseStatus(const std::string& text, Status* status);

}  // namespace strata

#endif  // STRATA_PLATFORM_STATUS_H_
