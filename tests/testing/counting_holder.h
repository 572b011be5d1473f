#ifndef STRATA_TESTS_TESTING_COUNTING_HOLDER_H_
#define STRATA_TESTS_TESTING_COUNTING_HOLDER_H_

#include <cstddef>

#include "strata/allocation/chunk_holder.h"
#include "strata/allocation/chunk_pool.h"

namespace strata {

// Holder of nothing in a pool that counts who asks it.
class CountingHolder final : public ChunkHolder {
 public:
  explicit CountingHolder(ChunkPool& pool) : pool_(pool) {
    pool_.AddHolder(*this);
  }
  ~CountingHolder() override { pool_.RemoveHolder(*this); }

  Stream holder_stream() const noexcept override { return Stream(); }
  std::size_t IdleBytes() const noexcept override { return 0; }
  std::size_t IdleSystemBytes() const noexcept override { return 0; }
  std::size_t SmallestIdle(std::size_t /*bytes*/) const noexcept override {
    return 0;
  }
  std::size_t LargestIdle() const noexcept override { return 0; }
  bool IdleIsDone() noexcept override { return true; }
  std::size_t GiveBack(std::size_t /*bytes*/) noexcept override { return 0; }
  std::size_t OfferIdle(std::size_t /*bytes*/) noexcept override { return 0; }
  std::size_t GiveBackAll() noexcept override { return 0; }
  std::size_t SmallestLendable(std::size_t /*bytes*/) const noexcept override {
    ++borrows;
    return 0;
  }
  std::size_t ReturnLoans(LoanRecall /*which*/) noexcept override {
    ++recalls;
    return 0;
  }

  void OtherStreamEnds(Stream /*stream*/) noexcept override { ++ends; }

  mutable int borrows = 0;
  int ends = 0;
  int recalls = 0;

 private:
  ChunkPool& pool_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_COUNTING_HOLDER_H_
