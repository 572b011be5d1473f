// Seeded schedules of threads that allocate and free. In every order of the
// points between a search and a wait, no thread sleeps while memory for it is
// free (tf_bfc.md R46, paddle.md §5-B7).

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "strata/tests/testing/layers/arena_place.h"
#include "strata/tests/testing/turnstile.h"

namespace strata {
namespace {

constexpr std::size_t kThreads = 4;
constexpr std::size_t kArenaBytes = 64;
constexpr int kRounds = 5;

// One schedule: an arena with a possible thread switch at every call.
struct Schedule {
  explicit Schedule(std::uint64_t seed) : turnstile(kThreads, seed) {
    RetryOptions options;
    options.time = std::chrono::seconds(10);
    options.clock = &turnstile;
    place = std::make_unique<ArenaPlace>(
        kArenaBytes, options, [this](CallPoint) { turnstile.Step(); },
        // A usage of 0 would hide a lost wake-up.
        /*knows_usage=*/seed % 2 == 0);
    registration = Reclaimer::Register(place->ladder(),
                                       Reclaimer::Step::kDrainFrees, step);
  }

  // A rung of the ladder that only switches threads.
  class StepSource final : public Reclaimer::Source {
   public:
    explicit StepSource(Turnstile& turnstile) : turnstile_(turnstile) {}
    std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
      return 0;
    }
    std::size_t Reclaim(Stream /*stream*/,
                        std::size_t /*bytes*/) noexcept override {
      turnstile_.Step();
      return 0;
    }

   private:
    Turnstile& turnstile_;
  };

  Turnstile turnstile;
  StepSource step{turnstile};
  std::unique_ptr<ArenaPlace> place;
  Reclaimer::Registration registration;
  std::atomic<int> failures{0};
  std::atomic<std::uint64_t> waited_ms{0};
};

AllocationPtr Ask(Schedule& schedule, std::size_t bytes) {
  Failure failure;
  AllocationPtr result =
      (*schedule.place)->AllocateOrNull(Request{bytes}, failure);
  if (result == nullptr) {
    ++schedule.failures;
    schedule.waited_ms += failure.waited_ms;
  }
  return result;
}

template <class Program>
void RunSchedule(Schedule& schedule, std::uint64_t seed, bool end_together,
                 Program program) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937_64 random(seed * kThreads + i);
      schedule.turnstile.Start(i);
      for (int round = 0; round < kRounds; ++round) program(random);
      schedule.turnstile.Finish(end_together);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// No thread requests memory while it holds some, so every request must succeed.
TEST(RetrySchedulesTest, NoWakeUpIsLostInAThousandSchedules) {
  std::uint64_t steps = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Schedule schedule(seed);
    RunSchedule(
        schedule, seed, /*end_together=*/true, [&](std::mt19937_64& random) {
          AllocationPtr held = Ask(schedule, 1 + random() % kArenaBytes);
          for (auto holds = random() % 4; holds != 0; --holds) {
            schedule.turnstile.Step();
          }
        });
    ASSERT_FALSE(schedule.turnstile.is_stuck());
    ASSERT_EQ(schedule.failures, 0);
    ASSERT_EQ(schedule.place->live_bytes(), 0U);
    steps += schedule.turnstile.steps();
  }
  EXPECT_GT(steps, 100000U);  // the threads did interfere
}

// Every thread requests more while it holds memory, so some must fail: at once,
// not at the deadline.
TEST(RetrySchedulesTest, NoRingOfWaitersWaitsUntilTheDeadline) {
  int failures = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Schedule schedule(seed);
    RunSchedule(
        schedule, seed, /*end_together=*/false, [&](std::mt19937_64& random) {
          const AllocationPtr first = Ask(schedule, 1 + random() % kArenaBytes);
          const AllocationPtr second =
              Ask(schedule, 1 + random() % kArenaBytes);
        });
    ASSERT_FALSE(schedule.turnstile.is_stuck());
    ASSERT_EQ(schedule.waited_ms, 0U);
    ASSERT_EQ(schedule.place->live_bytes(), 0U);
    failures += schedule.failures;
  }
  EXPECT_GT(failures, 0);
}

}  // namespace
}  // namespace strata
