#ifndef STRATA_TESTS_CONTRACT_CONTRACT_CASES_H_
#define STRATA_TESTS_CONTRACT_CONTRACT_CASES_H_

#include <ostream>
#include <string>
#include <vector>

#include "strata/allocation/decorators/registry.h"
#include "strata/strategy/cuda_malloc_async/options.h"
#include "strata/strategy/pool/options.h"
#include "strata/strategy/registry.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {

// One allocator under the contract suite.
struct ContractCase {
  // The outermost layer under test.
  enum class Part { kSystem, kChunkPool, kChain };

  std::string name;
  Part part = Part::kChain;
  TestPlaceOptions options;

  bool is_chain() const { return part == Part::kChain; }
};

inline void PrintTo(const ContractCase& contract_case, std::ostream* out) {
  *out << contract_case.name;
}

inline ContractCase SystemCase(const std::string& name, PlaceKind kind) {
  ContractCase result;
  result.name = name;
  result.part = ContractCase::Part::kSystem;
  result.options.kind = kind;
  return result;
}

inline ContractCase StrategyCase(const std::string& name,
                                 const std::string& strategy) {
  ContractCase result;
  result.name = name;
  result.options.strategy = strategy;
  return result;
}

// Settings of auto_growth that lead through other code.
inline std::vector<ContractCase> AutoGrowthCases() {
  ContractCase exact = StrategyCase("auto_growth_exact", "auto_growth");
  exact.options.strategy_options.Edit<AutoGrowthOptions>()
      .auto_growth_chunk_rule = "exact";
  ContractCase chunks = StrategyCase("auto_growth_chunks", "auto_growth");
  chunks.options.strategy_options.Edit<AutoGrowthOptions>()
      .auto_growth_chunk_size_in_mb = 8;
  ContractCase pools = StrategyCase("auto_growth_pools", "auto_growth");
  pools.options.strategy_options.Edit<AutoGrowthOptions>()
      .small_pool_size_in_mb = 1;
  pools.options.strategy_options.Edit<AutoGrowthOptions>()
      .small_pool_auto_growth_chunk_size_in_mb = 4;
  pools.options.strategy_options.Edit<AutoGrowthOptions>()
      .large_pool_pre_alloc_in_mb = 16;
  ContractCase idle = StrategyCase("auto_growth_free_idle", "auto_growth");
  idle.options.strategy_options.Edit<AutoGrowthOptions>().free_idle_chunk =
      true;
  ContractCase miss = StrategyCase("auto_growth_free_on_miss", "auto_growth");
  miss.options.strategy_options.Edit<AutoGrowthOptions>()
      .free_when_no_cache_hit = true;
  ContractCase host = StrategyCase("auto_growth_on_host", "auto_growth");
  host.options.kind = PlaceKind::kHost;
  return {exact, chunks, pools, idle, miss, host};
}

// Settings of cuda_malloc_async that lead through other code.
inline std::vector<ContractCase> CudaMallocAsyncCases() {
  ContractCase off = StrategyCase("cuda_malloc_async_off", "cuda_malloc_async");
  off.options.strategy_options.Edit<FrontCacheOptions>().front_cache = "off";
  ContractCase bins =
      StrategyCase("cuda_malloc_async_bins", "cuda_malloc_async");
  bins.options.strategy_options.Edit<CudaMallocAsyncOptions>()
      .cuda_malloc_async_bins = "pow2";
  ContractCase small = bins;
  small.name = "cuda_malloc_async_small_bins";
  small.options.strategy_options.Edit<FrontCacheOptions>()
      .front_cache_max_block_bytes = Kibibytes(3);
  return {off, bins, small};
}

// Settings of pool that lead through other code.
inline std::vector<ContractCase> PoolCases() {
  ContractCase pow2 = StrategyCase("pool_pow2", "pool");
  pow2.options.strategy_options.Edit<PoolOptions>().pool_rounder = "pow2";
  ContractCase small = StrategyCase("pool_of_two", "pool");
  small.options.strategy_options.Edit<PoolOptions>().pool_size_limit = 2;
  small.options.strategy_options.Edit<PoolOptions>().pool_cached_limit_bytes =
      Mebibytes(1);
  ContractCase bypass = StrategyCase("pool_of_none", "pool");
  bypass.options.strategy_options.Edit<PoolOptions>().pool_size_limit = 0;
  return {pow2, small, bypass};
}

inline std::vector<ContractCase> ContractCases() {
  std::vector<ContractCase> cases = {
      SystemCase("device", PlaceKind::kDevice),
      SystemCase("host", PlaceKind::kHost),
      SystemCase("pinned", PlaceKind::kPinned),
      SystemCase("managed", PlaceKind::kManaged)};
  ContractCase pool;
  pool.name = "chunk_pool";
  pool.part = ContractCase::Part::kChunkPool;
  cases.push_back(pool);
  for (const ContractCase& variant : AutoGrowthCases()) {
    cases.push_back(variant);
  }
  for (const ContractCase& variant : CudaMallocAsyncCases()) {
    cases.push_back(variant);
  }
  for (const ContractCase& variant : PoolCases()) cases.push_back(variant);
  for (const std::string& strategy : StrategyNames()) {
    cases.push_back(StrategyCase(strategy, strategy));
    for (const std::string& decorator : DecoratorNames()) {
      std::string name = decorator;
      name.append("_over_").append(strategy);
      ContractCase alone = StrategyCase(name, strategy);
      alone.options.decorators =
          OnlyDecorator(decorator, TemporaryPath(alone.name + ".csv"));
      cases.push_back(alone);
    }
    for (const PlaceKind kind : {PlaceKind::kDevice, PlaceKind::kManaged,
                                 PlaceKind::kPinned, PlaceKind::kHost}) {
      ContractCase whole = StrategyCase("", strategy);
      whole.options.kind = kind;
      whole.options.decorators = DecoratorOptions();
      const std::string place = ToString(Place{kind, 0});
      whole.name =
          "default_" + strategy + "_" + place.substr(0, place.find(':'));
      cases.push_back(whole);
      // Likewise, and the guard watches every byte of the chain.
      whole.name.insert(0, "guarded_");
      whole.options.decorators.guard = true;
      whole.options.data = "backed";
      whole.options.memory_bytes = Mebibytes(128);  // all of it is written
      cases.push_back(whole);
    }
  }
  return cases;
}

}  // namespace strata

#endif  // STRATA_TESTS_CONTRACT_CONTRACT_CASES_H_
