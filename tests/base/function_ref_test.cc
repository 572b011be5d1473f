#include "strata/base/function_ref.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

int Twice(FunctionRef<int(int)> function) { return function(function(1)); }

TEST(FunctionRefTest, CallsWhatItRefersTo) {
  int added = 10;
  EXPECT_EQ(Twice([&](int value) { return value + added++; }), 22);
  EXPECT_EQ(added, 12);
}

TEST(FunctionRefTest, ACopyRefersToTheSame) {
  int calls = 0;
  auto count = [&calls](int value) mutable { return calls += value; };
  const FunctionRef<int(int)> first = count;
  const FunctionRef<int(int)> second = first;
  EXPECT_EQ(first(1) + second(2), 1 + 3);
}

TEST(FunctionRefTest, TakesWhatIsConstAndWhatReturnsSomethingElse) {
  const auto is_even = [](long value) { return value % 2 == 0; };
  EXPECT_EQ(FunctionRef<int(int)>(is_even)(4), 1);
  bool called = false;
  const auto call = [&called] { return called = true; };
  FunctionRef<void()>{call}();
  EXPECT_TRUE(called);
}

TEST(FunctionRefTest, PassesReferencesAndWhatCanOnlyBeMoved) {
  int target = 0;
  const auto set = [](int& where) { where = 7; };
  FunctionRef<void(int&)>{set}(target);
  EXPECT_EQ(target, 7);
  const auto get = [](std::unique_ptr<int> owned) { return *owned; };
  EXPECT_EQ(
      FunctionRef<int(std::unique_ptr<int>)>{get}(std::make_unique<int>(3)), 3);
}

TEST(FunctionRefTest, MakesNoHeapCallWhateverTheSize) {
  const std::array<int, 64> large{1, 2, 3};
  const HeapCallCounter heap;
  EXPECT_EQ(Twice([large](int value) {
              return large[static_cast<std::size_t>(value)];
            }),
            3);
  EXPECT_EQ(heap.calls(), 0U);
}

static_assert(std::is_trivially_copyable_v<FunctionRef<void()>>);

}  // namespace
}  // namespace strata
