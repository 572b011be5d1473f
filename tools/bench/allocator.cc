#include "strata/tools/bench/allocator.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "strata/strategy/registry.h"
#include "strata/tools/peers/registry.h"

namespace strata::tools {
namespace {

using Kind = BenchAllocator::Kind;

constexpr const char* kFastBfc = "bfc_fast";

// The allocators that users compare most; all of them together take too long.
constexpr std::array kDefaults = {
    "null",          "null_locked", "virtual_memory", "auto_growth",
    "c:auto_growth", "bfc",         "peer:pytorch",   "peer:paddle",
    "peer:tf_bfc",   "glibc",       "jemalloc",       "mimalloc",
    "tcmalloc"};

BenchAllocator Row(const std::string& name, Kind kind) {
  BenchAllocator allocator;
  allocator.name = name;
  allocator.kind = kind;
  return allocator;
}

BenchAllocator Strategy(const std::string& name, Kind kind,
                        const std::string& strategy) {
  BenchAllocator allocator = Row(name, kind);
  allocator.strategy = strategy;
  return allocator;
}

BenchAllocator Malloc(const char* name, const char* library,
                      const char* symbol) {
  BenchAllocator allocator = Row(name, Kind::kMalloc);
  allocator.library = library;
  allocator.symbol = symbol;
  return allocator;
}

std::vector<BenchAllocator> MakeTable() {
  std::vector<BenchAllocator> table = {Row("null", Kind::kNull),
                                       Row("null_locked", Kind::kLock)};
  for (const std::string& strategy : StrategyNames()) {
    table.push_back(Strategy(strategy, Kind::kFacade, strategy));
  }
  table.push_back(Strategy(kFastBfc, Kind::kFacade, "bfc"));
  for (const std::string& strategy : StrategyNames()) {
    table.push_back(Strategy("c:" + strategy, Kind::kCAbi, strategy));
  }
  for (const std::string& peer : peers::PeerNames()) {
    table.push_back(Row(peer, Kind::kPeer));
  }
  table.push_back(Row("driver:malloc", Kind::kDriver));
  table.push_back(Row("driver:malloc_async", Kind::kDriverPool));
  table.push_back(Row("library", Kind::kLibrary));
  table.push_back(Malloc("glibc", "", ""));
  table.push_back(Malloc("jemalloc", "libjemalloc.so", "mallctl"));
  table.push_back(Malloc("mimalloc", "libmimalloc.so", "mi_version"));
  table.push_back(Malloc("tcmalloc", "libtcmalloc_minimal.so", "tc_version"));
  for (BenchAllocator& allocator : table) {
    allocator.is_default = std::find(kDefaults.begin(), kDefaults.end(),
                                     allocator.name) != kDefaults.end();
  }
  return table;
}

}  // namespace

const std::vector<BenchAllocator>& BenchAllocators() {
  static const auto* const table = new std::vector<BenchAllocator>(MakeTable());
  return *table;
}

const BenchAllocator& FindBenchAllocator(std::string_view name) {
  std::string known;
  for (const BenchAllocator& allocator : BenchAllocators()) {
    if (name == allocator.name) return allocator;
    known += (known.empty() ? "" : ", ") + allocator.name;
  }
  throw std::invalid_argument("there is no allocator '" + std::string(name) +
                              "' (known: " + known + ")");
}

Options OptionsOf(const BenchAllocator& allocator, const Options& options) {
  Options own = options;
  own.allocator_strategy = allocator.strategy;
  // No alias may choose another strategy.
  own.use_system_allocator = own.use_cuda_malloc_async_allocator = false;
  if (allocator.name == kFastBfc) own.Set("bfc_placement", "fast");
  return own;
}

}  // namespace strata::tools
