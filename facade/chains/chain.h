#ifndef STRATA_FACADE_CHAINS_CHAIN_H_
#define STRATA_FACADE_CHAINS_CHAIN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>

#include "strata/allocation/decorator.h"
#include "strata/allocation/hit/chain_state.h"
#include "strata/allocation/hit/hit_path.h"
#include "strata/allocation/reclaim/retry_queue.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/platform/stream.h"

namespace strata {

// The layers of one stream at one place, and their life.
//
// Model: owns the layers until the last allocation is freed. When the facade
//   drops the chain, it becomes an orphan: the last free, in any thread,
//   destroys it.
//   A call that no hit serves walks the layers. While captures are announced,
//   every call does. A request of a stream that takes part in a capture is
//   served by the pool of the capture.
// Threads: any thread.
// Cost: a walk makes the calls of the layers; it locks once more per free.
class Chain : public Decorator, private CaptureGate::Postponable {
 public:
  enum class Role : std::uint8_t {
    kEager,  // of a stream; requests of captures use their pools
    kGraph,  // of a graph pool
  };
  class Home;  // the place of a chain

  // The place's services that a chain refers to. They live as long as `home`.
  struct Services {
    std::shared_ptr<Home> home;
    Device* device;     // null for host memory
    CaptureGate& gate;  // of the facade
    RetryQueue& retry;  // of the place, notified of frees
    const DebugFill* debug_fill;
    AllocationLog* allocation_log;
  };

  // The positions of a chain in the lists of its place, which guards them.
  struct Listing {
    std::size_t position = 0;
    std::uint64_t number = 0;  // larger than the number of any earlier chain
    // Uids of streams; the chain is notified of their end.
    std::unordered_set<std::uint64_t> heeds;
    // One of `heeds`, or 0. Readable without the place's lock.
    std::atomic<std::uint64_t> heeded{0};
  };

  const std::shared_ptr<ChainStream>& chain_stream() const { return stream_; }
  ChainState& state() const { return hit_; }
  const Home& home() const { return *home_; }
  Listing& listing() { return listing_; }

  // Makes the chain an orphan; it may be destroyed on return.
  void Drop() noexcept;
  // Holds the chain until Unpin, which may destroy it. False if the chain is
  // ending.
  bool TryPin() noexcept;
  void Unpin() noexcept;

  bool was_used() const { return was_used_.load(std::memory_order_relaxed); }

  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  bool RecordUse(Allocation* allocation, Stream stream,
                 Event event) noexcept override;
  // Releases nothing while a capture is announced.
  std::size_t Release() noexcept override {
    return gate_.any() ? 0 : underlying()->Release();
  }
  Stream stream() const override { return stream_->stream(); }
  ChainLock& lock() const { return hit_.lock; }
  const char* name() const override { return "front"; }
  // The layers may call the driver: let a capture of the thread continue.
  Stats stats() const override;
  void ResetPeak() override;
  void Accept(AllocatorVisitor& visitor) const override;

 protected:
  Chain(const Services& services, std::shared_ptr<ChainStream> stream,
        std::shared_ptr<Allocator> layers, Role role);
  ~Chain() override = default;

  // Serve a call through the layers.
  Allocation* Walk(const Request& request, Failure& failure) noexcept;
  void WalkFree(Allocation* allocation) noexcept;
  // Walk while captures are announced.
  Allocation* WalkGated(const Request& request, Failure& failure) noexcept;
  // Whether the chain counts walks in live_ itself. The Stat layer does it if
  // there is one and a hit path: then no layer above it holds back a free.
  bool counts_itself() const {
    return !hit_.has_stat_layer || hit_path_ == nullptr;
  }
  // Notifies waiting requests of a free, and releases the lock, which is held.
  void EndFree(std::size_t bytes) noexcept;
  bool is_orphan() const { return orphan_; }  // hold the lock

  CaptureGate& gate_;
  RetryQueue& retry_;
  HitPath* const hit_path_;  // null: every call walks

 private:
  // Sets `failure` if the layers do not serve the flags of the request.
  bool CanServe(const Request& request, Failure& failure) const noexcept;
  void Explain(const Request& request, Failure& failure) const noexcept;
  // Hold the lock.
  bool is_over() const {
    return orphan_ && pins_ == 0 && live_.live_allocations() == 0;
  }
  // Releases the lock, and destroys the chain if it is over.
  void UnlockOrEnd() noexcept;
  // Destroys the chain now, or once no capture is announced.
  void Destroy() noexcept;
  void End() noexcept override;

  const std::shared_ptr<Home> home_;
  const std::shared_ptr<ChainStream> stream_;
  Device* const device_;
  const Role role_;
  Listing listing_;
  std::atomic<bool> was_used_{false};

 protected:
  alignas(64) ChainState& hit_;  // of stream_

 private:
  // Count the blocks that the callers of the chain hold: in hit_.counts, unless
  // a Stat layer lies below a layer that may defer frees. Guarded by the lock.
  UseCounts own_counts_;
  UseCounts& live_{hit_.has_stat_layer && hit_path_ == nullptr ? own_counts_
                                                               : hit_.counts};
  // Guarded by the lock.
  std::uint64_t pins_ = 0;
  bool orphan_ = false;
};

// The place of a chain, as the chain sees it.
//
// Threads: any thread.
// Lifetime: outlives its chains, which share it.
class Chain::Home {
 public:
  Home() = default;
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;
  virtual ~Home() = default;

  // Serves the request from the pool of the capture that `stream` takes part
  // in, if `is_captured`.
  virtual Allocation* TryAllocateCaptured(const Stream& stream,
                                          const Request& request,
                                          Failure& failure,
                                          bool* is_captured) noexcept = 0;
  // Sets the bytes in use and cached at this place, unless host memory is
  // exhausted.
  virtual void Explain(Failure& failure) const noexcept = 0;
  // From here on `chain` is notified of the end of `stream`.
  virtual void HeedEnd(Chain& chain, Stream stream) noexcept = 0;
  // `chain` and its last allocation are gone; its totals remain.
  virtual void Finish(Chain& chain, const Stats& totals) = 0;
  // A chain has ended.
  virtual void ReleaseIfClosed() noexcept = 0;
};

}  // namespace strata

#endif  // STRATA_FACADE_CHAINS_CHAIN_H_
