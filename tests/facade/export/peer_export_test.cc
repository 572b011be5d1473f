// Access of other devices to memory of virtual_memory.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/tests/facade/export/export_fixture.h"

namespace strata {
namespace {

class PeerExportTest : public ExportTest {
 protected:
  explicit PeerExportTest(int devices = 2) : ExportTest(devices) {}

  // Enables device 1 before the first unmap; the result tells whether it has.
  std::shared_ptr<bool> EnableAtUnmap() {
    auto is_enabled = std::make_shared<bool>(false);
    facade().AddVisitor(
        kPlace, [this, is_enabled](Place, void*, std::size_t, int change) {
          if (change < 0 && !std::exchange(*is_enabled, true)) {
            facade().EnablePeerAccess(kPlace, 1);
          }
        });
    return is_enabled;
  }

  void RefuseAll(DeviceCall call) {
    FaultRule rule;
    rule.call = call;
    rule.every = 1;
    device().AddFault(rule);
  }
  // Enables device 1 when a growth has mapped its pages.
  void EnableAtMap(const std::function<void()>& then = [] {}) {
    facade().AddVisitor(kPlace,
                        [this, then](Place, void*, std::size_t, int change) {
                          if (change < 0 || std::exchange(was_enabled_, true))
                            return;
                          facade().EnablePeerAccess(kPlace, 1);
                          then();
                        });
  }
  // At the next SetAccess, another request takes `bytes` of free memory.
  void TakeAtGrant(std::size_t bytes) {
    device().SetCallObserver([this, bytes](const CallRecord& record) {
      if (record.call != DeviceCall::kSetAccess || !was_enabled_) return;
      device().SetCallObserver(nullptr);
      Failure failure;
      taken_ = facade().TryAlloc(kPlace, Request{bytes, 0, kNoGrowth}, failure);
      has_tried_ = true;
      if (taken_ != nullptr) taken_access_ = AccessOfPeer(taken_);
    });
  }

  // To the last byte, because a grant begins with the first pages.
  Access AccessOfPeer(const AllocationPtr& block) {
    Access access = Access::kNone;
    EXPECT_EQ(device().GetAccess(At(block->data()) + block->size() - 1,
                                 {Location::Kind::kDevice, 1}, &access),
              Status::kSuccess);
    return access;
  }

