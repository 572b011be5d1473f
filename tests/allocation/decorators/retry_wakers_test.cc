// Other sources of wake-ups: the chunk pool below any layer, and layers that
// held a part of a limit for a moment.

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <utility>

#include "strata/allocation/decorators/limit_allocator.h"
#include "strata/allocation/decorators/stream_safe_allocator.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/tests/allocation/decorators/retry_fixture.h"
#include "strata/tests/testing/layers/pool_place.h"
#include "strata/tests/testing/layers/shelf_allocator.h"

namespace strata {
namespace {

class RetryWakersTest : public RetryFixture {};

TEST_F(RetryWakersTest, AChunkThatGoesBackToTheSystemWakesWaiters) {
  const PoolPlace system_place;
  ChunkPool pool(system_place.system(), Mebibytes(10),
                 std::make_shared<Reclaimer>(Options()));
  pool.reclaimer()->retry().CountThread();
  for (const bool offer : {false, true}) {
    Failure failure;
    Allocation* chunk = pool.TryAllocate(Request{Mebibytes(10)}, failure);
    ASSERT_NE(chunk, nullptr);
    Asker asker(pool, Mebibytes(8));
    clock_.AwaitWaiters(1);
    ChainStream no_stream;
    if (offer) {
      pool.Offer(chunk, no_stream);
    } else {
      pool.DoFree(chunk);
    }
    EXPECT_NE(asker.Get(), nullptr);
    asker.Get().reset();
  }
}

// Refuses the first request when the test allows it.
class SlowRefusal final : public Decorator {
 public:
  explicit SlowRefusal(std::shared_ptr<Allocator> underlying)
      : Decorator(std::move(underlying)) {}

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override {
    if (calls_++ != 0) return Decorator::TryAllocate(request, failure);
    inside.count_down();
    refuse.wait();
    failure = Failure();
    failure.reason = Failure::Reason::kDevice;
    failure.layer = name();
    return nullptr;
  }
  const char* name() const override { return "slow_refusal"; }
  HitPath* hit_path() override { return nullptr; }

  std::latch inside{1};
  std::latch refuse{1};

 private:
  std::atomic<int> calls_{0};
};

TEST_F(RetryWakersTest, AClaimOnTheLimitThatCameToNothingWakesWaiters) {
  const PoolPlace pool_place;
  auto slow = std::make_shared<SlowRefusal>(pool_place.system());
  auto pool = std::make_shared<ChunkPool>(
      slow, Mebibytes(10), std::make_shared<Reclaimer>(Options()));
  // Without the retry layer: its own notification is not under test.
  pool->reclaimer()->retry().CountThread();
  Asker in_vain(*pool, Mebibytes(8));
  slow->inside.wait();
  Asker asker(*pool, Mebibytes(8));
  clock_.AwaitWaiters(1);
  slow->refuse.count_down();
  EXPECT_EQ(in_vain.Get(), nullptr);
  EXPECT_NE(asker.Get(), nullptr);
  asker.Get().reset();
}

TEST_F(RetryWakersTest, ABudgetReservedInVainWakesWaiters) {
  auto slow =
      std::make_shared<SlowRefusal>(std::make_shared<ArenaSystem>(kArenaBytes));
  auto hooked = std::make_shared<HookedAllocator>(slow, nullptr);
  hooked->set_ladder(std::make_shared<Reclaimer>(Options()));
  LimitAllocator limit(hooked, std::make_shared<Budget>(50));
  hooked->reclaimer()->retry().CountThread();
  Asker in_vain(limit, 40);
  slow->inside.wait();
  Asker asker(limit, 40);
  clock_.AwaitWaiters(1);
  slow->refuse.count_down();
  EXPECT_EQ(in_vain.Get(), nullptr);
  EXPECT_NE(asker.Get(), nullptr);
  asker.Get().reset();
}

// A freed marked block is reusable when its streams complete, but that wakes no
// waiter. The thread that then drains it must.
TEST_F(RetryWakersTest, ADeferredFreeThatIsTakenInWakesWaiters) {
  PoolPlaceOptions manual;
  manual.progress = "manual";
  const PoolPlace pool_place(manual);
  const auto ladder = std::make_shared<Reclaimer>(Options());
  DeferredFrees frees(pool_place.timelines(), ladder);
  const Stream user = pool_place.NewStream();
  const auto shelf = std::make_shared<ShelfAllocator>(pool_place.pool());
  StreamSafeAllocator layer(
      shelf, std::shared_ptr<DeferredFrees>(&frees, [](DeferredFrees*) {}),
      pool_place.NewChainStream());
  AllocationPtr held = layer.Allocate(Mebibytes(1));
  EXPECT_TRUE(layer.RecordStream(held.get(), user));
  EXPECT_EQ(pool_place.device().MemsetAsync(
                reinterpret_cast<DevicePtr>(held->data()), 1, 64, user),
            Status::kSuccess);
  held.reset();

  Failure failure;
  failure.reason = Failure::Reason::kDeviceMemory;
  failure.place = DevicePlace(0);
  failure.requested_bytes = Mebibytes(1);
  RetryQueue::Stay stay(ladder->retry(), failure);
  stay.BeginSearch();
  std::thread([&] {
    EXPECT_EQ(frees.Drain(), 0U);
    pool_place.device().StepAll();
    EXPECT_EQ(frees.Drain(), Mebibytes(1));
  }).join();
  // No other thread could wake it: the request would fail.
  EXPECT_TRUE(stay.Wait(failure));
}

TEST_F(RetryWakersTest, ABudgetIsWaitedForToo) {
  auto retry = std::make_shared<RetryAllocator>(
      std::shared_ptr<Allocator>(&*place_, [](Allocator*) {}));
  LimitAllocator limit(retry, std::make_shared<Budget>(50));
  AllocationPtr held = limit.Allocate(40);
  Asker asker(limit, 40);
  clock_.AwaitWaiters(1);
  held.reset();
  EXPECT_NE(asker.Get(), nullptr);
  asker.Get().reset();
  // Above the budget, a wait is pointless.
  const Bystander bystander(limit);
  Failure failure;
  held = limit.Allocate(50);
  EXPECT_EQ(limit.AllocateOrNull(Request{51}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kBudget);
  held.reset();
}

}  // namespace
}  // namespace strata
