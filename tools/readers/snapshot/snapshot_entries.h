#ifndef STRATA_TOOLS_READERS_SNAPSHOT_SNAPSHOT_ENTRIES_H_
#define STRATA_TOOLS_READERS_SNAPSHOT_SNAPSHOT_ENTRIES_H_

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "strata/tools/readers/pickle/pickle_tree.h"
#include "strata/tools/readers/snapshot/snapshot_fields.h"
#include "strata/tools/readers/snapshot/snapshot_history.h"
#include "strata/tools/readers/snapshot/snapshot_layout.h"
#include "strata/tools/trace/trace_builder.h"

namespace strata::tools {

// The entries of one device of a memory snapshot.
struct SnapshotEntries {
  // entry number n of the file has index n - 1
  std::vector<SnapshotEntry> entries;
  bool has_segments = true;    // entries of segments have address and size
  bool is_expandable = false;  // a segment was mapped piece by piece
};

// Reads `values`. An invalid entry is skipped and remains kOther.
//
// Errors: as TraceBuilder::Skip.
SnapshotEntries ReadSnapshotEntries(const std::vector<PickleValue>& values,
                                    const SnapshotFields& fields,
                                    TraceBuilder& builder);

// The frees of a history.
//
// Model: the first entry that reports a block as free is its free: a
//   `free_requested`, or a `free_completed` if there was none. The completion
//   of a block without an earlier entry is a free if no entry at all requests a
//   free; otherwise its request was lost with the beginning of the ring.
class SnapshotFrees {
 public:
  enum class State : std::uint8_t { kLive, kFreeing, kFree };

  // Sets each free to kFree, and other completions to kOther.
  explicit SnapshotFrees(std::vector<SnapshotEntry>& entries);

  // Blocks freed without an earlier `alloc`: live before the first entry.
  const std::vector<SnapshotBlock>& before() const { return before_; }
  // Frees without a `free_requested`.
  std::uint64_t completed() const { return completed_; }
  // The state of the block at an address after the last entry; nothing if no
  // entry mentions it.
  std::optional<State> StateOf(std::uint64_t address) const;

 private:
  void AddFree(const SnapshotEntry& entry, State state);
  void Complete(SnapshotEntry& entry, bool has_requests);

  std::unordered_map<std::uint64_t, State> states_;
  std::vector<SnapshotBlock> before_;
  std::uint64_t completed_ = 0;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_SNAPSHOT_SNAPSHOT_ENTRIES_H_
