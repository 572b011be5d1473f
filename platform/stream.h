#ifndef STRATA_PLATFORM_STREAM_H_
#define STRATA_PLATFORM_STREAM_H_

#include <cstdint>

#include "strata/base/require_cxx20.h"

namespace strata {

// A stream: the device's handle for it, its device, and an identity that is
// never reused.
//
// Model: a value. The driver recycles handles, so two streams are equal only if
//   their `uid`s are (cuda_semantics.md S7). A default-constructed Stream names
//   no stream. Device::LegacyStream() returns the legacy stream.
struct Stream {
  void* handle = nullptr;  // the driver's handle
  std::int32_t device = -1;
  std::uint64_t uid = 0;  // unique for the life of the process; 0: no stream

  friend bool operator==(const Stream& a, const Stream& b) {
    return a.uid == b.uid && a.device == b.device;
  }
};

// The uid of the legacy stream of every device. The device alone distinguishes
// these streams.
inline constexpr std::uint64_t kLegacyStreamUid = 1;

// The handle of the per-thread default stream, as in CUDA. It names another
// stream in each thread that uses it.
inline constexpr std::uintptr_t kPerThreadHandle = 2;

// How a stream is created; values as in CUDA.
enum StreamFlags : unsigned {
  kStreamDefault = 0,      // ordered with the legacy stream
  kStreamNonBlocking = 1,  // not ordered with the legacy stream
};

// A handle of the device. The tag makes each kind of handle a type of its own.
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
