#include "strata/platform/call_record.h"

#include <atomic>

namespace strata {

std::uint64_t CallingThreadNumber() {
  static std::atomic<std::uint64_t> threads{0};
  thread_local const std::uint64_t number =
      threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

}  // namespace strata
