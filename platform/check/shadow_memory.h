#ifndef STRATA_PLATFORM_CHECK_SHADOW_MEMORY_H_
#define STRATA_PLATFORM_CHECK_SHADOW_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "strata/platform/check/hazard_report.h"
#include "strata/platform/check/memory_map.h"
#include "strata/platform/check/order_clock.h"

namespace strata::check {

// The life of a block, as reported by an allocator above the device.
struct BlockLife : Lifetime {
  std::uint64_t capture = 0;  // the capture in which it was allocated; 0: none
  // Captures of other graphs in which the block was freed, or marked for one of
  // their streams. The allocator keeps the block for them.
  std::vector<std::uint64_t> kept_for;
  // The graph of the capture. Expires once nothing can launch the graph any
  // more.
  std::weak_ptr<const void> graph;

  // True if no further use of the block can follow.
  bool IsOver() const { return freed && (capture == 0 || graph.expired()); }
};

// A use of memory that later uses have to come after.
struct MemoryUse {
  Epoch epoch;
  std::shared_ptr<BlockLife> life;  // null: in no block
  std::uint64_t region = 0;  // by the addresses of this region; 0: removed
  bool write = false;
  AccessSite access;
  bool concluded = false;  // inferred from the work of its stream
  bool own = false;        // by a launch of the graph that owns the block
};

// The recorded uses of some physical bytes.
struct MemorySegment {
  std::shared_ptr<BlockLife> life;  // the last block there; null: never a block
  std::vector<MemoryUse> uses;

  // Adds a use. It replaces earlier uses of the same stream, life and
  // addresses, which it makes superfluous.
  void Add(const MemoryUse& use);
  // Adds a use that is inferred from the work of its stream. It replaces
  // earlier inferred uses. Nothing is added if a recorded use of that work, or
  // of later work, exists.
  void AddConcluded(MemoryUse use);
  // A new life begins. Of the uses in freed lives that no graph can repeat,
  // only the last one per stream and addresses is kept.
  void Begin(const std::shared_ptr<BlockLife>& fresh);
  // The addresses of the region are removed. Of the uses through removed
  // addresses, only the last one per stream and life is kept.
  void EndRegion(std::uint64_t region);
};

// Segments of physical memory, named by a space and an offset in it. Space 0 is
// memory known by its addresses; the others are memory that can be mapped.
//
// Threads: externally synchronised.
// Cost: the depth of a tree per segment. A segment stores a few uses per
//   stream.
// Source: cuda_semantics.md §5.4.
class ShadowMemory {
 public:
  // Calls `visit(MemorySegment&, begin, end)` for each segment of the range.
  // Splits larger segments at the ends of the range, and creates missing ones.
  template <class Visit>
  void VisitRange(std::uint64_t space, std::uint64_t begin, std::uint64_t end,
                  Visit visit) {
    for (auto at = Cut(space, begin, end); at != segments_.end();) {
      const Key key = at->first;
      if (key.first != space || key.second >= end) break;
      visit(at->second.segment, key.second, at->second.end);
      at = CoalesceWithPrevious(at);
      ++at;
    }
  }
  // Calls `visit(MemorySegment&, const ReportedRange&)` for each segment of the
  // piece, as VisitRange does. The range has the addresses of the segment.
  template <class Visit>
  void VisitPiece(const MemoryMap::Piece& piece, Visit visit) {
    const std::uint64_t first = piece.offset();
    VisitRange(
        piece.region->space, first, first + piece.bytes,
        [&](MemorySegment& segment, std::uint64_t begin, std::uint64_t end) {
          visit(segment,
                ReportedRange{piece.ptr + (begin - first), end - begin});
        });
  }

  // Like VisitRange, for existing segments only and without splits: begin and
  // end are the ends of the whole segment.
  template <class Visit>
  void VisitKnown(std::uint64_t space, std::uint64_t begin, std::uint64_t end,
                  Visit visit) const {
    auto at = segments_.upper_bound({space, begin});
    if (at != segments_.begin()) --at;
    for (; at != segments_.end(); ++at) {
      const Key& key = at->first;
      if (key > Key(space, end) || key == Key(space, end)) break;
      if (key.first != space || at->second.end <= begin) continue;
      visit(at->second.segment, key.second, at->second.end);
    }
  }
  void Erase(std::uint64_t space, std::uint64_t begin, std::uint64_t end);
  void EraseSpace(std::uint64_t space);
  std::size_t segment_count() const { return segments_.size(); }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // space, begin
  struct Row {
    std::uint64_t end = 0;
    MemorySegment segment;
  };
  using Rows = std::map<Key, Row>;

  // Splits the segment that contains `at`, so that segments end at `at`.
  void CutAt(std::uint64_t space, std::uint64_t at);
  // Fills and splits the range with segments. Returns the first one.
  Rows::iterator Cut(std::uint64_t space, std::uint64_t begin,
                     std::uint64_t end);
  Rows::iterator CoalesceWithPrevious(Rows::iterator row);

  Rows segments_;
};

}  // namespace strata::check

#endif  // STRATA_PLATFORM_CHECK_SHADOW_MEMORY_H_
