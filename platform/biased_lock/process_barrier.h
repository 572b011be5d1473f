#ifndef STRATA_PLATFORM_BIASED_LOCK_PROCESS_BARRIER_H_
#define STRATA_PLATFORM_BIASED_LOCK_PROCESS_BARRIER_H_

#include "strata/base/require_cxx20.h"

namespace strata {

// A full memory barrier in every thread of the process at once. Only the caller
// pays for it: the other threads only prevent their compiler from moving
// accesses. It replaces the one order that plain stores and loads lack: a store
// before a later load.
//
// Model: Linux's membarrier(2), private and expedited. The constructor
//   registers the process. There is no barrier where the kernel or a sandbox
//   refuses that.
// Threads: any thread.
// Cost: Run is a system call that interrupts every core on which the process
//   runs, 39 us (hotpath.md §2).
class ProcessBarrier {
 public:
  // Returns the result of membarrier(2) for `command`, or -1. Tests pass
  // another one.
  using SystemCall = int (*)(int command);

  explicit ProcessBarrier(SystemCall call = &CallSystem);
  ProcessBarrier(const ProcessBarrier&) = delete;
  ProcessBarrier& operator=(const ProcessBarrier&) = delete;

  // The barrier of this process, registered at the first call.
  static ProcessBarrier& Instance();

  bool is_available() const { return is_available_; }
  // Requires is_available(). On return every other thread has passed a full
  // barrier since the call began. Registers again if needed, as in a forked
  // process. Aborts if the system no longer offers the barrier, because the
  // holders of biased locks are then unknown.
  void Run() noexcept;

 private:
  static int CallSystem(int command);
  // Returns true if the system lets this process use the barrier from now on.
  bool Register();

  const SystemCall call_;
  const bool is_available_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_BIASED_LOCK_PROCESS_BARRIER_H_
