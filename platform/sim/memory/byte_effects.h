#ifndef STRATA_PLATFORM_SIM_MEMORY_BYTE_EFFECTS_H_
#define STRATA_PLATFORM_SIM_MEMORY_BYTE_EFFECTS_H_

#include <cstdint>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/memory/address_space.h"

namespace strata::sim {

// Effects of copies, fills and work on the bytes behind addresses.
//
// Model: host memory has all its bytes. Device memory stores every
//   write (FrameStore), small writes (KeptBytes), or no write. Bytes that are
//   not stored read as zeros. A write of more than KeptBytes::kMostWriteBytes
//   makes kept bytes in its range unknown. A copy on the device moves the kept
//   bytes, for any size.
// Threads: externally synchronised, as AddressSpace.
// Each range is memory that AddressSpace allows, and not empty.

// Returns the number of bytes that were not stored. If the target stores none,
// the result is 0.
std::uint64_t CopyBytes(const AddressSpace& space, DevicePtr target,
                        DevicePtr source, std::uint64_t bytes);
void FillBytes(const AddressSpace& space, DevicePtr ptr, int value,
               std::uint64_t bytes);
// Fills with the words of `pattern`; `bytes` is a multiple of their size.
void FillWords(const AddressSpace& space, DevicePtr ptr, std::uint64_t pattern,
               std::uint64_t bytes);
// Makes kept bytes in the range unknown.
void ForgetBytes(const AddressSpace& space, DevicePtr ptr, std::uint64_t bytes);

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_BYTE_EFFECTS_H_
