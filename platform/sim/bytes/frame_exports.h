#ifndef STRATA_PLATFORM_SIM_BYTES_FRAME_EXPORTS_H_
#define STRATA_PLATFORM_SIM_BYTES_FRAME_EXPORTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "strata/platform/sim/memory/frame_table.h"

namespace strata::sim {

// The memory of a simulated device in any process that a descriptor exports.
struct FrameRecord {
  int device = 0;
  std::uint64_t bytes = 0;  // of all runs
  std::vector<PhysicalRun> runs;

  // Reads the record of `fd`, if FrameExports of any process created `fd`.
  static std::optional<FrameRecord> Read(int fd);
};

// Descriptors for parts of a device's file, for other processes.
//
// Model: a record behind the device's bytes lists the parts. A descriptor is
//   the file, opened once more, at the offset of the record. It holds a lock on
//   the record's first byte until its last copy is closed, in any process.
// Threads: externally synchronised.
// Cost: a few system calls.
class FrameExports {
 public:
  using Object = std::uint64_t;

  // `fd` is the file of the device and has `bytes` bytes. It stays open for the
  // life of this object.
  FrameExports(int fd, std::uint64_t bytes) : fd_(fd), bytes_(bytes) {}
  FrameExports(const FrameExports&) = delete;
  FrameExports& operator=(const FrameExports&) = delete;

  // Returns a descriptor for `object`, which consists of `record`. The caller
  // closes it. -1 if the process has no descriptor left.
  int Export(Object object, const FrameRecord& record);
  // The object that `fd` exports, if this object created `fd`.
  std::optional<Object> Find(int fd) const;
  // True if a copy of a descriptor of the object is open.
  bool IsExported(Object object) const;
  // Removes the object; it is not exported.
  void Forget(Object object) { records_.erase(object); }

 private:
  struct Place {
    std::uint64_t offset;
    std::uint64_t bytes;
  };

  // Writes the record. Returns its offset; nullopt if the host refuses.
  std::optional<std::uint64_t> Write(Object object, const FrameRecord& record);
  // The lowest offset at which a record of `bytes` fits.
  std::uint64_t FreeOffset(std::uint64_t bytes) const;

  const int fd_;
  const std::uint64_t bytes_;
  std::map<Object, Place> records_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_BYTES_FRAME_EXPORTS_H_
