// How chunks leave the strategies that hold them: the part of ChunkPool that
// talks to ChunkHolders.

#include <algorithm>
#include <new>
#include <utility>

#include "strata/allocation/chunk_pool.h"
#include "strata/allocation/list_under_lock.h"
#include "strata/allocation/size.h"

namespace strata {
namespace {

// Holders that are gone and still listed, beside a quarter of the others.
constexpr std::size_t kMostGone = 16;

}  // namespace

std::size_t ChunkHolder::GiveBackLargest(std::size_t bytes,
                                         std::size_t least) noexcept {
  std::size_t given = 0;
  while (given < bytes) {
    const std::size_t largest = LargestIdle();
    const std::size_t got =
        largest >= std::max<std::size_t>(least, 1) ? GiveBack(largest) : 0;
    if (got == 0) break;
    given += got;
  }
  return given;
}

void ChunkPool::RenewHolders() {
  auto list = std::make_shared<HolderList>();
  list->reserve(2 * holder_count_ + 8);
  for (const auto& entry : *holders_) {
    if (!entry->gate.is_closed()) list->push_back(entry);
  }
  holders_ = std::move(list);
}

void ChunkPool::AddHolder(ChunkHolder& holder) {
  auto entry = std::make_shared<HolderEntry>();
  entry->holder = &holder;
  const std::uint64_t uid = holder.holder_stream().uid;
  const std::lock_guard<std::mutex> guard(lists_mutex_);
  if (holders_->size() == holders_->capacity()) RenewHolders();
  const auto known = by_holder_.emplace(&holder, entry).first;
  try {
    if (uid != 0) by_stream_.emplace(uid, entry);
  } catch (...) {
    by_holder_.erase(known);
    throw;
  }
  entry->number = ++added_holders_;
  holders_->push_back(std::move(entry));  // within its capacity
  ++holder_count_;
}

void ChunkPool::RemoveHolder(ChunkHolder& holder) noexcept {
  std::shared_ptr<HolderEntry> entry;
  const std::uint64_t uid = holder.holder_stream().uid;
  {
    const std::lock_guard<std::mutex> guard(lists_mutex_);
    const auto found = by_holder_.find(&holder);
    if (found == by_holder_.end()) return;
    entry = std::move(found->second);
    by_holder_.erase(found);
    const auto [first, last] = by_stream_.equal_range(uid);
    const auto in_stream = std::find_if(
        first, last, [&](const auto& other) { return other.second == entry; });
    if (in_stream != last) by_stream_.erase(in_stream);
    for (const std::uint64_t heeded : entry->heeds) {
      const auto heeding = heeding_.find(heeded);
      heeding->second.erase(entry->number);
      if (heeding->second.empty()) heeding_.erase(heeding);
    }
    --holder_count_;
    entry->gate.Shut();
    // Until then it stays on the list, and nobody passes its gate.
    if (holders_->size() - holder_count_ > holder_count_ / 4 + kMostGone) {
      try {
        RenewHolders();
      } catch (const std::bad_alloc&) {
        // The next one tries again.
      }
    }
  }
  entry->gate.Close();
}

std::shared_ptr<DriverHeld> ChunkPool::driver_held() const {
  const std::lock_guard<std::mutex> guard(lists_mutex_);
  return driver_held_.lock();
}

std::shared_ptr<DriverHeld> ChunkPool::ShareDriverHeld(
    const std::function<std::shared_ptr<DriverHeld>()>& make) {
  std::shared_ptr<DriverHeld> held = driver_held();
  if (held != nullptr) return held;
  std::shared_ptr<DriverHeld> made = make();
  const std::lock_guard<std::mutex> guard(lists_mutex_);
  held = driver_held_.lock();  // another thread may have been faster
  if (held != nullptr) return held;
  driver_held_ = made;
  return made;
}

ChunkPool::Round ChunkPool::RoundOf(Asked asked) const {
  const std::lock_guard<std::mutex> guard(lists_mutex_);
  const std::size_t size = holders_->size();
  Round round{holders_, holders_->data(), size, 0, size};
  if (asked == Asked::kSome && holder_count_ > kMostAsked) {
    round.first = turn_.load(std::memory_order_relaxed);
    round.count = kMostAsked;
  }
  return round;
}

void ChunkPool::ForEachHolder(FunctionRef<void(ChunkHolder&)> ask,
                              Asked asked) noexcept {
  const Round round = RoundOf(asked);
  for (std::size_t i = 0; i < round.count; ++i) {
    const CallGate::Pass pass(round[i].gate);
    if (pass) ask(*round[i].holder);
  }
}

std::vector<BlockInfo> ChunkPool::BlocksBeside(
    const std::set<const Allocator*>& listed) const {
  std::vector<BlockInfo> blocks;
  const Round round = RoundOf(Asked::kAll);
  for (std::size_t i = 0; i < round.count; ++i) {
    HolderEntry& entry = round[i];
    const CallGate::Pass pass(entry.gate);
    if (!pass || listed.contains(entry.holder->holder_layer())) continue;
    entry.holder->AppendBlocks(blocks);
  }
  AppendUnreturned(blocks);
  const std::size_t before = blocks.size();
  ListUnderLock(
      lock_, [this] { return offered_.size(); },
      [&](std::size_t count) { blocks.reserve(before + count); },
      [&] {
        for (const Idle& idle : offered_) {
          blocks.push_back({idle.chunk->data(), idle.chunk->size(),
                            idle.chunk->base(), BlockState::kFree});
        }
      });
  return blocks;
}

std::size_t ChunkPool::ReclaimableBytes(bool of_limit) noexcept {
  return unreturned_bytes() + IdleBytes(of_limit);
}

std::size_t ChunkPool::IdleBytes(bool of_limit) noexcept {
  const std::size_t step = of_limit ? 1 : kSystemStepBytes;
  std::size_t bytes = 0;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    for (const Idle& idle : offered_) {
      bytes += AlignUp(idle.chunk->size(), step);
    }
  }
  ForEachHolder([&](ChunkHolder& holder) {
    bytes += of_limit ? holder.IdleChunkBytes() : holder.IdleSystemBytes();
  });
  if (const std::shared_ptr<DriverHeld> held = driver_held()) {
    bytes += held->IdleBytes();
  }
  return bytes;
}

