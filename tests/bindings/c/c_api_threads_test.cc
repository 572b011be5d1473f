// The C ABI when threads and streams share pointers, and streams end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/hit/chain_lock.h"
#include "strata/bindings/c/c_api_call.h"
#include "strata/bindings/c/strata.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/chains/front.h"
#include "strata/tests/bindings/c/c_api_fixture.h"
#include "strata/tests/testing/at_thread_end.h"

namespace strata {
namespace {

using CApiThreadsTest = CApiTest;

TEST_F(CApiThreadsTest, MemoryOutlivesItsStream) {
  void* const stream = NewStream();
  void* const pointer = Alloc(100, stream);
  EXPECT_EQ(strata_stream_destroyed(facade_, 0, stream), STRATA_OK);
  EXPECT_EQ(strata_stream_destroy(facade_, 0, stream), STRATA_OK);
  EXPECT_EQ(strata_stream_destroy(facade_, 0, stream), STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(Live(), 1U);
  EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK);
}

// As when a destructor at the end of the thread frees a pointer twice.
TEST_F(CApiThreadsTest, ACallThatFailsAtTheEndOfItsThreadSaysWhy) {
  std::string before;
  std::string first;
  std::string after;
  std::thread([&] {
    AtThreadEnd([&] {
      first = strata_last_error();
      EXPECT_EQ(strata_free(facade_, &after), STRATA_UNKNOWN_POINTER);
      after = strata_last_error();
      void* const pointer = Alloc(100, NewStream());
      EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK);
    });
    EXPECT_EQ(strata_alloc(facade_, strata_place{99, 0}, 1, nullptr, nullptr),
              STRATA_INVALID_ARGUMENT);
    before = strata_last_error();
  }).join();
  EXPECT_THAT(before, testing::HasSubstr("strata_alloc"));
  EXPECT_EQ(first, before);
  EXPECT_THAT(after, testing::HasSubstr("is not allocated"));
}

TEST_F(CApiThreadsTest, AThreadMayOwnTheLockOfItsStream) {
  Create("strata_stream_lock=biased");
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1000; ++i) {
      void* const pointer = Alloc(1000);
      EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK);
      EXPECT_EQ(strata_free(facade_, pointer), STRATA_UNKNOWN_POINTER);
    }
    void* const passed_on = Alloc(1000);
    std::thread([&] {
      EXPECT_EQ(strata_free(facade_, passed_on), STRATA_OK);
      EXPECT_EQ(strata_free(facade_, passed_on), STRATA_UNKNOWN_POINTER);
    }).join();
  }
  EXPECT_EQ(Live(), 0U);
}

TEST_F(CApiThreadsTest, MemoryThatChangedStreamsIsKnownToo) {
  void* const user = NewStream();
  void* const kept = Alloc(100, user);
  for (int round = 0; round < 3; ++round) {
    void* const before = NewStream();
    void* const first = Alloc(12 * kMebibyte, before);
    EXPECT_EQ(strata_free(facade_, first), STRATA_OK);
    for (int i = 0; i < 20; ++i) {
      void* const again = Alloc(12 * kMebibyte, user);
      EXPECT_EQ(again, first);
      EXPECT_EQ(strata_record_stream(facade_, again, user), STRATA_OK);
      EXPECT_EQ(strata_free(facade_, again), STRATA_OK);
      EXPECT_EQ(strata_free(facade_, again), STRATA_UNKNOWN_POINTER);
    }
    EXPECT_EQ(strata_stream_destroy(facade_, 0, before), STRATA_OK);
    EXPECT_EQ(strata_release(facade_, kDevice, nullptr), STRATA_OK);
  }
  EXPECT_EQ(strata_free(facade_, kept), STRATA_OK);
  EXPECT_EQ(Live(), 0U);
}

TEST_F(CApiThreadsTest, APointerOfAnotherFacadeIsUnknown) {
  void* const kept = Alloc(1000);
  strata_facade* other = nullptr;
  ASSERT_EQ(strata_create("strata_platform=sim", &other), STRATA_OK);
  EXPECT_EQ(strata_free(other, kept), STRATA_UNKNOWN_POINTER);
  EXPECT_EQ(Live(), 1U);
  EXPECT_EQ(strata_destroy(other), STRATA_OK);
  EXPECT_EQ(strata_free(facade_, kept), STRATA_OK);
}

// Also pointers of ending streams. Their locks serve other streams.
TEST_F(CApiThreadsTest, APointerIsFreedOnceWhileStreamsComeAndGo) {
  constexpr int kRounds = 300;
  constexpr std::size_t kPointers = 16;
  std::vector<std::atomic<void*>> pointers(kPointers);
  std::atomic<std::uint64_t> freed{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      while (!stop) {
        for (const std::atomic<void*>& pointer : pointers) {
          void* const any = pointer;
          if (any == nullptr) continue;
          freed += strata_free(facade_, any) == STRATA_OK;
        }
      }
    });
  }
  std::uint64_t made = 0;
  for (int round = 0; round < kRounds; ++round) {
    void* const stream = NewStream();
    for (std::size_t i = 0; i < kPointers; ++i) {
      void* const pointer = Alloc(std::size_t{1000} << (i % 10), stream);
      ASSERT_NE(pointer, nullptr);
      ++made;
      void* const last = pointers[i].exchange(pointer);
      if (last != nullptr) freed += strata_free(facade_, last) == STRATA_OK;
    }
    ASSERT_EQ(strata_stream_destroy(facade_, 0, stream), STRATA_OK);
  }
  stop = true;
  for (std::thread& other : others) other.join();
  for (void* const last : pointers) {
    freed += strata_free(facade_, last) == STRATA_OK;
  }
  EXPECT_EQ(freed, made);
  EXPECT_EQ(Live(), 0U);
}

