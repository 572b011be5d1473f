#ifndef STRATA_TESTS_TESTING_EXPLORE_EXPLORED_ORDER_H_
#define STRATA_TESTS_TESTING_EXPLORE_EXPLORED_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "strata/platform/calls/call_record.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/stream.h"

namespace strata {

// The happens-before order of the work of a simulated device, derived from its
// calls: positions in streams, and the positions of other streams and of the
// host behind them.
//
// Model: a position is the number of pieces of work submitted to a stream. The
//   streams passed to the constructor come first, in that order; streams
//   created later follow. A capturing stream submits no work: report it with
//   SetCapturing().
// Threads: one.
// Lifetime: the platform must outlive it. It is an observer of device 0.
// Source: cuda_semantics.md §5.1, §5.4.
class ExploredOrder {
 public:
  using Position = std::uint64_t;
  using Clock = std::vector<Position>;  // by stream; missing entries are 0

  struct Point {
    std::size_t stream = 0;
    Position position = 0;
  };
  struct Recorded {
    Point at;
    Clock before;       // other work that the event covers
    bool seen = false;  // the host knows that it is complete
  };
  struct Wait {
    Position position = 0;  // work submitted before the wait
    Point target;
  };

  ExploredOrder(SimPlatform* platform, std::vector<Stream> streams);
  ExploredOrder(const ExploredOrder&) = delete;
  ExploredOrder& operator=(const ExploredOrder&) = delete;
  ~ExploredOrder();

  std::size_t stream_count() const { return streams_.size(); }
  const Stream& stream(std::size_t index) const { return streams_[index]; }
  void SetCapturing(std::size_t stream, bool capturing);

  Position Submitted(std::size_t stream) const;
  Position Completed(std::size_t stream) const;
  // The last position of `of` that precedes the next work of `stream`.
  Position Before(std::size_t stream, std::size_t of) const;
  // The last position of the stream that the host has seen complete.
  Position Seen(std::size_t stream) const { return At(host_, stream); }
  static Position At(const Clock& clock, std::size_t stream) {
    return stream < clock.size() ? clock[stream] : 0;
  }

  static void Join(Clock& clock, const Clock& other);

  // The work that each event covers, for events that are recorded and not
  // destroyed.
  const std::map<std::uint64_t, Recorded>& events() const { return events_; }
  // `event` was recorded on a stream that does not capture.
  const Recorded& recorded(Event event) const {
    return events_.at(reinterpret_cast<std::uintptr_t>(event.value));
  }
  const std::vector<Wait>& waits(std::size_t stream) const {
    return waits_[stream];
  }

 private:
  void Observe(const CallRecord& call);
  void ObserveDone(const CallRecord& call);
  void Record(std::uint64_t event, std::size_t stream);
  void WaitFor(std::uint64_t event, std::size_t stream);
  void SeeEvent(std::uint64_t event);
  void SeeStream(std::size_t stream);
  std::size_t IndexOf(std::uint64_t uid) const;
  static void Raise(Clock& clock, std::size_t stream, Position position);

  SimPlatform* const platform_;
  std::vector<Stream> streams_;
  std::vector<bool> capturing_;
  std::vector<Clock> clocks_;
  std::vector<std::vector<Wait>> waits_;
  Clock host_;
  std::map<std::uint64_t, Recorded> events_;
  mutable Clock completed_;  // lower bounds
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_EXPLORE_EXPLORED_ORDER_H_
