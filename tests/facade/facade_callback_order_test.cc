// Out-of-memory callbacks, through the whole chain.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/tests/facade/facade_retry_fixture.h"

namespace strata {
namespace {

using testing::ElementsAre;

class FacadeCallbackOrderTest : public FacadeRetryTest {
 protected:
  OutOfMemoryCallback Add(const std::string& name, int priority,
                          std::size_t gives = 0) {
    return facade().AddOutOfMemoryCallback(
        kPlace,
        [this, name, gives](Place, std::size_t) {
          calls_.push_back(name);
          return gives;
        },
        priority);
  }

  std::vector<std::string> calls_;
};

TEST_F(FacadeCallbackOrderTest, HigherPriorityFirstThenInOrder) {
  BuildWithClock();
  const AllocationPtr held = facade().Alloc(kPlace, kMemoryBytes);
  const auto a = Add("a", 0);
  const auto b = Add("b", 1);
  const auto c = Add("c", 0);
  const auto d = Add("d", -1);
  FailAtOnce(100, NewStream());
  EXPECT_THAT(calls_, ElementsAre("b", "a", "c", "d"));
}

TEST_F(FacadeCallbackOrderTest, IsAskedNoMoreOnceItsHandleIsGone) {
  BuildWithClock();
  const AllocationPtr held = facade().Alloc(kPlace, kMemoryBytes);
  auto a = Add("a", 0);
  auto b = Add("b", 0);
  OutOfMemoryCallback moved = std::move(b);
  { const auto c = Add("c", 0); }
  a.Reset();
  a.Reset();
  FailAtOnce(100, NewStream());
  EXPECT_THAT(calls_, ElementsAre("b"));
  moved = OutOfMemoryCallback();
  FailAtOnce(100, NewStream());
  EXPECT_EQ(calls_.size(), 1U);
}

TEST_F(FacadeCallbackOrderTest, AHandleMayOutliveItsFacade) {
  BuildWithClock();
  OutOfMemoryCallback a = Add("a", 0);
  facade_.reset();
  a.Reset();
}

TEST_F(FacadeCallbackOrderTest, AnEmptyCallbackIsRefused) {
  BuildWithClock();
  EXPECT_THROW(static_cast<void>(facade().AddOutOfMemoryCallback(kPlace, {})),
               std::invalid_argument);
}

// paddle.md §3.5-3: a request needs three rounds of a callback that frees a
// third in each.
TEST_F(FacadeCallbackOrderTest, RoundsGoOnAsLongAsTheyGive) {
  for (const auto& [rounds, calls] :
       {std::pair(-1, 3), {0, 1}, {1, 1}, {2, 2}, {3, 3}, {100, 3}}) {
    SCOPED_TRACE(rounds);
    BuildWithClock("offload_retry_times=" + std::to_string(rounds));
    std::vector<AllocationPtr> cache;
    for (int i = 0; i < 3; ++i) {
      cache.push_back(facade().Alloc(kPlace, Mebibytes(20)));
    }
    int called = 0;
    const auto callback = facade().AddOutOfMemoryCallback(
        kPlace, [&](Place, std::size_t) -> std::size_t {
          ++called;
          if (cache.empty()) return 0;
          cache.pop_back();
          return Mebibytes(20);
        });
    Failure failure;
    const AllocationPtr allocation =
        facade().TryAlloc(kPlace, Request{Mebibytes(60)}, NewStream(), failure);
    EXPECT_EQ(allocation != nullptr, calls == 3);
    EXPECT_EQ(called, calls);
  }
}

TEST_F(FacadeCallbackOrderTest, AreAskedBeforeTheWaitAndNotDuringIt) {
  BuildWithClock();
  AllocationPtr held = facade().Alloc(kPlace, Mebibytes(40));
  AllocationPtr rest = facade().Alloc(kPlace, Mebibytes(20));
  const auto a = Add("a", 0);
  Waiting waiting(*this, Mebibytes(50), NewStream());
  EXPECT_THAT(calls_, ElementsAre("a"));
  rest.reset();
  held.reset();
  EXPECT_NE(waiting.Get(), nullptr);
  EXPECT_THAT(calls_, ElementsAre("a"));
}

// It does not wait although another thread runs: it would wait for itself.
TEST_F(FacadeCallbackOrderTest, MayAllocateAndFree) {
  BuildWithClock();
  AllocationPtr held = facade().Alloc(kPlace, kMemoryBytes);
  const auto callback = facade().AddOutOfMemoryCallback(
      kPlace, [&](Place, std::size_t bytes) -> std::size_t {
        Failure failure;
        EXPECT_EQ(facade().TryAlloc(kPlace, Request{bytes},
                                    facade().GetDefaultStream(kPlace), failure),
                  nullptr);
        held.reset();
        AllocationPtr smaller = facade().Alloc(kPlace, kMemoryBytes / 2);
        smaller.reset();
        return kMemoryBytes;
      });
  std::thread other([&] {
    Failure failure;
    facade().TryAlloc(kPlace, Request{1, 0, kNoRetry},
                      facade().GetDefaultStream(kPlace), failure);
    EXPECT_NE(facade().Alloc(kPlace, kMemoryBytes), nullptr);
  });
  other.join();
  EXPECT_EQ(clock_.waits(), 0U);
}

}  // namespace
}  // namespace strata
