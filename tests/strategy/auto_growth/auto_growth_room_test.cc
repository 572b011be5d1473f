// How auto_growth uses the remaining room: near a limit, or near the end of
// device memory, little may be unused.

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "strata/base/size.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {
namespace {

TestPlaceOptions Bounded(bool by_limit, std::size_t bytes) {
  TestPlaceOptions options;
  options.strategy = "auto_growth";
  options.memory_bytes = by_limit ? Gibibytes(4) : bytes;
  if (by_limit) options.limit_bytes = bytes;
  return options;
}

std::size_t BlocksServed(const TestPlaceOptions& options, std::size_t bytes) {
  TestPlace place(options);
  const TestChain chain = place.AddChain();
  std::vector<AllocationPtr> live;
  Failure failure;
  while (AllocationPtr block = chain->AllocateOrNull(Request{bytes}, failure)) {
    live.push_back(std::move(block));
  }
  return live.size();
}

// Sizes from 1 MiB, some of them at the steps of 512 KiB and just above.
std::vector<std::size_t> SizesUpTo(std::size_t most) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = Mebibytes(1); size <= most;
       size = size * 27 / 26 / 256 * 256) {
    const std::size_t step = AlignUp(size, Kibibytes(512));
    for (const std::size_t bytes : {size, step, step + 256}) {
      if (bytes <= most) sizes.push_back(bytes);
    }
  }
  return sizes;
}

// An earlier fault: under a limit of 64 MiB, only six of 8 blocks of 8 MiB were
// allocated.
TEST(AutoGrowthRoomTest, OneSizeFillsAsMuchAsWithoutAPool) {
  for (const bool by_limit : {false, true}) {
    for (const std::size_t mebibytes : {64U, 128U, 256U, 512U, 1024U}) {
      const std::size_t bytes = Mebibytes(mebibytes);
      TestPlaceOptions options = Bounded(by_limit, bytes);
      for (const std::size_t size : SizesUpTo(bytes / 2)) {
        options.strategy = "direct";
        const std::size_t direct = BlocksServed(options, size);
        options.strategy = "auto_growth";
        EXPECT_GE(BlocksServed(options, size) * 100, direct * 97)
            << size << " bytes in " << mebibytes << " MiB, "
            << (by_limit ? "limit" : "device");
      }
    }
  }
}

// Steps of growing blocks; each step leaves one block live. Returns whether
// they fit on a device 5 % larger than the peak of live bytes.
testing::AssertionResult GrowingStepsFit(std::size_t kept_bytes) {
  constexpr int kSteps = 40;
  const auto large = [&](int step) {
    return Mebibytes(10) + static_cast<std::size_t>(step) * Mebibytes(16);
  };
  const std::size_t peak =
      3 * large(kSteps - 1) + kSteps * AlignUp(kept_bytes, 256);
  TestPlace place(Bounded(false, AlignUp(peak * 105 / 100, Mebibytes(2))));
  const TestChain chain = place.AddChain();
  std::vector<AllocationPtr> kept;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<AllocationPtr> live;
    for (int i = 0; i < 3; ++i) {
      Failure failure;
      live.push_back(chain->AllocateOrNull(Request{large(step)}, failure));
      if (live.back() == nullptr) {
        return testing::AssertionFailure()
               << kept_bytes << " bytes kept: " << failure.ToString();
      }
    }
    Failure failure;
    kept.push_back(chain->AllocateOrNull(Request{kept_bytes}, failure));
    if (kept.back() == nullptr) {
      return testing::AssertionFailure()
             << kept_bytes << " bytes kept: " << failure.ToString();
    }
  }
  return testing::AssertionSuccess();
}

// Blocks of exactly 1 MiB filled the tails of large chunks, and needed 3.8
// times the memory.
TEST(AutoGrowthRoomTest, KeptBlocksOfEverySizeClassBorderPinNoLargeChunk) {
  for (const std::size_t border :
       {Kibibytes(64), Mebibytes(1), Mebibytes(2), Mebibytes(10), Mebibytes(12),
        Mebibytes(14), Mebibytes(20), Mebibytes(32)}) {
    for (const std::size_t kept : {border - 256, border, border + 256}) {
      EXPECT_TRUE(GrowingStepsFit(kept));
    }
  }
}

