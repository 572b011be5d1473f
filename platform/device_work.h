#ifndef STRATA_PLATFORM_DEVICE_WORK_H_
#define STRATA_PLATFORM_DEVICE_WORK_H_

#include <cstddef>
#include <cstdint>

#include "strata/platform/memory_types.h"
#include "strata/platform/status.h"
#include "strata/platform/stream.h"

namespace strata {

class Device;

// A memory range that work reads or, if `write`, writes.
struct WorkRange {
  DevicePtr ptr = 0;
  std::size_t bytes = 0;
  bool write = false;
};

// A function that stands in for a kernel. ranges[i] is the host address of the
// i-th range of the work. The function only computes: it calls no device and no
// allocator.
using HostKernel = void (*)(void* argument, void* const* ranges);

// Work whose memory accesses are known. Tests, benchmarks and examples submit
// it in place of kernels.
//
// Errors: as Device: all or nothing; a bad argument is kInvalidValue. An access
//   to memory that the device may not access fails when the work runs, as a
//   sticky kIllegalAddress.
// Threads: any thread. Each range is reported to the device's observers once
//   the work is submitted (DeviceCall::kUse).
// Cost: a kernel launch.
// Lifetime: owned by its Platform.
class DeviceWork {
 public:
  DeviceWork() = default;
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;
  virtual ~DeviceWork() = default;

  // Submits work to `stream`. The work takes about `busy_ns`, then reads each
  // range without `write`, then stores `pattern` in every 8-byte word of the
  // other ranges. kInvalidValue unless IsValidWork(ranges).
  virtual Status Enqueue(Stream stream, const WorkRange* ranges,
                         std::size_t count, std::uint64_t busy_ns,
                         std::uint64_t pattern) = 0;

  // Like Enqueue, by programmatic dependent launch (cuda_semantics.md R9): the
  // work may start before the preceding work of the stream is complete. It
  // waits for that work before it reads or writes. A device without such
  // launches, for example each simulated device, runs the work in stream order.
  virtual Status EnqueueEarly(Stream stream, const WorkRange* ranges,
                              std::size_t count, std::uint64_t busy_ns,
                              std::uint64_t pattern) {
    return Enqueue(stream, ranges, count, busy_ns, pattern);
  }

  // Submits work to `stream` that calls `kernel`. The kernel reads and writes
  // the ranges as they say. At most kMaxWorkRanges ranges, none empty, with any
  // alignment.
  // In a capture the work becomes a node, and each launch of the graph calls
  // `kernel` again. `kernel` runs as a function of LaunchHostFunc does.
  // `kernel` is not called on a device that stores no bytes
  // (Caps::phantom_memory), nor if the device may not access one of the ranges.
  // If the host cannot map a range for `kernel`, the process aborts.
  //
  // Errors: kNotSupported on a device that has kernels of its own.
  // Lifetime: `argument` stays valid until the work is complete; in a capture,
  //   until the graph and every executable graph made from it are destroyed.
  virtual Status Launch(Stream stream, const WorkRange* ranges,
                        std::size_t count, HostKernel kernel, void* argument);
};

inline constexpr std::size_t kMaxWorkRanges = 8;

// True if there are at most kMaxWorkRanges ranges, each of one or more whole
// 8-byte words and aligned to 8 bytes.
bool IsValidWork(const WorkRange* ranges, std::size_t count);

// Reports to the observers of `device` that work in `stream` uses the ranges.
// In a capture `node` is the node of the work.
void NoteUses(Device& device, const Stream& stream, const WorkRange* ranges,
              std::size_t count, std::uint64_t node = 0);

}  // namespace strata

#endif  // STRATA_PLATFORM_DEVICE_WORK_H_
