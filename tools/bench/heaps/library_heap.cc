#include "strata/tools/bench/heaps/library_heap.h"

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>
#include <utility>

#include "strata/platform/registry.h"

namespace strata::tools {
namespace {

[[noreturn]] void ThrowAbout(const std::string& path, const std::string& what) {
  throw std::runtime_error("--bench_library=" + path + ": " + what);
}

template <class Function>
void Find(void* handle, const std::string& path, const char* name,
          Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  if (*function == nullptr) {
    ThrowAbout(path, std::string("it has no function ") + name);
  }
}

}  // namespace

HeapLibrary::HeapLibrary(std::string file) : path(std::move(file)) {
  if (path.empty()) {
    throw std::invalid_argument("library: name it with --bench_library=FILE");
  }
  // dlopen searches other folders for a name without a slash.
  void* const handle =
      dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) ThrowAbout(path, dlerror());
  Find(handle, path, "strata_heap_open", &open);
  Find(handle, path, "strata_heap_allocate", &allocate);
  Find(handle, path, "strata_heap_free", &free);
  Find(handle, path, "strata_heap_allocations", &allocations);
  Find(handle, path, "strata_heap_peak_reserved_bytes", &peak_reserved_bytes);
  const char* const hindrance = open();
  if (hindrance != nullptr) ThrowAbout(path, hindrance);
}

void HeapLibrary::ThrowNoMemory(std::size_t bytes) const {
  ThrowAbout(path, "strata_heap_allocate has no memory for " +
                       std::to_string(bytes) + " bytes");
}

LibraryHeap::LibraryHeap(const std::string& path, const Options& options,
                         std::size_t streams)
    : platform_(MakePlatform(options.platform)),
      streams_(platform_->device(0), streams),
      library_(path) {}

}  // namespace strata::tools
