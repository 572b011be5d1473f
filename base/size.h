#ifndef STRATA_BASE_SIZE_H_
#define STRATA_BASE_SIZE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "strata/base/require_cxx20.h"

namespace strata {

constexpr std::size_t Kibibytes(std::size_t n) { return n << 10; }
constexpr std::size_t Mebibytes(std::size_t n) { return n << 20; }
constexpr std::size_t Gibibytes(std::size_t n) { return n << 30; }

constexpr bool IsPowerOfTwo(std::size_t n) {
  return n != 0 && (n & (n - 1)) == 0;
}

// Returns the next multiple of `alignment` (a power of two) at or above `n`.
// Wraps to 0 if there is none; CheckedAlignUp() detects that.
constexpr std::size_t AlignUp(std::size_t n, std::size_t alignment) {
  return (n + alignment - 1) & ~(alignment - 1);
}

constexpr std::optional<std::size_t> CheckedAdd(std::size_t a, std::size_t b) {
  if (b > std::numeric_limits<std::size_t>::max() - a) return std::nullopt;
  return a + b;
}

constexpr std::optional<std::size_t> CheckedAlignUp(std::size_t n,
                                                    std::size_t alignment) {
  const std::optional<std::size_t> sum = CheckedAdd(n, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

// A size in readable form with one decimal: "3.0 MiB", "512 B".
std::string HumanBytes(std::uint64_t bytes);

// Parses "4096", "80GiB", "1.5 MiB", "20M" (all powers of 1024, any case).
// Returns nothing if `text` is not a size, is negative, or exceeds 64 bits.
std::optional<std::uint64_t> ParseBytes(std::string_view text);

}  // namespace strata

#endif  // STRATA_BASE_SIZE_H_
