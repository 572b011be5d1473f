#ifndef STRATA_TESTS_TESTING_DEVICES_VIRTUAL_MEMORY_FIXTURE_H_
#define STRATA_TESTS_TESTING_DEVICES_VIRTUAL_MEMORY_FIXTURE_H_

#include <cstddef>
#include <cstdint>

#include "strata/tests/testing/devices/device_fixture.h"

namespace strata {

// A test of a device's virtual memory. Skips on devices without it.
class VirtualMemoryFixture : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    if (!device().caps().virtual_memory) GTEST_SKIP() << "no virtual memory";
    EXPECT_EQ(device().Granularity(MemProperties{}, false, &granule_),
              Status::kSuccess);
  }

  // The smallest unit of memory and addresses.
  std::size_t granule() const { return granule_; }

  DevicePtr NewRange(std::size_t bytes) {
    DevicePtr ptr = 0;
    EXPECT_EQ(device().ReserveRange(&ptr, bytes, 0, 0), Status::kSuccess);
    AtEnd([this, ptr, bytes] {
      EXPECT_EQ(device().FreeRange(ptr, bytes), Status::kSuccess);
    });
    return ptr;
  }

  MemHandle NewHandle(std::size_t bytes, const MemProperties& properties = {}) {
    MemHandle handle;
    EXPECT_EQ(device().CreateMemory(&handle, bytes, properties),
              Status::kSuccess);
    AtEnd([this, handle] {
      EXPECT_EQ(device().ReleaseMemory(handle), Status::kSuccess);
    });
    return handle;
  }

  // Maps memory until the test ends.
  void Map(DevicePtr ptr, std::size_t bytes, MemHandle handle) {
    EXPECT_EQ(device().MapRange(ptr, bytes, 0, handle), Status::kSuccess);
    AtEnd([this, ptr, bytes] {
      EXPECT_EQ(device().UnmapRange(ptr, bytes), Status::kSuccess);
    });
  }

  // A range with its own memory mapped. No access is set.
  DevicePtr NewMapping(std::size_t bytes) {
    const DevicePtr ptr = NewRange(bytes);
    Map(ptr, bytes, NewHandle(bytes));
    return ptr;
  }

  void Allow(DevicePtr ptr, std::size_t bytes,
             Access access = Access::kReadWrite, int ordinal = 0) {
    const AccessDescriptor descriptor{{Location::Kind::kDevice, ordinal},
                                      access};
    EXPECT_EQ(device().SetAccess(ptr, bytes, &descriptor, 1), Status::kSuccess);
  }

  Access AccessOf(DevicePtr ptr, int ordinal = 0) {
    Access access = Access::kNone;
    EXPECT_EQ(
        device().GetAccess(ptr, {Location::Kind::kDevice, ordinal}, &access),
        Status::kSuccess);
    return access;
  }

  // Writes by work, and waits for it.
  void WriteNow(DevicePtr ptr, std::size_t bytes, std::uint64_t word) {
    const Stream stream = NewStream();
    Write(ptr, bytes, word, stream);
    EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  }

 private:
  std::size_t granule_ = 0;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_VIRTUAL_MEMORY_FIXTURE_H_
