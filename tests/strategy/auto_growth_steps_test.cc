// The plans of auto_growth: a step that repeats is served in the memory it had,
// and whatever else happens finds the blocks as if there were no plan.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/record_slab.h"
#include "strata/allocation/size.h"
#include "strata/tests/testing/block_counter.h"
#include "strata/tests/testing/heap_call_counter.h"
#include "strata/tests/testing/test_place.h"

namespace strata {
namespace {

// Allocates `bytes` into a slot, or, with 0, frees it.
struct Event {
  std::size_t slot;
  std::size_t bytes;
};
using Program = std::vector<Event>;

// Forward and backward: what the former keeps the latter frees, in the opposite
// order, and each layer has a workspace.
Program Training(std::size_t layers) {
  Program program;
  for (std::size_t i = 0; i < layers; ++i) {
    program.push_back({i, Kibibytes(1 + (i * 37) % 200)});
    program.push_back({layers, Kibibytes(5 + (i * 91) % 300)});
    program.push_back({layers, 0});
  }
  for (std::size_t i = layers; i-- > 0;) {
    program.push_back({layers, Kibibytes(7 + (i * 53) % 300)});
    program.push_back({i, 0});
    program.push_back({layers, 0});
  }
  return program;
}

// Random lifetimes; what the last `crossing` slots hold is freed in the next
// step only, once what follows it is there.
Program Random(std::uint32_t seed, std::size_t slots, std::size_t crossing) {
  std::mt19937 random(seed);
  Program program;
  std::vector<std::size_t> live;
  const auto free_one = [&] {
    const std::size_t k = random() % live.size();
    program.push_back({live[k], 0});
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(k));
  };
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const std::size_t scale = Kibibytes(1) << (random() % 9);
    const std::size_t bytes = 1 + scale * (1 + random() % 7);
    program.push_back({slot, bytes});
    live.push_back(slot);
    while (!live.empty() && random() % 3 == 0) free_one();
  }
  while (!live.empty()) free_one();
  for (std::size_t i = 0; i < crossing; ++i) {
    program.push_back({slots + i, Kibibytes(300 + 10 * i)});
  }
  return program;
}

class AutoGrowthStepsTest : public ::testing::Test {
 protected:
  AutoGrowthStepsTest() { Use({}); }
  ~AutoGrowthStepsTest() override {
    live_.clear();
    if (chain_.strategy != nullptr) {
      EXPECT_TRUE(strategy().IsConsistent());
      EXPECT_EQ(strategy().stats().in_use_bytes, 0U);
    }
    chain_ = {};
    place_.reset();
    EXPECT_EQ(RecordSlab::Instance().taken(), taken_);
  }

  void Use(const TestPlaceOptions& options) {
    live_.clear();
    chain_ = {};
    place_ = std::make_unique<TestPlace>(options);
    chain_ = place_->AddChain();
  }
  void UseWithout(const char* option) {
    TestPlaceOptions options;
    options.strategy_options.front_cache = "off";
    options.strategy_options.auto_growth_step_plan =
        option != std::string("plan");
    Use(options);
  }

  AutoGrowthAllocator& strategy() { return chain_.auto_growth(); }
  void Play(const Event& event) {
    if (event.bytes == 0) {
      live_.erase(event.slot);
    } else {
      live_[event.slot] = chain_->Allocate(event.bytes);
    }
  }
  void Play(const Program& program, std::size_t events) {
    for (std::size_t i = 0; i < events; ++i) Play(program[i]);
  }
  void Play(const Program& program) { Play(program, program.size()); }
  void PlaySteps(const Program& program, int steps) {
    for (int i = 0; i < steps; ++i) Play(program);
  }
  std::uint64_t Planned() { return strategy().stats().planned_hits; }
  // Whether the last of many steps follow a plan.
  bool IsPlanned(const Program& program) {
    PlaySteps(program, 6 * kUntilPlanned);
    const std::uint64_t before = Planned();
    PlaySteps(program, 2);
    const auto requests =
        std::count_if(program.begin(), program.end(),
                      [](const Event& event) { return event.bytes != 0; });
    return Planned() - before == 2 * static_cast<std::uint64_t>(requests);
  }
  std::size_t LiveBytes() const {
    std::size_t bytes = 0;
    for (const auto& [slot, allocation] : live_) bytes += allocation->size();
    return bytes;
  }
  // No two live blocks overlap, and the lists have exactly these.
  void ExpectConsistent() {
    std::map<const std::byte*, std::size_t> ranges;
    for (const auto& [slot, allocation] : live_) {
      ranges[static_cast<const std::byte*>(allocation->data())] =
          allocation->size();
    }
    ASSERT_EQ(ranges.size(), live_.size());
    const std::byte* end = nullptr;
    for (const auto& [data, bytes] : ranges) {
      ASSERT_LE(end, data);
      end = data + bytes;
    }
    BlockCounter counter;
    strategy().Accept(counter);
    EXPECT_EQ(counter.live_bytes, LiveBytes());
    const Stats stats = strategy().stats();
    EXPECT_EQ(stats.in_use_bytes, LiveBytes());
    ASSERT_TRUE(strategy().IsConsistent());
  }

