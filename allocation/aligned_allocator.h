#ifndef STRATA_ALLOCATION_ALIGNED_ALLOCATOR_H_
#define STRATA_ALLOCATION_ALIGNED_ALLOCATOR_H_

#include <memory>

#include "strata/allocation/decorator.h"

namespace strata {

// Serves alignments that the underlying allocator does not promise by asking
// for more and moving the address up.
//
// Model: what the underlying allocator promises passes through untouched.
//   Otherwise up to `alignment - natural alignment` bytes are lost per block;
//   the offset is kept in the record, and size() is what follows it.
// Errors: kBadRequest for an alignment above kMaxAlignment.
// Cost: nothing for a request that passes through.
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

#endif  // STRATA_ALLOCATION_ALIGNED_ALLOCATOR_H_
