// paddle.md §3.7, rules 1 to 4, and fault §5-B2.

#include "strata/strategy/cuda_malloc_async/cuda_malloc_async_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "strata/tests/strategy/cuda_malloc_async/cuda_malloc_async_fixture.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class CudaMallocAsyncAllocatorTest : public CudaMallocAsyncFixture {};

// 3.7-4: building makes no device call, so a process may fork afterwards.
TEST_F(CudaMallocAsyncAllocatorTest, BuildingMakesNoDeviceCall) {
  Build();
  const Stream stream = NewStream();
  const std::uint64_t calls = CountAll();
  const Chain chain = NewChain(pool_, device(), stream);
  EXPECT_EQ(chain->Release(), 0U);
  EXPECT_EQ(chain->stats().in_use_bytes, 0U);
  EXPECT_EQ(pool_->stats().reserved_bytes, 0U);
  EXPECT_EQ(CountAll(), calls);
}

// 3.7-1.
TEST_F(CudaMallocAsyncAllocatorTest, AllocatesOnTheStreamOfTheChain) {
  Build();
  const Chain chain = NewChain();
  const Chain other = NewChain();
  StartLog();
  const AllocationPtr block = chain->Allocate(1000);
  const AllocationPtr second = other->Allocate(1000);
  const auto calls = CallsOf(DeviceCall::kMallocFromPoolAsync);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].stream_uid, chain.stream().uid);
  EXPECT_EQ(calls[0].bytes, 1024U);
  EXPECT_EQ(calls[1].stream_uid, other.stream().uid);
  // One pool for the place, created once.
  EXPECT_EQ(calls[0].value, calls[1].value);
  EXPECT_EQ(CallsOf(DeviceCall::kPoolCreate).size(), 1U);
}

// 3.7-1.
TEST_F(CudaMallocAsyncAllocatorTest, RecordStreamKeepsASetWithoutTheOwner) {
  setting_.devices = 2;
  Build();
  const Chain chain = NewChain();
  const Stream user = NewStream();
  const AllocationPtr block = chain->Allocate(1000);
  EXPECT_FALSE(chain->RecordStream(block.get(), chain.stream()));
  EXPECT_FALSE(chain->RecordStream(block.get(), Stream()));
  // The layer above handles it, because it knows the other device.
  EXPECT_FALSE(chain->RecordStream(block.get(), NewStream(1)));
  EXPECT_TRUE(chain->RecordStream(block.get(), user));
  EXPECT_TRUE(chain->RecordStream(block.get(), user));
  chain->EraseStream(block.get(), user);
  EXPECT_EQ(block->block()->flags, kBlockLive);
  chain->EraseStream(block.get(), user);  // no effect
}

// 3.7-2.
TEST_F(CudaMallocAsyncAllocatorTest, WithoutMarksAFreeIsOneCallOnTheOwnStream) {
  Build();
  const Chain chain = NewChain();
  AllocationPtr block = chain->Allocate(1000);
  AllocationPtr erased = chain->Allocate(1000);
  const Stream user = NewStream();
  chain->RecordStream(erased.get(), user);
  chain->EraseStream(erased.get(), user);
  StartLog();
  block.reset();
  erased.reset();
  EXPECT_THAT(LoggedWork(),
              ElementsAre(Pair(DeviceCall::kFreeAsync, chain.stream().uid),
                          Pair(DeviceCall::kFreeAsync, chain.stream().uid)));
  EXPECT_EQ(log_.size(), 2U);
}

// 3.7-2: pairs of record and wait on the owner and every recorded stream.
TEST_F(CudaMallocAsyncAllocatorTest, WithMarksAFreeGoesBehindEveryUser) {
  Build();
  const Chain chain = NewChain();
  const Stream first = NewStream();
  const Stream second = NewStream();
  AllocationPtr block = chain->Allocate(1000);
  chain->RecordStream(block.get(), first);
  chain->RecordStream(block.get(), second);
  StartLog();
  block.reset();
  const auto frees = CallsOf(DeviceCall::kFreeAsync);
  ASSERT_EQ(frees.size(), 1U);
  const std::uint64_t aside = frees[0].stream_uid;
  EXPECT_NE(aside, chain.stream().uid);
  EXPECT_THAT(LoggedWork(),
              ElementsAre(Pair(DeviceCall::kStreamCreate, aside),
                          Pair(DeviceCall::kEventRecord, chain.stream().uid),
                          Pair(DeviceCall::kStreamWaitEvent, aside),
                          Pair(DeviceCall::kEventRecord, first.uid),
                          Pair(DeviceCall::kStreamWaitEvent, aside),
                          Pair(DeviceCall::kEventRecord, second.uid),
                          Pair(DeviceCall::kStreamWaitEvent, aside),
                          Pair(DeviceCall::kFreeAsync, aside)));
  EXPECT_EQ(device().Leaks().events, 0U);
  // The stream is created once for each set of streams.
  block = chain->Allocate(1000);
  chain->RecordStream(block.get(), second);
  FreeMarked(std::move(block), first);
  EXPECT_EQ(CallsOf(DeviceCall::kStreamCreate).size(), 1U);
}

// The chain's stream reuses the memory only behind the work of the other
// stream, which has not run yet.
TEST_F(CudaMallocAsyncAllocatorTest, MarkedMemoryIsReusedAfterItsUsers) {
  setting_.progress = "lazy";
  Build();
  const Chain chain = NewChain();
  const Stream user = NewStream();
  std::string ran;
  struct Note {
    std::string* ran;
    char name;
  };
  Note use{&ran, 'u'};
  Note reuse{&ran, 'r'};
  const HostFunction write = [](void* note) {
    auto* to = static_cast<Note*>(note);
    *to->ran += to->name;
  };
  AllocationPtr block = chain->Allocate(Mebibytes(60));
  device().LaunchHostFunc(user, write, &use);
  void* const address = block->data();
  FreeMarked(std::move(block), user);
  block = chain->Allocate(Mebibytes(60));
  EXPECT_EQ(block->data(), address);
  device().LaunchHostFunc(chain.stream(), write, &reuse);
  EXPECT_EQ(ran, "");
  EXPECT_EQ(device().StreamSynchronize(chain.stream()), Status::kSuccess);
  EXPECT_EQ(ran, "ur");
}

