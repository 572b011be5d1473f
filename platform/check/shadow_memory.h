#ifndef STRATA_PLATFORM_CHECK_SHADOW_MEMORY_H_
#define STRATA_PLATFORM_CHECK_SHADOW_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "strata/platform/check/hazard_report.h"
#include "strata/platform/check/order_clock.h"

namespace strata {

// The life of a block, as an allocator above the device reported it.
struct BlockLife : Lifetime {
  std::uint64_t capture = 0;  // in which it was allocated; 0: in none
  // Captures of other blocks' graphs in which it was freed, or marked for one
  // of their streams: its allocator keeps it for them.
  std::vector<std::uint64_t> kept_for;
  // Of the graph that was captured; gone once nothing can launch it any more.
  std::weak_ptr<const void> graph;

  // Whether no more use in it can come.
  bool IsOver() const { return freed && (capture == 0 || graph.expired()); }
};

// A use of memory that later ones have to come after.
struct MemoryUse {
  Epoch epoch;
  std::shared_ptr<BlockLife> life;  // null: of no block
  std::uint64_t region = 0;         // through whose addresses; 0: gone ones
  bool write = false;
  AccessSite access;
  bool concluded = false;  // from work of its stream: no record tells of it
  bool own = false;        // by a launch of the graph whose block it is
};

// What is remembered of some physical bytes.
struct MemorySegment {
  std::shared_ptr<BlockLife> life;  // the last one; null: never a block
  std::vector<MemoryUse> uses;

  // Adds a use in place of those that it makes superfluous: of the same stream,
  // life and addresses.
  void Add(const MemoryUse& use);
  // The same for a use that is only concluded from work of its stream, in place
  // of what was concluded before: nothing is added if that work, or later one,
  // is known to use it.
  void AddConcluded(MemoryUse use);
  // A new life begins. Of the uses in freed lives that no graph can repeat,
  // only each stream's last through the same addresses is kept.
  void Begin(const std::shared_ptr<BlockLife>& fresh);
  // The addresses of the region are gone: of uses through such ones, only a
  // stream's last in a life is kept.
  void EndRegion(std::uint64_t region);
};

// Segments of physical memory, named by a space (0: memory known by its
// addresses; others: memory that can be mapped) and an offset in it.
//
// Threads: externally synchronised.
// Cost: the depth of a tree per segment. A segment keeps a few uses per stream.
// Source: cuda_semantics.md §5.4.
class ShadowMemory {
 public:
  // Calls `visit(MemorySegment&, begin, end)` for each segment of the range,
  // which is cut out of what is larger, and made where there is none.
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
  // The same for what there is, and without cuts: begin and end are the
  // segment's own.
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

  // Makes segments end at `at`.
  void CutAt(std::uint64_t space, std::uint64_t at);
  // The first segment of the range, all of which has segments now.
  Rows::iterator Cut(std::uint64_t space, std::uint64_t begin,
                     std::uint64_t end);
  Rows::iterator CoalesceWithPrevious(Rows::iterator row);

  Rows segments_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_CHECK_SHADOW_MEMORY_H_
