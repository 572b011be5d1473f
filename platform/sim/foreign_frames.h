#ifndef STRATA_PLATFORM_SIM_FOREIGN_FRAMES_H_
#define STRATA_PLATFORM_SIM_FOREIGN_FRAMES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "strata/platform/sim/frame_exports.h"
#include "strata/platform/sim/host_views.h"

namespace strata {

// Memory of devices of other processes, or platforms, as one of this device
// sees it.
//
// Model: each import has offsets of its own, above those of any device's
//   memory, that are never used again.
// Threads: externally synchronised.
// Cost: Add: a system call for each run; else O(log imports).
class ForeignFrames {
 public:
  // Offsets from here on are foreign.
  static constexpr std::uint64_t kBegin = std::uint64_t{1} << 62;

  ForeignFrames() = default;
  ForeignFrames(const ForeignFrames&) = delete;
  ForeignFrames& operator=(const ForeignFrames&) = delete;
  ~ForeignFrames();

  // Maps the memory that `fd` stands for, whose record is `record`; the offset
  // of its first byte. Nothing if the host refuses. `fd` may be closed then.
  std::optional<std::uint64_t> Add(int fd, const FrameRecord& record);
  // One more descriptor of the import; the caller closes it. -1 if the process
  // can have no more.
  int Export(std::uint64_t offset) const;
  void Remove(std::uint64_t offset);

  // Bytes of an import; `offset` lies in one.
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

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_FOREIGN_FRAMES_H_