  static constexpr int kUntilPlanned = 8;
  const std::size_t taken_ = RecordSlab::Instance().taken();
  std::unique_ptr<TestPlace> place_;
  TestChain chain_;
  std::map<std::size_t, AllocationPtr> live_;
};

TEST_F(AutoGrowthStepsTest, AStepThatRepeatsIsPlanned) {
  EXPECT_TRUE(IsPlanned(Training(40)));
}

// As a program does that logs its memory: while a step is looked for, recorded
// and followed.
TEST_F(AutoGrowthStepsTest, WhoLooksAfterEveryEventHindersNoPlan) {
  for (const char* without : {"", "plan"}) {
    UseWithout(without);
    const Program program = Training(40);
    for (int step = 0; step < 6 * kUntilPlanned; ++step) {
      for (const Event& event : program) {
        Play(event);
        ExpectConsistent();
      }
    }
    EXPECT_EQ(Planned() != 0, without != std::string("plan")) << without;
  }
}

TEST_F(AutoGrowthStepsTest, APlanCutsAndJoinsNothing) {
  const Program program = Training(40);
  ASSERT_TRUE(IsPlanned(program));
  const Stats before = strategy().stats();
  PlaySteps(program, 100);
  const Stats stats = strategy().stats();
  EXPECT_EQ(stats.splits, before.splits);
  EXPECT_EQ(stats.coalesces, before.coalesces);
  EXPECT_GT(stats.cache_hits, before.cache_hits);
}

// Statistics, memory maps, what other streams ask: wherever in the step.
TEST_F(AutoGrowthStepsTest, WhoLooksEndsNoPlan) {
  UseWithout("cache");
  const Program program = Random(5, 90, 2);
  for (std::size_t i = 0; i < 2; ++i) Play({90 + i, Kibibytes(300 + 10 * i)});
  ASSERT_TRUE(IsPlanned(program));
  const Stats before = strategy().stats();
  std::uint64_t requests = 0;
  for (int step = 0; step < 4; ++step) {
    for (const Event& event : program) {
      Play(event);
      requests += event.bytes != 0 ? 1 : 0;
      ExpectConsistent();
    }
  }
  const Stats stats = strategy().stats();
  EXPECT_EQ(stats.planned_hits - before.planned_hits, requests);
  EXPECT_EQ(stats.splits, before.splits);
  EXPECT_EQ(stats.coalesces, before.coalesces);
}

// For more than the records that are kept at hand.
TEST_F(AutoGrowthStepsTest, WhoLooksEndsNoLargePlan) {
  const Program program = Training(1500);
  ASSERT_TRUE(IsPlanned(program));
  const std::uint64_t before = Planned();
  Play(program, program.size() / 2);
  ExpectConsistent();
  for (std::size_t i = program.size() / 2; i < program.size(); ++i) {
    Play(program[i]);
  }
  EXPECT_EQ(Planned() - before, 4500U);
}

TEST_F(AutoGrowthStepsTest, AlsoWithoutAFrontCache) {
  UseWithout("cache");
  EXPECT_TRUE(IsPlanned(Training(40)));
  EXPECT_TRUE(IsPlanned(Random(1, 200, 0)));
}

TEST_F(AutoGrowthStepsTest, NotWithoutTheOption) {
  UseWithout("plan");
  EXPECT_FALSE(IsPlanned(Training(40)));
}

TEST_F(AutoGrowthStepsTest, NotWhereIdleChunksGoBackAtOnce) {
  TestPlaceOptions options;
  options.strategy_options.free_idle_chunk = true;
  Use(options);
  EXPECT_FALSE(IsPlanned(Training(40)));
}

// One that is freed only once the next step has begun, as what a variable of
// the program names is.
TEST_F(AutoGrowthStepsTest, AlsoIfABlockLivesFromStepToStep) {
  UseWithout("cache");
  const Program program = Random(2, 100, 3);
  for (std::size_t i = 0; i < 3; ++i) Play({100 + i, Kibibytes(300 + 10 * i)});
  EXPECT_TRUE(IsPlanned(program));
}

