#include "strata/allocation/system/host_memory_rules.h"

#include <string>
#include <system_error>
#include <utility>

#include "strata/base/log.h"
#include "strata/base/size.h"

namespace strata {
namespace {

// Two sizes for a message: "12.0 MiB ... more than 10.0 MiB". In bytes if both
// would read the same.
struct Comparison {
  Comparison(std::uint64_t larger_bytes, std::uint64_t smaller_bytes)
      : larger(HumanBytes(larger_bytes)), smaller(HumanBytes(smaller_bytes)) {
    if (larger != smaller) return;
    larger = std::to_string(larger_bytes) + " B";
    smaller = std::to_string(smaller_bytes) + " B";
  }

  std::string larger;
  std::string smaller;
};

std::uint64_t FractionOf(std::uint64_t bytes, double fraction) {
  if (bytes == 0 || !(fraction > 0)) return UINT64_MAX;
  const double limit = fraction * static_cast<double>(bytes);
  // A limit above the memory of any host is never exceeded.
  return limit < 0x1p63 ? static_cast<std::uint64_t>(limit) : UINT64_MAX;
}

std::uint64_t MemoryOf(const std::shared_ptr<HostSystem>& host,
                       const HostMemoryOptions& options) {
  const bool is_needed =
      options.warn_large_fraction > 0 || options.warn_total_fraction > 0;
  return host != nullptr && is_needed ? host->MemoryBytes() : 0;
}

}  // namespace

HostMemoryRules::HostMemoryRules(std::shared_ptr<HostSystem> host,
                                 const HostMemoryOptions& options)
    : host_(std::move(host)),
      lock_(options.lock && host_ != nullptr),
      memory_bytes_(MemoryOf(host_, options)),
      large_bytes_(FractionOf(memory_bytes_, options.warn_large_fraction)),
      total_bytes_(FractionOf(memory_bytes_, options.warn_total_fraction)) {}

void HostMemoryRules::Obtained(Place place, void* data, std::size_t bytes,
                               std::uint64_t in_use) noexcept {
  if (bytes > large_bytes_ || in_use > total_bytes_) {
    Warn(place, bytes, in_use);
  }
  if (!Locks(bytes)) return;
  const int error = host_->Lock(data, AlignUp(bytes, HostPageBytes()));
  if (error != 0 && !warned_of_lock_.exchange(true)) {
    STRATA_LOG(Warning)
        << ToString(place) << ": " << HumanBytes(bytes)
        << " could not be locked in memory and may be swapped out ("
        << std::generic_category().message(error)
        << "); see ulimit -l and --use_pinned_memory. Further "
           "failures are not logged";
  }
}

void HostMemoryRules::Warn(Place place, std::size_t bytes,
                           std::uint64_t in_use) noexcept {
  // Compares before the increment, so that the count cannot wrap.
  if (bytes > large_bytes_ && large_warnings_.load() < kMostLargeWarnings &&
      large_warnings_.fetch_add(1) < kMostLargeWarnings) {
    const Comparison sizes(bytes, large_bytes_);
    STRATA_LOG(Warning) << ToString(place) << ": an allocation of "
                        << sizes.larger << " is more than " << sizes.smaller
                        << " of the " << HumanBytes(memory_bytes_)
                        << " this process may use";
  }
  if (in_use > total_bytes_ && !warned_of_total_.exchange(true)) {
    const Comparison sizes(in_use, total_bytes_);
    STRATA_LOG(Warning) << ToString(place) << ": " << sizes.larger
                        << " in use are more than " << sizes.smaller
                        << " of the " << HumanBytes(memory_bytes_)
                        << " this process may use";
  }
}

void HostMemoryRules::Returning(void* data, std::size_t bytes) noexcept {
  // Harmless if the piece was not locked.
  if (Locks(bytes)) host_->Unlock(data, AlignUp(bytes, HostPageBytes()));
}

}  // namespace strata
