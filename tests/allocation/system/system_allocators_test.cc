// The bottom layers of the chains: device, host, pinned and managed memory.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

#include "strata/allocation/record_slab.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/system/device_allocator.h"
#include "strata/allocation/system/host_allocator.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

PoolPlace PlaceOf(PlaceKind kind) {
  PoolPlaceOptions options;
  options.kind = kind;
  options.memory_bytes = Mebibytes(32);
  return PoolPlace(options);
}

TEST(DeviceAllocatorTest, MakesOneDeviceCallPerRequest) {
  const PoolPlace place = PlaceOf(PlaceKind::kDevice);
  place.system()->Allocate(1000).reset();
  EXPECT_EQ(place.device().CallCount(DeviceCall::kMemAlloc), 1U);
  EXPECT_EQ(place.device().CallCount(DeviceCall::kMemFree), 1U);
  EXPECT_EQ(place.DeviceCalls(), 2U);
}

// Without a gate, they would be refused, and would end the capture.
TEST(DeviceAllocatorTest, WithAGateItsCallsEndNoCaptureOfAnotherThread) {
  const auto platform = std::make_shared<SimPlatform>(PlatformOptions());
  SimDevice& device = platform->sim_device(0);
  const auto gate = std::make_shared<CaptureGate>();
  DeviceAllocator allocator(platform, 0, gate);
  Stream stream;
  ASSERT_EQ(device.StreamCreate(&stream, kStreamNonBlocking), Status::kSuccess);
  gate->Announce();
  ASSERT_EQ(device.StreamBeginCapture(stream, CaptureMode::kGlobal),
            Status::kSuccess);
  std::thread([&] {
    Failure failure;
    EXPECT_NE(allocator.AllocateOrNull(Request{1000}, failure), nullptr);
  }).join();
  Graph graph;
  EXPECT_EQ(device.StreamEndCapture(stream, &graph), Status::kSuccess);
  gate->Withdraw();
  EXPECT_EQ(device.GraphDestroy(graph), Status::kSuccess);
  EXPECT_EQ(device.StreamDestroy(stream), Status::kSuccess);
  EXPECT_EQ(platform->LeakReport(), "");
}

