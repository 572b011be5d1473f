#include "strata/strategy/buddy/buddy_sizes.h"

#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/base/size.h"
#include "strata/strategy/option_bytes.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

// paddle.md §3.2-3.
constexpr std::size_t kDeviceBlockBytes = 256;
constexpr std::size_t kHostBlockBytes = Kibibytes(4);
constexpr std::size_t kPinnedBlockBytes = Kibibytes(64);
// The granularity of a device's own allocations (cuda_semantics.md H2). The
// original splits off 256 bytes too (paddle.md §5 B16).
constexpr std::size_t kDeviceRemainderBytes = 512;
// paddle.md §3.4-4: a 20th of the free memory is for the driver.
constexpr std::size_t kReservePart = 20;
// paddle.md §2: fractions of the total for one chunk.
constexpr std::size_t kHostParts = 32;
constexpr std::size_t kPinnedParts = 256;

std::size_t AlignDown(std::size_t n, std::size_t alignment) {
  return n & ~(alignment - 1);
}

std::size_t ShareOf(std::size_t bytes, double fraction) {
  return static_cast<std::size_t>(static_cast<double>(bytes) * fraction);
}

void CheckFraction(const char* name, double fraction) {
  if (!(fraction > 0 && fraction <= 1)) {
    throw std::invalid_argument(std::string(name) +
                                ": must be above 0 and at most 1");
  }
}

}  // namespace

void CheckBuddyOptions(const BuddyOptions& options) {
  CheckFraction("fraction_of_gpu_memory_to_use",
                options.fraction_of_gpu_memory_to_use);
  CheckFraction("fraction_of_cpu_memory_to_use",
                options.fraction_of_cpu_memory_to_use);
  CheckFraction("fraction_of_cuda_pinned_memory_to_use",
                options.fraction_of_cuda_pinned_memory_to_use);
  for (const auto& [name, mebibytes] :
       {std::pair("initial_gpu_memory_in_mb", options.initial_gpu_memory_in_mb),
        std::pair("reallocate_gpu_memory_in_mb",
                  options.reallocate_gpu_memory_in_mb),
        std::pair("initial_cpu_memory_in_mb",
                  options.initial_cpu_memory_in_mb)}) {
    static_cast<void>(BytesOfOption(name, mebibytes));
  }
}

void CheckNaiveBestFitAllocator(const StrategyOptions& all,
                                std::uint64_t limit_mb) {
  const auto& options = all.Get<BuddyOptions>();
  CheckBuddyOptions(options);
  CheckBelowLimit("initial_gpu_memory_in_mb", options.initial_gpu_memory_in_mb,
                  limit_mb);
  CheckBelowLimit("reallocate_gpu_memory_in_mb",
                  options.reallocate_gpu_memory_in_mb, limit_mb);
}

std::size_t HostMemoryBytes() {
  const auto pages = sysconf(_SC_PHYS_PAGES);
  const auto page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes);
}

BuddySizes::BuddySizes(const StrategyOptions& all, PlaceKind kind,
                       std::size_t host_bytes)
    : front_cache_(all),
      min_block_bytes_(kDeviceBlockBytes),
      min_remainder_bytes_(kDeviceRemainderBytes) {
  const auto& options = all.Get<BuddyOptions>();
  CheckBuddyOptions(options);
  if (kind == PlaceKind::kHost) {
    min_block_bytes_ = min_remainder_bytes_ = kHostBlockBytes;
    first_bytes_ = std::min(
        ShareOf(host_bytes, options.fraction_of_cpu_memory_to_use) / kHostParts,
        Mebibytes(options.initial_cpu_memory_in_mb));
  } else if (kind == PlaceKind::kPinned) {
    min_block_bytes_ = min_remainder_bytes_ = kPinnedBlockBytes;
    cap_bytes_ =
        ShareOf(host_bytes, options.fraction_of_cuda_pinned_memory_to_use);
    first_bytes_ = cap_bytes_ / kPinnedParts;
  } else {
    fraction_ = options.fraction_of_gpu_memory_to_use;
    first_bytes_ = Mebibytes(options.initial_gpu_memory_in_mb);
    next_bytes_ = Mebibytes(options.reallocate_gpu_memory_in_mb);
    return;
  }
  first_bytes_ =
      std::max(AlignDown(first_bytes_, min_block_bytes_), min_block_bytes_);
  next_bytes_ = first_bytes_;
}

std::size_t BuddySizes::Available(std::size_t free_bytes) const {
  const std::size_t available = free_bytes - free_bytes / kReservePart;
  return available < min_block_bytes_ ? 0 : available;
}

bool BuddySizes::NeedsAvailable(bool is_first) const {
  return (is_first ? first_bytes_ : next_bytes_) == 0;
}

std::size_t BuddySizes::RefillBytes(bool is_first,
                                    std::size_t available) const {
  const std::size_t fixed = is_first ? first_bytes_ : next_bytes_;
  if (fixed != 0) return fixed;
  return AlignDown(ShareOf(available, fraction_), min_block_bytes_);
}

std::array<std::size_t, BuddySizes::kGrowthSteps> BuddySizes::GrowthSizes(
    std::size_t size, std::size_t wanted, std::size_t available) const {
  std::array<std::size_t, kGrowthSteps> sizes{};
  std::size_t count = 0;
  for (const std::size_t bytes :
       {wanted, AlignDown(available, kSystemStepBytes),
        AlignUp(size, kSystemStepBytes), size}) {
    const bool is_smaller = count == 0 || bytes < sizes[count - 1];
    if (bytes >= size && is_smaller) sizes[count++] = bytes;
  }
  return sizes;
}

}  // namespace strata
