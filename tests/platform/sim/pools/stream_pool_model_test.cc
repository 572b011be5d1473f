// Random use of a pool, compared with a model that stores the owner and the
// last free of each unit of memory.

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "strata/tests/platform/sim/pools/stream_pool_fixture.h"

namespace strata::sim {
namespace {

// Every request is a multiple of it, so every block begins at one.
constexpr std::uint64_t kUnitBytes = 64 * 1024;

struct Unit {
  bool live = false;
  std::optional<StreamPoint> freed;
};

class StreamPoolModelTest : public StreamPoolFixture,
                            public ::testing::WithParamInterface<unsigned> {
 protected:
  struct Block {
    DevicePtr ptr = 0;
    std::uint64_t units = 0;
  };

  void Step();
  void Await(const Stream& stream);
  void TryAlloc();
  void FreeOne();
  void ChangeAttributes();
  void CheckSafe(const Block& block, const Stream& stream,
                 const FakeStreamOrder& before);
  void CheckReleasedWereDone();
  void CheckCounts();

  std::uint64_t Pick(std::uint64_t below) { return random_() % below; }
  Stream& PickStream() { return streams_[Pick(streams_.size())]; }

  std::mt19937_64 random_{GetParam()};
  std::vector<Stream> streams_{a_, b_, c_, FakeStreamOrder::MakeStream(1),
                               FakeStreamOrder::MakeStream(1, 1)};
  std::vector<Block> live_;
  std::map<DevicePtr, Unit> units_;  // units that the pool has allocated
  bool follow_ = true;
  bool opportunistic_ = true;
  bool internal_ = true;
  int reused_ = 0;  // units that had been freed in another stream
  int failed_ = 0;
};

void StreamPoolModelTest::Step() {
  switch (Pick(12)) {
    case 0:
      order_.Complete(PickStream());
      break;
    case 1: {
      const StreamPoint point = order_.Last(PickStream());
      order_.Wait(PickStream(), point);
      break;
    }
    case 2:
      if (Pick(10) == 0) ChangeAttributes();
      break;
    case 3:
      if (Pick(4) == 0) Await(PickStream());
      break;
    case 4:
      pool().TrimTo(Pick(kFrames) * kFrameBytes, order_);
      break;
    case 5:
    case 6:
    case 7:
      FreeOne();
      break;
    default:
      TryAlloc();
      break;
  }
}

void StreamPoolModelTest::Await(const Stream& stream) {
  order_.Complete(stream);
  Synchronize(stream);
  for (auto& [ptr, unit] : units_) {
    const std::optional<StreamPoint>& freed = unit.freed;
    if (freed && freed->device == stream.device &&
        freed->stream_uid == stream.uid) {
      unit.freed.reset();
    }
  }
}

void StreamPoolModelTest::TryAlloc() {
  const Stream stream = PickStream();
  const FakeStreamOrder before = order_;
  Block block;
  block.units = 1 + Pick(Pick(4) == 0 ? 400 : 16);
  block.ptr = Alloc(block.units * kUnitBytes, stream);
  if (block.ptr == 0) {
    ++failed_;
    return;
  }
  CheckSafe(block, stream, before);
  live_.push_back(block);
}

void StreamPoolModelTest::CheckSafe(const Block& block, const Stream& stream,
                                    const FakeStreamOrder& before) {
  for (std::uint64_t i = 0; i < block.units; ++i) {
    Unit& unit = units_[block.ptr + i * kUnitBytes];
    ASSERT_FALSE(unit.live) << "handed out twice";
    if (unit.freed) {
      const StreamPoint& at = *unit.freed;
      const bool own =
          at.device == stream.device && at.stream_uid == stream.uid;
      const bool allowed = own || (follow_ && before.IsBefore(at, stream)) ||
                           (opportunistic_ && before.IsDone(at));
      const bool waited = internal_ && order_.IsBefore(at, stream);
      ASSERT_TRUE(allowed || waited) << "too early, or by a rule that is off";
      if (!own) ++reused_;
    }
    unit = Unit{true, std::nullopt};
  }
}

void StreamPoolModelTest::FreeOne() {
  if (live_.empty()) return;
  std::swap(live_[Pick(live_.size())], live_.back());
  const Block block = live_.back();
  live_.pop_back();
  std::optional<StreamPoint> point;
  if (Pick(8) == 0) {
    FreeNow(block.ptr);
  } else {
    const Stream stream = PickStream();
    FreeAsync(block.ptr, stream);
    point = order_.Last(stream);
  }
  for (std::uint64_t i = 0; i < block.units; ++i) {
    units_[block.ptr + i * kUnitBytes] = Unit{false, point};
  }
}

void StreamPoolModelTest::ChangeAttributes() {
  follow_ = Pick(2) == 0;
  opportunistic_ = Pick(2) == 0;
  internal_ = Pick(2) == 0;
  AllowReuse(&pool(), follow_, opportunistic_, internal_);
}

// Forgets the memory that the pool released, and expects that no work was
// pending on it.
void StreamPoolModelTest::CheckReleasedWereDone() {
  for (auto it = units_.begin(); it != units_.end();) {
    if (table_.Locate(it->first)) {
      ++it;
      continue;
    }
    ASSERT_FALSE(it->second.live);
    ASSERT_TRUE(!it->second.freed || order_.IsDone(*it->second.freed));
    it = units_.erase(it);
  }
}

void StreamPoolModelTest::CheckCounts() {
  std::uint64_t used = 0;
  for (const Block& block : live_) used += block.units * kUnitBytes;
  EXPECT_EQ(Get(pool(), PoolAttribute::kUsedCurrent), used);
  EXPECT_EQ(Get(pool(), PoolAttribute::kReservedCurrent), TakenBytes());
  EXPECT_EQ(table_.live_count(), live_.size());
  EXPECT_EQ(table_.live_bytes(), used);
}

TEST_P(StreamPoolModelTest, AgreesWithTheModel) {
  for (int i = 0; i < 3000 && !HasFatalFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(GetParam()) + ", step " +
                 std::to_string(i));
    Step();
    CheckCounts();
    if (i % 50 == 0) CheckReleasedWereDone();
    if (HasFailure()) return;
  }
  // The run covered the intended events.
  EXPECT_GT(reused_, 0);
  EXPECT_GT(failed_, 0);
}

TEST_P(StreamPoolModelTest, EverythingGoesBackWhenAllWorkIsDone) {
  for (int i = 0; i < 500; ++i) Step();
  while (!live_.empty()) FreeOne();
  for (const Stream& stream : streams_) order_.Complete(stream);
  Set(&pool(), PoolAttribute::kReleaseThreshold, 0);
  Synchronize();
  EXPECT_EQ(TakenBytes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StreamPoolModelTest, ::testing::Range(1u, 6u));

}  // namespace
}  // namespace strata::sim
