// How a BuddyPool searches, splits, joins and releases. Rule numbers are those
// of paddle.md §3.4, fault numbers those of its §5.

#include "strata/strategy/buddy/buddy_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/base/size.h"
#include "strata/strategy/blocks/front_cache_policy.h"
#include "strata/tests/testing/heap_call_counter.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

class BuddyPoolTest : public ::testing::Test {
 protected:
  explicit BuddyPoolTest(std::uint64_t memory_bytes = Mebibytes(64),
                         std::uint64_t chunk_mib = 1)
      : place_(WithMemory(memory_bytes)) {
    StrategyOptions options;
    options.Edit<FrontCacheOptions>().front_cache =
        "off";  // the rules are about all blocks
    options.Edit<BuddyOptions>().initial_gpu_memory_in_mb = chunk_mib;
    options.Edit<BuddyOptions>().reallocate_gpu_memory_in_mb = chunk_mib;
    source_ = std::make_unique<BuddySource>(
        "test", place_.pool(), place_.NewChainStream(),
        BuddySizes(options, PlaceKind::kDevice));
    pool_ = std::make_unique<BuddyPool>(*source_);
  }
  ~BuddyPoolTest() override {
    pool_->TakeIn();
    GiveIdleBack();
    EXPECT_TRUE(pool_->IsConsistent());
    EXPECT_EQ(pool_->stats().chunks, 0U) << "a test left blocks live";
  }

  static PoolPlaceOptions WithMemory(std::uint64_t bytes) {
    PoolPlaceOptions options;
    options.memory_bytes = bytes;
    return options;
  }
  // Blocks are multiples of 256 bytes.
  Block* Get(std::size_t bytes, std::uint32_t flags = 0) {
    Allocation* allocation = pool_->TryAllocate(Request{bytes, 0, flags},
                                                AlignUp(bytes, 256), failure_);
    return allocation != nullptr ? allocation->block() : nullptr;
  }
  std::size_t GiveIdleBack() {
    std::size_t bytes = 0;
    while (Allocation* memory = pool_->DetachIdle(0)) {
      bytes += memory->size();
      source_->Give(memory);
    }
    return bytes;
  }
  static std::size_t OffsetOf(Block* block) {
    return static_cast<std::size_t>(
        block->data - static_cast<std::byte*>(block->allocation()->base()));
  }
  std::uint64_t Growths() {
    return place_.device().CallCount(DeviceCall::kMemAlloc);
  }

  PoolPlace place_;
  std::unique_ptr<BuddySource> source_;
  std::unique_ptr<BuddyPool> pool_;
  Failure failure_;
};

TEST_F(BuddyPoolTest, Rule3TakesTheSmallestThatFitsAtTheLowestAddress) {
  std::vector<Block*> parts;
  for (const std::size_t size : {4096U, 512U, 2048U, 512U, 2048U, 512U}) {
    parts.push_back(Get(size));
  }
  for (const std::size_t i : {0U, 2U, 4U}) pool_->Give(parts[i]);
  Block* fit = Get(2048);
  EXPECT_EQ(fit, parts[2]);
  EXPECT_EQ(OffsetOf(fit), 4096U + 512);
  EXPECT_EQ(Growths(), 1U);
  for (Block* block : {fit, parts[1], parts[3], parts[5]}) pool_->Give(block);
}

// Rule 3: the index precedes the size: chunks of the wanted size precede
// fallback chunks.
TEST_F(BuddyPoolTest, Rule3WantedChunksComeBeforeFallbackChunks) {
  place_.device().AddFault(FailNth(DeviceCall::kMemAlloc, 1));
  Block* fallback = Get(4096);
  EXPECT_EQ(fallback->chunk->memory->size(), 4096U);
  Block* wanted = Get(Kibibytes(512));
  EXPECT_EQ(wanted->chunk->memory->size(), Mebibytes(1));
  pool_->Give(fallback);
  // The fallback chunk has the better fit.
  Block* block = Get(4096);
  EXPECT_EQ(block->chunk, wanted->chunk);
  // If the wanted chunks have no room, the next index is searched.
  Block* rest = Get(Kibibytes(508));
  Block* last = Get(4096);
  EXPECT_EQ(last->data, fallback->data);
  for (Block* live : {wanted, block, rest, last}) pool_->Give(live);
}

TEST_F(BuddyPoolTest, Rule6TheRequestGetsTheLowEnd) {
  Block* first = Get(1000);
  Block* second = Get(512);
  EXPECT_EQ(OffsetOf(first), 0U);
  EXPECT_EQ(first->size, 1024U);
  EXPECT_EQ(OffsetOf(second), 1024U);
  EXPECT_EQ(pool_->stats().splits, 2U);
  pool_->Give(first);
  pool_->Give(second);
}