TEST_F(AutoGrowthStepsTest, AStepThatRepeatsGetsTheMemoryItHad) {
  UseWithout("cache");
  const Program program = Training(40);
  ASSERT_TRUE(IsPlanned(program));
  // Of four steps, since a plan may be of two.
  const auto addresses = [&] {
    std::vector<const void*> list;
    for (int step = 0; step < 4; ++step) {
      for (const Event& event : program) {
        Play(event);
        if (event.bytes != 0) list.push_back(live_[event.slot]->data());
      }
    }
    return list;
  };
  const std::vector<const void*> first = addresses();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(addresses(), first);
}

TEST_F(AutoGrowthStepsTest, ReservesNoMoreThanWithoutAPlan) {
  std::size_t reserved[2];
  for (const bool is_on : {false, true}) {
    TestPlaceOptions options;
    options.strategy_options.auto_growth_step_plan = is_on;
    Use(options);
    EXPECT_EQ(IsPlanned(Training(100)), is_on);
    reserved[is_on ? 1 : 0] = place_->pool()->reserved_bytes();
  }
  EXPECT_EQ(reserved[1], reserved[0]);
}

// Whatever the program does instead, wherever it does it.
TEST_F(AutoGrowthStepsTest, SomethingElseFindsTheBlocksAsTheyAre) {
  const Program program = Random(3, 70, 1);
  const std::function<void()> others[] = {
      [&] {
        Play({1000, 777777});
      },
      [&] {
        Play({1000, Mebibytes(30)});
      },
      [&] { live_.erase(70); },
      [&] { EXPECT_GE(strategy().stats().reserved_bytes, LiveBytes()); },
      [&] { strategy().Release(); },
      [&] {
        Request request{Kibibytes(12)};
        request.flags = kLongLived;
        live_[1000] = chain_->Allocate(request);
      },
      [&] {
        Failure failure;
        Request request{Kibibytes(12)};
        request.flags = kNoGrowth;
        live_[1000] = AllocationPtr(chain_->AllocateOrNull(request, failure));
      },
  };
  for (const auto& other : others) {
    for (std::size_t events = 0; events < program.size(); events += 5) {
      SCOPED_TRACE(events);
      UseWithout("cache");
      Play({70, Kibibytes(300)});
      ASSERT_TRUE(IsPlanned(program));
      Play(program, events);
      other();
      ExpectConsistent();
      for (std::size_t i = events; i < program.size(); ++i) Play(program[i]);
      ExpectConsistent();
    }
  }
}

// Steps of random programs that are now and then left or disturbed.
TEST_F(AutoGrowthStepsTest, NothingOverlapsWhateverComesInBetween) {
  std::mt19937 random(4);
  std::uint64_t planned = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    TestPlaceOptions options;
    const char* const caches[] = {"off", "memory", "speed"};
    options.strategy_options.front_cache = caches[seed % 3];
    Use(options);
    const Program program = Random(seed, 20 + seed * 3, seed % 3);
    const std::size_t slots = 20 + seed * 3;
    for (std::size_t i = 0; i < seed % 3; ++i) {
      Play({slots + i, Kibibytes(300 + 10 * i)});
    }
    for (int step = 0; step < 60; ++step) {
      const bool is_disturbed = random() % 12 == 0;
      const std::size_t at = random() % program.size();
      for (std::size_t i = 0; i < program.size(); ++i) {
        if (is_disturbed && i == at) {
          ExpectConsistent();
          Play({5000 + random() % 3, Kibibytes(1 + random() % 500)});
        }
        Play(program[i]);
      }
      if (random() % 20 == 0) ExpectConsistent();
    }
    ExpectConsistent();
    planned += Planned();
  }
  EXPECT_GT(planned, 10000U);
}

TEST_F(AutoGrowthStepsTest, WhatAPlanServesIsCountedAsOthersAre) {
  Stats stats[2];
  for (const bool is_on : {false, true}) {
    TestPlaceOptions options;
    options.strategy_options.auto_growth_step_plan = is_on;
    Use(options);
    const Program program = Training(50);
    EXPECT_EQ(IsPlanned(program), is_on);
    Play(program, 70);
    stats[is_on ? 1 : 0] = strategy().stats();
  }
  EXPECT_EQ(stats[1].cache_hits, stats[0].cache_hits);
  EXPECT_EQ(stats[1].cache_misses, stats[0].cache_misses);
  EXPECT_EQ(stats[1].in_use_bytes, stats[0].in_use_bytes);
  EXPECT_EQ(stats[1].reserved_bytes, stats[0].reserved_bytes);
}

