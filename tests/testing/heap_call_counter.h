#ifndef STRATA_TESTS_TESTING_HEAP_CALL_COUNTER_H_
#define STRATA_TESTS_TESTING_HEAP_CALL_COUNTER_H_

#include <cstdint>

namespace strata {

// Counts the calls of operator new and delete by the calling thread since
// construction (with a sanitizer: malloc and free). Using this class replaces
// both operators in the whole test binary.
class HeapCallCounter {
 public:
  HeapCallCounter();
  std::uint64_t calls() const;

 private:
  std::uint64_t start_ = 0;
};

// While it lives, the calling thread's operator new fails: every time, the nth
// time only, or from the nth time on, counted from 1. Not available with a
// sanitizer, which has its own operators. At most one per thread at a time.
class HeapFailure {
 public:
  // While it lives, no call fails or counts. For code that stands for a driver,
  // which has its own heap.
  class Pause {
   public:
    Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause();
  };

  enum class Lasts : std::uint8_t { kOnce, kFromThenOn };

  HeapFailure() : HeapFailure(1, Lasts::kFromThenOn) {}
  // 0: no call fails.
  explicit HeapFailure(std::uint64_t nth, Lasts lasts = Lasts::kOnce);
  HeapFailure(const HeapFailure&) = delete;
  HeapFailure& operator=(const HeapFailure&) = delete;
  ~HeapFailure();

  // Number of calls of operator new, failed calls included.
  std::uint64_t calls() const;
  static bool is_possible();
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_HEAP_CALL_COUNTER_H_
