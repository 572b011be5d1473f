#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "strata/tests/platform/sim/device/sim_fixture.h"

namespace strata::sim {
namespace {

class SimDeviceHostTest : public SimFixture {};

DevicePtr HostPtr(const void* ptr) { return reinterpret_cast<DevicePtr>(ptr); }

TEST_F(SimDeviceHostTest, PinnedMemoryIsRealAndFreedOnce) {
  void* ptr = nullptr;
  ASSERT_EQ(device().MallocHost(&ptr, 10000, 0), Status::kSuccess);
  std::memset(ptr, 0x5A, 10000);
  EXPECT_EQ(device().Leaks().pinned_bytes, 10000u);
  EXPECT_EQ(device().FreeHost(static_cast<char*>(ptr) + 1),
            Status::kInvalidValue);
  EXPECT_EQ(device().MemFree(HostPtr(ptr)), Status::kInvalidValue);
  EXPECT_EQ(device().HostUnregister(ptr), Status::kHostMemoryNotRegistered);
  EXPECT_EQ(device().FreeHost(ptr), Status::kSuccess);
  EXPECT_EQ(device().FreeHost(ptr), Status::kInvalidValue);
  EXPECT_EQ(device().FreeHost(nullptr), Status::kSuccess);
  EXPECT_EQ(FreeBytes(), kFrames * kFrameBytes);
}

TEST_F(SimDeviceHostTest, PinnedMemoryOfNoOrTooManyBytes) {
  void* ptr = &ptr;
  EXPECT_EQ(device().MallocHost(&ptr, SIZE_MAX, 0), Status::kMemoryAllocation);
  EXPECT_EQ(device().MallocHost(&ptr, SIZE_MAX / 2, 0),
            Status::kMemoryAllocation);
  EXPECT_EQ(device().MallocHost(&ptr, 64, 8), Status::kInvalidValue);
  EXPECT_EQ(device().MallocHost(nullptr, 64, 0), Status::kInvalidValue);
  EXPECT_EQ(ptr, &ptr);
  EXPECT_EQ(device().MallocHost(&ptr, 0, 0), Status::kSuccess);
  EXPECT_EQ(ptr, nullptr);
  EXPECT_EQ(device().Leaks(), SimLeaks{});
}

TEST_F(SimDeviceHostTest, RegisteringTwiceIs712AndUnknownBaseIs713) {  // T16
  std::vector<char> memory(8192);
  char* base = memory.data();
  ASSERT_EQ(device().HostRegister(base, 4096, 0), Status::kSuccess);
  const Status already = Status::kHostMemoryAlreadyRegistered;
  EXPECT_EQ(device().HostRegister(base, 4096, 0), already);
  EXPECT_EQ(device(1).HostRegister(base, 4096, 0), already);
  EXPECT_EQ(device().HostRegister(base + 4095, 1, 0), already);
  EXPECT_EQ(device().HostRegister(base + 100, 8000, 0), already);
  EXPECT_EQ(device().HostRegister(base + 4096, 4096, 0), Status::kSuccess);
  const Status unknown = Status::kHostMemoryNotRegistered;
  EXPECT_EQ(device().HostUnregister(base + 1), unknown);
  EXPECT_EQ(device().HostUnregister(&memory), unknown);
  EXPECT_EQ(device().HostUnregister(base), Status::kSuccess);
  EXPECT_EQ(device().HostUnregister(base), unknown);
  EXPECT_EQ(device().HostRegister(base, 8192, 0), already);
  EXPECT_EQ(device().HostUnregister(base + 4096), Status::kSuccess);
  EXPECT_EQ(device().HostRegister(base, 8192, 0), Status::kSuccess);
  EXPECT_EQ(device().HostUnregister(base), Status::kSuccess);
}

TEST_F(SimDeviceHostTest, RegisterRefusesWrongArgumentsAndPinnedMemory) {
  std::vector<char> memory(64);
  EXPECT_EQ(device().HostRegister(nullptr, 64, 0), Status::kInvalidValue);
  EXPECT_EQ(device().HostRegister(memory.data(), 0, 0), Status::kInvalidValue);
  EXPECT_EQ(device().HostRegister(memory.data(), 64, 16),
            Status::kInvalidValue);
  EXPECT_EQ(device().HostRegister(memory.data(), SIZE_MAX, 0),
            Status::kInvalidValue);
  void* pinned = nullptr;
  ASSERT_EQ(device().MallocHost(&pinned, 64, 0), Status::kSuccess);
  EXPECT_EQ(device().HostRegister(pinned, 64, 0),
            Status::kHostMemoryAlreadyRegistered);
}

TEST_F(SimDeviceHostTest, RegisterRefusesWhatIsNoMemoryOfTheHost) {
  const DevicePtr ptr = Alloc(4096);
  for (const DevicePtr address : {ptr, DevicePtr{4096}, DevicePtr{1} << 63}) {
    auto* const wrong = reinterpret_cast<void*>(address);
    EXPECT_EQ(device().HostRegister(wrong, 64, 0), Status::kInvalidValue)
        << wrong;
    EXPECT_EQ(device().HostUnregister(wrong), Status::kHostMemoryNotRegistered);
  }
}

TEST_F(SimDeviceHostTest, ManagedMemoryIsRealAndTakesNoFrames) {  // H11
  DevicePtr ptr = 77;
  EXPECT_EQ(device().MallocManaged(&ptr, 0, kManagedGlobal),
            Status::kInvalidValue);
  EXPECT_EQ(device().MallocManaged(&ptr, 64, 0), Status::kInvalidValue);
  EXPECT_EQ(device().MallocManaged(nullptr, 64, kManagedGlobal),
            Status::kInvalidValue);
  EXPECT_EQ(device().MallocManaged(&ptr, SIZE_MAX / 2, kManagedGlobal),
            Status::kMemoryAllocation);
  EXPECT_EQ(ptr, 77u);
  // More than the device's memory: managed memory may be oversubscribed.
  const std::size_t bytes = 2 * kFrames * kFrameBytes;
  ASSERT_EQ(device().MallocManaged(&ptr, bytes, kManagedHost),
            Status::kSuccess);
  auto* memory = reinterpret_cast<char*>(ptr);
  memory[bytes - 1] = 3;
  EXPECT_EQ(FreeBytes(), kFrames * kFrameBytes);
  EXPECT_EQ(device().FreeHost(memory), Status::kInvalidValue);
  EXPECT_EQ(device().MemFree(ptr + 1), Status::kInvalidValue);
  EXPECT_EQ(device().MemFree(ptr), Status::kSuccess);
  EXPECT_EQ(device().MemFree(ptr), Status::kInvalidValue);
  EXPECT_EQ(device().peak_used_bytes(), 0U);
  EXPECT_EQ(device().peak_managed_bytes(), bytes);
  ASSERT_EQ(device().MallocManaged(&ptr, 64, kManagedGlobal), Status::kSuccess);
  EXPECT_EQ(device().peak_managed_bytes(), bytes);
}

TEST_F(SimDeviceHostTest, BytesMoveBetweenRangesOnTheHost) {
  const Stream stream = NewStream();
  void* pinned = nullptr;
  DevicePtr managed = 0;
  std::vector<char> own(4096, 1);
  ASSERT_EQ(device().MallocHost(&pinned, 4096, 0), Status::kSuccess);
  ASSERT_EQ(device().MallocManaged(&managed, 4096, kManagedGlobal),
            Status::kSuccess);
  ASSERT_EQ(device().HostRegister(own.data(), 4096, 0), Status::kSuccess);
  ASSERT_EQ(device().MemsetAsync(HostPtr(pinned), 0x1FF, 4096, stream),
            Status::kSuccess);
  EXPECT_EQ(static_cast<unsigned char*>(pinned)[4095], 0xFF);
  ASSERT_EQ(device().MemcpyAsync(managed, HostPtr(pinned), 4096, stream),
            Status::kSuccess);
  ASSERT_EQ(device().MemcpyAsync(HostPtr(own.data()), managed, 4095, stream),
            Status::kSuccess);
  EXPECT_EQ(own[4094], static_cast<char>(0xFF));
  EXPECT_EQ(own[4095], 1);
  ASSERT_EQ(device().HostUnregister(own.data()), Status::kSuccess);
}

TEST_F(SimDeviceHostTest, FreedPinnedMemoryIsNoPageableMemory) {
  void* pinned = nullptr;
  ASSERT_EQ(device().MallocHost(&pinned, 4096, 0), Status::kSuccess);
  DevicePtr managed = 0;
  ASSERT_EQ(device().MallocManaged(&managed, 4096, kManagedGlobal),
            Status::kSuccess);
  ASSERT_EQ(device().FreeHost(pinned), Status::kSuccess);
  EXPECT_EQ(device().MemcpyAsync(HostPtr(pinned) + 4095, managed, 1,
                                 device().LegacyStream()),
            Status::kInvalidValue);
}

TEST_F(SimDeviceHostTest, AddressesOfFreedPinnedMemoryComeBackLate) {
  void* first = nullptr;
  ASSERT_EQ(device().MallocHost(&first, 4096, 0), Status::kSuccess);
  ASSERT_EQ(device().FreeHost(first), Status::kSuccess);
  for (std::size_t i = 0; i < HostRanges::kQuarantinedFrees - 1; ++i) {
    void* ptr = nullptr;
    ASSERT_EQ(device().MallocHost(&ptr, 4096, 0), Status::kSuccess);
    ASSERT_NE(ptr, first);
    ASSERT_EQ(device().FreeHost(ptr), Status::kSuccess);
  }
}

TEST_F(SimDeviceHostTest, CopiesOfPhantomMemoryBringZeros) {
  const Stream stream = NewStream();
  const DevicePtr phantom = Alloc(4096);
  void* pinned = nullptr;
  ASSERT_EQ(device().MallocHost(&pinned, 4096, 0), Status::kSuccess);
  std::memset(pinned, 7, 4096);
  EXPECT_EQ(device().MemcpyAsync(phantom, HostPtr(pinned), 4096, stream),
            Status::kSuccess);
  EXPECT_EQ(device().MemcpyAsync(HostPtr(pinned), phantom, 4096, stream),
            Status::kSuccess);
  EXPECT_EQ(static_cast<char*>(pinned)[0], 0);
  EXPECT_EQ(static_cast<char*>(pinned)[4095], 0);
  EXPECT_EQ(device().MemcpyAsync(phantom, HostPtr(pinned), 4097, stream),
            Status::kInvalidValue);
}

TEST_F(SimDeviceHostTest, AnyDeviceOfThePlatformFreesHostMemory) {
  void* ptr = nullptr;
  ASSERT_EQ(device(0).MallocHost(&ptr, 64, 0), Status::kSuccess);
  EXPECT_EQ(device(0).Leaks().pinned_ranges, 1u);
  EXPECT_EQ(device(1).Leaks().pinned_ranges, 0u);
  EXPECT_EQ(device(1).FreeHost(ptr), Status::kSuccess);
  EXPECT_EQ(device(0).Leaks().pinned_ranges, 0u);
}

}  // namespace
}  // namespace strata::sim
