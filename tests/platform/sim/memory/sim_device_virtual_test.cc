// Virtual memory through the simulated device. Rule and test numbers are those
// of cuda_semantics.md.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "strata/platform/sim/memory/device_memory.h"
#include "strata/tests/platform/sim/memory/virtual_fixture.h"
#include "strata/tests/testing/devices/statuses.h"

namespace strata::sim {
namespace {

class SimDeviceVirtualTest : public VirtualFixture {};

TEST_F(SimDeviceVirtualTest,
       GranularityIsAFrameForMemoryOfDevicesOnly) {  // T63
  MemProperties properties;
  std::size_t least = 0;
  std::size_t recommended = 0;
  ASSERT_EQ(device().Granularity(properties, false, &least), kOk);
  ASSERT_EQ(device().Granularity(properties, true, &recommended), kOk);
  EXPECT_EQ(least, kFrameBytes);
  EXPECT_EQ(recommended % least, 0u);
  EXPECT_EQ(device().caps().map_granularity_bytes, least);
  EXPECT_EQ(device().Granularity(properties, true, nullptr), kBad);
  properties.location.id = 2;
  EXPECT_EQ(device().Granularity(properties, true, &least), kBad);
  properties.location = {Location::Kind::kHost, 0};
  EXPECT_EQ(device().Granularity(properties, true, &least), kBad);
}

TEST_F(SimDeviceVirtualTest, ReservationNeedsASizeAndAPowerOfTwo) {  // V1
  DevicePtr ptr = 77;
  EXPECT_EQ(device().ReserveRange(&ptr, 0, 0, 0), kBad);
  EXPECT_EQ(device().ReserveRange(&ptr, 4096, 0, 0), kBad);
  EXPECT_EQ(device().ReserveRange(&ptr, kFrameBytes + 1, 0, 0), kBad);
  EXPECT_EQ(device().ReserveRange(&ptr, kFrameBytes, 3, 0), kBad);
  EXPECT_EQ(device().ReserveRange(&ptr, kFrameBytes, 0, 1), kBad);
  EXPECT_EQ(device().ReserveRange(nullptr, kFrameBytes, 0, 0), kBad);
  EXPECT_EQ(ptr, 77u);
  EXPECT_EQ(device().Leaks(), SimLeaks{});
}

TEST_F(SimDeviceVirtualTest, ReservationsAreAlignedApartAndWithoutMemory) {
  std::set<DevicePtr> ends{0};
  for (const std::uint64_t alignment :
       {std::uint64_t{0}, std::uint64_t{512}, std::uint64_t{1} << 30,
        std::uint64_t{1} << 45}) {
    DevicePtr ptr = 0;
    ASSERT_EQ(device().ReserveRange(&ptr, std::size_t{1} << 40, alignment, 0),
              kOk);
    EXPECT_EQ(ptr % kFrameBytes, 0u);
    if (alignment != 0) {
      EXPECT_EQ(ptr % alignment, 0u);
    }
    EXPECT_GE(ptr, *ends.rbegin());
    ends.insert(ptr + (DevicePtr{1} << 40));
  }
  EXPECT_LE(*ends.rbegin(), DevicePtr{1} << 53);
  EXPECT_EQ(FreeFrames(), kFrames);
}

TEST_F(SimDeviceVirtualTest, ReservationWithoutAddressesLeftIsRefused) {
  constexpr std::uint64_t kLargest = kMaxReservationBytes - kFrameBytes;
  DevicePtr ptr = 77;
  for (const std::uint64_t bytes :
       {kMaxReservationBytes, kReservedWindowBytes + kFrameBytes}) {
    EXPECT_EQ(device().ReserveRange(&ptr, bytes, 0, 0),
              Status::kMemoryAllocation);
  }
  EXPECT_EQ(device().ReserveRange(&ptr, kFrameBytes, std::uint64_t{1} << 63, 0),
            Status::kMemoryAllocation);
  EXPECT_EQ(ptr, 77u);
  std::vector<DevicePtr> taken;
  Status status = kOk;
  while (status == kOk) {
    status = device().ReserveRange(&ptr, kLargest, 0, 0);
    if (status == kOk) taken.push_back(ptr);
  }
  EXPECT_EQ(status, Status::kMemoryAllocation);
  EXPECT_EQ(taken.size(), kReservedWindowBytes / kMaxReservationBytes);
  ASSERT_EQ(device().FreeRange(taken.front(), kLargest), kOk);
  EXPECT_EQ(device().ReserveRange(&ptr, kLargest, 0, 0), kOk);
}

TEST_F(SimDeviceVirtualTest, ReservationIsFreedAsAWholeAndUnmapped) {  // V2 T69
  const DevicePtr ptr = Reserve(4);
  EXPECT_EQ(device().FreeRange(ptr, 2 * kFrameBytes), kBad);
  EXPECT_EQ(device().FreeRange(ptr + kFrameBytes, 3 * kFrameBytes), kBad);
  ASSERT_EQ(Map(ptr + 2 * kFrameBytes, 1, Create(1)), kOk);
  EXPECT_EQ(device().FreeRange(ptr, 4 * kFrameBytes), kBad);
  ASSERT_EQ(Unmap(ptr + 2 * kFrameBytes, 1), kOk);
  EXPECT_EQ(device().FreeRange(ptr, 4 * kFrameBytes), kOk);
  EXPECT_EQ(device().FreeRange(ptr, 4 * kFrameBytes), kBad);
}

TEST_F(SimDeviceVirtualTest, CreatingTakesFramesOfTheLocation) {  // V3 T63
  MemProperties properties;
  MemHandle handle;
  EXPECT_EQ(device().CreateMemory(&handle, 0, properties), kBad);
  EXPECT_EQ(device().CreateMemory(&handle, kFrameBytes - 1, properties), kBad);
  EXPECT_EQ(device().CreateMemory(nullptr, kFrameBytes, properties), kBad);
  properties.location.id = -1;
  EXPECT_EQ(device().CreateMemory(&handle, kFrameBytes, properties), kBad);
  properties.location = {Location::Kind::kHostNuma, 0};
  EXPECT_EQ(device().CreateMemory(&handle, kFrameBytes, properties), kBad);
  EXPECT_EQ(handle, MemHandle{});
  Create(3, 1);
  EXPECT_EQ(FreeFrames(0), kFrames);
  EXPECT_EQ(FreeFrames(1), kFrames - 3);
}

TEST_F(SimDeviceVirtualTest, CreatingFailsExactlyWithoutFrames) {  // T85
  const MemHandle most = Create(kFrames - 1);
  MemHandle handle;
  EXPECT_EQ(device().CreateMemory(&handle, 2 * kFrameBytes, {}),
            Status::kMemoryAllocation);
  EXPECT_EQ(handle, MemHandle{});
  EXPECT_EQ(FreeFrames(), 1u);
  EXPECT_NE(Create(1), most);
  EXPECT_EQ(device().peak_used_bytes(), kFrames * kFrameBytes);
}

TEST_F(SimDeviceVirtualTest, HandleIsGoodUntilItsLastReference) {  // V4
  const MemHandle handle = Create(1);
  EXPECT_EQ(device().ReleaseMemory(handle), kOk);
  EXPECT_EQ(device().ReleaseMemory(handle), kBad);
  EXPECT_EQ(device().ReleaseMemory({}), kBad);
  EXPECT_EQ(Map(Reserve(1), 1, handle), kBad);
  EXPECT_EQ(FreeFrames(), kFrames);
  EXPECT_NE(Create(1), handle);
}

TEST_F(SimDeviceVirtualTest, MappingNeedsAlignedFreeAddresses) {  // V5 T63 T68
  const DevicePtr ptr = Reserve(4);
  const MemHandle handle = Create(2);
  EXPECT_EQ(Map(ptr + 4096, 2, handle), kBad);
  EXPECT_EQ(device().MapRange(ptr, 0, 0, handle), kBad);
  EXPECT_EQ(Map(ptr, 2, MemHandle{}), kBad);
  EXPECT_EQ(Map(0, 2, handle), kBad);
  EXPECT_EQ(Map(ptr + 3 * kFrameBytes, 2, handle), kBad);
  EXPECT_EQ(Map(Alloc(2 * kFrameBytes), 2, handle), kBad);
  EXPECT_EQ(device().Leaks().mappings, 0u);
  ASSERT_EQ(Map(ptr + kFrameBytes, 2, handle), kOk);
  for (const std::uint64_t frame : {0u, 1u, 2u}) {
    EXPECT_EQ(Map(ptr + frame * kFrameBytes, 2, handle), kBad) << frame;
  }
  EXPECT_EQ(Map(ptr, 1, Create(1)), kOk);
}

TEST_F(SimDeviceVirtualTest, MappingIsOfTheWholeHandle) {  // V5 T63
  const DevicePtr ptr = Reserve(4);
  const MemHandle handle = Create(2);
  for (const std::uint64_t bytes : {std::uint64_t{4096}, kFrameBytes,
                                    2 * kFrameBytes + 1, 3 * kFrameBytes}) {
    EXPECT_EQ(device().MapRange(ptr, bytes, 0, handle), Status::kNotSupported);
  }
  EXPECT_EQ(device().MapRange(ptr, kFrameBytes, kFrameBytes, handle),
            Status::kNotSupported);
  EXPECT_EQ(device().MapRange(ptr, 2 * kFrameBytes, 1, handle),
            Status::kNotSupported);
  // For any address.
  EXPECT_EQ(Map(ptr + 4096, 1, handle), Status::kNotSupported);
  EXPECT_EQ(device().Leaks().mappings, 0u);
}

TEST_F(SimDeviceVirtualTest, HandleMayBeMappedManyTimes) {  // V5
  const DevicePtr ptr = Reserve(8);
  const MemHandle handle = Create(3);
  EXPECT_EQ(Map(ptr, 3, handle), kOk);
  EXPECT_EQ(Map(ptr + 3 * kFrameBytes, 3, handle), kOk);
  EXPECT_EQ(device().Leaks().mappings, 2u);
  EXPECT_EQ(FreeFrames(), kFrames - 3);
}

TEST_F(SimDeviceVirtualTest, MappingOfTwoReservationsSideBySideIsRefused) {
  const DevicePtr low = Reserve(1);
  const DevicePtr high = Reserve(1);
  ASSERT_EQ(high, low + kFrameBytes);
  EXPECT_EQ(Map(low, 2, Create(2)), kBad);
  ASSERT_EQ(Map(low, 1, Create(1)), kOk);
  ASSERT_EQ(Map(high, 1, Create(1)), kOk);
  EXPECT_EQ(Unmap(low, 2), kBad);
}

TEST_F(SimDeviceVirtualTest, HandlesOfTwoDevicesShareAReservation) {  // V5
  const DevicePtr ptr = Reserve(2);
  ASSERT_EQ(Map(ptr, 1, Create(1, 0)), kOk);
  ASSERT_EQ(Map(ptr + kFrameBytes, 1, Create(1, 1)), kOk);
  ASSERT_EQ(Allow(ptr, 2), kOk);
  EXPECT_EQ(
      device().MemsetAsync(ptr, 1, 2 * kFrameBytes, device().LegacyStream()),
      kOk);
  EXPECT_EQ(device(0).Leaks().mapped_bytes, kFrameBytes);
  EXPECT_EQ(device(1).Leaks().mapped_bytes, kFrameBytes);
}

TEST_F(SimDeviceVirtualTest, MemoryWithoutAccessIsRefused) {  // V6 T64
  const DevicePtr ptr = Reserve(2);
  const MemHandle handle = Create(2);
  const DevicePtr other = Alloc(kFrameBytes);
  const Stream stream = device().LegacyStream();
  EXPECT_EQ(device().MemcpyAsync(ptr, other, 8, stream), kBad);
  ASSERT_EQ(Map(ptr, 2, handle), kOk);
  EXPECT_EQ(device().MemcpyAsync(ptr, other, 8, stream), kBad);
  EXPECT_EQ(device().MemcpyAsync(other, ptr, 8, stream), kBad);
  EXPECT_EQ(device().MemsetAsync(ptr, 0, 8, stream), kBad);
  ASSERT_EQ(Allow(ptr, 2), kOk);
  EXPECT_EQ(device().MemcpyAsync(ptr, other, 8, stream), kOk);
  EXPECT_EQ(device().MemsetAsync(ptr, 0, 2 * kFrameBytes, stream), kOk);
  EXPECT_EQ(device().MemsetAsync(ptr + 1, 0, 2 * kFrameBytes, stream), kBad);
  // Device 1 has no access.
  EXPECT_EQ(device(1).MemsetAsync(ptr, 0, 8, device(1).LegacyStream()), kBad);
}

TEST_F(SimDeviceVirtualTest, AccessIsSetForWholeMappings) {  // V6
  const DevicePtr ptr = Reserve(4);
  ASSERT_EQ(Map(ptr, 2, Create(2)), kOk);
  ASSERT_EQ(Map(ptr + 2 * kFrameBytes, 1, Create(1)), kOk);
  EXPECT_EQ(Allow(ptr, 1), kBad);
  EXPECT_EQ(Allow(ptr + kFrameBytes, 2), kBad);
  EXPECT_EQ(Allow(ptr, 4), kBad);
  EXPECT_EQ(Allow(ptr, 3, 2), kBad);
  EXPECT_EQ(Allow(ptr, 3, 0, static_cast<Access>(2)), kBad);
  const AccessDescriptor host{{Location::Kind::kHost, 0}, Access::kRead};
  EXPECT_EQ(device().SetAccess(ptr, 3 * kFrameBytes, &host, 1), kBad);
  EXPECT_EQ(device().SetAccess(ptr, 3 * kFrameBytes, &host, 0), kBad);
  EXPECT_EQ(device().SetAccess(ptr, 3 * kFrameBytes, nullptr, 1), kBad);
  Access access = Access::kRead;
  ASSERT_EQ(device().GetAccess(ptr, On(0), &access), kOk);
  EXPECT_EQ(access, Access::kNone);
  EXPECT_EQ(Allow(ptr, 3), kOk);
}

TEST_F(SimDeviceVirtualTest, FailedDescriptorLeavesTheOthersUnset) {
  const DevicePtr ptr = Reserve(1);
  ASSERT_EQ(Map(ptr, 1, Create(1)), kOk);
  const AccessDescriptor both[] = {{On(0), Access::kReadWrite},
                                   {On(5), Access::kReadWrite}};
  EXPECT_EQ(device().SetAccess(ptr, kFrameBytes, both, 2), kBad);
  Access access = Access::kRead;
  ASSERT_EQ(device().GetAccess(ptr, On(0), &access), kOk);
  EXPECT_EQ(access, Access::kNone);
}

TEST_F(SimDeviceVirtualTest, ReadOnlyMemoryIsReadNotWritten) {  // V10 T71
  const DevicePtr ptr = Mapped(1);
  const DevicePtr other = Alloc(64, 1);
  ASSERT_EQ(Allow(ptr, 1, 1, Access::kRead), kOk);
  const Stream stream = device(1).LegacyStream();
  EXPECT_EQ(device(1).MemcpyAsync(other, ptr, 64, stream), kOk);
  EXPECT_EQ(device(1).MemcpyAsync(ptr, other, 64, stream), kBad);
  Access access = Access::kNone;
  ASSERT_EQ(device().GetAccess(ptr + 5, On(1), &access), kOk);
  EXPECT_EQ(access, Access::kRead);
  ASSERT_EQ(device().GetAccess(ptr, On(0), &access), kOk);
  EXPECT_EQ(access, Access::kReadWrite);
  ASSERT_EQ(Allow(ptr, 1, 1, Access::kNone), kOk);
  EXPECT_EQ(device(1).MemcpyAsync(other, ptr, 64, stream), kBad);
}

TEST_F(SimDeviceVirtualTest, GetAccessNeedsAMappingADeviceAndAResult) {
  const DevicePtr ptr = Mapped(1);
  Access access = Access::kRead;
  EXPECT_EQ(device().GetAccess(ptr + kFrameBytes, On(0), &access), kBad);
  EXPECT_EQ(device().GetAccess(ptr, On(2), &access), kBad);
  EXPECT_EQ(device().GetAccess(ptr, {Location::Kind::kHost, 0}, &access), kBad);
  EXPECT_EQ(device().GetAccess(ptr, On(0), nullptr), kBad);
  EXPECT_EQ(access, Access::kRead);
}

TEST_F(SimDeviceVirtualTest, UnmapTakesTheWholeMappingsOfItsRange) {  // V7 T67
  const DevicePtr ptr = Reserve(6);
  ASSERT_EQ(Map(ptr, 2, Create(2)), kOk);
  ASSERT_EQ(Map(ptr + 2 * kFrameBytes, 1, Create(1)), kOk);
  ASSERT_EQ(Map(ptr + 4 * kFrameBytes, 1, Create(1)), kOk);
  EXPECT_EQ(Unmap(ptr, 1), kBad);
  EXPECT_EQ(Unmap(ptr + kFrameBytes, 1), kBad);
  EXPECT_EQ(Unmap(ptr + kFrameBytes, 2), kBad);
  EXPECT_EQ(device().UnmapRange(ptr, 2 * kFrameBytes - 1), kBad);
  EXPECT_EQ(device().UnmapRange(ptr + 1, 2 * kFrameBytes), kBad);
  EXPECT_EQ(Unmap(ptr, 7), kBad);
  EXPECT_EQ(Unmap(ptr, 0), kBad);
  EXPECT_EQ(Unmap(Alloc(kFrameBytes), 1), kBad);
  EXPECT_EQ(device().Leaks().mappings, 3u);
  EXPECT_EQ(Unmap(ptr, 3), kOk);
  EXPECT_EQ(Unmap(ptr, 3), kOk);
  EXPECT_EQ(device().Leaks().mappings, 1u);
  EXPECT_EQ(device().UnmapRange(ptr + 1, 6 * kFrameBytes - 2), kOk);
  EXPECT_EQ(device().Leaks().mappings, 0u);
}

TEST_F(SimDeviceVirtualTest, UnmapReachesOverHoles) {  // V7 V13
  const DevicePtr ptr = Reserve(5);
  ASSERT_EQ(Map(ptr + kFrameBytes, 1, Create(1)), kOk);
  ASSERT_EQ(Map(ptr + 3 * kFrameBytes, 1, Create(1)), kOk);
  EXPECT_EQ(Unmap(ptr, 5), kOk);
  EXPECT_EQ(device().Leaks().mappings, 0u);
}

TEST_F(SimDeviceVirtualTest, AccessIsNotSetOverHoles) {  // V6 T70
  const DevicePtr ptr = Reserve(3);
  ASSERT_EQ(Map(ptr, 1, Create(1)), kOk);
  ASSERT_EQ(Map(ptr + 2 * kFrameBytes, 1, Create(1)), kOk);
  EXPECT_EQ(Allow(ptr, 3), kBad);
  EXPECT_EQ(Allow(ptr + kFrameBytes, 1), kBad);
  EXPECT_EQ(Allow(ptr, 1), kOk);
}

TEST_F(SimDeviceVirtualTest, RemappedMemoryNeedsAccessAgain) {  // V6 T68
  const DevicePtr ptr = Mapped(1);
  ASSERT_EQ(Unmap(ptr, 1), kOk);
  ASSERT_EQ(Map(ptr, 1, Create(1)), kOk);
  const Stream stream = device().LegacyStream();
  EXPECT_EQ(device().MemsetAsync(ptr, 0, 8, stream), kBad);
  ASSERT_EQ(Allow(ptr, 1), kOk);
  EXPECT_EQ(device().MemsetAsync(ptr, 0, 8, stream), kOk);
}

TEST_F(SimDeviceVirtualTest, MappingKeepsReleasedMemory) {  // V4 T65
  const DevicePtr ptr = Reserve(2);
  const MemHandle handle = Create(2);
  ASSERT_EQ(Map(ptr, 2, handle), kOk);
  ASSERT_EQ(device().ReleaseMemory(handle), kOk);
  EXPECT_EQ(device().ReleaseMemory(handle), kBad);
  EXPECT_EQ(FreeFrames(), kFrames - 2);
  EXPECT_EQ(Allow(ptr, 2), kOk);
  ASSERT_EQ(Unmap(ptr, 2), kOk);
  EXPECT_EQ(FreeFrames(), kFrames);
}

TEST_F(SimDeviceVirtualTest, RetainingGivesTheSameHandleAgain) {  // V12 T72
  const DevicePtr ptr = Reserve(2);
  const MemHandle handle = Create(2);
  ASSERT_EQ(Map(ptr, 2, handle), kOk);
  ASSERT_EQ(device().ReleaseMemory(handle), kOk);
  MemHandle retained;
  ASSERT_EQ(device().RetainMemory(ptr + kFrameBytes + 3, &retained), kOk);
  EXPECT_EQ(retained, handle);
  ASSERT_EQ(Unmap(ptr, 2), kOk);
  EXPECT_EQ(FreeFrames(), kFrames - 2);
  EXPECT_EQ(device().RetainMemory(ptr, &retained), kBad);
  EXPECT_EQ(device().RetainMemory(ptr, nullptr), kBad);
  EXPECT_EQ(device().ReleaseMemory(handle), kOk);
  EXPECT_EQ(FreeFrames(), kFrames);
}

TEST_F(SimDeviceVirtualTest, GrowingMapsHandleByHandle) {  // T70
  const DevicePtr ptr = Reserve(512);
  for (std::uint64_t i = 0; i < 8; ++i) {
    ASSERT_EQ(Map(ptr + i * kFrameBytes, 1, Create(1)), kOk);
    ASSERT_EQ(Allow(ptr + i * kFrameBytes, 1), kOk);
    EXPECT_EQ(device().MemsetAsync(ptr, 0, (i + 1) * kFrameBytes,
                                   device().LegacyStream()),
              kOk);
  }
}

TEST_F(SimDeviceVirtualTest, MemFreeOfMappedMemoryIsRefused) {
  EXPECT_EQ(device().MemFree(Mapped(1)), kBad);
}

TEST_F(SimDeviceVirtualTest, PointerAttributesNameTheOwnerOfMappedMemory) {
  const DevicePtr ptr = Reserve(2);
  ASSERT_EQ(Map(ptr, 1, Create(1, 1)), kOk);
  PointerInfo info;
  ASSERT_EQ(device().PointerAttributes(ptr + 9, &info), kOk);
  EXPECT_EQ(info.type, MemoryType::kDevice);
  EXPECT_EQ(info.device, 1);
  ASSERT_EQ(device().PointerAttributes(ptr + kFrameBytes, &info), kOk);
  EXPECT_EQ(info.type, MemoryType::kUnregistered);
}

TEST_F(SimDeviceVirtualTest, LeaksNameWhatIsLeft) {
  const DevicePtr ptr = Mapped(2);
  EXPECT_EQ(platform_.LeakReport(),
            "sim:0: 1 reserved range (4194304 bytes), 1 memory block (4194304 "
            "bytes), 1 memory handle reference, 1 mapping (4194304 bytes)\n");
  MemHandle handle;
  ASSERT_EQ(device().RetainMemory(ptr, &handle), kOk);
  ASSERT_EQ(device().ReleaseMemory(handle), kOk);
  ASSERT_EQ(device().ReleaseMemory(handle), kOk);
  ASSERT_EQ(Unmap(ptr, 2), kOk);
  ASSERT_EQ(device().FreeRange(ptr, 2 * kFrameBytes), kOk);
  EXPECT_EQ(platform_.LeakReport(), "");
}

// Fails once, then works: the failed call had no effect. (T85)
class SimDeviceVirtualFaultTest : public SimDeviceVirtualTest {
 protected:
  // The visible state of a range of eight frames.
  std::vector<int> Snapshot(DevicePtr ptr) {
    std::vector<int> seen = {static_cast<int>(FreeFrames(0)),
                             static_cast<int>(FreeFrames(1)),
                             static_cast<int>(device().Leaks().reservations),
                             static_cast<int>(device().Leaks().mappings)};
    for (int page = 0; page < 8; ++page) {
      for (const int ordinal : {0, 1}) {
        Access access = Access::kNone;
        const Status status = device().GetAccess(
            ptr + static_cast<std::uint64_t>(page) * kFrameBytes, On(ordinal),
            &access);
        seen.push_back(static_cast<int>(status));
        seen.push_back(static_cast<int>(access));
      }
    }
    return seen;
  }

