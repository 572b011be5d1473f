#ifndef STRATA_ALLOCATION_FAULT_ALLOCATOR_H_
#define STRATA_ALLOCATION_FAULT_ALLOCATOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "strata/allocation/decorator.h"

namespace strata {

// Which requests fail. A request fails if any of the rules says so.
struct FaultPlan {
  std::uint64_t nth = 0;    // this request, counted from 1; 0: none
  std::uint64_t every = 0;  // every this many requests; 0: none
  double probability = 0;   // of each request, drawn from `seed`
  std::uint64_t seed = 1;

  // Reads "nth=3", "every=10", "probability=0.01,seed=7" or several of them.
  //
  // Errors: std::invalid_argument naming the part that is wrong.
  static FaultPlan Parse(const std::string& text);
};

// Refuses requests on purpose, as if the memory below were exhausted, so that
// the layers above can be tested on any device.
//
// Threads: any thread; with one thread the same plan refuses the same requests.
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

#endif  // STRATA_ALLOCATION_FAULT_ALLOCATOR_H_
