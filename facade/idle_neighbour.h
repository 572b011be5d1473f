#ifndef STRATA_FACADE_IDLE_NEIGHBOUR_H_
#define STRATA_FACADE_IDLE_NEIGHBOUR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/chunk_pool.h"
#include "strata/allocation/reclaimer.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/platform/device.h"
#include "strata/platform/function_ref.h"
#include "strata/platform/stream.h"

namespace strata {

// Shares idle memory between the facades of a process that use one device. A
// facade with a request that would fail asks the others: they return idle
// memory to the device if the work that used it is done.
//
// Model: the last rung of the ladder. A question waits for no stream and calls
//   no callback or visitor. A thread that is inside a question asks no other.
//   Nobody is asked while any facade of the device has announced a capture, and
//   the two facades announce none until the question is answered. Nobody is
//   asked either while another thread uses the list of facades.
// Threads: any thread. The destructor waits for questions under way.
// Lifetime: the arguments of the constructor outlive it. A forked child does
//   not ask the facades of its parent.
class IdleNeighbour final : private ReclaimSource {
 public:
  // Makes no device call.
  //
  // Errors: std::bad_alloc.
  IdleNeighbour(const Device& device, ChunkPool& pool, const CaptureGate& gate,
                const std::shared_ptr<Reclaimer>& reclaimer);
  ~IdleNeighbour() override;

  // Gives nothing from now on, but asks the others as before. Waits for
  // questions under way.
  void StopGiving() noexcept;

 private:
  struct Entry;
  class List;

  // Idle bytes of the other facades.
  std::size_t ReclaimableBytes(bool of_limit) const noexcept override;
  std::size_t Reclaim(Stream stream, std::size_t bytes) noexcept override;
  void ForEachOther(FunctionRef<void(Entry&)> ask) const noexcept;

  const std::shared_ptr<Entry> entry_;
  Reclaimer::Registration registration_;  // of this, so it goes first
};

}  // namespace strata

#endif  // STRATA_FACADE_IDLE_NEIGHBOUR_H_
