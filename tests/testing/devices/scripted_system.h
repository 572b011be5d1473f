#ifndef STRATA_TESTS_TESTING_DEVICES_SCRIPTED_SYSTEM_H_
#define STRATA_TESTS_TESTING_DEVICES_SCRIPTED_SYSTEM_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "strata/allocation/record_slab.h"
#include "strata/allocation/system/system_allocator.h"
#include "strata/base/size.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// A system with addresses and failures that a test chooses. Its memory consists
// of addresses only. Fails the test if it is called with a lock held.
//
// Threads: any thread. Change the settings before the first call.
class ScriptedSystem final : public SystemAllocator {
 public:
  ScriptedSystem() : SystemAllocator(DevicePlace(0), 256) {}

  // Address of the next region. Each further region follows the previous one
  // after a gap.
  std::uintptr_t next_address = std::uintptr_t{1} << 40;
  std::size_t gap_bytes = 256;
  // Larger requests are refused.
  std::size_t most_bytes = std::numeric_limits<std::size_t>::max();
  std::size_t capacity_bytes = std::numeric_limits<std::size_t>::max();
  // Number of the call that is refused, from 1; 0: none.
  std::size_t refused_call = 0;

  // Returns and clears the requested sizes, refused requests included.
  std::vector<std::size_t> TakeAsked() {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::vector<std::size_t> asked;
    asked.swap(asked_);
    return asked;
  }
  std::size_t calls() const { return calls_; }
  std::size_t held_bytes() const { return held_bytes_; }

  const char* name() const override { return "scripted"; }

 private:
  void* Obtain(const Request& request, Failure& failure) noexcept override {
    EXPECT_EQ(HeldLocks(), 0);
    const std::lock_guard<std::mutex> guard(mutex_);
    asked_.push_back(request.bytes);
    if (++calls_ == refused_call || request.bytes > most_bytes ||
        request.bytes > capacity_bytes - held_bytes_) {
      failure.reason = Failure::Reason::kDeviceMemory;
      return nullptr;
    }
    held_bytes_ += request.bytes;
    const std::uintptr_t address = next_address;
    next_address = AlignUp(address + request.bytes + gap_bytes, 256);
    return reinterpret_cast<void*>(address);
  }
  Status Return(void* /*data*/, std::size_t bytes) noexcept override {
    EXPECT_EQ(HeldLocks(), 0);
    held_bytes_ -= bytes;
    return Status::kSuccess;
  }

  std::mutex mutex_;
  std::vector<std::size_t> asked_;  // guarded by mutex_
  std::atomic<std::size_t> calls_{0};
  std::atomic<std::size_t> held_bytes_{0};
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_SCRIPTED_SYSTEM_H_
