// Virtual memory: cuda_semantics.md §4 and T63-T73, T76. Access without the
// right to it is in faults_test.cc.

#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "strata/tests/testing/virtual_memory_fixture.h"

namespace strata {
namespace {

using VirtualMemoryConformanceTest = VirtualMemoryFixture;

INSTANTIATE_TEST_SUITE_P(Devices, VirtualMemoryConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(VirtualMemoryConformanceTest, T63GranularitiesDivideEachOther) {
  std::size_t least = 0;
  std::size_t best = 0;
  ASSERT_EQ(device().Granularity(MemProperties{}, false, &least),
            Status::kSuccess);
  ASSERT_EQ(device().Granularity(MemProperties{}, true, &best),
            Status::kSuccess);
  ASSERT_GT(least, 0u);
  EXPECT_GE(best, least);
  EXPECT_EQ(best % least, 0u);
}

TEST_P(VirtualMemoryConformanceTest, T63MemoryComesInWholeGranules) {
  MemHandle handle;
  EXPECT_EQ(device().CreateMemory(&handle, granule() - 1, MemProperties{}),
            Status::kInvalidValue);
}

TEST_P(VirtualMemoryConformanceTest, T63MappingsAreAligned) {
  const DevicePtr range = NewRange(4 * granule());
  const MemHandle memory = NewHandle(2 * granule());
  EXPECT_EQ(device().MapRange(range + granule() / 2, granule(), 0, memory),
            Status::kInvalidValue);
  EXPECT_EQ(device().MapRange(range, granule() / 2, 0, memory),
            Status::kInvalidValue);
}

TEST_P(VirtualMemoryConformanceTest, T63MappingsBeginAtTheMemorysStart) {
  const DevicePtr range = NewRange(4 * granule());
  const MemHandle memory = NewHandle(2 * granule());
  EXPECT_EQ(device().MapRange(range, granule(), granule(), memory),
            Status::kInvalidValue);
}

TEST_P(VirtualMemoryConformanceTest, T63MappingsStayInsideTheMemory) {
  const DevicePtr range = NewRange(4 * granule());
  const MemHandle memory = NewHandle(granule());
  EXPECT_EQ(device().MapRange(range, 2 * granule(), 0, memory),
            Status::kInvalidValue);
}

// V5: the first part of the memory can be mapped alone.
TEST_P(VirtualMemoryConformanceTest, T63APrefixOfTheMemoryCanBeMapped) {
  const DevicePtr range = NewRange(4 * granule());
  const MemHandle memory = NewHandle(2 * granule());
  Map(range, granule(), memory);
  Allow(range, granule());
  WriteNow(range, granule(), kFirst);
  ExpectWords(range, granule(), kFirst);
}

TEST_P(VirtualMemoryConformanceTest, T63DevicesMustExist) {
  MemProperties properties;
  properties.location.id = 9999;
  MemHandle handle;
  EXPECT_NE(device().CreateMemory(&handle, granule(), properties),
            Status::kSuccess);
}

TEST_P(VirtualMemoryConformanceTest, T64CopyNeedsAccess) {
  const DevicePtr range = NewMapping(granule());
  const DevicePtr other = NewMemory(granule());
  const Stream stream = NewStream();
  EXPECT_EQ(device().MemcpyAsync(other, range, granule(), stream),
            Status::kInvalidValue);
  EXPECT_EQ(device().MemcpyAsync(range, other, granule(), stream),
            Status::kInvalidValue);
}

TEST_P(VirtualMemoryConformanceTest, T65ReleasedMemoryLivesWhileMapped) {
  const std::size_t before = FreeBytes();
  const DevicePtr range = NewRange(kLargeBytes);
  MemHandle memory;
  ASSERT_EQ(device().CreateMemory(&memory, kLargeBytes, MemProperties{}),
            Status::kSuccess);
  ASSERT_EQ(device().MapRange(range, kLargeBytes, 0, memory), Status::kSuccess);
  Allow(range, kLargeBytes);
  WriteNow(range, kBlockBytes, kFirst);
  ASSERT_EQ(device().ReleaseMemory(memory), Status::kSuccess);
  ExpectWords(range, kBlockBytes, kFirst);
  EXPECT_LE(FreeBytes(), before - kLargeBytes);
  ASSERT_EQ(device().UnmapRange(range, kLargeBytes), Status::kSuccess);
  ExpectFreeBytes(before);
}

TEST_P(VirtualMemoryConformanceTest, T66TwoAddressesShareTheirMemory) {
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

TEST_P(VirtualMemoryConformanceTest, T67UnmapLeavesNoPartOfAMapping) {
  const DevicePtr range = NewMapping(2 * granule());
  Allow(range, 2 * granule());
  WriteNow(range, 2 * granule(), kFirst);
  EXPECT_EQ(device().UnmapRange(range, granule()), Status::kInvalidValue);
  EXPECT_EQ(device().UnmapRange(range + granule(), granule()),
            Status::kInvalidValue);
  ExpectWords(range, 2 * granule(), kFirst);
}

TEST_P(VirtualMemoryConformanceTest, T67OneUnmapCoversAdjacentMappings) {
  const DevicePtr range = NewRange(2 * granule());
  const MemHandle memory = NewHandle(granule());
  ASSERT_EQ(device().MapRange(range, granule(), 0, memory), Status::kSuccess);
  ASSERT_EQ(device().MapRange(range + granule(), granule(), 0, memory),
            Status::kSuccess);
  EXPECT_EQ(device().UnmapRange(range, 2 * granule()), Status::kSuccess);
}

// V7, V13: a hole in the range is an error that leaves the mappings.
TEST_P(VirtualMemoryConformanceTest, T67PinsUnmapOverAHole) {
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

TEST_P(VirtualMemoryConformanceTest, T68PinsMappingOverAMapping) {
  const DevicePtr range = NewMapping(granule());
  const MemHandle memory = NewHandle(granule());
  const Status status = device().MapRange(range, granule(), 0, memory);
  Pin("map_over_a_mapping", status);
  EXPECT_NE(status, Status::kSuccess);
}

TEST_P(VirtualMemoryConformanceTest, T68ANewMappingHasNoAccess) {
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

TEST_P(VirtualMemoryConformanceTest, T69FreeTakesTheWholeReservation) {
  const DevicePtr range = NewRange(4 * granule());
  EXPECT_EQ(device().FreeRange(range, 2 * granule()), Status::kInvalidValue);
  EXPECT_EQ(device().FreeRange(range + granule(), 3 * granule()),
            Status::kInvalidValue);
}

TEST_P(VirtualMemoryConformanceTest, T69PinsFreeingAMappedRange) {
  DevicePtr range = 0;
  ASSERT_EQ(device().ReserveRange(&range, granule(), 0, 0), Status::kSuccess);
  const MemHandle memory = NewHandle(granule());
  ASSERT_EQ(device().MapRange(range, granule(), 0, memory), Status::kSuccess);
  const Status status = device().FreeRange(range, granule());
  Pin("free_mapped_range", status);
  if (sim() != nullptr) {
    EXPECT_EQ(status, Status::kInvalidValue);
  }
  if (status == Status::kSuccess) return;
  EXPECT_EQ(device().UnmapRange(range, granule()), Status::kSuccess);
  EXPECT_EQ(device().FreeRange(range, granule()), Status::kSuccess);
}

TEST_P(VirtualMemoryConformanceTest, T70ARangeGrowsStepByStep) {
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
TEST_P(VirtualMemoryConformanceTest, T70AccessSpansMappings) {
  const DevicePtr range = NewRange(2 * granule());
  Map(range, granule(), NewHandle(granule()));
  Map(range + granule(), granule(), NewHandle(granule()));
  Allow(range, 2 * granule());
  EXPECT_EQ(AccessOf(range), Access::kReadWrite);
  EXPECT_EQ(AccessOf(range + granule()), Access::kReadWrite);
}

TEST_P(VirtualMemoryConformanceTest, T70AccessNeedsAMappingThroughout) {
  const DevicePtr range = NewRange(2 * granule());
  Map(range, granule(), NewHandle(granule()));
  const AccessDescriptor both{{Location::Kind::kDevice, 0}, Access::kReadWrite};
  EXPECT_EQ(device().SetAccess(range, 2 * granule(), &both, 1),
            Status::kInvalidValue);
  EXPECT_EQ(AccessOf(range), Access::kNone);
}

TEST_P(VirtualMemoryConformanceTest, T71AccessReadsBack) {
  const DevicePtr range = NewMapping(granule());
  EXPECT_EQ(AccessOf(range), Access::kNone);
  Allow(range, granule(), Access::kReadWrite);
  EXPECT_EQ(AccessOf(range), Access::kReadWrite);
  Allow(range, granule(), Access::kRead);
  EXPECT_EQ(AccessOf(range), Access::kRead);
}

TEST_P(VirtualMemoryConformanceTest, T71ReadOnlyMemoryCanBeRead) {
  const DevicePtr range = NewMapping(granule());
  Allow(range, granule(), Access::kReadWrite);
  WriteNow(range, granule(), kFirst);
  Allow(range, granule(), Access::kRead);
  const Stream stream = NewStream();
  Read(range, granule(), stream);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(range, granule(), kFirst);
}

TEST_P(VirtualMemoryConformanceTest, T71ReadOnlyMemoryCannotBeWritten) {
  const DevicePtr range = NewMapping(granule());
  Allow(range, granule(), Access::kRead);
  const DevicePtr other = NewMemory(granule());
  const Stream stream = NewStream();
  EXPECT_EQ(device().MemcpyAsync(range, other, granule(), stream),
            Status::kInvalidValue);
}

TEST_P(VirtualMemoryConformanceTest, T72ARetainedHandleKeepsItsMemory) {
  const DevicePtr range = NewRange(granule());
  MemHandle memory;
  ASSERT_EQ(device().CreateMemory(&memory, granule(), MemProperties{}),
            Status::kSuccess);
  ASSERT_EQ(device().MapRange(range, granule(), 0, memory), Status::kSuccess);
  Allow(range, granule());
  WriteNow(range, granule(), kFirst);
  MemHandle retained;
  ASSERT_EQ(device().RetainMemory(range + granule() / 2, &retained),
            Status::kSuccess);
  EXPECT_EQ(retained, memory);
  ASSERT_EQ(device().ReleaseMemory(memory), Status::kSuccess);
  ASSERT_EQ(device().UnmapRange(range, granule()), Status::kSuccess);
  Map(range, granule(), retained);
  Allow(range, granule());
  ExpectWords(range, granule(), kFirst);
  EXPECT_EQ(device().ReleaseMemory(retained), Status::kSuccess);
}

TEST_P(VirtualMemoryConformanceTest, T72UnmappedAddressesHaveNoHandle) {
  const DevicePtr range = NewRange(granule());
  MemHandle handle{77};
  EXPECT_EQ(device().RetainMemory(range, &handle), Status::kInvalidValue);
  EXPECT_EQ(handle.value, 77u);
}

TEST_P(VirtualMemoryConformanceTest, T73AnImportIsTheSameMemory) {
  STRATA_REQUIRE(device().caps().share_fd, "memory cannot be shared");
  MemProperties properties;
  properties.share = ShareType::kPosixFd;
  const MemHandle memory = NewHandle(granule(), properties);
  Shareable shareable;
  ASSERT_EQ(device().ExportMemory(memory, ShareType::kPosixFd, &shareable),
            Status::kSuccess);
  MemHandle imported;
  ASSERT_EQ(device().ImportMemory(&imported, ShareType::kPosixFd, shareable),
            Status::kSuccess);
  EXPECT_EQ(close(shareable.fd), 0);
  AtEnd([this, imported] {
    EXPECT_EQ(device().ReleaseMemory(imported), Status::kSuccess);
  });
  const DevicePtr first = NewRange(granule());
  const DevicePtr second = NewRange(granule());
  Map(first, granule(), memory);
  Map(second, granule(), imported);
  Allow(first, granule());
  Allow(second, granule());
  WriteNow(first, granule(), kFirst);
  ExpectWords(second, granule(), kFirst);
}

// V11: what is to be shared must have been made for it.
TEST_P(VirtualMemoryConformanceTest, T73ExportNeedsAShareType) {
  STRATA_REQUIRE(device().caps().share_fd, "memory cannot be shared");
  const MemHandle memory = NewHandle(granule());
  Shareable shareable;
  EXPECT_NE(device().ExportMemory(memory, ShareType::kPosixFd, &shareable),
            Status::kSuccess);
}

// V8: work sees the mapping that was there when it was submitted.
TEST_P(VirtualMemoryConformanceTest, T76WorkSeesAFreshMapping) {
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

TEST_P(VirtualMemoryConformanceTest, RuleV1PinsBadReservations) {
  DevicePtr range = 0;
  const Status none = device().ReserveRange(&range, 0, 0, 0);
  Pin("reserve_no_bytes", none);
  EXPECT_NE(none, Status::kSuccess);
  const Status odd = device().ReserveRange(&range, granule() + 1, 0, 0);
  Pin("reserve_odd_bytes", odd);
  EXPECT_NE(odd, Status::kSuccess);
  const Status alignment = device().ReserveRange(&range, granule(), 3, 0);
  Pin("reserve_odd_alignment", alignment);
  EXPECT_NE(alignment, Status::kSuccess);
}

// V10: rights are each device's own.
TEST_P(VirtualMemoryConformanceTest, RuleV10DevicesHaveRightsOfTheirOwn) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
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
TEST_P(VirtualMemoryConformanceTest, RuleV5ARangeHoldsSeveralDevicesMemory) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
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
