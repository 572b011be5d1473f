// The switches of PYTORCH_CUDA_ALLOC_CONF (pytorch.md §1.3, §2.1 to §2.5).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/base/size.h"
#include "strata/tests/tools/peers/peer_fixture.h"
#include "strata/tools/peers/pytorch/pytorch_settings.h"
#include "strata/tools/peers/registry.h"

namespace strata::peers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

PytorchSettings SettingsOf(const std::string& switches) {
  return WithPytorchSwitches({}, switches);
}

void ExpectRefused(const std::string& switches, const std::string& message) {
  EXPECT_THAT([&] { SettingsOf(switches); },
              ThrowsMessage<std::invalid_argument>(HasSubstr(message)))
      << switches;
}

TEST(PytorchSwitchesTest, AreReadTogether) {
  const PytorchSettings settings = SettingsOf(
      "max_split_size_mb=64,roundup_power2_divisions=[64:8,>:2],"
      "garbage_collection_threshold=0.6,expandable_segments=True,"
      "per_process_memory_fraction=.5");
  EXPECT_EQ(settings.max_split_bytes, Mebibytes(64));
  EXPECT_EQ(settings.garbage_collection_threshold, 0.6);
  EXPECT_EQ(settings.memory_fraction, 0.5);
  EXPECT_TRUE(settings.expandable_segments);
  EXPECT_TRUE(settings.CollectsGarbage());
  EXPECT_FALSE(SettingsOf("expandable_segments=False").expandable_segments);
}

TEST(PytorchSwitchesTest, UnknownKeyIsNamedWithTheKnownOnes) {
  EXPECT_THAT([] { SettingsOf("max_split_size_mb=64,backend=native"); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("peer:pytorch: 'backend' is not a switch"),
                        HasSubstr("max_split_size_mb, "))));
  ExpectRefused("expandable_segments",
                "'expandable_segments' is not KEY=VALUE");
  ExpectRefused("", "'' is not KEY=VALUE");
  ExpectRefused("expandable_segments=True,expandable_segments=True",
                "'expandable_segments' is given twice");
}

TEST(PytorchSwitchesTest, WrongValueIsNamedWithItsKey) {
  for (const char* value : {"20", "2", "x", "", "-64", "64.5"}) {
    const std::string item = std::string("max_split_size_mb=") + value;
    ExpectRefused(item, "'" + item + "' is not a number of MiB above 20");
  }
  for (const char* value : {"true", "1", ""}) {
    const std::string item = std::string("expandable_segments=") + value;
    ExpectRefused(item, "'" + item + "' is not True or False");
  }
  for (const char* value : {"0", "1", "1.5", "-0.5", "x", ".", "1e-1"}) {
    const std::string item =
        std::string("garbage_collection_threshold=") + value;
    ExpectRefused(item, "'" + item + "' is not a number between 0 and 1");
  }
  for (const char* value : {"0", "1.1", "all"}) {
    const std::string item =
        std::string("per_process_memory_fraction=") + value;
    ExpectRefused(item, "'" + item + "' is not a number above 0 and up to 1");
  }
  for (const char* value : {"3", "0", "", "[", "[]", "[64]", "[65:8]", "[64:3]",
                            "[64:8", "[64:8,]"}) {
    const std::string item = std::string("roundup_power2_divisions=") + value;
    ExpectRefused(item, "'" + item + "' is neither a power of two nor a list");
  }
}

// --- roundup_power2_divisions ------------------------------------------------

TEST(PytorchRoundingTest, WithoutDivisionsIsTo512Bytes) {
  EXPECT_EQ(PytorchSettings().RoundedBytes(1), 512U);
  EXPECT_EQ(PytorchSettings().RoundedBytes(Mebibytes(5) + 1),
            Mebibytes(5) + 512);
  EXPECT_EQ(SettingsOf("roundup_power2_divisions=1").RoundedBytes(1200), 1536U);
}

