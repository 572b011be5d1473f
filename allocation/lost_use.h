#ifndef STRATA_ALLOCATION_LOST_USE_H_
#define STRATA_ALLOCATION_LOST_USE_H_

#include "strata/allocation/allocation.h"
#include "strata/allocation/block_flags.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/platform/device.h"
#include "strata/platform/stream.h"

namespace strata {

// A use of a block that a layer cannot note, for want of host memory.
//
// Model: whoever can waits for the use at once. Where nobody can, as a wait
//   would end a capture, or as a graph repeats the use, the block is lost: no
//   layer gives its memory back any more, and the log says so.
// Threads: as for the flags of a block.

inline void LoseUse(Block& block) noexcept { AddFlag(block, kBlockUseLost); }

// Waits for what was submitted to `stream` of `device`, so that there is
// nothing to note; else loses the use. False if it is lost. `gate` is null if
// there are no captures.
bool AwaitOrLoseUse(Block& block, Device& device, const Stream& stream,
                    const CaptureGate* gate, const char* layer) noexcept;

// Whether `block` must not be given back when it is freed, but kept for ever.
inline bool IsUseLost(const Block& block) noexcept {
  return HasFlag(block, kBlockUseLost);
}
// Has it freed for its user, and for nobody else.
void KeepForEver(Block& block, const char* layer) noexcept;

}  // namespace strata

#endif  // STRATA_ALLOCATION_LOST_USE_H_
