// BfcAllocator compared with peer:tf_bfc, an independent re-creation of the
// original: equal offsets, regions and counts for equal calls.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "strata/strategy/bfc/bfc_allocator.h"
#include "strata/strategy/shared/shared_order.h"
#include "strata/tests/testing/layers/pool_place.h"
#include "strata/tests/tools/peers/peer_fixture.h"
#include "strata/tools/peers/tf/tf_bfc_peer.h"
#include "strata/tools/readers/trace_reader.h"

namespace strata::peers {
namespace {

PoolPlaceOptions Memory(std::uint64_t bytes) {
  PoolPlaceOptions options;
  options.memory_bytes = bytes;
  return options;
}

// The two allocators, each on a separate device that returns equal addresses
// for equal calls.
class Pair {
 public:
  Pair(std::uint64_t memory_bytes, const TfBfcOptions& options)
      : place_(Memory(memory_bytes)),
        device_(memory_bytes),
        peer_(device_.device(), options) {
    BfcOptions own;
    own.allow_growth = options.allow_growth;
    own.garbage_collection = options.garbage_collection;
    own.memory_limit_bytes = options.memory_limit_bytes;
    bfc_ = std::make_unique<BfcAllocator>(
        place_.pool(), std::make_shared<SharedOrder>(place_.device()), own);
  }
  ~Pair() {
    for (const Live& live : live_) Free(live);
  }

  // Serves the request on both. Returns false if the results differ.
  bool Allocate(std::size_t slot, std::size_t bytes) {
    if (slot >= live_.size()) live_.resize(slot + 1);
    Failure failure;
    Live& live = live_[slot];
    live.own = bfc_->TryAllocate(Request{bytes}, failure);
    live.peer = peer_.AllocateRaw(bytes, 0);
    const auto address =
        live.own != nullptr ? reinterpret_cast<std::uintptr_t>(live.own->data())
                            : 0;
    refused_ += live.own == nullptr ? 1 : 0;
    return address == live.peer;
  }
  void Free(std::size_t slot) {
    Free(live_[slot]);
    live_[slot] = Live();
  }
  bool IsLive(std::size_t slot) const {
    return slot < live_.size() && live_[slot].own != nullptr;
  }
  std::size_t refused() const { return refused_; }

  void ExpectSameState() {
    const BfcSnapshot snapshot = bfc_->Snapshot();
    std::vector<std::size_t> regions;
    for (const BfcSnapshot::RegionState& region : snapshot.regions) {
      regions.push_back(region.size);
    }
    EXPECT_EQ(regions, peer_.RegionBytes());
    EXPECT_EQ(snapshot.numbers.bytes_in_use, peer_.stats().in_use_bytes);
    EXPECT_EQ(snapshot.numbers.pool_bytes, peer_.stats().reserved_bytes);
    EXPECT_EQ(snapshot.numbers.num_allocs, peer_.stats().allocations);
    EXPECT_TRUE(bfc_->IsConsistent());
  }
  std::size_t pool_bytes() const { return bfc_->GetNumbers().pool_bytes; }

 private:
  struct Live {
    Allocation* own = nullptr;
    DevicePtr peer = 0;
  };

  void Free(const Live& live) {
    if (live.own != nullptr) bfc_->DoFree(live.own);
    if (live.peer != 0) peer_.DeallocateRaw(live.peer);
  }

