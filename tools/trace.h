#ifndef STRATA_TOOLS_TRACE_H_
#define STRATA_TOOLS_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "strata/tools/skip_log.h"

namespace strata {

// A trace that cannot be read: what() is one line, "file:line: reason", or
// "file: reason" if no line is to blame; for what has no lines the reason
// begins with "entry 7: " or "offset 7: ".
class TraceError : public std::runtime_error {
 public:
  // `line` counts from 1; 0: none.
  TraceError(const std::string& path, std::uint64_t line,
             std::string_view reason);
};

// One operation of a trace.
//
// Model: a slot stands for one live block; it is used again after the free, so
//   that a replay's table of live blocks stays as small as the live set.
//     allocate  makes the block of a slot.
//     free      ends it.
//     release   returns idle memory to the system, as the program asked for.
//     try       is a request that failed when it was recorded: an allocate and
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

  // Of a release: 0, which means nothing.
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

// The operations of one process on one device, in order: checked, so that every
// free has its allocate and no slot is allocated twice.
struct Trace {
  // From event `event` on, lines are consecutive from `line`.
  struct LineJump {
    std::size_t event;
    std::uint64_t line;
  };

  // Memory that the allocator had from the device in one piece, and the live
  // blocks in it, ascending. The rest is free. Block number n of all segments
  // is made by event number n.
  struct RecordedSegment {
    struct Block {
      std::uint64_t offset;
      std::uint64_t bytes;  // as the allocator rounded them
    };
    std::uint64_t bytes;
    std::uint32_t stream;  // index into `streams`
    std::vector<Block> blocks;
  };

  // The memory of the allocator that was in use when the trace was recorded.
  // Known of memory snapshots only.
  struct Recorded {
    std::uint64_t peak_reserved_bytes = 0;  // 0: unknown
    // Its segments before the first entry; empty: unknown.
    std::vector<RecordedSegment> segments;
    // Reserved bytes plus free bytes of the device when a request ran out, the
    // most of all such requests; 0: unknown, or none ran out.
    std::uint64_t device_bytes = 0;
  };

  // The unit of LineOf, which counts from 1: lines of a text, or entries of a
  // device in a memory snapshot. Blocks that were live before the first entry
  // belong to that entry.
  enum class Unit { kLine, kEntry };
  static const char* UnitName(Unit unit);

  // The line that event number `event` came from.
  std::uint64_t LineOf(std::size_t event) const;
  // The same with the path, as errors begin: "file:7", "file: entry 7".
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
  // Work that a replay adds to the stream of each allocate, in ns, with a query
  // of the stream after each event, so that time passes; 0: none.
  std::uint64_t work_ns = 0;
  // Peak of the bytes requested by live blocks, and by a try while it is made.
  std::uint64_t peak_live_bytes = 0;
  Recorded recorded;

  SkipLog skipped;
  std::uint64_t tries = 0;                // events that are a try
  std::uint64_t releases = 0;             // events that are a release
  std::uint64_t failures_skipped = 0;     // failed requests without a size
  std::uint64_t frees_of_other_size = 0;  // size unlike that of the allocate
  std::uint64_t frees_of_other_stream = 0;
  bool has_both_defaults = false;      // streams 0 and 1, which are one
  std::uint64_t other_place_rows = 0;  // skipped: not of device memory, or
                                       // of another device than the first
  // Of memory snapshots.
  std::uint64_t blocks_before = 0;  // allocated first: live before the entries
  bool has_lost_entries = false;    // the ring of entries wrapped, for certain
  std::uint64_t blocks_after = 0;   // skipped: allocated after the last entry
  std::uint64_t devices_skipped = 0;  // that have entries, none asked for
  std::uint64_t frees_completed = 0;  // frees recorded only when completed
  // Of Umpire's logs: rows of host memory that was resized.
  std::uint64_t reallocations_skipped = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_TRACE_H_
