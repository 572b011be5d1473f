// Mappings and the right to access them: cuda_semantics.md §4 and T64, T66-T68,
// T70, T71, T76. Work without that right is in faults_test.cc.

#include <cstddef>
#include <cstdint>

#include "strata/tests/testing/virtual_memory_fixture.h"

namespace strata {
namespace {

using MappingConformanceTest = VirtualMemoryFixture;

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

// V7, V13: a hole in the range is an error that leaves the mappings.
TEST_P(MappingConformanceTest, T67PinsUnmapOverAHole) {
  const DevicePtr range = NewRange(3 * granule());
  const MemHandle memory = NewHandle(granule());
  const DevicePtr last = range + 2 * granule();
  ASSERT_EQ(device().MapRange(range, granule(), 0, memory), Status::kSuccess);
  ASSERT_EQ(device().MapRange(last, granule(), 0, memory), Status::kSuccess);
  const Status status = device().UnmapRange(range, 3 * granule());
  const Status first_left = device().UnmapRange(range, granule());
  const Status last_left = device().UnmapRange(last, granule());
  Pin("unmap_over_a_hole", status);
  Pin("unmap_before_the_hole_afterwards", first_left);
  Pin("unmap_after_the_hole_afterwards", last_left);
  if (sim() != nullptr) {
    EXPECT_EQ(status, Status::kInvalidValue);
    EXPECT_EQ(first_left, Status::kSuccess);
    EXPECT_EQ(last_left, Status::kSuccess);
  }
}

TEST_P(MappingConformanceTest, T68PinsMappingOverAMapping) {
  const DevicePtr range = NewMapping(granule());
  const MemHandle memory = NewHandle(granule());
  const Status status = device().MapRange(range, granule(), 0, memory);
  Pin("map_over_a_mapping", status);
  EXPECT_NE(status, Status::kSuccess);
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

// V8: work sees the mapping that was there when it was submitted.
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

// V10: rights are each device's own.
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

// V5: one range may hold memory of several devices.
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
