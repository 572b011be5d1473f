// Memory that stores small writes: sim_data "small".

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "strata/platform/device_work.h"
#include "strata/platform/sim/bytes/kept_bytes.h"
#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"
#include "strata/tests/testing/devices/statuses.h"

namespace strata::sim {
namespace {

constexpr std::uint64_t kMost = KeptBytes::kMostWriteBytes;

class SimSmallWritesTest : public SimProgressFixture {
 protected:
  SimSmallWritesTest() { BuildSmall("inline"); }

  void BuildSmall(const std::string& progress) {
    PlatformOptions options = SimOptions(2, kFrames);
    options.sim_progress = progress;
    options.sim_data = "small";
    Build(options);
    stream_ = NewStream();
  }

  DevicePtr Alloc(std::size_t bytes, int ordinal = 0) {
    DevicePtr ptr = 0;
    EXPECT_EQ(device(ordinal).MemAlloc(&ptr, bytes), kOk);
    return ptr;
  }

  void Copy(DevicePtr target, DevicePtr source, std::size_t bytes) {
    EXPECT_EQ(device().MemcpyAsync(target, source, bytes, stream_, &reads_),
              kOk);
  }
  void Write(DevicePtr ptr, const std::string& text) {
    Copy(ptr, At(text.data()), text.size());
  }
  // The bytes at `ptr`; '.' stands for zero.
  std::string Read(DevicePtr ptr, std::size_t bytes) {
    std::string text(bytes, '?');
    Copy(At(text.data()), ptr, bytes);
    for (char& c : text) c = c == 0 ? '.' : c;
    return text;
  }

  Stream stream_;
  ReadCounter reads_;
};

TEST_F(SimSmallWritesTest, AreReadBack) {
  const DevicePtr ptr = Alloc(3 * kFrameBytes);
  Write(ptr + 10, "abc");
  EXPECT_EQ(Read(ptr + 9, 5), ".abc.");
  // Across a border of frames.
  Write(ptr + kFrameBytes - 2, "wxyz");
  EXPECT_EQ(Read(ptr + kFrameBytes - 3, 6), ".wxyz.");
}

TEST_F(SimSmallWritesTest, LargeWritesMakeThemUnknown) {
  const DevicePtr ptr = Alloc(kFrameBytes);
  Write(ptr, std::string(kMost, 'a'));
  EXPECT_EQ(Read(ptr + kMost - 1, 2), "a.");
  Write(ptr + 2, std::string(kMost + 1, 'b'));
  EXPECT_EQ(Read(ptr, 4), "aa..");
}

TEST_F(SimSmallWritesTest, FillsAreWrites) {
  const DevicePtr ptr = Alloc(kFrameBytes);
  Write(ptr, "abcdef");
  EXPECT_EQ(device().MemsetAsync(ptr + 2, 'z', 2, stream_), kOk);
  EXPECT_EQ(Read(ptr, 6), "abzzef");
  EXPECT_EQ(device().MemsetAsync(ptr + 1, 'z', kMost + 1, stream_), kOk);
  EXPECT_EQ(Read(ptr, 6), "a.....");
}

TEST_F(SimSmallWritesTest, CopiesOnTheDeviceMoveThem) {
  const DevicePtr from = Alloc(kFrameBytes);
  const DevicePtr to = Alloc(kFrameBytes);
  const DevicePtr elsewhere = Alloc(kFrameBytes, 1);
  Write(from + 4, "abc");
  Write(to, "0123456789");
  Copy(to, from, kFrameBytes);
  EXPECT_EQ(Read(to, 10), "....abc...");
  Copy(elsewhere + 3, to + 5, 100);
  EXPECT_EQ(Read(elsewhere, 8), "...bc...");
}

TEST_F(SimSmallWritesTest, WorkWritesItsPattern) {
  const DevicePtr ptr = Alloc(kFrameBytes);
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, "pattern!", sizeof pattern);
  const WorkRange range{ptr + 8, 16, true};
  EXPECT_EQ(platform_->work(0)->Enqueue(stream_, &range, 1, 0, pattern), kOk);
  EXPECT_EQ(Read(ptr + 4, 24), "....pattern!pattern!....");
}

// The memory may be in use again, for the result of the kernel.
TEST_F(SimSmallWritesTest, KernelsMakeReadsOfPartsUnknown) {
  const DevicePtr ptr = Alloc(kFrameBytes);
  const auto run_kernel = [this] { Busy(stream_); };
  Write(ptr, "0123456789");
  run_kernel();
  EXPECT_EQ(Read(ptr, 10), "0123456789");
  EXPECT_EQ(Read(ptr, 4), "....");
  EXPECT_EQ(reads_.written, 1u);
  EXPECT_EQ(reads_.all, 2u);
  // A copy of the whole write is one, too.
  Copy(ptr + 1024, ptr, 512);
  run_kernel();
  EXPECT_EQ(Read(ptr + 1024, 10), "0123456789");
  EXPECT_EQ(Read(ptr + 1024, 11), "...........");
}

// It does not run, as it would need all bytes.
TEST_F(SimSmallWritesTest, AHostKernelMakesItsRangesUnknown) {
  const DevicePtr ptr = Alloc(kFrameBytes);
  Write(ptr, "abcdef");
  const WorkRange ranges[] = {{ptr, 2, false}, {ptr + 2, 2, true}};
  const HostKernel kernel = [](void*, void* const*) {};
  EXPECT_EQ(platform_->work(0)->Launch(stream_, ranges, 2, kernel, nullptr),
            kOk);
  EXPECT_EQ(Read(ptr, 6), "ab..ef");
}

TEST_F(SimSmallWritesTest, EndWithTheirMemory) {
  for (const std::size_t bytes : {std::size_t{512}, 2 * kFrameBytes}) {
    const DevicePtr ptr = Alloc(bytes);
    Write(ptr + bytes - 3, "abc");
    EXPECT_EQ(device().MemFree(ptr), kOk);
    // The device gives the freed frames to this block.
    const DevicePtr again = Alloc(bytes);
    EXPECT_EQ(Read(again + bytes - 3, 3), "...");
  }
}

TEST_F(SimSmallWritesTest, OfAPoolEndWithTheirBlockInStreamOrder) {
  BuildSmall("lazy");
  MemPool pool;
  ASSERT_EQ(device().DefaultMemPool(&pool), kOk);
  auto* const word = reinterpret_cast<char*>(NewWord());
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MallocFromPoolAsync(&ptr, 512, pool, stream_), kOk);
  Write(ptr, "abc");
  Copy(At(word), ptr, 3);
  ASSERT_EQ(device().FreeAsync(ptr, stream_), kOk);
  DevicePtr again = 0;
  ASSERT_EQ(device().MallocFromPoolAsync(&again, 512, pool, stream_), kOk);
  ASSERT_EQ(again, ptr);
  Copy(At(word + 4), again, 3);
  ASSERT_EQ(device().StreamSynchronize(stream_), kOk);
  EXPECT_EQ(std::string(word), "abc");
  EXPECT_EQ(std::string(word + 4), "");
}

