// Growth of BfcAllocator: memory from the system.

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "strata/allocation/system/device_allocator.h"
#include "strata/base/size.h"
#include "strata/strategy/bfc/bfc_allocator.h"

namespace strata {
namespace {

bool Fits(const Allocation& memory, const BfcAsk& ask) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::size_t padding = AlignUp(address, ask.alignment) - address;
  return memory.size() >= ask.rounded + padding;
}

}  // namespace

Block* BfcAllocator::Grow(const BfcAsk& ask, std::uint64_t turns_before,
                          Failure& failure) noexcept {
  const GrowthTurn::Holder turn(turn_);
  if (!turn.has_turn()) {
    failure = Refusal(Failure::Reason::kBadRequest, ask);
    failure.detail = "this thread is growing the pool";
    return nullptr;
  }
  if (turn_.count() != turns_before) {
    Block* block = FindHeld(ask, failure);
    if (block != nullptr || failure.reason == Failure::Reason::kHostMemory) {
      return block;
    }
  }
  if (!KnowsLimit(failure)) return nullptr;
  Block* block = Extend(ask, failure);
  if (block == nullptr) block = FindUnsafe(ask, failure);
  if (block == nullptr && failure.IsExhaustion() &&
      CollectRegions(ask.rounded)) {
    block = Extend(ask, failure);
  }
  return block;
}

bool BfcAllocator::KnowsLimit(Failure& failure) noexcept {
  {
    const std::lock_guard<SpinLock> guard(lock_);
    if (knows_limit_) return true;
  }
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const Status status =
      chain_stream().device()->MemGetInfo(&free_bytes, &total_bytes);
  if (status != Status::kSuccess) {
    failure = Refusal(Failure::Reason::kDevice, BfcAsk());
    failure.status = status;
    failure.detail = "the device does not say how much memory it has";
    return false;
  }
  BfcMemoryLimit limit{total_bytes, total_bytes};
  if (options_.limit_of != nullptr) {
    limit = options_.limit_of(free_bytes, total_bytes);
  }
  const std::size_t pool_limit = pool().limit_bytes();
  // Managed memory may exceed the total; then that is a limit of its own.
  const bool is_all = limit.most_bytes == total_bytes && pool_limit == 0;
  if (pool_limit != 0) {
    limit.most_bytes = std::min(limit.most_bytes, pool_limit);
  }
  const std::lock_guard<SpinLock> guard(lock_);
  StartPlan(limit, is_all);
  return true;
}

Block* BfcAllocator::Extend(const BfcAsk& ask, Failure& failure) noexcept {
  // Padding for alignment that the system does not provide. The fast index
  // ignores where a block begins, so it always needs padding.
  const bool is_compat = options_.placement == BfcPlacement::kCompat;
  const std::size_t aligned = std::min(
      ask.alignment, std::max(pool().max_alignment(), kBfcGranuleBytes));
  const std::size_t padding =
      ask.alignment - (is_compat ? aligned : kBfcGranuleBytes);
  std::size_t needed = ask.rounded + padding;
  std::optional<std::size_t> bytes;
  bool may_grow = true;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    const std::size_t held = arena_.region_bytes() + leaving_bytes_;
    // Two ends share one region (R63).
    may_grow = !options_.has_two_ends || held == 0;
    if (may_grow) bytes = plan_.FirstAsk(needed, held);
    if (may_grow && !bytes && padding != 0 && is_compat) {
      // The system may align the memory by chance.
      needed = ask.rounded;
      bytes = plan_.FirstAsk(needed, held);
    }
  }
  if (!bytes) {
    failure = LimitRefusal(ask, needed);
    if (!may_grow) failure.detail = "two ends have one region between them";
    return nullptr;
  }
  // Allocate all host memory before the system call.
  std::unique_ptr<BfcRegion> region(new (std::nothrow) BfcRegion());
  RecordStock supply(RecordSlab::Noted());
  if (region == nullptr || !supply.Fill()) {
    failure = Refusal(Failure::Reason::kHostMemory, ask);
    return nullptr;
  }
  Allocation* memory =
      TakeFromSystem(Request{*bytes, aligned}, needed, failure);
  if (memory != nullptr && !Fits(*memory, ask)) {
    pool().DoFree(memory);
    memory = nullptr;
    failure = LimitRefusal(ask, ask.rounded + padding);
  }
  if (memory == nullptr) return nullptr;
  return Publish(memory, std::move(region), ask, supply);
}

Allocation* BfcAllocator::TakeFromSystem(Request request, std::size_t least,
                                         Failure& failure) noexcept {
  Allocation* memory = pool().TryAllocate(request, failure);
  const bool may_ask_for_less =
      options_.backpedal == BfcBackpedal::kAlways || !has_backpedalled_;
  while (memory == nullptr && failure.IsExhaustion() && may_ask_for_less) {
    has_backpedalled_ = true;
    request.bytes = BfcGrowthPlan::Less(request.bytes);  // R18
    if (request.bytes < least) break;
    memory = pool().TryAllocate(request, failure);
  }
  return memory;
}

Block* BfcAllocator::Publish(Allocation* memory,
                             std::unique_ptr<BfcRegion> region,
                             const BfcAsk& ask, RecordStock& supply) noexcept {
  region->memory = memory;
  memory->block()->next = nullptr;  // the next piece of the region
  std::unique_ptr<BfcRegion> absorbed;
  const std::lock_guard<SpinLock> guard(lock_);
  arena_.records().TakeFrom(supply);
  plan_.Grown();
  absorbed.reset(arena_.AddRegion(region.release()));
  return TakeLocked(ask);
}

Failure BfcAllocator::LimitRefusal(const BfcAsk& ask,
                                   std::size_t needed) const {
  Failure failure = Refusal(Failure::Reason::kLimit, ask);
  failure.rounded_bytes = needed;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    failure.limit_bytes = plan_.limit_bytes();
    failure.limit_flag = limit_flag();
    failure.reserved_bytes = arena_.region_bytes() + leaving_bytes_;
    if (!limit_is_all_) return failure;
  }
  // The limit is not ours: all memory of the device is in use.
  failure.reason = Failure::Reason::kDeviceMemory;
  failure.limit_bytes = 0;
  failure.limit_flag = "";
  Device* device = chain_stream().device();
  if (device != nullptr) AddDeviceMemory(*device, failure);
  return failure;
}

bool BfcAllocator::HelpsToCollect(std::size_t rounded) const noexcept {
  std::size_t idle_bytes = 0;
  ForEachIdle([&](const BfcRegion& one) { idle_bytes += one.size; });
  const std::size_t held = arena_.region_bytes() + leaving_bytes_;
  const std::size_t others = held - idle_bytes;
  const std::size_t limit = plan_.limit_bytes();
  return idle_bytes != 0 && rounded <= limit - std::min(limit, others);
}

bool BfcAllocator::CollectRegions(std::size_t rounded) noexcept {
  if (!options_.garbage_collection) return false;  // R31
  {
    const auto joined = LockJoined();
    if (!HelpsToCollect(rounded)) return false;  // R32
  }
  AwaitStamps();
  // A capturing stream cannot be waited for. Its work may still use idle
  // memory, so that memory must not be freed to the driver.
  if (chain_stream().Synchronize() != Status::kSuccess) return false;
  Chunk* idle = nullptr;
  {
    const auto joined = LockJoined();
    if (!HelpsToCollect(rounded)) return false;
    idle = DetachIdle([](const BfcRegion& /*region*/) { return true; });
  }
  ReturnToSystem(idle);
  return true;  // R33
}

}  // namespace strata
