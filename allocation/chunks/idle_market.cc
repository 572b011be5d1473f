#include "strata/allocation/chunks/idle_market.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "strata/allocation/streams/stream_timeline.h"
#include "strata/base/log.h"

namespace strata {

void IdleMarket::Offer(Allocation* chunk, ChainStream& last_user) noexcept {
  OfferedChunks::Entry offered;
  offered.chunk = chunk;
  if (last_user.timeline() != nullptr) {
    offered.timeline = last_user.shared_timeline();
    offered.tick = offered.timeline->Note();
    // If it fails, a caller that needs the chunk tries again.
    static_cast<void>(offered.timeline->Close());
  } else if (last_user.Synchronize() != Status::kSuccess &&
             (offered.stream = last_user.weak_from_this().lock()) == nullptr) {
    STRATA_LOG(Error) << "chunk_pool: " << chunk->size() << " bytes at "
                      << chunk->data()
                      << " stay reserved: the device does not say "
                      << "when they are free";
    return;
  }
  if (offered_.Add(offered)) {
    budget_.NotifyIdle();
    return;
  }
  sink_.Give(offered, offered.AwaitLastUse());
}

std::size_t IdleMarket::MoveWithinReach(Stream stream,
                                        std::size_t bytes) noexcept {
  std::size_t best = 0;
  // A holder without a stream serves all streams, including this one.
  const auto is_within_reach = [stream](const ChunkHolder& holder) {
    const Stream& own = holder.identity().stream;
    return own == stream || own.uid == 0;
  };
  // Chunks have at least one byte; 0 would skip the search for sizes.
  const std::size_t fit_bytes = std::max<std::size_t>(bytes, 1);
  holders_.ForEach([&](ChunkHolder& holder) {
    if (is_within_reach(holder)) return;
    const std::size_t size = holder.Idle(fit_bytes).best_fit;
    if (size != 0 && size - bytes <= bytes && (best == 0 || size < best)) {
      best = size;
    }
  });
  std::size_t moved = 0;
  if (const auto held = budget_.driver_held()) {
    moved = held->MoveWithinReach(stream);
  }
  if (best == 0) return moved;
  holders_.ForEach([&](ChunkHolder& holder) {
    if (moved != 0 || is_within_reach(holder)) return;
    if (holder.Idle(fit_bytes).best_fit == best) {
      moved = holder.OfferIdle(best);
    }
  });
  return moved;
}

std::size_t IdleMarket::GiveBackDone(std::size_t bytes,
                                     const ChunkHolder* except) noexcept {
  std::size_t given = offered_.GiveDone(
      bytes, [this](const OfferedChunks::Entry& offered, bool over) {
        return sink_.Give(offered, over);
      });
  holders_.ForEach([&](ChunkHolder& holder) {
    if (given < bytes && &holder != except) {
      given += holder.GiveBackDone(bytes - given, /*least_bytes=*/1);
    }
  });
  const auto held = budget_.driver_held();
  if (held != nullptr && given < bytes) given += held->GiveBack();
  return given;
}

std::size_t IdleMarket::GiveBackAll(std::size_t bytes) noexcept {
  const auto held = budget_.driver_held();
  std::size_t given = held != nullptr ? held->GiveBack() : 0;
  if (given >= bytes && given != 0) return given;
  const std::size_t returned =
      loans_.Recall(ChunkHolder::LoanRecall::kWait, HolderList::Asked::kAll);
  holders_.ForEach([&](ChunkHolder& holder) { given += holder.GiveBackAll(); });
  // The holders have now waited for memory that the driver could not release at
  // first.
  if (held != nullptr) given += held->GiveBack();
  given += Release();
  // A loan that returned to a chunk in use releases no bytes to the system, but
  // may meet the request.
  return given != 0 ? given : returned;
}

std::size_t IdleMarket::Release() noexcept {
  std::size_t given = 0;
  ForEachEnded(
      [&](IdleMarket& ended) { given += ended.GiveBackAll(SIZE_MAX); });
  given += GiveOffered(/*all=*/false);
  return given + sink_.ReleaseBelow();
}

void IdleMarket::Close() noexcept {
  ForEachEnded([](IdleMarket& ended) { ended.Close(); });
  loans_.Close();
  GiveOffered(/*all=*/true);
  sink_.ReleaseBelow();
}

void IdleMarket::AddEnded(const std::weak_ptr<IdleMarket>& ended) {
  const std::lock_guard<std::mutex> guard(ended_mutex_);
  std::erase_if(ended_, [](const auto& one) { return one.expired(); });
  ended_.push_back(ended);
}

void IdleMarket::ForEachEnded(
    FunctionRef<void(IdleMarket&)> ask) const noexcept {
  // By position, because the list may change concurrently.
  for (std::size_t i = 0;; ++i) {
    std::shared_ptr<IdleMarket> ended;
    {
      const std::lock_guard<std::mutex> guard(ended_mutex_);
      if (i >= ended_.size()) return;
      ended = ended_[i].lock();
    }
    if (ended != nullptr) ask(*ended);
  }
}

std::size_t IdleMarket::GiveOffered(bool all) noexcept {
  std::size_t given = 0;
  bool has_given = false;
  // A released chunk may be the last loan of a retired holder, which then
  // releases its memory.
  do {
    if (loans_.has_retired()) {
      loans_.Recall(ChunkHolder::LoanRecall::kWait, HolderList::Asked::kAll);
    }
    const std::size_t ended = loans_.ReleaseRetired();
    has_given = ended != 0;
    given +=
        ended + offered_.GiveAll(
                    all,
                    [this](const OfferedChunks::Entry& offered, bool over) {
                      return sink_.Give(offered, over);
                    },
                    has_given);
  } while (has_given);
  return given;
}

ChunkHolder::IdleInfo IdleMarket::Idle() const noexcept {
  ChunkHolder::IdleInfo sum;
  sum.bytes = sum.bytes_with_lent = offered_.Bytes();
  sum.system_bytes = offered_.Bytes(kSystemStepBytes);
  holders_.ForEach([&](ChunkHolder& holder) {
    const ChunkHolder::IdleInfo idle = holder.Idle(/*fit_bytes=*/0);
    sum.bytes += idle.bytes;
    sum.bytes_with_lent += idle.bytes_with_lent;
    sum.system_bytes += idle.system_bytes;
  });
  ForEachEnded([&](const IdleMarket& ended) {
    const ChunkHolder::IdleInfo idle = ended.Idle();
    sum.bytes += idle.bytes_with_lent;
    sum.bytes_with_lent += idle.bytes_with_lent;
    sum.system_bytes += idle.system_bytes;
  });
  if (const auto held = budget_.driver_held()) {
    const std::size_t bytes = held->IdleBytes();
    sum.bytes_with_lent += bytes;
    sum.system_bytes += bytes;
  }
  return sum;
}

bool IdleMarket::IsUnused() const noexcept {
  const std::uint64_t changes = budget_.changes();
  std::size_t idle = offered_.Bytes();
  holders_.ForEach(
      [&](ChunkHolder& holder) { idle += holder.Idle(/*fit_bytes=*/0).bytes; });
  ForEachEnded(
      [&](const IdleMarket& ended) { idle += ended.Idle().bytes_with_lent; });
  return budget_.claimed_bytes() == idle && budget_.changes() == changes;
}

void IdleMarket::AppendBlocks(const std::set<const Allocator*>& listed,
                              std::vector<BlockInfo>& blocks) const {
  const HolderList::Round round = holders_.RoundOf(HolderList::Asked::kAll);
  for (std::size_t i = 0; i < round.count; ++i) {
    HolderList::Entry& entry = round[i];
    const CallGate::Pass pass(entry.gate);
    if (!pass || listed.contains(entry.holder->identity().layer)) continue;
    entry.holder->AppendBlocks(blocks);
  }
}

IdleMarket::Found IdleMarket::FindIdle(const HolderList::Round& round,
                                       std::size_t bytes) noexcept {
  Found found;
  // Chunks have at least one byte; 0 would skip the search for sizes.
  const std::size_t fit_bytes = std::max<std::size_t>(bytes, 1);
  for (std::size_t i = 0; i < round.count; ++i) {
    HolderList::Entry& entry = round[i];
    const CallGate::Pass pass(entry.gate);
    if (!pass) continue;
    ChunkHolder& holder = *entry.holder;
    const ChunkHolder::IdleInfo idle = holder.Idle(fit_bytes);
    if (idle.bytes == 0) continue;
    found.asked_last = &entry;
    if (!holder.IdleIsDone()) continue;
    found.bytes += idle.bytes;
    found.others =
        std::max(found.others, std::min(idle.largest, found.largest));
    if (idle.largest > found.largest) {
      found.largest = idle.largest;
      found.of_largest = &entry;
    }
    const std::size_t fit = idle.best_fit;
    if (fit != 0 && (found.fit == 0 || fit < found.fit)) {
      found.fit = fit;
      found.of_fit = &entry;
    }
  }
  return found;
}

bool IdleMarket::Found::IsDone(HolderList::Entry& entry) const {
  return &entry == asked_last || entry.holder->IdleIsDone();
}

std::size_t IdleMarket::GiveFit(const Found& found) noexcept {
  const CallGate::Pass pass(found.of_fit->gate);
  if (!pass) return 0;
  ChunkHolder& holder = *found.of_fit->holder;  // valid while the pass is held
  if (holder.Idle(found.fit).best_fit != found.fit ||
      !found.IsDone(*found.of_fit)) {
    return 0;
  }
  return holder.GiveBackBestFit(found.fit);
}

std::size_t IdleMarket::GiveLargest(Found found, const HolderList::Round& round,
                                    std::size_t bytes) noexcept {
  // Release from the holder with the largest chunk all chunks that are at least
  // as large as those of the others. If there are none, another thread took
  // them.
  std::size_t given = 0;
  while (found.of_largest != nullptr) {
    std::size_t got = 0;
    {
      const CallGate::Pass pass(found.of_largest->gate);
      if (pass && found.IsDone(*found.of_largest)) {
        got =
            found.of_largest->holder->GiveBackDone(bytes - given, found.others);
      }
    }
    given += got;
    if (got == 0 || given >= bytes) break;
    found = FindIdle(round, bytes);
  }
  return given;
}

std::size_t IdleMarket::GiveBackBeforeGrowth(std::size_t bytes,
                                             double limit) noexcept {
  const auto allowed = limit * static_cast<double>(budget_.held_bytes()) -
                       static_cast<double>(given_back_bytes_.load());
  if (allowed < static_cast<double>(bytes)) return 0;
  const HolderList::Round round = holders_.RoundOf(HolderList::Asked::kSome);
  const Found found = FindIdle(round, bytes);
  if (found.bytes < bytes || found.fit / kMostGivenBack > bytes) return 0;
  const std::size_t given = found.of_fit != nullptr
                                ? GiveFit(found)
                                : GiveLargest(found, round, bytes);
  given_back_bytes_ += given;
  return given;
}

}  // namespace strata
