#include "strata/allocation/hit/remote_frees.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/block_flags.h"

namespace strata {
namespace {

// Records the blocks that it frees.
class RecordingFrees final : public RemoteFrees {
 public:
  void FreeLeft(std::span<Block* const> left) noexcept override {
    ++batches;
    blocks.insert(blocks.end(), left.begin(), left.end());
  }

  int batches = 0;
  std::vector<Block*> blocks;
};

class RemoteFreesTest : public testing::Test {
 protected:
  static Block LiveBlock() {
    Block block;
    block.flags = kBlockLive;
    return block;
  }

  RecordingFrees frees_;
};

TEST_F(RemoteFreesTest, IsClosedAtFirst) {
  Block block = LiveBlock();
  EXPECT_FALSE(frees_.Leave(block));
  EXPECT_TRUE(IsPlain(block));
  EXPECT_FALSE(frees_.any());
}

TEST_F(RemoteFreesTest, GivesAllThatWasLeftInItsOrder) {
  frees_.Open();
  std::vector<Block> blocks(RemoteFrees::kMost, LiveBlock());
  // More than one round of the ring.
  for (int i = 0; i < 5; ++i) {
    std::vector<Block*> left;
    for (std::size_t k = 0; k < 40; ++k) {
      SetFlags(blocks[k], kBlockLive);
      ASSERT_TRUE(frees_.Leave(blocks[k]));
      left.push_back(&blocks[k]);
    }
    EXPECT_TRUE(frees_.any());
    frees_.TakeIn();
    EXPECT_FALSE(frees_.any());
    EXPECT_EQ(frees_.blocks, left);
    EXPECT_EQ(frees_.batches, i + 1);
    frees_.blocks.clear();
    frees_.TakeIn();
    EXPECT_EQ(frees_.batches, i + 1);  // an empty drain is no batch
  }
}

TEST_F(RemoteFreesTest, ABlockThatWaitsIsNotLive) {
  frees_.Open();
  Block block = LiveBlock();
  ASSERT_TRUE(frees_.Leave(block));
  EXPECT_FALSE(HasFlag(block, kBlockLive));
}

TEST_F(RemoteFreesTest, NoMoreWaitThanItSays) {
  frees_.Open();
  std::vector<Block> blocks(RemoteFrees::kMost + 1, LiveBlock());
  auto* const owner = reinterpret_cast<Allocator*>(&blocks);
  for (Block& block : blocks) block.owner = owner;
  for (std::size_t i = 0; i < RemoteFrees::kMost; ++i) {
    ASSERT_TRUE(frees_.Leave(blocks[i]));
  }
  EXPECT_FALSE(frees_.Leave(blocks.back()));
  EXPECT_TRUE(IsPlain(blocks.back()));
  EXPECT_EQ(blocks.back().owner, owner);
  frees_.TakeIn();
  EXPECT_EQ(frees_.blocks.size(), RemoteFrees::kMost);
  EXPECT_TRUE(frees_.Leave(blocks.back()));
}

TEST_F(RemoteFreesTest, WhatWasLeftBeforeCloseStays) {
  frees_.Open();
  std::array<Block, 2> blocks{LiveBlock(), LiveBlock()};
  ASSERT_TRUE(frees_.Leave(blocks[0]));
  frees_.Close();
  EXPECT_FALSE(frees_.Leave(blocks[1]));
  EXPECT_TRUE(IsPlain(blocks[1]));
  EXPECT_TRUE(frees_.any());
  frees_.TakeIn();
  EXPECT_EQ(frees_.blocks, std::vector<Block*>{blocks.data()});
  frees_.Open();
  EXPECT_TRUE(frees_.Leave(blocks[1]));
}

// Two threads queue their blocks in order. No block is lost or duplicated.
TEST_F(RemoteFreesTest, ThreadsLeaveBlocksWhileTheyAreTakenIn) {
  constexpr std::size_t kBlocks = 5000;
  frees_.Open();
  std::array<std::vector<Block>, 2> blocks;
  std::vector<std::thread> threads;
  for (std::vector<Block>& own : blocks) {
    own.assign(kBlocks, LiveBlock());
    threads.emplace_back([&] {
      for (Block& block : own) {
        while (!frees_.Leave(block)) std::this_thread::yield();
      }
    });
  }
  while (frees_.blocks.size() < 2 * kBlocks) {
    frees_.TakeIn();
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  std::array<std::size_t, 2> seen{};
  for (const Block* block : frees_.blocks) {
    const bool is_second =
        block >= blocks[1].data() && block < blocks[1].data() + kBlocks;
    const std::size_t of = is_second ? 1 : 0;
    ASSERT_EQ(block, &blocks[of][seen[of]]);
    ++seen[of];
  }
  EXPECT_FALSE(frees_.any());
}

}  // namespace
}  // namespace strata
