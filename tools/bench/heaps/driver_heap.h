#ifndef STRATA_TOOLS_BENCH_HEAPS_DRIVER_HEAP_H_
#define STRATA_TOOLS_BENCH_HEAPS_DRIVER_HEAP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "strata/facade/options.h"
#include "strata/platform/device.h"
#include "strata/platform/platform.h"
#include "strata/tools/bench/heaps/heaps.h"

namespace strata::tools {

// The driver itself as a heap (heaps.h): cudaMalloc, or its default pool. The
// pool is configured to retain freed memory, the usual setting for speed.
class DriverHeap {
 public:
  using Slot = DevicePtr;
  enum class Calls { kMalloc, kMallocAsync };

  class Lane {
   public:
    Lane(Device* device, MemPool pool, Stream stream)
        : device_(device), pool_(pool), stream_(stream) {}

    // Errors: std::runtime_error with the driver's status.
    void Allocate(Slot& slot, std::size_t bytes) {
      Check(pool_ ? device_->MallocFromPoolAsync(&slot, bytes, pool_, stream_)
                  : device_->MemAlloc(&slot, bytes));
    }
    void Free(Slot& slot) {
      if (slot == Slot{}) return;
      Check(pool_ ? device_->FreeAsync(slot, stream_) : device_->MemFree(slot));
      slot = Slot{};
    }

   private:
    static void Check(Status status) {
      if (status != Status::kSuccess) Throw(status);
    }
    [[noreturn]] static void Throw(Status status);

    Device* device_;
    MemPool pool_;  // null: cudaMalloc
    Stream stream_;
  };

  // Errors: as MakePlatform; std::runtime_error.
  DriverHeap(Calls calls, const Options& options, std::size_t streams);

  Lane MakeLane(std::size_t stream) {
    return {&device(), pool_, streams_.all()[stream]};
  }
  std::optional<std::uint64_t> allocations() const;
  // No value for cudaMalloc: no driver reports the memory that it allocated.
  std::optional<std::uint64_t> peak_reserved_bytes() const;

 private:
  Device& device() const { return platform_->device(0); }

  const std::shared_ptr<Platform> platform_;
  BenchStreams streams_;
  MemPool pool_;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_HEAPS_DRIVER_HEAP_H_
