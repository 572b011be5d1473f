#include "strata/platform/calls/call_record.h"

#include <atomic>

namespace strata {

CallRecord RecordOf(DeviceCall call, std::uint64_t ptr, std::uint64_t bytes,
                    std::uint64_t value) {
  CallRecord record;
  record.call = call;
  record.ptr = ptr;
  record.bytes = bytes;
  record.value = value;
  return record;
}

std::uint64_t CallingThreadNumber() {
  static std::atomic<std::uint64_t> threads{0};
  thread_local const std::uint64_t number =
      threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

}  // namespace strata
