#ifndef STRATA_PLATFORM_SIM_SHARE_TOKEN_H_
#define STRATA_PLATFORM_SIM_SHARE_TOKEN_H_

#include <cstdint>

namespace strata {

// What the file behind an exported descriptor says: which object of which
// device of this process it stands for.
struct ShareToken {
  enum class Kind : std::uint64_t { kPool = 1 };
  Kind kind = Kind::kPool;
  std::uint64_t device_instance = 0;  // unique for the life of the process
  std::uint64_t object = 0;           // a handle of that device

  friend bool operator==(const ShareToken&, const ShareToken&) = default;
};

// A new descriptor of a file that holds `token`, or -1. The caller closes it;
// a duplicate is as good.
int WriteShareToken(const ShareToken& token);
// Returns whether `fd` was made by WriteShareToken in this process.
bool ReadShareToken(int fd, ShareToken* token);

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_SHARE_TOKEN_H_