// Rule 6, and its fault: a block with slack was counted by its request at the
// allocation and by its size at the free, so the bytes in use drifted.
TEST_F(BuddyPoolTest, Rule6ABlockWithSlackIsCountedWholeBothWays) {
  for (int round = 0; round < 3; ++round) {
    Block* hole = Get(768);
    Block* wall = Get(256);
    pool_->Give(hole);
    Block* block = Get(512);
    EXPECT_EQ(block->data, hole->data);
    EXPECT_EQ(block->size, 768U) << "the rest of 256 bytes is not split off";
    EXPECT_EQ(pool_->stats().in_use_bytes, 768U + 256);
    pool_->Give(block);
    EXPECT_EQ(pool_->stats().in_use_bytes, 256U);
    pool_->Give(wall);
    EXPECT_EQ(pool_->stats().in_use_bytes, 0U);
  }
}

TEST_F(BuddyPoolTest, Rule7JoinsBothNeighboursWithinTheChunk) {
  Block* first = Get(4096);
  Block* second = Get(4096);
  Block* third = Get(4096);
  pool_->Give(first);
  EXPECT_EQ(pool_->stats().coalesces, 0U);
  pool_->Give(third);  // together with the rest of the chunk
  EXPECT_EQ(pool_->stats().free_blocks, 2U);
  EXPECT_EQ(pool_->stats().coalesces, 1U);
  pool_->Give(second);
  EXPECT_EQ(pool_->stats().coalesces, 3U);
  EXPECT_EQ(pool_->stats().free_blocks, 1U);
  EXPECT_EQ(pool_->stats().largest_free_bytes, Mebibytes(1));
}

TEST_F(BuddyPoolTest, Rule7ChunksNeverJoin) {
  Block* first = Get(Mebibytes(1));
  Block* second = Get(Mebibytes(1));
  pool_->Give(first);
  pool_->Give(second);
  EXPECT_EQ(pool_->stats().free_blocks, 2U);
  EXPECT_EQ(pool_->stats().largest_free_bytes, Mebibytes(1));
}

TEST_F(BuddyPoolTest, Rule8OnlyWholeChunksGoBack) {
  Block* kept = Get(1000);
  Block* other = Get(Mebibytes(1));
  pool_->Give(other);
  EXPECT_EQ(pool_->Idle(0).bytes, Mebibytes(1));
  EXPECT_EQ(pool_->Idle(0).system_bytes, kSystemStepBytes);
  EXPECT_EQ(pool_->Idle(1).best_fit, Mebibytes(1));
  EXPECT_EQ(pool_->Idle(Mebibytes(1) + 1).best_fit, 0U);
  EXPECT_EQ(pool_->Idle(1).largest, Mebibytes(1));
  EXPECT_EQ(GiveIdleBack(), Mebibytes(1));
  EXPECT_EQ(GiveIdleBack(), 0U);
  EXPECT_EQ(pool_->Idle(1).largest, 0U);
  pool_->Give(kept);
  EXPECT_EQ(GiveIdleBack(), Mebibytes(1));
}

TEST_F(BuddyPoolTest, TheSmallestIdleChunkThatFitsIsDetached) {
  std::vector<Block*> live;
  for (const std::size_t mib : {3U, 1U, 2U}) live.push_back(Get(mib << 20));
  for (Block* block : live) pool_->Give(block);
  EXPECT_EQ(pool_->Idle(0).bytes, Mebibytes(6));
  EXPECT_EQ(pool_->Idle(Mebibytes(1) + 1).best_fit, Mebibytes(2));
  Allocation* memory = pool_->DetachIdle(Mebibytes(1) + 1);
  EXPECT_EQ(memory->size(), Mebibytes(2));
  source_->Give(memory);
  EXPECT_EQ(pool_->Idle(0).bytes, Mebibytes(4));
  EXPECT_TRUE(pool_->IsConsistent());
}

TEST_F(BuddyPoolTest, AHitMakesNoHeapCallAndNoDeviceCall) {
  std::vector<Block*> live(100);
  for (int round = 0; round < 2; ++round) {
    const std::uint64_t calls = place_.DeviceCalls();
    const HeapCallCounter heap;
    for (std::size_t i = 0; i < live.size(); ++i) live[i] = Get(256 * (i + 1));
    for (std::size_t i = 0; i < live.size(); i += 2) pool_->Give(live[i]);
    for (std::size_t i = 1; i < live.size(); i += 2) pool_->GiveLater(live[i]);
    pool_->TakeIn();
    if (round == 0) continue;
    EXPECT_EQ(heap.calls(), 0U);
    EXPECT_EQ(place_.DeviceCalls(), calls);
  }
}