// Four steps from 4 to 8 MiB: 5, 6, 7 and 8. Divisions apply only to sizes
// above 512 bytes times their number.
TEST(PytorchRoundingTest, DivisionsCutTheIntervalIntoEqualSteps) {
  const PytorchSettings four = SettingsOf("roundup_power2_divisions=4");
  EXPECT_EQ(four.RoundedBytes(1200), 1536U);
  EXPECT_EQ(four.RoundedBytes(2048), 2048U);
  EXPECT_EQ(four.RoundedBytes(2049), 2560U);
  EXPECT_EQ(four.RoundedBytes(Mebibytes(4) + 1), Mebibytes(5));
  EXPECT_EQ(four.RoundedBytes(Mebibytes(5)), Mebibytes(5));
  EXPECT_EQ(four.RoundedBytes(Mebibytes(7) + 1), Mebibytes(8));
  EXPECT_EQ(four.RoundedBytes(Mebibytes(8)), Mebibytes(8));
  const PytorchSettings two = SettingsOf("roundup_power2_divisions=2");
  EXPECT_EQ(two.RoundedBytes(1200), 1536U);
  EXPECT_EQ(two.RoundedBytes(1537), 2048U);
}

// The first item applies to smaller sizes, ">" to larger ones.
TEST(PytorchRoundingTest, ListHasDivisionsByInterval) {
  const PytorchSettings list =
      SettingsOf("roundup_power2_divisions=[64:8,128:2,256:0,>:4]");
  EXPECT_EQ(list.RoundedBytes(Mebibytes(8) + 1), Mebibytes(9));
  EXPECT_EQ(list.RoundedBytes(Mebibytes(84)), Mebibytes(88));
  EXPECT_EQ(list.RoundedBytes(Mebibytes(129)), Mebibytes(192));
  EXPECT_EQ(list.RoundedBytes(Mebibytes(257)), Mebibytes(257));
  EXPECT_EQ(list.RoundedBytes(Mebibytes(513)), Mebibytes(640));
  EXPECT_EQ(list.RoundedBytes(Gibibytes(64) + 1), Gibibytes(80));
}

// --- On a device -------------------------------------------------------------

class PytorchSwitchedPeerTest : public ::testing::Test {
 protected:
  PytorchSwitchedPeerTest()
      : device_(Mebibytes(200)), stream_(device_.legacy()) {}

  void Make(const std::string& switches) {
    peer_ = MakePeer("peer:pytorch:" + switches, device_.device());
  }
  PeerBlock TakeMebibytes(std::size_t mebibytes) {
    return Take(*peer_, Mebibytes(mebibytes), stream_);
  }
  // Sizes of segments allocated since the last call.
  std::vector<std::uint64_t> Segments() {
    return device_.TakeBytes(DeviceCall::kMemAlloc);
  }
  std::uint64_t reserved_mebibytes() {
    return peer_->stats().reserved_bytes >> 20;
  }

  PeerTestDevice device_;
  const Stream stream_;
  std::unique_ptr<Peer> peer_;
};

TEST_F(PytorchSwitchedPeerTest, NameHasTheSwitches) {
  Make("max_split_size_mb=32");
  EXPECT_STREQ(peer_->name(), "peer:pytorch:max_split_size_mb=32");
}

TEST_F(PytorchSwitchedPeerTest, RoundedBlocksAreReusedForOtherSizes) {
  Make("roundup_power2_divisions=4");
  const PeerBlock block = Take(*peer_, Mebibytes(17), stream_);
  EXPECT_EQ(block.bytes, Mebibytes(20));
  peer_->Free(block);
  EXPECT_EQ(Take(*peer_, Mebibytes(20), stream_).address, block.address);
  EXPECT_THAT(Segments(), ElementsAre(Mebibytes(20)));
}

// A free block of 40 MiB: too large for 30 MiB below the limit of 32.
TEST_F(PytorchSwitchedPeerTest, OversizeBlocksServeOversizeRequestsOnly) {
  Make("max_split_size_mb=32");
  const PeerBlock large = TakeMebibytes(40);
  peer_->Free(large);
  EXPECT_NE(TakeMebibytes(30).address, large.address);
  EXPECT_EQ(TakeMebibytes(33).address, large.address);
  EXPECT_THAT(Segments(), ElementsAre(Mebibytes(40), Mebibytes(30)));
}

TEST_F(PytorchSwitchedPeerTest, OversizeBlocksAreNotSplit) {
  Make("max_split_size_mb=32");
  peer_->Free(TakeMebibytes(40));
  EXPECT_EQ(TakeMebibytes(33).bytes, Mebibytes(40));
  const PeerBlock small = TakeMebibytes(25);
  peer_->Free(small);
  EXPECT_EQ(TakeMebibytes(12).bytes, Mebibytes(12));
}

