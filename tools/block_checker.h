#ifndef STRATA_TOOLS_BLOCK_CHECKER_H_
#define STRATA_TOOLS_BLOCK_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <map>

namespace strata {

// A block as the checker sees it.
struct CheckedBlock {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
};

// Knows every live block of a replay and says when an allocator breaks its
// promises.
//
// Errors: std::runtime_error naming the block and what is wrong with it.
// Threads: externally synchronised.
// Cost: logarithmic in the number of live blocks.
class BlockChecker {
 public:
  // `block` was made for a request of `bytes` bytes.
  void Allocated(const CheckedBlock& block, std::size_t bytes);
  // `block` is about to be freed.
  void Freeing(const CheckedBlock& block);

 private:
  std::map<std::uintptr_t, std::size_t> live_;  // address and size
};

}  // namespace strata

#endif  // STRATA_TOOLS_BLOCK_CHECKER_H_
