#ifndef STRATA_TOOLS_BENCH_SUBJECT_H_
#define STRATA_TOOLS_BENCH_SUBJECT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/facade/options.h"
#include "strata/tools/bench_script.h"

namespace strata {

// One row of the table of what is measured.
struct BenchAllocator {
  enum class Kind {
    kNull,    // two calls that do nothing: what the driving loop costs
    kFacade,  // a strategy, through the facade and the default chain
    kPeer,    // a peer (peers/registry.h), on the device of the facade
    kMalloc,  // the process's malloc and free
  };

  std::string name;
  Kind kind = Kind::kNull;
  // For kMalloc: the library to preload, without the end of its file name, and
  // a symbol that no other malloc has. Both empty: the C library's.
  std::string library;
  std::string symbol;
};

// null, every strategy of this build, every peer, and the host allocators.
const std::vector<BenchAllocator>& BenchAllocators();

// Errors: std::invalid_argument naming the known allocators.
const BenchAllocator& FindBenchAllocator(std::string_view name);

// An allocator at work on a script.
//
// Threads: one.
class BenchSubject {
 public:
  BenchSubject() = default;
  BenchSubject(const BenchSubject&) = delete;
  BenchSubject& operator=(const BenchSubject&) = delete;
  virtual ~BenchSubject() = default;

  // Runs the script's loop `passes` times; returns the processor time of this
  // thread. Processor time, because on a busy machine the clock on the wall
  // mostly measures the others (hotpath.md §9).
  //
  // Errors: std::bad_alloc if the allocator has no memory left.
  virtual std::chrono::nanoseconds Run(std::size_t passes) = 0;
  // Allocations served so far, as the allocator itself counts; no value if it
  // does not.
  virtual std::optional<std::uint64_t> allocations() = 0;
  // The most held from the system at once; no value if it does not tell.
  virtual std::optional<std::uint64_t> peak_reserved_bytes() = 0;
};

// The processor time of the calling thread.
std::chrono::nanoseconds ThreadTime();

// Drives a `Heap`, which has a type Slot, Allocate(Slot&, bytes), Free(Slot&),
// which leaves an empty slot alone, allocations() and peak_reserved_bytes(). A
// template, so that every heap is called as its users call it.
template <class Heap>
class HeapSubject final : public BenchSubject {
 public:
  template <class... Arguments>
  explicit HeapSubject(BenchScript script, Arguments&&... arguments)
      : script_(std::move(script)),
        heap_(std::forward<Arguments>(arguments)...),
        slots_(script_.slots) {
    Follow(script_.prologue);
  }
  ~HeapSubject() override {
    for (typename Heap::Slot& slot : slots_) heap_.Free(slot);
  }

  std::chrono::nanoseconds Run(std::size_t passes) override {
    const std::chrono::nanoseconds start = ThreadTime();
    for (std::size_t i = 0; i < passes; ++i) Follow(script_.loop);
    return ThreadTime() - start;
  }
  std::optional<std::uint64_t> allocations() override {
    return heap_.allocations();
  }
  std::optional<std::uint64_t> peak_reserved_bytes() override {
    return heap_.peak_reserved_bytes();
  }

  Heap& heap() { return heap_; }

 private:
  void Follow(const std::vector<BenchStep>& steps) {
    for (const BenchStep& step : steps) {
      if (step.bytes != 0) {
        heap_.Allocate(slots_[step.slot], step.bytes);
      } else {
        heap_.Free(slots_[step.slot]);
      }
    }
  }

  const BenchScript script_;
  Heap heap_;
  std::vector<typename Heap::Slot> slots_;
};

// `options` are those of the facade; the strategy is the allocator's.
//
// Errors: std::invalid_argument for a wrong option, std::bad_alloc.
std::unique_ptr<BenchSubject> MakeBenchSubject(const BenchAllocator& allocator,
                                               BenchScript script,
                                               const Options& options);

}  // namespace strata

#endif  // STRATA_TOOLS_BENCH_SUBJECT_H_
