// The number of calls of out-of-memory callbacks, and callbacks that remove
// themselves.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

class OutOfMemoryCallbackTest : public FacadeFixture {
 protected:
  bool IsMet(std::size_t bytes, Place place = kPlace) {
    Failure failure;
    const Stream stream =
        place.kind == PlaceKind::kHost ? Stream() : NewStream();
    return facade().TryAlloc(place, Request{bytes}, stream, failure) != nullptr;
  }
  // Adds a callback that counts its calls.
  template <class Body>
  OutOfMemoryCallback Add(Body body, Place place = kPlace) {
    return facade().AddOutOfMemoryCallback(
        place, [this, body = std::move(body)](Place, std::size_t) mutable {
          ++calls_;
          return static_cast<std::size_t>(body());
        });
  }

  std::vector<AllocationPtr> cache_;
  int calls_ = 0;
};

TEST_F(OutOfMemoryCallbackTest, IsAskedUntilItHasGivenEnough) {
  Build();
  for (int i = 0; i < 6; ++i) {
    cache_.push_back(facade().Alloc(kPlace, Mebibytes(10)));
  }
  const auto callback = Add([this] {
    if (cache_.empty()) return std::size_t{0};
    cache_.pop_back();
    return Mebibytes(10);
  });
  EXPECT_TRUE(IsMet(Mebibytes(40)));
  EXPECT_EQ(calls_, 4);
  EXPECT_EQ(cache_.size(), 2U);
}

// No chunk becomes idle before the free of its last block.
TEST_F(OutOfMemoryCallbackTest, IsAskedWhileBytesInUseFall) {
  Build();
  const AllocationPtr rest = facade().Alloc(kPlace, Mebibytes(32));
  while (cache_.size() < 32) {
    cache_.push_back(facade().Alloc(kPlace, Mebibytes(1)));
  }
  const auto callback = Add([this] {
    if (cache_.empty()) return std::size_t{0};
    cache_.pop_back();
    return Mebibytes(1);
  });
  EXPECT_TRUE(IsMet(Mebibytes(32)));
  EXPECT_EQ(calls_, 32);
}

// Device memory that another library holds.
TEST_F(OutOfMemoryCallbackTest, IsAskedWhileTheDeviceHasMoreFree) {
  Build();
  std::vector<DevicePtr> foreign(6);
  for (DevicePtr& ptr : foreign) {
    ASSERT_EQ(device().MemAlloc(&ptr, Mebibytes(10)), Status::kSuccess);
  }
  const auto callback = Add([&] {
    if (foreign.empty()) return std::size_t{0};
    device().MemFree(foreign.back());
    foreign.pop_back();
    return Mebibytes(10);
  });
  EXPECT_TRUE(IsMet(Mebibytes(60)));
  EXPECT_EQ(calls_, 6);
}

TEST_F(OutOfMemoryCallbackTest, IsNotAskedAgainOnceItGivesNothing) {
  Build();
  cache_.push_back(facade().Alloc(kPlace, Mebibytes(60)));
  const auto callback = Add([] { return 0; });
  EXPECT_FALSE(IsMet(Mebibytes(10)));
  EXPECT_EQ(calls_, 1);
}

TEST_F(OutOfMemoryCallbackTest, IsAskedTwiceIfItOnlySaysThatItGives) {
  Build();
  cache_.push_back(facade().Alloc(kPlace, Mebibytes(60)));
  const auto callback = Add([] { return Mebibytes(10); });
  EXPECT_FALSE(IsMet(Mebibytes(10)));
  EXPECT_EQ(calls_, 2);
}

TEST_F(OutOfMemoryCallbackTest, IsAskedTwiceMoreOnceItOnlySaysThatItGives) {
  Build();
  for (int i = 0; i < 2; ++i) {
    cache_.push_back(facade().Alloc(kPlace, Mebibytes(30)));
  }
  const auto callback = Add([this] {
    if (cache_.size() == 2) cache_.pop_back();
    return Mebibytes(30);
  });
  EXPECT_FALSE(IsMet(Mebibytes(60)));
  EXPECT_EQ(calls_, 3);
}

// Bytes in use rise and fall, but never below the value of the previous round.
TEST_F(OutOfMemoryCallbackTest, RoundsEndAlthoughOthersAllocate) {
  Build();
  cache_.push_back(facade().Alloc(kPlace, Mebibytes(40)));
  AllocationPtr of_others;
  const auto callback = Add([&] {
    if (calls_ > 100) return std::size_t{0};
    if (of_others != nullptr) {
      of_others.reset();
    } else {
      of_others = facade().Alloc(kPlace, Mebibytes(2));
    }
    return Mebibytes(2);
  });
  EXPECT_FALSE(IsMet(Mebibytes(60)));
  EXPECT_LE(calls_, 6);
}

