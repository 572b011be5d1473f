#ifndef STRATA_TESTS_FACADE_EXPORT_EXPORT_FIXTURE_H_
#define STRATA_TESTS_FACADE_EXPORT_EXPORT_FIXTURE_H_

#include <dirent.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/tests/facade/facade_fixture.h"

namespace strata {

inline constexpr char kMapped[] = "allocator_strategy=virtual_memory";
inline constexpr std::size_t kPage = Mebibytes(2);
inline constexpr int kFirstByte = 0x5a;
inline constexpr int kSecondByte = 0xa5;

inline PlatformOptions DevicesOf(int count, const char* data) {
  PlatformOptions options;
  options.sim_devices = count;
  options.sim_data = data;
  return options;
}

inline DevicePtr At(const void* data) {
  return reinterpret_cast<DevicePtr>(data);
}

// Number of open descriptors of this process.
inline std::size_t OpenDescriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  std::size_t count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// A facade over a simulated device, whose memory is exported.
class ExportTest : public FacadeFixture {
 protected:
  explicit ExportTest(int devices = 1, const char* data = "phantom")
      : FacadeFixture(DevicesOf(devices, data)) {}

  AllocationPtr Alloc(std::size_t bytes, std::uint32_t flags = 0) {
    Request request;
    request.bytes = bytes;
    request.flags = flags;
    return facade().Alloc(kPlace, request);
  }
  bool CanAlloc(std::size_t bytes) {
    Failure failure;
    return facade().TryAlloc(kPlace, Request{bytes}, failure) != nullptr;
  }
  std::size_t Reserved() { return facade().GetStats(kPlace).reserved_bytes; }
  void Fault(DeviceCall call, std::uint64_t nth,
             Status status = Status::kUnknown) {
    FaultRule rule;
    rule.call = call;
    rule.nth = nth;
    rule.status = status;
    device().AddFault(rule);
  }
  void Fill(const void* data, std::size_t bytes, int byte) {
    const Stream stream = device().LegacyStream();
    ASSERT_EQ(device().MemsetAsync(At(data), byte, bytes, stream),
              Status::kSuccess);
    ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  }
  // True if all bytes are `byte`.
  bool Holds(const void* data, std::size_t bytes, int byte) {
    std::vector<unsigned char> copy(bytes);
    EXPECT_EQ(device().MemcpyAsync(At(copy.data()), At(data), bytes,
                                   device().LegacyStream()),
              Status::kSuccess);
    EXPECT_EQ(device().Synchronize(), Status::kSuccess);
    return copy ==
           std::vector<unsigned char>(bytes, static_cast<unsigned char>(byte));
  }
};

// ExportTest on a device that stores bytes.
class ExportedBytesTest : public ExportTest {
 protected:
  ExportedBytesTest() : ExportTest(1, "backed") {}
};

}  // namespace strata

#endif  // STRATA_TESTS_FACADE_EXPORT_EXPORT_FIXTURE_H_
