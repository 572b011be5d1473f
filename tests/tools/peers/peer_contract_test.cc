// The contract of every peer, independent of its rules.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/base/size.h"
#include "strata/tests/testing/models/stress_settings.h"
#include "strata/tests/tools/peers/peer_fixture.h"
#include "strata/tools/peers/registry.h"
#include "strata/tools/replay/block_checker.h"

namespace strata::peers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class PeerContractTest : public ::testing::TestWithParam<std::string> {
 protected:
  PeerContractTest() : device_(Mebibytes(256)), stream_(device_.legacy()) {}
  void SetUp() override {
    if (GetParam() == "peer:pytorch_expandable" &&
        !device_.device().caps().virtual_memory) {
      GTEST_SKIP() << "the simulated device has no virtual memory";
    }
    peer_ = MakePeer(GetParam(), device_.device());
  }

  PeerTestDevice device_;
  const Stream stream_;
  std::unique_ptr<Peer> peer_;
};

TEST_P(PeerContractTest, KnowsItsName) { EXPECT_EQ(peer_->name(), GetParam()); }

TEST_P(PeerContractTest, NoBytesAreAtNullAndCountAsNothing) {
  PeerBlock block{1, 1, {}, nullptr};
  EXPECT_TRUE(peer_->Allocate(0, stream_, &block));
  EXPECT_EQ(block.address, 0U);
  EXPECT_EQ(block.bytes, 0U);
  peer_->Free(block);
  EXPECT_EQ(peer_->stats().allocations, 0U);
}

TEST_P(PeerContractTest, CountsWhatIsInUseAndReserved) {
  const PeerBlock block = Take(*peer_, Mebibytes(3), stream_);
  EXPECT_EQ(peer_->stats().allocations, 1U);
  EXPECT_EQ(peer_->stats().in_use_bytes, block.bytes);
  EXPECT_GE(peer_->stats().reserved_bytes, block.bytes);
  peer_->Free(block);
  EXPECT_EQ(peer_->stats().in_use_bytes, 0U);
  EXPECT_GE(peer_->stats().peak_reserved_bytes, block.bytes);
}

TEST_P(PeerContractTest, ReleaseLeavesWhatIsInUse) {
  const PeerBlock held = Take(*peer_, 3'000'000, device_.legacy());
  peer_->Free(Take(*peer_, 5'000'000, device_.legacy()));
  const std::uint64_t reserved_bytes = peer_->stats().reserved_bytes;
  peer_->Release();
  EXPECT_LE(peer_->stats().reserved_bytes, reserved_bytes);
  EXPECT_EQ(peer_->stats().in_use_bytes, held.bytes);
  const PeerBlock again = Take(*peer_, 5'000'000, device_.legacy());
  EXPECT_NE(again.address, 0U);
  peer_->Free(again);
  peer_->Free(held);
}

TEST_P(PeerContractTest, ServesTheSameBlockAgainWithoutTheDevice) {
  peer_->Free(Take(*peer_, Mebibytes(3), stream_));
  const std::uint64_t reserved = peer_->stats().reserved_bytes;
  peer_->Free(Take(*peer_, Mebibytes(3), stream_));
  EXPECT_EQ(peer_->stats().reserved_bytes, reserved);
}

TEST_P(PeerContractTest, ExhaustionLeavesTheBlockAndTheCountersAlone) {
  const PeerBlock held = Take(*peer_, Mebibytes(3), stream_);
  const std::uint64_t in_use = peer_->stats().in_use_bytes;
  for (const std::size_t bytes : {Gibibytes(1), SIZE_MAX, SIZE_MAX - 255}) {
    PeerBlock block{1, 2, {}, nullptr};
    EXPECT_FALSE(peer_->Allocate(bytes, stream_, &block)) << bytes;
    EXPECT_EQ(block.address, 1U);
    EXPECT_EQ(block.bytes, 2U);
  }
  EXPECT_EQ(peer_->stats().in_use_bytes, in_use);
  EXPECT_EQ(peer_->stats().allocations, 1U);
  peer_->Free(held);
}

TEST_P(PeerContractTest, OutOfMemorySaysWhoAndHowMuch) {
  const PeerBlock held = Take(*peer_, Mebibytes(3), stream_);
  EXPECT_THAT([&] { ThrowOutOfMemory(*peer_, device_.device(), Gibibytes(1)); },
              ThrowsMessage<BadAlloc>(AllOf(HasSubstr(GetParam()),
                                            HasSubstr("1024.0 MiB"),
                                            HasSubstr("256.0 MiB"))));
  peer_->Free(held);
}

