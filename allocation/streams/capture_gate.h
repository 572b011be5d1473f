#ifndef STRATA_ALLOCATION_STREAMS_CAPTURE_GATE_H_
#define STRATA_ALLOCATION_STREAMS_CAPTURE_GATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "strata/platform/device.h"
#include "strata/platform/stream.h"

namespace strata {

// Something whose end gives memory to the system, and which can wait with that:
// for captures to be over, or for a device that does not say that it is done.
class Postponable {
 public:
  Postponable() = default;
  Postponable(const Postponable&) = delete;
  Postponable& operator=(const Postponable&) = delete;

 protected:
  ~Postponable() = default;

 private:
  friend class CaptureGate;
  // Ends it; it may be gone on return.
  virtual void End() noexcept = 0;

  Postponable* next_ = nullptr;
};

// Whether captures were announced, and what allocators may do meanwhile.
//
// Model: a count of announced captures, shared by all chains of a facade. As
//   long as it is 0 nobody asks a device about captures.
// Threads: any thread. Announce before the capture begins, Withdraw after its
//   end.
// Cost: one load while nothing is announced.
// Source: cuda_semantics.md C16-C21, K4.
class CaptureGate {
 public:
  // Keeps captures from being announced for as long as it lives: Announce
  // waits. False if one is announced already, and the thread has no Calm yet.
  // For work of one's own in streams that others may want to capture.
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
    const Calm* const outer_;  // of this thread
    bool is_calm_ = false;
  };
  // Leave to record events on a stream, to wait for it or to ask it, for as
  // long as it lives: MayTouch, and nobody announces a capture meanwhile if
  // none was announced before.
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

  // Announce waits for those that have a Calm; never call it with one.
  void Announce() noexcept;
  void Withdraw() noexcept {
    --announced_;
    --attention_;
  }
  bool any() const noexcept {
    return announced_.load(std::memory_order_acquire) != 0;
  }
  // Not 0 while any(), and while others count something here that calls have to
  // look out for.
  std::atomic<std::uint32_t>& attention() noexcept { return attention_; }

  // Whether work submitted to `stream` becomes part of a capture. One device
  // call if any(); a device that cannot tell is taken to be capturing.
  bool IsCapturing(Device& device, const Stream& stream) const noexcept;
  // Whether recording an event on `stream`, waiting for it or asking it harms
  // no capture. The legacy stream has to be left alone during any.
  bool MayTouch(Device& device, const Stream& stream) const noexcept;

  // Ends `what` once no capture is announced: now, and nothing that others have
  // postponed, or in EndPostponed.
  void EndLater(Postponable& what) noexcept;
  // `what` was to end, and could not: EndPostponed tries again. False, and
  // nothing is done, after Close.
  bool Postpone(Postponable& what) noexcept;
  // Nothing while a capture is announced.
  void EndPostponed() noexcept;
  // Nobody calls EndPostponed again after the last time, which is to come.
  void Close() noexcept { is_closed_ = true; }
  // How many wait to end.
  std::size_t postponed() const noexcept { return postponed_count_; }

 private:
  void Push(Postponable& what) noexcept;

  std::atomic<std::uint32_t> announced_{0};
  std::atomic<std::uint32_t> attention_{0};
  mutable std::atomic<std::uint32_t> calms_{0};  // that live
  std::atomic<Postponable*> postponed_{nullptr};
  std::atomic<std::size_t> postponed_count_{0};
  std::atomic<bool> is_closed_{false};
};

// Lets the calling thread allocate, free and ask for events during captures:
// calls that CUDA refuses, ending captures, unless the thread says that it
// knows what it does.
//
// Model: the thread's capture mode is relaxed for as long as this object lives,
//   if captures were announced when it was made.
// Errors: false if the device refused the mode: then such calls are not to be
//   made. A device that does not know captures is left alone.
// Source: cuda_semantics.md C17, C18.
class RelaxedCaptureScope {
 public:
  // `device` null: does nothing.
  RelaxedCaptureScope(const CaptureGate& gate, Device* device) noexcept {
    if (device != nullptr && gate.any()) Enter(*device);
  }
  // Whatever was announced.
  explicit RelaxedCaptureScope(Device& device) noexcept { Enter(device); }
  RelaxedCaptureScope(const RelaxedCaptureScope&) = delete;
  RelaxedCaptureScope& operator=(const RelaxedCaptureScope&) = delete;
  ~RelaxedCaptureScope() {
    if (device_ != nullptr) Leave();
  }
  explicit operator bool() const noexcept { return !is_refused_; }

 private:
  void Enter(Device& device) noexcept;
  void Leave() noexcept;

  Device* device_ = nullptr;  // null: the mode was not changed
  bool is_refused_ = false;   // although it was to be
  CaptureMode previous_ = CaptureMode::kGlobal;
};

// Around a call that captures of other threads may forbid: none is announced
// meanwhile, or the thread is relaxed. False if neither can be had: then the
// call is not to be made.
//
// Cost: two atomic additions; two device calls while a capture is announced.
class DriverCallScope {
 public:
  // `gate` null: does nothing.
  DriverCallScope(const CaptureGate* gate, Device& device) noexcept {
    if (gate == nullptr) return;
    calm_.emplace(*gate);
    if (!*calm_) relaxed_.emplace(device);
  }
  explicit operator bool() const noexcept { return !relaxed_ || *relaxed_; }

 private:
  std::optional<CaptureGate::Calm> calm_;
  std::optional<RelaxedCaptureScope> relaxed_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_CAPTURE_GATE_H_
