#ifndef STRATA_ALLOCATION_STREAMS_SIDE_STREAMS_H_
#define STRATA_ALLOCATION_STREAMS_SIDE_STREAMS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/streams/capture_gate.h"
#include "strata/platform/device.h"
#include "strata/platform/spin_lock.h"
#include "strata/platform/stream.h"

namespace strata {

// Streams that Strata creates to wait for streams of the caller: one for each
// set of streams that is waited for. A slow stream then delays only the sets
// that it is in.
//
// Model: a set has a key. Of() returns the stream of a key, and creates it when
//   it is first needed. Beyond kMost streams, a key takes over one that is
//   idle, of the kAsked that were used least recently; if all of them are busy,
//   it shares the one that was used last. So a stream may wait for more than
//   its set, but never for less.
// Errors: a stream without uid if the device creates none and there is none.
// Threads: any thread. No device call with the lock held.
// Cost: O(kMost); a device call per new stream, and at most kAsked beyond
//   kMost.
// Lifetime: `device` outlives it. Streams stay until End, or the destructor;
//   their work goes on.
class SideStreams {
 public:
  using Key = std::uint64_t;

  static constexpr std::size_t kMost = 16;
  static constexpr std::size_t kAsked = 4;
  // The key of the empty set.
  static constexpr Key kNone = 0;

  explicit SideStreams(Device& device);
  SideStreams(const SideStreams&) = delete;
  SideStreams& operator=(const SideStreams&) = delete;
  ~SideStreams();

  // `key` with `stream` in its set; the order does not matter.
  static Key With(Key key, const Stream& stream) noexcept;

  // `gate`: while captures are announced there, no stream is asked whether it
  // is idle. Null: there are none.
  Stream Of(Key key, const CaptureGate* gate) noexcept;
  // The streams so far. Returns how many.
  std::size_t List(std::array<Stream, kMost>& streams) const noexcept;
  // Whether `stream` is one of them.
  bool Has(const Stream& stream) const noexcept;
  // Destroys the streams. Nobody uses them any more.
  void End() noexcept;

 private:
  struct Side {
    Stream stream;
    Key key = kNone;
    std::uint64_t used = 0;  // value of uses_ when it was last returned
  };

  // Hold lock_; null without one.
  Side* Find(Key key) noexcept;
  Side* LastUsed() noexcept;
  Stream Use(Side& side) noexcept;
  // Without it. A new one, or another that was created meanwhile.
  Stream Create(Key key) noexcept;
  // One that is idle; without uid if there is none.
  Stream TakeOver(Key key, const CaptureGate* gate) noexcept;

  Device& device_;
  mutable SpinLock lock_;
  // Guarded by lock_:
  std::array<Side, kMost> sides_;
  std::size_t count_ = 0;
  std::uint64_t uses_ = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_SIDE_STREAMS_H_
