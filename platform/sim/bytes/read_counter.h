#ifndef STRATA_PLATFORM_SIM_BYTES_READ_COUNTER_H_
#define STRATA_PLATFORM_SIM_BYTES_READ_COUNTER_H_

#include <atomic>
#include <cstdint>

#include "strata/base/require_cxx20.h"

namespace strata::sim {

// Number of copies from device or managed memory to the host.
//
// Threads: any thread.
struct ReadCounter {
  std::atomic<std::uint64_t> all{0};
  // Copies of bytes that the program itself wrote, as KeptBytes knows.
  std::atomic<std::uint64_t> written{0};
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_BYTES_READ_COUNTER_H_