TEST_F(CApiThreadsTest, TheLastErrorIsTheThreadsOwnAndSurvivesSuccess) {
  EXPECT_EQ(strata_create("no_such=1", &facade_), STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_free(facade_, Alloc(100)), STRATA_OK);
  EXPECT_THAT(strata_last_error(), testing::HasSubstr("no_such"));
  std::string elsewhere = "?";
  std::thread([&] { elsewhere = strata_last_error(); }).join();
  EXPECT_EQ(elsewhere, "");
}

TEST_F(CApiThreadsTest, OfManyThreadsThatFreeAPointerOneSucceeds) {
  std::vector<void*> pointers;
  for (int i = 0; i < 200; ++i) pointers.push_back(Alloc(1000));
  std::atomic<int> freed{0};
  std::atomic<int> unknown{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (void* pointer : pointers) {
        const strata_status status = strata_free(facade_, pointer);
        freed += status == STRATA_OK;
        unknown += status == STRATA_UNKNOWN_POINTER;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(freed, 200);
  EXPECT_EQ(unknown, 600);
  EXPECT_EQ(Live(), 0U);
}

// Like the threads of autograd and data loaders.
TEST_F(CApiThreadsTest, AnotherThreadFreesWhatOneAllocates) {
  constexpr std::size_t kPointers = 3000;
  void* const stream = NewStream();
  std::vector<void*> pointers(kPointers);
  std::atomic<std::size_t> given{0};
  int wrong = 0;
  std::thread taker([&] {
    for (std::size_t i = 0; i < kPointers; ++i) {
      while (given.load() <= i) std::this_thread::yield();
      wrong += strata_free(facade_, pointers[i]) != STRATA_OK;
      wrong += strata_free(facade_, nullptr) != STRATA_OK;
    }
  });
  for (void*& pointer : pointers) {
    pointer = Alloc(512 + 256 * (given % 7), given % 3 == 0 ? nullptr : stream);
    ++given;
  }
  taker.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Live(), 0U);
}

TEST_F(CApiThreadsTest, ThreadsShareAFacade) {
  std::atomic<int> wrong{0};
  void* const stream = NewStream();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (std::size_t j = 1; j < 200; ++j) {
        void* pointer = nullptr;
        wrong +=
            strata_alloc(facade_, kDevice, 100 * j,
                         i % 2 == 0 ? stream : nullptr, &pointer) != STRATA_OK;
        wrong += strata_record_stream(facade_, pointer, stream) != STRATA_OK;
        wrong += strata_free(facade_, pointer) != STRATA_OK;
        if (j % 50 == 0) strata_release(facade_, kDevice, nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Live(), 0U);
}

// Peaks that are reset, and reached again by hits of the front cache.
class CApiPeakTest : public CApiTest {
 protected:
  // With a lock that does not need an owning thread first.
  CApiPeakTest() {
    Create("strata_stream_lock=word");
    for (int round = 0; round < 3; ++round) {
      FreeAll({Alloc(1000), Alloc(1000), Alloc(1000)});
    }
    facade().ResetPeak(place_);
  }

  AllocatorFacade& facade() { return facade_->facade; }
  Front& front() { return static_cast<Front&>(facade().GetAllocator(place_)); }
  std::uint64_t Peak() { return front().stats().peak_in_use_bytes; }
  void FreeAll(const std::vector<void*>& pointers) {
    for (void* pointer : pointers) {
      EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK);
    }
  }

  const Place place_ = PlaceOf(kDevice);
};

TEST_F(CApiPeakTest, AHitRaisesThePeak) {
  std::vector<void*> pointers;
  for (std::uint64_t live = 1; live <= 3; ++live) {
    pointers.push_back(Alloc(1000));
    EXPECT_EQ(Peak(), 1024 * live);
  }
  FreeAll(pointers);
}

TEST_F(CApiPeakTest, SoDoesOneThatWaitedForTheLock) {
  void* pointer = nullptr;
  std::latch is_known(1);
  std::latch is_locked(1);
  std::thread allocator([&] {
    FreeAll({Alloc(1000)});
    facade().ResetPeak(place_);
    is_known.count_down();
    is_locked.wait();
    pointer = Alloc(1000);
  });
  is_known.wait();
  {
    const std::lock_guard<ChainLock> guard(front().lock());
    is_locked.count_down();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  }
  allocator.join();
  EXPECT_EQ(Peak(), 1024U);
  FreeAll({pointer});
}

// A free of another thread that no hit has drained.
TEST_F(CApiPeakTest, NoPeakCountsWhatWaits) {
  void* const first = Alloc(1000);
  AllocationPtr second = facade().Alloc(place_, 1000);
  std::latch is_known(1);
  std::latch is_cached(1);
  std::thread freer([&] {
    FreeAll({Alloc(1000, NewStream())});  // searches memory in all streams
    is_known.count_down();
    is_cached.wait();
    second.reset();
  });
  is_known.wait();
  FreeAll({Alloc(1000)});
  facade().ResetPeak(place_);
  {
    const std::lock_guard<ChainLock> guard(front().lock());
    is_cached.count_down();
    freer.join();
  }
  ASSERT_TRUE(front().lock().has_waiting());
  void* const third = Alloc(1000);
  EXPECT_EQ(Peak(), 2048U);
  FreeAll({first, third});
}

}  // namespace
}  // namespace strata
