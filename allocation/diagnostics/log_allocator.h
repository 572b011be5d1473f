#ifndef STRATA_ALLOCATION_DIAGNOSTICS_LOG_ALLOCATOR_H_
#define STRATA_ALLOCATION_DIAGNOSTICS_LOG_ALLOCATOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "strata/allocation/decorator.h"
#include "strata/allocation/decorators/decorator_options.h"
#include "strata/allocation/diagnostics/allocation_log.h"

namespace strata {

// Records an allocation in the allocation log, as a raw allocation, unless its
// caller records it (kWillBeLogged).
//
// Errors: a request fails with kHostMemory if the host has no memory for its
//   entry.
// Cost: a line of the log, a table entry and a lock per call.
class LogAllocator final : public Decorator {
 public:
  LogAllocator(std::shared_ptr<Allocator> underlying,
               std::shared_ptr<AllocationLog> log);

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  const char* name() const override { return "log"; }
  HitPath* hit_path() override { return nullptr; }

 private:
  // A tree, because its nodes can be allocated in advance.
  using Ids = std::map<const Allocation*, std::uint64_t>;

  // Empty if there is no host memory.
  static Ids::node_type MakeEntry() noexcept;

  std::shared_ptr<AllocationLog> log_;
  std::mutex mutex_;  // never held during a write
  // allocation_id of live allocations in the log. Guarded by mutex_.
  Ids ids_;
};

// The log that all chains of the facade write. Null if the options name no
// file.
//
// Errors: as RecordingFile, at the first call in a facade.
std::shared_ptr<AllocationLog> AllocationLogOf(const DecoratorOptions& options,
                                               const ChainContext& context);

}  // namespace strata

#endif  // STRATA_ALLOCATION_DIAGNOSTICS_LOG_ALLOCATOR_H_
