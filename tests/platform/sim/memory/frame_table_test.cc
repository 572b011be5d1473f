#include "strata/platform/sim/memory/frame_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace strata::sim {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

TEST(FrameTableTest, LargeRequestTakesWholeFrames) {
  FrameTable table(10);
  const auto share = table.Take(kMebibyte);
  ASSERT_TRUE(share);
  EXPECT_EQ(table.free_frames(), 9u);
  const auto three = table.Take(2 * kFrameBytes + 1);
  ASSERT_TRUE(three);
  EXPECT_EQ(table.free_frames(), 6u);
  table.Give(*share);
  table.Give(*three);
  EXPECT_EQ(table.free_frames(), 10u);
}

TEST(FrameTableTest, SmallRequestsShareAFrameUntilItIsEmpty) {
  FrameTable table(2);
  const auto a = table.Take(1);
  const auto b = table.Take(kMebibyte - 1);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(table.free_frames(), 1u);
  EXPECT_EQ(a->shared_frame, b->shared_frame);
  table.Give(*a);
  EXPECT_EQ(table.free_frames(), 1u);
  table.Give(*b);
  EXPECT_EQ(table.free_frames(), 2u);
}

TEST(FrameTableTest, FirstFitIsTheLowestFrameAndSlice) {
  FrameTable table(3);
  std::vector<FrameShare> shares;
  for (int i = 0; i < 3 * 4; ++i) {
    shares.push_back(table.Take(kFrameBytes / 4).value());
  }
  table.Give(shares[6]);
  table.Give(shares[1]);
  table.Give(shares[2]);
  const FrameShare again = table.Take(kSliceBytes).value();
  EXPECT_EQ(again.shared_frame, 0u);
  EXPECT_EQ(again.first_slice, 1024);
}

TEST(FrameTableTest, FailsExactlyWhenNoFrameIsLeft) {
  FrameTable table(4);
  EXPECT_FALSE(table.Take(4 * kFrameBytes + 1));
  EXPECT_FALSE(table.Take(UINT64_MAX));
  EXPECT_EQ(table.free_frames(), 4u);
  ASSERT_TRUE(table.Take(3 * kFrameBytes));
  ASSERT_TRUE(table.Take(kFrameBytes - kMebibyte - kSliceBytes));
  EXPECT_EQ(table.free_frames(), 0u);
  EXPECT_FALSE(table.Take(kMebibyte));
  // The shared frame has room.
  ASSERT_TRUE(table.Take(kMebibyte - kSliceBytes));
  ASSERT_TRUE(table.Take(kMebibyte - kSliceBytes) == std::nullopt);
  ASSERT_TRUE(table.Take(kSliceBytes));
}

TEST(FrameTableTest, LargeRequestHasTheLowestFreeFrames) {
  FrameTable table(8);
  const FrameShare a = table.Take(2 * kFrameBytes).value();
  const FrameShare b = table.Take(1).value();
  const FrameShare c = table.Take(2 * kFrameBytes).value();
  EXPECT_EQ(a.extents.size(), 1u);
  EXPECT_EQ(table.SharedFrameNumber(b.shared_frame), 2u);
  table.Give(a);
  const FrameShare d = table.Take(4 * kFrameBytes).value();
  ASSERT_EQ(d.extents.size(), 2u);
  EXPECT_EQ(d.extents[0].first, 0u);
  EXPECT_EQ(d.extents[0].count, 2u);
  EXPECT_EQ(d.extents[1].first, 5u);
  EXPECT_EQ(d.extents[1].before, 2u);
  EXPECT_EQ(c.extents[0].first, 3u);
}

TEST(FrameTableTest, LocateFindsEveryByteOfAShare) {
  FrameTable table(8);
  const FrameShare gap = table.Take(kFrameBytes).value();
  const FrameShare small = table.Take(1000).value();
  const FrameShare next = table.Take(600).value();
  table.Give(gap);
  const FrameShare large = table.Take(3 * kFrameBytes).value();
  PhysicalRun run = table.Locate(large, 5);
  EXPECT_EQ(run.offset, 5u);
  EXPECT_EQ(run.bytes, kFrameBytes - 5);
  run = table.Locate(large, 2 * kFrameBytes + 7);
  EXPECT_EQ(run.offset, 3 * kFrameBytes + 7);
  EXPECT_EQ(run.bytes, kFrameBytes - 7);
  run = table.Locate(next, 1);
  EXPECT_EQ(run.offset, kFrameBytes + 2 * kSliceBytes + 1);
  EXPECT_EQ(run.bytes, 2 * kSliceBytes - 1);
  EXPECT_EQ(table.Locate(small, 0).offset, kFrameBytes);
}

// Every slice separately, searched from the front.
class NaiveFrames {
 public:
  explicit NaiveFrames(std::uint64_t frames) : free_frames_(frames) {}

