#include "strata/platform/sim/bytes/frame_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace strata::sim {

SimData ParseSimData(const std::string& text) {
  if (text == "phantom") return SimData::kPhantom;
  if (text == "small") return SimData::kSmall;
  if (text == "backed") return SimData::kBacked;
  if (text == "poison") return SimData::kPoison;
  throw std::invalid_argument("strata_sim_data: '" + text +
                              "' is not phantom, small, backed or poison");
}

FrameStore::FrameStore(SimData data, std::uint64_t bytes)
    : poison_(data == SimData::kPoison),
      bytes_(bytes),
      fd_(memfd_create("strata_sim", MFD_CLOEXEC)),
      exports_(fd_, bytes) {
  void* mapped = MAP_FAILED;
  if (fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(bytes)) == 0) {
    mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_NORESERVE, fd_, 0);
  }
  if (mapped == MAP_FAILED) {
    std::string what = "strata_sim_data: no room on the host for a device of ";
    what += std::to_string(bytes) + " bytes: " + std::strerror(errno);
    if (fd_ >= 0) close(fd_);
    throw std::runtime_error(what);
  }
  base_ = static_cast<char*>(mapped);
}

FrameStore::~FrameStore() {
  munmap(base_, bytes_);
  close(fd_);
}

void FrameStore::AppendParts(const PhysicalRun& run,
                             std::vector<FilePart>* parts) const {
  if (run.offset < ForeignFrames::kBegin) {
    parts->push_back({fd_, run});
  } else {
    foreign_.AppendParts(run, parts);
  }
}

void FrameStore::Fresh(const PhysicalRun& run) {
  if (poison_) std::memset(at(run.offset), kFreshByte, run.bytes);
}

void FrameStore::Freed(const PhysicalRun& run) {
  if (poison_) std::memset(at(run.offset), kFreedByte, run.bytes);
}

void FrameStore::FreeFrames(const PhysicalRun& run) {
  if (poison_) return;
  // On failure the pages stay with this process, which is harmless.
  static_cast<void>(fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                              static_cast<off_t>(run.offset),
                              static_cast<off_t>(run.bytes)));
}

}  // namespace strata::sim