// 60 MiB for a request of 40 MiB would waste 20 MiB. For 41 MiB, less is
// wasted.
TEST_F(PytorchSwitchedPeerTest, OversizeBlockMayBe20MiBLargerAtMost) {
  Make("max_split_size_mb=32");
  const PeerBlock large = TakeMebibytes(60);
  peer_->Free(large);
  EXPECT_NE(TakeMebibytes(40).address, large.address);
  EXPECT_EQ(TakeMebibytes(41).address, large.address);
}

// 24, 60 and 100 MiB are idle. 70 MiB fit into the 100 MiB, so only these are
// released. The block below the limit stays.
TEST_F(PytorchSwitchedPeerTest, ExhaustionReleasesNoMoreThanIsNeeded) {
  Make("max_split_size_mb=32");
  const PeerBlock small = TakeMebibytes(24);
  const PeerBlock first = TakeMebibytes(60);
  const PeerBlock second = TakeMebibytes(100);
  for (const PeerBlock& block : {small, first, second}) peer_->Free(block);
  EXPECT_NE(TakeMebibytes(50).address, 0U);  // from the 60 MiB
  EXPECT_NE(TakeMebibytes(70).address,
            0U);  // releases 100 MiB, allocates 70 MiB
  EXPECT_EQ(device_.Count(DeviceCall::kMemFree), 1U);
  EXPECT_EQ(reserved_mebibytes(), 24U + 60U + 70U);
}

// No block is large enough for 110 MiB: 60 and 50 MiB are released, largest
// first. 40 MiB stay.
TEST_F(PytorchSwitchedPeerTest, ExhaustionReleasesSeveralLargestFirst) {
  Make("max_split_size_mb=32");
  std::vector<PeerBlock> blocks;
  for (const std::size_t mebibytes : {40U, 60U, 50U}) {
    blocks.push_back(TakeMebibytes(mebibytes));
  }
  for (const PeerBlock& block : blocks) peer_->Free(block);
  EXPECT_NE(TakeMebibytes(110).address, 0U);
  EXPECT_EQ(reserved_mebibytes(), 40U + 110U);
  EXPECT_EQ(TakeMebibytes(40).address, blocks[0].address);
}

// 60 MiB of oversize blocks are too few for 180 MiB: all idle memory is
// released, including the segment below the limit.
TEST_F(PytorchSwitchedPeerTest, ReleasesEverythingIfOversizeBlocksAreTooFew) {
  Make("max_split_size_mb=32");
  const PeerBlock small = TakeMebibytes(24);
  const PeerBlock large = TakeMebibytes(60);
  peer_->Free(small);
  peer_->Free(large);
  EXPECT_NE(TakeMebibytes(180).address, 0U);
  // Refused once. The insufficient blocks do not cause another attempt.
  EXPECT_THAT(Segments(), ElementsAre(Mebibytes(24), Mebibytes(60),
                                      Mebibytes(180), Mebibytes(180)));
  EXPECT_EQ(reserved_mebibytes(), 180U);
}

TEST_F(PytorchSwitchedPeerTest, FractionCapsWhatIsReserved) {
  Make("per_process_memory_fraction=0.5");
  const PeerBlock held = TakeMebibytes(60);
  EXPECT_EQ(TakeMebibytes(42).address, 0U);
  EXPECT_NE(TakeMebibytes(40).address, 0U);
  EXPECT_EQ(reserved_mebibytes(), 100U);
  peer_->Free(held);
}

// Segments of 20, 20 and 24 MiB on a device of 200 MiB, all idle. `first`
// became idle two searches before the others. The next search sets its age to
// 3, and the ages of the others to 1.
class PytorchGarbageTest : public PytorchSwitchedPeerTest {
 protected:
  void MakeIdle(const std::string& switches) {
    Make(switches);
    first_ = TakeMebibytes(20);
    second_ = TakeMebibytes(20);
    const PeerBlock third = TakeMebibytes(24);
    peer_->Free(first_);
    if (frees_second_early_) peer_->Free(second_);
    peer_->Free(third);
    peer_->Free(TakeMebibytes(24));
    peer_->Free(TakeMebibytes(24));
    if (!frees_second_early_) peer_->Free(second_);
  }
  // Requests a segment of 30 MiB. Returns the number of segments released for
  // it.
  std::uint64_t ReleasedByRequest() {
    EXPECT_NE(TakeMebibytes(30).address, 0U);
    return device_.Count(DeviceCall::kMemFree);
  }

