#ifndef STRATA_TOOLS_BENCH_SUBJECTS_H_
#define STRATA_TOOLS_BENCH_SUBJECTS_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "strata/tools/bench/player.h"
#include "strata/tools/bench/ring.h"
#include "strata/tools/bench/subject.h"
#include "strata/tools/bench/team.h"

namespace strata::tools {

// A heap (heaps.h), and the members that all subjects share.
template <class Heap>
class HeapSubject : public BenchSubject {
 public:
  template <class... Arguments>
  explicit HeapSubject(BenchScript script, Arguments&&... arguments)
      : script_(std::move(script)),
        heap_(std::forward<Arguments>(arguments)...) {}

  std::optional<std::uint64_t> allocations() override {
    return heap_.allocations();
  }
  std::optional<std::uint64_t> peak_reserved_bytes() override {
    return heap_.peak_reserved_bytes();
  }

  Heap& heap() { return heap_; }
  const BenchScript& script() const { return script_; }

 private:
  const BenchScript script_;
  Heap heap_;
};

// BenchWorkload::Threads::kOne.
template <class Heap>
class OneThreadSubject final : public HeapSubject<Heap> {
 public:
  template <class... Arguments>
  explicit OneThreadSubject(BenchClock clock, Arguments&&... arguments)
      : HeapSubject<Heap>(std::forward<Arguments>(arguments)...),
        clock_(clock),
        player_(this->script(), this->heap().MakeLane(0)) {}

  std::chrono::nanoseconds Run(std::size_t pairs) override {
    const std::chrono::nanoseconds start = TimeOn(clock_);
    player_.Play(pairs);
    return TimeOn(clock_) - start;
  }
  std::uint64_t peak_live_bytes() const override {
    return this->script().peak_live_bytes;
  }

 private:
  const BenchClock clock_;
  BenchPlayer<Heap> player_;
};

// kOwnStreams, kOneStream: thread i is on stream i, or all are on stream 0.
template <class Heap>
class TeamSubject final : public HeapSubject<Heap> {
 public:
  template <class... Arguments>
  TeamSubject(std::size_t threads, bool own_streams,
              const std::vector<int>& cores, Arguments&&... arguments)
      : HeapSubject<Heap>(std::forward<Arguments>(arguments)...),
        players_(threads),
        team_(threads, cores) {
    std::vector<typename Heap::Lane> lanes;
    for (std::size_t i = 0; i < threads; ++i) {
      lanes.push_back(this->heap().MakeLane(own_streams ? i : 0));
    }
    team_.Run([&](std::size_t i) {
      players_[i] =
          std::make_unique<BenchPlayer<Heap>>(this->script(), lanes[i]);
    });
  }

  std::chrono::nanoseconds Run(std::size_t pairs) override {
    const std::vector<std::chrono::nanoseconds> times =
        team_.Run([&](std::size_t i) { players_[i]->Play(pairs); });
    const auto count = static_cast<std::int64_t>(times.size());
    return std::accumulate(times.begin(), times.end(),
                           std::chrono::nanoseconds(0)) /
           count;
  }
  std::uint64_t peak_live_bytes() const override {
    return this->script().peak_live_bytes * players_.size();
  }

 private:
  std::vector<std::unique_ptr<BenchPlayer<Heap>>> players_;
  BenchTeam team_;  // its threads end before the players
};

// kHandOver. Blocks that the script allocates pass through a ring to a thread
// that frees them. The script's frees are left out.
template <class Heap>
class HandOverSubject final : public HeapSubject<Heap> {
 public:
  template <class... Arguments>
  explicit HandOverSubject(const std::vector<int>& cores,
                           Arguments&&... arguments)
      : HeapSubject<Heap>(std::forward<Arguments>(arguments)...),
        bytes_(this->script().loop.front().bytes),
        giver_(this->heap().MakeLane(0)),
        taker_(this->heap().MakeLane(0)),
        team_(2, cores) {}
  // Blocks remain in the ring if a thread failed.
  ~HandOverSubject() override {
    Slot slot{};
    while (ring_.TryPop(slot)) FreeAtEnd(taker_, slot);
  }

  std::chrono::nanoseconds Run(std::size_t pairs) override {
    const std::vector<std::chrono::nanoseconds> times =
        team_.Run([&](std::size_t thread) {
          try {
            thread == 0 ? Give(pairs) : Take(pairs);
          } catch (...) {
            has_failed_ = true;  // lets the other thread stop waiting
            throw;
          }
        });
    return std::max(times[0], times[1]);
  }
  // Besides the ring, the allocating and the freeing thread hold one block
  // each.
  std::uint64_t peak_live_bytes() const override {
    return bytes_ * (ring_.most() + 2);
  }

 private:
  using Slot = typename Heap::Slot;

  void Give(std::size_t pairs) {
    for (std::size_t i = 0; i < pairs; ++i) {
      Slot slot{};
      giver_.Allocate(slot, bytes_);
      while (!ring_.TryPush(slot)) {
        if (has_failed_) return giver_.Free(slot);
        std::this_thread::yield();
      }
    }
  }
  void Take(std::size_t pairs) {
    Slot slot{};
    for (std::size_t i = 0; i < pairs; ++i) {
      while (!ring_.TryPop(slot)) {
        if (has_failed_) return;
        std::this_thread::yield();
      }
      taker_.Free(slot);
    }
  }

  const std::uint64_t bytes_;
  typename Heap::Lane giver_;
  typename Heap::Lane taker_;
  BenchRing<Slot> ring_;
  std::atomic<bool> has_failed_{false};
  BenchTeam team_;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_SUBJECTS_H_