bool ChunkPool::IsUnused() noexcept {
  const std::uint64_t changes = allocations_ + frees_;
  std::size_t idle = 0;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    for (const Idle& chunk : offered_) idle += chunk.chunk->size();
  }
  ForEachHolder([&](ChunkHolder& holder) { idle += holder.IdleBytes(); });
  return claimed_bytes_ == idle && allocations_ + frees_ == changes;
}

std::size_t ChunkPool::MoveWithinReach(Stream stream,
                                       std::size_t bytes) noexcept {
  std::size_t best = 0;
  // A holder without a stream serves them all, this one too.
  const auto is_within_reach = [stream](const ChunkHolder& holder) {
    return holder.holder_stream() == stream || holder.holder_stream().uid == 0;
  };
  ForEachHolder([&](ChunkHolder& holder) {
    if (is_within_reach(holder)) return;
    const std::size_t size = holder.SmallestIdle(bytes);
    if (size != 0 && size - bytes <= bytes && (best == 0 || size < best)) {
      best = size;
    }
  });
  std::size_t moved = 0;
  if (const std::shared_ptr<DriverHeld> held = driver_held()) {
    moved = held->MoveWithinReach(stream);
  }
  if (best == 0) return moved;
  ForEachHolder([&](ChunkHolder& holder) {
    if (moved != 0 || is_within_reach(holder)) return;
    if (holder.SmallestIdle(bytes) == best) moved = holder.OfferIdle(best);
  });
  return moved;
}

Block* ChunkPool::FetchKept(std::size_t bytes,
                            const ChunkHolder& asking) noexcept {
  const Round round = RoundOf(Asked::kSome);
  for (std::size_t i = 0; i < round.count; ++i) {
    HolderEntry& entry = round[i];
    if (entry.holder == &asking) continue;
    const CallGate::Pass pass(entry.gate);
    if (!pass) continue;
    if (Block* kept = entry.holder->PartWith(bytes)) return kept;
  }
  AskOthersNext();
  return nullptr;
}

void ChunkPool::GiveUpIdleOf(Stream stream) noexcept {
  // By position, as they may change meanwhile: one of a stream, or few.
  for (std::size_t i = 0;; ++i) {
    std::shared_ptr<HolderEntry> entry;
    {
      const std::lock_guard<std::mutex> guard(lists_mutex_);
      auto [next, last] = by_stream_.equal_range(stream.uid);
      for (std::size_t skip = i; skip != 0 && next != last; --skip) ++next;
      if (next == last) return;
      entry = next->second;
    }
    const CallGate::Pass pass(entry->gate);
    if (pass && entry->holder->holder_stream() == stream) {
      entry->holder->GiveUpIdle();
    }
  }
}

void ChunkPool::HeedEnd(Stream stream, ChunkHolder& holder) {
  const std::lock_guard<std::mutex> guard(lists_mutex_);
  const auto found = by_holder_.find(&holder);
  if (found == by_holder_.end()) return;
  const std::shared_ptr<HolderEntry>& entry = found->second;
  const auto [heeded, is_new] = entry->heeds.insert(stream.uid);
  if (!is_new) return;
  try {
    heeding_[stream.uid].emplace(entry->number, entry);
  } catch (...) {
    entry->heeds.erase(heeded);
    throw;
  }
}