  PoolPlace place_;
  PeerTestDevice device_;
  TfBfcPeer peer_;
  std::unique_ptr<BfcAllocator> bfc_;
  std::vector<Live> live_;
  std::size_t refused_ = 0;
};

struct RandomCase {
  std::uint64_t seed;
  TfBfcOptions options;
  std::uint64_t memory_bytes;
  double most_bytes;  // of a request
};

std::ostream& operator<<(std::ostream& out, const RandomCase& one) {
  return out << "seed " << one.seed
             << (one.options.allow_growth ? "" : " whole")
             << (one.options.garbage_collection ? " gc" : "");
}

TfBfcOptions Limit(std::size_t bytes, bool allow_growth, bool collects) {
  TfBfcOptions options;
  options.memory_limit_bytes = bytes;
  options.allow_growth = allow_growth;
  options.garbage_collection = collects;
  return options;
}

class BfcAgainstPeerTest : public ::testing::TestWithParam<RandomCase> {};

// 8 cases of 125 000 operations. tf_bfc.md R7 to R34.
TEST_P(BfcAgainstPeerTest, GivesTheSameAddressesAsTheOriginal) {
  constexpr int kOperations = 125'000;
  constexpr std::size_t kSlots = 1200;
  const RandomCase& one = GetParam();
  Pair pair(one.memory_bytes, one.options);
  std::mt19937_64 random(one.seed);
  std::uniform_real_distribution<double> log_bytes(0,
                                                   std::log2(one.most_bytes));
  for (int i = 0; i < kOperations; ++i) {
    // Sometimes most blocks are freed, so that regions become idle.
    if (i % 20'000 == 19'999) {
      for (std::size_t slot = 0; slot < kSlots; ++slot) {
        if (pair.IsLive(slot) && random() % 50 != 0) pair.Free(slot);
      }
    }
    const std::size_t slot = random() % kSlots;
    if (pair.IsLive(slot)) {
      pair.Free(slot);
    } else {
      const auto bytes = static_cast<std::size_t>(std::exp2(log_bytes(random)));
      ASSERT_TRUE(pair.Allocate(slot, bytes)) << "operation " << i;
    }
    if (i % 10'000 == 0) pair.ExpectSameState();
  }
  pair.ExpectSameState();
  // The case also compares exhaustion.
  EXPECT_GT(pair.refused(), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Random, BfcAgainstPeerTest,
    ::testing::Values(
        RandomCase{1, Limit(0, true, true), Mebibytes(256), 8e6},
        RandomCase{2, Limit(0, true, false), Mebibytes(256), 8e6},
        RandomCase{3, Limit(Mebibytes(200) + 100, true, true), Mebibytes(512),
                   4e6},
        RandomCase{4, Limit(Mebibytes(96), false, true), Mebibytes(512), 2e6},
        RandomCase{5, Limit(0, false, true), Mebibytes(64), 1e6},
        RandomCase{6, Limit(Mebibytes(300), true, false), Mebibytes(128), 6e6},
        RandomCase{7, Limit(Gibibytes(1), true, true), Mebibytes(600), 3e8},
        RandomCase{8, Limit(Mebibytes(16), true, true), Mebibytes(64), 3e5}));

class BfcAgainstPeerTraceTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BfcAgainstPeerTraceTest, GivesTheSameAddressesAsTheOriginal) {
  const tools::Trace trace =
      tools::ReadTrace(std::string(STRATA_SOURCE_DIR "/tests/data/traces/") +
                           GetParam() + ".csv.gz",
                       tools::TraceReaderOptions());
  TfBfcOptions options;
  Pair pair(Gibibytes(80), options);
  const std::uint64_t* bytes = trace.allocated_bytes.data();
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const tools::TraceEvent event = trace.events[i];
    if (event.is_allocate()) {
      ASSERT_TRUE(pair.Allocate(event.slot(), *bytes++)) << trace.Where(i);
    } else {
      pair.Free(event.slot());
    }
  }
  pair.ExpectSameState();
  EXPECT_LE(sizeof(OrderedIndex), pair.pool_bytes() / 1000);
}

std::vector<std::string> BundledTraces() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(
           STRATA_SOURCE_DIR "/tests/data/traces")) {
    const std::string name = file.path().filename();
    const std::size_t end = name.find(".csv.gz");
    if (end != std::string::npos) names.push_back(name.substr(0, end));
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Bundled, BfcAgainstPeerTraceTest,
                         ::testing::ValuesIn(BundledTraces()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace strata::peers
