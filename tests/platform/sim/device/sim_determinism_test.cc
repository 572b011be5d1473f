// One thread and one seed make one run (T87).
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

class SimDeterminismTest : public SimProgressFixture {
 protected:
  // The calls of a random program and their results. The program does not
  // depend on `seed`, which is the seed of the platform.
  std::string Trace(const std::string& progress, std::uint64_t seed) {
    Build(progress, "seeded", seed);
    trace_.clear();
    stream_names_.clear();
    log_.clear();
    for (const int ordinal : {0, 1}) {
      device(ordinal).SetCallObserver(
          [this](const CallRecord& call) { Add(call); });
    }
    RunProgram();
    trace_ += log_;
    return trace_;
  }

 private:
  void Add(const CallRecord& call) {
    // Uids are unique in the process, so only their order is reproducible.
    const std::size_t stream =
        stream_names_.try_emplace(call.stream_uid, stream_names_.size())
            .first->second;
    trace_ += DeviceCallName(call.call);
    for (const std::uint64_t value :
         {static_cast<std::uint64_t>(call.device), call.ptr, call.bytes,
          call.value, std::uint64_t{stream}, call.time_ns,
          static_cast<std::uint64_t>(call.status)}) {
      trace_ += ' ';
      trace_ += std::to_string(value);
    }
    trace_ += '\n';
  }

  void RunProgram() {
    std::mt19937_64 random(7);
    std::vector<Stream> streams;
    std::vector<Event> events;
    std::vector<DevicePtr> memory;
    for (int i = 0; i < 6; ++i) {
      streams.push_back(
          NewStream(i % 2 == 0 ? kStreamDefault : kStreamNonBlocking, i % 2));
      events.push_back(NewEvent(i % 2));
    }
    for (int step = 0; step < 400; ++step) {
      const std::size_t at = random() % streams.size();
      const Stream& stream = streams[at];
      SimDevice& own = device(stream.device);
      switch (random() % 7) {
        case 0:
          Mark(stream, static_cast<char>('a' + at));
          break;
        case 1:
          own.EventRecord(events[at], stream, 0);
          break;
        case 2:
          own.StreamWaitEvent(stream, events[random() % events.size()], 0);
          break;
        case 3:
          own.EventQuery(events[random() % events.size()]);
          break;
        case 4: {
          DevicePtr ptr = 0;
          device(0).MemAlloc(&ptr, 1000);
          memory.push_back(ptr);
          break;
        }
        case 5:
          if (memory.empty()) break;
          device(0).MemFree(memory.back());
          memory.pop_back();
          break;
        default:
          own.StreamQuery(stream);
          break;
      }
    }
    for (const int ordinal : {0, 1}) device(ordinal).Synchronize();
  }

  std::string trace_;
  std::map<std::uint64_t, std::size_t> stream_names_;
};

TEST_F(SimDeterminismTest, OneSeedMakesOneRun) {
  for (const char* progress : {"inline", "lazy", "seeded", "timed", "manual"}) {
    SCOPED_TRACE(progress);
    const std::string first = Trace(progress, 3);
    EXPECT_GT(first.size(), 10'000u);
    EXPECT_EQ(first, Trace(progress, 3));
  }
}

TEST_F(SimDeterminismTest, AnotherSeedMakesAnotherRun) {
  EXPECT_NE(Trace("seeded", 3), Trace("seeded", 4));
}

}  // namespace
}  // namespace strata::sim