  std::optional<FrameShare> Take(std::uint64_t bytes) {
    FrameShare share;
    if (bytes >= kOwnFramesBytes) {
      share.frames = (bytes + kFrameBytes - 1) / kFrameBytes;
      if (share.frames > free_frames_) return std::nullopt;
      free_frames_ -= share.frames;
      return share;
    }
    const auto slices =
        static_cast<std::uint16_t>((bytes + kSliceBytes - 1) / kSliceBytes);
    for (auto& [index, used] : shared_) {
      if (const auto first = FirstFit(used, slices)) {
        return Mark(index, *first, slices);
      }
    }
    if (free_frames_ == 0) return std::nullopt;
    --free_frames_;
    std::uint32_t index = 0;
    while (shared_.count(index) != 0) ++index;
    shared_[index].assign(SharedFrame::kSlices, false);
    return Mark(index, 0, slices);
  }

  void Give(const FrameShare& share) {
    if (share.frames > 0) {
      free_frames_ += share.frames;
      return;
    }
    std::vector<bool>& used = shared_[share.shared_frame];
    for (int i = 0; i < share.slices; ++i) {
      used[static_cast<std::size_t>(share.first_slice + i)] = false;
    }
    for (const bool slice : used) {
      if (slice) return;
    }
    shared_.erase(share.shared_frame);
    ++free_frames_;
  }

  std::uint64_t free_frames() const { return free_frames_; }

 private:
  static std::optional<std::uint16_t> FirstFit(const std::vector<bool>& used,
                                               std::uint16_t slices) {
    int run = 0;
    for (std::size_t i = 0; i < used.size(); ++i) {
      run = used[i] ? 0 : run + 1;
      if (run == slices) return static_cast<std::uint16_t>(i + 1 - slices);
    }
    return std::nullopt;
  }

  FrameShare Mark(std::uint32_t index, std::uint16_t first,
                  std::uint16_t slices) {
    for (int i = 0; i < slices; ++i) {
      shared_[index][static_cast<std::size_t>(first + i)] = true;
    }
    FrameShare share;
    share.shared_frame = index;
    share.first_slice = first;
    share.slices = slices;
    return share;
  }

  std::uint64_t free_frames_;
  std::map<std::uint32_t, std::vector<bool>> shared_;
};

std::uint64_t RandomBytes(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return 1 + random() % 2048;
    case 1:
      return 1 + random() % kOwnFramesBytes;
    case 2:
      return kOwnFramesBytes - 2 + random() % 4;
    default:
      return 1 + random() % (3 * kFrameBytes);
  }
}

// Marks the physical bytes of a share, in slices. No slice may have two owners.
void Mark(const FrameTable& table, const FrameShare& share, bool take,
          std::set<std::uint64_t>* owned) {
  const std::uint64_t bytes = share.frames > 0 ? share.frames * kFrameBytes
                                               : share.slices * kSliceBytes;
  for (std::uint64_t offset = 0; offset < bytes; offset += kSliceBytes) {
    const std::uint64_t slice =
        table.Locate(share, offset).offset / kSliceBytes;
    ASSERT_LT(slice, table.frames() * SharedFrame::kSlices);
    ASSERT_TRUE(take ? owned->insert(slice).second : owned->erase(slice) == 1);
  }
}

TEST(FrameTableTest, NoTwoSharesHaveAByteInCommon) {
  std::mt19937_64 random(7);
  FrameTable table(10);
  std::vector<FrameShare> live;
  std::set<std::uint64_t> owned;
  for (int step = 0; step < 200; ++step) {
    if (live.empty() || random() % 100 < 55) {
      const auto share = table.Take(RandomBytes(random));
      if (!share) continue;
      ASSERT_NO_FATAL_FAILURE(Mark(table, *share, true, &owned)) << step;
      live.push_back(*share);
    } else {
      std::swap(live[random() % live.size()], live.back());
      ASSERT_NO_FATAL_FAILURE(Mark(table, live.back(), false, &owned)) << step;
      table.Give(live.back());
      live.pop_back();
    }
  }
}

TEST(FrameTableTest, RandomRequestsGoWhereANaiveModelPutsThem) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    FrameTable table(12);
    NaiveFrames naive(12);
    std::vector<FrameShare> live;
    int refused = 0;
    for (int step = 0; step < 3000; ++step) {
      if (live.empty() || random() % 100 < 55) {
        const std::uint64_t bytes = RandomBytes(random);
        const auto share = table.Take(bytes);
        const auto expected = naive.Take(bytes);
        ASSERT_EQ(share.has_value(), expected.has_value()) << step;
        if (!share) {
          ++refused;
          continue;
        }
        ASSERT_EQ(share->frames, expected->frames) << step;
        ASSERT_EQ(share->shared_frame, expected->shared_frame) << step;
        ASSERT_EQ(share->first_slice, expected->first_slice) << step;
        ASSERT_EQ(share->slices, expected->slices) << step;
        live.push_back(*share);
      } else {
        std::swap(live[random() % live.size()], live.back());
        table.Give(live.back());
        naive.Give(live.back());
        live.pop_back();
      }
      ASSERT_EQ(table.free_frames(), naive.free_frames()) << step;
    }
    EXPECT_GT(refused, 100);
    for (const FrameShare& share : live) table.Give(share);
    EXPECT_EQ(table.free_frames(), 12u);
  }
}

}  // namespace
}  // namespace strata::sim
