#include "strata/tools/terminal/interrupt.h"

namespace strata::tools {
namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void NoteInterrupt(int /*signal*/) { interrupted = 1; }

}  // namespace

InterruptScope::InterruptScope() {
  interrupted = 0;
  sigaction(SIGINT, nullptr, &before_);
  if (before_.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = &NoteInterrupt;
  // Without SA_RESTART, SIGINT ends a read that waits for a pipe, and the note
  // is seen.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

InterruptScope::~InterruptScope() { sigaction(SIGINT, &before_, nullptr); }

void CheckInterrupt() {
  if (interrupted != 0) throw Interrupted();
}

}  // namespace strata::tools
