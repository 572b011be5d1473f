#ifndef STRATA_TESTS_CONTRACT_CONTRACT_FIXTURE_H_
#define STRATA_TESTS_CONTRACT_CONTRACT_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strata/allocation/decorators/registered/decorator_factories.h"
#include "strata/tests/contract/contract_cases.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {

// A newly built allocator and the place below it.
struct Subject {
  explicit Subject(const ContractCase& contract_case)
      : place(contract_case.options) {
    switch (contract_case.part) {
      case ContractCase::Part::kSystem:
        top = place.system();
        break;
      case ContractCase::Part::kChunkPool:
        top = place.pool();
        break;
      case ContractCase::Part::kChain:
        chain = place.AddChain();
        top = chain.top;
        break;
    }
  }

  // The layer that provides the numbers of Allocator::stats() of the outermost
  // one.
  const Allocator& Counter() const {
    const Allocator* layer = top.get();
    while (ForwardsStats(layer->name())) layer = layer->underlying();
    return *layer;
  }

  static bool ForwardsStats(const std::string& layer) {
    for (const char* name :
         {"trace", "events", "log", "observe", "retry", "cuda_graph",
          "stream_safe", "aligned", "direct"}) {
      if (layer == name) return true;
    }
    return DecoratorFactories::Instance().Has(layer);
  }

  TestPlace place;
  TestChain chain;
  std::shared_ptr<Allocator> top;
};

class ContractTest : public ::testing::TestWithParam<ContractCase> {
 protected:
  ~ContractTest() override {
    subject_.reset();
    std::remove(GetParam().options.decorators.trace_path.c_str());
    std::remove(GetParam().options.decorators.trace_events_path.c_str());
    std::remove(GetParam().options.decorators.allocation_log_path.c_str());
  }

  Subject& subject() { return *subject_; }
  Allocator& allocator() { return *subject_->top; }
  SimDevice& device() { return subject_->place.device(); }

  std::optional<Subject> subject_{std::in_place, GetParam()};
};

// The state that a failed call must not change.
struct Snapshot {
  explicit Snapshot(const Subject& subject)
      : stats(subject.top->stats()),
        pool(subject.place.pool()->stats()),
        leaks(subject.place.device().Leaks()) {}

  Stats stats;
  Stats pool;
  SimLeaks leaks;
};

inline void ExpectUnchanged(const Snapshot& before, const Snapshot& after) {
  EXPECT_EQ(before.stats.allocations, after.stats.allocations);
  EXPECT_EQ(before.stats.frees, after.stats.frees);
  EXPECT_EQ(before.stats.requested_bytes, after.stats.requested_bytes);
  EXPECT_EQ(before.stats.in_use_bytes, after.stats.in_use_bytes);
  EXPECT_EQ(before.stats.peak_in_use_bytes, after.stats.peak_in_use_bytes);
  EXPECT_EQ(before.stats.reserved_bytes, after.stats.reserved_bytes);
  EXPECT_EQ(before.stats.chunks, after.stats.chunks);
  EXPECT_EQ(before.stats.free_blocks, after.stats.free_blocks);
  EXPECT_EQ(before.pool.reserved_bytes, after.pool.reserved_bytes);
  EXPECT_EQ(before.pool.peak_reserved_bytes, after.pool.peak_reserved_bytes);
  EXPECT_EQ(before.pool.chunks, after.pool.chunks);
  EXPECT_EQ(before.leaks, after.leaks);
}

}  // namespace strata

#endif  // STRATA_TESTS_CONTRACT_CONTRACT_FIXTURE_H_
