// The part of ChunkPool for strategies that create and map memory themselves.

#include "strata/allocation/chunk_pool.h"
#include "strata/platform/store_max.h"

namespace strata {

bool ChunkPool::ClaimPages(std::size_t bytes, Failure& failure) noexcept {
  if (!ClaimChunk(bytes, failure)) {
    ++failures_;
    return false;
  }
  if (below_ == nullptr || below_->ClaimPages(bytes, failure)) return true;
  UnclaimChunk(bytes);
  Explain(failure, bytes);
  return false;
}

void ChunkPool::UnclaimPages(std::size_t bytes, bool was_refused) noexcept {
  if (below_ != nullptr) below_->UnclaimPages(bytes, was_refused);
  UnclaimChunk(bytes);
  if (!was_refused) return;
  ++failures_;
  device_room_.Forget();
}

bool ChunkPool::HasRoomNow(Device& device, std::size_t bytes) noexcept {
  for (ChunkPool* pool = this; pool != nullptr; pool = pool->below_) {
    pool->device_room_.Forget();
  }
  if (RoomBytes(&device) >= bytes) return true;
  for (ChunkPool* pool = this; pool != nullptr; pool = pool->below_) {
    ++pool->failures_;
  }
  return false;
}

void ChunkPool::HoldPages(std::size_t bytes, std::size_t handles) noexcept {
  if (below_ != nullptr) below_->HoldPages(bytes, handles);
  StoreMax(peak_reserved_bytes_,
           (reserved_bytes_ += bytes) + unreturned_bytes());
  allocations_ += handles;
}

void ChunkPool::ReturnPages(std::size_t bytes,
                            FunctionRef<bool()> give) noexcept {
  // As GiveBelow: what is counted never exceeds what the system has given.
  reserved_bytes_ -= bytes;
  bool is_given = false;
  if (below_ != nullptr) {
    below_->ReturnPages(bytes, [&] { return is_given = give(); });
  } else {
    is_given = give();
  }
  if (!is_given) {
    reserved_bytes_ += bytes;
    return;
  }
  chunk_bytes_ -= bytes;
  claimed_bytes_ -= bytes;
  ++frees_;
  // Others may have taken, or given back, memory meanwhile.
  device_room_.Forget();
  NotifyIdle();
}

void ChunkPool::TellOfRange(void* data, std::size_t bytes,
                            int count_change) noexcept {
  if (below_ != nullptr) below_->TellOfRange(data, bytes, count_change);
  Visit(data, bytes, count_change);
}

bool ChunkPool::ClaimAddresses(std::size_t bytes, std::size_t most) noexcept {
  if (below_ != nullptr) return below_->ClaimAddresses(bytes, most);
  std::size_t claimed = address_bytes_.load();
  do {
    if (claimed > most || bytes > most - claimed) return false;
  } while (!address_bytes_.compare_exchange_weak(claimed, claimed + bytes));
  return true;
}

void ChunkPool::UnclaimAddresses(std::size_t bytes) noexcept {
  if (below_ != nullptr) return below_->UnclaimAddresses(bytes);
  address_bytes_ -= bytes;
}

std::size_t ChunkPool::GiveBackOfOthers(std::size_t bytes,
                                        const ChunkHolder& asking) noexcept {
  std::size_t given = GiveOfferedDone(bytes);
  ForEachHolder([&](ChunkHolder& holder) {
    if (given < bytes && &holder != &asking) {
      given += holder.GiveBackDone(bytes - given);
    }
  });
  const std::shared_ptr<DriverHeld> held = driver_held();
  if (held != nullptr && given < bytes) given += held->GiveBack();
  if (below_ != nullptr && given < bytes) {
    given += below_->GiveBackOfOthers(bytes - given, asking);
  }
  return given;
}

}  // namespace strata
