#include "strata/platform/simdriver/counters.h"

#include <atomic>

#include "strata/platform/simdriver/process.h"
#include "strata/platform/simdriver/sim_driver_info.h"

namespace strata::simdriver {
namespace {

std::atomic<std::uint64_t> g_skipped_kernels{0};
std::atomic<std::uint64_t> g_unimplemented_calls{0};
std::atomic<const char*> g_last_unimplemented{nullptr};

}  // namespace

void CountSkippedKernel() {
  g_skipped_kernels.fetch_add(1, std::memory_order_relaxed);
}

CUresult Unimplemented(const char* name) {
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  g_unimplemented_calls.fetch_add(1, std::memory_order_relaxed);
  g_last_unimplemented.store(name, std::memory_order_relaxed);
  return CUDA_ERROR_NOT_SUPPORTED;
}

// Exported under kSimDriverInfoName.
int DescribeSimDriver(SimDriverInfo* info) __asm__("cuStrataSimDriverInfo")
    __attribute__((visibility("default")));

// For the stand-in of the runtime, which counts here, too.
CUresult CountUnimplemented(const char* name) __asm__(
    "cuStrataSimUnimplemented") __attribute__((visibility("default")));

CUresult CountUnimplemented(const char* name) { return Unimplemented(name); }

int DescribeSimDriver(SimDriverInfo* info) {
  if (info == nullptr || info->bytes != sizeof(SimDriverInfo)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  info->phantom_memory =
      FindProcess()->platform.device(0).caps().phantom_memory ? 1 : 0;
  info->unimplemented_calls =
      g_unimplemented_calls.load(std::memory_order_relaxed);
  info->skipped_kernels = g_skipped_kernels.load(std::memory_order_relaxed);
  info->last_unimplemented =
      g_last_unimplemented.load(std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

}  // namespace strata::simdriver