  PeerBlock first_;
  PeerBlock second_;
  bool frees_second_early_ = false;
};

// 64 MiB are reserved, 4 MiB above the threshold of 0.6 * 0.5 * 200. The mean
// age is 5/3.
TEST_F(PytorchGarbageTest, ReleasesSegmentsOlderThanTheMean) {
  MakeIdle("garbage_collection_threshold=0.6,per_process_memory_fraction=0.5");
  EXPECT_EQ(ReleasedByRequest(), 1U);
  EXPECT_EQ(reserved_mebibytes(), 20U + 24U + 30U);
  EXPECT_EQ(TakeMebibytes(20).address, second_.address);
}

// The mean age is 7/3. Both segments of 20 MiB are older, although one of them
// would be enough.
TEST_F(PytorchGarbageTest, ReleasesAllThatAreOlderThanTheMean) {
  frees_second_early_ = true;
  MakeIdle("garbage_collection_threshold=0.6,per_process_memory_fraction=0.5");
  EXPECT_EQ(ReleasedByRequest(), 2U);
  EXPECT_EQ(reserved_mebibytes(), 24U + 30U);
}

// 34 MiB above the threshold of 30 MiB. After the oldest segment, 14 MiB remain
// above it, and the others have the new mean age, 1.
TEST_F(PytorchGarbageTest, GoesOnUntilTheThresholdIsReached) {
  MakeIdle("garbage_collection_threshold=0.3,per_process_memory_fraction=0.5");
  EXPECT_EQ(ReleasedByRequest(), 3U);
  EXPECT_EQ(reserved_mebibytes(), 30U);
}

TEST_F(PytorchGarbageTest, BelowTheThresholdNothingIsReleased) {
  MakeIdle("garbage_collection_threshold=0.64,per_process_memory_fraction=0.5");
  EXPECT_EQ(ReleasedByRequest(), 0U);
}

TEST_F(PytorchGarbageTest, ThresholdWithoutAFractionHasNoEffect) {
  MakeIdle("garbage_collection_threshold=0.1");
  EXPECT_EQ(ReleasedByRequest(), 0U);
  EXPECT_EQ(reserved_mebibytes(), 64U + 30U);
}

// --- Expandable segments -----------------------------------------------------

TEST_F(PytorchSwitchedPeerTest, ExpandableSegmentsMapGranules) {
  Make("expandable_segments=True");
  TakeMebibytes(21);
  EXPECT_THAT(device_.TakeBytes(DeviceCall::kCreateMemory),
              ElementsAre(Mebibytes(20), Mebibytes(20)));
}

// 20 of 100 MiB are mapped. The cap counts a request as the segment that would
// be allocated without this switch.
TEST_F(PytorchSwitchedPeerTest, ExpandableSegmentsHaveTheCap) {
  Make("expandable_segments=True,per_process_memory_fraction=0.5");
  const PeerBlock held = TakeMebibytes(20);
  EXPECT_EQ(TakeMebibytes(82).address, 0U);
  EXPECT_NE(TakeMebibytes(80).address, 0U);
  peer_->Free(held);
}

// The search for a free block refuses 40 MiB for a request below 32 MiB. Then
// the search for room to grow finds the same block, as in PyTorch.
TEST_F(PytorchSwitchedPeerTest, ExpandableOversizeBlockIsFoundAsRoomToGrow) {
  Make("expandable_segments=True,max_split_size_mb=32");
  const PeerBlock large = TakeMebibytes(40);
  peer_->Free(large);
  device_.TakeBytes(DeviceCall::kCreateMemory);
  const PeerBlock small = TakeMebibytes(30);
  EXPECT_EQ(small.address, large.address);
  EXPECT_EQ(small.bytes, Mebibytes(30));
  EXPECT_THAT(device_.TakeBytes(DeviceCall::kCreateMemory), IsEmpty());
}

}  // namespace
}  // namespace strata::peers
