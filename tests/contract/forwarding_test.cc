// Every decorator forwards every virtual function of Allocator, except the ones
// that it implements.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/allocation/decorators/registry.h"
#include "strata/allocation/diagnostics/tracking_allocator.h"
#include "strata/allocation/record_slab.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {
namespace {

// Records its calls, and returns values that no layer uses.
class RecordingAllocator final : public Allocator, private HitPath {
 public:
  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override {
    Note("TryAllocate");
    last_request = request;
    if (refuse) {
      failure = Failure();
      failure.reason = Failure::Reason::kDevice;
      failure.layer = name();
      return nullptr;
    }
    Block* block = RecordSlab::Instance().Take();
    block->data = reinterpret_cast<std::byte*>(std::size_t{1} << 40);
    block->size = request.bytes;
    block->requested = request.bytes;
    block->flags = kBlockLive;
    return block->allocation();
  }
  void DoFree(Allocation* allocation) noexcept override {
    Note("DoFree");
    RecordSlab::Instance().Give(allocation->block());
  }
  std::size_t Release() noexcept override {
    Note("Release");
    return 4711;
  }
  bool RecordStream(Allocation* /*allocation*/,
                    Stream /*stream*/) noexcept override {
    Note("RecordStream");
    return true;
  }
  void EraseStream(Allocation* /*allocation*/,
                   Stream /*stream*/) noexcept override {
    Note("EraseStream");
  }
  void StreamDestroyed(Stream /*stream*/) noexcept override {
    Note("StreamDestroyed");
  }
  Allocator* underlying() const override { return nullptr; }
  const char* name() const override { return "recording"; }
  Place place() const override { return ManagedPlace(7); }
  Stream stream() const override { return Stream{nullptr, 3, 99}; }
  std::size_t max_alignment() const override { return 4096; }
  std::size_t natural_alignment() const override { return 1024; }
  Stats stats() const override {
    Stats stats;
    stats.splits = 17;
    return stats;
  }
  void ResetPeak() override { Note("ResetPeak"); }
  void Accept(AllocatorVisitor& visitor) const override {
    visitor.VisitLayer(*this);
  }
  Reclaimer* reclaimer() const override { return ladder.get(); }
  HitPath* hit_path() override { return this; }
  bool returns_handles() const override { return handles; }

  bool Took(const std::string& call) {
    const auto found = std::find(calls_.begin(), calls_.end(), call);
    const bool took = found != calls_.end();
    calls_.clear();
    return took;
  }

  bool refuse = false;
  bool handles = false;
  Request last_request;
  std::shared_ptr<Reclaimer> ladder = std::make_shared<Reclaimer>();

 private:
  Block* TakeCached(std::size_t /*bytes*/) noexcept override { return nullptr; }
  bool GiveCached(Block* /*block*/) noexcept override { return false; }
  void Note(const char* call) { calls_.emplace_back(call); }

  std::vector<std::string> calls_;
};

// Names of the functions that a decorator implements itself.
std::set<std::string> OwnAnswers(const std::string& name) {
  if (name == "trace" || name == "events") return {"hit_path"};
  if (name == "log" || name == "observe") return {"hit_path"};
  if (name == "tracking") return {"hit_path"};
  if (name == "guard") return {"size", "DoFree", "hit_path"};
  if (name == "stat") return {"stats"};
  if (name == "limit") return {"stats", "hit_path"};
  if (name == "retry" || name == "cuda_graph" || name == "stream_safe") {
    return {};
  }
  if (name == "aligned") return {"max_alignment"};
  if (name == "fault") return {"stats", "hit_path"};
  if (name == "chunk_pool") {
    return {"stats", "ResetPeak", "reclaimer", "hit_path"};
  }
  return {"unknown decorator"};
}

class ForwardingTest : public ::testing::TestWithParam<std::string> {
 protected:
  ForwardingTest() {
    if (GetParam() == "chunk_pool") {
      layer_ = std::make_shared<ChunkPool>(below_, 0, nullptr);
      return;
    }
    if (GetParam() == "tracking") {
      layer_ =
          std::shared_ptr<TrackingAllocator>(TrackingAllocator::Make(*below_));
      return;
    }
    const DecoratorOptions options = OnlyDecorator(GetParam(), trace_path_);
    ChainContext context;
    context.platform = place_.platform();
    layer_ =
        DecorateSystem(Decorate(below_, options, context), options, context);
  }
  ~ForwardingTest() override {
    layer_.reset();
    std::remove(trace_path_.c_str());
  }

  bool Answers(const std::string& call) const {
    return OwnAnswers(GetParam()).count(call) != 0;
  }

