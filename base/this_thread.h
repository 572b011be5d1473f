#ifndef STRATA_BASE_THIS_THREAD_H_
#define STRATA_BASE_THIS_THREAD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/base/require_cxx20.h"

namespace strata {

class ThreadEnd;

// The thread-local state that a hit reads, in one object: a function that reads
// several members computes one address.
//
// Model: the layer named beside a member defines its meaning. The object has no
//   destructor, so that threads may use it until they end, and a library with
//   it can be unloaded.
// Cost: the general model of thread-local storage. In a program it costs two
//   instructions. In a shared library it costs a call of the C library, unless
//   the compiler has descriptors (StrataLayers.cmake). So any number of
//   libraries with Strata in them can be loaded at run time.
struct ThreadState {
  // The facade's last routes, one for each kind of request (front_table.h).
  alignas(8) std::byte routes[120]{};
  // The slot of the thread as an owner of locks; null: none (biased_lock.h).
  void* lock_slot = nullptr;
  // Places at which the thread is counted, as bits (thread_census.h).
  std::atomic<std::uint64_t> counted_places{0};
  // Number of held locks that count themselves (spin_lock.h).
  int held_words = 0;
  // First of the calls at the end of the thread (thread_end.h).
  ThreadEnd* ends = nullptr;
};

extern thread_local constinit ThreadState t_this_thread;

// Computes the address once. Compilers would compute the address of a
// thread-local object again at each use.
inline ThreadState& ThisThread() noexcept {
  ThreadState* self = &t_this_thread;
  asm("" : "+r"(self));
  return *self;
}

}  // namespace strata

#endif  // STRATA_BASE_THIS_THREAD_H_
