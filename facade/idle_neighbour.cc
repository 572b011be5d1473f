#include "strata/facade/idle_neighbour.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "strata/allocation/reclaim/call_gate.h"
#include "strata/base/fork_lock.h"

namespace strata {
namespace {

// Whether this thread is inside a query.
thread_local constinit bool t_is_asking = false;

}  // namespace

struct IdleNeighbour::Entry {
  Entry(const Device& device, ChunkPool& its_pool, const CaptureGate& its_gate,
        std::shared_ptr<Reclaimer> its_ladder)
      : identity(device.identity()),
        pool(its_pool),
        gate(its_gate),
        ladder(std::move(its_ladder)) {}

  const std::uintptr_t identity;
  const pid_t process = getpid();
  ChunkPool& pool;
  const CaptureGate& gate;
  const std::shared_ptr<Reclaimer> ladder;
  CallGate calls;  // closed when the entry is no longer listed
};

// The entries of all facades of the process.
class IdleNeighbour::List {
 public:
  using Entries = std::vector<std::shared_ptr<Entry>>;

  // Never destroyed.
  static List& Instance() {
    static List* const list = new List();
    return *list;
  }

  void Add(const std::shared_ptr<Entry>& entry) {
    const std::lock_guard<std::mutex> guard(mutex_);
    entries_.push_back(entry);
  }
  void Remove(const std::shared_ptr<Entry>& entry) noexcept {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::erase(entries_, entry);
  }
  // The other entries with memory of the device of `entry`; none if the list is
  // in use.
  //
  // Errors: std::bad_alloc.
  Entries OthersOf(const Entry& entry) const {
    Entries others;
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock) return others;
    const pid_t process = getpid();
    for (const auto& other : entries_) {
      if (other.get() != &entry && other->identity == entry.identity &&
          other->process == process) {
        others.push_back(other);
      }
    }
    return others;
  }

 private:
  mutable std::mutex mutex_;
  const ForkLock fork_lock_{mutex_};
  Entries entries_;  // guarded by mutex_
};

IdleNeighbour::IdleNeighbour(const Device& device, ChunkPool& pool,
                             const CaptureGate& gate,
                             const std::shared_ptr<Reclaimer>& reclaimer)
    : entry_(std::make_shared<Entry>(device, pool, gate, reclaimer)),
      registration_(
          Reclaimer::Register(reclaimer, Reclaimer::Step::kAskOthers, *this)) {
  List::Instance().Add(entry_);
}

IdleNeighbour::~IdleNeighbour() {
  registration_.Reset();
  StopGiving();
}

void IdleNeighbour::StopGiving() noexcept {
  List::Instance().Remove(entry_);
  entry_->calls.Close();
}

void IdleNeighbour::ForEachOther(FunctionRef<void(Entry&)> ask) const noexcept {
  if (t_is_asking) return;
  try {
    const List::Entries others = List::Instance().OthersOf(*entry_);
    const CaptureGate::Calm calm(entry_->gate);
    if (!calm ||
        std::any_of(others.begin(), others.end(), [](const auto& other) {
          const CallGate::Pass pass(other->calls);
          return pass && other->gate.any();
        })) {
      return;
    }
    t_is_asking = true;
    for (const auto& other : others) {
      const CallGate::Pass pass(other->calls);
      if (!pass) continue;
      const CaptureGate::Calm its_calm(other->gate);
      if (its_calm) ask(*other);
    }
    t_is_asking = false;
  } catch (const std::bad_alloc&) {
    // No host memory for the list: no facade is queried.
  }
}

std::size_t IdleNeighbour::ReclaimableBytes(bool of_limit) const noexcept {
  std::size_t bytes = 0;
  ForEachOther(
      [&](Entry& other) { bytes += other.pool.ReclaimableBytes(of_limit); });
  return bytes;
}

std::size_t IdleNeighbour::Reclaim(Stream /*stream*/,
                                   std::size_t bytes) noexcept {
  std::size_t given = 0;
  ForEachOther([&](Entry& other) {
    if (given >= bytes) return;
    other.ladder->BeginGiving();
    const std::size_t got = other.pool.market().GiveBackDone(bytes - given);
    other.ladder->EndGiving(got != 0);
    given += got;
  });
  return given;
}

}  // namespace strata
