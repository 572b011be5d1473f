// Address ranges and physical memory: cuda_semantics.md §4 and T63, T65, T69,
// T72, T73.

#include <unistd.h>

#include <cstddef>

#include "strata/tests/testing/devices/virtual_memory_fixture.h"

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
  for (const std::size_t off :
       {granule() / 2, std::size_t{4096}, std::size_t{1}}) {
    EXPECT_EQ(device().MapRange(range + off, 2 * granule(), 0, memory),
              Status::kInvalidValue)
        << off;
  }
}

// V5: a mapping covers the whole memory of the handle.
TEST_P(VirtualMemoryConformanceTest, T63NoPartOfTheMemoryCanBeMapped) {
  const DevicePtr range = NewRange(4 * granule());
  const MemHandle memory = NewHandle(2 * granule());
  for (const std::size_t bytes : {granule() / 2, granule()}) {
    EXPECT_EQ(device().MapRange(range, bytes, 0, memory), Status::kNotSupported)
        << bytes;
  }
  EXPECT_EQ(device().MapRange(range, granule(), granule(), memory),
            Status::kNotSupported);
}

TEST_P(VirtualMemoryConformanceTest, T63MappingsStayInsideTheMemory) {
  const DevicePtr range = NewRange(4 * granule());
  const MemHandle memory = NewHandle(2 * granule());
  for (const std::size_t bytes : {2 * granule() + 1, 3 * granule()}) {
    EXPECT_EQ(device().MapRange(range, bytes, 0, memory), Status::kNotSupported)
        << bytes;
  }
}

TEST_P(VirtualMemoryConformanceTest, T63MappingsBeginAtTheMemorysStart) {
  const DevicePtr range = NewRange(4 * granule());
  const MemHandle memory = NewHandle(2 * granule());
  for (const std::size_t offset : {std::size_t{1}, granule()}) {
    EXPECT_EQ(device().MapRange(range, 2 * granule(), offset, memory),
              Status::kNotSupported)
        << offset;
  }
}

// V5: errors of the part are reported before errors of the address.
TEST_P(VirtualMemoryConformanceTest, T63APartIsRefusedWhereverItIsToGo) {
  const DevicePtr range = NewRange(4 * granule());
  const MemHandle memory = NewHandle(2 * granule());
  EXPECT_EQ(device().MapRange(range + granule() / 2, granule(), 0, memory),
            Status::kNotSupported);
}

TEST_P(VirtualMemoryConformanceTest, RuleV5NoBytesCannotBeMapped) {
  const DevicePtr range = NewRange(granule());
  EXPECT_EQ(device().MapRange(range, 0, 0, NewHandle(granule())),
            Status::kInvalidValue);
}

TEST_P(VirtualMemoryConformanceTest, RuleV5MappingsNeedAReservation) {
  const MemHandle memory = NewHandle(granule());
  for (const DevicePtr ptr : {DevicePtr{0}, DevicePtr{0x10000000}}) {
    EXPECT_EQ(device().MapRange(ptr, granule(), 0, memory),
              Status::kInvalidValue)
        << ptr;
  }
}

TEST_P(VirtualMemoryConformanceTest, RuleV5MappingsNeedMemory) {
  const DevicePtr range = NewRange(granule());
  EXPECT_EQ(device().MapRange(range, granule(), 0, MemHandle{}),
            Status::kInvalidValue);
}

TEST_P(VirtualMemoryConformanceTest, T63DevicesMustExist) {
  MemProperties properties;
  properties.location.id = 9999;
  MemHandle handle;
  EXPECT_NE(device().CreateMemory(&handle, granule(), properties),
            Status::kSuccess);
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

TEST_P(VirtualMemoryConformanceTest, T69FreeTakesTheWholeReservation) {
  const DevicePtr range = NewRange(4 * granule());
  EXPECT_EQ(device().FreeRange(range, 2 * granule()), Status::kInvalidValue);
  EXPECT_EQ(device().FreeRange(range + granule(), 3 * granule()),
            Status::kInvalidValue);
}

TEST_P(VirtualMemoryConformanceTest, T69AMappedRangeCannotBeFreed) {
  const DevicePtr range = NewMapping(granule());
  EXPECT_EQ(device().FreeRange(range, granule()), Status::kInvalidValue);
}

TEST_P(VirtualMemoryConformanceTest, T69ARangeIsFreedOnce) {
  DevicePtr range = 0;
  ASSERT_EQ(device().ReserveRange(&range, granule(), 0, 0), Status::kSuccess);
  ASSERT_EQ(device().FreeRange(range, granule()), Status::kSuccess);
  EXPECT_EQ(device().FreeRange(range, granule()), Status::kInvalidValue);
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

// V11: shared memory must be created as shareable.
TEST_P(VirtualMemoryConformanceTest, T73ExportNeedsAShareType) {
  STRATA_REQUIRE(device().caps().share_fd, "memory cannot be shared");
  const MemHandle memory = NewHandle(granule());
  Shareable shareable;
  EXPECT_NE(device().ExportMemory(memory, ShareType::kPosixFd, &shareable),
            Status::kSuccess);
}

TEST_P(VirtualMemoryConformanceTest, RuleV1ReservationsAreWholeGranules) {
  DevicePtr range = 77;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{4096}, std::size_t{4097}, granule() / 2,
        granule() + 1}) {
    EXPECT_EQ(device().ReserveRange(&range, bytes, 0, 0), Status::kInvalidValue)
        << bytes;
  }
  EXPECT_EQ(range, 77u);
}

TEST_P(VirtualMemoryConformanceTest, RuleV1AlignmentsArePowersOfTwo) {
  DevicePtr range = 77;
  for (const std::size_t alignment :
       {std::size_t{3}, granule() + granule() / 2}) {
    EXPECT_EQ(device().ReserveRange(&range, granule(), alignment, 0),
              Status::kInvalidValue)
        << alignment;
  }
  EXPECT_EQ(range, 77u);
}

TEST_P(VirtualMemoryConformanceTest,
       RuleV1ReservationsTakeSmallAndLargeAlignments) {
  for (const std::size_t alignment :
       {std::size_t{4096}, std::size_t{1} << 30}) {
    DevicePtr range = 0;
    ASSERT_EQ(device().ReserveRange(&range, granule(), alignment, 0),
              Status::kSuccess);
    EXPECT_EQ(range % alignment, 0u);
    EXPECT_EQ(device().FreeRange(range, granule()), Status::kSuccess);
  }
}

TEST_P(VirtualMemoryConformanceTest, RuleV1HintsAreOfPages) {
  DevicePtr range = 77;
  EXPECT_EQ(device().ReserveRange(&range, granule(), 0, 0x7f0000000001),
            Status::kInvalidValue);
  EXPECT_EQ(range, 77u);
}

TEST_P(VirtualMemoryConformanceTest, RuleV1MoreThanThereIsIsOutOfMemory) {
  DevicePtr range = 77;
  for (const int bits : {47, 48}) {
    EXPECT_EQ(device().ReserveRange(&range, std::size_t{1} << bits, 0, 0),
              Status::kMemoryAllocation)
        << bits;
  }
  EXPECT_EQ(range, 77u);
}

}  // namespace
}  // namespace strata
