#include "strata/base/list_under_lock.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <mutex>
#include <vector>

#include "strata/platform/locks/spin_lock.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

TEST(ListUnderLockTest, MakesRoomWithoutTheLockUntilAllFits) {
  SpinLock lock;
  std::size_t things = 10;
  std::vector<int> listed;
  std::size_t reserved = 0;
  std::size_t heap_calls = 1;
  ListUnderLock(
      lock, [&] { return things; },
      [&](std::size_t count) {
        // Called without the lock: otherwise this would wait for ever. In the
        // first two calls, more entries appear meanwhile.
        const std::lock_guard<SpinLock> guard(lock);
        listed.reserve(count);
        reserved = count;
        if (things < 40) things += 15;
      },
      [&] {
        const HeapCallCounter heap;
        for (std::size_t i = 0; i < things; ++i) listed.push_back(0);
        heap_calls = heap.calls();
      });
  EXPECT_EQ(listed.size(), 40U);
  EXPECT_GE(reserved, 40U);
  EXPECT_EQ(heap_calls, 0U);
}

TEST(ListUnderLockTest, ListsNothingOfNothing) {
  SpinLock lock;
  int calls = 0;
  ListUnderLock(
      lock, [] { return std::size_t{0}; }, [](std::size_t /*count*/) {},
      [&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace strata
