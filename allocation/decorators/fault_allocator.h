#ifndef STRATA_ALLOCATION_DECORATORS_FAULT_ALLOCATOR_H_
#define STRATA_ALLOCATION_DECORATORS_FAULT_ALLOCATOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "strata/allocation/decorator.h"

namespace strata {

// Rules that select the requests to fail. A request fails if any rule matches.
struct FaultPlan {
  std::uint64_t nth = 0;    // number of the request, from 1; 0: none
  std::uint64_t every = 0;  // every n-th request; 0: none
  double probability = 0;   // of each request, drawn from `seed`
  std::uint64_t seed = 1;

  // Parses "nth=3", "every=10", "probability=0.01,seed=7" or several of them.
  //
  // Errors: std::invalid_argument with the name of the wrong part.
  static FaultPlan Parse(const std::string& text);
};

// Fails requests on purpose, as if the memory below were exhausted. So the
// layers above can be tested on any device.
//
// Threads: any thread; with one thread, the same plan fails the same requests.
class FaultAllocator final : public Decorator {
 public:
  FaultAllocator(std::shared_ptr<Allocator> underlying, const FaultPlan& plan);

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  const char* name() const override { return "fault"; }
  // `failures` counts the requests refused on purpose.
  Stats stats() const override;
  HitPath* hit_path() override { return nullptr; }

 private:
  bool ShouldFail(std::uint64_t call) const;

  const FaultPlan plan_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_FAULT_ALLOCATOR_H_
