// How VirtualMemoryAllocator grows.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "strata/allocation/system/device_allocator.h"
#include "strata/base/size.h"
#include "strata/strategy/virtual_memory/virtual_memory_allocator.h"

namespace strata {
namespace {

// Attempts of one growth, between which other threads may take what it found.
constexpr int kMostAttempts = 64;

}  // namespace

bool VirtualMemoryAllocator::GrowByPages(Pool own, std::size_t size,
                                         Block** block,
                                         Failure& failure) noexcept {
  if (device_ == nullptr) return false;
  Effort effort;
  // The addresses of a graph must stay what they were when it was captured.
  effort.may_move = !IsOfGraphs();
  return GrowWith(effort, own, size, block, failure);
}

bool VirtualMemoryAllocator::GrowWith(Effort effort, Pool own, std::size_t size,
                                      Block** block,
                                      Failure& failure) noexcept {
  const bool is_capturing = IsDuringCapture();
  if (!is_capturing) UnmapRetired(UnmapsOfGrowth(size));
  GrowthPlan plan;
  plan.lacks_host_memory = true;
  if (!Extend(plan)) {
    failure.reason = Failure::Reason::kHostMemory;
    return true;
  }
  bool gave_own = IsOfGraphs();
  bool has_new_range = false;
  for (int i = 0; i < kMostAttempts; ++i) {
    effort.room_bytes =
        effort.may_create ? pool().budget().RoomBytes(device_) : 0;
    Attempt attempt = PlanUnderLock(own, size, effort, plan, block);
    if (attempt == Attempt::kPlanned) {
      attempt = Execute(own, plan, block, failure);
    }
    switch (attempt) {
      case Attempt::kServed:
        return true;
      case Attempt::kNoAddresses:
        if (AddRange(own, size)) {
          has_new_range = true;
          continue;
        }
        // Beyond the bound on address space, chunks serve; but not where only
        // memory is short.
        if (!effort.only_tails) return false;
        if (MayTryAgain(effort, failure)) continue;
        break;
      case Attempt::kAgain:
        if (Extend(plan)) continue;
        failure.reason = Failure::Reason::kHostMemory;
        break;
      case Attempt::kShort:
        effort.lacks_bytes = plan.short_bytes + plan.new_bytes;
        if (MayTryAgain(effort, failure)) continue;
        break;
      case Attempt::kFailed:
        effort.lacks_bytes = plan.new_bytes;
        if (failure.IsExhaustion() && AskForLess(plan, effort)) continue;
        break;
      case Attempt::kNoMove:
        effort.may_move = false;
        effort.only_tails = false;
        continue;
      case Attempt::kPlanned:
        break;
    }
    if (!failure.IsExhaustion() || is_capturing ||
        failure.reason == Failure::Reason::kHostMemory) {
      break;
    }
    if (!MakeRoom(AlignUp(size, kPageBytes), effort, &gave_own)) break;
    effort = Effort{.may_move = effort.may_move,
                    .is_one_handle = effort.is_one_handle};
  }
  if (has_new_range) FreeRanges();
  failure.exceeds_idle = failure.IsExhaustion() && !MayEverFit(plan, effort);
  failure.layer = name();
  failure.place = place();
  return true;
}

bool VirtualMemoryAllocator::MayTryAgain(Effort& effort,
                                         Failure& failure) noexcept {
  // At the end of a range any free handle can move.
  if (effort.may_move && !effort.only_tails) {
    effort.only_tails = true;
    return true;
  }
  effort.only_tails = false;
  // The device has refused, and `failure` says so.
  if (!effort.may_create) return false;
  return !ExplainShortage(effort.lacks_bytes, failure);
}

bool VirtualMemoryAllocator::MayEverFit(const GrowthPlan& plan,
                                        const Effort& effort) noexcept {
  std::size_t needed = effort.lacks_bytes + plan.moved_bytes;
  const std::size_t room = pool().budget().RoomBytes(device_);
  const std::size_t idle = pool().IdleBytes();
  const auto joined = LockJoined();
  ForEachFreeHandle([&](const Block&, const PageHandle& handle) {
    if (plan.target.Overlaps(handle)) needed += handle.bytes;
  });
  // Handles that the request touches in part are larger than it needs: if all
  // idle memory is released, new pages serve it.
  if (plan.target.range != nullptr) {
    const auto size =
        static_cast<std::size_t>(plan.target.end - plan.target.begin);
    needed = std::min(needed, AlignUp(size, kPageBytes));
  }
  return room >= needed || idle >= needed - room;
}

bool VirtualMemoryAllocator::AskForLess(const GrowthPlan& plan,
                                        Effort& effort) noexcept {
  if (!effort.may_create) return false;
  effort.only_tails = false;
  const std::size_t room = pool().budget().RoomBytes(device_);
  // Others may have taken the memory.
  if (++effort.refusals == 1 || room < effort.room_bytes) return true;
  effort.may_create =
      effort.most_handle_bytes > kPageBytes &&
      vmm_.HandleBytes(room, plan.target.missing_bytes) > kPageBytes;
  effort.most_handle_bytes = kPageBytes;
  return true;
}

bool VirtualMemoryAllocator::MakeRoom(std::size_t bytes, const Effort& effort,
                                      bool* gave_own) noexcept {
  const auto room_now = [&] {
    return effort.may_create ? pool().budget().RoomBytes(device_) : 0;
  };
  // Other streams lose the memory that they release, so they release no more
  // than the plan lacks.
  const std::size_t lacks =
      effort.lacks_bytes - std::min(effort.lacks_bytes, room_now());
  if (pool().GiveBackOfOthers(lacks != 0 ? lacks : bytes, lacks, *this) != 0) {
    return true;
  }
  if (std::exchange(*gave_own, true)) return false;
  // Handles that are too large for the hole; nothing unless they suffice.
  const std::size_t idle = IdlePageBytes();
  return idle >= bytes - std::min(bytes, room_now()) &&
         ReleaseFree(bytes, Wait::kForStream) != 0;
}

bool VirtualMemoryAllocator::ExplainShortage(std::size_t bytes,
                                             Failure& failure) noexcept {
  if (!pool().budget().ClaimPages(bytes, failure)) return true;
  pool().budget().UnclaimPages(bytes, /*was_refused=*/false);
  if (pool().budget().HasRoomNow(*device_, bytes)) return false;
  ExplainRefusal(Status::kMemoryAllocation, bytes, failure);
  return true;
}

void VirtualMemoryAllocator::ExplainRefusal(Status status, std::size_t bytes,
                                            Failure& failure) noexcept {
  failure = Failure();
  ExplainDeviceFailure(*device_, status, failure);
  pool().budget().Explain(failure, bytes);
}

std::unique_ptr<AddressRange> VirtualMemoryAllocator::ReserveRange(
    std::size_t bytes) noexcept {
  if (!pool().budget().ClaimAddresses(bytes, vmm_.most_address_bytes())) {
    return nullptr;
  }
  std::unique_ptr<AddressRange> range =
      AddressRange::Reserve(*device_, place(), bytes);
  if (range == nullptr) pool().budget().UnclaimAddresses(bytes);
  return range;
}

bool VirtualMemoryAllocator::AddRange(Pool own, std::size_t size) noexcept {
  const auto pool_number = static_cast<std::size_t>(own);
  std::size_t last_bytes = 0;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    last_bytes = last_range_bytes_[pool_number];
  }
  std::size_t free_bytes = 0;
  std::size_t device_bytes = 0;
  if (last_bytes == 0 &&
      device_->MemGetInfo(&free_bytes, &device_bytes) != Status::kSuccess) {
    return false;
  }
  RecordStock supply(RecordSlab::Instance());
  if (!supply.Fill(1)) return false;
  const bool is_small = own == Pool::kSmall;
  const std::size_t least = VmmPolicy::LeastRangeBytes(size);
  std::size_t bytes =
      VmmPolicy::RangeBytes(device_bytes, last_bytes, size, is_small);
  std::unique_ptr<AddressRange> range = ReserveRange(bytes);
  while (range == nullptr && bytes > least) {
    bytes = std::max(AlignUp(bytes / 2, kPageBytes), least);
    range = ReserveRange(bytes);
  }
  if (range == nullptr) return false;
  const auto joined = LockJoined();
  records_.TakeFrom(supply);
  range->pool = static_cast<std::uint8_t>(own);
  range->owner = this;
  Block* const hole = records_.Pop();
  blocks_.AddRange(range.release(), hole);
  HolesOf(*hole).Insert(hole);
  last_range_bytes_[pool_number] = bytes;
  ++range_count_;
  return true;
}

