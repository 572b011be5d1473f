// Steps that a program repeats: auto_growth reserves no more memory for them,
// and its lists and statistics are correct at every point of a step.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "strata/allocation/record_slab.h"
#include "strata/base/size.h"
#include "strata/tests/testing/layers/block_counter.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {
namespace {

// Allocates `bytes` into a slot; 0 frees the slot.
struct Event {
  std::size_t slot;
  std::size_t bytes;
};
using Program = std::vector<Event>;

// Forward and backward: the backward pass frees the blocks of the forward pass
// in reverse order, and each layer has a workspace.
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

// Random lifetimes of blocks. All are freed by the end of the step.
Program Random(std::uint32_t seed, std::size_t slots) {
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
  return program;
}

class AutoGrowthStepsTest : public ::testing::TestWithParam<const char*> {
 protected:
  AutoGrowthStepsTest() {
    TestPlaceOptions options;
    options.strategy_options.Edit<FrontCacheOptions>().front_cache = GetParam();
    place_ = std::make_unique<TestPlace>(options);
    chain_ = place_->AddChain();
  }
  ~AutoGrowthStepsTest() override {
    live_.clear();
    EXPECT_TRUE(strategy().IsConsistent());
    EXPECT_EQ(strategy().stats().in_use_bytes, 0U);
    strategy().Release();
    EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
    chain_ = {};
    place_.reset();
    EXPECT_EQ(RecordSlab::Instance().taken(), taken_);
  }

  AutoGrowthAllocator& strategy() { return chain_.auto_growth(); }
  void Play(const Event& event) {
    if (event.bytes == 0) {
      live_.erase(event.slot);
    } else {
      live_[event.slot] = chain_->Allocate(event.bytes);
      ++requests_;
    }
  }
  void Play(const Program& program) {
    for (const Event& event : program) Play(event);
  }
  // Expects that no live blocks overlap, and that the lists and counters
  // contain exactly these blocks.
  void ExpectConsistent() {
    std::map<const std::byte*, std::size_t> ranges;
    std::size_t live_bytes = 0;
    for (const auto& [slot, allocation] : live_) {
      ranges[static_cast<const std::byte*>(allocation->data())] =
          allocation->size();
      live_bytes += allocation->size();
    }
    ASSERT_EQ(ranges.size(), live_.size());
    const std::byte* end = nullptr;
    for (const auto& [data, bytes] : ranges) {
      ASSERT_LE(end, data);
      end = data + bytes;
    }
    BlockCounter counter;
    strategy().Accept(counter);
    EXPECT_EQ(counter.live_bytes, live_bytes);
    const Stats stats = strategy().stats();
    EXPECT_EQ(stats.in_use_bytes, live_bytes);
    EXPECT_EQ(stats.cache_hits + stats.cache_misses, requests_);
    ASSERT_TRUE(strategy().IsConsistent());
  }

  const std::size_t taken_ = RecordSlab::Instance().taken();
  std::unique_ptr<TestPlace> place_;
  TestChain chain_;
  std::map<std::size_t, AllocationPtr> live_;
  std::uint64_t requests_ = 0;
};

INSTANTIATE_TEST_SUITE_P(FrontCache, AutoGrowthStepsTest,
                         ::testing::Values("off", "memory", "speed"),
                         [](const ::testing::TestParamInfo<const char*>& test) {
                           return test.param;
                         });

TEST_P(AutoGrowthStepsTest, StepsThatRepeatReserveNothingMore) {
  const Program program = Training(100);
  for (int step = 0; step < 10; ++step) Play(program);
  const std::size_t reserved = place_->pool()->reserved_bytes();
  const std::uint64_t growths = strategy().stats().cache_misses;
  for (int step = 0; step < 200; ++step) Play(program);
  EXPECT_EQ(place_->pool()->reserved_bytes(), reserved);
  EXPECT_EQ(strategy().stats().cache_misses, growths);
}

// Like a program that logs its memory.
TEST_P(AutoGrowthStepsTest, WhoLooksAfterEveryEventSeesWhatIsLive) {
  const Program program = Training(40);
  for (int step = 0; step < 20; ++step) {
    for (const Event& event : program) {
      Play(event);
      ExpectConsistent();
    }
  }
}

// Steps of random programs, sometimes left in the middle.
TEST_P(AutoGrowthStepsTest, NothingOverlapsWhateverComesInBetween) {
  std::mt19937 random(4);
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = Random(seed, 20 + seed * 3);
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
  }
}

}  // namespace
}  // namespace strata
