#ifndef STRATA_PLATFORM_DEVICE_WORK_H_
#define STRATA_PLATFORM_DEVICE_WORK_H_

#include <cstddef>
#include <cstdint>

#include "strata/platform/memory_types.h"
#include "strata/platform/status.h"
#include "strata/platform/stream.h"

namespace strata {

class Device;

// Memory that a piece of work reads or, if `write`, writes.
struct WorkRange {
  DevicePtr ptr = 0;
  std::size_t bytes = 0;
  bool write = false;
};

// A function that stands in for a kernel. ranges[i] is where the host finds the
// i-th range of the work. It computes, and calls no device and no allocator.
using HostKernel = void (*)(void* argument, void* const* ranges);

// Work whose accesses are known: what tests, benchmarks and examples put into
// streams in place of kernels.
//
// Errors: as Device: all or nothing; a bad argument is kInvalidValue. Memory
//   that the device may not access shows when the work runs, as a sticky
//   kIllegalAddress.
// Threads: any thread. The device's observer is told of each range once the
//   work is submitted (DeviceCall::kUse).
// Cost: that of a kernel launch.
// Lifetime: owned by its Platform.
class DeviceWork {
 public:
  DeviceWork() = default;
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;
  virtual ~DeviceWork() = default;

  // Submits to `stream` work that takes about `busy_ns`, then reads each range
  // that is read, then stores `pattern` in every 8-byte word of those that are
  // written. kInvalidValue unless the ranges are IsValidWork.
  virtual Status Enqueue(Stream stream, const WorkRange* ranges,
                         std::size_t count, std::uint64_t busy_ns,
                         std::uint64_t pattern) = 0;

  // Enqueue by programmatic dependent launch (cuda_semantics.md R9): the work
  // may start before the work before it in the stream is done. It waits for
  // that work before it reads or writes. A device without such launches, as
  // each simulated one, runs the work in the order of the stream.
  virtual Status EnqueueEarly(Stream stream, const WorkRange* ranges,
                              std::size_t count, std::uint64_t busy_ns,
                              std::uint64_t pattern) {
    return Enqueue(stream, ranges, count, busy_ns, pattern);
  }

  // Submits to `stream` work that calls `kernel`, which reads and writes the
  // ranges as they say: at most kMaxWorkRanges, none empty, and no alignment is
  // asked for. In a capture it is a node, and each launch of the graph calls it
  // again. Not called where the device keeps no bytes (Caps::phantom_memory),
  // nor where one of the ranges is not to be accessed. If the host has no way
  // left to show it a range, the process aborts. It runs as a function of
  // LaunchHostFunc does.
  //
  // Errors: kNotSupported on a device that has kernels of its own.
  // Lifetime: `argument` is good until the work is done, in a capture until the
  //   graph and what was made of it are gone.
  virtual Status Launch(Stream stream, const WorkRange* ranges,
                        std::size_t count, HostKernel kernel, void* argument);
};

inline constexpr std::size_t kMaxWorkRanges = 8;

// Whether there are at most kMaxWorkRanges, each of one or more whole words of
// 8 bytes, and so aligned.
bool IsValidWork(const WorkRange* ranges, std::size_t count);

// Tells the observer of `device` that work in `stream`, in a capture the node
// `node`, uses the ranges.
void NoteUses(Device& device, const Stream& stream, const WorkRange* ranges,
              std::size_t count, std::uint64_t node = 0);

}  // namespace strata

#endif  // STRATA_PLATFORM_DEVICE_WORK_H_
