#ifndef STRATA_TOOLS_TRACE_BUILDER_H_
#define STRATA_TOOLS_TRACE_BUILDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strata/tools/live_map.h"
#include "strata/tools/trace.h"

namespace strata {

// Makes a Trace of rows in file order; what every reader of a format ends in.
//
// Model: address 0 is legal for blocks of no bytes; any number of them may be
//   live. Streams 0 and 1 are both the default stream (CUDA's legacy handles).
// Errors: TraceError, naming the row's line, for a row that contradicts those
//   before it. The builder is of no use after that.
class TraceBuilder {
 public:
  // What the `line` of a row counts is given by `unit`.
  explicit TraceBuilder(const std::string& path,
                        Trace::Unit unit = Trace::Unit::kLine);

  void Allocate(std::uint64_t line, std::uint64_t address, std::uint64_t bytes,
                std::uint64_t stream);
  // `bytes`: nothing if the row does not say.
  void Free(std::uint64_t line, std::uint64_t address,
            std::optional<std::uint64_t> bytes, std::uint64_t stream);
  void SkipFailure() { ++trace_.failures_skipped; }
  void SkipReallocations(std::uint64_t rows) {
    trace_.reallocations_skipped += rows;
  }
  void SkipOtherPlace() { ++trace_.other_place_rows; }
  void SkipOtherPlaces(std::uint64_t rows) { trace_.other_place_rows += rows; }

  [[noreturn]] void Fail(std::uint64_t line, std::string_view reason) const;

  // Errors: TraceError if there was no allocate and no free.
  Trace Finish();

 private:
  std::uint32_t TakeSlot(std::uint64_t line);
  std::uint32_t StreamIndex(std::uint64_t line, std::uint64_t stream);
  void NoteDefault(std::uint64_t stream);
  void AddEvent(std::uint64_t line, TraceEvent event);

  Trace trace_;
  LiveMap live_;
  std::vector<std::uint32_t> live_null_;  // slots of live blocks at address 0
  std::vector<std::uint32_t> free_slots_;
  // Of the block last in each slot: its bytes, and the index of its stream.
  std::vector<std::uint64_t> slot_bytes_;
  std::vector<std::uint32_t> slot_streams_;
  std::unordered_map<std::uint64_t, std::uint32_t> stream_indices_;
  std::uint64_t last_stream_ = 0;  // that of the row before, and its index
  std::uint32_t last_stream_index_ = 0;
  bool has_stream_0_ = false;
  bool has_stream_1_ = false;  // cudaStreamLegacy: 0 by another name
  std::uint64_t next_line_ =
      0;  // that the next event has if nothing is skipped
  std::uint64_t live_bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_TRACE_BUILDER_H_
