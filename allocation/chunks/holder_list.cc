#include "strata/allocation/chunks/holder_list.h"

#include <algorithm>
#include <new>
#include <utility>

namespace strata {
namespace {

// Removed holders that may stay in the list, in addition to a quarter of the
// others.
constexpr std::size_t kMostGone = 16;

}  // namespace

void HolderList::Renew() {
  auto list = std::make_shared<Entries>();
  list->reserve(2 * count_ + 8);
  for (const auto& entry : *entries_) {
    if (!entry->gate.is_closed()) list->push_back(entry);
  }
  entries_ = std::move(list);
}

void HolderList::Add(ChunkHolder& holder) {
  auto entry = std::make_shared<Entry>();
  entry->holder = &holder;
  const std::uint64_t uid = holder.identity().stream.uid;
  const std::lock_guard<std::mutex> guard(mutex_);
  if (entries_->size() == entries_->capacity()) Renew();
  const auto known = by_holder_.emplace(&holder, entry).first;
  try {
    if (uid != 0) Link(entry, uid);
  } catch (...) {
    by_holder_.erase(known);
    throw;
  }
  entries_->push_back(std::move(entry));  // within its capacity
  ++count_;
}

void HolderList::Remove(ChunkHolder& holder) noexcept {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = by_holder_.find(&holder);
    if (found == by_holder_.end()) return;
    entry = std::move(found->second);
    by_holder_.erase(found);
    for (const std::uint64_t uid : entry->streams) {
      const auto [first, last] = by_stream_.equal_range(uid);
      by_stream_.erase(std::find_if(first, last, [&](const auto& other) {
        return other.second == entry;
      }));
    }
    --count_;
    entry->gate.Shut();
    // Until Renew() the entry stays in the list, but its gate is closed.
    if (entries_->size() - count_ > count_ / 4 + kMostGone) {
      try {
        Renew();
      } catch (const std::bad_alloc&) {
        // The next removal tries again.
      }
    }
  }
  entry->gate.Close();
}

HolderList::Round HolderList::RoundOf(Asked asked) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::size_t size = entries_->size();
  Round round{entries_, entries_->data(), size, 0, size};
  if (asked == Asked::kSome && count_ > kMostAsked) {
    round.first = turn_.load(std::memory_order_relaxed);
    round.count = kMostAsked;
  }
  return round;
}

void HolderList::ForEach(FunctionRef<void(ChunkHolder&)> ask,
                         Asked asked) const noexcept {
  const Round round = RoundOf(asked);
  for (std::size_t i = 0; i < round.count; ++i) {
    const CallGate::Pass pass(round[i].gate);
    if (pass) ask(*round[i].holder);
  }
}

void HolderList::TellOwnersOfEnd(Stream stream) noexcept {
  // By position, because the entries may change concurrently.
  for (std::size_t i = 0;; ++i) {
    std::shared_ptr<Entry> entry;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      auto [next, last] = by_stream_.equal_range(stream.uid);
      std::size_t owners = 0;
      for (; next != last && entry == nullptr; ++next) {
        const Stream own = next->second->holder->identity().stream;
        if (own == stream && owners++ == i) entry = next->second;
      }
      if (entry == nullptr) return;
    }
    const CallGate::Pass pass(entry->gate);
    if (pass) entry->holder->StreamEnds(stream);
  }
}

void HolderList::Link(const std::shared_ptr<Entry>& entry, std::uint64_t uid) {
  const auto [linked, is_new] = entry->streams.insert(uid);
  if (!is_new) return;
  try {
    by_stream_.emplace(uid, entry);
  } catch (...) {
    entry->streams.erase(linked);
    throw;
  }
}

void HolderList::HeedEnd(Stream stream, ChunkHolder& holder) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = by_holder_.find(&holder);
  if (found != by_holder_.end()) Link(found->second, stream.uid);
}

void HolderList::TellHeedersOfEnd(Stream stream) noexcept {
  while (true) {
    std::shared_ptr<Entry> entry;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      const auto [first, last] = by_stream_.equal_range(stream.uid);
      const auto heeder = std::find_if(first, last, [&](const auto& other) {
        return other.second->holder->identity().stream.uid != stream.uid;
      });
      if (heeder == last) return;
      entry = std::move(heeder->second);
      by_stream_.erase(heeder);
      entry->streams.erase(stream.uid);
    }
    const CallGate::Pass pass(entry->gate);
    if (pass) entry->holder->StreamEnds(stream);
  }
}

}  // namespace strata
