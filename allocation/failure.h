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

// The reason why a request was not met, as a value. Inside a chain nothing
// throws.
//
// Model: the layer that refuses a request writes it; the layers above pass it
//   on. A field that the layer does not know is 0. Sizes are in bytes.
// Cost: no heap; `layer` and `detail` point to static text.
struct Failure {
  enum class Reason : std::uint8_t {
    kNone,          // nothing failed
    kDeviceMemory,  // the device has no memory left
    kHostMemory,    // no host memory, for the request or for a record
    kLimit,         // the user's limit on bytes reserved was reached
    kBudget,        // the user's limit on bytes in use was reached
    kNoGrowth,      // kNoGrowth was requested and no cached block fits
    kTooLarge,      // more than the address space, perhaps after rounding
    kBadRequest,    // the request itself is wrong; `detail` says how
    kDevice,        // a device call failed otherwise; `status` says how
  };

  Reason reason = Reason::kNone;
  Place place;
  Status status = Status::kSuccess;  // of the device call, if one failed
  const char* layer = "";            // name() of the layer that refused
  const char* detail = "";           // a detail of the reason, or ""
  std::size_t requested_bytes = 0;
  std::size_t rounded_bytes = 0;  // bytes requested from the system
  // True if the release of all idle memory would not serve the request.
  bool exceeds_idle = false;
  std::size_t largest_free_bytes = 0;  // largest cached block of the strategy
  std::size_t in_use_bytes = 0;        // in live blocks, as the layer counts
  std::size_t reserved_bytes = 0;      // held from the system at this place
  std::size_t limit_bytes = 0;         // the limit in force; 0: none
  // Flag or environment variable that sets the limit: "--gpu_memory_limit_mb".
  // "" if not known.
  const char* limit_flag = "";
  std::size_t device_free_bytes = 0;  // as the device reports it
  std::size_t device_total_bytes = 0;
  // Sums over all streams of the place, when the request failed:
  bool knows_place = false;      // whether the next two are known
  std::size_t live_bytes = 0;    // in live blocks
  std::size_t cached_bytes = 0;  // reserved, in no live block
  // A capture is under way, so that memory can be neither released nor waited
  // for.
  bool during_capture = false;
  std::uint64_t waited_ms = 0;  // time waited for other threads to free memory

  // True if a second attempt could succeed after memory is released.
  bool IsExhaustion() const {
    return reason == Reason::kDeviceMemory || reason == Reason::kHostMemory ||
           reason == Reason::kLimit || reason == Reason::kBudget;
  }

  // True if the Reclaimer may run for this failure.
  bool MayReclaim() const { return IsExhaustion() && !during_capture; }

  // One sentence with the numbers, without advice. All sizes are in MiB or, if
  // large, all in GiB: "limit: cannot allocate 3.0 MiB on device:0: 9.0 MiB in
  // use of 10.0 MiB allowed by --strata_in_use_limit; …".
  std::string ToString() const;
};

// If `status` says that a capture is under way, returns the end of a message
// that names the calls that announce a capture; otherwise returns "". Use it
// while no capture is announced.
const char* CaptureHint(Status status);

}  // namespace strata

#endif  // STRATA_ALLOCATION_FAILURE_H_
