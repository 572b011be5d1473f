#ifndef STRATA_FACADE_THREAD_ENDS_H_
#define STRATA_FACADE_THREAD_ENDS_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "strata/allocation/call_gate.h"
#include "strata/platform/stream.h"

namespace strata {

// Tells a facade which per-thread default streams end: nobody destroys them,
// they go with their threads.
//
// Model: a thread keeps a note of each of its streams that is watched, and its
//   end calls back for each of them, in that thread, which is the only one that
//   may still give the stream work. A facade that is gone is not called.
// Threads: any thread. Close not from inside a call back.
// Cost: of a thread that has a stream watched, one search of its notes; no
//   other thread pays anything.
class ThreadEnds : public std::enable_shared_from_this<ThreadEnds> {
 public:
  // What `ended` throws is logged.
  explicit ThreadEnds(std::function<void(const Stream&)> ended)
      : ended_(std::move(ended)) {}

  // `stream` is the calling thread's own. Once is enough; again does nothing,
  // and neither does a destructor's call after the thread has told.
  //
  // Errors: std::bad_alloc; then nothing is done.
  void Watch(const Stream& stream);
  // Waits for calls back that have begun; none begins after this returns.
  void Close() noexcept { gate_.Close(); }

 private:
  class Notes;

  void Tell(const Stream& stream) noexcept;

  const std::function<void(const Stream&)> ended_;
  CallGate gate_;
};

}  // namespace strata

#endif  // STRATA_FACADE_THREAD_ENDS_H_
