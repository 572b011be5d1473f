#ifndef STRATA_TOOLS_BENCH_ALLOCATOR_H_
#define STRATA_TOOLS_BENCH_ALLOCATOR_H_

#include <string>
#include <string_view>
#include <vector>

#include "strata/facade/options.h"

namespace strata::tools {

// An allocator that `strata bench` can measure.
struct BenchAllocator {
  enum class Kind {
    kNull,        // two empty calls: the cost of the driving loop
    kLock,        // two empty calls, each under a spin lock of its stream
    kFacade,      // a strategy, through the facade and the default chain
    kCAbi,        // a strategy, through the C ABI: `c:<strategy>`
    kPeer,        // a peer (peers/registry.h), on a device like the facade's
    kDriver,      // the driver's memory (cudaMalloc), with no layer above it
    kDriverPool,  // the driver's default pool (cudaMallocAsync)
    kLibrary,     // memory of a shared library (heap_library.h)
    kMalloc,      // the process's malloc and free
  };

  std::string name;
  Kind kind = Kind::kNull;
  // For kFacade and kCAbi. It differs from the name only for bfc_fast, which is
  // bfc with --bfc_placement=fast.
  std::string strategy;
  // For kMalloc: the library to preload, without the end of its file name, and
  // a symbol that no other malloc has. Both are empty for the C library. For
  // kLibrary: the library's path; empty if none was named.
  std::string library;
  std::string symbol;
  // Measured when no allocator is named.
  bool is_default = false;
};

// null, null_locked, every strategy of this build, every peer, the driver, the
// external library, and the host allocators.
const std::vector<BenchAllocator>& BenchAllocators();

// Errors: std::invalid_argument naming the known allocators.
const BenchAllocator& FindBenchAllocator(std::string_view name);

// Returns `options` with the strategy of `allocator`, which is of a kind with a
// strategy.
Options OptionsOf(const BenchAllocator& allocator, const Options& options);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_ALLOCATOR_H_
