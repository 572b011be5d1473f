#ifndef STRATA_TOOLS_REPLAY_BLOCK_CHECKER_H_
#define STRATA_TOOLS_REPLAY_BLOCK_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <map>

namespace strata::tools {

// A block as the checker sees it.
struct CheckedBlock {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
};

// Tracks every live block of a replay and detects violations of the allocator's
// contract.
//
// Errors: std::runtime_error naming the block and the violation.
// Threads: externally synchronised.
// Cost: logarithmic in the number of live blocks.
class BlockChecker {
 public:
  // Call after `block` was allocated for a request of `bytes` bytes.
  void Allocated(const CheckedBlock& block, std::size_t bytes);
  // Call before `block` is freed.
  void Freeing(const CheckedBlock& block);

 private:
  std::map<std::uintptr_t, std::size_t> live_;  // key: address; value: size
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_REPLAY_BLOCK_CHECKER_H_
