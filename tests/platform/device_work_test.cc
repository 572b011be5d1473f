#include "strata/platform/device_work.h"

#include <gtest/gtest.h>

#include <vector>

namespace strata {
namespace {

bool IsValid(WorkRange range) { return IsValidWork(&range, 1); }

TEST(DeviceWorkTest, RangesAreWholeAlignedWords) {
  EXPECT_TRUE(IsValid({8, 8, true}));
  EXPECT_TRUE(IsValid({64, 4096, false}));
  EXPECT_FALSE(IsValid({12, 8, true}));
  EXPECT_FALSE(IsValid({16, 12, true}));
}

TEST(DeviceWorkTest, RangesHaveAnAddressAndBytes) {
  EXPECT_FALSE(IsValid({0, 8, true}));
  EXPECT_FALSE(IsValid({8, 0, true}));
}

TEST(DeviceWorkTest, RangesAreAtMostAsManyAsAKernelTakes) {
  std::vector<WorkRange> ranges(kMaxWorkRanges, WorkRange{8, 8, true});
  EXPECT_TRUE(IsValidWork(ranges.data(), ranges.size()));
  ranges.push_back(ranges.front());
  EXPECT_FALSE(IsValidWork(ranges.data(), ranges.size()));
}

TEST(DeviceWorkTest, NoRangesAreFineButAMissingArrayIsNot) {
  EXPECT_TRUE(IsValidWork(nullptr, 0));
  EXPECT_FALSE(IsValidWork(nullptr, 1));
}

// Work of a device with its own kernels.
class KernelsOnly final : public DeviceWork {
 public:
  Status Enqueue(Stream /*stream*/, const WorkRange* /*ranges*/,
                 std::size_t /*count*/, std::uint64_t /*busy_ns*/,
                 std::uint64_t pattern) override {
    last_pattern = pattern;
    return Status::kSuccess;
  }
  std::uint64_t last_pattern = 0;
};

TEST(DeviceWorkTest, EarlyWorkIsOrdinaryWorkUnlessADeviceHasSuch) {
  KernelsOnly work;
  EXPECT_EQ(work.EnqueueEarly(Stream(), nullptr, 0, 0, 7), Status::kSuccess);
  EXPECT_EQ(work.last_pattern, 7u);
}

TEST(DeviceWorkTest, HostFunctionsAreNotForEveryDevice) {
  KernelsOnly work;
  const HostKernel kernel = [](void* /*argument*/, void* const* /*ranges*/) {};
  EXPECT_EQ(work.Launch(Stream(), nullptr, 0, kernel, nullptr),
            Status::kNotSupported);
}

}  // namespace
}  // namespace strata
