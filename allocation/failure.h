#ifndef STRATA_ALLOCATION_FAILURE_H_
#define STRATA_ALLOCATION_FAILURE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "strata/platform/place.h"
#include "strata/platform/status.h"

namespace strata {

// The flag of the limit on bytes in use.
inline constexpr const char* kInUseLimitFlag = "--strata_in_use_limit";

// Why a request was not met, as a value: inside a chain nothing throws.
//
// Model: written by the layer that refuses; layers above pass it on. Fields a
//   layer does not know stay 0. Sizes in bytes.
// Cost: no heap; `layer` and `detail` point to static text.
struct Failure {
  enum class Reason : std::uint8_t {
    kNone,          // nothing failed
    kDeviceMemory,  // the device has no memory left
    kHostMemory,    // the host has none left, for memory or for our records
    kLimit,         // the user's limit on bytes reserved was reached
    kBudget,        // the user's limit on bytes in use was reached
    kNoGrowth,      // kNoGrowth was asked for and no cached block fits
    kTooLarge,      // more than addresses reach, perhaps when rounded
    kBadRequest,    // the request itself is wrong; `detail` says how
    kDevice,        // a device call failed otherwise; `status` says how
  };

  Reason reason = Reason::kNone;
  Place place;
  Status status = Status::kSuccess;  // of the device call, if one failed
  const char* layer = "";            // name() of the layer that refused
  const char* detail = "";           // more about it, or ""
  std::size_t requested_bytes = 0;
  std::size_t rounded_bytes = 0;       // what was asked of the system
  std::size_t largest_free_bytes = 0;  // largest cached block of the strategy
  std::size_t in_use_bytes = 0;        // in live blocks, as the layer counts
  std::size_t reserved_bytes = 0;      // held from the system at this place
  std::size_t limit_bytes = 0;         // the limit in force; 0: none
  // The flag, or environment variable, that sets it: "--gpu_memory_limit_mb".
  const char* limit_flag = "";        // "" if not known
  std::size_t device_free_bytes = 0;  // as the device reports it
  std::size_t device_total_bytes = 0;
  // Of all streams of the place, where the request was given up:
  bool knows_place = false;      // whether the next two are known
  std::size_t live_bytes = 0;    // in live blocks
  std::size_t cached_bytes = 0;  // reserved, in no live block
  // A capture is under way, so that nothing may be given back, or waited for.
  bool during_capture = false;
  std::uint64_t waited_ms = 0;  // for others to free memory, in vain

  // Whether giving memory back could make a second attempt succeed.
  bool IsExhaustion() const {
    return reason == Reason::kDeviceMemory || reason == Reason::kHostMemory ||
           reason == Reason::kLimit || reason == Reason::kBudget;
  }

  // Whether the ladder may be climbed for it.
  bool MayReclaim() const { return IsExhaustion() && !during_capture; }

  // One sentence with the numbers, without advice, all in MiB or, if large, all
  // in GiB: "limit: cannot allocate 3.0 MiB on device:0: 9.0 MiB in use of
  // 10.0 MiB allowed by --strata_in_use_limit; …".
  std::string ToString() const;
};

// Names the calls that announce a capture if `status` says that a capture is
// under way; else "". Ends a message. Use it while no capture is announced.
const char* CaptureHint(Status status);

}  // namespace strata

#endif  // STRATA_ALLOCATION_FAILURE_H_