TEST_F(OutOfMemoryCallbackTest, IsAskedInRoundsAtABudgetToo) {
  Build("strata_in_use_limit=60MiB");
  for (int i = 0; i < 6; ++i) {
    cache_.push_back(facade().Alloc(kPlace, Mebibytes(10)));
  }
  const auto callback = Add([this] {
    cache_.pop_back();
    return Mebibytes(10);
  });
  EXPECT_TRUE(IsMet(Mebibytes(40)));
  EXPECT_EQ(calls_, 4);
}

// A request for host memory does not wait, but runs its callbacks as often.
TEST_F(OutOfMemoryCallbackTest, IsAskedInRoundsForHostMemoryToo) {
  Build("strata_in_use_limit=60MiB");
  for (int i = 0; i < 6; ++i) {
    cache_.push_back(facade().Alloc(HostPlace(), Mebibytes(10)));
  }
  const auto callback = Add(
      [this] {
        cache_.pop_back();
        return Mebibytes(10);
      },
      HostPlace());
  EXPECT_TRUE(IsMet(Mebibytes(40), HostPlace()));
  EXPECT_EQ(calls_, 4);
}

// ---- Callbacks that remove themselves.

TEST_F(OutOfMemoryCallbackTest, MayResetItsOwnHandle) {
  Build();
  cache_.push_back(facade().Alloc(kPlace, Mebibytes(60)));
  OutOfMemoryCallback callback;
  callback = Add([&] {
    callback.Reset();
    return Mebibytes(10);
  });
  EXPECT_FALSE(IsMet(Mebibytes(10)));
  EXPECT_EQ(calls_, 1);
  EXPECT_FALSE(IsMet(Mebibytes(10)));
  EXPECT_EQ(calls_, 1);
}

TEST_F(OutOfMemoryCallbackTest, MayDestroyItsOwnHandle) {
  Build();
  cache_.push_back(facade().Alloc(kPlace, Mebibytes(60)));
  const auto witness = std::make_shared<std::string>("the callback's own");
  auto handle = std::make_unique<OutOfMemoryCallback>();
  *handle = Add([this, &handle, witness] {
    handle.reset();
    cache_.clear();
    EXPECT_EQ(*witness, "the callback's own");  // the function is still there
    EXPECT_GT(witness.use_count(), 1);
    return Mebibytes(60);
  });
  EXPECT_TRUE(IsMet(Mebibytes(60)));
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(witness.use_count(), 1);  // no longer in use
}

TEST_F(OutOfMemoryCallbackTest, MayReplaceItselfByAnother) {
  Build();
  cache_.push_back(facade().Alloc(kPlace, Mebibytes(60)));
  OutOfMemoryCallback callback;
  callback = Add([&] {
    callback = Add([this] {
      cache_.clear();
      return Mebibytes(60);
    });
    return 1;
  });
  EXPECT_TRUE(IsMet(Mebibytes(60)));
  EXPECT_EQ(calls_, 2);
}

// Its call is an outer frame of the same stack.
TEST_F(OutOfMemoryCallbackTest, MayBeResetInsideAnotherPlacesCallback) {
  Build("strata_in_use_limit=60MiB");
  cache_.push_back(facade().Alloc(kPlace, Mebibytes(60)));
  cache_.push_back(facade().Alloc(HostPlace(), Mebibytes(60)));
  OutOfMemoryCallback outer;
  const auto inner = Add(
      [&] {
        outer.Reset();
        return 0;
      },
      HostPlace());
  outer = Add([this] {
    EXPECT_FALSE(IsMet(Mebibytes(10), HostPlace()));
    return 0;
  });
  EXPECT_FALSE(IsMet(Mebibytes(10)));
  EXPECT_EQ(calls_, 2);
  EXPECT_FALSE(IsMet(Mebibytes(10)));
  EXPECT_EQ(calls_, 2);
}

// The first call to return does not destroy the function while the second runs.
TEST_F(OutOfMemoryCallbackTest, ItsFunctionOutlivesACallInAnotherThread) {
  Build();
  cache_.push_back(facade().Alloc(kPlace, Mebibytes(60)));
  const auto witness = std::make_shared<int>(7);
  std::atomic<int> inside{0};
  std::atomic<bool> was_reset{false};
  OutOfMemoryCallback callback;
  callback = facade().AddOutOfMemoryCallback(
      kPlace, [&, witness](Place, std::size_t) -> std::size_t {
        const bool is_first = ++inside == 1;
        while (inside < 2) std::this_thread::yield();
        if (is_first) {
          callback.Reset();
          was_reset = true;
        } else {
          while (!was_reset) std::this_thread::yield();
          EXPECT_EQ(*witness, 7);
          EXPECT_GT(witness.use_count(), 1);
        }
        return 0;
      });
  const Stream stream = NewStream();
  std::thread other([&] {
    Failure failure;
    const Request request{Mebibytes(10)};
    EXPECT_EQ(facade().TryAlloc(kPlace, request, stream, failure), nullptr);
  });
  EXPECT_FALSE(IsMet(Mebibytes(10)));
  other.join();
  EXPECT_EQ(inside, 2);
  EXPECT_EQ(witness.use_count(), 1);
}

}  // namespace
}  // namespace strata
