// Mappings and access rights: cuda_semantics.md §4 and T64, T66-T68, T70, T71,
// T76. Work without access is in faults_test.cc.

#include <cstddef>
#include <cstdint>

#include "strata/tests/testing/devices/virtual_memory_fixture.h"

namespace strata {
namespace {

class MappingConformanceTest : public VirtualMemoryFixture {
 protected:
  // A range of three granules. The middle one is not mapped.
  DevicePtr NewHole() {
    const DevicePtr range = NewRange(3 * granule());
    const MemHandle memory = NewHandle(granule());
    for (const std::size_t mapped : {0u, 2u}) {
      EXPECT_EQ(
          device().MapRange(range + mapped * granule(), granule(), 0, memory),
          Status::kSuccess);
    }
    AtEnd([this, range] {
      EXPECT_EQ(device().UnmapRange(range, 3 * granule()), Status::kSuccess);
    });
    return range;
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, MappingConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(MappingConformanceTest, T64CopyNeedsAccess) {
  const DevicePtr range = NewMapping(granule());
  const DevicePtr other = NewMemory(granule());
  const Stream stream = NewStream();
  EXPECT_EQ(device().MemcpyAsync(other, range, granule(), stream),
            Status::kInvalidValue);
  EXPECT_EQ(device().MemcpyAsync(range, other, granule(), stream),
            Status::kInvalidValue);
}

TEST_P(MappingConformanceTest, T66TwoAddressesShareTheirMemory) {
  const MemHandle memory = NewHandle(granule());
  const DevicePtr first = NewRange(granule());
  const DevicePtr second = NewRange(granule());
  Map(first, granule(), memory);
  Map(second, granule(), memory);
  Allow(first, granule());
  Allow(second, granule());
  WriteNow(first, granule(), kFirst);
  ExpectWords(second, granule(), kFirst);
}

TEST_P(MappingConformanceTest, T67UnmapLeavesNoPartOfAMapping) {
  const DevicePtr range = NewMapping(2 * granule());
  Allow(range, 2 * granule());
  WriteNow(range, 2 * granule(), kFirst);
  EXPECT_EQ(device().UnmapRange(range, granule()), Status::kInvalidValue);
  EXPECT_EQ(device().UnmapRange(range + granule(), granule()),
            Status::kInvalidValue);
  ExpectWords(range, 2 * granule(), kFirst);
}

TEST_P(MappingConformanceTest, T67OneUnmapCoversAdjacentMappings) {
  const DevicePtr range = NewRange(2 * granule());
  const MemHandle memory = NewHandle(granule());
  ASSERT_EQ(device().MapRange(range, granule(), 0, memory), Status::kSuccess);
  ASSERT_EQ(device().MapRange(range + granule(), granule(), 0, memory),
            Status::kSuccess);
  EXPECT_EQ(device().UnmapRange(range, 2 * granule()), Status::kSuccess);
}

// V7, V13: every mapping in the range is removed.
TEST_P(MappingConformanceTest, T67OneUnmapCoversHoles) {
  const DevicePtr range = NewHole();
  EXPECT_EQ(device().UnmapRange(range, 3 * granule()), Status::kSuccess);
  const MemHandle memory = NewHandle(granule());
  Map(range, granule(), memory);
  Map(range + 2 * granule(), granule(), memory);
}

TEST_P(MappingConformanceTest, T67UnmapMayEndInAHole) {
  const DevicePtr range = NewHole();
  EXPECT_EQ(device().UnmapRange(range, 2 * granule()), Status::kSuccess);
  const DevicePtr last = range + 2 * granule();
  EXPECT_EQ(AccessOf(last), Access::kNone);
  EXPECT_EQ(device().UnmapRange(last, granule()), Status::kSuccess);
}

TEST_P(MappingConformanceTest, T67UnmapNeedsNoMapping) {
  const DevicePtr range = NewRange(4 * granule());
  EXPECT_EQ(device().UnmapRange(range, granule()), Status::kSuccess);
  EXPECT_EQ(device().UnmapRange(range + 1, granule()), Status::kSuccess);
  EXPECT_EQ(device().UnmapRange(range, granule() / 2), Status::kSuccess);
}

TEST_P(MappingConformanceTest, T67UnmapNeedsAReservation) {
  EXPECT_EQ(device().UnmapRange(0x10000000, granule()), Status::kInvalidValue);
}

TEST_P(MappingConformanceTest, T67NoBytesCannotBeUnmapped) {
  EXPECT_EQ(device().UnmapRange(NewRange(granule()), 0), Status::kInvalidValue);
}

TEST_P(MappingConformanceTest, T68NothingIsMappedOverAMapping) {
  const DevicePtr range = NewRange(4 * granule());
  const MemHandle memory = NewHandle(2 * granule());
  Map(range + granule(), 2 * granule(), memory);
  for (const std::size_t first : {0u, 1u, 2u}) {
    EXPECT_EQ(
        device().MapRange(range + first * granule(), 2 * granule(), 0, memory),
        Status::kInvalidValue)
        << first;
  }
}

TEST_P(MappingConformanceTest, T68ANewMappingHasNoAccess) {
  const DevicePtr range = NewRange(granule());
  const MemHandle memory = NewHandle(granule());
  ASSERT_EQ(device().MapRange(range, granule(), 0, memory), Status::kSuccess);
  Allow(range, granule());
  ASSERT_EQ(device().UnmapRange(range, granule()), Status::kSuccess);
  Map(range, granule(), memory);
  const DevicePtr other = NewMemory(granule());
  const Stream stream = NewStream();
  EXPECT_EQ(device().MemcpyAsync(other, range, granule(), stream),
            Status::kInvalidValue);
}

TEST_P(MappingConformanceTest, T70ARangeGrowsStepByStep) {
  constexpr std::size_t kSteps = 8;
  const DevicePtr range = NewRange(std::size_t{1} << 30);
  for (std::size_t step = 0; step < kSteps; ++step) {
    Map(range + step * granule(), granule(), NewHandle(granule()));
    Allow(range + step * granule(), granule());
  }
  const Stream stream = NewStream();
  ASSERT_EQ(device().MemsetAsync(range, 0x11, kSteps * granule(), stream),
            Status::kSuccess);
  ExpectWords(range, kSteps * granule(), kFirst);
}

// V6: one call covers several mappings.
TEST_P(MappingConformanceTest, T70AccessSpansMappings) {
  const DevicePtr range = NewRange(2 * granule());
  Map(range, granule(), NewHandle(granule()));
  Map(range + granule(), granule(), NewHandle(granule()));
  Allow(range, 2 * granule());
  EXPECT_EQ(AccessOf(range), Access::kReadWrite);
  EXPECT_EQ(AccessOf(range + granule()), Access::kReadWrite);
}

TEST_P(MappingConformanceTest, T70AccessNeedsAMappingThroughout) {
  const DevicePtr range = NewRange(2 * granule());
  Map(range, granule(), NewHandle(granule()));
  const AccessDescriptor both{{Location::Kind::kDevice, 0}, Access::kReadWrite};
  EXPECT_EQ(device().SetAccess(range, 2 * granule(), &both, 1),
            Status::kInvalidValue);
  EXPECT_EQ(AccessOf(range), Access::kNone);
}

TEST_P(MappingConformanceTest, T70AccessNeedsAMapping) {
  const DevicePtr range = NewHole();
  const AccessDescriptor both{{Location::Kind::kDevice, 0}, Access::kReadWrite};
  EXPECT_EQ(device().SetAccess(range + granule(), granule(), &both, 1),
            Status::kInvalidValue);
}

// A driver (580.159) refuses a hole at an end of the range, and accepts one in
// the middle: mappings behind the hole get no access, whatever the status. So
// the simulated device refuses that too.
TEST_P(MappingConformanceTest, T70AccessReachesNothingBehindAHole) {
  const DevicePtr range = NewHole();
  const DevicePtr last = range + 2 * granule();
  const AccessDescriptor both{{Location::Kind::kDevice, 0}, Access::kReadWrite};
  const auto allow = [&](DevicePtr ptr, std::size_t granules) {
    return device().SetAccess(ptr, granules * granule(), &both, 1);
  };
  EXPECT_EQ(allow(range, 3), device().caps().simulated ? Status::kInvalidValue
                                                       : Status::kSuccess);
  EXPECT_EQ(AccessOf(last), Access::kNone);
  EXPECT_EQ(allow(range, 2), Status::kInvalidValue);
  EXPECT_EQ(allow(range + granule(), 2), Status::kInvalidValue);
  EXPECT_EQ(AccessOf(last), Access::kNone);
}

TEST_P(MappingConformanceTest, T71AccessReadsBack) {
  const DevicePtr range = NewMapping(granule());
  EXPECT_EQ(AccessOf(range), Access::kNone);
  Allow(range, granule(), Access::kReadWrite);
  EXPECT_EQ(AccessOf(range), Access::kReadWrite);
  Allow(range, granule(), Access::kRead);
  EXPECT_EQ(AccessOf(range), Access::kRead);
}

TEST_P(MappingConformanceTest, T71ReadOnlyMemoryCanBeRead) {
  const DevicePtr range = NewMapping(granule());
  Allow(range, granule(), Access::kReadWrite);
  WriteNow(range, granule(), kFirst);
  Allow(range, granule(), Access::kRead);
  const Stream stream = NewStream();
  Read(range, granule(), stream);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(range, granule(), kFirst);
}

TEST_P(MappingConformanceTest, T71ReadOnlyMemoryCannotBeWritten) {
  const DevicePtr range = NewMapping(granule());
  Allow(range, granule(), Access::kRead);
  const DevicePtr other = NewMemory(granule());
  const Stream stream = NewStream();
  EXPECT_EQ(device().MemcpyAsync(range, other, granule(), stream),
            Status::kInvalidValue);
}

// V8: work sees the mapping at the time of its submission.
TEST_P(MappingConformanceTest, T76WorkSeesAFreshMapping) {
  constexpr std::uint64_t kRounds = 1000;
  const std::size_t checked = 4096;
  const DevicePtr range = NewRange(granule());
  const MemHandle memory = NewHandle(granule());
  const Stream stream = NewStream();
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    ASSERT_EQ(device().MapRange(range, granule(), 0, memory), Status::kSuccess);
    Allow(range, granule());
    Write(range, checked, round, stream);
    ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    ASSERT_EQ(device().UnmapRange(range, granule()), Status::kSuccess);
  }
  Map(range, granule(), memory);
  Allow(range, granule());
  ExpectWords(range, checked, kRounds - 1);
}

// V10: access rights are per device.
TEST_P(MappingConformanceTest, RuleV10DevicesHaveRightsOfTheirOwn) {
  STRATA_REQUIRE(HasPeers(), kNeedsPeers);
  const DevicePtr range = NewMapping(granule());
  Allow(range, granule(), Access::kReadWrite, 1);
  EXPECT_EQ(AccessOf(range, 0), Access::kNone);
  EXPECT_EQ(AccessOf(range, 1), Access::kReadWrite);
  const Stream stream = NewStream(kStreamNonBlocking, 1);
  Write(range, granule(), kFirst, stream);
  ASSERT_EQ(device(1).StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(range, granule(), kFirst, 1);
}

// V5: one range may contain memory of several devices.
TEST_P(MappingConformanceTest, RuleV5ARangeHoldsSeveralDevicesMemory) {
  STRATA_REQUIRE(HasPeers(), kNeedsPeers);
  MemProperties of_second;
  of_second.location.id = 1;
  const std::size_t before = FreeBytes(1);
  const DevicePtr range = NewRange(2 * granule());
  Map(range, granule(), NewHandle(granule()));
  Map(range + granule(), granule(), NewHandle(granule(), of_second));
  EXPECT_LE(FreeBytes(1), before - granule());
  Allow(range, 2 * granule());
  WriteNow(range, 2 * granule(), kFirst);
  ExpectWords(range, 2 * granule(), kFirst);
}

}  // namespace
}  // namespace strata
