#include "strata/allocation/diagnostics/observe_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/decorators/registry.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/allocation/system/device_allocator.h"
#include "strata/platform/calls/call_record.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

class ObserveAllocatorTest : public ::testing::Test {
 protected:
  ObserveAllocatorTest() {
    context_.platform = place_.platform();
    DecoratorOptions options = NoDecorators();
    options.observe_blocks = true;
    options.stream_safe = true;
    chain_ = Decorate(place_.pool(), options, context_);
    place_.device().SetCallObserver([this](const CallRecord& call) {
      std::string text = DeviceCallName(call.call);
      if (call.bytes != 0) text += " " + std::to_string(call.bytes);
      seen_.push_back(std::move(text));
      if (call.call == DeviceCall::kBlockMark) mark_ = call;
    });
  }
  ~ObserveAllocatorTest() override { place_.device().SetCallObserver(nullptr); }

  std::vector<std::string> Seen() { return std::exchange(seen_, {}); }

  PoolPlace place_;
  ChainContext context_;
  std::shared_ptr<Allocator> chain_;
  std::vector<std::string> seen_;
  CallRecord mark_;  // the last mark
};

TEST_F(ObserveAllocatorTest, BlockComesAfterItsMemoryAndGoesBefore) {
  AllocationPtr block = chain_->Allocate(1 << 20);
  EXPECT_THAT(Seen(),
              ElementsAre("host_acquire", "mem_alloc 1048576", "host_acquire",
                          "block_alloc 1048576", "host_release"));
  block.reset();
  EXPECT_THAT(Seen(), ElementsAre("block_free 1048576", "host_acquire",
                                  "host_acquire", "mem_free", "host_release"));
  chain_->Release();
  EXPECT_THAT(Seen(), ElementsAre("host_acquire", "host_release"));
}

TEST_F(ObserveAllocatorTest, MarkNamesTheStream) {
  AllocationPtr block = chain_->Allocate(1 << 20);
  const Stream stream = place_.NewStream();
  chain_->RecordStream(block.get(), stream);
  EXPECT_EQ(mark_.stream_uid, stream.uid);
  EXPECT_EQ(mark_.ptr, reinterpret_cast<std::uintptr_t>(block->data()));
}

TEST_F(ObserveAllocatorTest, UseUpToAnEventIsAMarkThatNamesTheEvent) {
  AllocationPtr block = chain_->Allocate(1 << 20);
  const Stream stream = place_.NewStream();
  const Event event{reinterpret_cast<void*>(0xe1)};
  chain_->RecordUse(block.get(), stream, event);
  EXPECT_EQ(mark_.stream_uid, stream.uid);
  EXPECT_EQ(mark_.value, 0xe1U);
}

TEST_F(ObserveAllocatorTest, RequestThatFailsIsNoBlock) {
  EXPECT_THROW(chain_->Allocate(std::size_t{1} << 50), std::bad_alloc);
  for (const std::string& call : Seen()) {
    EXPECT_EQ(call.find("block_alloc"), std::string::npos) << call;
  }
}

TEST_F(ObserveAllocatorTest, ZeroBytesAreNoBlock) {
  chain_->Allocate(0);
  EXPECT_THAT(Seen(), ElementsAre());
}

TEST_F(ObserveAllocatorTest, IsLeftOutWhereNobodyStaysToObserve) {
  EXPECT_EQ(Decorate(place_.pool(), NoDecorators(), context_), place_.pool());
}

TEST_F(ObserveAllocatorTest, IsThereForAnObserverThatStays) {
  place_.device().AddCallObserver([](const CallRecord&) {});
  EXPECT_STREQ(Decorate(place_.pool(), NoDecorators(), context_)->name(),
               "observe");
}

// Legacy streams of all devices share one uid (cuda_semantics.md S6).
TEST(ObserveAllocatorDevicesTest, MarkIsToldByTheDeviceOfItsStream) {
  PlatformOptions two;
  two.platform = "sim";
  two.sim_devices = 2;
  const auto platform = std::make_shared<SimPlatform>(two);
  std::vector<CallRecord> marks;
  for (int i = 0; i < 2; ++i) {
    platform->device(i).SetCallObserver([&](const CallRecord& call) {
      if (call.call == DeviceCall::kBlockMark) marks.push_back(call);
    });
  }
  ChainContext context;
  context.place = {PlaceKind::kDevice, 0};
  context.platform = platform;
  context.stream = std::make_shared<ChainStream>(
      platform->device(0), platform->device(0).LegacyStream(), nullptr);
  DecoratorOptions options = NoDecorators();
  options.observe_blocks = true;
  const auto chain = Decorate(std::make_shared<DeviceAllocator>(platform, 0),
                              options, context);
  AllocationPtr block = chain->Allocate(1 << 20);
  chain->RecordStream(block.get(), platform->device(0).LegacyStream());
  EXPECT_EQ(marks.size(), 0U);
  chain->RecordStream(block.get(), platform->device(1).LegacyStream());
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(marks[0].device, 1);
  EXPECT_EQ(marks[0].stream_uid, kLegacyStreamUid);
}

TEST(ObserveAllocatorHostTest, HostMemoryHasNoDeviceThatObserves) {
  PoolPlaceOptions options;
  options.kind = PlaceKind::kHost;
  PoolPlace place(options);
  ChainContext context;
  context.platform = place.platform();
  DecoratorOptions observe = NoDecorators();
  observe.observe_blocks = true;
  EXPECT_EQ(Decorate(place.pool(), observe, context), place.pool());
}

}  // namespace
}  // namespace strata
