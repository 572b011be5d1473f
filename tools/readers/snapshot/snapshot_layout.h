#ifndef STRATA_TOOLS_READERS_SNAPSHOT_SNAPSHOT_LAYOUT_H_
#define STRATA_TOOLS_READERS_SNAPSHOT_SNAPSHOT_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "strata/tools/readers/snapshot/snapshot_history.h"

namespace strata::tools {

// A block of a memory snapshot.
struct SnapshotBlock {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // requested
  std::uint64_t stream = 0;
  std::uint64_t size = 0;  // as rounded by the allocator; 0: unknown
};

// A segment of a memory snapshot, and the live blocks in it, ascending.
struct SnapshotSegment {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  std::vector<SnapshotBlock> blocks;
};

// The segments before the first entry, ascending, with the blocks that were
// live then.
//
// Model: undoes the entries on `at_end`; the blocks of `at_end` are not read. A
//   block of unknown size ends at the next multiple of 512 bytes; or where the
//   next block begins, if the memory between them is too small for a separate
//   block. Result: empty if the entries contradict each other, or a block of
//   `before`, which is sorted by address, lies in no segment.
std::vector<SnapshotSegment> SegmentsBefore(
    const std::vector<SnapshotEntry>& entries,
    const std::vector<SnapshotSegment>& at_end,
    const std::vector<SnapshotBlock>& before);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_SNAPSHOT_SNAPSHOT_LAYOUT_H_
