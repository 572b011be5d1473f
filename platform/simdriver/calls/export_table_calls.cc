// Undocumented tables of the driver, which a static CUDA runtime asks for.

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdio>

#include "strata/platform/simdriver/counters.h"
#include "strata/platform/simdriver/entries.h"

namespace strata::simdriver {
namespace {

constexpr std::size_t kMostNamed = 16;

// Addresses of the libraries that were named, in the order of their calls.
std::array<std::atomic<const void*>, kMostNamed> g_named = {};

// Whether no call before named the library at `base`.
bool IsFirst(const void* base) {
  for (std::atomic<const void*>& slot : g_named) {
    const void* seen = nullptr;
    if (slot.compare_exchange_strong(seen, base)) return true;
    if (seen == base) return false;
  }
  return false;
}

}  // namespace

CUresult GetExportTable(const void** /*table*/, const CUuuid* /*id*/) {
  Dl_info info = {};
  if (dladdr(__builtin_return_address(0), &info) != 0 &&
      IsFirst(info.dli_fbase)) {
    std::fprintf(stderr,
                 "strata: %s has a static CUDA runtime, which the simulated "
                 "driver cannot serve. Its calls fail. Link it to the shared "
                 "libcudart instead.\n",
                 info.dli_fname);
  }
  return Unimplemented("cuGetExportTable");
}

}  // namespace strata::simdriver
