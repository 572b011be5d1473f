#include "strata/allocation/reclaim/call_gate.h"

namespace strata {

void CallGate::Close() {
  Shut();
  for (int inside = inside_.load(); inside != 0; inside = inside_.load()) {
    inside_.wait(inside);
  }
}

void CallGate::WakeClosing() { inside_.notify_all(); }

}  // namespace strata
