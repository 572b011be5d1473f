#ifndef STRATA_PLATFORM_SIM_BYTES_FRAME_STORE_H_
#define STRATA_PLATFORM_SIM_BYTES_FRAME_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "strata/platform/sim/bytes/foreign_frames.h"
#include "strata/platform/sim/bytes/frame_exports.h"
#include "strata/platform/sim/bytes/host_views.h"
#include "strata/platform/sim/memory/frame_table.h"

namespace strata::sim {

// The data of device memory that a simulated device stores.
enum class SimData {
  kPhantom,  // none
  kSmall,    // small writes (kept_bytes.h)
  kBacked,   // every byte; freed memory is returned to the host
  kPoison,   // every byte; fresh memory is 0xA5, freed memory 0xDD
};

// Parses "phantom", "small", "backed" or "poison".
//
// Errors: std::invalid_argument that names strata_sim_data.
SimData ParseSimData(const std::string& text);

inline constexpr unsigned char kFreshByte = 0xA5;
inline constexpr unsigned char kFreedByte = 0xDD;

// All bytes of one device's memory: a sparse file in memory, mapped as a whole.
//
// Model: offsets count from the start of the device's memory. The host
//   allocates pages at their first touch. Except with poison, it releases them
//   when their frame is freed. The contents of fresh memory are undefined.
// Errors: the constructor throws std::runtime_error that names strata_sim_data
//   and the size if the host has no room for the mapping.
// Threads: externally synchronised. Users synchronise their accesses to the
//   bytes.
class FrameStore {
 public:
  // `data` is kBacked or kPoison; `bytes` is a positive multiple of
  // kFrameBytes.
  FrameStore(SimData data, std::uint64_t bytes);
  FrameStore(const FrameStore&) = delete;
  FrameStore& operator=(const FrameStore&) = delete;
  ~FrameStore();

  // This and the next two functions also accept foreign memory.
  char* at(std::uint64_t offset) const {
    return offset < ForeignFrames::kBegin ? base_ + offset
                                          : foreign_.at(offset);
  }
  int fd() const { return fd_; }
  // Appends the parts of files that hold the bytes, for further mappings.
  void AppendParts(const PhysicalRun& run, std::vector<FilePart>* parts) const;

  // Exports to other processes, and imports from them.
  FrameExports& exports() { return exports_; }
  ForeignFrames& foreign() { return foreign_; }

  // True if the bytes of fresh and of freed memory are marked.
  bool marks() const { return poison_; }
  // The bytes were allocated, or freed.
  void Fresh(const PhysicalRun& run);
  void Freed(const PhysicalRun& run);
  // Whole frames are free: returns their pages to the host.
  void FreeFrames(const PhysicalRun& run);

 private:
  const bool poison_;
  const std::uint64_t bytes_;
  const int fd_;
  char* base_ = nullptr;
  FrameExports exports_;
  ForeignFrames foreign_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_BYTES_FRAME_STORE_H_
