#ifndef STRATA_PLATFORM_CHECK_HAPPENS_BEFORE_H_
#define STRATA_PLATFORM_CHECK_HAPPENS_BEFORE_H_

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "strata/platform/check/order_clock.h"

namespace strata::check {

// The order of operations by the rules of streams, events and threads alone.
// Each of them has a clock, which the ordering calls advance.
//
// Model: cuda_semantics.md R1-R5. An operation completes before another one
//   starts if the clock of the other's stream covers its epoch after the other
//   was submitted. Work in a stream starts after the creation of the stream, so
//   after all work that the creator had waited for. A stream that was neither
//   created nor wrapped, for example a per-thread stream, is a blocking stream.
// Threads: externally synchronised.
// Cost: linear in the number of live streams; quadratic for the legacy stream
//   and for a wait for a device. A later stream reuses the component of a
//   destroyed stream once its creator has waited for all work of that stream.
// Source: cuda_semantics.md §5.1, §5.4.
class HappensBefore {
 public:
  struct StreamName {
    std::int32_t device = 0;
    std::uint64_t uid = 0;
  };

  // `thread` creates the stream. The work in it comes after the work that
  // `thread` has waited for.
  void CreateStream(const StreamName& stream, bool blocking,
                    std::uint64_t thread);
  // Adds a stream that was created elsewhere. Does nothing if the stream is
  // known.
  void WrapStream(const StreamName& stream, bool blocking);
  // The work of the stream continues. A wait for the device still covers it.
  void DestroyStream(const StreamName& stream);

  // Adds an operation that `thread` submits to `stream`.
  Epoch Submit(const StreamName& stream, std::uint64_t thread);
  // The latest operation of the stream; count 0 if there is none.
  Epoch Last(const StreamName& stream);
  // The latest operation of the stream that the event covers; count 0 if there
  // is none.
  Epoch LastBefore(std::uint64_t event, const StreamName& stream);
  // The operations that complete before the end of the stream's latest
  // operation, and that operation.
  const OrderClock& OfStream(const StreamName& stream);
  // The clock of an operation that `thread` would submit now.
  OrderClock BeforeNext(const StreamName& stream, std::uint64_t thread);
  // The operations that `thread` has waited for.
  const OrderClock& OfThread(std::uint64_t thread);

  // The event covers the operations of `stream` so far, and the operations
  // that `thread` has waited for.
  void Record(std::uint64_t event, const StreamName& stream,
              std::uint64_t thread);
  // The event covers the operations in `clock`.
  void Record(std::uint64_t event, OrderClock clock);
  // Later operations of `stream` come after the operations that the event
  // covers. `thread` submits the wait.
  void Wait(const StreamName& stream, std::uint64_t event,
            std::uint64_t thread);
  // Adds the operations that the event covers to `clock`.
  void JoinEvent(std::uint64_t event, OrderClock* clock) const;
  // The event is destroyed: no later wait refers to it.
  void ForgetEvent(std::uint64_t event) { events_.erase(event); }
  // Later operations of `stream` come after `clock`.
  void Order(const StreamName& stream, const OrderClock& clock);

  // `thread` has waited for the work to complete.
  void AwaitStream(const StreamName& stream, std::uint64_t thread);
  void AwaitEvent(std::uint64_t event, std::uint64_t thread);
  void AwaitDevice(std::int32_t device, std::uint64_t thread);

  // The earlier actions of the releasing thread come before the actions of
  // threads that acquire the tag later.
  void Release(std::uint64_t tag, std::uint64_t thread);
  void Acquire(std::uint64_t tag, std::uint64_t thread);
  // The tag that orders the actions of a device's allocators under their locks
  // (R5). No program uses tags this high.
  static std::uint64_t TagOf(std::int32_t device) {
    return ~static_cast<std::uint64_t>(device);
  }

 private:
  struct Thread {
    OrderClock clock;
    std::uint64_t version = 1;  // increases with each change of `clock`
  };
  struct Stream {
    StreamName name;
    bool blocking = true;
    std::uint32_t component = 0;
    std::uint64_t count = 0;  // operations of the component
    std::uint64_t first = 0;  // number of these that belong to a former stream
    OrderClock clock;
    // The thread that submitted last, and the version of its clock at that
    // time.
    std::uint64_t thread = 0;
    std::uint64_t thread_version = 0;
  };
  // The component of a destroyed stream, after its last operation.
  struct Idle {
    std::uint32_t component;
    std::uint64_t count;
  };
  // The clocks of the destroyed streams of a device.
  struct Retired {
    OrderClock all;
    OrderClock blocking;
  };

  static bool IsLegacy(const StreamName& stream);
  // Key in streams_; unlike the uid, it differs for the legacy streams of two
  // devices.
  static std::uint64_t KeyOf(const StreamName& stream);
  // The stream; added as a blocking stream if it is unknown.
  Stream& Find(const StreamName& stream);
  // Adds the stream to the component of `idle`, after its last operation.
  Stream& Add(const StreamName& stream, bool blocking, const Idle& idle);
  // Removes a component from idle_ whose work `creator` covers; else returns a
  // new component.
  Idle TakeComponent(const OrderClock& creator);
  // Adds the operations in `clock` to the operations that the thread has waited
  // for.
  void JoinThread(Thread& thread, const OrderClock& clock);
  // Applies the order that every submission implies.
  void Enter(Stream& stream, std::uint64_t thread);
  // The legacy stream waits for the blocking streams, and their later work
  // waits for it. A wait for a blocking stream does not cover the legacy
  // stream.
  void JoinLegacyRule(const Stream& stream, OrderClock* clock);
  // Adds the operations of all blocking streams of the device, of destroyed
  // ones too.
  void JoinBlocking(std::int32_t device, OrderClock* clock);

  std::unordered_map<std::uint64_t, Stream> streams_;
  std::unordered_map<std::uint64_t, Thread> threads_;
  std::unordered_map<std::uint64_t, OrderClock> events_;
  std::unordered_map<std::uint64_t, OrderClock> tags_;
  std::unordered_map<std::int32_t, Retired> retired_;
  std::deque<Idle> idle_;
  std::uint32_t components_ = 0;
};

}  // namespace strata::check

#endif  // STRATA_PLATFORM_CHECK_HAPPENS_BEFORE_H_
