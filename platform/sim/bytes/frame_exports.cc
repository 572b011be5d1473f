#include "strata/platform/sim/bytes/frame_exports.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "strata/base/size.h"

namespace strata::sim {
namespace {

constexpr char kMark[16] = "strata sim file";
// Records start at multiples of this.
constexpr std::uint64_t kRecordUnitBytes = 4096;

struct Header {
  char mark[sizeof kMark];
  std::uint64_t device;
  std::uint64_t bytes;
  std::uint64_t runs;
};

off_t OffsetOf(std::uint64_t bytes) { return static_cast<off_t>(bytes); }

bool ReadAt(int fd, std::uint64_t offset, void* target, std::size_t bytes) {
  return pread(fd, target, bytes, OffsetOf(offset)) ==
         static_cast<ssize_t>(bytes);
}

bool WriteAt(int fd, std::uint64_t offset, const void* source,
             std::size_t bytes) {
  return pwrite(fd, source, bytes, OffsetOf(offset)) ==
         static_cast<ssize_t>(bytes);
}

// A lock on one byte that belongs to the open file and ends with its last
// descriptor.
struct flock LockAt(std::uint64_t offset, decltype(flock::l_type) type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = OffsetOf(offset);
  lock.l_len = 1;
  return lock;
}

std::uint64_t BytesOf(const FrameRecord& record) {
  return sizeof(Header) + record.runs.size() * sizeof(PhysicalRun);
}

// True if the parts lie in a file of `file_bytes` and match the header.
bool IsWhole(const FrameRecord& record, std::uint64_t file_bytes) {
  std::uint64_t bytes = 0;
  for (const PhysicalRun& run : record.runs) {
    if (run.bytes == 0 || run.bytes % kFrameBytes != 0 ||
        run.offset % kFrameBytes != 0 || run.offset >= file_bytes ||
        run.bytes > file_bytes - run.offset) {
      return false;
    }
    bytes += run.bytes;
  }
  return bytes != 0 && bytes == record.bytes;
}

}  // namespace

std::optional<FrameRecord> FrameRecord::Read(int fd) {
  struct stat status = {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const off_t at = lseek(fd, 0, SEEK_CUR);
  Header header = {};
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  if (at < 0 ||
      !ReadAt(fd, static_cast<std::uint64_t>(at), &header, sizeof header)) {
    return std::nullopt;
  }
  if (std::memcmp(header.mark, kMark, sizeof kMark) != 0 ||
      header.device > INT32_MAX ||
      header.runs > file_bytes / sizeof(PhysicalRun)) {
    return std::nullopt;
  }
  FrameRecord record;
  record.device = static_cast<int>(header.device);
  record.bytes = header.bytes;
  record.runs.resize(header.runs);
  if (!ReadAt(fd, static_cast<std::uint64_t>(at) + sizeof header,
              record.runs.data(), record.runs.size() * sizeof(PhysicalRun)) ||
      !IsWhole(record, file_bytes)) {
    return std::nullopt;
  }
  return record;
}

int FrameExports::Export(Object object, const FrameRecord& record) {
  const std::optional<std::uint64_t> offset = Write(object, record);
  if (!offset) return -1;
  const std::string path = "/proc/self/fd/" + std::to_string(fd_);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return -1;
  struct flock lock = LockAt(*offset, F_RDLCK);
  if (lseek(fd, OffsetOf(*offset), SEEK_SET) < 0 ||
      fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

std::optional<FrameExports::Object> FrameExports::Find(int fd) const {
  struct stat ours = {};
  struct stat theirs = {};
  if (fstat(fd, &theirs) != 0 || fstat(fd_, &ours) != 0 ||
      ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino) {
    return std::nullopt;
  }
  const off_t at = lseek(fd, 0, SEEK_CUR);
  for (const auto& [object, place] : records_) {
    if (OffsetOf(place.offset) == at) return object;
  }
  return std::nullopt;
}

bool FrameExports::IsExported(Object object) const {
  const auto found = records_.find(object);
  if (found == records_.end()) return false;
  struct flock lock = LockAt(found->second.offset, F_WRLCK);
  return fcntl(fd_, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

std::optional<std::uint64_t> FrameExports::Write(Object object,
                                                 const FrameRecord& record) {
  const auto found = records_.find(object);
  if (found != records_.end()) return found->second.offset;
  const std::uint64_t offset = FreeOffset(BytesOf(record));
  Header header = {};
  std::memcpy(header.mark, kMark, sizeof kMark);
  header.device = static_cast<std::uint64_t>(record.device);
  header.bytes = record.bytes;
  header.runs = record.runs.size();
  if (!WriteAt(fd_, offset, &header, sizeof header) ||
      !WriteAt(fd_, offset + sizeof header, record.runs.data(),
               record.runs.size() * sizeof(PhysicalRun))) {
    return std::nullopt;
  }
  records_.emplace(object, Place{offset, BytesOf(record)});
  return offset;
}

std::uint64_t FrameExports::FreeOffset(std::uint64_t bytes) const {
  std::vector<Place> taken;
  taken.reserve(records_.size());
  for (const auto& [object, place] : records_) taken.push_back(place);
  std::sort(taken.begin(), taken.end(),
            [](const Place& a, const Place& b) { return a.offset < b.offset; });
  std::uint64_t offset = bytes_;
  for (const Place& place : taken) {
    if (place.offset - offset >= bytes) break;
    offset = AlignUp(place.offset + place.bytes, kRecordUnitBytes);
  }
  return offset;
}

}  // namespace strata::sim
