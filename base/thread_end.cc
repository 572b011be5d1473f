#include "strata/base/thread_end.h"

#include <pthread.h>

#include <atomic>
#include <type_traits>
#include <utility>

#include "strata/base/this_thread.h"

namespace strata {

thread_local constinit ThreadState t_this_thread;

static_assert(std::is_trivially_destructible_v<ThreadState>);
static_assert(std::is_trivially_destructible_v<ThreadEnd>);

// The C library calls the destructor of this key at the end of a thread.
class ThreadEnd::Key {
 public:
  // The destructor runs when the library is unloaded, or the process ends.
  static Key& Instance() noexcept {
    static Key key;
    return key;
  }

  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
  ~Key() {
    if (is_made_.exchange(false)) pthread_key_delete(key_);
  }

  bool Set(void* value) noexcept {
    return is_made_.load() && pthread_setspecific(key_, value) == 0;
  }

 private:
  Key() noexcept
      : is_made_(pthread_key_create(
                     &key_, [](void* thread) { CallAll(thread); }) == 0) {}

  pthread_key_t key_{};
  std::atomic<bool> is_made_;
};

bool ThreadEnd::Add() noexcept {
  if (state_ != State::kIdle) return is_pending();
  ThreadState& thread = ThisThread();
  if (thread.ends == nullptr && !Key::Instance().Set(&thread)) return false;
  state_ = State::kPending;
  next_ = std::exchange(thread.ends, this);
  return true;
}

void ThreadEnd::CallAll(void* thread) noexcept {
  ThreadEnd*& ends = static_cast<ThreadState*>(thread)->ends;
  while (ends != nullptr) {
    ThreadEnd* const end = std::exchange(ends, ends->next_);
    end->call_();
    end->state_ = State::kOver;
  }
}

}  // namespace strata
