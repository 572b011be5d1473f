#ifndef STRATA_ALLOCATION_CHAIN_LOCK_H_
#define STRATA_ALLOCATION_CHAIN_LOCK_H_

#include <atomic>
#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/allocation/remote_frees.h"
#include "strata/platform/biased_lock.h"

namespace strata {

// The lock of a chain, at which frees can wait in place of their threads.
//
// Model: who frees a block of another thread's chain may leave it among the
//   RemoteFrees and go on. Whoever locks takes in all that waits before
//   anything else, as one batch: so he sees every free that ended before. Who
//   holds it in one of the ways of a hit does not, as that calls nothing:
//   TakeIn is for him to call before he looks for memory, or says how much is
//   in use.
//   One look says whether the lock word is all there is to take: is_simple().
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
  // The ways of a hit to hold it, as those of BiasedLock. IsAll: for who may
  // have come too late (Lasting).
  struct ByWord {
    static bool TakeAtOnce(ChainLock& lock) {
      return lock.is_simple() && BiasedLock::ByWord::TakeAtOnce(lock.lock_);
    }
    static bool IsAll(const ChainLock& lock) {
      return BiasedLock::ByWord::IsAll(lock.lock_);
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
    static bool IsAll(const ChainLock& lock) {
      return BiasedLock::AsOwner::IsAll(lock.lock_);
    }
    static void Release(ChainLock& lock) {
      BiasedLock::AsOwner::Release(lock.lock_);
    }
    static void Keep() { BiasedLock::AsOwner::Keep(); }
    static void Unkeep() { BiasedLock::AsOwner::Unkeep(); }
  };
  // As after lock(), whichever way that went. TryTake: false if somebody has
  // it, or another thread owns it, which stays the owner.
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
  // Whether no thread can own it.
  bool is_simple() const noexcept {
    return (ways_.load(std::memory_order_acquire) & kOwnBit) == 0;
  }

  void lock() {
    lock_.lock();
    TakeIn();
  }
  bool try_lock() { return lock_.try_lock() && TakeIn(); }
  void unlock() { lock_.unlock(); }

  // Whether blocks may be left. Without the lock it may change meanwhile; but
  // who knows of a block that was left, and not taken in, sees it.
  bool is_open() const noexcept {
    return (ways_.load(std::memory_order_relaxed) & kOpenBit) != 0;
  }
  // The rest is for who has the lock.

  bool has_waiting() const noexcept { return is_open() && frees_->any(); }
  // Takes in what waits.
  bool TakeIn() noexcept {
    if (ways_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      TakeInSlowly();
    }
    return true;
  }
  // Blocks may be left at `frees` from now on, which is there until Close.
  void Open(RemoteFrees& frees) noexcept;
  // Takes in what waits, and has no more wait.
  void Close() noexcept;

  // As that of BiasedLock, of a lock that is closed, for who has it not.
  void Renew() noexcept {
    lock_.Renew();
    ways_.store(own_bit(), std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint8_t kOwnBit = 1;   // a thread may own the lock
  static constexpr std::uint8_t kOpenBit = 2;  // blocks may be left

  std::uint8_t own_bit() const { return lock_.may_be_biased() ? kOwnBit : 0; }
  // It may be that it can have no owner any more.
  void NoteWays() noexcept {
    if (!is_simple() && own_bit() == 0) {
      ways_.store(ways_.load(std::memory_order_relaxed) & kOpenBit,
                  std::memory_order_relaxed);
    }
  }
  void TakeInSlowly() noexcept;

  BiasedLock lock_;
  std::atomic<std::uint8_t> ways_;
  RemoteFrees* frees_ = nullptr;  // while it is open
};

static_assert(sizeof(ChainLock) == 64, "one cache line");

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHAIN_LOCK_H_
