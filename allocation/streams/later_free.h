#ifndef STRATA_ALLOCATION_STREAMS_LATER_FREE_H_
#define STRATA_ALLOCATION_STREAMS_LATER_FREE_H_

#include <memory>

#include "strata/allocation/allocator.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/platform/platform.h"

namespace strata {

// Whether a free of `block` to `layer` could wait for a stream that captures
// forbid to touch. A strategy keeps what it cut from a chunk, and waits for
// nobody.
//
// Cost: a device call if captures are announced and the strategy may wait.
bool MustFreeLater(const CaptureGate& gate, Platform& platform,
                   Allocator& layer, const Block& block) noexcept;

// Calls DoFree of `layer` once no capture is announced.
//
// Errors: std::bad_alloc; then nothing has changed.
void FreeLater(CaptureGate& gate, std::shared_ptr<Allocator> layer,
               Allocation* allocation);

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_LATER_FREE_H_