  bool was_enabled_ = false;
  bool has_tried_ = false;
  AllocationPtr taken_;
  Access taken_access_ = Access::kReadWrite;
};

TEST_F(PeerExportTest, PeersReachWhatIsMappedNowAndLater) {
  Build(kMapped);
  const AllocationPtr first = Alloc(2 * kPage);
  AllocationPtr free = Alloc(2 * kPage);
  free.reset();
  const Stream stream = NewStream();
  const AllocationPtr other = facade().Alloc(kPlace, 4 * kPage, stream);
  EXPECT_EQ(AccessOfPeer(first), Access::kNone);
  facade().EnablePeerAccess(kPlace, 1);
  EXPECT_EQ(AccessOfPeer(first), Access::kReadWrite);
  EXPECT_EQ(AccessOfPeer(other), Access::kReadWrite);
  free = Alloc(2 * kPage);
  EXPECT_EQ(AccessOfPeer(free), Access::kReadWrite);
  const AllocationPtr later = Alloc(6 * kPage);
  EXPECT_EQ(AccessOfPeer(later), Access::kReadWrite);
  const std::uint64_t calls = Count(DeviceCall::kSetAccess);
  facade().EnablePeerAccess(kPlace, 1);
  EXPECT_EQ(Count(DeviceCall::kSetAccess), calls);
}

TEST_F(PeerExportTest, PeersReachMemoryThatMoved) {
  Build(kMapped);
  std::vector<AllocationPtr> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(Alloc(4 * kPage));
  facade().EnablePeerAccess(kPlace, 1);
  for (std::size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
  const AllocationPtr moved = Alloc(16 * kPage);
  EXPECT_EQ(AccessOfPeer(moved), Access::kReadWrite);
}

TEST_F(PeerExportTest, FailedEnableLeavesLaterMappingsAlone) {
  Build(kMapped);
  const AllocationPtr first = Alloc(2 * kPage);
  Fault(DeviceCall::kSetAccess, 1);
  EXPECT_THROW(facade().EnablePeerAccess(kPlace, 1), DeviceError);
  device().ClearFaults();
  const AllocationPtr later = Alloc(2 * kPage);
  EXPECT_EQ(AccessOfPeer(later), Access::kNone);
  facade().EnablePeerAccess(kPlace, 1);
  EXPECT_EQ(AccessOfPeer(first), Access::kReadWrite);
  EXPECT_EQ(AccessOfPeer(later), Access::kReadWrite);
}

// Memory that a growth has mapped belongs to no block yet when visitors run.
TEST_F(PeerExportTest, PeerThatIsEnabledDuringAGrowthReachesItsMemory) {
  Build(kMapped);
  const auto is_enabled = std::make_shared<bool>(false);
  facade().AddVisitor(kPlace,
                      [this, is_enabled](Place, void*, std::size_t, int) {
                        if (!std::exchange(*is_enabled, true)) {
                          facade().EnablePeerAccess(kPlace, 1);
                        }
                      });
  const AllocationPtr block = Alloc(4 * kPage);
  EXPECT_TRUE(*is_enabled);
  EXPECT_EQ(AccessOfPeer(block), Access::kReadWrite);
}

TEST_F(PeerExportTest, PeerThatIsEnabledDuringARefusedReleaseReachesItsMemory) {
  Build(kMapped);
  const auto is_enabled = EnableAtUnmap();
  AllocationPtr block = Alloc(4 * kPage);
  block.reset();
  RefuseAll(DeviceCall::kUnmapRange);
  EXPECT_EQ(facade().Release(kPlace), 0U);
  device().ClearFaults();
  block = Alloc(4 * kPage);
  EXPECT_TRUE(*is_enabled);
  EXPECT_EQ(AccessOfPeer(block), Access::kReadWrite);
}

TEST_F(PeerExportTest, GrowthPublishesNoMemoryWithoutTheAccess) {
  Build(kMapped);
  EnableAtMap();
  TakeAtGrant(kPage / 8);
  const AllocationPtr block = Alloc(4 * kPage - kPage / 4);
  EXPECT_TRUE(has_tried_);
  EXPECT_EQ(taken_access_, Access::kReadWrite);
  EXPECT_EQ(AccessOfPeer(block), Access::kReadWrite);
}

TEST_F(PeerExportTest, FailedGrowthRestoresNoMemoryWithoutTheAccess) {
  Build(kMapped);
  Alloc(4 * kPage).reset();
  RefuseAll(DeviceCall::kCreateMemory);
  device().SetCallObserver([this](const CallRecord& record) {
    if (record.call != DeviceCall::kCreateMemory) return;
    was_enabled_ = true;
    TakeAtGrant(4 * kPage);
    facade().EnablePeerAccess(kPlace, 1);
  });
  EXPECT_FALSE(CanAlloc(6 * kPage));
  EXPECT_TRUE(has_tried_);
  EXPECT_EQ(taken_access_, Access::kReadWrite);
}

TEST_F(PeerExportTest, RefusedReleaseRestoresNoMemoryWithoutTheAccess) {
  Build(kMapped);
  const auto is_enabled = EnableAtUnmap();
  Alloc(4 * kPage).reset();
  RefuseAll(DeviceCall::kUnmapRange);
  was_enabled_ = true;
  TakeAtGrant(4 * kPage);
  EXPECT_EQ(facade().Release(kPlace), 0U);
  EXPECT_TRUE(*is_enabled);
  EXPECT_TRUE(has_tried_);
  EXPECT_EQ(taken_access_, Access::kReadWrite);
  device().ClearFaults();
}

TEST_F(PeerExportTest, GrowthWithoutTheAccessFails) {
  Build(kMapped);
  EnableAtMap([this] { RefuseAll(DeviceCall::kSetAccess); });
  EXPECT_FALSE(CanAlloc(4 * kPage));
  EXPECT_TRUE(was_enabled_);
  device().ClearFaults();
  AllocationPtr block = Alloc(4 * kPage);
  EXPECT_EQ(AccessOfPeer(block), Access::kReadWrite);
  block.reset();
  facade().Release(kPlace);
  EXPECT_EQ(Reserved(), 0U);
}

TEST_F(PeerExportTest, LaterGrowthsSetAccessThatFailed) {
  Build(kMapped);
  const auto is_enabled = EnableAtUnmap();
  AllocationPtr block = Alloc(4 * kPage);
  block.reset();
  RefuseAll(DeviceCall::kUnmapRange);
  RefuseAll(DeviceCall::kSetAccess);
  EXPECT_EQ(facade().Release(kPlace), 0U);
  EXPECT_TRUE(*is_enabled);
  device().ClearFaults();
  block = Alloc(4 * kPage);
  EXPECT_EQ(AccessOfPeer(block), Access::kNone);
  const AllocationPtr other = Alloc(6 * kPage);
  EXPECT_EQ(AccessOfPeer(block), Access::kReadWrite);
}

// Another thread ends the stream while the driver grants the access.
TEST_F(PeerExportTest, StreamThatEndsDuringAGrantReleasesItsMemory) {
  Build(kMapped);
  const Stream stream = NewStream();
  facade().Alloc(kPlace, 4 * kPage, stream).reset();
  std::atomic<bool> has_ended{false};
  std::future<void> end;
  device().SetCallObserver([&](const CallRecord& record) {
    if (record.call != DeviceCall::kSetAccess || end.valid()) return;
    end = std::async(std::launch::async, [&] {
      facade().StreamDestroyed(stream);
      has_ended = true;
    });
    // The end waits for the grant, or leaves the memory to a later release.
    for (int i = 0; i < 100000 && !has_ended; ++i) std::this_thread::yield();
  });
  facade().EnablePeerAccess(kPlace, 1);
  device().SetCallObserver(nullptr);
  end.get();
  EXPECT_EQ(Reserved(), 0U);
}

class TwoPeersTest : public PeerExportTest {
 protected:
  TwoPeersTest() : PeerExportTest(3) {}
};

// While one thread enables a peer, another one catches up with the list and
// stops between two handles.
TEST_F(TwoPeersTest, PeerReachesAllMemoryWhateverOtherThreadsDo) {
  Build(kMapped);
  const auto is_enabled = EnableAtUnmap();
  const AllocationPtr first = Alloc(kPage);
  const Stream stream = NewStream();
  const AllocationPtr other = facade().Alloc(kPlace, 4 * kPage, stream);
  // A peer that is enabled during an unmap leaves a task to later growths.
  facade().Alloc(kPlace, 2 * kPage, stream).reset();
  EXPECT_NE(facade().Release(kPlace), 0U);
  ASSERT_TRUE(*is_enabled);

  std::future<void> growth;
  std::promise<void> stopped;
  std::promise<void> may_continue;
  std::atomic<int> calls{0};  // of SetAccess, in the thread of the growth
  const std::thread::id enabling = std::this_thread::get_id();
  device().SetCallObserver([&](const CallRecord& record) {
    if (record.call != DeviceCall::kSetAccess) return;
    if (std::this_thread::get_id() != enabling) {
      // The first call is for the growth.
      if (++calls != 2) return;
      stopped.set_value();
      may_continue.get_future().wait();
    } else if (!growth.valid()) {
      growth = std::async(std::launch::async, [&] {
        facade().Alloc(kPlace, 6 * kPage, stream).reset();
      });
      stopped.get_future().wait_for(std::chrono::seconds(10));
    }
  });
  facade().EnablePeerAccess(kPlace, 2);
  for (std::size_t offset = 0; offset < 4 * kPage; offset += kPage) {
    Access access = Access::kNone;
    EXPECT_EQ(device().GetAccess(At(other->data()) + offset,
                                 {Location::Kind::kDevice, 2}, &access),
              Status::kSuccess);
    EXPECT_EQ(access, Access::kReadWrite) << offset;
  }
  may_continue.set_value();
  growth.get();
  device().SetCallObserver(nullptr);
}

TEST_F(PeerExportTest, OnlyOtherDevicesArePeers) {
  Build(kMapped);
  for (const int peer : {-1, 0, 2}) {
    EXPECT_THROW(facade().EnablePeerAccess(kPlace, peer),
                 std::invalid_argument);
  }
  EXPECT_THROW(facade().EnablePeerAccess(HostPlace(), 1),
               std::invalid_argument);
}

}  // namespace
}  // namespace strata
