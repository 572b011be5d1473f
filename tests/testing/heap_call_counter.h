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

// The calling thread's operator new fails as long as this lives. Not with a
// sanitizer, which has operators of its own.
class HeapFailure {
 public:
  HeapFailure();
  HeapFailure(const HeapFailure&) = delete;
  HeapFailure& operator=(const HeapFailure&) = delete;
  ~HeapFailure();
  static bool is_possible();
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_HEAP_CALL_COUNTER_H_
