#include "strata/platform/sim/bytes/foreign_frames.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace strata::sim {
namespace {

// Maps the parts of `record` at consecutive addresses; null if the host
// refuses.
char* MapAll(int fd, const FrameRecord& record) {
  void* const reserved =
      mmap(nullptr, record.bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  char* target = static_cast<char*>(reserved);
  for (const PhysicalRun& run : record.runs) {
    if (mmap(target, run.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             fd, static_cast<off_t>(run.offset)) == MAP_FAILED) {
      munmap(reserved, record.bytes);
      return nullptr;
    }
    target += run.bytes;
  }
  return static_cast<char*>(reserved);
}

}  // namespace

ForeignFrames::~ForeignFrames() {
  while (!imports_.empty()) Remove(imports_.begin()->first);
}

std::optional<std::uint64_t> ForeignFrames::Add(int fd,
                                                const FrameRecord& record) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return std::nullopt;
  char* const base = MapAll(copy, record);
  if (base == nullptr) {
    close(copy);
    return std::nullopt;
  }
  const std::uint64_t offset = next_;
  next_ += record.bytes;
  imports_.emplace(offset, Import{copy, record, base});
  return offset;
}

int ForeignFrames::Export(std::uint64_t offset) const {
  return fcntl(Find(offset)->second.fd, F_DUPFD_CLOEXEC, 0);
}

void ForeignFrames::Remove(std::uint64_t offset) {
  const auto found = imports_.find(offset);
  munmap(found->second.base, found->second.record.bytes);
  close(found->second.fd);
  imports_.erase(found);
}

char* ForeignFrames::at(std::uint64_t offset) const {
  const auto found = Find(offset);
  return found->second.base + (offset - found->first);
}

void ForeignFrames::AppendParts(const PhysicalRun& run,
                                std::vector<FilePart>* parts) const {
  const auto found = Find(run.offset);
  const std::uint64_t begin = run.offset - found->first;
  const std::uint64_t end = begin + run.bytes;
  std::uint64_t before = 0;
  for (const PhysicalRun& part : found->second.record.runs) {
    const std::uint64_t from = std::max(begin, before);
    const std::uint64_t to = std::min(end, before + part.bytes);
    if (from < to) {
      parts->push_back(
          {found->second.fd, {part.offset + (from - before), to - from}});
    }
    before += part.bytes;
  }
}

// The import that contains `offset`.
ForeignFrames::Imports::const_iterator ForeignFrames::Find(
    std::uint64_t offset) const {
  return std::prev(imports_.upper_bound(offset));
}

}  // namespace strata::sim
