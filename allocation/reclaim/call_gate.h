#ifndef STRATA_ALLOCATION_RECLAIM_CALL_GATE_H_
#define STRATA_ALLOCATION_RECLAIM_CALL_GATE_H_

#include <atomic>

#include "strata/base/require_cxx20.h"

namespace strata {

// Lets calls into an object pass until the object is destroyed. The destruction
// waits for the calls inside. Not a lock: calls run concurrently, and a call
// inside may enter again.
//
// Threads: any thread. A call that is inside must use Shut(), because Close()
//   would wait for the call itself.
class CallGate {
 public:
  // Holds the gate open for one call.
  class Pass {
   public:
    explicit Pass(CallGate& gate) : gate_(gate), entered_(gate.Enter()) {}
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() {
      if (entered_) gate_.Leave();
    }
    explicit operator bool() const { return entered_; }

   private:
    CallGate& gate_;
    const bool entered_;
  };

  bool is_closed() const { return closed_.load(); }
  // Closes the gate: after this returns, no call enters.
  void Shut() { closed_.store(true); }
  // Closes the gate and waits: after this returns, no call enters and none is
  // inside.
  void Close();

 private:
  bool Enter() {
    inside_.fetch_add(1);
    if (!closed_.load()) return true;
    Leave();
    return false;
  }
  void Leave() {
    inside_.fetch_sub(1);
    if (closed_.load()) WakeClosing();
  }

  // Wakes the calls of Close(). Not inline: the standard library notes waiting
  // threads per shared library, so one library has to wait and to wake.
  void WakeClosing();

  std::atomic<int> inside_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_RECLAIM_CALL_GATE_H_
