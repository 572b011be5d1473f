// Limits of a context. Kernels that do nothing reach none of them.

#include <array>
#include <atomic>
#include <cstddef>

#include "strata/platform/simdriver/context.h"

namespace strata::simdriver {
namespace {

// The limits that a GPU of compute capability 9.0 reports at first. All are
// bytes, except the depth and the number of launches from the device.
constexpr std::array<std::size_t, CU_LIMIT_MAX> kAtStart = [] {
  std::array<std::size_t, CU_LIMIT_MAX> limits{};
  limits[CU_LIMIT_STACK_SIZE] = 1 << 10;
  limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 7 << 20;
  limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
  limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  return limits;
}();

// The limits that the program set, plus one; 0: the limit of kAtStart. All
// contexts share them.
std::array<std::atomic<std::size_t>, CU_LIMIT_MAX> g_limits;

constexpr auto kUnsupportedLimit =
    static_cast<Status>(CUDA_ERROR_UNSUPPORTED_LIMIT);

bool IsLimit(CUlimit limit) { return limit >= 0 && limit < CU_LIMIT_MAX; }

}  // namespace

CUresult CtxGetLimit(std::size_t* value, CUlimit limit) {
  return OnCurrentDevice([&](SimDevice&) {
    if (value == nullptr) return Status::kInvalidValue;
    if (!IsLimit(limit)) return kUnsupportedLimit;
    const std::size_t set = g_limits[limit].load(std::memory_order_relaxed);
    *value = set != 0 ? set - 1 : kAtStart[limit];
    return Status::kSuccess;
  });
}

CUresult CtxSetLimit(CUlimit limit, std::size_t value) {
  return OnCurrentDevice([&](SimDevice&) {
    if (!IsLimit(limit)) return kUnsupportedLimit;
    if (value == ~std::size_t{0}) return Status::kInvalidValue;
    g_limits[limit].store(value + 1, std::memory_order_relaxed);
    return Status::kSuccess;
  });
}

}  // namespace strata::simdriver
