#ifndef STRATA_TESTS_TESTING_LAYERS_COUNTING_HOLDER_H_
#define STRATA_TESTS_TESTING_LAYERS_COUNTING_HOLDER_H_

#include <cstddef>

#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/allocation/chunks/chunk_pool.h"

namespace strata {

// A holder that holds nothing in a pool, and counts the queries.
class CountingHolder final : public ChunkHolder {
 public:
  explicit CountingHolder(ChunkPool& pool)
      : ChunkHolder(Identity()), pool_(pool) {
    pool_.AddHolder(*this);
  }
  ~CountingHolder() override { pool_.RemoveHolder(*this); }

  IdleInfo Idle(std::size_t /*fit_bytes*/) const noexcept override {
    return IdleInfo();
  }
  bool IdleIsDone() noexcept override { return true; }
  std::size_t SmallestLendable(std::size_t /*bytes*/) const noexcept override {
    ++borrows;
    return 0;
  }
  std::size_t ReturnLoans(LoanRecall /*which*/) noexcept override {
    ++recalls;
    return 0;
  }

  void StreamEnds(Stream /*stream*/) noexcept override { ++ends; }

  mutable int borrows = 0;
  int ends = 0;
  int recalls = 0;

 private:
  ChunkPool& pool_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_LAYERS_COUNTING_HOLDER_H_
