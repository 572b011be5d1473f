#ifndef STRATA_PLATFORM_SIM_MEMORY_HOST_RANGES_H_
#define STRATA_PLATFORM_SIM_MEMORY_HOST_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>

#include "strata/platform/sim/faults/sim_leaks.h"
#include "strata/platform/status.h"

namespace strata::sim {

// The addresses that a process can use: above the part that Linux keeps
// unmapped (mmap_min_addr), and below the end of AArch64's default address
// space, which is above x86-64's.
inline constexpr std::uintptr_t kHostBegin = std::uintptr_t{1} << 16;
inline constexpr std::uintptr_t kHostEnd = std::uintptr_t{1} << 48;

// True if the addresses [address, address + bytes) can be host memory.
constexpr bool IsHostRange(std::uintptr_t address, std::uint64_t bytes) {
  return address >= kHostBegin && address < kHostEnd &&
         bytes <= kHostEnd - address;
}

// The kind of a host memory range.
enum class HostRangeKind { kPinned, kRegistered, kManaged };

// The host memory that the devices of one platform can access. Pinned and
// managed ranges are mapped here; registered ranges belong to the caller.
//
// Model: ranges do not overlap. The host allocates pages at their first touch.
//   The addresses of the last kQuarantinedFrees unmapped ranges stay reserved,
//   without memory, so that stale addresses are detected. The destructor unmaps
//   all remaining ranges.
// Errors: the Status of the Device entry point that each method implements.
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
  // Returns kInvalidValue unless `ptr` starts a range of this kind.
  Status Unmap(HostRangeKind kind, void* ptr);
  // Returns kInvalidValue unless IsHostRange, and kHostMemoryAlreadyRegistered
  // if any of the bytes is in a range.
  Status Register(int device, void* ptr, std::size_t bytes);
  // Returns kHostMemoryNotRegistered unless `ptr` starts a registered range.
  Status Unregister(void* ptr);

  // True if one range covers [address, address + bytes). Then sets `kind` and
  // `device` to those of the range, unless they are null.
  bool Find(std::uintptr_t address, std::size_t bytes, HostRangeKind* kind,
            int* device) const;
  // True if any of the bytes is in a range or in quarantine.
  bool Touches(std::uintptr_t address, std::size_t bytes) const;
  // Peak of the managed memory of `device`, in bytes.
  std::uint64_t peak_managed_bytes(int device) const;
  // Adds the ranges that `device` created and that still exist.
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

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_HOST_RANGES_H_
