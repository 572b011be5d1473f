#ifndef STRATA_PLATFORM_PROCESS_BARRIER_H_
#define STRATA_PLATFORM_PROCESS_BARRIER_H_

#include "strata/platform/require_cxx20.h"

namespace strata {

// A full memory barrier in every thread of the process at once, paid for by the
// caller alone: the other threads need only keep their compiler from moving
// accesses. It stands for the one order that plain stores and loads lack, of a
// store before a later load.
//
// Model: Linux's membarrier(2), private and expedited. The process registers on
//   construction; where the kernel or a sandbox refuses, there is no barrier.
// Threads: any thread.
// Cost: Run is a system call that interrupts every core on which the process
//   runs, 39 us (hotpath.md §2).
class ProcessBarrier {
 public:
  // What membarrier(2) returns for `command`, or -1; for tests.
  using SystemCall = int (*)(int command);

  explicit ProcessBarrier(SystemCall call = &CallSystem);
  ProcessBarrier(const ProcessBarrier&) = delete;
  ProcessBarrier& operator=(const ProcessBarrier&) = delete;

  // The one of this process, registered when first asked for.
  static ProcessBarrier& Instance();

  bool is_available() const { return is_available_; }
  // Is available. On return every other thread has passed a full barrier since
  // the call began. Registers again if it has to, as in a process that was
  // forked; aborts if the system has no barrier any more, since who holds what
  // cannot be told then.
  void Run() noexcept;

 private:
  static int CallSystem(int command);
  // Whether the system lets this process use the barrier from now on.
  bool Register();

  const SystemCall call_;
  const bool is_available_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_PROCESS_BARRIER_H_
