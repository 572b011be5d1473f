#ifndef STRATA_TOOLS_BLOCK_CHECKER_H_
#define STRATA_TOOLS_BLOCK_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "strata/allocation/allocation.h"

namespace strata {

// Knows every live block of a replay and says when an allocator breaks its
// promises.
//
// Errors: std::runtime_error naming the block and what is wrong with it.
// Threads: externally synchronised.
// Cost: logarithmic in the number of live blocks.
class BlockChecker {
 public:
  // `allocation` was made for a request of `bytes` bytes.
  void Allocated(const Allocation& allocation, std::size_t bytes);
  // `allocation` is about to be freed.
  void Freeing(const Allocation& allocation);

 private:
  std::map<std::uintptr_t, std::size_t> live_;  // address and size
};

}  // namespace strata

#endif  // STRATA_TOOLS_BLOCK_CHECKER_H_
