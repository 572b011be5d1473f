#ifndef STRATA_PLATFORM_CALLS_HOST_HAND_OVER_H_
#define STRATA_PLATFORM_CALLS_HOST_HAND_OVER_H_

#include <atomic>
#include <cstdint>

#include "strata/platform/device.h"

namespace strata {

// Tells the hazard checker that one host thread acts after another: at the
// start of a thread, at its join, or through a queue of the program.
//
// Model: after Acquire(), a thread knows all completed work that any thread
//   knew when it called Release() before. Each object is a tag of its own in
//   the events host_release and host_acquire.
// Threads: any thread.
// Cost: one load if nothing observes the device. No driver call.
// Lifetime: the device outlives it.
class HostHandOver {
 public:
  explicit HostHandOver(Device& device) : device_(device) {}
  HostHandOver(const HostHandOver&) = delete;
  HostHandOver& operator=(const HostHandOver&) = delete;

  void Release() noexcept { Note(DeviceCall::kHostRelease); }
  void Acquire() noexcept { Note(DeviceCall::kHostAcquire); }

 private:
  void Note(DeviceCall event) noexcept {
    if (device_.observed()) device_.Note(RecordOf(event, tag_));
  }

  static inline std::atomic<std::uint64_t> last_tag_{0};

  Device& device_;
  const std::uint64_t tag_ = ++last_tag_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_CALLS_HOST_HAND_OVER_H_
