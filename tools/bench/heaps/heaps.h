#ifndef STRATA_TOOLS_BENCH_HEAPS_HEAPS_H_
#define STRATA_TOOLS_BENCH_HEAPS_HEAPS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <vector>

#include "strata/bindings/c/strata.h"
#include "strata/facade/allocator_facade.h"
#include "strata/platform/device.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/platform/platform.h"
#include "strata/tools/peers/peer.h"

namespace strata::tools {

// The heaps that `strata bench` drives. Every heap has
// - a type Slot, which holds a block or nothing, and can be moved;
// - a type Lane, through which one thread calls it: Allocate(slot, bytes), for
//   an empty slot, throws if there is no memory; Free(slot) ignores an empty
//   slot. A block may be freed through another lane;
// - MakeLane(stream), for one of the streams it was made with, numbered from 0,
//   the default stream;
// - allocations(), the allocations served so far by the allocator's own count,
//   and peak_reserved_bytes(), the peak of the memory held from the system. No
//   value if it does not report them. Called when no call is in flight.
//
// They are separate classes, so that each heap is called as its users call it.

// The minimal cost of every heap: two calls that the compiler must make.
class NullHeap {
 public:
  using Slot = void*;

  class Lane {
   public:
    explicit Lane(std::uint64_t* count) : count_(count) {}

    [[gnu::noinline]] void Allocate(Slot& slot, std::size_t bytes) {
      asm volatile("" : "+r"(bytes));
      slot = count_;
      ++*count_;
    }
    [[gnu::noinline]] void Free(Slot& slot) {
      asm volatile("" ::: "memory");
      slot = nullptr;
    }

   private:
    std::uint64_t* count_;
  };

  Lane MakeLane(std::size_t /*stream*/) {
    return Lane(&counts_.emplace_back().value);
  }
  std::optional<std::uint64_t> allocations() const {
    std::uint64_t sum = 0;
    for (const Count& count : counts_) sum += count.value;
    return sum;
  }
  static std::optional<std::uint64_t> peak_reserved_bytes() {
    return std::nullopt;
  }

 private:
  struct alignas(128) Count {
    std::uint64_t value = 0;
  };
  std::deque<Count> counts_;  // one per lane
};

// The minimal cost of a heap with a lock for threads that share a stream: each
// call locks its stream.
class LockedNullHeap {
 public:
  using Slot = NullHeap::Slot;

  class Lane {
   public:
    Lane(SpinLock* lock, NullHeap::Lane lane) : lock_(lock), lane_(lane) {}

    void Allocate(Slot& slot, std::size_t bytes) {
      const std::lock_guard<SpinLock> guard(*lock_);
      lane_.Allocate(slot, bytes);
    }
    void Free(Slot& slot) {
      const std::lock_guard<SpinLock> guard(*lock_);
      lane_.Free(slot);
    }

   private:
    SpinLock* lock_;
    NullHeap::Lane lane_;
  };

  explicit LockedNullHeap(std::size_t streams) : locks_(streams) {}

  Lane MakeLane(std::size_t stream) {
    return {&locks_[stream].lock, heap_.MakeLane(stream)};
  }
  std::optional<std::uint64_t> allocations() const {
    return heap_.allocations();
  }
  static std::optional<std::uint64_t> peak_reserved_bytes() {
    return std::nullopt;
  }

 private:
  struct alignas(128) Padded {
    SpinLock lock;
  };
  NullHeap heap_;
  std::deque<Padded> locks_;  // one per stream
};

// The process's malloc.
class MallocHeap {
 public:
  using Slot = void*;

  class Lane {
   public:
    static void Allocate(Slot& slot, std::size_t bytes) {
      slot = std::malloc(bytes);
      if (slot == nullptr) throw std::bad_alloc();
    }
    static void Free(Slot& slot) {
      std::free(slot);
      slot = nullptr;
    }
  };

  static Lane MakeLane(std::size_t /*stream*/) { return {}; }
  static std::optional<std::uint64_t> allocations() { return std::nullopt; }
  static std::optional<std::uint64_t> peak_reserved_bytes() {
    return std::nullopt;
  }
};

// Streams of a device: its legacy stream, and further streams that are
// destroyed with this object.
class BenchStreams {
 public:
  // `device` outlives this object. Errors: std::runtime_error.
  BenchStreams(Device& device, std::size_t count);
  BenchStreams(const BenchStreams&) = delete;
  BenchStreams& operator=(const BenchStreams&) = delete;
  ~BenchStreams();

