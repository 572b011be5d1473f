#ifndef STRATA_ALLOCATION_CHAIN_LOCK_H_
#define STRATA_ALLOCATION_CHAIN_LOCK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/platform/biased_lock.h"

namespace strata {

// Takes back blocks that waited at a ChainLock.
class FreeTaker {
 public:
  FreeTaker() = default;
  FreeTaker(const FreeTaker&) = delete;
  FreeTaker& operator=(const FreeTaker&) = delete;

  // Frees `first` and those that follow by free_previous. The lock is held.
  virtual void TakeIn(Block* first) noexcept = 0;

 protected:
  ~FreeTaker() = default;
};

// The lock of a chain, at which frees can wait in place of their threads.
//
// Model: who frees a block while another thread has the lock, or owns it, may
//   leave the block here and go on. Whoever has the lock next takes in all that
//   waits before anything else, as one batch: so he sees every free that ended
//   before. At most kMostWaiting blocks wait; who meets as many waits for the
//   lock itself, so that an owner who has stopped loses it after that many.
//   Closed at first: then nothing can be left here. Who has left a block must
//   not touch the lock again, which may be gone with the last free.
//   One look says whether the lock word is all there is to take: is_simple().
//   Who takes it at once after that sees every free that ended before he
//   looked.
// Threads: as BiasedLock.
// Cost: as BiasedLock, and one load of the same cache line. To leave a block:
//   one atomic operation, whatever the holder does. 64 bytes, one cache line.
// Source: hotpath.md §5 and §7 (batches of remote frees), without a batch at
//   the thread that frees: what lay there would be nobody's.
class alignas(64) ChainLock {
 public:
  static constexpr unsigned kMostWaiting = 62;

  explicit ChainLock(bool may_bias = false)
      : lock_(may_bias), waiting_(kClosed | own_bit()) {}
  ChainLock(const ChainLock&) = delete;
  ChainLock& operator=(const ChainLock&) = delete;

  class Guard {
   public:
    explicit Guard(ChainLock& lock) : guard_(lock.lock_) { lock.TakeIn(); }

   private:
    const BiasedLock::Guard guard_;
  };
  // Ways to hold it, as those of BiasedLock: at once only while nothing waits.
  // IsAll: for who may have come too late (Lasting).
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
      return !lock.has_waiting() && BiasedLock::AsOwner::TakeAtOnce(lock.lock_);
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
  // As after lock(), whichever way that went.
  struct AsLocked {
    static void Release(ChainLock& lock) { lock.unlock(); }
    static void Keep() {}
    static void Unkeep() {}
  };
  // Whether no thread can own it, and nothing waits.
  bool is_simple() const noexcept {
    return waiting_.load(std::memory_order_acquire) <= kClosed;
  }

  void lock() {
    lock_.lock();
    TakeIn();
  }
  bool try_lock() { return lock_.try_lock() && TakeIn(); }
  // False too if another thread owns it, which stays the owner.
  bool try_lock_unowned() { return lock_.try_lock_unowned() && TakeIn(); }
  void unlock() { lock_.unlock(); }

  // Leaves `block`, which is live and whose taker this lock has; false, and
  // nothing is done, if it cannot wait here. On success the block, and all that
  // its free may end, is gone.
  bool Leave(Block& block) noexcept;

  // Whether blocks may be left here.
  bool is_open() const noexcept {
    return (waiting_.load(std::memory_order_acquire) & ~kOwnBit) != kClosed;
  }
  bool has_waiting() const noexcept {
    return (waiting_.load(std::memory_order_acquire) & ~kOwnBit) > kClosed;
  }
  // The rest is for who has the lock.

  // Takes in what waits.
  bool TakeIn() noexcept {
    if (!is_simple()) [[unlikely]] {
      TakeInSlowly();
    }
    return true;
  }
  // Blocks may wait for `taker` from now on; always the same one.
  void Open(FreeTaker& taker) noexcept;
  // Takes in what waits, and has no more wait. Whether it was open.
  bool Close() noexcept;

  // As that of BiasedLock, of a lock that is closed, for who has it not.
  void Renew() noexcept {
    lock_.Renew();
    waiting_.store(kClosed | own_bit(), std::memory_order_relaxed);
  }

 private:
  // Blocks are aligned: what they leave free counts how many wait.
  static constexpr std::uintptr_t kCountMask = 63;
  static constexpr std::uintptr_t kClosed = 63;
  // Of no address. Set as long as a thread may own the lock.
  static constexpr std::uintptr_t kOwnBit = ~(~std::uintptr_t{0} >> 1);

  std::uintptr_t own_bit() const { return lock_.may_be_biased() ? kOwnBit : 0; }
  static Block* BlockOf(std::uintptr_t waiting) {
    return reinterpret_cast<Block*>(waiting & ~(kCountMask | kOwnBit));
  }
  void TakeInSlowly() noexcept;

  BiasedLock lock_;
  // The last block that was left, and how many wait; 0: none; or kClosed. And
  // kOwnBit.
  std::atomic<std::uintptr_t> waiting_;
  FreeTaker* taker_ = nullptr;  // once it was open
};

static_assert(sizeof(ChainLock) == 64, "one cache line");

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHAIN_LOCK_H_
