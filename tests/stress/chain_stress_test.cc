// Random operations on two chains of a place, compared with a naive model: live
// memory never overlaps, numbers are exact, and nothing leaks. With one thread
// and with four, on a working and on a failing device.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/strategy/cuda_malloc_async/options.h"
#include "strata/strategy/registry.h"
#include "strata/tests/testing/layers/live_ranges.h"
#include "strata/tests/testing/layers/test_place.h"
#include "strata/tests/testing/models/stress_settings.h"

namespace strata {
namespace {

struct StressCase {
  std::string name;
  TestPlaceOptions options;
  int threads = 1;
  bool faults = false;
};

void PrintTo(const StressCase& stress, std::ostream* out) {
  *out << stress.name;
}

std::vector<StressCase> Variants() {
  std::vector<StressCase> variants;
  const auto add = [&](const std::string& name, const auto& change) {
    StressCase variant;
    variant.name = name;
    variant.options.memory_bytes = Mebibytes(96);
    variant.options.decorators = DecoratorOptions();
    change(variant.options);
    variants.push_back(variant);
  };
  for (const std::string& strategy : StrategyNames()) {
    add(strategy, [&](TestPlaceOptions& o) { o.strategy = strategy; });
  }
  add("auto_growth_exact", [](TestPlaceOptions& o) {
    o.strategy_options.Edit<AutoGrowthOptions>().auto_growth_chunk_rule =
        "exact";
  });
  add("auto_growth_pools", [](TestPlaceOptions& o) {
    o.strategy_options.Edit<AutoGrowthOptions>().small_pool_size_in_mb = 1;
    o.strategy_options.Edit<AutoGrowthOptions>()
        .small_pool_auto_growth_chunk_size_in_mb = 4;
    o.strategy_options.Edit<AutoGrowthOptions>().large_pool_pre_alloc_in_mb =
        24;
  });
  add("auto_growth_free_idle", [](TestPlaceOptions& o) {
    o.strategy_options.Edit<AutoGrowthOptions>().free_idle_chunk = true;
  });
  add("auto_growth_free_on_miss", [](TestPlaceOptions& o) {
    o.strategy_options.Edit<AutoGrowthOptions>().free_when_no_cache_hit = true;
  });
  add("cuda_malloc_async_deterministic", [](TestPlaceOptions& o) {
    o.strategy = "cuda_malloc_async";
    o.strategy_options.Edit<CudaMallocAsyncOptions>()
        .cuda_malloc_async_deterministic = true;
    o.strategy_options.Edit<CudaMallocAsyncOptions>()
        .cuda_malloc_async_pool_memory_throttle_ratio = 0.3;
    o.limit_bytes = Mebibytes(49);
  });
  add("auto_growth_limits", [](TestPlaceOptions& o) {
    o.limit_bytes = Mebibytes(48);
    o.decorators.in_use_limit_bytes = Mebibytes(40);
  });
  return variants;
}

std::vector<StressCase> StressCases() {
  std::vector<StressCase> cases;
  for (const StressCase& variant : Variants()) {
    for (const int threads : {1, 4}) {
      for (const bool faults : {false, true}) {
        cases.push_back(variant);
        cases.back().threads = threads;
        cases.back().faults = faults;
        std::string& name = cases.back().name;
        name.append("_").append(std::to_string(threads)).append("_threads");
        if (faults) name += "_with_faults";
      }
    }
  }
  return cases;
}

// Failures that must cause no loss.
void AddFaults(SimDevice& device) {
  for (const DeviceCall call :
       {DeviceCall::kMemAlloc, DeviceCall::kStreamSynchronize,
        DeviceCall::kStreamQuery, DeviceCall::kStreamWaitEvent,
        DeviceCall::kEventCreate, DeviceCall::kEventRecord,
        DeviceCall::kEventSynchronize, DeviceCall::kMallocFromPoolAsync,
        DeviceCall::kFreeAsync, DeviceCall::kPoolCreate}) {
    FaultRule rule;
    rule.call = call;
    rule.probability = 0.05;
    device.AddFault(rule);
  }
}

class ChainStressTest : public ::testing::TestWithParam<StressCase> {
 protected:
  struct Live {
    AllocationPtr allocation;
    std::vector<Stream> marks;
  };
  struct Worker {
    explicit Worker(std::uint64_t seed) : random(seed) {}
    std::mt19937_64 random;
    std::vector<Live> live;
    std::uint64_t operations = 0;

