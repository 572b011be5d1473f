// PoolBlocks compared with an implementation that visits every block for each
// answer.

#include "strata/platform/sim/pools/pool_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace strata::sim {
namespace {

constexpr std::uint64_t kUnit = 512;
constexpr std::uint64_t kChunkUnits = 64;
constexpr DevicePtr kBase = 0x7000000000;

Stream StreamNumber(std::uint64_t uid) {
  Stream stream;
  stream.device = 0;
  stream.uid = uid;
  return stream;
}

// An order with known and completed points that the test adds one by one.
class ToldOrder final : public StreamOrder {
 public:
  StreamPoint Last(const Stream& stream) const override {
    return {stream.device, stream.uid, 1};
  }
  bool IsBefore(const StreamPoint& point, const Stream&) const override {
    return known.count(point.count) != 0;
  }
  bool IsDone(const StreamPoint& point) const override {
    return done.count(point.count) != 0;
  }
  void Wait(const Stream&, const StreamPoint&) override {}

  std::set<std::uint64_t> known;
  std::set<std::uint64_t> done;
};

// Blocks in a list by address, split and joined by the rules of PoolBlocks.
class PlainBlocks {
 public:
  void AddChunk(const PoolChunk& chunk) {
    const auto after =
        std::find_if(blocks_.begin(), blocks_.end(),
                     [&](const Block& block) { return block.ptr > chunk.ptr; });
    blocks_.insert(after, {chunk.ptr, chunk.bytes, chunk.ptr, false, {}});
  }

  std::optional<DevicePtr> Find(std::uint64_t bytes,
                                const ReuseRule& rule) const {
    using Row = std::pair<std::uint64_t, DevicePtr>;
    std::vector<Row> single;
    std::vector<Row> rows;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (!IsFor(rule, blocks_[i])) continue;
      single.push_back({blocks_[i].bytes, blocks_[i].ptr});
      const bool goes_on = i != 0 && IsFor(rule, blocks_[i - 1]) &&
                           blocks_[i - 1].chunk == blocks_[i].chunk;
      if (!goes_on) rows.push_back({0, blocks_[i].ptr});
      rows.back().first += blocks_[i].bytes;
    }
    for (auto* choice : {&single, &rows}) {
      std::erase_if(*choice, [&](const Row& row) { return row.first < bytes; });
      if (!choice->empty()) {
        return std::min_element(choice->begin(), choice->end())->second;
      }
    }
    return std::nullopt;
  }

  void Take(DevicePtr ptr, std::uint64_t bytes) {
    auto block = At(ptr);
    const DevicePtr chunk = block->chunk;
    std::uint64_t left = bytes;
    while (left >= block->bytes) {
      left -= block->bytes;
      block = blocks_.erase(block);
      if (left == 0) break;
    }
    if (left != 0) {
      block->ptr += left;
      block->bytes -= left;
    }
    blocks_.insert(block, {ptr, bytes, chunk, true, {}});
  }

  void Free(DevicePtr ptr, const std::optional<StreamPoint>& point) {
    const auto block = At(ptr);
    block->live = false;
    block->freed = point;
    Join();
  }

  void NoteWait(WaitedFor waited) {
    for (Block& block : blocks_) {
      if (block.freed && waited(*block.freed)) block.freed.reset();
    }
    Join();
  }

  // True if one block covers the whole range, and is live or freed at a pending
  // point.
  bool Covers(DevicePtr ptr, std::uint64_t bytes) const {
    const Block* block = Covering(ptr, bytes);
    return block != nullptr && block->live;
  }
  bool CoversFreed(DevicePtr ptr, std::uint64_t bytes,
                   const StreamOrder& order) const {
    const Block* block = Covering(ptr, bytes);
    return block != nullptr && block->freed && !order.IsDone(*block->freed);
  }

  void DropChunk(DevicePtr chunk) {
    std::erase_if(blocks_,
                  [&](const Block& block) { return block.chunk == chunk; });
  }

 private:
  struct Block {
    DevicePtr ptr;
    std::uint64_t bytes;
    DevicePtr chunk;
    bool live;
    std::optional<StreamPoint> freed;
  };

  void Join() {
    for (std::size_t i = 0; i + 1 < blocks_.size();) {
      Block& low = blocks_[i];
      const Block& high = blocks_[i + 1];
      if (low.live || high.live || low.chunk != high.chunk ||
          !AreForTheSame(low.freed, high.freed)) {
        ++i;
        continue;
      }
      low.bytes += high.bytes;
      if (low.freed) {
        low.freed->count = std::max(low.freed->count, high.freed->count);
      }
      blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
  }
  const Block* Covering(DevicePtr ptr, std::uint64_t bytes) const {
    const auto found =
        std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& block) {
          return block.ptr <= ptr && ptr + bytes <= block.ptr + block.bytes;
        });
    return found == blocks_.end() ? nullptr : &*found;
  }
  // All points belong to one device; StreamPoolModelTest has several.
  static bool AreForTheSame(const std::optional<StreamPoint>& low,
                            const std::optional<StreamPoint>& high) {
    if (!low || !high) return !low && !high;
    return low->stream_uid == high->stream_uid;
  }
  static bool IsFor(const ReuseRule& rule, const Block& block) {
    return !block.live &&
           (!block.freed || rule.with_waits || rule.Allows(*block.freed));
  }
  std::vector<Block>::iterator At(DevicePtr ptr) {
    return std::find_if(blocks_.begin(), blocks_.end(),
                        [&](const Block& block) { return block.ptr == ptr; });
  }

  std::vector<Block> blocks_;
};

