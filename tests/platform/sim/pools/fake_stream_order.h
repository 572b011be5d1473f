#ifndef STRATA_TESTS_PLATFORM_SIM_POOLS_FAKE_STREAM_ORDER_H_
#define STRATA_TESTS_PLATFORM_SIM_POOLS_FAKE_STREAM_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "strata/platform/sim/streams/stream_order.h"
#include "strata/platform/stream.h"

namespace strata::sim {

// Streams with work that the test submits, orders and completes by hand.
class FakeStreamOrder final : public StreamOrder {
 public:
  FakeStreamOrder() = default;
  // A snapshot of the current state, for later queries.
  FakeStreamOrder(const FakeStreamOrder& other)
      : StreamOrder(), state_(other.state_), waits_(other.waits_) {}
  FakeStreamOrder& operator=(const FakeStreamOrder&) = delete;
  ~FakeStreamOrder() override = default;

  static Stream MakeStream(std::uint64_t uid, int device = 0) {
    Stream stream;
    stream.device = device;
    stream.uid = uid;
    return stream;
  }

  // Submits one more piece of work.
  void Submit(const Stream& stream) { ++state_[KeyOf(stream)].submitted; }
  // Completes all work of the stream, regardless of its waits.
  void Complete(const Stream& stream) {
    State& state = state_[KeyOf(stream)];
    state.done = state.submitted;
  }
  int waits() const { return waits_; }

  StreamPoint Last(const Stream& stream) const override {
    const auto found = state_.find(KeyOf(stream));
    const std::uint64_t count =
        found == state_.end() ? 0 : found->second.submitted;
    return {stream.device, stream.uid, count};
  }
  bool IsBefore(const StreamPoint& point, const Stream& stream) const override {
    if (KeyOf(point) == KeyOf(stream)) return true;
    const auto found = state_.find(KeyOf(stream));
    if (found == state_.end()) return false;
    const auto after = found->second.after.find(KeyOf(point));
    return after != found->second.after.end() && after->second >= point.count;
  }
  bool IsDone(const StreamPoint& point) const override {
    const auto found = state_.find(KeyOf(point));
    return found == state_.end() ? point.count == 0
                                 : point.count <= found->second.done;
  }
  void Wait(const Stream& stream, const StreamPoint& point) override {
    ++waits_;
    std::uint64_t& count = state_[KeyOf(stream)].after[KeyOf(point)];
    count = std::max(count, point.count);
  }

 private:
  using Key = std::pair<std::int32_t, std::uint64_t>;
  struct State {
    std::uint64_t submitted = 0;
    std::uint64_t done = 0;
    std::map<Key, std::uint64_t> after;
  };

  static Key KeyOf(const Stream& stream) { return {stream.device, stream.uid}; }
  static Key KeyOf(const StreamPoint& point) {
    return {point.device, point.stream_uid};
  }

  std::map<Key, State> state_;
  int waits_ = 0;
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_PLATFORM_SIM_POOLS_FAKE_STREAM_ORDER_H_
