#ifndef STRATA_ALLOCATION_HIT_CHAIN_LOCK_H_
#define STRATA_ALLOCATION_HIT_CHAIN_LOCK_H_

#include <atomic>
#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/allocation/hit/remote_frees.h"
#include "strata/platform/locks/biased_lock.h"

namespace strata {

// The lock of a chain. Frees by other threads can be queued in it.
//
// Model: a thread that frees a block of another thread's chain may leave the
//   block in RemoteFrees and continue. A thread that locks first takes in all
//   queued blocks, as one batch. So it sees every free that ended before. The
//   ways of a hit (ByWord, AsOwner, AsLocked) do not take in blocks, because
//   they call no function. Their users call TakeIn() before they search for
//   memory or report bytes in use. One load (is_simple()) says whether the lock
//   word alone must be acquired.
// Threads: as BiasedLock.
// Cost: as BiasedLock, and one load of the same cache line. 64 bytes, one cache
//   line.
class alignas(64) ChainLock {
 public:
  explicit ChainLock(bool may_bias = false)
      : lock_(may_bias), ways_(own_bit()) {}
  ChainLock(const ChainLock&) = delete;
  ChainLock& operator=(const ChainLock&) = delete;

  class Guard {
   public:
    explicit Guard(ChainLock& lock) : guard_(lock.lock_) { lock.TakeIn(); }

   private:
    const BiasedLock::Guard guard_;
  };
  // The ways in which a hit holds the lock, as in BiasedLock.
  struct ByWord {
    static bool TakeAtOnce(ChainLock& lock) {
      return lock.is_simple() && BiasedLock::ByWord::TakeAtOnce(lock.lock_);
    }
    static void Release(ChainLock& lock) {
      BiasedLock::ByWord::Release(lock.lock_);
    }
    static void Keep() { BiasedLock::ByWord::Keep(); }
    static void Unkeep() { BiasedLock::ByWord::Unkeep(); }
  };
  struct AsOwner {
    static bool TakeAtOnce(ChainLock& lock) {
      return BiasedLock::AsOwner::TakeAtOnce(lock.lock_);
    }
    static void Release(ChainLock& lock) {
      BiasedLock::AsOwner::Release(lock.lock_);
    }
    static void Keep() { BiasedLock::AsOwner::Keep(); }
    static void Unkeep() { BiasedLock::AsOwner::Unkeep(); }
  };
  // Holds the lock as after lock(). TryTake() fails if a thread holds the lock
  // or another thread owns it. That thread stays the owner.
  struct AsLocked {
    static void Take(ChainLock& lock) {
      lock.lock_.lock();
      lock.NoteWays();
    }
    static bool TryTake(ChainLock& lock) {
      if (!lock.lock_.try_lock_unowned()) return false;
      lock.NoteWays();
      return true;
    }
    static void Release(ChainLock& lock) { lock.unlock(); }
    static void Keep() {}
    static void Unkeep() {}
  };
  // True if no thread can own the lock.
  bool is_simple() const noexcept {
    return (ways_.load(std::memory_order_acquire) & kOwnBit) == 0;
  }

  void lock() {
    lock_.lock();
    TakeIn();
  }
  bool try_lock() { return lock_.try_lock() && TakeIn(); }
  void unlock() { lock_.unlock(); }

  // True if blocks may be left. Without the lock the result may be outdated.
  // But a thread that knows of a block that was left and not taken in always
  // sees true.
  bool is_open() const noexcept {
    return (ways_.load(std::memory_order_relaxed) & kOpenBit) != 0;
  }
  // The functions below need the lock.

  bool has_waiting() const noexcept { return is_open() && frees_->any(); }
  // Takes in the queued blocks.
  bool TakeIn() noexcept {
    if (ways_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      TakeInSlowly();
    }
    return true;
  }
  // Opens the queue: other threads may now leave blocks at `frees`. `frees`
  // must live until Close().
  void Open(RemoteFrees& frees) noexcept;
  // Takes in the queued blocks and closes the queue.
  void Close() noexcept;

  // Like BiasedLock::Renew(), for a closed lock that the caller does not hold.
  void Renew() noexcept {
    lock_.Renew();
    ways_.store(own_bit(), std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint8_t kOwnBit = 1;   // a thread may own the lock
  static constexpr std::uint8_t kOpenBit = 2;  // blocks may be left

  std::uint8_t own_bit() const { return lock_.may_be_biased() ? kOwnBit : 0; }
  // Clears kOwnBit if no thread can own the lock any more.
  void NoteWays() noexcept {
    if (!is_simple() && own_bit() == 0) {
      ways_.store(ways_.load(std::memory_order_relaxed) & kOpenBit,
                  std::memory_order_relaxed);
    }
  }
  void TakeInSlowly() noexcept;

  BiasedLock lock_;
  std::atomic<std::uint8_t> ways_;
  // The queue while it is open; else null or unused.
  RemoteFrees* frees_ = nullptr;
};

static_assert(sizeof(ChainLock) == 64, "one cache line");

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_CHAIN_LOCK_H_
