// Streams: cuda_semantics.md §1.1, §1.3 and T5-T7, T9-T12.

#include <cstddef>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "strata/tests/testing/devices/device_fixture.h"

namespace strata {
namespace {

using StreamConformanceTest = DeviceTest;

INSTANTIATE_TEST_SUITE_P(Devices, StreamConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

DevicePtr HostAddress(const void* ptr) {
  return reinterpret_cast<DevicePtr>(ptr);
}

TEST_P(StreamConformanceTest, T5LegacyCopyRunsBetweenTheWritesAroundIt) {
  const DevicePtr source = NewMemory(kBlockBytes);
  const DevicePtr target = NewMemory(kBlockBytes);
  const Stream stream = NewStream(kStreamDefault);
  LongWork(stream);
  Write(source, kBlockBytes, kFirst, stream);
  ASSERT_EQ(device().MemcpyAsync(target, source, kBlockBytes,
                                 device().LegacyStream()),
            Status::kSuccess);
  Write(source, kBlockBytes, kSecond, stream);
  ExpectWords(target, kBlockBytes, kFirst);
  ExpectWords(source, kBlockBytes, kSecond);
}

// S4: ordering on the device is no wait of the host.
TEST_P(StreamConformanceTest, T5LegacyWorkIsPendingBehindABlockingStream) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const Stream stream = NewStream(kStreamDefault);
  LongWork(stream);
  ASSERT_EQ(device().MemsetAsync(ptr, 1, kBlockBytes, device().LegacyStream()),
            Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(device().LegacyStream()), Status::kNotReady);
}

TEST_P(StreamConformanceTest, T5BlockingStreamsWaitForLegacyWork) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const Stream stream = NewStream(kStreamDefault);
  const DevicePtr ptr = NewMemory(kBlockBytes);
  LongWork(device().LegacyStream());
  Write(ptr, kBlockBytes, kFirst, stream);
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
}

TEST_P(StreamConformanceTest, T6NonBlockingStreamsDoNotWaitForLegacyWork) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const Stream stream = NewStream(kStreamNonBlocking);
  const DevicePtr ptr = NewMemory(kBlockBytes);
  LongWork(device().LegacyStream());
  Write(ptr, kBlockBytes, kFirst, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(device().LegacyStream()), Status::kNotReady);
}

TEST_P(StreamConformanceTest, T6LegacyWorkDoesNotWaitForNonBlockingStreams) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const Stream stream = NewStream(kStreamNonBlocking);
  LongWork(stream);
  Write(ptr, kBlockBytes, kFirst, device().LegacyStream());
  ASSERT_EQ(device().StreamSynchronize(device().LegacyStream()),
            Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(device().LegacyStream()), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
}

// S2: a thread's own default stream is a blocking one.
TEST_P(StreamConformanceTest, T5PerThreadStreamWaitsForLegacyWork) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const DevicePtr ptr = NewMemory(kBlockBytes);
  LongWork(device().LegacyStream());
  Write(ptr, kBlockBytes, kFirst, device().PerThreadStream());
  EXPECT_EQ(device().StreamQuery(device().PerThreadStream()),
            Status::kNotReady);
}

TEST_P(StreamConformanceTest, T5ThreadsHavePerThreadStreamsOfTheirOwn) {
  const Stream mine = device().PerThreadStream();
  Stream other;
  std::thread([&] { other = device().PerThreadStream(); }).join();
  EXPECT_NE(mine.uid, other.uid);
  EXPECT_EQ(mine.uid, device().PerThreadStream().uid);
}

TEST_P(StreamConformanceTest, T7DestroyedStreamFinishesItsWork) {
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const Event event = NewEvent();
  Stream stream;
  ASSERT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
            Status::kSuccess);
  LongWork(stream);
  Write(ptr, kBlockBytes, kFirst, stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  EXPECT_EQ(device().EventSynchronize(event), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
  ExpectWords(ptr, kBlockBytes, kFirst);
}

TEST_P(StreamConformanceTest, T7DestroyDoesNotWait) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const Event event = NewEvent();
  Stream stream;
  ASSERT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
            Status::kSuccess);
  LongWork(stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kNotReady);
}

TEST_P(StreamConformanceTest, T7SynchronizeWaitsForDestroyedStreams) {
  const Event event = NewEvent();
  Stream stream;
  ASSERT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
            Status::kSuccess);
  LongWork(stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
}

// S9: a driver may crash on such a handle.
TEST_P(StreamConformanceTest, T7DestroyedStreamIsRefused) {
  STRATA_REQUIRE(sim() != nullptr, kNeedsSimulation);
  Stream stream;
  ASSERT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
            Status::kSuccess);
  ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kInvalidResourceHandle);
}

TEST_P(StreamConformanceTest, T9UidsAreNeverUsedAgain) {
  std::set<std::uint64_t> uids;
  for (int i = 0; i < 100; ++i) {
    Stream stream;
    ASSERT_EQ(device().StreamCreate(&stream, kStreamDefault), Status::kSuccess);
    EXPECT_TRUE(uids.insert(stream.uid).second) << stream.uid;
    ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  }
}

TEST_P(StreamConformanceTest, T9WrapFindsTheStreamOfAHandle) {
  const Stream stream = NewStream();
  Stream wrapped;
  ASSERT_EQ(device().WrapStream(stream.handle, &wrapped), Status::kSuccess);
  EXPECT_EQ(wrapped, stream);
  ASSERT_EQ(device().WrapStream(nullptr, &wrapped), Status::kSuccess);
  EXPECT_EQ(wrapped, device().LegacyStream());
}