class PoolBlocksTest : public testing::TestWithParam<unsigned> {
 protected:
  std::uint64_t Pick(std::uint64_t below) { return random_() % below; }

  void AddChunk() {
    // Some are adjacent.
    PoolChunk chunk;
    chunk.ptr = kBase + chunks_made_ * kChunkUnits * kUnit;
    chunk.bytes = kChunkUnits * kUnit;
    chunks_made_ += 1 + Pick(2);
    blocks_.AddChunk(chunk);
    plain_.AddChunk(chunk);
    has_.insert(chunk.ptr);
  }
  void Allocate() {
    ReuseRule rule{order_, StreamNumber(1 + Pick(streams_))};
    rule.follow_dependencies = Pick(2) == 0;
    rule.opportunistic = Pick(2) == 0;
    rule.with_waits = Pick(8) == 0;
    const std::uint64_t bytes = (1 + Pick(Pick(4) == 0 ? 40 : 8)) * kUnit;
    const std::optional<DevicePtr> found = blocks_.Find(bytes, rule);
    ASSERT_EQ(found, plain_.Find(bytes, rule)) << bytes;
    if (!found) return AddChunk();
    blocks_.Take(*found, bytes, nullptr);
    plain_.Take(*found, bytes);
    live_.push_back({*found, bytes});
  }
  void FreeOne() {
    if (live_.empty()) return;
    const std::size_t which = Pick(live_.size());
    const auto [ptr, bytes] = live_[which];
    std::optional<StreamPoint> point;
    if (Pick(6) != 0) {
      // Some frees share a point.
      points_ += Pick(3) == 0 ? 0 : 1;
      point = StreamPoint{0, 1 + points_ % streams_, points_};
      if (Pick(3) == 0) order_.known.insert(points_);
      if (Pick(3) == 0) order_.done.insert(points_);
    }
    ASSERT_EQ(blocks_.Free(ptr, point), bytes);
    plain_.Free(ptr, point);
    live_[which] = live_.back();
    live_.pop_back();
  }
  // Waits for the work submitted to one stream, sometimes only for a part.
  void Await() {
    const std::uint64_t stream = 1 + Pick(streams_);
    const std::uint64_t most = Pick(3) == 0 ? Pick(points_ + 1) : points_;
    const auto waited = [&](const StreamPoint& point) {
      return point.stream_uid == stream && point.count <= most;
    };
    blocks_.NoteWait(waited);
    plain_.NoteWait(waited);
  }
  void Trim() {
    const auto chunk = blocks_.TakeIdleChunk(&order_, ~std::uint64_t{0});
    if (!chunk) return;
    plain_.DropChunk(chunk->ptr);
    has_.erase(chunk->ptr);
  }
  // Queries inside a block, across two blocks, and outside all chunks.
  void Look() {
    const std::uint64_t units = (chunks_made_ + 2) * kChunkUnits;
    const DevicePtr ptr =
        kBase - kChunkUnits * kUnit + Pick(units) * kUnit + Pick(3);
    const std::uint64_t bytes = 1 + Pick(Pick(2) == 0 ? 3 : 9) * kUnit;
    EXPECT_EQ(blocks_.Covers(ptr, bytes), plain_.Covers(ptr, bytes));
    EXPECT_EQ(blocks_.CoversFreed(ptr, bytes, order_),
              plain_.CoversFreed(ptr, bytes, order_));
    const DevicePtr start =
        kBase + (ptr - kBase) / (kChunkUnits * kUnit) * (kChunkUnits * kUnit);
    const bool has = ptr >= kBase && has_.count(start) != 0 &&
                     ptr + bytes <= start + kChunkUnits * kUnit;
    const PoolChunk* chunk = blocks_.FindChunk(ptr, bytes);
    ASSERT_EQ(chunk != nullptr, has) << ptr - kBase;
    if (has) {
      EXPECT_EQ(chunk->ptr, start);
    }
  }

  std::mt19937_64 random_{GetParam()};
  // With only one stream, all free memory is available at once.
  std::uint64_t streams_ = 1 + GetParam() % 3;
  std::uint64_t chunks_made_ = 0;
  std::uint64_t points_ = 1;
  ToldOrder order_;
  PoolBlocks blocks_;
  PlainBlocks plain_;
  std::set<DevicePtr> has_;  // addresses of chunks
  std::vector<std::pair<DevicePtr, std::uint64_t>> live_;
};

TEST_P(PoolBlocksTest, FindsWhatALookAtEveryBlockFinds) {
  for (int i = 0; i < 4000; ++i) {
    // Grows and shrinks, so that rows of every length occur.
    const std::uint64_t frees = i / 500 % 2 == 0 ? 4 : 6;
    const std::uint64_t what = Pick(11);
    if (what < frees) {
      ASSERT_NO_FATAL_FAILURE(FreeOne()) << i;
    } else if (what < 10) {
      ASSERT_NO_FATAL_FAILURE(Allocate()) << i;
    } else if (Pick(5) == 0) {
      Trim();
    } else if (Pick(10) == 0) {
      Await();
    }
    ASSERT_NO_FATAL_FAILURE(Look()) << i;
  }
  for (const auto& [ptr, bytes] : live_) {
    EXPECT_TRUE(blocks_.Covers(ptr, bytes));
    EXPECT_EQ(blocks_.Free(ptr, std::nullopt), bytes);
  }
  EXPECT_EQ(blocks_.live_bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PoolBlocksTest, testing::Range(0U, 12U));

}  // namespace
}  // namespace strata::sim
