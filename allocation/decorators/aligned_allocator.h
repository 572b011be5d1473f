#ifndef STRATA_ALLOCATION_DECORATORS_ALIGNED_ALLOCATOR_H_
#define STRATA_ALLOCATION_DECORATORS_ALIGNED_ALLOCATOR_H_

#include <memory>

#include "strata/allocation/decorator.h"

namespace strata {

// Serves alignments above those of the underlying allocator: it requests more
// bytes and moves the address up.
//
// Model: requests that the underlying allocator can align pass through
//   unchanged. Otherwise up to `alignment - natural alignment` bytes are lost
//   per block. The record stores the offset; size() is the number of bytes
//   after it.
// Errors: kBadRequest for an alignment above kMaxAlignment.
// Cost: none for a request that passes through.
class AlignedAllocator final : public Decorator {
 public:
  explicit AlignedAllocator(std::shared_ptr<Allocator> underlying);

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  const char* name() const override { return "aligned"; }
  std::size_t max_alignment() const override { return kMaxAlignment; }
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_ALIGNED_ALLOCATOR_H_
