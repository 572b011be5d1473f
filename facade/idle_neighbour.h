#ifndef STRATA_FACADE_IDLE_NEIGHBOUR_H_
#define STRATA_FACADE_IDLE_NEIGHBOUR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/reclaim/reclaimer.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/base/function_ref.h"
#include "strata/platform/device.h"
#include "strata/platform/stream.h"

namespace strata {

// Shares idle memory between the facades of a process that use one device.
// Before a request of one facade fails, the other facades release idle memory
// to the device if the work that used it has completed.
//
// Model: the last step of the ladder. A query waits for no stream and calls no
//   callback or visitor. A thread inside a query starts no other. There is no
//   query while any facade of the device has announced a capture, and neither
//   facade announces one until the query returns. There is also no query while
//   another thread uses the list of facades.
// Threads: any thread. The destructor waits for queries in progress.
// Lifetime: the arguments of the constructor outlive it. A forked child does
//   not query the facades of its parent.
class IdleNeighbour final : private Reclaimer::Source {
 public:
  // Makes no device call.
  //
  // Errors: std::bad_alloc.
  IdleNeighbour(const Device& device, ChunkPool& pool, const CaptureGate& gate,
                const std::shared_ptr<Reclaimer>& reclaimer);
  ~IdleNeighbour() override;

  // Releases nothing to other facades from now on, but queries them as before.
  // Waits for queries in progress.
  void StopGiving() noexcept;

 private:
  struct Entry;
  class List;

  // Idle bytes of the other facades.
  std::size_t ReclaimableBytes(bool of_limit) const noexcept override;
  std::size_t Reclaim(Stream stream, std::size_t bytes) noexcept override;
  void ForEachOther(FunctionRef<void(Entry&)> ask) const noexcept;

  const std::shared_ptr<Entry> entry_;
  // The last member, so it is destroyed first.
  Reclaimer::Registration registration_;
};

}  // namespace strata

#endif  // STRATA_FACADE_IDLE_NEIGHBOUR_H_