TEST_P(StreamConformanceTest, T10QueryFollowsTheWork) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const Stream stream = NewStream();
  LongWork(stream);
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kSuccess);
}

TEST_P(StreamConformanceTest, T10SynchronizeCoversNonBlockingStreams) {
  const Stream stream = NewStream(kStreamNonBlocking);
  LongWork(stream);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kSuccess);
}

TEST_P(StreamConformanceTest, T10WaitingForOneStreamLeavesTheOthers) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const Stream slow = NewStream();
  const Stream fast = NewStream();
  LongWork(slow);
  Write(ptr, kBlockBytes, kFirst, fast);
  ASSERT_EQ(device().StreamSynchronize(fast), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(slow), Status::kNotReady);
}

// H1: a wait for the legacy stream covers the blocking streams too.
TEST_P(StreamConformanceTest, T10LegacySynchronizeCoversBlockingStreams) {
  const Stream stream = NewStream(kStreamDefault);
  LongWork(stream);
  ASSERT_EQ(device().StreamSynchronize(device().LegacyStream()),
            Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kSuccess);
}

TEST_P(StreamConformanceTest, T10SynchronizeIsForOneDevice) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const Stream stream = NewStream(kStreamDefault, 1);
  LongWork(stream);
  ASSERT_EQ(device(0).Synchronize(), Status::kSuccess);
  EXPECT_EQ(device(1).StreamQuery(stream), Status::kNotReady);
}

// Observations of a host function.
struct HostCall {
  const volatile std::uint64_t* word = nullptr;
  Device* device = nullptr;
  int runs = 0;
  std::uint64_t seen = 0;
  Status status = Status::kSuccess;  // of a device call inside it
};

void LookAtWord(void* argument) {
  auto* call = static_cast<HostCall*>(argument);
  ++call->runs;
  if (call->word != nullptr) call->seen = *call->word;
}

void CallDevice(void* argument) {
  auto* call = static_cast<HostCall*>(argument);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  call->status = call->device->MemGetInfo(&free_bytes, &total_bytes);
}

TEST_P(StreamConformanceTest, T11HostFunctionRunsBetweenItsNeighbours) {
  const std::uint64_t* word = NewPinned(1);
  HostCall call;
  call.word = word;
  const Stream stream = NewStream();
  LongWork(stream);
  ASSERT_EQ(device().MemsetAsync(HostAddress(word), 0x11, 8, stream),
            Status::kSuccess);
  ASSERT_EQ(device().LaunchHostFunc(stream, LookAtWord, &call),
            Status::kSuccess);
  ASSERT_EQ(device().MemsetAsync(HostAddress(word), 0x22, 8, stream),
            Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(call.runs, 1);
  EXPECT_EQ(call.seen, kFirst);
  EXPECT_EQ(*word, kSecond);
}

TEST_P(StreamConformanceTest, T11HostFunctionIsWorkOfItsStream) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  HostCall call;
  const Stream stream = NewStream();
  LongWork(stream);
  ASSERT_EQ(device().LaunchHostFunc(stream, LookAtWord, &call),
            Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(call.runs, 1);
}

TEST_P(StreamConformanceTest, T11HostFunctionMayNotCallTheDevice) {
  HostCall call;
  call.device = &device();
  const Stream stream = NewStream();
  ASSERT_EQ(device().LaunchHostFunc(stream, CallDevice, &call),
            Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(call.status, Status::kNotPermitted);
}

TEST_P(StreamConformanceTest, T11HostFunctionMustExist) {
  const Stream stream = NewStream();
  EXPECT_EQ(device().LaunchHostFunc(stream, nullptr, nullptr),
            Status::kInvalidValue);
}

TEST_P(StreamConformanceTest, T12WaitOrdersWorkAcrossDevices) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  const DevicePtr source = NewMemory(kBlockBytes, 0);
  const DevicePtr target = NewMemory(kBlockBytes, 1);
  const Stream writer = NewStream(kStreamNonBlocking, 0);
  const Stream copier = NewStream(kStreamNonBlocking, 1);
  const Event written = NewEvent(0);
  LongWork(writer);
  Write(source, kBlockBytes, kFirst, writer);
  ASSERT_EQ(device(0).EventRecord(written, writer, 0), Status::kSuccess);
  ASSERT_EQ(device(1).StreamWaitEvent(copier, written, 0), Status::kSuccess);
  ASSERT_EQ(device(1).MemcpyAsync(target, source, kBlockBytes, copier),
            Status::kSuccess);
  ASSERT_EQ(device(1).StreamSynchronize(copier), Status::kSuccess);
  EXPECT_EQ(device(0).StreamQuery(writer), Status::kSuccess);
  ExpectWords(target, kBlockBytes, kFirst, 1);
}

// S1, R2: a chain of waits over many streams preserves the order of all steps.
TEST_P(StreamConformanceTest, T12WaitsFormChains) {
  constexpr int kSteps = 8;
  const DevicePtr ptr = NewMemory(kBlockBytes);
  Stream stream = NewStream();
  LongWork(stream);
  for (int step = 1; step <= kSteps; ++step) {
    Write(ptr, kBlockBytes, static_cast<std::uint64_t>(step), stream);
    const Event event = NewEvent();
    ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
    stream = NewStream();
    ASSERT_EQ(device().StreamWaitEvent(stream, event, 0), Status::kSuccess);
  }
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(ptr, kBlockBytes, kSteps);
}

}  // namespace
}  // namespace strata
