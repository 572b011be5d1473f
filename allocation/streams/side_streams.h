#ifndef STRATA_ALLOCATION_STREAMS_SIDE_STREAMS_H_
#define STRATA_ALLOCATION_STREAMS_SIDE_STREAMS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/streams/capture_gate.h"
#include "strata/platform/device.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/platform/stream.h"

namespace strata {

// Internal streams that wait for streams of the caller: one for each set of
// streams to wait for. So a slow stream delays only the sets that contain it.
//
// Model: a set has a key. Of() returns the stream of a key, and creates it at
//   the first use. Beyond kMost streams, a key takes over an idle stream from
//   the kAsked least recently used ones. If all of these are busy, it shares
//   the most recently used stream. So a stream may wait for more than its set,
//   but never for less.
// Errors: a stream without uid if the device creates none and there is none.
// Threads: any thread. No device call with the lock held.
// Cost: O(kMost); a device call per new stream, and at most kAsked beyond
//   kMost.
// Lifetime: `device` must outlive it. Streams exist until End() or the
//   destructor; their work continues.
class SideStreams {
 public:
  using Key = std::uint64_t;

  static constexpr std::size_t kMost = 16;
  static constexpr std::size_t kAsked = 4;
  // Key of the empty set.
  static constexpr Key kNone = 0;

  explicit SideStreams(Device& device);
  SideStreams(const SideStreams&) = delete;
  SideStreams& operator=(const SideStreams&) = delete;
  ~SideStreams();

  // Returns the key of the set of `key` plus `stream`; the order does not
  // matter.
  static Key With(Key key, const Stream& stream) noexcept;

  // Returns the stream of a key. While captures are announced at `gate`, no
  // stream is queried. `gate` null: there are no captures.
  Stream Of(Key key, const CaptureGate* gate) noexcept;
  // Stores the streams; returns their number.
  std::size_t List(std::array<Stream, kMost>& streams) const noexcept;
  bool Has(const Stream& stream) const noexcept;
  // Destroys the streams. They must no longer be used.
  void End() noexcept;

 private:
  struct Side {
    Stream stream;
    Key key = kNone;
    std::uint64_t used = 0;  // value of uses_ at the last use
  };

  // The next three functions need lock_. Null if there is no such stream.
  Side* Find(Key key) noexcept;
  Side* LastUsed() noexcept;
  Stream Use(Side& side) noexcept;
  // The next two functions are called without lock_. Create() returns a new
  // stream, or a stream that another thread created meanwhile.
  Stream Create(Key key) noexcept;
  Stream TakeOver(Key key, const CaptureGate* gate) noexcept;

  Device& device_;
  mutable SpinLock lock_;
  // The members below are guarded by lock_.
  std::array<Side, kMost> sides_;
  std::size_t count_ = 0;
  std::uint64_t uses_ = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_SIDE_STREAMS_H_