// More blocks in one chunk than records in stock.
TEST_F(BuddyPoolTest, LackOfRecordsIsNoReasonToGrow) {
  std::vector<Block*> live;
  for (std::size_t i = 0; i < Mebibytes(1) / 512; ++i) live.push_back(Get(512));
  EXPECT_EQ(Growths(), 1U);
  for (Block* block : live) pool_->Give(block);
}

TEST_F(BuddyPoolTest, NoGrowthIsKept) {
  EXPECT_EQ(Get(512, kNoGrowth), nullptr);
  EXPECT_EQ(failure_.reason, Failure::Reason::kNoGrowth);
  EXPECT_EQ(Growths(), 0U);
}

// A request that must not grow is a probe. When a probe counted as a miss, the
// miss of the next request did not count.
TEST_F(BuddyPoolTest, EveryRequestThatMayGrowIsOneHitOrOneMiss) {
  Block* grown = Get(1000);
  Block* found = Get(1000);
  EXPECT_EQ(Get(Mebibytes(1), kNoGrowth), nullptr);
  EXPECT_EQ(pool_->stats().cache_hits, 1U);
  EXPECT_EQ(pool_->stats().cache_misses, 1U);
  pool_->Give(grown);
  pool_->Give(found);
}

TEST_F(BuddyPoolTest, WhatIsGivenLaterIsReusedAtTheNextRequest) {
  Block* block = Get(Mebibytes(1));
  pool_->GiveLater(block);
  EXPECT_EQ(pool_->stats().in_use_bytes, Mebibytes(1));
  block = Get(Mebibytes(1));
  EXPECT_EQ(Growths(), 1U);
  pool_->GiveLater(block);
}

// Blocks that several threads free without a lock, drained meanwhile.
TEST_F(BuddyPoolTest, NothingGivenLaterIsLost) {
  constexpr int kThreads = 4;
  constexpr int kPerThread = 200;
  std::vector<Block*> live(kThreads * kPerThread);
  for (Block*& block : live) block = Get(512);
  {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < live.size(); i += kThreads) {
          pool_->GiveLater(live[i]);
        }
      });
    }
    for (int i = 0; i < 200; ++i) pool_->TakeIn();
    for (std::thread& thread : threads) thread.join();
  }
  pool_->TakeIn();
  EXPECT_EQ(pool_->stats().in_use_bytes, 0U);
  EXPECT_EQ(pool_->stats().free_blocks, 1U);
}

// ---- Rule 9.

using BuddyPoolDeathTest = BuddyPoolTest;

TEST_F(BuddyPoolDeathTest, Rule9FreeingAFreeBlockNamesAddressAndState) {
  Block* block = Get(Mebibytes(1));
  pool_->Give(block);
  EXPECT_DEATH(CheckLive(*block, "test"),
               "double free of 0x[0-9a-f]+ \\(1.0 MiB on device:0\\), which is "
               "free");
}

TEST_F(BuddyPoolDeathTest, Rule9FreeingAJoinedBlockNamesAddressAndState) {
  Block* low = Get(4096);
  Block* high = Get(4096);
  pool_->Give(low);
  pool_->Give(high);
  EXPECT_DEATH(CheckLive(*high, "test"),
               "double free of 0x[0-9a-f]+1000 \\(.* on device:0\\), which is "
               "joined to a neighbour");
}

TEST_F(BuddyPoolDeathTest, Rule9FreeingAWaitingBlockNamesAddressAndState) {
  Block* block = Get(4096);
  pool_->GiveLater(block);
  EXPECT_DEATH(CheckLive(*block, "test"),
               "double free of 0x[0-9a-f]+ \\(4.0 KiB on device:0\\), which is "
               "on its way back");
}

// ---- Against a model.

