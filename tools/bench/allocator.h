#ifndef STRATA_TOOLS_BENCH_ALLOCATOR_H_
#define STRATA_TOOLS_BENCH_ALLOCATOR_H_

#include <string>
#include <string_view>
#include <vector>

#include "strata/facade/options.h"

namespace strata {

// One row of the table of what is measured.
struct BenchAllocator {
  enum class Kind {
    kNull,    // two calls that do nothing: what the driving loop costs
    kLock,    // the same, each under a spin lock of its stream
    kFacade,  // a strategy, through the facade and the default chain
    kCAbi,    // the same through the C ABI: `c:<strategy>`
    kPeer,    // a peer (peers/registry.h), on a device as the facade's
    kDriver,  // the driver's memory at once (cudaMalloc), with nothing above it
    kDriverPool,  // the same of its default pool (cudaMallocAsync)
    kLibrary,     // what a shared library allocates (heap_library.h)
    kMalloc,      // the process's malloc and free
  };

  std::string name;
  Kind kind = Kind::kNull;
  // For kFacade and kCAbi. With bfc_fast, which is bfc with
  // --bfc_placement=fast, not the name.
  std::string strategy;
  // For kMalloc: the library to preload, without the end of its file name, and
  // a symbol that no other malloc has. Both empty: the C library's.
  // For kLibrary: the library's path; empty if nobody named one.
  std::string library;
  std::string symbol;
  // Measured when no allocator is named.
  bool is_default = false;
};

// null, null_locked, every strategy of this build, every peer, the driver,
// what a library may bring, and the host allocators.
const std::vector<BenchAllocator>& BenchAllocators();

// Errors: std::invalid_argument naming the known allocators.
const BenchAllocator& FindBenchAllocator(std::string_view name);

// `options` with the strategy of `allocator`, whose kind has one.
Options OptionsOf(const BenchAllocator& allocator, const Options& options);

}  // namespace strata

#endif  // STRATA_TOOLS_BENCH_ALLOCATOR_H_
