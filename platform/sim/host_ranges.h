#ifndef STRATA_PLATFORM_SIM_HOST_RANGES_H_
#define STRATA_PLATFORM_SIM_HOST_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>

#include "strata/platform/sim/sim_leaks.h"
#include "strata/platform/status.h"

namespace strata {

// What processes can have: above what Linux keeps unmapped (mmap_min_addr), and
// below the end of AArch64's default address space, which is above x86-64's.
inline constexpr std::uintptr_t kHostBegin = std::uintptr_t{1} << 16;
inline constexpr std::uintptr_t kHostEnd = std::uintptr_t{1} << 48;

// Whether [address, address + bytes) is memory of a host, as far as its
// addresses tell.
constexpr bool IsHostRange(std::uintptr_t address, std::uint64_t bytes) {
  return address >= kHostBegin && address < kHostEnd &&
         bytes <= kHostEnd - address;
}

// What a range of host memory is to the devices.
enum class HostRangeKind { kPinned, kRegistered, kManaged };

// The host memory that the devices of one platform can reach. Pinned and
// managed ranges are mapped here; registered ones belong to the caller.
//
// Model: no two ranges overlap. Pages are taken from the host when they are
//   first touched. The addresses of the last kQuarantinedFrees unmapped ranges
//   stay taken, without memory, so that a stale one is known for what it is.
//   All that is still there at the end is unmapped.
// Errors: the Status of the Device entry point that each method serves.
// Threads: any thread.
class HostRanges {
 public:
  static constexpr std::size_t kQuarantinedFrees = 1024;

  HostRanges() = default;
  HostRanges(const HostRanges&) = delete;
  HostRanges& operator=(const HostRanges&) = delete;
  ~HostRanges();

  // Maps `bytes` > 0 of zeroed memory as `kind`, kPinned or kManaged.
  Status Map(HostRangeKind kind, int device, std::size_t bytes, void** ptr);
  // kInvalidValue unless `ptr` starts a range of this kind.
  Status Unmap(HostRangeKind kind, void* ptr);
  // kInvalidValue unless IsHostRange, kHostMemoryAlreadyRegistered if any of
  // the bytes are in a range.
  Status Register(int device, void* ptr, std::size_t bytes);
  // kHostMemoryNotRegistered unless `ptr` starts a registered range.
  Status Unregister(void* ptr);

  // Whether one range covers [address, address + bytes); then `kind` and
  // `device` say which, unless they are null.
  bool Find(std::uintptr_t address, std::size_t bytes, HostRangeKind* kind,
            int* device) const;
  // Whether any of the bytes are in a range or in quarantine.
  bool Touches(std::uintptr_t address, std::size_t bytes) const;
  // The most managed memory that `device` had at once, in bytes.
  std::uint64_t peak_managed_bytes(int device) const;
  // Adds what `device` made and still has.
  void AddLeaks(int device, SimLeaks* leaks) const;

 private:
  struct Range {
    std::size_t bytes;
    HostRangeKind kind;
    int device;
  };
  using Ranges = std::map<std::uintptr_t, Range>;
  struct ManagedUse {
    std::uint64_t bytes = 0;
    std::uint64_t peak_bytes = 0;
  };

  static bool AnyOverlap(const Ranges& ranges, std::uintptr_t begin,
                         std::size_t bytes);
  void Quarantine(Ranges::iterator range);

  mutable std::mutex mutex_;
  Ranges ranges_;                          // by address; guarded by mutex_
  Ranges quarantined_;                     // by address; guarded by mutex_
  std::deque<std::uintptr_t> quarantine_;  // oldest first; guarded by mutex_
  std::map<int, ManagedUse> managed_;      // by device; guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_HOST_RANGES_H_
