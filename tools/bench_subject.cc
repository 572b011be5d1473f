#include "strata/tools/bench_subject.h"

#include <cstdlib>
#include <ctime>
#include <new>
#include <stdexcept>

#include "strata/facade/allocator_facade.h"
#include "strata/facade/option_aliases.h"
#include "strata/platform/registry.h"
#include "strata/strategy/registry.h"
#include "strata/tools/peers/registry.h"

namespace strata {
namespace {

// What every heap costs at least: two calls that the compiler must make.
class NullHeap {
 public:
  using Slot = void*;

  [[gnu::noinline]] void Allocate(Slot& slot, std::size_t bytes) {
    asm volatile("" : "+r"(bytes));
    slot = this;
    ++allocations_;
  }
  [[gnu::noinline]] void Free(Slot& slot) {
    asm volatile("" ::: "memory");
    slot = nullptr;
  }
  std::optional<std::uint64_t> allocations() { return allocations_; }
  std::optional<std::uint64_t> peak_reserved_bytes() { return std::nullopt; }

 private:
  std::uint64_t allocations_ = 0;
};

class MallocHeap {
 public:
  using Slot = void*;

  void Allocate(Slot& slot, std::size_t bytes) {
    slot = std::malloc(bytes);
    if (slot == nullptr) throw std::bad_alloc();
  }
  void Free(Slot& slot) {
    std::free(slot);
    slot = nullptr;
  }
  std::optional<std::uint64_t> allocations() { return std::nullopt; }
  std::optional<std::uint64_t> peak_reserved_bytes() { return std::nullopt; }
};

class FacadeHeap {
 public:
  using Slot = AllocationPtr;

  explicit FacadeHeap(const Options& options)
      : facade_(options),
        place_(DevicePlace(0)),
        stream_(facade_.GetDefaultStream(place_)) {}

  void Allocate(Slot& slot, std::size_t bytes) {
    slot = facade_.Alloc(place_, bytes, stream_);
  }
  void Free(Slot& slot) { slot.reset(); }
  std::optional<std::uint64_t> allocations() {
    return facade_.GetStats(place_).allocations;
  }
  std::optional<std::uint64_t> peak_reserved_bytes() {
    return facade_.GetStats(place_).peak_reserved_bytes;
  }

 private:
  AllocatorFacade facade_;
  const Place place_;
  const Stream stream_;
};

class PeerHeap {
 public:
  using Slot = PeerBlock;

  PeerHeap(std::string_view name, const Options& options)
      : platform_(MakePlatform(options.platform)),
        peer_(MakePeer(name, platform_->device(0))),
        stream_(platform_->device(0).LegacyStream()) {}

  void Allocate(Slot& slot, std::size_t bytes) {
    if (!peer_->Allocate(bytes, stream_, &slot)) {
      ThrowOutOfMemory(*peer_, platform_->device(0), bytes);
    }
  }
  void Free(Slot& slot) {
    peer_->Free(slot);
    slot = Slot{};
  }
  std::optional<std::uint64_t> allocations() {
    return peer_->stats().allocations;
  }
  std::optional<std::uint64_t> peak_reserved_bytes() {
    return peer_->stats().peak_reserved_bytes;
  }

 private:
  const std::shared_ptr<Platform> platform_;
  const std::unique_ptr<Peer> peer_;
  const Stream stream_;
};

std::vector<BenchAllocator> MakeTable() {
  using Kind = BenchAllocator::Kind;
  std::vector<BenchAllocator> table = {{"null", Kind::kNull, "", ""}};
  for (const std::string& strategy : StrategyNames()) {
    table.push_back({strategy, Kind::kFacade, "", ""});
  }
  for (const std::string& peer : PeerNames()) {
    table.push_back({peer, Kind::kPeer, "", ""});
  }
  table.push_back({"glibc", Kind::kMalloc, "", ""});
  table.push_back({"jemalloc", Kind::kMalloc, "libjemalloc.so", "mallctl"});
  table.push_back({"mimalloc", Kind::kMalloc, "libmimalloc.so", "mi_version"});
  table.push_back(
      {"tcmalloc", Kind::kMalloc, "libtcmalloc_minimal.so", "tc_version"});
  return table;
}

}  // namespace

const std::vector<BenchAllocator>& BenchAllocators() {
  static const std::vector<BenchAllocator> table = MakeTable();
  return table;
}

const BenchAllocator& FindBenchAllocator(std::string_view name) {
  std::string known;
  for (const BenchAllocator& allocator : BenchAllocators()) {
    if (name == allocator.name) return allocator;
    known += (known.empty() ? "" : ", ") + allocator.name;
  }
  throw std::invalid_argument("there is no allocator '" + std::string(name) +
                              "' (known: " + known + ")");
}

std::chrono::nanoseconds ThreadTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
}

std::unique_ptr<BenchSubject> MakeBenchSubject(const BenchAllocator& allocator,
                                               BenchScript script,
                                               const Options& options) {
  switch (allocator.kind) {
    case BenchAllocator::Kind::kMalloc:
      return std::make_unique<HeapSubject<MallocHeap>>(std::move(script));
    case BenchAllocator::Kind::kFacade: {
      Options own = options;
      own.allocator_strategy = allocator.name;
      for (const StrategyAlias& alias : StrategyAliases()) {
        own.*alias.member = false;
      }
      return std::make_unique<HeapSubject<FacadeHeap>>(std::move(script), own);
    }
    case BenchAllocator::Kind::kPeer:
      return std::make_unique<HeapSubject<PeerHeap>>(std::move(script),
                                                     allocator.name, options);
    case BenchAllocator::Kind::kNull:
      break;
  }
  return std::make_unique<HeapSubject<NullHeap>>(std::move(script));
}

}  // namespace strata
