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
//   the operations, with the sizes and streams that the program asked for;
//   `oom` is counted as a failure; what the caching allocator did by itself
//   (segments, `free_completed`) is passed over.
//
//   Blocks live before the first entry come first, by address: those freed
//   without an `alloc`, and those that `segments`, which has the state at the
//   end, calls allocated although no entry speaks of them. A block there that
//   was recorded when allocated (it has frames) and yet has no entry proves
//   that the ring of entries wrapped. A block whose address was last freed was
//   allocated after the last entry, and is left out.
//
//   Events are of entries, counted from 1 (Trace::unit).
// Errors: TraceError; as ReadPickle, and for values that make no sense, naming
//   the entry.
// Cost: some 400 bytes per entry; stack frames are not kept.
//
// `device`: whose entries; nothing: those of the first device that has any.
Trace ReadPytorchSnapshot(InputBuffer& input,
                          std::optional<std::uint64_t> device);

}  // namespace strata

#endif  // STRATA_TOOLS_PYTORCH_SNAPSHOT_H_
