#ifndef STRATA_TOOLS_READERS_SNAPSHOT_PYTORCH_SNAPSHOT_H_
#define STRATA_TOOLS_READERS_SNAPSHOT_PYTORCH_SNAPSHOT_H_

#include <cstdint>
#include <optional>

#include "strata/tools/readers/input_buffer.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {

// Reads a memory snapshot of PyTorch: the output of
// torch.cuda.memory._dump_snapshot after _record_memory_history.
//
// Model: the entries of one device, in order. `alloc` and `free_requested` are
//   the operations, with the sizes and streams of the program's requests. A
//   `free_completed` counts as an operation if no `free_requested` came before
//   it (skip_actions). `oom` is a request that failed (Trace: a try).
//   `segment_free` may be a release (ReadHistory). Other entries are skipped
//   without a count.
//
// Blocks live before the first entry come first, by address: blocks freed
// without an `alloc`; and blocks that `segments`, the state at the end, reports
// as allocated although no entry mentions them. If such a block has frames, it
// was recorded when allocated, which proves that the ring of entries wrapped. A
// block at an address that was last freed was allocated after the last entry,
// and is left out.
//
// Events belong to entries, counted from 1 (Trace::unit). Invalid entries,
// segments and blocks are skipped (TraceBuilder). Python objects have no
// meaning and are never created.
// Errors: TraceError; as ReadPickle; with `strict`, also for a part that would
//   be skipped, naming the entry.
// Cost: some 400 bytes per entry; stack frames are not stored.
//
// `device`: the device of the entries; nothing: the first device that has any.
Trace ReadPytorchSnapshot(InputBuffer& input,
                          std::optional<std::uint64_t> device,
                          bool strict = false);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_SNAPSHOT_PYTORCH_SNAPSHOT_H_