void ChunkPool::TellOfEnd(Stream stream) noexcept {
  while (true) {
    std::shared_ptr<HolderEntry> entry;
    {
      const std::lock_guard<std::mutex> guard(lists_mutex_);
      const auto found = heeding_.find(stream.uid);
      if (found == heeding_.end()) return;
      const auto first = found->second.begin();
      entry = std::move(first->second);
      found->second.erase(first);
      if (found->second.empty()) heeding_.erase(found);
      entry->heeds.erase(stream.uid);
    }
    const CallGate::Pass pass(entry->gate);
    if (pass) entry->holder->OtherStreamEnds(stream);
  }
}

std::size_t ChunkPool::GiveBackAll(std::size_t bytes) noexcept {
  const std::shared_ptr<DriverHeld> held = driver_held();
  std::size_t given = held != nullptr ? held->GiveBack() : 0;
  if (given >= bytes && given != 0) return given;
  const std::size_t returned = RecallLoans(LoanRecall::kWait, Asked::kAll);
  ForEachHolder([&](ChunkHolder& holder) { given += holder.GiveBackAll(); });
  // The holders have waited for what the driver could not give at first.
  if (held != nullptr) given += held->GiveBack();
  given += Release();
  // A loan that came back to a chunk in use gives the system nothing, but may
  // be what is missing.
  return given != 0 ? given : returned;
}

std::size_t ChunkPool::GiveBackEnded() noexcept {
  std::size_t given = 0;
  if (ended_pools_ == 0) return given;
  ForEachHolder([&](ChunkHolder& holder) { given += holder.GiveBackEnded(); });
  return given;
}

std::size_t ChunkPool::GiveBackDone(std::size_t bytes) noexcept {
  std::size_t given = GiveOfferedDone(bytes);
  ForEachHolder([&](ChunkHolder& holder) {
    if (given < bytes) given += holder.GiveBackDone(bytes - given);
  });
  const std::shared_ptr<DriverHeld> held = driver_held();
  if (held != nullptr && given < bytes) given += held->GiveBack();
  return given;
}

ChunkPool::IdleFound ChunkPool::FindIdle(const Round& round,
                                         std::size_t bytes) noexcept {
  IdleFound found;
  for (std::size_t i = 0; i < round.count; ++i) {
    HolderEntry& entry = round[i];
    const CallGate::Pass pass(entry.gate);
    if (!pass) continue;
    ChunkHolder& holder = *entry.holder;
    const std::size_t held = holder.IdleBytes();
    if (held == 0) continue;
    found.asked_last = &entry;
    if (!holder.IdleIsDone()) continue;
    found.bytes += held;
    const std::size_t largest = holder.LargestIdle();
    found.others = std::max(found.others, std::min(largest, found.largest));
    if (largest > found.largest) {
      found.largest = largest;
      found.of_largest = &entry;
    }
    if (largest < bytes) continue;
    const std::size_t fit = holder.SmallestIdle(bytes);
    if (fit != 0 && (found.fit == 0 || fit < found.fit)) {
      found.fit = fit;
      found.of_fit = &entry;
    }
  }
  return found;
}

std::size_t ChunkPool::GiveBackBeforeGrowth(std::size_t bytes,
                                            double limit) noexcept {
  const auto allowed = limit * static_cast<double>(reserved_bytes_.load()) -
                       static_cast<double>(given_back_bytes_.load());
  if (allowed < static_cast<double>(bytes)) return 0;
  const Round round = RoundOf(Asked::kSome);
  IdleFound found = FindIdle(round, bytes);
  if (found.bytes < bytes || found.fit / kMostGivenBack > bytes) return 0;

  const auto is_done = [&found](HolderEntry& entry) {
    return &entry == found.asked_last || entry.holder->IdleIsDone();
  };
  std::size_t given = 0;
  if (found.of_fit != nullptr) {
    // One chunk that covers it, unless another thread took it meanwhile.
    const CallGate::Pass pass(found.of_fit->gate);
    ChunkHolder& holder = *found.of_fit->holder;  // there while it passes
    if (pass && holder.SmallestIdle(found.fit) == found.fit &&
        is_done(*found.of_fit)) {
      given = holder.GiveBack(found.fit);
    }
  } else {
    // The largest ones first: of the holder that has the largest, all that
    // others do not exceed. None: another thread took them meanwhile.
    while (found.of_largest != nullptr) {
      std::size_t got = 0;
      {
        const CallGate::Pass pass(found.of_largest->gate);
        if (pass && is_done(*found.of_largest)) {
          got = found.of_largest->holder->GiveBackLargest(bytes - given,
                                                          found.others);
        }
      }
      given += got;
      if (got == 0 || given >= bytes) break;
      found = FindIdle(round, bytes);
    }
  }
  given_back_bytes_ += given;
  return given;
}

}  // namespace strata
