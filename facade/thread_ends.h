#ifndef STRATA_FACADE_THREAD_ENDS_H_
#define STRATA_FACADE_THREAD_ENDS_H_

#include <functional>
#include <memory>

#include "strata/allocation/reclaim/call_gate.h"
#include "strata/platform/stream.h"

namespace strata {

// Notifies a facade when a per-thread default stream ends: no call destroys it,
// it ends with its thread.
//
// Model: a thread holds a note of each of its watched streams. At its end it
//   calls back for each of them, in that thread, because no other thread may
//   submit work to the stream. A facade that was destroyed is not called.
// Threads: any thread. Do not call Close from inside a callback.
// Cost: one search of the notes of a thread with a watched stream. Other
//   threads have no cost.
class ThreadEnds : public std::enable_shared_from_this<ThreadEnds> {
 public:
  // Exceptions of `ended` are logged.
  explicit ThreadEnds(std::function<void(const Stream&)> ended)
      : ended_(std::move(ended)) {}

  // `stream` is the calling thread's own. Repeated calls do nothing. A call
  // from a destructor, after the thread has notified the facades, does nothing
  // either.
  //
  // Errors: std::bad_alloc; then nothing is done.
  void Watch(const Stream& stream);
  // Waits for callbacks that have begun. None begins after this returns.
  void Close() noexcept { gate_.Close(); }

 private:
  // Calls back for each watched stream of the calling thread.
  static void TellAll() noexcept;
  void Tell(const Stream& stream) noexcept;

  const std::function<void(const Stream&)> ended_;
  CallGate gate_;
};

}  // namespace strata

#endif  // STRATA_FACADE_THREAD_ENDS_H_
