#ifndef STRATA_ALLOCATION_STREAMS_CAPTURE_GATE_H_
#define STRATA_ALLOCATION_STREAMS_CAPTURE_GATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "strata/platform/device.h"
#include "strata/platform/stream.h"

namespace strata {

// Counts the announced captures and says which operations they permit.
//
// Model: one count, shared by all chains of a facade. While it is 0, no device
//   is asked about captures.
// Threads: any thread. Call Announce() before the capture begins, and
//   Withdraw() after its end.
// Cost: one load while no capture is announced.
// Source: cuda_semantics.md C16-C21, K4.
class CaptureGate {
 public:
  class Postponable;   // an object whose end can wait for captures
  class RelaxedScope;  // permits calls of the thread during captures
  class CallScope;     // surrounds a call that captures may forbid

  // Prevents the announcement of captures during its lifetime: Announce()
  // waits. False if a capture is announced already and the thread holds no
  // other Calm. Use it for internal work in streams that other threads may want
  // to capture.
  class Calm {
   public:
    explicit Calm(const CaptureGate& gate) noexcept;
    Calm(const Calm&) = delete;
    Calm& operator=(const Calm&) = delete;
    ~Calm();
    explicit operator bool() const noexcept { return is_calm_; }

   private:
    static thread_local const Calm* innermost_;

    const CaptureGate& gate_;
    const Calm* const outer_;  // previous Calm of this thread
    bool is_calm_ = false;
  };
  // Permits recording events on a stream, waiting for it or querying it during
  // its lifetime. True if MayTouch(), or if no capture was announced; then none
  // is announced during its lifetime.
  class Touch {
   public:
    Touch(const CaptureGate& gate, Device& device,
          const Stream& stream) noexcept
        : calm_(gate), is_allowed_(calm_ || gate.MayTouch(device, stream)) {}
    explicit operator bool() const noexcept { return is_allowed_; }

   private:
    const Calm calm_;
    const bool is_allowed_;
  };

  // Waits until every Calm is destroyed. Never call it while the thread holds
  // one.
  void Announce() noexcept;
  void Withdraw() noexcept {
    --announced_;
    --attention_;
  }
  bool any() const noexcept {
    return announced_.load(std::memory_order_acquire) != 0;
  }
  // Counter that is not 0 while any(). Other code may also increment it for
  // states that calls must check.
  std::atomic<std::uint32_t>& attention() noexcept { return attention_; }

  // True if work submitted to `stream` becomes part of a capture. One device
  // call if any(). If that call fails, the result is true.
  bool IsCapturing(Device& device, const Stream& stream) const noexcept;
  // True if recording an event on `stream`, waiting for it or querying it does
  // not disturb a capture. False for the legacy stream during any capture.
  bool MayTouch(Device& device, const Stream& stream) const noexcept;

  // Ends `what` at once if no capture is announced, else in EndPostponed().
  void EndLater(Postponable& what) noexcept;
  // Makes EndPostponed() try again to end `what`. False, and nothing is done,
  // after Close().
  bool Postpone(Postponable& what) noexcept;
  // Does nothing while a capture is announced.
  void EndPostponed() noexcept;
  // Announces that the next call of EndPostponed() is the last.
  void Close() noexcept { is_closed_ = true; }
  std::size_t postponed() const noexcept { return postponed_count_; }

 private:
  void Push(Postponable& what) noexcept;

  std::atomic<std::uint32_t> announced_{0};
  std::atomic<std::uint32_t> attention_{0};
  mutable std::atomic<std::uint32_t> calms_{0};  // number that exist
  std::atomic<Postponable*> postponed_{nullptr};
  std::atomic<std::size_t> postponed_count_{0};
  std::atomic<bool> is_closed_{false};
};

// An object that releases memory to the system at its end. The end can be
// postponed: until captures are over, or while a device cannot confirm that its
// work is complete.
class CaptureGate::Postponable {
 public:
  Postponable() = default;
  Postponable(const Postponable&) = delete;
  Postponable& operator=(const Postponable&) = delete;

 protected:
  ~Postponable() = default;

 private:
  friend class CaptureGate;
  // Ends the object, which may be destroyed on return.
  virtual void End() noexcept = 0;

  Postponable* next_ = nullptr;
};

// Permits the calling thread to allocate, free and query events during
// captures. Otherwise CUDA refuses such calls and ends captures.
//
// Model: sets the thread's capture mode to relaxed during its lifetime, if
//   captures were announced when it was created.
// Errors: false if the device refused the mode; then do not make such calls. A
//   device without captures needs no mode.
// Source: cuda_semantics.md C17, C18.
class CaptureGate::RelaxedScope {
 public:
  // `device` null: does nothing.
  RelaxedScope(const CaptureGate& gate, Device* device) noexcept {
    if (device != nullptr && gate.any()) Enter(*device);
  }
  // Sets the mode even if no capture is announced.
  explicit RelaxedScope(Device& device) noexcept { Enter(device); }
  RelaxedScope(const RelaxedScope&) = delete;
  RelaxedScope& operator=(const RelaxedScope&) = delete;
  ~RelaxedScope() {
    if (device_ != nullptr) Leave();
  }
  explicit operator bool() const noexcept { return !is_refused_; }

 private:
  void Enter(Device& device) noexcept;
  void Leave() noexcept;

  Device* device_ = nullptr;  // null: the mode was not changed
  bool is_refused_ = false;   // the device refused the mode
  CaptureMode previous_ = CaptureMode::kGlobal;
};

// Surrounds a call that captures of other threads may forbid. Either no capture
// is announced during its lifetime, or the thread's mode is relaxed. False if
// both fail; then do not make the call.
//
// Cost: two atomic additions; two device calls while a capture is announced.
class CaptureGate::CallScope {
 public:
  // `gate` null: does nothing.
  CallScope(const CaptureGate* gate, Device& device) noexcept {
    if (gate == nullptr) return;
    calm_.emplace(*gate);
    if (!*calm_) relaxed_.emplace(device);
  }
  explicit operator bool() const noexcept { return !relaxed_ || *relaxed_; }

 private:
  std::optional<Calm> calm_;
  std::optional<RelaxedScope> relaxed_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_CAPTURE_GATE_H_
