#ifndef STRATA_BASE_THREAD_END_H_
#define STRATA_BASE_THREAD_END_H_

#include <cstdint>

#include "strata/base/require_cxx20.h"

namespace strata {

// A function to call when the calling thread ends. In place of destructors of
// thread-local objects, which keep a shared library loaded until every thread
// that made such an object has ended.
//
// Model: a thread-local object without destructor. The calls come after the
//   destructors of thread-local objects, the last added first. There are no
//   calls for a thread that ends after the library was unloaded, and none for
//   the thread that ends the process.
// Threads: each thread uses its own object.
class ThreadEnd {
 public:
  constexpr explicit ThreadEnd(void (*call)() noexcept) : call_(call) {}
  ThreadEnd(const ThreadEnd&) = delete;
  ThreadEnd& operator=(const ThreadEnd&) = delete;
  ~ThreadEnd() = default;

  // Returns true if the function will be called, also if an earlier call added
  // it. Returns false after the function was called, or if the C library has no
  // memory.
  //
  // Cost: the first call of a thread may allocate memory of the C library.
  bool Add() noexcept;
  // True from Add until the function has returned.
  bool is_pending() const noexcept { return state_ == State::kPending; }
  // True once the function has returned.
  bool is_over() const noexcept { return state_ == State::kOver; }

 private:
  enum class State : std::uint8_t { kIdle, kPending, kOver };
  class Key;

  static void CallAll(void* thread) noexcept;

  void (*const call_)() noexcept;
  ThreadEnd* next_ = nullptr;  // added before this one
  State state_ = State::kIdle;
};

}  // namespace strata

#endif  // STRATA_BASE_THREAD_END_H_
