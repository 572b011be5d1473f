#ifndef STRATA_ALLOCATION_CHUNKS_DRIVER_HELD_H_
#define STRATA_ALLOCATION_CHUNKS_DRIVER_HELD_H_

#include <cstddef>

#include "strata/platform/stream.h"

namespace strata {

// Memory that the driver pools for the strategies of a place, as seen by the
// ChunkPool of that place. It is reserved, but belongs to no chunk.
//
// Units: bytes, as the driver counts them.
// Threads: any thread, with no lock held.
// Cost: at least one driver call per function.
class DriverHeld {
 public:
  DriverHeld() = default;
  DriverHeld(const DriverHeld&) = delete;
  DriverHeld& operator=(const DriverHeld&) = delete;
  virtual ~DriverHeld() = default;

  // Bytes held from the system now. PeakReservedBytes() is the maximum since
  // the last ResetPeak(). If the driver call fails, returns the last known
  // value.
  virtual std::size_t ReservedBytes() noexcept = 0;
  // True if the memory belongs to this place alone, so that the limit of the
  // place bounds it. No driver call.
  virtual bool is_own() const noexcept = 0;
  virtual std::size_t PeakReservedBytes() noexcept = 0;
  virtual void ResetPeak() noexcept = 0;
  // Upper bound of the bytes that GiveBack() could release after all work
  // completes.
  virtual std::size_t IdleBytes() noexcept = 0;

  // Makes memory that other streams freed available to `stream`, by a wait on
  // the device. Returns the bytes made available.
  virtual std::size_t MoveWithinReach(Stream stream) noexcept = 0;
  // Releases idle memory to the system without a wait for any stream of a
  // chain. Returns the bytes released.
  virtual std::size_t GiveBack() noexcept = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_DRIVER_HELD_H_
