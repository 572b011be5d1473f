#include "strata/strategy/thread_local/pool_owners.h"

#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <vector>

namespace strata {
namespace {

std::atomic<std::uint64_t> next_id{1};

// The pools of the allocators used last, by id. Trivially destructible, so that
// it is usable until the end of the thread.
struct Recent {
  std::uint64_t id = 0;
  BuddyPool* pool = nullptr;
};
constexpr std::size_t kRecent = 4;
thread_local constinit std::array<Recent, kRecent> t_recent{};

Recent& RecentOf(std::uint64_t id) { return t_recent[id % kRecent]; }

// Whether the thread's list has been destroyed.
thread_local constinit bool t_exited = false;

}  // namespace

// The pools of one thread.
class PoolOwners::ThreadList {
 public:
  static ThreadList& OfThisThread() {
    thread_local ThreadList list;
    return list;
  }

  ThreadList() = default;
  ThreadList(const ThreadList&) = delete;
  ThreadList& operator=(const ThreadList&) = delete;
  ~ThreadList() {
    t_exited = true;
    t_recent.fill(Recent());
    for (const Entry& entry : entries_) {
      if (const auto owners = entry.owners.lock()) {
        owners->AddSpare(entry.pool);
      }
    }
  }

  BuddyPool* Find(std::uint64_t id) const {
    for (const Entry& entry : entries_) {
      if (entry.id == id) return entry.pool;
    }
    return nullptr;
  }

  // Errors: std::bad_alloc.
  void Add(PoolOwners& owners, BuddyPool* pool) {
    // Removes entries of allocators that have ended; a thread may outlive many.
    std::erase_if(entries_, [](const Entry& e) { return e.owners.expired(); });
    entries_.push_back(Entry{owners.id_, owners.weak_from_this(), pool});
  }

 private:
  struct Entry {
    std::uint64_t id;
    std::weak_ptr<PoolOwners> owners;
    BuddyPool* pool;
  };
  std::vector<Entry> entries_;
};

PoolOwners::PoolOwners() : id_(next_id++) {}

BuddyPool* PoolOwners::Find() const noexcept {
  Recent& recent = RecentOf(id_);
  if (recent.id == id_) return recent.pool;
  if (t_exited) return nullptr;
  BuddyPool* pool = ThreadList::OfThisThread().Find(id_);
  if (pool != nullptr) recent = Recent{id_, pool};
  return pool;
}

void PoolOwners::Own(BuddyPool* pool) noexcept {
  try {
    if (!t_exited) {
      ThreadList::OfThisThread().Add(*this, pool);
      RecentOf(id_) = Recent{id_, pool};
      return;
    }
  } catch (const std::bad_alloc&) {
    // The list has no room: the next call tries again.
  }
  AddSpare(pool);
}

BuddyPool* PoolOwners::TakeSpare() noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  BuddyPool* pool = spare_;
  if (pool != nullptr) spare_ = pool->next_spare;
  return pool;
}

void PoolOwners::AddSpare(BuddyPool* pool) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  if (closed_) return;
  pool->next_spare = spare_;
  spare_ = pool;
}

void PoolOwners::Close() noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  closed_ = true;
  spare_ = nullptr;
}

}  // namespace strata
