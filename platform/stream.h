#ifndef STRATA_PLATFORM_STREAM_H_
#define STRATA_PLATFORM_STREAM_H_

#include <cstdint>

#include "strata/platform/require_cxx20.h"

namespace strata {

// A stream: the device's handle for it, its device, and an identity that is
// never used again.
//
// Model: a value. Handles are recycled by the driver, so two streams are the
// same only if their `uid`s are (cuda_semantics.md S7). A default-constructed
// Stream names no stream; Device::LegacyStream() gives the legacy one.
struct Stream {
  void* handle = nullptr;  // the driver's handle
  std::int32_t device = -1;
  std::uint64_t uid = 0;  // unique for the life of the process; 0: no stream

  friend bool operator==(const Stream& a, const Stream& b) {
    return a.uid == b.uid && a.device == b.device;
  }
};

// The uid of every device's legacy stream: it is keyed by its device alone.
inline constexpr std::uint64_t kLegacyStreamUid = 1;

// The handle of every thread's own default stream, as in CUDA: what it means
// depends on who says it.
inline constexpr std::uintptr_t kPerThreadHandle = 2;

// How a stream is created; values as in CUDA.
enum StreamFlags : unsigned {
  kStreamDefault = 0,      // ordered with the legacy stream
  kStreamNonBlocking = 1,  // takes no part in the legacy stream's ordering
};

// A handle of the device, told apart from other kinds by its tag.
template <class Tag>
struct Handle {
  void* value = nullptr;

  explicit operator bool() const { return value != nullptr; }
  friend bool operator==(const Handle&, const Handle&) = default;
};

using Event = Handle<struct EventTag>;

// How an event is created; values as in CUDA.
enum EventFlags : unsigned {
  kEventDefault = 0,
  kEventExternal = 1,
  kEventDisableTiming = 2,
  kEventInterprocess = 4,
};

}  // namespace strata

#endif  // STRATA_PLATFORM_STREAM_H_