// A mapping is an address of memory: the bytes belong to the memory.
TEST_F(SimSmallWritesTest, AreSeenByEveryMappingOfTheirMemory) {
  MemHandle handle;
  ASSERT_EQ(device().CreateMemory(&handle, kFrameBytes, {}), kOk);
  DevicePtr ptr = 0;
  ASSERT_EQ(device().ReserveRange(&ptr, 2 * kFrameBytes, 0, 0), kOk);
  const AccessDescriptor access{{}, Access::kReadWrite};
  for (const DevicePtr at : {ptr, ptr + kFrameBytes}) {
    ASSERT_EQ(device().MapRange(at, kFrameBytes, 0, handle), kOk);
    ASSERT_EQ(device().SetAccess(at, kFrameBytes, &access, 1), kOk);
  }
  Write(ptr + 1, "abc");
  EXPECT_EQ(Read(ptr + kFrameBytes, 5), ".abc.");
  ASSERT_EQ(device().UnmapRange(ptr, 2 * kFrameBytes), kOk);
  ASSERT_EQ(device().ReleaseMemory(handle), kOk);
  EXPECT_EQ(Read(Alloc(kFrameBytes), 5), ".....");
}

TEST_F(SimSmallWritesTest, PageableSourcesAreReadAtTheCall) {
  BuildSmall("lazy");
  const DevicePtr ptr = Alloc(kFrameBytes);
  std::string text = "abc";
  Write(ptr, text);
  text = "xyz";
  EXPECT_EQ(Read(ptr, 3), "abc");
}

TEST_F(SimSmallWritesTest, GraphsWriteAndReadThem) {
  auto* const words = NewWord();
  const DevicePtr ptr = Alloc(kFrameBytes);
  ASSERT_EQ(device().StreamBeginCapture(stream_, CaptureMode::kRelaxed), kOk);
  Copy(ptr, At(words), 4);
  Copy(At(words) + 4, ptr, 4);
  Graph graph;
  ASSERT_EQ(device().StreamEndCapture(stream_, &graph), kOk);
  GraphExec exec;
  ASSERT_EQ(device().GraphInstantiate(&exec, graph, 0), kOk);
  std::memcpy(words, "abcd", 4);
  ASSERT_EQ(device().GraphLaunch(exec, stream_), kOk);
  EXPECT_EQ(std::memcmp(words, "abcdabcd", 8), 0);
  ASSERT_EQ(device().GraphLaunch(exec, stream_), kOk);
  EXPECT_EQ(reads_.all, 2u);
  EXPECT_EQ(reads_.written, 2u);
}

TEST_F(SimSmallWritesTest, ReadsOfUnknownBytesAreCountedBesideThem) {
  const DevicePtr ptr = Alloc(kFrameBytes);
  Write(ptr, "abcd");
  EXPECT_EQ(reads_.all, 0u);
  Read(ptr + 1, 2);
  EXPECT_EQ(reads_.all, 1u);
  EXPECT_EQ(reads_.written, 1u);
  Read(ptr + 1, 4);
  EXPECT_EQ(reads_.all, 2u);
  EXPECT_EQ(reads_.written, 1u);
  // Copies that bring no value of the device to the host.
  Copy(ptr + 8, ptr, 4);
  Copy(At(NewWord()), At(NewWord()), 8);
  EXPECT_EQ(reads_.all, 2u);
  // A kernel may have written managed memory.
  DevicePtr managed = 0;
  ASSERT_EQ(device().MallocManaged(&managed, 8, kManagedGlobal), kOk);
  Copy(At(NewWord()), managed, 8);
  EXPECT_EQ(reads_.all, 3u);
  EXPECT_EQ(reads_.written, 1u);
  EXPECT_EQ(device().MemFree(managed), kOk);
}

TEST_F(SimSmallWritesTest, ADeviceWithAllBytesDoesNotKnowTheWriter) {
  PlatformOptions options = SimOptions(1, kFrames);
  options.sim_data = "backed";
  Build(options);
  stream_ = NewStream();
  const DevicePtr ptr = Alloc(kFrameBytes);
  Write(ptr, "abcd");
  EXPECT_EQ(Read(ptr, 4), "abcd");
  EXPECT_EQ(reads_.all, 1u);
  EXPECT_EQ(reads_.written, 0u);
}

}  // namespace
}  // namespace strata::sim