bool VirtualMemoryAllocator::Extend(GrowthPlan& plan) const noexcept {
  constexpr std::size_t kLeast = 64;
  if (!plan.lacks_host_memory) {
    RecordStock supply(RecordSlab::Instance());
    return supply.Fill(plan.records);
  }
  try {
    plan.pieces.reserve(2 * plan.pieces.capacity() + kLeast);
    plan.free_handles.Reserve(2 * plan.free_handles.capacity() + kLeast);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

VirtualMemoryAllocator::Attempt VirtualMemoryAllocator::PlanUnderLock(
    Pool own, std::size_t size, const Effort& effort, GrowthPlan& plan,
    Block** block) noexcept {
  const auto joined = LockJoined();
  // To cut what another thread may have freed, or grown.
  if (!records_.Has(1)) {
    plan.Clear();
    plan.records = 1;
    return Attempt::kAgain;
  }
  if (effort.is_one_handle) return PlanHandle(own, size, effort, plan);
  *block = FindAndCarve(own, size);
  // That looks at the first blocks of a class only.
  if (*block == nullptr) *block = CarveAny(own, size, Cuts::kAsPolicy);
  if (*block != nullptr) return Attempt::kServed;
  if (taken_bytes_ + size > peak_taken_bytes_) {
    peak_taken_bytes_ = taken_bytes_ + size;
    moved_since_peak_ = 0;
    moves_since_peak_ = 0;
    created_while_lent_ = 0;
  }
  plan.Clear();
  plan.target = FindGrowthTarget(holes_[static_cast<std::size_t>(own)], size,
                                 effort.only_tails);
  if (plan.target.range == nullptr) return Attempt::kNoAddresses;
  GrowthMeans means;
  means.budget_bytes = effort.room_bytes;
  means.handle_bytes =
      own == Pool::kSmall
          ? kPageBytes
          : std::min(
                vmm_.HandleBytes(effort.room_bytes, plan.target.missing_bytes),
                effort.most_handle_bytes);
  means.quantum_bytes =
      own == Pool::kSmall
          ? kPageBytes
          : VmmPolicy::QuantumBytes(means.handle_bytes, effort.room_bytes,
                                    blocks_.chunk_bytes());
  means.prefer_free = vmm_.PrefersFree(
      plan.target.missing_bytes, effort.room_bytes, held(), credit_bytes_);
  const bool needs_free =
      means.prefer_free || plan.target.missing_bytes > means.budget_bytes;
  if (effort.may_move && needs_free && !CollectFree(plan)) {
    plan.lacks_host_memory = true;
    return Attempt::kAgain;
  }
  if (!ChoosePieces(means, plan)) {
    return plan.lacks_host_memory ? Attempt::kAgain : Attempt::kShort;
  }
  // Two cuts at the edges, two for the block, two for each handle.
  plan.records = 4;
  for (const GrowthPiece& piece : plan.pieces) {
    if (!piece.is_new()) plan.records += 2;
  }
  if (!records_.Has(plan.records)) return Attempt::kAgain;
  TakePlanned(plan);
  // Others may use up the stock while the driver is called.
  for (int i = 0; i < 2; ++i) plan.spare.Push(records_.Pop());
  return Attempt::kPlanned;
}

VirtualMemoryAllocator::Attempt VirtualMemoryAllocator::Execute(
    Pool own, GrowthPlan& plan, Block** block, Failure& failure) noexcept {
  if (plan.moved_bytes != 0 && !vmm_.may_alias() && !AwaitStream()) {
    static_cast<void>(Undo(plan));
    return Attempt::kNoMove;
  }
  if (plan.new_bytes != 0 &&
      !pool().budget().ClaimPages(plan.new_bytes, failure)) {
    return Undo(plan);
  }
  const Status status = MapPieces(plan.pieces);
  std::size_t created_bytes = 0;
  std::size_t created = 0;
  for (const GrowthPiece& piece : plan.pieces) {
    if (!piece.is_new() || piece.handle == nullptr) continue;
    created_bytes += piece.bytes;
    ++created;
  }
  // After a failure, these are the handles that the driver does not take back.
  if (created != 0) pool().budget().HoldPages(created_bytes, created);
  if (status != Status::kSuccess) {
    if (plan.new_bytes != 0) {
      pool().budget().UnclaimPages(plan.new_bytes - created_bytes,
                                   /*was_refused=*/true);
    }
    ExplainRefusal(status, plan.new_bytes, failure);
    return Undo(plan);
  }
  for (const GrowthPiece& piece : plan.pieces) {
    pool().TellOfRange(piece.at, piece.bytes, +1);
  }
  const Status granted = PublishGranted(
      [&](std::uint64_t version) {
        for (const GrowthPiece& piece : plan.pieces) {
          if (piece.handle->access_version < version) {
            return Outdated{piece.handle, piece.at};
          }
        }
        return Outdated();
      },
      [&] { *block = CommitPlan(plan, own); });
  if (granted != Status::kSuccess) {
    // The old mappings of moved handles have older grants than the new ones.
    for (const GrowthPiece& piece : plan.pieces) {
      piece.handle->access_version = 0;
    }
    ExplainRefusal(granted, plan.new_bytes, failure);
    return Undo(plan);
  }
  CatchUpGrants();
  return Attempt::kServed;
}

VirtualMemoryAllocator::Attempt VirtualMemoryAllocator::Undo(
    GrowthPlan& plan) noexcept {
  if (std::any_of(plan.pieces.begin(), plan.pieces.end(),
                  [](const GrowthPiece& piece) { return piece.is_mapped; })) {
    // Each is a block of its own; the slab keeps the records at hand.
    RecordStock supply(RecordSlab::Instance());
    static_cast<void>(supply.Fill(plan.pieces.size()));
  }
  RestoreGranted(
      [&](std::uint64_t version) { return OutdatedOf(plan, version); },
      [&] { UndoPlan(plan); });
  return Attempt::kFailed;
}

}  // namespace strata
