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

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_HEAP_CALL_COUNTER_H_