TEST(DeviceAllocatorTest, AFailureCarriesWhatTheDeviceSays) {
  const PoolPlace place = PlaceOf(PlaceKind::kDevice);
  const AllocationPtr live = place.system()->Allocate(Mebibytes(20));
  Failure failure;
  EXPECT_EQ(place.system()->AllocateOrNull(Request{Mebibytes(13)}, failure),
            nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_EQ(failure.status, Status::kMemoryAllocation);
  EXPECT_EQ(failure.rounded_bytes, Mebibytes(13));
  EXPECT_EQ(failure.device_free_bytes, Mebibytes(12));
  EXPECT_EQ(failure.device_total_bytes, Mebibytes(32));
}

TEST(DeviceAllocatorTest, AnyOtherStatusIsADeviceError) {
  const PoolPlace place = PlaceOf(PlaceKind::kDevice);
  FaultRule rule = FailNth(DeviceCall::kMemAlloc, 1);
  rule.status = Status::kIllegalAddress;
  place.device().AddFault(rule);
  Failure failure;
  EXPECT_EQ(place.system()->AllocateOrNull(Request{1000}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDevice);
  EXPECT_EQ(failure.status, Status::kIllegalAddress);
}

TEST(SystemAllocatorTest, AFailureGivesTheRecordBack) {
  const PoolPlace place = PlaceOf(PlaceKind::kDevice);
  const std::size_t records = RecordSlab::Instance().taken();
  Failure failure;
  EXPECT_EQ(place.system()->AllocateOrNull(Request{Gibibytes(1)}, failure),
            nullptr);
  EXPECT_EQ(RecordSlab::Instance().taken(), records);
  place.system()->Allocate(1000).reset();
  EXPECT_EQ(RecordSlab::Instance().taken(), records);
}

TEST(SystemAllocatorTest, AFreeThatTheSystemRefusesIsLoggedAndCounted) {
  const PoolPlace place = PlaceOf(PlaceKind::kDevice);
  place.device().AddFault(FailNth(DeviceCall::kMemFree, 1));
  AllocationPtr allocation = place.system()->Allocate(1000);
  ::testing::internal::CaptureStderr();
  allocation.reset();
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("cannot free 1000"),
            std::string::npos);
  EXPECT_EQ(place.system()->stats().frees, 1U);
  EXPECT_EQ(place.system()->stats().in_use_bytes, 0U);
  EXPECT_EQ(place.system()->stats().reserved_bytes, 1000U);
  place.system()->Release();
}

TEST(SystemAllocatorTest, ReleaseOffersTheSystemAgainWhatItRefused) {
  const PoolPlace place = PlaceOf(PlaceKind::kDevice);
  const std::size_t records = RecordSlab::Instance().taken();
  FaultRule twice = FailNth(DeviceCall::kMemFree, 1);
  twice.count = 2;
  place.device().AddFault(twice);
  place.system()->Allocate(1000).reset();
  EXPECT_EQ(place.system()->unreturned_bytes(), 1000U);
  EXPECT_EQ(place.system()->Release(), 0U);
  EXPECT_EQ(place.system()->unreturned_bytes(), 1000U);
  EXPECT_EQ(place.system()->Release(), 1000U);
  EXPECT_EQ(place.system()->unreturned_bytes(), 0U);
  EXPECT_EQ(place.system()->stats().reserved_bytes, 0U);
  EXPECT_EQ(place.system()->Release(), 0U);
  EXPECT_EQ(place.device().CallCount(DeviceCall::kMemFree), 3U);
  EXPECT_EQ(RecordSlab::Instance().taken(), records);
  EXPECT_EQ(place.platform()->LeakReport(), "");
}

// Another user may have it by the next attempt.
TEST(SystemAllocatorTest, AnAddressThatTheSystemDoesNotKnowIsNotOfferedAgain) {
  const PoolPlace place = PlaceOf(PlaceKind::kDevice);
  FaultRule rule = FailNth(DeviceCall::kMemFree, 1);
  rule.status = Status::kInvalidValue;
  place.device().AddFault(rule);
  AllocationPtr allocation = place.system()->Allocate(1000);
  const auto address = reinterpret_cast<DevicePtr>(allocation->data());
  allocation.reset();
  EXPECT_EQ(place.system()->unreturned_bytes(), 0U);
  EXPECT_EQ(place.system()->Release(), 0U);
  EXPECT_EQ(place.device().MemFree(address), Status::kSuccess);
}

// An earlier fault: the failure came from other work, and the memory was freed.
TEST(SystemAllocatorTest, NorIsOneThatItTurnsOutNotToKnow) {
  const PoolPlace place = PlaceOf(PlaceKind::kDevice);
  place.device().AddFault(FailNth(DeviceCall::kMemFree, 1));
  AllocationPtr allocation = place.system()->Allocate(1000);
  const auto address = reinterpret_cast<DevicePtr>(allocation->data());
  allocation.reset();
  EXPECT_EQ(place.device().MemFree(address), Status::kSuccess);
  EXPECT_EQ(place.system()->Release(), 1000U);
  EXPECT_EQ(place.system()->unreturned_bytes(), 0U);
  const std::uint64_t frees = place.device().CallCount(DeviceCall::kMemFree);
  EXPECT_EQ(place.system()->Release(), 0U);
  EXPECT_EQ(place.device().CallCount(DeviceCall::kMemFree), frees);
}

TEST(SystemAllocatorTest, WhatIsNeverTakenBackIsLogged) {
  ::testing::internal::CaptureStderr();
  {
    const PoolPlace place = PlaceOf(PlaceKind::kDevice);
    place.device().AddFault(FailAll(DeviceCall::kMemFree));
    place.system()->Allocate(1000).reset();
  }
  EXPECT_NE(
      ::testing::internal::GetCapturedStderr().find("1000 bytes are lost"),
      std::string::npos);
}

TEST(HostAllocatorTest, GivesMemoryOfTheHost) {
  HostAllocator host;
  EXPECT_EQ(host.place(), HostPlace());
  EXPECT_EQ(host.natural_alignment(), 64U);
  EXPECT_EQ(host.max_alignment(), kMaxAlignment);
  const AllocationPtr allocation = host.Allocate(Request{1000, kMaxAlignment});
  EXPECT_EQ(
      reinterpret_cast<std::uintptr_t>(allocation->data()) % kMaxAlignment, 0U);
  std::memset(allocation->data(), 1, allocation->size());
}

TEST(HostAllocatorTest, LackOfHostMemoryIsAFailure) {
  HostAllocator host;
  Failure failure;
  EXPECT_EQ(host.AllocateOrNull(Request{std::size_t{1} << 50}, failure),
            nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kHostMemory);
}

TEST(PinnedAllocatorTest, GivesMemoryThatHostAndDeviceReach) {
  const PoolPlace place = PlaceOf(PlaceKind::kPinned);
  EXPECT_EQ(place.system()->place(), PinnedPlace(0));
  const AllocationPtr allocation = place.system()->Allocate(1000);
  std::memset(allocation->data(), 1, allocation->size());
  PointerInfo info;
  EXPECT_EQ(place.device().PointerAttributes(
                reinterpret_cast<DevicePtr>(allocation->data()), &info),
            Status::kSuccess);
  EXPECT_EQ(info.type, MemoryType::kHost);
}

TEST(PinnedAllocatorTest, TellsLackOfMemoryFromOtherFailures) {
  const PoolPlace place = PlaceOf(PlaceKind::kPinned);
  for (const Status status :
       {Status::kMemoryAllocation, Status::kNotPermitted}) {
    FaultRule rule = FailNth(DeviceCall::kMallocHost, 1);
    rule.status = status;
    place.device().AddFault(rule);
    Failure failure;
    EXPECT_EQ(place.system()->AllocateOrNull(Request{1000}, failure), nullptr);
    EXPECT_EQ(failure.status, status);
    EXPECT_EQ(failure.reason, status == Status::kMemoryAllocation
                                  ? Failure::Reason::kHostMemory
                                  : Failure::Reason::kDevice);
  }
}

TEST(ManagedAllocatorTest, GivesMemoryThatMigrates) {
  const PoolPlace place = PlaceOf(PlaceKind::kManaged);
  EXPECT_EQ(place.system()->place(), ManagedPlace(0));
  const AllocationPtr allocation = place.system()->Allocate(1000);
  std::memset(allocation->data(), 1, allocation->size());
  PointerInfo info;
  EXPECT_EQ(place.device().PointerAttributes(
                reinterpret_cast<DevicePtr>(allocation->data()), &info),
            Status::kSuccess);
  EXPECT_EQ(info.type, MemoryType::kManaged);
}

}  // namespace
}  // namespace strata
