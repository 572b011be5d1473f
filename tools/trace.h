#ifndef STRATA_TOOLS_TRACE_H_
#define STRATA_TOOLS_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

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

// One allocate or free.
//
// Model: a slot stands for one live block; it is used again after the free, so
//   that a replay's table of live blocks stays as small as the live set.
// Cost: 8 bytes, because traces have tens of millions of them.
class TraceEvent {
 public:
  static constexpr std::uint32_t kMaxStreams = std::uint32_t{1} << 31;

  static TraceEvent Allocate(std::uint32_t slot, std::uint32_t stream) {
    return TraceEvent(slot, stream << 1 | 1U);
  }
  static TraceEvent Free(std::uint32_t slot, std::uint32_t stream) {
    return TraceEvent(slot, stream << 1);
  }

  std::uint32_t slot() const { return slot_; }
  // Index into Trace::streams.
  std::uint32_t stream() const { return stream_and_kind_ >> 1; }
  bool is_allocate() const { return (stream_and_kind_ & 1U) != 0; }

  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;

 private:
  TraceEvent(std::uint32_t slot, std::uint32_t stream_and_kind)
      : slot_(slot), stream_and_kind_(stream_and_kind) {}

  std::uint32_t slot_;
  std::uint32_t stream_and_kind_;
};

// What one process asked of one device, in order: checked, so that every free
// has its allocate and no slot is allocated twice.
struct Trace {
  // From event `event` on, lines are consecutive from `line`.
  struct LineJump {
    std::size_t event;
    std::uint64_t line;
  };

  // What LineOf counts, from 1: lines of a text, or entries of a device in a
  // memory snapshot. There, what was live before the first entry counts as part
  // of it.
  enum class Unit { kLine, kEntry };
  static const char* UnitName(Unit unit);

  // The line that event number `event` came from.
  std::uint64_t LineOf(std::size_t event) const;
  // The same with the path, as errors begin: "file:7", "file: entry 7".
  std::string Where(std::size_t event) const;
  // Puts what happened on stream number n on number n modulo `count`, which is
  // not 0.
  void FoldStreams(std::size_t count);

  std::string path;  // as the user wrote it
  Unit unit = Unit::kLine;
  std::vector<TraceEvent> events;
  std::vector<std::uint64_t> allocated_bytes;  // one per allocate, in order
  std::vector<LineJump> line_jumps;            // ascending
  std::size_t slots = 0;
  // The recorded identities of the streams; the first is the default stream.
  std::vector<std::uint64_t> streams;
  // What a replay adds, as no recording tells: work that takes so long after
  // each allocate in its stream, and a query of the stream after each event, so
  // that time passes; 0: none.
  std::uint64_t work_ns = 0;
  std::uint64_t peak_live_bytes = 0;  // of the sum of what was asked for

  std::uint64_t failures_skipped = 0;     // "allocate failure" rows
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
  // Of Umpire's logs: rows of host memory that was resized.
  std::uint64_t reallocations_skipped = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_TRACE_H_
