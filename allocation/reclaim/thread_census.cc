#include "strata/allocation/reclaim/thread_census.h"

#include <algorithm>
#include <bit>

#include "strata/base/thread_end.h"

namespace strata {

// State of one thread. Guarded by the mutex of the census.
struct ThreadCensus::Entry {
  std::atomic<std::uint64_t>* places = nullptr;  // null: not in the list
  Waiter* waiter = nullptr;                      // null: it runs
  Entry* previous = nullptr;
  Entry* next = nullptr;
};

thread_local constinit ThreadCensus::Entry ThreadCensus::t_own;

namespace {

// Once it is over, calls from later destructors of the thread are not counted.
thread_local constinit ThreadEnd t_end([]() noexcept {
  ThreadCensus::EndThread();
});

}  // namespace

ThreadCensus& ThreadCensus::Instance() {
  // Never destroyed: threads may end later than static objects.
  static ThreadCensus* const census = new ThreadCensus;
  return *census;
}

ThreadCensus::ThreadCensus()
    : fork_lock_(mutex_, [] { Instance().KeepOwnEntry(); }) {}

void ThreadCensus::KeepOwnEntry() noexcept {
  Entry* own = first_;
  while (own != nullptr && own->places != &ThisThread().counted_places) {
    own = own->next;
  }
  if (own != nullptr) own->previous = own->next = nullptr;
  first_ = own;
}

std::uint64_t ThreadCensus::AddPlace() noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto slot = std::min_element(
      slots_.begin(), slots_.end(),
      [](const Slot& a, const Slot& b) { return a.places < b.places; });
  ++slot->places;
  return std::uint64_t{1} << (slot - slots_.begin());
}

void ThreadCensus::RemovePlace(std::uint64_t place) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  Slot& slot = slots_[static_cast<std::size_t>(std::countr_zero(place))];
  if (--slot.places != 0) return;
  slot.threads = 0;
  for (Entry* entry = first_; entry != nullptr; entry = entry->next) {
    entry->places->fetch_and(~place, std::memory_order_relaxed);
  }
}

void ThreadCensus::CountFirst(std::uint64_t place) noexcept {
  // A thread without the call at its end would stay counted.
  if (!t_end.Add()) return;
  Entry& entry = t_own;
  const std::lock_guard<std::mutex> guard(mutex_);
  if (entry.places == nullptr) {
    entry.places = &ThisThread().counted_places;
    entry.next = first_;
    if (first_ != nullptr) first_->previous = &entry;
    first_ = &entry;
  }
  ThisThread().counted_places.fetch_or(place, std::memory_order_relaxed);
  ++slots_[static_cast<std::size_t>(std::countr_zero(place))].threads;
}

bool ThreadCensus::WasShared(std::uint64_t place) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  return slots_[static_cast<std::size_t>(std::countr_zero(place))].threads > 1;
}

std::uint64_t ThreadCensus::PlacesWithHope() const noexcept {
  std::uint64_t hope = 0;
  for (bool grew = true; grew;) {
    grew = false;
    for (const Entry* entry = first_; entry != nullptr; entry = entry->next) {
      const bool runs = entry->waiter == nullptr;
      if (!runs && (entry->waiter->place & hope) == 0) continue;
      const std::uint64_t places =
          entry->places->load(std::memory_order_relaxed);
      grew = grew || (places & ~hope) != 0;
      hope |= places;
    }
  }
  return hope;
}

bool ThreadCensus::Block(Waiter& waiter) noexcept {
  // A thread that is ending is in no list; it counts as running.
  if (t_end.is_over()) return true;
  Entry& entry = t_own;
  if (waiter.number == 0) waiter.number = ++last_number_;
  waiter.entry = &entry;
  entry.waiter = &waiter;
  if ((PlacesWithHope() & waiter.place) != 0) return true;
  Unblock(waiter);
  return false;
}

void ThreadCensus::Unblock(Waiter& waiter) noexcept {
  if (waiter.entry == nullptr) return;
  waiter.entry->waiter = nullptr;
  waiter.entry = nullptr;
}

void ThreadCensus::EndThread() noexcept { Instance().End(); }

void ThreadCensus::End() noexcept {
  Entry& entry = t_own;
  const std::lock_guard<std::mutex> guard(mutex_);
  if (entry.places == nullptr) return;
  (entry.previous != nullptr ? entry.previous->next : first_) = entry.next;
  if (entry.next != nullptr) entry.next->previous = entry.previous;
  while (true) {
    const std::uint64_t hope = PlacesWithHope();
    Waiter* last = nullptr;
    for (Entry* other = first_; other != nullptr; other = other->next) {
      Waiter* waiter = other->waiter;
      if (waiter == nullptr || (waiter->place & hope) != 0) continue;
      if (last == nullptr || waiter->number > last->number) last = waiter;
    }
    if (last == nullptr) return;
    last->hopeless = true;
    Unblock(*last);
    last->wake.notify_one();
  }
}

}  // namespace strata
