// Copies, fills, work and frees while work is pending.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

constexpr std::uint64_t kWordOfOnes = 0x0101010101010101;

class SimSubmitTest : public SimProgressFixture {
 protected:
  DevicePtr Alloc(std::size_t bytes) {
    DevicePtr ptr = 0;
    EXPECT_EQ(device().MemAlloc(&ptr, bytes), Status::kSuccess);
    return ptr;
  }
};

TEST_F(SimSubmitTest, CopyReadsPinnedMemoryWhenItRuns) {
  Build("manual");
  std::uint64_t* source = NewWord();
  std::uint64_t* target = NewWord();
  *source = 1;
  const Stream stream = NewStream();
  ASSERT_EQ(device().MemcpyAsync(At(target), At(source), 8, stream),
            Status::kSuccess);
  *source = 2;
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(*target, 2u);
}

TEST_F(SimSubmitTest, CopyReadsPageableMemoryAtTheCall) {  // H6
  Build("manual");
  std::uint64_t source = 1;
  std::uint64_t* target = NewWord();
  *target = 0;
  const Stream stream = NewStream();
  ASSERT_EQ(device().MemcpyAsync(At(target), At(&source), 8, stream),
            Status::kSuccess);
  source = 2;
  EXPECT_EQ(*target, 0u);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(*target, 1u);
}

// Whether the target stores the bytes or not.
TEST_F(SimSubmitTest, PageableSourceMayBecomeOtherMemoryBeforeTheCopyRuns) {
  constexpr std::size_t kBytes = std::size_t{2} << 20;
  for (const char* const data : {"phantom", "small", "backed"}) {
    PlatformOptions options = SimOptions(1, kFrames);
    options.sim_progress = "lazy";
    options.sim_data = data;
    Build(options);
    std::vector<char> source(kBytes, 'a');
    const DevicePtr target = Alloc(kBytes);
    const Stream stream = NewStream();
    ASSERT_EQ(device().MemcpyAsync(target, At(source.data()), kBytes, stream),
              Status::kSuccess);
    ASSERT_EQ(device().HostRegister(source.data(), kBytes / 2, 0),
              Status::kSuccess);
    std::fill(source.begin(), source.end(), 'b');
    EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess) << data;
    char read = 'c';
    ASSERT_EQ(device().MemcpyAsync(At(&read), target, 1, stream),
              Status::kSuccess);
    EXPECT_EQ(read, std::string(data) == "backed" ? 'a' : 0) << data;
    ASSERT_EQ(device().HostUnregister(source.data()), Status::kSuccess);
  }
}

// A copy whose target is gone still fails.
TEST_F(SimSubmitTest, CopyThatReadItsSourceNeedsItsTarget) {
  PlatformOptions options = SimOptions(1, kFrames);
  options.sim_progress = "lazy";
  options.sim_free = "nosync";
  options.sim_data = "phantom";
  Build(options);
  const std::uint64_t source = 1;
  const DevicePtr target = Alloc(4096);
  const Stream stream = NewStream();
  ASSERT_EQ(device().MemcpyAsync(target, At(&source), 8, stream),
            Status::kSuccess);
  ASSERT_EQ(device().MemFree(target), Status::kSuccess);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kIllegalAddress);
}

TEST_F(SimSubmitTest, CopyToPageableMemoryIsDoneWhenItReturns) {  // H6
  Build("manual");
  std::uint64_t* source = NewWord();
  std::uint64_t target = 0;
  const Stream stream = NewStream();
  ASSERT_EQ(device().MemsetAsync(At(source), 1, 8, stream), Status::kSuccess);
  ASSERT_EQ(device().MemcpyAsync(At(&target), At(source), 8, stream),
            Status::kSuccess);
  EXPECT_EQ(target, kWordOfOnes);
  EXPECT_EQ(device().PendingCount(), 0u);
}

TEST_F(SimSubmitTest, CopyBetweenPageableMemoryIsDoneWhenItReturns) {
  Build("manual");
  const std::uint64_t source = 5;
  std::uint64_t target = 0;
  const Stream stream = NewStream();
  Mark(stream, 'a');
  ASSERT_EQ(device().MemcpyAsync(At(&target), At(&source), 8, stream),
            Status::kSuccess);
  EXPECT_EQ(target, 5u);
  EXPECT_EQ(log_, "a");
}

TEST_F(SimSubmitTest, WrongRangesAreRefusedAtTheCall) {
  Build("lazy");
  const Stream stream = NewStream();
  const DevicePtr ptr = Alloc(4096);
  EXPECT_EQ(device().MemsetAsync(ptr + 4095, 0, 2, stream),
            Status::kInvalidValue);
  EXPECT_EQ(device().MemcpyAsync(ptr, 0, 8, stream), Status::kInvalidValue);
  EXPECT_EQ(device().PendingCount(), 0u);
}

TEST_F(SimSubmitTest, WorkChecksItsArgumentsAtTheCall) {
  Build("lazy");
  const Stream stream = NewStream();
  const DevicePtr ptr = Alloc(4096);
  DeviceWork& work = *platform_->work(0);
  const WorkRange good{ptr, 8, true};
  for (const WorkRange& bad :
       {WorkRange{ptr, 7, true}, WorkRange{ptr + 4, 8, true},
        WorkRange{ptr, 0, true}, WorkRange{0, 8, false}}) {
    EXPECT_EQ(work.Enqueue(stream, &bad, 1, 1, 0), Status::kInvalidValue);
  }
  const std::vector<WorkRange> many(kMaxWorkRanges + 1, good);
  EXPECT_EQ(work.Enqueue(stream, many.data(), many.size(), 1, 0),
            Status::kInvalidValue);
  EXPECT_EQ(work.Enqueue(stream, nullptr, 1, 1, 0), Status::kInvalidValue);
  EXPECT_EQ(work.Enqueue(NewStream(kStreamDefault, 1), &good, 1, 1, 0),
            Status::kInvalidResourceHandle);
  EXPECT_EQ(device().PendingCount(), 0u);
  EXPECT_EQ(work.Enqueue(stream, many.data(), kMaxWorkRanges, 1, 0),
            Status::kSuccess);
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
}

