#ifndef STRATA_TOOLS_PYTORCH_SNAPSHOT_H_
#define STRATA_TOOLS_PYTORCH_SNAPSHOT_H_

#include <cstdint>
#include <optional>

#include "strata/tools/input_buffer.h"
#include "strata/tools/trace.h"

namespace strata {

// Reads a memory snapshot of PyTorch: what torch.cuda.memory._dump_snapshot
// writes after _record_memory_history.
//
// Model: the entries of one device, in order. `alloc` and `free_requested` are
//   the operations, with the sizes and streams that the program asked for. A
//   `free_completed` is one, too, if no `free_requested` came before it
//   (skip_actions). `oom` is a request that failed (Trace: a try), and
//   `segment_free` may be a release (ReadHistory). Other entries are passed
//   over.
//
//   Blocks live before the first entry come first, by address: those freed
//   without an `alloc`, and those that `segments`, which has the state at the
//   end, calls allocated although no entry speaks of them. A block there that
//   was recorded when allocated (it has frames) and yet has no entry proves
//   that the ring of entries wrapped. A block whose address was last freed was
//   allocated after the last entry, and is left out.
//
//   Events are of entries, counted from 1 (Trace::unit). Entries, segments and
//   blocks that make no sense are skipped (TraceBuilder); Python objects stand
//   for nothing and are never made.
// Errors: TraceError; as ReadPickle; with `strict`, also for a part that would
//   be skipped, naming the entry.
// Cost: some 400 bytes per entry; stack frames are not kept.
//
// `device`: whose entries; nothing: those of the first device that has any.
Trace ReadPytorchSnapshot(InputBuffer& input,
                          std::optional<std::uint64_t> device,
                          bool strict = false);

}  // namespace strata

#endif  // STRATA_TOOLS_PYTORCH_SNAPSHOT_H_
