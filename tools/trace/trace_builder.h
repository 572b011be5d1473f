#ifndef STRATA_TOOLS_TRACE_TRACE_BUILDER_H_
#define STRATA_TOOLS_TRACE_TRACE_BUILDER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strata/tools/trace/live_map.h"
#include "strata/tools/trace/skip_log.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {

// Builds a Trace from rows in file order. Every reader of a format uses one.
//
// Model: address 0 is legal for blocks of 0 bytes; any number of them may be
//   live. Streams 0 and 1 are both the default stream (CUDA's legacy handles).
//   A row that contradicts the rows before it is skipped (Trace::skipped): a
//   free of memory that is not live, or bytes at address 0. An allocate of a
//   live address frees the old block first, because its free is missing.
// Errors: TraceError; with `strict`, also for the first row that would be
//   skipped. The builder is unusable after that.
class TraceBuilder {
 public:
  // `unit` is the unit of the `line` of a row.
  explicit TraceBuilder(const std::string& path,
                        Trace::Unit unit = Trace::Unit::kLine,
                        bool strict = false);

  // Counts a row, or a part of the file that is read as one.
  void CountRow() { trace_.skipped.AddRows(1); }
  void CountBytes(std::uint64_t bytes) { trace_.skipped.AddBytes(bytes); }
  void Allocate(std::uint64_t line, std::uint64_t address, std::uint64_t bytes,
                std::uint64_t stream);
  // `bytes`, `stream`: nothing if the row does not contain them.
  void Free(std::uint64_t line, std::uint64_t address,
            std::optional<std::uint64_t> bytes,
            std::optional<std::uint64_t> stream);
  // The program returned idle memory to the system.
  void Release(std::uint64_t line);
  // A request that failed when it was recorded.
  void Try(std::uint64_t line, std::uint64_t bytes, std::uint64_t stream);
  // A failed request of unknown size.
  void SkipFailure() { ++trace_.failures_skipped; }
  void SkipReallocations(std::uint64_t rows) {
    trace_.reallocations_skipped += rows;
  }
  void SkipOtherPlace() { ++trace_.other_place_rows; }
  void SkipOtherPlaces(std::uint64_t rows) { trace_.other_place_rows += rows; }

  // Skips a part, or throws if the reading is strict.
  void Skip(SkipKind kind, std::uint64_t line, const std::string& reason,
            std::uint64_t count = 1);
  // Adds the counts of `log` to this trace.
  void MergeSkipped(const SkipLog& log) { trace_.skipped.Merge(log); }
  [[noreturn]] void Fail(std::uint64_t line, std::string_view reason) const;

  // The index of a stream in Trace::streams. Adds a new stream.
  std::uint32_t StreamIndex(std::uint64_t line, std::uint64_t stream);
  std::size_t events() const { return trace_.events.size(); }

  // From now on the number of a live address, or of a stream, is replaced by
  // `renamed` of it. Different numbers have different new numbers.
  using Rename = std::function<std::uint64_t(std::uint64_t)>;
  void RenameAddresses(const Rename& renamed);
  void RenameStreams(const Rename& renamed);

  // Errors: TraceError if there was no allocate, free or try; with the reason
  //   of the first skipped row, if there is one.
  Trace Finish();

 private:
  std::uint32_t TakeSlot(std::uint64_t line);
  void NoteDefault(std::uint64_t stream);
  void AddEvent(std::uint64_t line, TraceEvent event);
  std::optional<std::uint32_t> TakeLive(std::uint64_t address);
  void EndSlot(std::uint64_t line, std::uint32_t slot, std::uint32_t stream);

  const bool strict_;
  Trace trace_;
  LiveMap live_;
  std::vector<std::uint32_t> live_null_;  // slots of live blocks at address 0
  std::vector<std::uint32_t> free_slots_;
  // The last block in each slot: its bytes, and the index of its stream.
  std::vector<std::uint64_t> slot_bytes_;
  std::vector<std::uint32_t> slot_streams_;
  std::unordered_map<std::uint64_t, std::uint32_t> stream_indices_;
  std::uint64_t last_stream_ = 0;  // stream of the previous row, and its index
  std::uint32_t last_stream_index_ = 0;
  bool has_stream_0_ = false;
  bool has_stream_1_ = false;    // cudaStreamLegacy, the same stream as 0
  std::uint64_t next_line_ = 0;  // line of the next event if nothing is skipped
  std::uint64_t live_bytes_ = 0;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_TRACE_TRACE_BUILDER_H_
