#ifndef STRATA_TESTS_TESTING_HEAP_CALL_COUNTER_H_
#define STRATA_TESTS_TESTING_HEAP_CALL_COUNTER_H_

#include <cstdint>

namespace strata {

// How often the calling thread used operator new or delete since this was
// built (with a sanitizer: malloc or free). Using this class replaces both
// operators in the whole test binary.
class HeapCallCounter {
 public:
  HeapCallCounter();
  std::uint64_t calls() const;

 private:
  std::uint64_t start_ = 0;
};

// The calling thread's operator new fails as long as this lives: every time,
// the nth time only, or from the nth time on, counted from 1. Not with a
// sanitizer, which has operators of its own. One at a time in a thread.
class HeapFailure {
 public:
  // For what has a heap of its own, as a driver has: as long as this lives, no
  // call fails or counts.
  class Pause {
   public:
    Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause();
  };

  enum class Lasts : std::uint8_t { kOnce, kFromThenOn };

  HeapFailure() : HeapFailure(1, Lasts::kFromThenOn) {}
  // 0: none fails.
  explicit HeapFailure(std::uint64_t nth, Lasts lasts = Lasts::kOnce);
  HeapFailure(const HeapFailure&) = delete;
  HeapFailure& operator=(const HeapFailure&) = delete;
  ~HeapFailure();

  // How often operator new was called, failed calls included.
  std::uint64_t calls() const;
  static bool is_possible();
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_HEAP_CALL_COUNTER_H_
