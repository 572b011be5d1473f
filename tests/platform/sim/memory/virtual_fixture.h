#ifndef STRATA_TESTS_PLATFORM_SIM_MEMORY_VIRTUAL_FIXTURE_H_
#define STRATA_TESTS_PLATFORM_SIM_MEMORY_VIRTUAL_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/memory/virtual_memory.h"
#include "strata/tests/platform/sim/device/sim_fixture.h"

namespace strata::sim {

// Calls on virtual memory of one device. All must succeed.
class VirtualFixture : public SimFixture {
 protected:
  VirtualFixture() = default;
  explicit VirtualFixture(const char* data) : SimFixture(data) {}

  static Location On(int ordinal) {
    return {Location::Kind::kDevice, static_cast<std::int32_t>(ordinal)};
  }

  DevicePtr Reserve(std::uint64_t frames) {
    DevicePtr ptr = 0;
    EXPECT_EQ(device().ReserveRange(&ptr, frames * kFrameBytes, 0, 0),
              Status::kSuccess);
    return ptr;
  }

  MemHandle Create(std::uint64_t frames, int ordinal = 0,
                   ShareType share = ShareType::kNone) {
    MemProperties properties;
    properties.location = On(ordinal);
    properties.share = share;
    MemHandle handle;
    EXPECT_EQ(device().CreateMemory(&handle, frames * kFrameBytes, properties),
              Status::kSuccess);
    return handle;
  }

  Status Map(DevicePtr ptr, std::uint64_t frames, MemHandle handle) {
    return device().MapRange(ptr, frames * kFrameBytes, 0, handle);
  }

  Status Unmap(DevicePtr ptr, std::uint64_t frames) {
    return device().UnmapRange(ptr, frames * kFrameBytes);
  }

  Status Allow(DevicePtr ptr, std::uint64_t frames, int ordinal = 0,
               Access access = Access::kReadWrite) {
    const AccessDescriptor descriptor{On(ordinal), access};
    return device().SetAccess(ptr, frames * kFrameBytes, &descriptor, 1);
  }

  // Memory of one handle, mapped and accessible from device 0.
  DevicePtr Mapped(std::uint64_t frames) {
    const DevicePtr ptr = Reserve(frames);
    const MemHandle handle = Create(frames);
    EXPECT_EQ(Map(ptr, frames, handle), Status::kSuccess);
    EXPECT_EQ(Allow(ptr, frames), Status::kSuccess);
    return ptr;
  }

  std::uint64_t FreeFrames(int ordinal = 0) {
    return FreeBytes(ordinal) / kFrameBytes;
  }
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_PLATFORM_SIM_MEMORY_VIRTUAL_FIXTURE_H_
