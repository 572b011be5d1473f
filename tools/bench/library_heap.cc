#include "strata/tools/bench/library_heap.h"

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>

#include "strata/platform/registry.h"

namespace strata {
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

HeapLibrary::HeapLibrary(const std::string& path) {
  if (path.empty()) ThrowAbout(path, "name a library to measure");
  // A name without a slash would be looked for elsewhere.
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

LibraryHeap::LibraryHeap(const std::string& path, const Options& options,
                         std::size_t streams)
    : platform_(MakePlatform(options.platform)),
      streams_(platform_->device(0), streams),
      library_(path) {}

}  // namespace strata
