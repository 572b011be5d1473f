#include "strata/platform/sim/memory/slice_space.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace strata::sim {
namespace {

constexpr DevicePtr kSpaceBegin = DevicePtr{1} << 40;

LiveAllocation Slices(std::uint16_t slices) {
  LiveAllocation live;
  live.bytes = slices * kSliceBytes - 3;
  live.share.slices = slices;
  return live;
}

TEST(SliceSpaceTest, AddressesRiseByWholeSlices) {
  SliceSpace space(kSpaceBegin, 4 * kFrameBytes);
  EXPECT_EQ(space.Add(Slices(1)), kSpaceBegin);
  EXPECT_EQ(space.Add(Slices(3)), kSpaceBegin + 512);
  EXPECT_EQ(space.Add(Slices(1)), kSpaceBegin + 2048);
}

TEST(SliceSpaceTest, RemoveGivesBackWhatWasAddedOnce) {
  SliceSpace space(kSpaceBegin, 4 * kFrameBytes);
  LiveAllocation live = Slices(5);
  live.share.shared_frame = 17;
  live.share.first_slice = 33;
  const DevicePtr ptr = space.Add(live).value();
  EXPECT_FALSE(space.Remove(ptr + 512));
  EXPECT_FALSE(space.Remove(ptr + 1));
  const auto removed = space.Remove(ptr);
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed->bytes, live.bytes);
  EXPECT_EQ(removed->share.shared_frame, 17u);
  EXPECT_EQ(removed->share.first_slice, 33);
  EXPECT_EQ(removed->share.slices, 5);
  EXPECT_EQ(removed->share.frames, 0u);
  EXPECT_FALSE(space.Remove(ptr));
  EXPECT_FALSE(space.Covers(ptr, 1));
}

TEST(SliceSpaceTest, CoversTheBytesThatWereAskedFor) {
  SliceSpace space(kSpaceBegin, 4 * kFrameBytes);
  const DevicePtr ptr = space.Add(Slices(2)).value();
  EXPECT_TRUE(space.Covers(ptr, 1021));
  EXPECT_FALSE(space.Covers(ptr, 1022));
  EXPECT_TRUE(space.Covers(ptr + 1020, 1));
  EXPECT_FALSE(space.Covers(ptr + 1021, 1));
  EXPECT_FALSE(space.Covers(ptr + kFrameBytes, 1));
}

TEST(SliceSpaceTest, AFullSpaceGivesNothingUntilAPageHasRested) {
  SliceSpace space(kSpaceBegin, 2 * kFrameBytes);
  std::vector<DevicePtr> ptrs;
  while (const auto ptr = space.Add(Slices(1))) ptrs.push_back(*ptr);
  ASSERT_EQ(ptrs.size(), 2u * SharedFrame::kSlices);
  for (std::size_t i = 0; i < SharedFrame::kSlices; ++i) {
    ASSERT_TRUE(space.Remove(ptrs[i]));
    ASSERT_FALSE(space.Add(Slices(1)));
  }
  for (std::size_t i = 0; i < SliceSpace::kQuarantinedFrees; ++i) {
    ASSERT_TRUE(space.Remove(ptrs[SharedFrame::kSlices + i]));
  }
  EXPECT_EQ(space.Add(Slices(1)), kSpaceBegin);
}

TEST(SliceSpaceTest, RandomUseNeverOverlapsNorReusesEarly) {
  const std::uint64_t pages = 48;
  SliceSpace space(kSpaceBegin, pages * kFrameBytes);
  std::mt19937_64 random(5);
  std::map<DevicePtr, LiveAllocation> live;
  std::map<DevicePtr, std::uint64_t> resting;  // begin -> bytes
  std::deque<DevicePtr> resting_order;
  std::vector<DevicePtr> ptrs;
  std::uint64_t handed_out = 0;
  const auto overlaps = [](const auto& map, DevicePtr begin, DevicePtr end,
                           const auto& bytes_of) {
    const auto next = map.lower_bound(begin);
    if (next != map.end() && next->first < end) return true;
    return next != map.begin() &&
           std::prev(next)->first + bytes_of(std::prev(next)->second) > begin;
  };
  for (int step = 0; step < 60000; ++step) {
    if (ptrs.size() < 20 || random() % 2 == 0) {
      const auto slices = static_cast<std::uint16_t>(
          random() % 50 == 0 ? 1 + random() % 2000 : 1 + random() % 8);
      const LiveAllocation made = Slices(slices);
      const auto ptr = space.Add(made);
      ASSERT_TRUE(ptr) << step;
      const DevicePtr end = *ptr + slices * kSliceBytes;
      ASSERT_TRUE(space.Contains(*ptr) && space.Contains(end - 1));
      ASSERT_FALSE(overlaps(live, *ptr, end, [](const LiveAllocation& l) {
        return l.bytes;
      })) << step;
      ASSERT_FALSE(overlaps(resting, *ptr, end, [](std::uint64_t b) {
        return b;
      })) << step;
      live[*ptr] = made;
      ptrs.push_back(*ptr);
      handed_out += slices * kSliceBytes;
    } else {
      std::swap(ptrs[random() % ptrs.size()], ptrs.back());
      const DevicePtr ptr = ptrs.back();
      ptrs.pop_back();
      const std::uint64_t bytes = live[ptr].bytes;
      ASSERT_TRUE(space.Covers(ptr, bytes));
      ASSERT_TRUE(space.Covers(ptr + bytes - 1, 1));
      const auto removed = space.Remove(ptr);
      ASSERT_TRUE(removed);
      ASSERT_EQ(removed->bytes, bytes);
      ASSERT_FALSE(space.Covers(ptr, 1));
      live.erase(ptr);
      resting[ptr] = bytes;
      resting_order.push_back(ptr);
      if (resting_order.size() > SliceSpace::kQuarantinedFrees) {
        resting.erase(resting_order.front());
        resting_order.pop_front();
      }
    }
  }
  EXPECT_GT(handed_out, 2 * pages * kFrameBytes) << "pages were to be reused";
}

}  // namespace
}  // namespace strata::sim
