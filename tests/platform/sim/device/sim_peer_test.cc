// Peer access between simulated devices (cuda_semantics.md H13).

#include <gtest/gtest.h>

#include <mutex>

#include "strata/platform/device_work.h"
#include "strata/tests/platform/sim/memory/virtual_fixture.h"

namespace strata::sim {
namespace {

class SimPeerTest : public VirtualFixture {
 protected:
  // Work of device `ordinal` on 8 bytes at `ptr`.
  Status Work(int ordinal, DevicePtr ptr, bool write = true) {
    const WorkRange range{ptr, 8, write};
    std::lock_guard lock(platform_.mutex());
    return device(ordinal).ExecuteWork(&range, 1, 0);
  }

  Status Copy(int ordinal, DevicePtr target, DevicePtr source) {
    return device(ordinal).MemcpyAsync(target, source, 8,
                                       device(ordinal).LegacyStream());
  }
};

TEST_F(SimPeerTest, WorkNeedsPeerAccessInItsDirection) {
  const DevicePtr on_zero = Alloc(64, 0);
  const DevicePtr on_one = Alloc(64, 1);
  EXPECT_EQ(Work(0, on_one, false), Status::kIllegalAddress);
  ASSERT_EQ(device(0).EnablePeerAccess(1), Status::kSuccess);
  EXPECT_EQ(Work(0, on_one, false), Status::kSuccess);
  EXPECT_EQ(Work(0, on_one, true), Status::kSuccess);
  EXPECT_EQ(Work(1, on_zero), Status::kIllegalAddress);
}

TEST_F(SimPeerTest, PeerAccessCoversLaterAllocations) {
  ASSERT_EQ(device(0).EnablePeerAccess(1), Status::kSuccess);
  EXPECT_EQ(Work(0, Alloc(64, 1)), Status::kSuccess);
  EXPECT_EQ(Work(0, Alloc(kFrameBytes, 1)), Status::kSuccess);
}

TEST_F(SimPeerTest, PeerAccessDoesNotCoverMappedMemory) {
  ASSERT_EQ(device(0).EnablePeerAccess(1), Status::kSuccess);
  const DevicePtr ptr = Reserve(1);
  ASSERT_EQ(Map(ptr, 1, Create(1, 1)), Status::kSuccess);
  ASSERT_EQ(Allow(ptr, 1, 1), Status::kSuccess);
  EXPECT_EQ(Work(0, ptr), Status::kIllegalAddress);
  EXPECT_EQ(Work(1, ptr), Status::kSuccess);
  EXPECT_EQ(Copy(0, ptr, Alloc(64)), Status::kInvalidValue);
}

TEST_F(SimPeerTest, CopiesOfAllocationsNeedNoPeerAccess) {
  EXPECT_EQ(Copy(0, Alloc(64, 0), Alloc(64, 1)), Status::kSuccess);
  EXPECT_EQ(Copy(0, Alloc(64, 1), Alloc(64, 1)), Status::kSuccess);
}

TEST_F(SimPeerTest, HostMemoryIsOpenToEveryDevice) {
  void* pinned = nullptr;
  DevicePtr managed = 0;
  ASSERT_EQ(device(1).MallocHost(&pinned, 64, 0), Status::kSuccess);
  ASSERT_EQ(device(1).MallocManaged(&managed, 64, kManagedGlobal),
            Status::kSuccess);
  EXPECT_EQ(Work(0, reinterpret_cast<DevicePtr>(pinned)), Status::kSuccess);
  EXPECT_EQ(Work(0, managed), Status::kSuccess);
}

}  // namespace
}  // namespace strata::sim
