#ifndef STRATA_TOOLS_TERMINAL_INTERRUPT_H_
#define STRATA_TOOLS_TERMINAL_INTERRUPT_H_

#include <csignal>
#include <exception>

namespace strata::tools {

// The user interrupted the command (Ctrl-C).
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// During its lifetime, the first SIGINT is noted and the second ends the
// process. A process that ignores SIGINT, as in the background, still ignores
// it.
//
// Threads: one object at a time.
class InterruptScope {
 public:
  InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  ~InterruptScope();

 private:
  struct sigaction before_ = {};
};

// Throws Interrupted if a SIGINT was noted. Call it regularly during long work.
void CheckInterrupt();

}  // namespace strata::tools

#endif  // STRATA_TOOLS_TERMINAL_INTERRUPT_H_