  const std::string trace_path_ =
      TemporaryPath("forwarding_" + GetParam() + ".csv");
  TestPlace place_;
  std::shared_ptr<RecordingAllocator> below_ =
      std::make_shared<RecordingAllocator>();
  std::shared_ptr<Allocator> layer_;
  Stream stream_{nullptr, 0, 12345};
};

TEST_P(ForwardingTest, IsTheLayerItIsNamedAfter) {
  EXPECT_EQ(layer_->name(), GetParam());
  EXPECT_EQ(layer_->underlying(), below_.get());
  EXPECT_EQ(OwnAnswers(GetParam()).count("unknown decorator"), 0U);
}

TEST_P(ForwardingTest, ForwardsRequestsWholeAndFreesInMirrorOrder) {
  Failure failure;
  Request request{4096, 1024, kLongLived | kNoRetry, 5};
  AllocationPtr allocation = layer_->AllocateOrNull(request, failure);
  ASSERT_NE(allocation, nullptr);
  EXPECT_EQ(allocation->owner(), layer_.get());
  EXPECT_TRUE(below_->Took("TryAllocate"));
  if (Answers("size")) {
    EXPECT_GT(below_->last_request.bytes, 4096U);
  } else {
    EXPECT_EQ(below_->last_request.bytes, 4096U);
  }
  EXPECT_EQ(below_->last_request.alignment, 1024U);
  EXPECT_EQ(below_->last_request.flags, kLongLived | kNoRetry);
  EXPECT_EQ(below_->last_request.freed_before, 5U);
  allocation.reset();
  EXPECT_EQ(below_->Took("DoFree"), !Answers("DoFree"));
  if (Answers("DoFree")) {
    layer_->Release();  // the memory that it held back
    EXPECT_TRUE(below_->Took("DoFree"));
  }
}

TEST_P(ForwardingTest, PassesAFailureOn) {
  below_->refuse = true;
  Failure failure;
  EXPECT_EQ(layer_->AllocateOrNull(Request{4096}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDevice);
  EXPECT_STREQ(failure.layer, "recording");
}

TEST_P(ForwardingTest, ForwardsWhatIsDone) {
  EXPECT_EQ(layer_->Release(), Answers("Release") ? 0U : 4711U);
  EXPECT_EQ(below_->Took("Release"), !Answers("Release"));
  layer_->StreamDestroyed(stream_);
  EXPECT_TRUE(below_->Took("StreamDestroyed"));
  layer_->ResetPeak();
  EXPECT_EQ(below_->Took("ResetPeak"), !Answers("ResetPeak"));
  AllocationPtr allocation = layer_->Allocate(4096);
  EXPECT_TRUE(layer_->RecordStream(allocation.get(), stream_));
  EXPECT_EQ(below_->Took("RecordStream"), !Answers("RecordStream"));
  layer_->EraseStream(allocation.get(), stream_);
  EXPECT_EQ(below_->Took("EraseStream"), !Answers("EraseStream"));
}

TEST_P(ForwardingTest, ForwardsWhatIsAsked) {
  EXPECT_EQ(layer_->place(), below_->place());
  EXPECT_EQ(layer_->stream(), below_->stream());
  EXPECT_EQ(layer_->natural_alignment(), below_->natural_alignment());
  EXPECT_EQ(layer_->max_alignment(),
            Answers("max_alignment") ? kMaxAlignment : 4096U);
  EXPECT_EQ(layer_->stats().splits, Answers("stats") ? 0U : 17U);
  EXPECT_EQ(layer_->reclaimer(),
            Answers("reclaimer") ? nullptr : below_->ladder.get());
  EXPECT_EQ(layer_->hit_path(),
            Answers("hit_path") ? nullptr : below_->hit_path());
  for (const bool handles : {false, true}) {
    below_->handles = handles;
    EXPECT_EQ(layer_->returns_handles(), handles);
  }
}

// Records the names of the visited layers.
class NameCollector final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& layer) override {
    names.emplace_back(layer.name());
  }
  std::vector<std::string> names;
};

TEST_P(ForwardingTest, ShowsItselfAndWhatIsBelow) {
  NameCollector visitor;
  layer_->Accept(visitor);
  EXPECT_EQ(visitor.names, (std::vector<std::string>{GetParam(), "recording"}));
}

// tf_bfc §2: an allocator of handles is called for 0 bytes too.
TEST_P(ForwardingTest, AsksForAHandleOfNoBytes) {
  EXPECT_FALSE(below_->Took("TryAllocate"));
  AllocationPtr zero = layer_->Allocate(0);
  EXPECT_FALSE(below_->Took("TryAllocate"));
  zero.reset();
  below_->handles = true;
  AllocationPtr handle = layer_->Allocate(0);
  EXPECT_TRUE(below_->Took("TryAllocate"));
  EXPECT_NE(handle->data(), nullptr);
  handle.reset();
  if (Answers("DoFree")) layer_->Release();  // a deferred free
  EXPECT_TRUE(below_->Took("DoFree"));
}

std::vector<std::string> ForwardingLayers() {
  std::vector<std::string> names = DecoratorNames();
  names.emplace_back("chunk_pool");
  names.emplace_back("tracking");
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, ForwardingTest,
                         ::testing::ValuesIn(ForwardingLayers()),
                         [](const auto& one) { return one.param; });

TEST(DecoratorTest, NeedsAnUnderlyingAllocator) {
  EXPECT_THROW(Decorate(nullptr, DecoratorOptions(), ChainContext()),
               std::invalid_argument);
}

}  // namespace
}  // namespace strata