// The rules again, as simply as possible: blocks in a sorted map.
class Model {
 public:
  void AddChunk(std::uintptr_t at, std::size_t bytes, bool is_fallback) {
    blocks_[at] = Piece{bytes, true, is_fallback, true};
  }
  // If the chunk is one free block, removes it and returns true.
  bool RemoveChunk(std::uintptr_t at, std::size_t bytes) {
    const auto found = blocks_.find(at);
    if (found == blocks_.end() || !found->second.is_free ||
        found->second.bytes != bytes || !found->second.starts_chunk) {
      return false;
    }
    blocks_.erase(found);
    return true;
  }
  std::optional<std::uintptr_t> Allocate(std::size_t size) {
    auto best = blocks_.end();
    for (auto i = blocks_.begin(); i != blocks_.end(); ++i) {
      if (!i->second.is_free || i->second.bytes < size) continue;
      // Equal blocks are in address order.
      if (best == blocks_.end() || Rank(i->second) < Rank(best->second)) {
        best = i;
      }
    }
    if (best == blocks_.end()) return std::nullopt;
    Piece& piece = best->second;
    if (piece.bytes - size >= 512) {
      blocks_[best->first + size] =
          Piece{piece.bytes - size, true, piece.is_fallback, false};
      piece.bytes = size;
    }
    piece.is_free = false;
    in_use_ += piece.bytes;
    return best->first;
  }
  void Free(std::uintptr_t at) {
    auto block = blocks_.find(at);
    in_use_ -= block->second.bytes;
    block->second.is_free = true;
    const auto next = std::next(block);
    if (next != blocks_.end() && CanJoin(*block, *next)) Join(block, next);
    if (block == blocks_.begin()) return;
    const auto previous = std::prev(block);
    if (CanJoin(*previous, *block)) Join(previous, block);
  }
  std::size_t SizeAt(std::uintptr_t at) const { return blocks_.at(at).bytes; }
  std::size_t in_use() const { return in_use_; }

 private:
  struct Piece {
    std::size_t bytes;
    bool is_free;
    bool is_fallback;
    bool starts_chunk;
  };
  using Blocks = std::map<std::uintptr_t, Piece>;

  static std::pair<bool, std::size_t> Rank(const Piece& piece) {
    return {piece.is_fallback, piece.bytes};
  }
  static bool CanJoin(const Blocks::value_type& low,
                      const Blocks::value_type& high) {
    return low.second.is_free && high.second.is_free &&
           !high.second.starts_chunk &&
           low.first + low.second.bytes == high.first;
  }
  void Join(Blocks::iterator low, Blocks::iterator high) {
    low->second.bytes += high->second.bytes;
    blocks_.erase(high);
  }

  Blocks blocks_;
  std::size_t in_use_ = 0;
};

class BuddyPoolModelTest : public BuddyPoolTest {
 protected:
  // Chunks of 4 MiB are wanted; the last ones must be smaller.
  BuddyPoolModelTest() : BuddyPoolTest(Mebibytes(38), 4) {
    place_.pool()->AddVisitor(
        [this](void* data, std::size_t bytes, int change) {
          const auto at = reinterpret_cast<std::uintptr_t>(data);
          if (change > 0) {
            model_.AddChunk(at, bytes, bytes < std::max(size_, Mebibytes(4)));
          } else {
            EXPECT_TRUE(model_.RemoveChunk(at, bytes));
          }
        });
  }

  // The model is notified of the last chunks, so they are released before it is
  // destroyed.
  ~BuddyPoolModelTest() override { GiveIdleBack(); }

  Model model_;
  std::size_t size_ = 0;  // of the current request
};

TEST_F(BuddyPoolModelTest, Rules3To8EveryAddressIsThatOfTheModel) {
  std::mt19937_64 random(42);
  std::vector<Block*> live;
  int refused = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t choice = random() % 200;
    if (choice == 0) {
      GiveIdleBack();
    } else if (choice < 95 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      model_.Free(reinterpret_cast<std::uintptr_t>(live.back()->data));
      if (choice % 2 == 0) {
        pool_->Give(live.back());
      } else {
        pool_->GiveLater(live.back());
        pool_->TakeIn();
      }
      live.pop_back();
    } else {
      const std::size_t bytes = 1 + random() % (1U << (4 + random() % 19));
      size_ = AlignUp(bytes, 256);
      Block* block = Get(bytes);
      const auto expected = model_.Allocate(size_);
      ASSERT_EQ(block != nullptr, expected.has_value()) << "step " << step;
      if (block == nullptr) {
        ++refused;
        EXPECT_EQ(failure_.reason, Failure::Reason::kDeviceMemory);
        continue;
      }
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block->data), *expected)
          << "step " << step;
      ASSERT_EQ(block->size, model_.SizeAt(*expected)) << "step " << step;
      live.push_back(block);
    }
    ASSERT_EQ(pool_->stats().in_use_bytes, model_.in_use()) << "step " << step;
    if (step % 500 == 0) {
      ASSERT_TRUE(pool_->IsConsistent()) << "step " << step;
    }
  }
  EXPECT_GT(refused, 0) << "the program never reaches the end of the memory";
  for (Block* block : live) {
    model_.Free(reinterpret_cast<std::uintptr_t>(block->data));
    pool_->Give(block);
  }
}

}  // namespace
}  // namespace strata
