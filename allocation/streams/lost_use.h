#ifndef STRATA_ALLOCATION_STREAMS_LOST_USE_H_
#define STRATA_ALLOCATION_STREAMS_LOST_USE_H_

#include "strata/allocation/allocation.h"
#include "strata/allocation/block_flags.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/platform/device.h"
#include "strata/platform/stream.h"

namespace strata {

// Marks a block because a layer cannot record a use of it for lack of host
// memory.
//
// Model: a caller that can wait for the use waits at once. It cannot wait if
//   that would end a capture, or if a graph repeats the use. Then the block is
//   lost: no layer reuses or releases its memory, and the log says so.
// Threads: as for the flags of a block.

inline void LoseUse(Block& block) noexcept { AddFlag(block, kBlockUseLost); }

// Waits for the work submitted to `stream` of `device`, so that no record is
// needed. If that fails, calls LoseUse() and returns false. `gate` is null if
// there are no captures.
bool AwaitOrLoseUse(Block& block, Device& device, const Stream& stream,
                    const CaptureGate* gate, const char* layer) noexcept;

// True if the memory of `block` must not be reused after the free.
inline bool IsUseLost(const Block& block) noexcept {
  return HasFlag(block, kBlockUseLost);
}
// Counts the block as freed, but never reuses its memory.
void KeepForEver(Block& block, const char* layer) noexcept;

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_LOST_USE_H_
