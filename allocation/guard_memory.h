#ifndef STRATA_ALLOCATION_GUARD_MEMORY_H_
#define STRATA_ALLOCATION_GUARD_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "strata/allocation/chain_stream.h"
#include "strata/platform/place.h"
#include "strata/platform/platform.h"

namespace strata {

class TimelineTable;

// Bytes that must all have one value.
struct GuardZone {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  unsigned char value = 0;
};

// Where a zone differs from its value.
struct GuardChange {
  std::size_t count = 0;    // bytes that differ
  std::size_t first = 0;    // offset of the first of them in the zone
  unsigned char found = 0;  // its value
};

// The memory of one chain as the Guard layer writes and reads it: in the order
// of the chain's stream, or by the CPU at a host place.
//
// Model: device memory is copied to the host in pieces on the chain's stream,
//   and that stream alone is waited for. Once the stream has ended, its work is
//   waited for, and the calling thread's default stream serves instead and is
//   waited for after each call. Nothing is done while a capture is under way in
//   the stream: the work would become part of the graph.
// Errors: what the first failing device call returned.
// Threads: any thread.
// Cost: no heap call. A second thread that compares at the same time uses small
//   pieces.
class GuardMemory {
 public:
  // `platform`, `stream` and `timelines` may be null in a chain built by hand.
  GuardMemory(Place place, std::shared_ptr<Platform> platform,
              std::shared_ptr<ChainStream> stream,
              std::shared_ptr<TimelineTable> timelines = nullptr);

  // Whether what is written can be read back.
  bool readable() const { return readable_; }

  // The chain's; without uid if there is none.
  Stream stream() const {
    return stream_ != nullptr ? stream_->stream() : Stream();
  }

  Status Fill(const GuardZone& zone) const noexcept;
  // `zones` are in order of address. Writes `changes` only if all was read.
  Status Compare(const GuardZone* zones, std::size_t count,
                 GuardChange* changes) noexcept;
  // Whether work in the chain's stream becomes part of a graph.
  bool IsCapturing() const noexcept;
  // The same of another stream, which Know knows.
  bool IsCapturing(Stream other) const noexcept;

  // What follows comes after all work submitted to `other` so far. At a host
  // place, waits for that work. `other` stays there meanwhile.
  Status OrderAfter(Stream other) const noexcept;
  // The same for a stream that other threads may end: an error if it has.
  // Errors of Know, before: std::bad_alloc.
  void Know(Stream other) const;
  Status OrderAfterKnown(Stream other) const noexcept;

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
  // The stream to use now, and whether to wait for it after the call.
  struct Turn {
    Stream stream;
    bool wait;
  };

  // Calls `act` with the turn, unless a capture is under way in its stream.
  template <class Act>
  Status InTurn(Act act) const noexcept;
  Status Await(const Turn& turn) const noexcept;
  Status Read(const std::byte* data, std::byte* to,
              std::size_t bytes) const noexcept;
  Status ComparePieces(const GuardZone* zones, std::size_t count,
                       GuardChange* changes, std::byte* buffer,
                       std::size_t buffer_bytes) const noexcept;

  const Place place_;
  const std::shared_ptr<Platform> platform_;
  const std::shared_ptr<ChainStream> stream_;
  const std::shared_ptr<TimelineTable> timelines_;
  const bool on_host_;    // the CPU reaches the memory without the device
  Device* const device_;  // null: none is known
  const bool readable_;
  const std::unique_ptr<std::byte[]> buffer_;  // of kPieceBytes
  std::atomic<bool> buffer_taken_{false};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_GUARD_MEMORY_H_
