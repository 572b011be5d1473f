#ifndef STRATA_ALLOCATION_DECORATORS_STAT_ALLOCATOR_H_
#define STRATA_ALLOCATION_DECORATORS_STAT_ALLOCATOR_H_

#include <cstdint>
#include <memory>

#include "strata/allocation/decorator.h"
#include "strata/allocation/decorators/decorator_options.h"
#include "strata/allocation/hit/chain_state.h"
#include "strata/allocation/hit/place_peak.h"
#include "strata/allocation/streams/chain_stream.h"

namespace strata {

// Counts the allocations of users: requests, bytes requested, bytes in use, and
// their exact peak on this chain.
//
// Model: it counts in the ChainState of the chain, where the front counts a hit
//   that bypasses the layers. So the numbers cover the whole chain. A block
//   that a strategy caches counts as free.
// Threads: any thread.
// Cost: two uncontended locks per walk; no additional lock on a hit.
class StatAllocator final : public Decorator {
 public:
  // The layer counts in the state of `stream`, or in a state of its own if
  // `stream` is null. `peak` may be null.
  StatAllocator(std::shared_ptr<Allocator> underlying,
                std::shared_ptr<ChainStream> stream,
                std::shared_ptr<PlacePeak> peak = nullptr);
  ~StatAllocator() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  const char* name() const override { return "stat"; }
  Stats stats() const override;
  void ResetPeak() override;

 private:
  const std::shared_ptr<ChainStream> stream_;
  const std::shared_ptr<PlacePeak> peak_;  // of the place, or null
  ChainState& state_;                      // of stream_
  std::uint64_t failures_ = 0;             // guarded by the lock of state_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_STAT_ALLOCATOR_H_
