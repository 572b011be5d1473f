// Memory at several addresses, as in the strategy virtual_memory while it moves
// a handle: cuda_semantics.md V4, V8, V9, H4, R9. tools/gpu_check searches the
// results of some of these tests by name.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/tests/testing/devices/virtual_memory_fixture.h"

namespace strata {
namespace {

class AliasConformanceTest : public VirtualMemoryFixture {
 protected:
  void MapNow(DevicePtr ptr, MemHandle handle) {
    ASSERT_EQ(device().MapRange(ptr, granule(), 0, handle), Status::kSuccess);
    Allow(ptr, granule());
  }
  void UnmapNow(DevicePtr ptr) {
    ASSERT_EQ(device().UnmapRange(ptr, granule()), Status::kSuccess);
  }

  // A range of one granule at which `handle` is mapped.
  DevicePtr NewAlias(MemHandle handle) {
    const DevicePtr ptr = NewRange(granule());
    Map(ptr, granule(), handle);
    Allow(ptr, granule());
    return ptr;
  }

  // Copies the granule to the host, by work in `stream`.
  const std::uint64_t* CopyToHost(DevicePtr ptr, std::size_t bytes,
                                  const Stream& stream) {
    const std::uint64_t* host = NewPinned(bytes / sizeof(std::uint64_t));
    EXPECT_EQ(device().MemcpyAsync(reinterpret_cast<DevicePtr>(host), ptr,
                                   bytes, stream),
              Status::kSuccess);
    return host;
  }

