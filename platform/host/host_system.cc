#include "strata/platform/host/host_system.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace strata {
namespace {

// The largest number of nodes that a kernel can be built for
// (CONFIG_NODES_SHIFT).
constexpr int kMaxNodes = 1024;
using MaskWord = unsigned long;  // NOLINT(google-runtime-int): as in mbind
constexpr std::size_t kMaskBits = sizeof(MaskWord) * CHAR_BIT;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Parses a number at the start of `text` and removes it from `text`.
template <class Number>
bool TakeNumber(std::string_view& text, Number& number) {
  const auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  return true;
}

class LinuxHost final : public HostSystem {
 public:
  explicit LinuxHost(std::string sys_root) : sys_root_(std::move(sys_root)) {}

  std::uint64_t MemoryBytes() const override {
    const auto pages = sysconf(_SC_PHYS_PAGES);
    const std::uint64_t machine =
        pages > 0 ? static_cast<std::uint64_t>(pages) * HostPageBytes() : 0;
    // "max" if there is no limit.
    const std::string line = FirstLine(sys_root_ + "/fs/cgroup/memory.max");
    std::string_view text = line;
    std::uint64_t limit = 0;
    if (!TakeNumber(text, limit) || limit == 0) return machine;
    return machine == 0 ? limit : std::min(machine, limit);
  }

  std::vector<int> NumaNodes() const override {
    const std::string folder = sys_root_ + "/devices/system/node/";
    std::vector<int> nodes = ParseNodeList(FirstLine(folder + "has_memory"));
    if (nodes.empty()) nodes = ParseNodeList(FirstLine(folder + "online"));
    return nodes;
  }

  int PreferNode(void* data, std::size_t bytes, int node) noexcept override {
    if (node < 0 || node >= kMaxNodes) return EINVAL;
    std::array<MaskWord, kMaxNodes / kMaskBits> mask{};
    const auto bit = static_cast<std::size_t>(node);
    mask[bit / kMaskBits] = MaskWord{1} << (bit % kMaskBits);
    // The kernel reads one bit less than the number passed.
    return syscall(SYS_mbind, data, bytes, MPOL_PREFERRED, mask.data(),
                   kMaxNodes + 1, 0) == 0
               ? 0
               : errno;
  }

  int Lock(void* data, std::size_t bytes) noexcept override {
    return mlock(data, bytes) == 0 ? 0 : errno;
  }
  int Unlock(void* data, std::size_t bytes) noexcept override {
    return munlock(data, bytes) == 0 ? 0 : errno;
  }

 private:
  const std::string sys_root_;
};

}  // namespace

std::vector<int> ParseNodeList(const std::string& text) {
  std::vector<int> nodes;
  std::string_view rest = text;
  while (!rest.empty()) {
    int first = 0;
    if (!TakeNumber(rest, first)) return {};
    int last = first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      if (!TakeNumber(rest, last)) return {};
    }
    if (first < 0 || last < first || last >= kMaxNodes) return {};
    for (int node = first; node <= last; ++node) nodes.push_back(node);
    if (rest.starts_with(',')) {
      rest.remove_prefix(1);
      if (rest.empty()) return {};
    } else if (!rest.empty()) {
      return {};
    }
  }
  return nodes;
}

std::size_t HostPageBytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::shared_ptr<HostSystem> MakeHostSystem(const std::string& sys_root) {
  return std::make_shared<LinuxHost>(sys_root);
}

}  // namespace strata
