#include "strata/platform/device_work.h"

#include <algorithm>

namespace strata {

bool IsValidWork(const WorkRange* ranges, std::size_t count) {
  constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
  if (count > kMaxWorkRanges || (ranges == nullptr && count != 0)) return false;
  return std::all_of(ranges, ranges + count, [](const WorkRange& range) {
    return range.ptr != 0 && range.ptr % kWordBytes == 0 && range.bytes != 0 &&
           range.bytes % kWordBytes == 0;
  });
}

}  // namespace strata
