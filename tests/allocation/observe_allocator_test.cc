#include "strata/allocation/observe_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/registry.h"
#include "strata/platform/call_record.h"
#include "strata/platform/sim/sim_platform.h"
#include "strata/tests/testing/pool_place.h"

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
      last_ = call;
    });
  }
  ~ObserveAllocatorTest() override { place_.device().SetCallObserver(nullptr); }

  std::vector<std::string> Seen() { return std::exchange(seen_, {}); }

  PoolPlace place_;
  ChainContext context_;
  std::shared_ptr<Allocator> chain_;
  std::vector<std::string> seen_;
  CallRecord last_;
};

TEST_F(ObserveAllocatorTest, BlockComesAfterItsMemoryAndGoesBefore) {
  AllocationPtr block = chain_->Allocate(1 << 20);
  EXPECT_THAT(Seen(), ElementsAre("host_acquire", "mem_alloc 1048576",
                                  "block_alloc 1048576", "host_release"));
  block.reset();
  EXPECT_THAT(Seen(), ElementsAre("block_free 1048576", "host_acquire",
                                  "mem_free", "host_release"));
  chain_->Release();
  EXPECT_THAT(Seen(), ElementsAre("host_acquire", "host_release"));
}

TEST_F(ObserveAllocatorTest, MarkNamesTheStream) {
  AllocationPtr block = chain_->Allocate(1 << 20);
  const Stream stream = place_.NewStream();
  chain_->RecordStream(block.get(), stream);
  EXPECT_EQ(last_.call, DeviceCall::kBlockMark);
  EXPECT_EQ(last_.stream_uid, stream.uid);
  EXPECT_EQ(last_.ptr, reinterpret_cast<std::uintptr_t>(block->data()));
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
