#ifndef STRATA_TOOLS_READERS_SNAPSHOT_SNAPSHOT_HISTORY_H_
#define STRATA_TOOLS_READERS_SNAPSHOT_SNAPSHOT_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "strata/tools/trace/trace.h"

namespace strata::tools {

// One entry of a memory snapshot's history.
struct SnapshotEntry {
  enum class Action : std::uint8_t {
    kAllocate,
    kFree,           // free of a block: `free_requested` (SnapshotFrees)
    kFreeCompleted,  // the place of the block can be reused
    kOutOfMemory,
    kSegmentAllocate,  // also `segment_map`
    kSegmentFree,      // also `segment_unmap`
    kOther,            // not needed by a replay
  };

  std::uint64_t address = 0;  // for `oom`: the device's free bytes
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  std::uint32_t frames = 0;  // SnapshotFields::Frames
  Action action = Action::kOther;
  bool has_bytes = false;
  bool has_stream = false;
  bool has_address = false;
};

// The recorded program's use of segments.
struct SnapshotHistory {
  Trace::Recorded recorded;
  // Indices of entries before which the program released idle memory
  // (`torch.cuda.empty_cache()`), ascending.
  std::vector<std::size_t> releases;
};

// `reserved_at_end`: bytes of the segments after the last entry; nothing if
// unknown.
//
// Model: a release is a run of freed segments, unless the allocator freed them
//   for a request that it could not serve. Such a request is
//   - an `oom` beside the run: the next entry, or one that no allocation
//     follows until the run;
//   - the next entry, if that is a new segment with the same stack frames. If
//     no frames were recorded: if the new segment would have raised the
//     reserved bytes above their peak.
SnapshotHistory ReadHistory(const std::vector<SnapshotEntry>& entries,
                            std::optional<std::uint64_t> reserved_at_end);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_SNAPSHOT_SNAPSHOT_HISTORY_H_
