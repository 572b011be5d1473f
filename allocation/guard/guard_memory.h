#ifndef STRATA_ALLOCATION_GUARD_GUARD_MEMORY_H_
#define STRATA_ALLOCATION_GUARD_GUARD_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "strata/allocation/streams/chain_stream.h"
#include "strata/platform/place.h"
#include "strata/platform/platform.h"

namespace strata {

class TimelineTable;

// A range whose bytes must all have one value.
struct GuardZone {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  unsigned char value = 0;
};

// The difference between a zone and its value.
struct GuardChange {
  std::size_t count = 0;    // number of different bytes
  std::size_t first = 0;    // offset of the first different byte in the zone
  unsigned char found = 0;  // its value
};

// Writes and reads the memory of one chain for the Guard layer: in the order of
// the chain's stream, or by the CPU at a host place.
//
// Model: device memory is copied to the host in pieces on the chain's stream,
//   and only that stream is waited for. After the stream has ended, the guard
//   waits for its work. Then it uses the default stream of the calling thread
//   and waits after each call. Nothing is done while the stream is capturing,
//   because the work would become part of the graph.
// Errors: the status of the first device call that failed.
// Threads: any thread.
// Cost: no heap call. A second thread that compares at the same time uses small
//   pieces.
class GuardMemory {
 public:
  // `platform`, `stream` and `timelines` may be null in a chain built by hand.
  GuardMemory(Place place, std::shared_ptr<Platform> platform,
              std::shared_ptr<ChainStream> stream,
              std::shared_ptr<TimelineTable> timelines = nullptr);

  // True if the device can copy the memory back.
  bool readable() const { return readable_; }

  // Stream of the chain; without uid if there is none.
  Stream stream() const {
    return stream_ != nullptr ? stream_->stream() : Stream();
  }

  Status Fill(const GuardZone& zone) const noexcept;
  // Compares `zones`, which are in address order. Writes `changes` only if all
  // zones were read.
  Status Compare(const GuardZone* zones, std::size_t count,
                 GuardChange* changes) noexcept;
  // True if work in the stream of the chain becomes part of a graph.
  bool IsCapturing() const noexcept;
  // True if work in `other`, a stream registered by Know(), becomes part of a
  // graph.
  bool IsCapturing(Stream other) const noexcept;

  // Orders later operations after all work submitted to `other` so far. At a
  // host place, waits for that work. `other` must exist during the call.
  Status OrderAfter(Stream other) const noexcept;
  // OrderAfterKnown() is OrderAfter() for a stream that other threads may
  // destroy; it fails if the stream has ended. Call Know() before. Errors of
  // Know(): std::bad_alloc.
  void Know(Stream other) const;
  Status OrderAfterKnown(Stream other) const noexcept;

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
  // The stream to use, and whether to wait for it after the call.
  struct Turn {
    Stream stream;
    bool wait;
  };

  // Calls `act` with the stream to use. Fails if that stream is capturing.
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
  const bool on_host_;    // the CPU can access the memory
  Device* const device_;  // null: unknown
  const bool readable_;
  const std::unique_ptr<std::byte[]> buffer_;  // kPieceBytes
  std::atomic<bool> buffer_taken_{false};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_GUARD_GUARD_MEMORY_H_