TEST_P(PeerContractTest, OtherFailureOfTheDeviceIsAnError) {
  const bool is_virtual = GetParam() == "peer:pytorch_expandable";
  const DeviceCall call =
      is_virtual ? DeviceCall::kMapRange : DeviceCall::kMemAlloc;
  device_.device().AddFault({.call = call, .status = Status::kIllegalAddress});
  PeerBlock block;
  EXPECT_THAT(
      [&] { peer_->Allocate(Mebibytes(3), stream_, &block); },
      ThrowsMessage<std::runtime_error>(
          AllOf(HasSubstr(DeviceCallName(call)), HasSubstr("IllegalAddress"))));
  device_.device().ClearFaults();
}

// Random sizes, log-uniform from 1 byte to 32 MiB, on three streams of a device
// that is too small for all blocks.
TEST_P(PeerContractTest, RandomUseKeepsLiveBlocksApart) {
  struct Live {
    PeerBlock block;
    tools::CheckedBlock checked;
  };
  const std::uint64_t operations = StressOperations(20'000);
  std::mt19937_64 random(StressSeed());
  const std::vector<Stream> streams = {stream_, device_.NewStream(),
                                       device_.NewStream()};
  tools::BlockChecker checker;
  std::vector<Live> live;
  std::uint64_t in_use = 0;
  std::uint64_t refused = 0;
  const auto free_one = [&] {
    std::swap(live[random() % live.size()], live.back());
    checker.Freeing(live.back().checked);
    peer_->Free(live.back().block);
    in_use -= live.back().block.bytes;
    live.pop_back();
  };
  for (std::uint64_t i = 0; i < operations; ++i) {
    if (!live.empty() && random() % 100 < 49) {
      free_one();
    } else {
      const std::size_t bytes =
          (std::size_t{1} << random() % 25) + random() % 1000;
      PeerBlock block;
      if (!peer_->Allocate(bytes, streams[random() % 3], &block)) {
        ++refused;
        continue;
      }
      live.push_back({block, {block.address, block.bytes}});
      checker.Allocated(live.back().checked, bytes);
      in_use += block.bytes;
    }
    ASSERT_EQ(peer_->stats().in_use_bytes, in_use);
    ASSERT_LE(in_use, peer_->stats().reserved_bytes);
    ASSERT_LE(peer_->stats().reserved_bytes, Mebibytes(256));
  }
  EXPECT_GT(refused, 0U);
  while (!live.empty()) free_one();
  EXPECT_EQ(peer_->stats().in_use_bytes, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Switches, PeerContractTest,
    ::testing::Values("peer:pytorch:max_split_size_mb=24,"
                      "roundup_power2_divisions=8",
                      "peer:pytorch:garbage_collection_threshold=0.3,"
                      "per_process_memory_fraction=0.9"),
    [](const ::testing::TestParamInfo<std::string>& test) {
      return NameOf(test.param.substr(test.param.find(':') + 1));
    });

INSTANTIATE_TEST_SUITE_P(Peers, PeerContractTest,
                         ::testing::ValuesIn(PeerNames()),
                         [](const ::testing::TestParamInfo<std::string>& test) {
                           return NameOf(
                               test.param.substr(test.param.find(':') + 1));
                         });

TEST(PeerRegistryTest, StrategyOfTheFacadeIsNoPeer) {
  EXPECT_FALSE(IsPeerName("auto_growth"));
  EXPECT_TRUE(IsPeerName("peer:tf_bfc"));
}

TEST(PeerRegistryTest, UnknownPeerNamesTheKnownOnes) {
  for (const std::string& known : PeerNames()) {
    EXPECT_THAT([] { IsPeerName("peer:jemalloc"); },
                ThrowsMessage<std::invalid_argument>(
                    AllOf(HasSubstr("'peer:jemalloc'"), HasSubstr(known))));
  }
}

TEST(PeerRegistryTest, MakesNoPeerForAStrategyOfTheFacade) {
  PeerTestDevice device(Mebibytes(2));
  EXPECT_THROW(MakePeer("auto_growth", device.device()), std::invalid_argument);
}

TEST(PeerRegistryTest, ExpandableSegmentsNeedVirtualMemory) {
  PeerTestDevice device(Mebibytes(2));
  if (device.device().caps().virtual_memory) {
    EXPECT_NO_THROW(MakePeer("peer:pytorch_expandable", device.device()));
  } else {
    EXPECT_THROW(MakePeer("peer:pytorch_expandable", device.device()),
                 std::runtime_error);
  }
}

}  // namespace
}  // namespace strata::peers
