#include "strata/platform/biased_lock/process_barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace strata {

ProcessBarrier::ProcessBarrier(SystemCall call)
    : call_(call), is_available_(Register()) {}

ProcessBarrier& ProcessBarrier::Instance() {
  // Never destroyed: locks of static objects may still need it.
  static ProcessBarrier* const barrier = new ProcessBarrier;
  return *barrier;
}

void ProcessBarrier::Run() noexcept {
  if (call_(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
  if (Register() && call_(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
  // Slow, but works without registration.
  if (call_(MEMBARRIER_CMD_GLOBAL) == 0) return;
  std::fputs(
      "strata: the system takes membarrier away from this process, with biased "
      "locks in use\n",
      stderr);
  std::abort();
}

int ProcessBarrier::CallSystem(int command) {
  return static_cast<int>(syscall(SYS_membarrier, command, 0, 0));
}

bool ProcessBarrier::Register() {
  const int commands = call_(MEMBARRIER_CMD_QUERY);
  return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
         call_(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

}  // namespace strata