  const std::vector<Stream>& all() const { return streams_; }

 private:
  Device& device_;
  std::vector<Stream> streams_;
};

// A strategy, through the facade.
class FacadeHeap {
 public:
  using Slot = AllocationPtr;

  class Lane {
   public:
    Lane(AllocatorFacade* facade, Stream stream)
        : facade_(facade), stream_(stream) {}

    void Allocate(Slot& slot, std::size_t bytes) {
      slot = facade_->Alloc(DevicePlace(0), bytes, stream_);
    }
    static void Free(Slot& slot) { slot.reset(); }

   private:
    AllocatorFacade* facade_;
    Stream stream_;
  };

  // Errors: as AllocatorFacade; std::runtime_error if there are no more
  //   streams.
  FacadeHeap(const Options& options, std::size_t streams);

  Lane MakeLane(std::size_t stream) {
    return {&facade_, streams_.all()[stream]};
  }
  std::optional<std::uint64_t> allocations() {
    return facade_.GetStats(DevicePlace(0)).allocations;
  }
  std::optional<std::uint64_t> peak_reserved_bytes() {
    return facade_.GetStats(DevicePlace(0)).peak_reserved_bytes;
  }

 private:
  const std::shared_ptr<Platform> platform_;
  BenchStreams streams_;
  AllocatorFacade facade_;
};

// A strategy, through the C ABI.
class CAbiHeap {
 public:
  using Slot = void*;

  class Lane {
   public:
    Lane(strata_facade* facade, void* stream)
        : facade_(facade), stream_(stream) {}

    void Allocate(Slot& slot, std::size_t bytes) {
      if (strata_alloc(facade_, {STRATA_DEVICE, 0}, bytes, stream_, &slot) !=
          STRATA_OK) {
        ThrowLastError();
      }
    }
    void Free(Slot& slot) {
      if (strata_free(facade_, slot) != STRATA_OK) ThrowLastError();
      slot = nullptr;
    }

   private:
    strata_facade* facade_;
    void* stream_;
  };

  // Errors: std::runtime_error with the message of the C ABI.
  CAbiHeap(const Options& options, std::size_t streams);
  ~CAbiHeap();
  CAbiHeap(const CAbiHeap&) = delete;
  CAbiHeap& operator=(const CAbiHeap&) = delete;

  Lane MakeLane(std::size_t stream) { return {facade_, streams_[stream]}; }
  std::optional<std::uint64_t> allocations() { return Count("allocations"); }
  std::optional<std::uint64_t> peak_reserved_bytes() {
    return Count("peak_reserved_bytes");
  }

 private:
  [[noreturn]] static void ThrowLastError();
  // From the statistics of the device.
  std::optional<std::uint64_t> Count(const char* name);

  strata_facade* facade_ = nullptr;
  std::vector<void*> streams_ = {nullptr};
};

// A peer.
class PeerHeap {
 public:
  using Slot = peers::PeerBlock;

  class Lane {
   public:
    Lane(peers::Peer* peer, Device* device, Stream stream)
        : peer_(peer), device_(device), stream_(stream) {}

    void Allocate(Slot& slot, std::size_t bytes) {
      if (!peer_->Allocate(bytes, stream_, &slot)) {
        ThrowOutOfMemory(*peer_, *device_, bytes);
      }
    }
    void Free(Slot& slot) {
      peer_->Free(slot);
      slot = Slot{};
    }

   private:
    peers::Peer* peer_;
    Device* device_;
    Stream stream_;
  };

  // Errors: as peers::MakePeer; std::runtime_error.
  PeerHeap(std::string_view name, const Options& options, std::size_t streams);

  Lane MakeLane(std::size_t stream) {
    return {peer_.get(), &platform_->device(0), streams_.all()[stream]};
  }
  std::optional<std::uint64_t> allocations() {
    return peer_->stats().allocations;
  }
  std::optional<std::uint64_t> peak_reserved_bytes() {
    return peer_->stats().peak_reserved_bytes;
  }

 private:
  const std::shared_ptr<Platform> platform_;
  const std::unique_ptr<peers::Peer> peer_;
  BenchStreams streams_;  // destroyed before the peer, as Peer requires
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_HEAPS_HEAPS_H_
