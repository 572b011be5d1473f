#include "strata/facade/pointer_slots.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace strata {
namespace {

class PointerSlotsTest : public testing::Test {
 protected:
  // Allocations are told apart, and not looked at.
  static Allocation* Record(std::uintptr_t number) {
    return reinterpret_cast<Allocation*>(number * 64);  // NOLINT
  }
  static const void* Address(std::uintptr_t number) {
    return reinterpret_cast<const void*>(0x7f0000000000 +
                                         number * 256);  // NOLINT
  }
  // Addresses after that of 0 which have its slot.
  static std::vector<std::uintptr_t> Rivals(std::size_t count) {
    const auto slots = std::make_unique<PointerSlots>();
    slots->Insert(Address(0), Record(1));
    std::vector<std::uintptr_t> rivals;
    for (std::uintptr_t i = 1; rivals.size() < count; ++i) {
      if (!slots->Insert(Address(i), Record(1))) {
        rivals.push_back(i);
      } else {
        slots->Take(Address(i));
      }
    }
    return rivals;
  }

  PointerSlots slots_;
};

TEST_F(PointerSlotsTest, GivesWhatWasInsertedOnce) {
  EXPECT_EQ(slots_.Find(Address(1)), nullptr);
  EXPECT_EQ(slots_.Take(Address(1)), nullptr);
  EXPECT_TRUE(slots_.Insert(Address(1), Record(1)));
  EXPECT_EQ(slots_.Find(Address(1)), Record(1));
  EXPECT_EQ(slots_.Take(Address(1)), Record(1));
  EXPECT_EQ(slots_.Take(Address(1)), nullptr);
  EXPECT_EQ(slots_.Find(Address(1)), nullptr);
}

TEST_F(PointerSlotsTest, LeavesASlotToWhoHasIt) {
  const std::uintptr_t rival = Rivals(1).front();
  ASSERT_TRUE(slots_.Insert(Address(0), Record(1)));
  EXPECT_FALSE(slots_.Insert(Address(rival), Record(2)));
  EXPECT_FALSE(slots_.Insert(Address(0), Record(3)));
  EXPECT_EQ(slots_.Find(Address(rival)), nullptr);
  EXPECT_EQ(slots_.Take(Address(rival)), nullptr);
  EXPECT_EQ(slots_.Take(Address(0)), Record(1));
  EXPECT_TRUE(slots_.Insert(Address(rival), Record(2)));
  EXPECT_EQ(slots_.Take(Address(0)), nullptr);
  EXPECT_EQ(slots_.Take(Address(rival)), Record(2));
}

TEST_F(PointerSlotsTest, ExchangesAnAddressForWhoHasItsSlot) {
  const std::uintptr_t rival = Rivals(1).front();
  const void* data = Address(0);
  Allocation* allocation = Record(1);
  slots_.Exchange(data, allocation);  // for nobody
  EXPECT_EQ(data, Address(0));
  EXPECT_EQ(allocation, Record(1));
  EXPECT_EQ(slots_.Find(Address(0)), nullptr);
  ASSERT_TRUE(slots_.Insert(Address(rival), Record(2)));
  slots_.Exchange(data, allocation);
  EXPECT_EQ(data, Address(rival));
  EXPECT_EQ(allocation, Record(2));
  EXPECT_EQ(slots_.Find(Address(rival)), nullptr);
  EXPECT_EQ(slots_.Take(Address(0)), Record(1));
}

// What a caller may free by mistake, some of which no address can be.
TEST_F(PointerSlotsTest, KnowsNoAddressThatWasNotInserted) {
  for (std::uintptr_t i = 0; i < 4096; ++i) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    const auto* const any = reinterpret_cast<const void*>(i);
    EXPECT_EQ(slots_.Find(any), nullptr);
    EXPECT_EQ(slots_.Take(any), nullptr);
  }
  EXPECT_TRUE(slots_.Insert(Address(1), Record(1)));
  EXPECT_EQ(slots_.Take(static_cast<const char*>(Address(1)) + 1), nullptr);
  EXPECT_EQ(slots_.Take(Address(1)), Record(1));
}

TEST_F(PointerSlotsTest, HasMostOfAThousand) {
  std::size_t inserted = 0;
  for (std::uintptr_t i = 0; i < 1000; ++i) {
    inserted += slots_.Insert(Address(i * 37), Record(i + 1));
  }
  EXPECT_GT(inserted, 800U);
  std::size_t taken = 0;
  slots_.TakeAll([&taken](Allocation* allocation) {
    EXPECT_NE(allocation, nullptr);
    ++taken;
  });
  EXPECT_EQ(taken, inserted);
  slots_.TakeAll([](Allocation*) { FAIL(); });
}

// Who looks for an address that has to make way finds it, or nothing.
TEST_F(PointerSlotsTest, FindsNoOtherWhileASlotChangesHands) {
  constexpr int kRounds = 200000;
  const std::uintptr_t rival = Rivals(1).front();
  std::atomic<int> round{0};
  std::thread exchanger([&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (round != i) std::this_thread::yield();
      const void* data = Address(rival);
      Allocation* allocation = Record(2);
      slots_.Exchange(data, allocation);
    }
  });
  int wrong = 0;
  for (int i = 1; i <= kRounds; ++i) {
    slots_.Insert(Address(0), Record(1));
    round = i;
    // It takes turns with the other thread where there is one core.
    for (int looks = 1; slots_.Find(Address(rival)) == nullptr; ++looks) {
      const Allocation* const found = slots_.Find(Address(0));
      wrong += found != nullptr && found != Record(1);
      if (looks % 1000 == 0) std::this_thread::yield();
    }
    wrong += slots_.Take(Address(rival)) != Record(2);
  }
  exchanger.join();
  EXPECT_EQ(wrong, 0);
}

// Three addresses of one slot, which everybody wants: whoever has one puts it
// back when he has another.
TEST_F(PointerSlotsTest, ThreadsThatTakeTheSameGetItInTurn) {
  constexpr int kRounds = 1000000;
  constexpr unsigned kThreads = 3;
  const std::vector<std::uintptr_t> rivals = Rivals(2);
  const std::vector<std::uintptr_t> numbers{0, rivals[0], rivals[1]};
  std::vector<std::atomic<int>> holders(numbers.size());
  // Of each address, whether somebody may insert it.
  std::vector<std::atomic<bool>> is_out(numbers.size());
  for (auto& out : is_out) out = true;
  std::atomic<int> wrong{0};
  std::atomic<int> taken{0};
  std::atomic<unsigned> ready{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready != kThreads) std::this_thread::yield();
      std::minstd_rand random(i + 1);
      for (int round = 0; round < kRounds; ++round) {
        const std::size_t any = random() % numbers.size();
        const void* const data = Address(numbers[any]);
        if (is_out[any].exchange(false)) {
          // Nobody else has it, until it is in.
          wrong += holders[any].fetch_add(1) != 0;
          holders[any].fetch_sub(1);
          if (!slots_.Insert(data, Record(any + 1))) is_out[any] = true;
        }
        Allocation* const got = slots_.Take(data);
        if (got == nullptr) continue;
        ++taken;
        wrong += got != Record(any + 1);
        wrong += holders[any].fetch_add(1) != 0;
        holders[any].fetch_sub(1);
        is_out[any] = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(taken, kRounds / 10);
  std::size_t left = 0;
  slots_.TakeAll([&left](Allocation*) { ++left; });
  for (const auto& out : is_out) left += out;
  EXPECT_EQ(left, numbers.size());
}

}  // namespace
}  // namespace strata