  void FailThenWork(DeviceCall call, DevicePtr range,
                    const std::function<Status()>& step) {
    SCOPED_TRACE(DeviceCallName(call));
    const std::vector<int> before = Snapshot(range);
    FaultRule rule;
    rule.call = call;
    rule.status = Status::kMemoryAllocation;
    device().AddFault(rule);
    EXPECT_EQ(step(), Status::kMemoryAllocation);
    device().ClearFaults();
    EXPECT_EQ(Snapshot(range), before);
    EXPECT_EQ(step(), kOk);
    EXPECT_NE(Snapshot(range), before);
  }
};

TEST_F(SimDeviceVirtualFaultTest, FailureAtEveryStepChangesNothing) {
  const DevicePtr range = Reserve(8);
  MemHandle handles[3];
  using C = DeviceCall;
  for (MemHandle& handle : handles) {
    FailThenWork(C::kCreateMemory, range, [&] {
      return device().CreateMemory(&handle, 2 * kFrameBytes, {});
    });
  }
  for (std::uint64_t i = 0; i < 3; ++i) {
    FailThenWork(C::kMapRange, range, [&] {
      return Map(range + 2 * i * kFrameBytes, 2, handles[i]);
    });
    FailThenWork(C::kSetAccess, range, [&] {
      return Allow(range, 2 * i + 2, static_cast<int>(i % 2));
    });
  }
  FailThenWork(C::kUnmapRange, range, [&] { return Unmap(range, 4); });
  FailThenWork(C::kReleaseMemory, range,
               [&] { return device().ReleaseMemory(handles[0]); });
  ASSERT_EQ(Unmap(range + 4 * kFrameBytes, 2), kOk);
  FailThenWork(C::kFreeRange, range,
               [&] { return device().FreeRange(range, 8 * kFrameBytes); });
}

TEST_F(SimDeviceVirtualTest, CallsOnRangesAreChargedByMappings) {
  const DevicePtr ptr = Reserve(4);
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(Map(ptr + i * kFrameBytes, 1, Create(1)), kOk);
  }
  std::uint64_t before = device().modelled_ns();
  ASSERT_EQ(Allow(ptr, 4), kOk);
  EXPECT_EQ(device().modelled_ns() - before, 28000u + 3 * 2000u);
  before = device().modelled_ns();
  ASSERT_EQ(Unmap(ptr, 4), kOk);
  EXPECT_EQ(device().modelled_ns() - before, 4 * 18900u);
}

}  // namespace
}  // namespace strata::sim
