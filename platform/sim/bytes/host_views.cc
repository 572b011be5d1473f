#include "strata/platform/sim/bytes/host_views.h"

#include <sys/mman.h>

#include "strata/base/size.h"
#include "strata/platform/host/host_system.h"

namespace strata::sim {
namespace {

// Maps the pages of `part` at `target`. Returns their size in bytes, or 0.
std::uint64_t MapPart(char* target, const FilePart& part) {
  const std::uint64_t inside = part.run.offset % HostPageBytes();
  const std::uint64_t bytes = AlignUp(inside + part.run.bytes, HostPageBytes());
  void* mapped =
      mmap(target, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           part.fd, static_cast<off_t>(part.run.offset - inside));
  return mapped == MAP_FAILED ? 0 : bytes;
}

}  // namespace

HostViews::~HostViews() {
  for (const auto& [range, view] : views_) munmap(view.base, view.mapped_bytes);
}

void* HostViews::Find(DevicePtr ptr, std::uint64_t bytes) const {
  const auto found = views_.find(Range{ptr, bytes});
  if (found == views_.end()) return nullptr;
  return found->second.base + ptr % HostPageBytes();
}

void* HostViews::Make(DevicePtr ptr, std::uint64_t bytes,
                      const std::vector<FilePart>& parts) {
  const std::uint64_t mapped_bytes =
      AlignUp(ptr % HostPageBytes() + bytes, HostPageBytes());
  void* reserved = mmap(nullptr, mapped_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  const View view{static_cast<char*>(reserved), mapped_bytes};
  char* target = view.base;
  for (const FilePart& part : parts) {
    const std::uint64_t mapped = MapPart(target, part);
    if (mapped == 0) {
      munmap(view.base, mapped_bytes);
      return nullptr;
    }
    target += mapped;
  }
  views_.emplace(Range{ptr, bytes}, view);
  return view.base + ptr % HostPageBytes();
}

void HostViews::Drop(DevicePtr ptr, std::uint64_t bytes) {
  for (auto view = views_.begin(); view != views_.end();) {
    const auto& [begin, size] = view->first;
    if (begin >= ptr + bytes || ptr >= begin + size) {
      ++view;
      continue;
    }
    munmap(view->second.base, view->second.mapped_bytes);
    view = views_.erase(view);
  }
}

}  // namespace strata::sim