    std::size_t Below(std::size_t bound) { return random() % bound; }
    Live& Any() { return live[Below(live.size())]; }
  };

  Request RandomRequest(Worker& worker) {
    Request request;
    request.bytes = worker.Below(std::size_t{1} << (4 + worker.Below(19)));
    if (worker.Below(8) == 0) {
      request.alignment = std::size_t{1} << worker.Below(21);
    }
    if (worker.Below(10) == 0) request.flags |= kLongLived;
    if (worker.Below(20) == 0) request.flags |= kNoRetry;
    if (worker.Below(30) == 0) request.flags |= kNoGrowth;
    return request;
  }

  void Allocate(Worker& worker) {
    const TestChain& chain = chains_[worker.Below(chains_.size())];
    const Request request = RandomRequest(worker);
    Failure failure;
    Live live;
    live.allocation = chain->AllocateOrNull(request, failure);
    if (live.allocation == nullptr) {
      ASSERT_TRUE(failure.IsExhaustion() ||
                  failure.reason == Failure::Reason::kNoGrowth)
          << failure.ToString();
      return;
    }
    ASSERT_EQ(live.allocation->requested_bytes(), request.bytes);
    ASSERT_GE(live.allocation->size(), request.bytes);
    if (request.alignment != 0) {
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(live.allocation->data()) %
                    request.alignment,
                0U);
    }
    if (request.bytes != 0) {
      ASSERT_TRUE(ranges_.Add(*live.allocation)) << "handed out twice";
    }
    worker.live.push_back(std::move(live));
  }

  void Free(Worker& worker) {
    std::swap(worker.Any(), worker.live.back());
    AllocationPtr allocation = std::move(worker.live.back().allocation);
    worker.live.pop_back();
    if (allocation->requested_bytes() != 0) {
      ASSERT_TRUE(ranges_.Remove(*allocation)) << "changed while live";
    }
    if (worker.Below(6) == 0) {
      Allocator* owner = allocation->owner();
      owner->Free(std::move(allocation), extra_stream_);
    }
  }

  void Mark(Worker& worker) {
    Allocation& allocation = *worker.Any().allocation;
    if (worker.Below(2) == 0) {
      allocation.owner()->RecordStream(&allocation, extra_stream_);
    } else {
      allocation.owner()->EraseStream(&allocation, extra_stream_);
    }
  }

  void Step(Worker& worker) {
    const std::size_t choice = worker.Below(100);
    if (choice < 2) {
      chains_[worker.Below(chains_.size())]->Release();
    } else if (choice < 10 && !worker.live.empty()) {
      Mark(worker);
    } else if (choice < 50 && !worker.live.empty()) {
      Free(worker);
    } else if (worker.live.size() < 80) {
      Allocate(worker);
    }
    ++worker.operations;
  }

  void Run(Worker& worker, std::uint64_t operations) {
    while (worker.operations < operations && !HasFatalFailure()) {
      Step(worker);
      if (worker.operations % 64 == 0) CheckStructures();
    }
  }

  // Invariants at any time.
  void CheckStructures() {
    for (const TestChain& chain : chains_) {
      if (!IsAutoGrowth(GetParam().options.strategy)) break;
      ASSERT_TRUE(chain.auto_growth().IsConsistent());
    }
    const std::size_t limit = GetParam().options.limit_bytes;
    if (limit != 0) {
      ASSERT_LE(place_.pool()->reserved_bytes(), limit);
    }
  }