// 3.7-4: on the device of the place, whichever was used last (paddle.md §5 B2:
// it was on the current device).
TEST_F(CudaMallocAsyncAllocatorTest, TheFreeStreamIsOnTheDeviceOfThePlace) {
  setting_.devices = 2;
  setting_.ordinal = 1;
  Build();
  const Chain chain = NewChain();
  const Stream user = NewStream();
  AllocationPtr block = chain->Allocate(1000);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  SimDevice& other = platform_->sim_device(0);
  other.MemGetInfo(&free_bytes, &total_bytes);  // "the current device"
  const std::uint64_t streams = Count(DeviceCall::kStreamCreate);
  FreeMarked(std::move(block), user);
  EXPECT_EQ(Count(DeviceCall::kStreamCreate), streams + 1);
  EXPECT_EQ(other.CallCount(DeviceCall::kStreamCreate), 0U);
}

// §5-B2: every kind of free releases the record.
TEST_F(CudaMallocAsyncAllocatorTest, LeaksNoRecords) {
  Build();
  const Chain chain = NewChain();
  const Stream user = NewStream();
  const std::size_t taken = RecordSlab::Instance().taken();
  for (int i = 0; i < 100; ++i) {
    AllocationPtr plain = chain->Allocate(1000);
    FreeMarked(chain->Allocate(1000), user);
  }
  Failure failure;
  EXPECT_EQ(chain->AllocateOrNull(Request{Mebibytes(65)}, failure), nullptr);
  EXPECT_EQ(RecordSlab::Instance().taken(), taken);
  EXPECT_EQ(chain->stats().allocations, 200U);
  EXPECT_EQ(chain->stats().frees, 200U);
}

TEST_F(CudaMallocAsyncAllocatorTest, RefusesWhatTheDriverCannotPromise) {
  Build();
  const Chain chain = NewChain();
  Failure failure;
  EXPECT_EQ(chain->AllocateOrNull(Request{1, 512}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kBadRequest);
  EXPECT_EQ(chain->AllocateOrNull(Request{1, 0, kNoGrowth}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kNoGrowth);
  EXPECT_EQ(chain->AllocateOrNull(Request{SIZE_MAX}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kTooLarge);
  EXPECT_STREQ(failure.layer, "cuda_malloc_async");
  EXPECT_EQ(Count(DeviceCall::kPoolCreate), 0U);
}

// Blocks that outlive the chain's stream are freed on the free stream. No call
// uses the destroyed stream.
TEST_F(CudaMallocAsyncAllocatorTest, ABlockOutlivesItsStream) {
  setting_.progress = "lazy";
  Build();
  const Chain chain = NewChain();
  AllocationPtr early = chain->Allocate(1000);
  AllocationPtr plain = chain->Allocate(1000);
  AllocationPtr marked = chain->Allocate(1000);
  chain->RecordStream(marked.get(), NewStream());
  chain->StreamDestroyed(chain.stream());
  // After the announcement, a free of another thread must not use it.
  StartLog();
  early.reset();
  EXPECT_EQ(CallsOf(DeviceCall::kFreeAsync).size(), 1U);
  for (const CallRecord& call : log_) {
    EXPECT_NE(call.stream_uid, chain.stream().uid);
  }
  chain.chain_stream->Synchronize();
  chain.chain_stream->Retire();
  Destroy(chain.stream());
  StartLog();
  plain.reset();
  marked.reset();
  for (const CallRecord& call : log_) {
    EXPECT_NE(call.stream_uid, chain.stream().uid);
    EXPECT_EQ(call.status, Status::kSuccess);
  }
  EXPECT_EQ(CallsOf(DeviceCall::kFreeAsync).size(), 2U);
  Failure failure;
  EXPECT_EQ(chain->AllocateOrNull(Request{1}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kBadRequest);
}

// A stream that used memory may be destroyed before the memory is freed.
TEST_F(CudaMallocAsyncAllocatorTest, AMarkOutlivesItsStream) {
  setting_.progress = "lazy";
  Build();
  const Chain chain = NewChain();
  const Stream user = NewStream();
  AllocationPtr block = chain->Allocate(Mebibytes(60));
  bool used = false;
  device().LaunchHostFunc(
      user, [](void* flag) { *static_cast<bool*>(flag) = true; }, &used);
  chain->RecordStream(block.get(), user);
  chain->StreamDestroyed(user);
  EXPECT_FALSE(used) << "waiting on the host was not needed";
  chain->EraseStream(block.get(), user);
  Destroy(user);
  StartLog();
  block.reset();
  for (const CallRecord& call : log_) EXPECT_NE(call.stream_uid, user.uid);
  const auto frees = CallsOf(DeviceCall::kFreeAsync);
  ASSERT_EQ(frees.size(), 1U);
  EXPECT_NE(frees[0].stream_uid, chain.stream().uid);
  // The work of a destroyed stream cannot be waited for directly; the free
  // stream waits for it.
  block = chain->Allocate(Mebibytes(60));
  EXPECT_EQ(device().StreamSynchronize(chain.stream()), Status::kSuccess);
  EXPECT_TRUE(used);
}

}  // namespace
}  // namespace strata
