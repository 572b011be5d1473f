#ifndef STRATA_STRATEGY_OPTION_BYTES_H_
#define STRATA_STRATEGY_OPTION_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "strata/base/size.h"

namespace strata {

// Errors: std::invalid_argument if 64 bits cannot hold the bytes of an option
//   in MiB.
inline void CheckMebibytes(const char* option, std::uint64_t mebibytes) {
  if (mebibytes <= (UINT64_MAX >> 20)) return;
  throw std::invalid_argument(std::string(option) + ": " +
                              std::to_string(mebibytes) +
                              " MiB is more than can be addressed");
}

// Refuses an option that takes more memory at once than `limit_mb` MiB.
[[noreturn]] inline void RefuseAboveLimit(const char* option,
                                          std::uint64_t value,
                                          std::uint64_t limit_mb) {
  throw std::invalid_argument(
      std::string(option) + "=" + std::to_string(value) +
      " contradicts gpu_memory_limit_mb=" + std::to_string(limit_mb) +
      ": a chunk cannot be larger than all that may be held");
}

// Errors: std::invalid_argument if an option in MiB exceeds `limit_mb` (0: no
//   limit).
inline void CheckBelowLimit(const char* option, std::uint64_t mebibytes,
                            std::uint64_t limit_mb) {
  if (limit_mb != 0 && mebibytes > limit_mb) {
    RefuseAboveLimit(option, mebibytes, limit_mb);
  }
}

// Converts an option in MiB to bytes.
//
// Errors: std::invalid_argument above 128 TiB. No device has so much, and sums
//   with the result must not overflow.
inline std::size_t BytesOfOption(const char* option, std::uint64_t mebibytes) {
  constexpr std::uint64_t kMostMebibytes = std::uint64_t{1} << 27;
  if (mebibytes > kMostMebibytes) {
    throw std::invalid_argument(std::string(option) + ": " +
                                std::to_string(mebibytes) +
                                " MiB is more than any device has");
  }
  return Mebibytes(mebibytes);
}

}  // namespace strata

#endif  // STRATA_STRATEGY_OPTION_BYTES_H_
