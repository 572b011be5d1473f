#include "strata/platform/sim/share_token.h"

#include <sys/mman.h>
#include <unistd.h>

namespace strata {
namespace {

constexpr std::uint64_t kMagic = 0x7374726174610001;

struct FileContent {
  std::uint64_t magic = 0;
  std::uint64_t process = 0;  // devices of another process mean nothing here
  ShareToken token;
};

std::uint64_t ThisProcess() { return static_cast<std::uint64_t>(getpid()); }

}  // namespace

int WriteShareToken(const ShareToken& token) {
  const int fd = memfd_create("strata-share", MFD_CLOEXEC);
  if (fd < 0) return -1;
  const FileContent content{kMagic, ThisProcess(), token};
  if (pwrite(fd, &content, sizeof content, 0) ==
      static_cast<ssize_t>(sizeof content)) {
    return fd;
  }
  close(fd);
  return -1;
}

bool ReadShareToken(int fd, ShareToken* token) {
  FileContent content;
  if (fd < 0 || pread(fd, &content, sizeof content, 0) !=
                    static_cast<ssize_t>(sizeof content)) {
    return false;
  }
  if (content.magic != kMagic || content.process != ThisProcess()) return false;
  *token = content.token;
  return true;
}

}  // namespace strata
