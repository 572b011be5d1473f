// PyTorch's own allocator for `strata bench --bench_library` (heap_library.h),
// through its C++ interface. Not part of our build: tools/gpu_check compiles it
// where PyTorch is installed (2.1 or newer).

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <exception>
#include <string>

#include "strata/tools/bench/heaps/heap_library.h"

namespace {

namespace torch_allocator = c10::cuda::CUDACachingAllocator;

// The entry for allocations of all sizes.
constexpr std::size_t kAll = 0;

auto Stats() { return torch_allocator::getDeviceStats(0); }

}  // namespace

const char* strata_heap_open() {
  static std::string why;
  try {
    torch_allocator::init(c10::cuda::device_count_ensure_non_zero());
    c10::cuda::set_device(0);
    return nullptr;
  } catch (const c10::Error& error) {
    why = error.what_without_backtrace();
  } catch (const std::exception& error) {
    why = error.what();
  }
  return why.c_str();
}

void* strata_heap_allocate(size_t bytes, void* stream) {
  try {
    return torch_allocator::raw_alloc_with_stream(
        bytes, static_cast<cudaStream_t>(stream));
  } catch (const std::exception&) {
    return nullptr;
  }
}

void strata_heap_free(void* block, void* /*stream*/) {
  torch_allocator::raw_delete(block);
}

uint64_t strata_heap_allocations() {
  return static_cast<uint64_t>(Stats().allocation[kAll].allocated);
}

uint64_t strata_heap_peak_reserved_bytes() {
  return static_cast<uint64_t>(Stats().reserved_bytes[kAll].peak);
}
