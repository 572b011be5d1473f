#ifndef STRATA_PLATFORM_SIM_BYTES_FOREIGN_FRAMES_H_
#define STRATA_PLATFORM_SIM_BYTES_FOREIGN_FRAMES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "strata/platform/sim/bytes/frame_exports.h"
#include "strata/platform/sim/bytes/host_views.h"

namespace strata::sim {

// Memory of devices of other processes or platforms, imported into this device.
//
// Model: each import has its own offsets, above those of any device's memory.
//   Offsets are never reused.
// Threads: externally synchronised.
// Cost: Add: one system call per run; else O(log imports).
class ForeignFrames {
 public:
  // Offsets from this value on are foreign.
  static constexpr std::uint64_t kBegin = std::uint64_t{1} << 62;

  ForeignFrames() = default;
  ForeignFrames(const ForeignFrames&) = delete;
  ForeignFrames& operator=(const ForeignFrames&) = delete;
  ~ForeignFrames();

  // Maps the memory that `fd` exports; `record` is its record. Returns the
  // offset of the first byte. Nullopt if the host refuses. `fd` may be closed
  // after the call.
  std::optional<std::uint64_t> Add(int fd, const FrameRecord& record);
  // Returns another descriptor of the import, which the caller closes. -1 if
  // the process has no descriptor left.
  int Export(std::uint64_t offset) const;
  void Remove(std::uint64_t offset);

  // The bytes of an import from `offset` on; `offset` lies in an import.
  char* at(std::uint64_t offset) const;
  void AppendParts(const PhysicalRun& run, std::vector<FilePart>* parts) const;

 private:
  struct Import {
    int fd;
    FrameRecord record;
    char* base;
  };
  using Imports = std::map<std::uint64_t, Import>;  // by the first offset

  Imports::const_iterator Find(std::uint64_t offset) const;

  Imports imports_;
  std::uint64_t next_ = kBegin;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_BYTES_FOREIGN_FRAMES_H_
