#ifndef STRATA_PLATFORM_SIM_FRAME_STORE_H_
#define STRATA_PLATFORM_SIM_FRAME_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "strata/platform/sim/foreign_frames.h"
#include "strata/platform/sim/frame_exports.h"
#include "strata/platform/sim/frame_table.h"
#include "strata/platform/sim/host_views.h"

namespace strata {

// What a simulated device keeps of what is written to its memory.
enum class SimData {
  kPhantom,  // nothing
  kBacked,   // every byte; memory that has been freed goes back to the host
  kPoison,   // every byte; fresh memory is 0xA5, freed memory 0xDD
};

// Reads "phantom", "backed" or "poison".
//
// Errors: std::invalid_argument naming strata_sim_data.
SimData ParseSimData(const std::string& text);

inline constexpr unsigned char kFreshByte = 0xA5;
inline constexpr unsigned char kFreedByte = 0xDD;

// The bytes of one device's memory: a sparse file in memory, mapped as a whole.
//
// Model: offsets count from the start of the device's memory. The host gives
//   pages when they are first touched and, except with poison, takes them back
//   when their frame is freed. What fresh memory holds is not defined.
// Errors: the constructor throws std::runtime_error naming strata_sim_data and
//   the size if the host has no room for the mapping.
// Threads: externally synchronised; bytes are the business of who uses them.
class FrameStore {
 public:
  // `data` is not kPhantom; `bytes` is a positive multiple of kFrameBytes.
  FrameStore(SimData data, std::uint64_t bytes);
  FrameStore(const FrameStore&) = delete;
  FrameStore& operator=(const FrameStore&) = delete;
  ~FrameStore();

  // Of foreign memory too, as the next two.
  char* at(std::uint64_t offset) const {
    return offset < ForeignFrames::kBegin ? base_ + offset
                                          : foreign_.at(offset);
  }
  int fd() const { return fd_; }
  // Adds the parts of files that hold the bytes, for further mappings of them.
  void AppendParts(const PhysicalRun& run, std::vector<FilePart>* parts) const;

  // Parts of the memory as other processes get them, and theirs.
  FrameExports& exports() { return exports_; }
  ForeignFrames& foreign() { return foreign_; }

  // Whether the bytes of fresh and of freed memory are marked.
  bool marks() const { return poison_; }
  // The bytes have been handed out, or have been given back.
  void Fresh(const PhysicalRun& run);
  void Freed(const PhysicalRun& run);
  // Whole frames are free: their pages go back to the host.
  void FreeFrames(const PhysicalRun& run);

 private:
  const bool poison_;
  const std::uint64_t bytes_;
  const int fd_;
  char* base_ = nullptr;
  FrameExports exports_;
  ForeignFrames foreign_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_FRAME_STORE_H_
