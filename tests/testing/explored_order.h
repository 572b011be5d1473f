#ifndef STRATA_TESTS_TESTING_EXPLORED_ORDER_H_
#define STRATA_TESTS_TESTING_EXPLORED_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "strata/platform/call_record.h"
#include "strata/platform/sim/sim_platform.h"
#include "strata/platform/stream.h"

namespace strata {

// What happens before what in the streams of a simulated device, as its calls
// tell: positions in streams, and which the others, and the host, come after.
//
// Model: a position is the number of pieces of work submitted to a stream. The
//   streams it is made with come first, in that order; those that are created
//   later follow. Streams that capture submit nothing: tell of them.
// Threads: one.
// Lifetime: of the platform; it is an observer of device 0.
// Source: cuda_semantics.md §5.1, §5.4.
class ExploredOrder {
 public:
  using Position = std::uint64_t;
  using Clock = std::vector<Position>;  // by stream; missing ones are 0

  struct Point {
    std::size_t stream = 0;
    Position position = 0;
  };
  struct Recorded {
    Point at;
    Clock before;       // what an event stands for besides that
    bool seen = false;  // the host knows that it is complete
  };
  struct Wait {
    Position position = 0;  // what was submitted before it
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
  // Up to where work in `of` comes before what is submitted to `stream` next.
  Position Before(std::size_t stream, std::size_t of) const;
  // Up to where the host has seen the work of a stream to be done.
  Position Seen(std::size_t stream) const { return At(host_, stream); }
  static Position At(const Clock& clock, std::size_t stream) {
    return stream < clock.size() ? clock[stream] : 0;
  }

  static void Join(Clock& clock, const Clock& other);

  // What each event stands for that was recorded and not destroyed.
  const std::map<std::uint64_t, Recorded>& events() const { return events_; }
  // Of an event that was recorded on a stream that does not capture.
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
  mutable Clock completed_;  // at least
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_EXPLORED_ORDER_H_
