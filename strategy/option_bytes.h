#ifndef STRATA_STRATEGY_OPTION_BYTES_H_
#define STRATA_STRATEGY_OPTION_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "strata/base/size.h"

namespace strata {

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