TEST_F(AutoGrowthStepsTest, AllGoesBackWhenAStepIsLeft) {
  const Program program = Training(40);
  ASSERT_TRUE(IsPlanned(program));
  Play(program, 50);
  live_.clear();
  strategy().Release();
  EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
}

TEST_F(AutoGrowthStepsTest, WithoutHostMemoryThereIsNoPlan) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "no heap failures here";
  const Program program = Training(40);
  PlaySteps(program, 3);
  for (std::size_t i = 0; i <= 40; ++i) live_[i];  // nodes of the map
  {
    const HeapFailure failure;
    for (int step = 0; step < 2 * kUntilPlanned; ++step) {
      for (const Event& event : program) {
        live_[event.slot] =
            event.bytes == 0 ? nullptr : chain_->Allocate(event.bytes);
      }
    }
  }
  live_.clear();
  EXPECT_TRUE(strategy().IsConsistent());
  EXPECT_TRUE(IsPlanned(program));
}

// Whoever finds nothing there has to walk: not even what is free was looked at.
TEST_F(AutoGrowthStepsTest, TheHitPathFindsNotAllWhileAPlanWantsMemory) {
  TestPlaceOptions options;
  options.strategy_options.front_cache = "off";
  options.strategy_options.auto_growth_chunk_rule = "exact";
  Use(options);
  Play({0, Mebibytes(8)});
  live_.clear();
  HitPath* const path = strategy().hit_path();
  ASSERT_NE(path, nullptr);
  bool is_declined = false;
  for (int step = 0; step < 10 && !is_declined; ++step) {
    const HitGuard guard(*path);
    EXPECT_TRUE(path->finds_all());
    std::vector<Block*> blocks;
    for (std::size_t i = 0; i < 100 && !is_declined; ++i) {
      Block* const block = path->Take(Kibibytes(1 + i));
      is_declined = block == nullptr;
      if (!is_declined) blocks.push_back(block);
    }
    for (Block* block : blocks) EXPECT_TRUE(path->Give(block));
    EXPECT_EQ(path->finds_all(), !is_declined);
  }
  ASSERT_TRUE(is_declined);
  Play({0, Kibibytes(1)});
  const HitGuard guard(*path);
  EXPECT_TRUE(path->finds_all());
}

// What a plan uses is not free for another stream before its work is done.
TEST_F(AutoGrowthStepsTest, AnotherStreamBorrowsOnlyWhatIsDone) {
  TestPlaceOptions options;
  options.memory_bytes = Gibibytes(4);
  options.progress = "manual";
  options.strategy_options.front_cache = "off";
  Use(options);
  const TestChain borrower = place_->AddChain();
  const auto growths = [&] {
    return place_->device().CallCount(DeviceCall::kMemAlloc);
  };
  const AllocationPtr above = chain_->Allocate(Mebibytes(8));
  // In the 12 MiB below, which nobody has used yet; then step after step.
  const auto step = [&] {
    for (std::size_t i = 0; i < 64; ++i) {
      AllocationPtr block = chain_->Allocate(Mebibytes(2 + i % 8));
      ASSERT_EQ(
          place_->device().EnqueueWork(chain_.stream(), nullptr, 0, 1000, 0),
          Status::kSuccess);
    }
  };
  step();
  place_->device().StepAll();
  for (int i = 0; i < kUntilPlanned; ++i) step();
  ASSERT_EQ(growths(), 1U);
  ASSERT_GT(Planned(), 0U);
  const AllocationPtr grown = borrower->Allocate(Mebibytes(8));
  EXPECT_EQ(growths(), 2U);
  const AllocationPtr rest = borrower->Allocate(Mebibytes(12));
  place_->device().StepAll();
  const AllocationPtr borrowed = borrower->Allocate(Mebibytes(8));
  EXPECT_EQ(borrowed->base(), above->base());
  EXPECT_EQ(growths(), 2U);
}

using AutoGrowthStepsDeathTest = AutoGrowthStepsTest;

TEST_F(AutoGrowthStepsDeathTest, ABlockOfAPlanIsFreedOnce) {
  const Program program = Training(40);
  ASSERT_TRUE(IsPlanned(program));
  Play(program, 4);
  Allocation* const block = live_[0].get();
  EXPECT_DEATH(
      {
        live_[0].reset();
        chain_->Free(AllocationPtr(block));
      },
      "double free");
}

}  // namespace
}  // namespace strata
