#include "strata/platform/sim/memory/share_table.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace strata::sim {
namespace {

constexpr char kFabricMark[] = "strata sim fabric";

}  // namespace

ShareTable::~ShareTable() {
  for (const auto& [inode, entry] : entries_) close(entry.reading_end);
}

int ShareTable::Export(Object object) {
  // Releases the read ends of closed descriptors first; otherwise they would
  // use up the descriptors of the process.
  Collect();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  struct stat status = {};
  if (fstat(ends[0], &status) != 0) {
    close(ends[0]);
    close(ends[1]);
    return -1;
  }
  entries_.emplace(Inode{status.st_dev, status.st_ino}, Entry{object, ends[0]});
  ++counts_[object];
  return ends[1];
}

std::optional<ShareTable::Object> ShareTable::Find(int fd) const {
  struct stat status = {};
  if (fstat(fd, &status) != 0) return std::nullopt;
  const auto found = entries_.find(Inode{status.st_dev, status.st_ino});
  if (found == entries_.end()) return std::nullopt;
  return found->second.object;
}

void ShareTable::Collect() {
  std::vector<pollfd> ends;
  ends.reserve(entries_.size());
  for (const auto& [inode, entry] : entries_) {
    ends.push_back(pollfd{entry.reading_end, 0, 0});
  }
  if (ends.empty() || poll(ends.data(), ends.size(), 0) <= 0) return;
  auto entry = entries_.begin();
  for (const pollfd& end : ends) {
    if ((end.revents & POLLHUP) == 0) {
      ++entry;
      continue;
    }
    close(end.fd);
    const auto count = counts_.find(entry->second.object);
    if (--count->second == 0) counts_.erase(count);
    entry = entries_.erase(entry);
  }
}

ShareTable::Fabric ShareTable::ToFabric(Object object) const {
  Fabric bytes{};
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  std::memcpy(bytes.data(), kFabricMark, sizeof kFabricMark);
  std::memcpy(bytes.data() + 32, &self, sizeof self);
  std::memcpy(bytes.data() + 48, &object, sizeof object);
  return bytes;
}

std::optional<ShareTable::Object> ShareTable::FromFabric(
    const Fabric& bytes) const {
  Object object = 0;
  std::memcpy(&object, bytes.data() + 48, sizeof object);
  if (bytes != ToFabric(object)) return std::nullopt;
  return object;
}

}  // namespace strata::sim
