#ifndef STRATA_PLATFORM_CHECK_HAPPENS_BEFORE_H_
#define STRATA_PLATFORM_CHECK_HAPPENS_BEFORE_H_

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "strata/platform/check/order_clock.h"

namespace strata {

// What comes before what, by the rules of streams, events and threads alone:
// clocks of each, moved by the calls that order them.
//
// Model: cuda_semantics.md R1-R5. An operation completes before another starts
//   if the clock of the other's stream, after it was submitted, covers its
//   epoch. Work in a stream starts after the stream was created, and so after
//   all that its creator had waited for. A stream that was neither created nor
//   wrapped, as those of threads, is a blocking one.
// Threads: externally synchronised.
// Cost: linear in the streams that live at a time; squared for the legacy
//   stream and for a wait for a device. A stream's component goes to a later
//   stream once the creator of that has seen all work of the former.
// Source: cuda_semantics.md §5.1, §5.4.
class HappensBefore {
 public:
  struct StreamName {
    std::int32_t device = 0;
    std::uint64_t uid = 0;
  };

  void CreateStream(const StreamName& stream, bool blocking,
                    std::uint64_t thread);
  // One that somebody else created; nothing if it is known.
  void WrapStream(const StreamName& stream, bool blocking);
  // Its work goes on, and is part of what a wait for the device covers.
  void DestroyStream(const StreamName& stream);

  // An operation that `thread` submits to `stream`.
  Epoch Submit(const StreamName& stream, std::uint64_t thread);
  // The stream's latest operation; a count of 0 if there is none.
  Epoch Last(const StreamName& stream);
  // Its latest that the event stands for; the same.
  Epoch LastBefore(std::uint64_t event, const StreamName& stream);
  // What comes before the end of the stream's latest operation, and that
  // itself.
  const OrderClock& OfStream(const StreamName& stream);
  // What would come before an operation that `thread` submitted now.
  OrderClock BeforeNext(const StreamName& stream, std::uint64_t thread);
  const OrderClock& OfThread(std::uint64_t thread);

  void Record(std::uint64_t event, const StreamName& stream,
              std::uint64_t thread);
  // The event stands for what `clock` covers.
  void Record(std::uint64_t event, OrderClock clock);
  void Wait(const StreamName& stream, std::uint64_t event,
            std::uint64_t thread);
  // `clock` covers what the event stands for, too.
  void JoinEvent(std::uint64_t event, OrderClock* clock) const;
  void ForgetEvent(std::uint64_t event) { events_.erase(event); }
  // What is submitted to `stream` from now on comes after `clock`.
  void Order(const StreamName& stream, const OrderClock& clock);

  // `thread` has seen the work done.
  void AwaitStream(const StreamName& stream, std::uint64_t thread);
  void AwaitEvent(std::uint64_t event, std::uint64_t thread);
  void AwaitDevice(std::int32_t device, std::uint64_t thread);

  // What `thread` did comes before what others do after they acquire the tag.
  void Release(std::uint64_t tag, std::uint64_t thread);
  void Acquire(std::uint64_t tag, std::uint64_t thread);
  // The tag of what allocators of a device do under their locks (R5).
  void ReleaseDevice(std::int32_t device, std::uint64_t thread);
  void AcquireDevice(std::int32_t device, std::uint64_t thread);

 private:
  struct Thread {
    OrderClock clock;
    std::uint64_t version = 1;  // of the clock
  };
  struct Stream {
    StreamName name;
    bool blocking = true;
    std::uint32_t component = 0;
    std::uint64_t count = 0;  // operations of the component
    std::uint64_t first = 0;  // how many of them are a former stream's
    OrderClock clock;
    // The thread that submitted last, and the version of its clock then.
    std::uint64_t thread = 0;
    std::uint64_t thread_version = 0;
  };
  // The component of a destroyed stream, after its last operation.
  struct Idle {
    std::uint32_t component;
    std::uint64_t count;
  };
  // What destroyed streams of a device have left.
  struct Retired {
    OrderClock all;
    OrderClock blocking;
  };

  static bool IsLegacy(const StreamName& stream);
  static std::uint64_t KeyOf(const StreamName& stream);
  Stream& Find(const StreamName& stream);
  Stream& Add(const StreamName& stream, bool blocking, const Idle& place);
  Idle TakePlace(const OrderClock& creator);
  void JoinThread(Thread& thread, const OrderClock& clock);
  // The order that every submission brings with it.
  void Enter(Stream& stream, std::uint64_t thread);
  // The legacy stream waits for blocking ones, and their next work for it. A
  // wait for a blocking stream is none for the legacy one.
  void JoinLegacyRule(const Stream& stream, OrderClock* clock);
  void JoinBlocking(std::int32_t device, OrderClock* clock);

  std::unordered_map<std::uint64_t, Stream> streams_;
  std::unordered_map<std::uint64_t, Thread> threads_;
  std::unordered_map<std::uint64_t, OrderClock> events_;
  std::unordered_map<std::uint64_t, OrderClock> tags_;
  std::unordered_map<std::int32_t, OrderClock> device_tags_;
  std::unordered_map<std::int32_t, Retired> retired_;
  std::deque<Idle> idle_;
  std::uint32_t components_ = 0;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_CHECK_HAPPENS_BEFORE_H_