  // Invariants while no call is running.
  void CheckCounts(const std::vector<Worker>& workers) {
    std::uint64_t count = 0;
    std::uint64_t requested = 0;
    std::uint64_t in_use = 0;
    for (const Worker& worker : workers) {
      for (const Live& live : worker.live) {
        if (live.allocation->requested_bytes() == 0) continue;
        ++count;
        requested += live.allocation->requested_bytes();
        in_use += live.allocation->block()->size;
      }
    }
    Stats sum;
    std::uint64_t of_strategies = 0;
    for (const TestChain& chain : chains_) {
      Accumulate(sum, chain->stats());
      of_strategies += chain.strategy->stats().in_use_bytes;
    }
    ASSERT_EQ(sum.live_allocations(), count);
    ASSERT_EQ(sum.requested_bytes, requested);
    ASSERT_EQ(sum.in_use_bytes, in_use);
    ASSERT_EQ(ranges_.count(), count);
    if (IsAutoGrowth(GetParam().options.strategy)) {
      // Memory that other streams still use counts as in use there.
      ASSERT_EQ(of_strategies, in_use + place_.frees()->deferred().bytes);
    }
    ASSERT_GE(place_.pool()->reserved_bytes(), in_use);
    const SimLeaks held = place_.device().Leaks();
    // A driver pool holds more than its blocks.
    if (held.pools == 0) {
      ASSERT_EQ(held.allocation_bytes + held.memory_block_bytes,
                place_.pool()->reserved_bytes());
    } else {
      ASSERT_LE(held.pool_bytes, place_.pool()->reserved_bytes());
    }
  }

  void ExpectNothingLost() {
    place_.device().ClearFaults();
    // Twice: one chain may release memory that another one lent.
    for (int round = 0; round < 2; ++round) {
      for (const TestChain& chain : chains_) chain->Release();
    }
    place_.pool()->Release();
    EXPECT_EQ(place_.pool()->reserved_bytes(), 0U);
    EXPECT_EQ(LeakedAllocations(place_.device()), 0U);
    EXPECT_EQ(place_.device().Leaks().events,
              place_.timelines()->kept_events());
  }

  TestPlace place_{GetParam().options};
  std::array<TestChain, 2> chains_{place_.AddChain(), place_.AddChain()};
  Stream extra_stream_ = place_.NewStream();
  LiveRanges ranges_;
};

constexpr std::uint64_t kChainOperations = 2000;

TEST_P(ChainStressTest, KeepsEveryPromise) {
  const auto threads = static_cast<std::size_t>(GetParam().threads);
  const std::uint64_t rounds = 4;
  const std::uint64_t operations = StressOperations(kChainOperations);
  const std::uint64_t per_thread =
      std::max<std::uint64_t>(1, operations / threads / rounds);
  if (GetParam().faults) AddFaults(place_.device());
  std::vector<Worker> workers;
  for (std::size_t t = 0; t < threads; ++t) {
    workers.emplace_back(StressSeed() * 1000 + t);
  }
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    std::vector<std::thread> running;
    for (Worker& worker : workers) {
      if (threads == 1) {
        Run(worker, round * per_thread);
      } else {
        running.emplace_back([&, round] { Run(worker, round * per_thread); });
      }
    }
    for (std::thread& thread : running) thread.join();
    if (!HasFatalFailure()) CheckCounts(workers);
    if (HasFatalFailure()) break;
  }
  if (HasFailure()) {
    ADD_FAILURE() << "STRATA_STRESS_SEED=" << StressSeed()
                  << " STRATA_STRESS_OPERATIONS=" << operations
                  << ", operation " << workers.front().operations
                  << " of the first thread";
  }
  for (Worker& worker : workers) worker.live.clear();
  ExpectNothingLost();
}

INSTANTIATE_TEST_SUITE_P(All, ChainStressTest,
                         ::testing::ValuesIn(StressCases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace strata
