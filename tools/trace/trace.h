#ifndef STRATA_TOOLS_TRACE_TRACE_H_
#define STRATA_TOOLS_TRACE_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "strata/tools/trace/skip_log.h"

namespace strata::tools {

// A trace that cannot be read. what() is one line, "file:line: reason", or
// "file: reason" if the error has no line. For files without lines the reason
// begins with "entry 7: " or "offset 7: ".
class TraceError : public std::runtime_error {
 public:
  // `line` counts from 1; 0: none.
  TraceError(const std::string& path, std::uint64_t line,
             std::string_view reason);
};

// One operation of a trace.
//
// Model: a slot stands for one live block. It is reused after the free, so that
//   a replay's table of live blocks remains as small as the live set.
//     allocate  creates the block of a slot.
//     free      frees it.
//     release   the program returned idle memory to the system.
//     try       a request that failed when it was recorded: an allocate and
//               its free at once. It may fail again.
// Cost: 8 bytes, because traces have tens of millions of them.
class TraceEvent {
 public:
  enum class Kind : std::uint8_t { kFree, kAllocate, kRelease, kTry };

  static constexpr std::uint32_t kMaxStreams = std::uint32_t{1} << 30;

  TraceEvent(Kind kind, std::uint32_t slot, std::uint32_t stream)
      : slot_(slot),
        stream_and_kind_(stream << 2 | static_cast<std::uint32_t>(kind)) {}
  static TraceEvent Allocate(std::uint32_t slot, std::uint32_t stream) {
    return TraceEvent(Kind::kAllocate, slot, stream);
  }
  static TraceEvent Free(std::uint32_t slot, std::uint32_t stream) {
    return TraceEvent(Kind::kFree, slot, stream);
  }
  static TraceEvent Release() { return TraceEvent(Kind::kRelease, 0, 0); }
  static TraceEvent Try(std::uint32_t slot, std::uint32_t stream) {
    return TraceEvent(Kind::kTry, slot, stream);
  }

  // Not meaningful for a release (0).
  std::uint32_t slot() const { return slot_; }
  // Index into Trace::streams.
  std::uint32_t stream() const { return stream_and_kind_ >> 2; }
  Kind kind() const { return static_cast<Kind>(stream_and_kind_ & 3U); }
  bool is_allocate() const { return kind() == Kind::kAllocate; }
  bool is_free() const { return kind() == Kind::kFree; }
  bool is_release() const { return kind() == Kind::kRelease; }
  bool is_try() const { return kind() == Kind::kTry; }

  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;

 private:
  std::uint32_t slot_;
  std::uint32_t stream_and_kind_;
};

// The operations of one process on one device, in order. They are checked:
// every free has its allocate, and no slot is allocated twice.
struct Trace {
  // From event `event` on, lines are consecutive from `line`.
  struct LineJump {
    std::size_t event;
    std::uint64_t line;
  };

  // One piece of memory that the allocator held from the device, and its live
  // blocks, ascending. The rest is free. Event number n creates block number n
  // of all segments.
  struct RecordedSegment {
    struct Block {
      std::uint64_t offset;
      std::uint64_t bytes;  // as rounded by the allocator
    };
    std::uint64_t bytes;
    std::uint32_t stream;  // index into `streams`
    std::vector<Block> blocks;
  };

  // The memory of the allocator in use during the recording. Known only for
  // memory snapshots.
  struct Recorded {
    std::uint64_t peak_reserved_bytes = 0;  // 0: unknown
    // Segments before the first entry; empty: unknown.
    std::vector<RecordedSegment> segments;
    // Reserved bytes plus free bytes of the device when a request failed; the
    // largest value of all such requests. 0: unknown, or no request failed.
    std::uint64_t device_bytes = 0;
  };

  // The unit of LineOf, counted from 1: lines of a text, or entries of a device
  // in a memory snapshot. Blocks that were live before the first entry belong
  // to that entry.
  enum class Unit { kLine, kEntry };
  static const char* UnitName(Unit unit);

  // The line of event number `event`.
  std::uint64_t LineOf(std::size_t event) const;
  // Path and line, as at the beginning of errors: "file:7", "file: entry 7".
  std::string Where(std::size_t event) const;
  // Moves the events of stream number n to number n modulo `count`, which is
  // not 0.
  void FoldStreams(std::size_t count);

  std::string path;  // as the user wrote it
  Unit unit = Unit::kLine;
  std::vector<TraceEvent> events;
  std::vector<std::uint64_t> allocated_bytes;  // per allocate and try, in order
  std::vector<LineJump> line_jumps;            // ascending
  std::size_t slots = 0;
  // The recorded identities of the streams; the first is the default stream.
  std::vector<std::uint64_t> streams;
  // Work that a replay adds to the stream of each allocate, in ns. A query of
  // the stream after each event lets time pass; 0: none.
  std::uint64_t work_ns = 0;
  // Peak of the bytes requested by live blocks, including a try during its
  // request.
  std::uint64_t peak_live_bytes = 0;
  Recorded recorded;

  SkipLog skipped;
  std::uint64_t tries = 0;                // events that are a try
  std::uint64_t releases = 0;             // events that are a release
  std::uint64_t failures_skipped = 0;     // failed requests without a size
  std::uint64_t frees_of_other_size = 0;  // size differs from the allocate
  std::uint64_t frees_of_other_stream = 0;
  bool has_both_defaults = false;  // streams 0 and 1 occur, which are the same
  // skipped: not of device memory, or of another device than the first
  std::uint64_t other_place_rows = 0;
  // The members up to frees_completed are for memory snapshots.
  // Blocks that were live before the first entry; allocated first.
  std::uint64_t blocks_before = 0;
  bool has_lost_entries = false;   // the ring of entries wrapped, for certain
  std::uint64_t blocks_after = 0;  // skipped: allocated after the last entry
  // devices with entries that were not selected
  std::uint64_t devices_skipped = 0;
  std::uint64_t frees_completed = 0;  // frees recorded only when completed
  // For Umpire's logs: rows of resized host memory.
  std::uint64_t reallocations_skipped = 0;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_TRACE_TRACE_H_