  // Number of words of a granule that differ from `word`.
  std::uint64_t CountOthers(DevicePtr ptr, std::uint64_t word) {
    const Stream stream = NewStream();
    const std::uint64_t* host = CopyToHost(ptr, granule(), stream);
    EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    const std::size_t words = granule() / sizeof(std::uint64_t);
    return words -
           static_cast<std::size_t>(std::count(host, host + words, word));
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, AliasConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

// V9: a move maps the memory again while the writing work is pending.
TEST_P(AliasConformanceTest, RuleV9WorkBehindAMoveSeesTheBytes) {
  const MemHandle memory = NewHandle(granule());
  const DevicePtr from = NewRange(granule());
  const DevicePtr to = NewRange(granule());
  const Stream stream = NewStream();
  MapNow(from, memory);
  LongWrite(from, granule(), kFirst, stream);
  Map(to, granule(), memory);
  Allow(to, granule());
  const std::uint64_t* host = CopyToHost(to, granule(), stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  if (HasBytes()) {
    EXPECT_EQ(host[0], kFirst);
    EXPECT_EQ(host[granule() / sizeof(std::uint64_t) - 1], kFirst);
  }
  UnmapNow(from);
  ExpectWords(to, granule(), kFirst);
}

TEST_P(AliasConformanceTest, RuleV9AnEventOrdersWorkAtTwoAddresses) {
  const MemHandle memory = NewHandle(granule());
  const DevicePtr first = NewAlias(memory);
  const DevicePtr second = NewAlias(memory);
  const Stream writer = NewStream();
  const Stream reader = NewStream();
  const Event written = NewEvent();
  LongWrite(first, granule(), kFirst, writer);
  ASSERT_EQ(device().EventRecord(written, writer, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamWaitEvent(reader, written, 0), Status::kSuccess);
  const std::uint64_t* host = CopyToHost(second, granule(), reader);
  ASSERT_EQ(device().StreamSynchronize(reader), Status::kSuccess);
  if (HasBytes()) {
    EXPECT_EQ(host[0], kFirst);
  }
}

TEST_P(AliasConformanceTest, RuleV9EachMoveOfManyKeepsTheBytes) {
  constexpr std::uint64_t kMoves = 64;
  constexpr std::size_t kBytes = 4096;
  const MemHandle memory = NewHandle(granule());
  const Stream stream = NewStream();
  std::vector<const std::uint64_t*> seen;
  DevicePtr at = NewAlias(memory);
  for (std::uint64_t move = 0; move < kMoves; ++move) {
    Write(at, kBytes, move, stream);
    at = NewAlias(memory);
    seen.push_back(CopyToHost(at, kBytes, stream));
  }
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  if (!HasBytesOf(kBytes)) return;
  for (std::uint64_t move = 0; move < kMoves; ++move) {
    EXPECT_EQ(*seen[move], move);
  }
}

// V8, H4: old addresses are unmapped while work uses the new ones.
TEST_P(AliasConformanceTest, RuleV8UnmappingOneAliasLeavesWorkAlone) {
  const MemHandle memory = NewHandle(granule());
  const DevicePtr from = NewRange(granule());
  const DevicePtr to = NewAlias(memory);
  const Stream stream = NewStream();
  MapNow(from, memory);
  Write(from, granule(), kFirst, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  LongWrite(to, granule(), kSecond, stream);
  UnmapNow(from);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(to, granule(), kSecond);
}

TEST_P(AliasConformanceTest, RuleV8UnmappingOneAliasLeavesWritesAlone) {
  constexpr int kWrites = 100;
  const MemHandle memory = NewHandle(granule());
  const DevicePtr to = NewAlias(memory);
  const Stream stream = NewStream();
  std::vector<DevicePtr> old;
  for (int i = 0; i < 4; ++i) {
    old.push_back(NewRange(granule()));
    MapNow(old.back(), memory);
  }
  for (int i = 0; i < kWrites; ++i) {
    Write(to, granule(), i + 1 == kWrites ? kSecond : kFirst, stream);
  }
  for (const DevicePtr ptr : old) UnmapNow(ptr);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(to, granule(), kSecond);
}

// R9: if the GPU supports it, the second kernel starts before the first one
// ends.
TEST_P(AliasConformanceTest, RuleR9UnmappingOneAliasLeavesEarlyWorkAlone) {
  const MemHandle memory = NewHandle(granule());
  const DevicePtr from = NewRange(granule());
  const DevicePtr to = NewAlias(memory);
  const Stream stream = NewStream();
  MapNow(from, memory);
  Write(from, granule(), kFirst, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  LongWrite(to, granule(), kFirst, stream);
  WriteEarly(to, granule(), kSecond, stream);
  UnmapNow(from);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(to, granule(), kSecond);
}

// V9 promises nothing here: the second kernel may start before the first one
// ends, at another address of its memory.
TEST_P(AliasConformanceTest, RuleR9PinsEarlyWritesAtTheOtherAddress) {
  const MemHandle memory = NewHandle(granule());
  const DevicePtr first = NewAlias(memory);
  const DevicePtr second = NewAlias(memory);
  const Stream stream = NewStream();
  LongWrite(first, granule(), kFirst, stream);
  WriteEarly(second, granule(), kSecond, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  const bool has_bytes = HasBytes();
  Pin("lost_words", has_bytes ? CountOthers(first, kSecond) : 0);
  Pin("early_launches", std::uint64_t{device().caps().compute_major >= 9});
}

TEST_P(AliasConformanceTest, RuleV8OtherMemoryTakesTheAddressesBesideWork) {
  const MemHandle memory = NewHandle(granule());
  const MemHandle other = NewHandle(granule());
  const DevicePtr from = NewRange(granule());
  const DevicePtr to = NewAlias(memory);
  const Stream stream = NewStream();
  MapNow(from, memory);
  Write(from, granule(), kFirst, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  LongWrite(to, kBlockBytes / 2, kSecond, stream);
  UnmapNow(from);
  Map(from, granule(), other);
  Allow(from, granule());
  const Stream beside = NewStream();
  Write(from, granule(), ~kFirst, beside);
  EXPECT_EQ(device().StreamSynchronize(beside), Status::kSuccess);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(to, kBlockBytes / 2, kSecond);
  ExpectWords(from, granule(), ~kFirst);
}

TEST_P(AliasConformanceTest, RuleV4AliasKeepsReleasedMemoryForItsWork) {
  const std::size_t before = FreeBytes();
  const DevicePtr from = NewRange(kLargeBytes);
  const DevicePtr to = NewRange(kLargeBytes);
  MemHandle memory;
  ASSERT_EQ(device().CreateMemory(&memory, kLargeBytes, MemProperties{}),
            Status::kSuccess);
  for (const DevicePtr ptr : {from, to}) {
    ASSERT_EQ(device().MapRange(ptr, kLargeBytes, 0, memory), Status::kSuccess);
  }
  Allow(to, kLargeBytes);
  const Stream stream = NewStream();
  LongWrite(to, kBlockBytes, kFirst, stream);
  ASSERT_EQ(device().ReleaseMemory(memory), Status::kSuccess);
  ASSERT_EQ(device().UnmapRange(from, kLargeBytes), Status::kSuccess);
  EXPECT_LE(FreeBytes(), before - kLargeBytes);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(to, kBlockBytes, kFirst);
  ASSERT_EQ(device().UnmapRange(to, kLargeBytes), Status::kSuccess);
  ExpectFreeBytes(before);
}

}  // namespace
}  // namespace strata
