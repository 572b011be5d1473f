#include "strata/platform/sim/bytes/frame_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "strata/tests/platform/sim/device/sim_fixture.h"

namespace strata::sim {
namespace {

// Bytes of the store that the host backs.
std::uint64_t ResidentBytes(const FrameStore& store) {
  struct stat status = {};
  EXPECT_EQ(fstat(store.fd(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST(FrameStoreTest, ModesHaveNames) {
  EXPECT_EQ(ParseSimData("phantom"), SimData::kPhantom);
  EXPECT_EQ(ParseSimData("small"), SimData::kSmall);
  EXPECT_EQ(ParseSimData("backed"), SimData::kBacked);
  EXPECT_EQ(ParseSimData("poison"), SimData::kPoison);
}

TEST(FrameStoreTest, UnknownModeNamesTheOption) {
  try {
    PlatformOptions options = SimOptions(1, 1);
    options.sim_data = "real";
    SimPlatform platform(options);
    ADD_FAILURE() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("strata_sim_data: 'real'"),
              std::string::npos);
  }
}

TEST(FrameStoreTest, NoRoomNamesTheOptionAndTheSize) {
  try {
    // More than an address space.
    const FrameStore store(SimData::kBacked, std::uint64_t{1} << 62);
    ADD_FAILURE() << "mapped";
  } catch (const std::runtime_error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("strata_sim_data"), std::string::npos);
    EXPECT_NE(what.find("4611686018427387904 bytes"), std::string::npos);
  }
}

TEST(FrameStoreTest, PagesComeWhenTouchedAndGoWithTheirFrame) {
  FrameStore store(SimData::kBacked, 16 * kFrameBytes);
  EXPECT_EQ(ResidentBytes(store), 0u);
  std::memset(store.at(3 * kFrameBytes), 1, 2 * kFrameBytes);
  EXPECT_GE(ResidentBytes(store), 2 * kFrameBytes);
  store.FreeFrames({3 * kFrameBytes, kFrameBytes});
  EXPECT_LE(ResidentBytes(store), kFrameBytes);
  EXPECT_EQ(*store.at(3 * kFrameBytes), 0);
  EXPECT_EQ(*store.at(4 * kFrameBytes), 1);
}

TEST(FrameStoreTest, PoisonMarksFreshAndFreedBytesAndKeepsThem) {
  FrameStore store(SimData::kPoison, kFrameBytes);
  const auto byte = [&](std::uint64_t offset) {
    return static_cast<unsigned char>(*store.at(offset));
  };
  store.Fresh({512, 1024});
  EXPECT_EQ(byte(512), kFreshByte);
  EXPECT_EQ(byte(1535), kFreshByte);
  EXPECT_EQ(byte(511), 0);
  EXPECT_EQ(byte(1536), 0);
  store.Freed({512, 512});
  store.FreeFrames({0, kFrameBytes});
  EXPECT_EQ(byte(512), kFreedByte);
  EXPECT_EQ(byte(1024), kFreshByte);
}

TEST(FrameStoreTest, BackedMemoryIsNotMarked) {
  FrameStore store(SimData::kBacked, kFrameBytes);
  store.Fresh({0, 512});
  store.Freed({0, 512});
  EXPECT_EQ(*store.at(0), 0);
}

}  // namespace
}  // namespace strata::sim