TEST_F(SimSubmitTest, WorkWritesItsPatternToWhatItWritesOnly) {
  Build("lazy");
  std::uint64_t* written = NewWord();
  std::uint64_t* read = NewWord();
  *written = *read = 3;
  const WorkRange ranges[] = {{At(written), 8, true}, {At(read), 8, false}};
  const Stream stream = NewStream();
  ASSERT_EQ(platform_->work(0)->Enqueue(stream, ranges, 2, 1, 9),
            Status::kSuccess);
  EXPECT_EQ(*written, 3u);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(*written, 9u);
  EXPECT_EQ(*read, 3u);
}

TEST_F(SimSubmitTest, FreeWaitsForTheDeviceUnlessToldOtherwise) {  // D11
  Build("lazy", "sync");
  Mark(NewStream(), 'a');
  EXPECT_EQ(device().MemFree(Alloc(4096)), Status::kSuccess);
  EXPECT_EQ(log_, "a");
  Build("lazy", "nosync");
  Mark(NewStream(), 'b');
  EXPECT_EQ(device().MemFree(Alloc(4096)), Status::kSuccess);
  EXPECT_EQ(log_, "a");
}

TEST_F(SimSubmitTest, FreesOfHostMemoryWaitAlike) {  // H5
  Build("lazy", "sync");
  void* pinned = nullptr;
  std::uint64_t registered = 0;
  DevicePtr managed = 0;
  ASSERT_EQ(device().MallocHost(&pinned, 64, 0), Status::kSuccess);
  ASSERT_EQ(device().HostRegister(&registered, 8, 0), Status::kSuccess);
  ASSERT_EQ(device().MallocManaged(&managed, 64, kManagedGlobal),
            Status::kSuccess);
  const Stream stream = NewStream();
  Mark(stream, 'a');
  EXPECT_EQ(device().FreeHost(pinned), Status::kSuccess);
  EXPECT_EQ(log_, "a");
  Mark(stream, 'b');
  EXPECT_EQ(device().HostUnregister(&registered), Status::kSuccess);
  EXPECT_EQ(log_, "ab");
  Mark(stream, 'c');
  EXPECT_EQ(device().MemFree(managed), Status::kSuccess);
  EXPECT_EQ(log_, "abc");
}

TEST_F(SimSubmitTest, FreeingNothingWaitsForNothing) {
  Build("lazy", "sync");
  Mark(NewStream(), 'a');
  EXPECT_EQ(device().MemFree(0), Status::kSuccess);
  EXPECT_EQ(device().FreeHost(nullptr), Status::kSuccess);
  EXPECT_EQ(log_, "");
}

TEST_F(SimSubmitTest, SeededFreeWaitsNowAndThen) {
  Build("lazy", "seeded");
  int waited = 0;
  const Stream stream = NewStream();
  for (int i = 0; i < 64; ++i) {
    device().StepAll();
    log_.clear();
    Mark(stream, 'a');
    ASSERT_EQ(device().MemFree(Alloc(4096)), Status::kSuccess);
    waited += log_ == "a" ? 1 : 0;
  }
  EXPECT_GT(waited, 10);
  EXPECT_LT(waited, 54);
}

TEST_F(SimSubmitTest, UnknownFreePolicyIsRefused) {
  try {
    Build("lazy", "never");
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "strata_sim_free: 'never' is no policy (known: sync, nosync, "
                 "seeded)");
  }
}

// An AArch64 process has 48 address bits.
TEST_F(SimSubmitTest, HostMemoryEndsWhereTheLargestAddressSpaceDoes) {
  constexpr DevicePtr kEnd = DevicePtr{1} << 48;
  Build("lazy");
  const Stream stream = NewStream();
  const DevicePtr ptr = Alloc(4096);
  EXPECT_EQ(device().MemcpyAsync(ptr, kEnd - 4096, 4096, stream),
            Status::kSuccess);
  EXPECT_EQ(device().MemcpyAsync(ptr, kEnd - 4095, 4096, stream),
            Status::kInvalidValue);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
}

// Nothing is read, because no bytes are stored: there is no memory at this
// address.
TEST_F(SimSubmitTest, CopyToPhantomMemoryTakesNoMemoryOfTheHost) {
  constexpr std::uint64_t kTiB = std::uint64_t{1} << 40;
  constexpr DevicePtr kSource = std::uint64_t{1} << 42;
  PlatformOptions options = SimOptions(1, kFrames);
  options.sim_progress = "manual";
  options.sim_memory_bytes = kTiB;
  Build(options);
  const Stream stream = NewStream();
  const DevicePtr ptr = Alloc(kTiB);
  ASSERT_EQ(device().MemcpyAsync(ptr, kSource, kTiB, stream), Status::kSuccess);
  EXPECT_EQ(device().PendingCount(), 1u);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
}

}  // namespace
}  // namespace strata::sim
