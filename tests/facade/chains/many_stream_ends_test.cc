// With any number of streams, the end of one stream visits only the streams
// that know it.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "strata/allocation/decorator.h"
#include "strata/strategy/factory_registry.h"
#include "strata/strategy/registry.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

// Counts the notifications of chains about the end of a stream.
class EndCounter final : public Decorator {
 public:
  using Decorator::Decorator;
  void StreamDestroyed(Stream stream) noexcept override {
    ++ends;
    Decorator::StreamDestroyed(stream);
  }
  const char* name() const override { return "end_counter"; }

  static inline std::size_t ends = 0;
};

std::shared_ptr<Allocator> MakeEndCounter(std::shared_ptr<ChunkPool> pool,
                                          std::shared_ptr<ChainStream> stream,
                                          const StrategyOptions& options) {
  return std::make_shared<EndCounter>(
      MakeAutoGrowthAllocator(std::move(pool), std::move(stream), options));
}

STRATA_REGISTER_STRATEGY("end_counter", 101, &MakeEndCounter);

class ManyStreamEndsTest : public FacadeFixture {
 protected:
  static constexpr std::size_t kStreams = 24;  // one chunk for each

  ManyStreamEndsTest() {
    Build("allocator_strategy=end_counter");
    for (std::size_t i = 0; i < kStreams; ++i) {
      streams_.push_back(NewStream());
      live_.push_back(facade().Alloc(kPlace, 1000, streams_.back()));
    }
    EndCounter::ends = 0;
  }
  void End(const Stream& stream) {
    facade().StreamDestroyed(stream);
    Destroy(stream);
  }

  std::vector<Stream> streams_;
  std::vector<AllocationPtr> live_;
};

TEST_F(ManyStreamEndsTest, AnEndVisitsTheChainOfItsStreamAlone) {
  live_.clear();
  for (const Stream& stream : streams_) End(stream);
  EXPECT_EQ(EndCounter::ends, kStreams);
}

TEST_F(ManyStreamEndsTest, AnEndVisitsTheChainsThatItsStreamMarks) {
  const Stream marking = NewStream();
  for (std::size_t i = 0; i < 3; ++i) {
    facade().RecordStream(live_[i], marking);
    facade().RecordStream(live_[i], marking);
  }
  End(marking);
  EXPECT_EQ(EndCounter::ends, 3U);
}

// No stream allocates there any more, but its blocks are marked for other
// streams.
TEST_F(ManyStreamEndsTest, AnEndVisitsAnEndedChainThatItsStreamMarks) {
  const Stream marking = NewStream();
  End(streams_[0]);
  facade().RecordStream(live_[0], marking);
  EndCounter::ends = 0;
  End(marking);
  EXPECT_EQ(EndCounter::ends, 1U);
}

TEST_F(ManyStreamEndsTest, AChainThatIsGoneIsNotVisited) {
  const Stream marking = NewStream();
  facade().RecordStream(live_[0], marking);
  live_[0].reset();
  facade().Release(kPlace);
  End(streams_[0]);
  EndCounter::ends = 0;
  End(marking);
  EXPECT_EQ(EndCounter::ends, 0U);
}

}  // namespace
}  // namespace strata
