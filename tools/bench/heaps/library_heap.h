#ifndef STRATA_TOOLS_BENCH_HEAPS_LIBRARY_HEAP_H_
#define STRATA_TOOLS_BENCH_HEAPS_LIBRARY_HEAP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "strata/facade/options.h"
#include "strata/platform/platform.h"
#include "strata/tools/bench/heaps/heap_library.h"
#include "strata/tools/bench/heaps/heaps.h"

namespace strata::tools {

// The functions of a library (heap_library.h). The library remains loaded.
struct HeapLibrary {
  // Errors: std::runtime_error naming `file` and the message of the loader or
  //   of the library, or the missing function; std::invalid_argument if `file`
  //   is empty.
  explicit HeapLibrary(std::string file);

  [[noreturn]] void ThrowNoMemory(std::size_t bytes) const;

  std::string path;

  decltype(&strata_heap_open) open = nullptr;
  decltype(&strata_heap_allocate) allocate = nullptr;
  decltype(&strata_heap_free) free = nullptr;
  decltype(&strata_heap_allocations) allocations = nullptr;
  decltype(&strata_heap_peak_reserved_bytes) peak_reserved_bytes = nullptr;
};

// A heap (heaps.h) of a library, in streams of the platform.
class LibraryHeap {
 public:
  using Slot = void*;

  class Lane {
   public:
    Lane(const HeapLibrary* library, void* stream)
        : library_(library), stream_(stream) {}

    // Errors: std::runtime_error naming the library.
    void Allocate(Slot& slot, std::size_t bytes) {
      slot = library_->allocate(bytes, stream_);
      if (slot == nullptr) library_->ThrowNoMemory(bytes);
    }
    void Free(Slot& slot) {
      if (slot != nullptr) library_->free(slot, stream_);
      slot = nullptr;
    }

   private:
    const HeapLibrary* library_;
    void* stream_;
  };

  // Errors: as HeapLibrary, MakePlatform and BenchStreams.
  LibraryHeap(const std::string& path, const Options& options,
              std::size_t streams);

  Lane MakeLane(std::size_t stream) {
    return {&library_, streams_.all()[stream].handle};
  }
  std::optional<std::uint64_t> allocations() const {
    return library_.allocations();
  }
  std::optional<std::uint64_t> peak_reserved_bytes() const {
    return library_.peak_reserved_bytes();
  }

 private:
  const std::shared_ptr<Platform> platform_;
  BenchStreams streams_;
  const HeapLibrary library_;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_HEAPS_LIBRARY_HEAP_H_
