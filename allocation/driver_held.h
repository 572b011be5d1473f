#ifndef STRATA_ALLOCATION_DRIVER_HELD_H_
#define STRATA_ALLOCATION_DRIVER_HELD_H_

#include <cstddef>

#include "strata/platform/stream.h"

namespace strata {

// Memory that the driver itself pools for the strategies of a place, as the
// ChunkPool of that place sees it: reserved, though in no chunk.
//
// Units: bytes, as the driver counts them.
// Threads: every function from any thread, with no lock held.
// Cost: a driver call or more each.
class DriverHeld {
 public:
  DriverHeld() = default;
  DriverHeld(const DriverHeld&) = delete;
  DriverHeld& operator=(const DriverHeld&) = delete;
  virtual ~DriverHeld() = default;

  // Held from the system, now and at most since the last ResetPeak. If the
  // driver does not say, what it said last.
  virtual std::size_t ReservedBytes() noexcept = 0;
  // Whether that is of this place alone, so that its limit bounds it. No driver
  // call.
  virtual bool is_own() const noexcept = 0;
  virtual std::size_t PeakReservedBytes() noexcept = 0;
  virtual void ResetPeak() noexcept = 0;
  // An upper bound on what GiveBack could give once all work is done.
  virtual std::size_t IdleBytes() noexcept = 0;

  // Lets `stream` have what was freed elsewhere, by making it wait on the
  // device; returns the bytes that this concerns.
  virtual std::size_t MoveWithinReach(Stream stream) noexcept = 0;
  // Gives idle memory to the system without waiting for any stream of a chain;
  // returns the bytes given.
  virtual std::size_t GiveBack() noexcept = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DRIVER_HELD_H_
