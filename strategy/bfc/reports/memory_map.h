#ifndef STRATA_STRATEGY_BFC_REPORTS_MEMORY_MAP_H_
#define STRATA_STRATEGY_BFC_REPORTS_MEMORY_MAP_H_

#include <functional>
#include <ostream>
#include <string>

#include "strata/strategy/bfc/reports/snapshot.h"

namespace strata {

// Writes `snapshot` as JSON lines, one field of TensorFlow's MemoryDump each:
//   {"allocator_name":…}
//   {"bin_summary":{"bin":…,"total_bytes_in_use":…,"total_bytes_in_bin":…,
//     "total_chunks_in_use":…,"total_chunks_in_bin":…}}            21 of them
//   {"chunk":{"address":…,"size":…,"requested_size":…,"bin":…,"op_name":…,
//     "freed_at_count":…,"action_count":…,"in_use":…,"step_id":…,
//     "annotation":…}}                                         every chunk
//   {"snap_shot":{"action_count":…,"size":…}}                oldest first
//   {"stats":{"num_allocs":…,"bytes_in_use":…,"peak_bytes_in_use":…,
//     "largest_alloc_size":…,"fragmentation_metric":…}}
//
// Model: the allocator's name starts with its place, "device:0_bfc". `bin` is
//   -1 for a chunk in use. freed_at_count is present only with a timing
//   counter. Two fields are not in the original: `annotation` has all data of
//   annotation.h on the allocation; "deferred":true follows in_use of a chunk
//   that was freed but that streams may still use (BlockState::kDeferred).
// Errors: errors of `out`.
// Cost: O(chunks), on a snapshot: no lock is held.
// Source: tf_bfc.md R54.
void WriteMemoryMap(const BfcSnapshot& snapshot, std::ostream& out);

// Callback of an allocator with its state when memory is exhausted. Never
// throws.
using MemoryMapSink = std::function<void(const BfcSnapshot&)>;

// Most files that one sink writes. A program that tries ever smaller requests
// must not fill the disk.
inline constexpr int kMostMemoryMaps = 100;

// A sink that writes each snapshot to a new file `<prefix>_<allocator
// name>.<n>`. n counts from 0 and skips existing files. Characters of the names
// other than letters, digits, `-` and `.` become `_`.
//
// Errors: if a file cannot be written, it is removed. The first such error is
//   logged with the system's reason.
// Threads: any thread, if the sink is called through one object or its copies.
// Source: tf_bfc.md R55; the original names files by time and may overwrite.
MemoryMapSink MakeMemoryMapSink(const std::string& prefix);

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_REPORTS_MEMORY_MAP_H_