// An idle chunk is split while there is room, and released for a new one when
// there is none.
TEST(AutoGrowthRoomTest, AHugeIdleChunkIsNotCutForABlockThatStays) {
  for (const bool is_near : {false, true}) {
    TestPlace place(Bounded(false, is_near ? Mebibytes(300) : Gibibytes(4)));
    const TestChain chain = place.AddChain();
    chain->Allocate(Mebibytes(256)).reset();
    const AllocationPtr stays = chain->Allocate(Mebibytes(16));
    EXPECT_EQ(place.pool()->stats().allocations, is_near ? 2U : 1U);
    if (is_near) {
      EXPECT_NO_THROW(chain->Allocate(Mebibytes(256)));
    }
  }
}

// The chunk is released for it only if no other memory is left.
TEST(AutoGrowthRoomTest, TheLastResortCutsAnIdleChunk) {
  TestPlace place(Bounded(false, Mebibytes(64)));
  const TestChain chain = place.AddChain();
  chain->Allocate(Mebibytes(64)).reset();
  const AllocationPtr stays =
      chain->Allocate(Request{Mebibytes(16), 0, kNoGrowth});
  EXPECT_EQ(place.pool()->reserved_bytes(), Mebibytes(64));
}

TEST(AutoGrowthRoomTest, ChunksAboveTheSplitLimitServeOneBlock) {
  TestPlaceOptions options = Bounded(false, Gibibytes(4));
  options.strategy_options.Edit<AutoGrowthOptions>()
      .auto_growth_max_split_size_in_mb = 64;
  options.strategy_options.Edit<AutoGrowthOptions>()
      .auto_growth_give_back_limit = 0;
  TestPlace place(options);
  const TestChain chain = place.AddChain();
  AllocationPtr huge = chain->Allocate(Mebibytes(200));
  void* const base = huge->base();
  huge.reset();
  const AllocationPtr small = chain->Allocate(Mebibytes(16));
  EXPECT_NE(small->base(), base);
  const AllocationPtr nearly = chain->Allocate(Mebibytes(190));
  EXPECT_EQ(nearly->base(), base);
  EXPECT_EQ(nearly->size(), Mebibytes(200));
  const AllocationPtr beside = chain->Allocate(Mebibytes(4));
  EXPECT_NE(beside->base(), base);
  EXPECT_TRUE(chain.auto_growth().IsConsistent());
}

// The device is queried once per GiB of reserved memory, and after a refusal.
TEST(AutoGrowthRoomTest, TheDeviceIsSeldomAsked) {
  TestPlace place(Bounded(false, Gibibytes(4)));
  const TestChain chain = place.AddChain();
  std::vector<AllocationPtr> live;
  const auto asked = [&] {
    return place.device().CallCount(DeviceCall::kMemGetInfo);
  };
  while (place.pool()->reserved_bytes() < Gibibytes(3)) {
    live.push_back(chain->Allocate(Mebibytes(32)));
  }
  EXPECT_GE(asked(), 2U);
  EXPECT_LE(asked(), 4U);
}

// Like the stream of a graph pool while a capture is announced.
class NeverDone final : public ChainStream {
 public:
  using ChainStream::ChainStream;
  Status Synchronize() noexcept override { return Status::kNotReady; }
  bool IsDone() noexcept override { return false; }
};

// An earlier fault: an idle chunk that is too large to split was offered to
// other streams only, and the request failed.
TEST(AutoGrowthRoomTest, AGraphPoolKeepsItsIdleChunks) {
  TestPlace place(Bounded(/*by_limit=*/false, Mebibytes(64)));
  const auto stream =
      std::make_shared<NeverDone>(place.device(), place.NewStream());
  const auto strategy = std::make_shared<AutoGrowthAllocator>(
      place.pool(), stream, AutoGrowthPolicy(StrategyOptions()));
  strategy->Allocate(Mebibytes(40)).reset();
  const AllocationPtr beside = strategy->Allocate(Mebibytes(24));
  ASSERT_EQ(place.pool()->reserved_bytes(), Mebibytes(64));
  Failure failure;
  const AllocationPtr block =
      strategy->AllocateOrNull(Request{Mebibytes(24)}, failure);
  EXPECT_NE(block, nullptr);
}

}  // namespace
}  // namespace strata
