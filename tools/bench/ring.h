#ifndef STRATA_TOOLS_BENCH_RING_H_
#define STRATA_TOOLS_BENCH_RING_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

namespace strata::tools {

// Passes values from one thread to another, in order, without a lock.
//
// Model: each side caches the position of the other, and reads it again only if
//   the cached one does not suffice. So it seldom reads the other's cache line.
// Threads: one that pushes, one that pops.
template <class Value>
class BenchRing {
 public:
  static constexpr std::size_t kCapacity = 1024;

  // False, and `value` is untouched, if the ring is full.
  bool TryPush(Value& value) {
    const std::size_t end = end_.load(std::memory_order_relaxed);
    if (end - seen_begin_ == kCapacity) {
      seen_begin_ = begin_.load(std::memory_order_acquire);
      if (end - seen_begin_ == kCapacity) return false;
    }
    values_[end % kCapacity] = std::move(value);
    end_.store(end + 1, std::memory_order_release);
    return true;
  }

  // False if the ring is empty.
  bool TryPop(Value& value) {
    const std::size_t begin = begin_.load(std::memory_order_relaxed);
    if (begin == seen_end_) {
      seen_end_ = end_.load(std::memory_order_acquire);
      if (begin == seen_end_) return false;
      most_ = std::max(most_, seen_end_ - begin);
    }
    value = std::move(values_[begin % kCapacity]);
    begin_.store(begin + 1, std::memory_order_release);
    return true;
  }

  // The most values that the popping thread saw in the ring. Call it in that
  // thread, or when both are idle.
  std::size_t most() const { return most_; }

 private:
  std::vector<Value> values_ = std::vector<Value>(kCapacity);
  // Two cache lines each, because processors fetch them in pairs.
  alignas(128) std::atomic<std::size_t> end_{0};  // pushed
  std::size_t seen_begin_ = 0;  // begin_ as the pushing thread last read it
  alignas(128) std::atomic<std::size_t> begin_{0};  // popped
  std::size_t seen_end_ = 0;  // end_ as the popping thread last read it
  std::size_t most_ = 0;      // written by the popping thread
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_RING_H_
