#include "strata/strategy/buddy/buddy_source.h"

#include <algorithm>
#include <utility>

#include "strata/base/store_max.h"

namespace strata {
namespace {

// Alignment of every block; all systems guarantee it.
constexpr std::size_t kBlockAlignmentBytes = 256;

}  // namespace

BuddySource::BuddySource(const char* layer, std::shared_ptr<ChunkPool> pool,
                         std::shared_ptr<ChainStream> stream,
                         const BuddySizes& sizes)
    : layer_(layer),
      pool_(std::move(pool)),
      stream_(std::move(stream)),
      sizes_(sizes) {}

Failure BuddySource::Refusal(Failure::Reason reason,
                             const Request& request) const {
  Failure failure;
  failure.reason = reason;
  failure.layer = layer_;
  failure.place = pool_->place();
  failure.requested_bytes = request.bytes;
  return failure;
}

bool BuddySource::Available(std::size_t& available,
                            Failure& failure) const noexcept {
  available = 0;
  const PlaceKind kind = pool_->place().kind;
  Device* device = stream_->memory_device();
  if (device == nullptr ||
      (kind != PlaceKind::kDevice && kind != PlaceKind::kManaged)) {
    return true;
  }
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const Status status = device->MemGetInfo(&free_bytes, &total_bytes);
  if (status != Status::kSuccess) {
    failure = Refusal(Failure::Reason::kDevice, Request());
    failure.status = status;
    failure.detail = "the device does not say what memory it has";
    return false;
  }
  if (pool_->limit_bytes() != 0) {
    const std::size_t reserved = pool_->reserved_bytes();
    free_bytes =
        std::min(free_bytes, pool_->limit_bytes() -
                                 std::min(reserved, pool_->limit_bytes()));
  }
  available = sizes_.Available(free_bytes);
  return true;
}

bool BuddySource::Measure(Failure& failure) noexcept {
  if (max_block_bytes() != 0) return true;
  std::size_t available = 0;
  if ((sizes_.NeedsAvailable(true) || sizes_.NeedsAvailable(false)) &&
      !Available(available, failure)) {
    return false;
  }
  // At least a step of the system. Otherwise, if the device is full now, every
  // later request would be a system call.
  StoreMax(max_block_bytes_,
           std::max({sizes_.RefillBytes(true, available),
                     sizes_.RefillBytes(false, available), kSystemStepBytes}));
  return true;
}

BuddySource::Taken BuddySource::TakeChunk(std::size_t size, bool is_first,
                                          Failure& failure) noexcept {
  std::size_t available = 0;
  if (!Available(available, failure)) return {};
  const std::size_t refill = sizes_.RefillBytes(is_first, available);
  StoreMax(max_block_bytes_, refill);
  const std::size_t wanted = std::max(refill, size);
  for (const std::size_t bytes : sizes_.GrowthSizes(size, wanted, available)) {
    if (bytes == 0) break;
    if (Allocation* memory = Take(bytes, failure)) {
      return {memory, bytes < wanted};
    }
    if (!failure.IsExhaustion()) break;
  }
  return {};
}

bool BuddySource::Claim(std::size_t bytes, Failure& failure) noexcept {
  const std::size_t cap = sizes_.cap_bytes();
  std::size_t held = held_bytes_.load();
  do {
    if (cap != 0 && (held > cap || bytes > cap - held)) {
      failure = Refusal(Failure::Reason::kLimit, Request{bytes});
      failure.rounded_bytes = bytes;
      failure.limit_bytes = cap;
      failure.limit_flag = "--fraction_of_cuda_pinned_memory_to_use";
      failure.reserved_bytes = held;
      return false;
    }
  } while (!held_bytes_.compare_exchange_weak(held, held + bytes));
  return true;
}

Allocation* BuddySource::Take(std::size_t size, Failure& failure) noexcept {
  if (!Claim(size, failure)) return nullptr;
  Allocation* memory = pool_->TryAllocateFor(
      Request{size, kBlockAlignmentBytes}, *stream_, failure);
  // The pool may have provided a larger one.
  held_bytes_ += (memory != nullptr ? memory->size() : 0) - size;
  if (memory == nullptr && pool_->reclaimer() != nullptr) {
    // Other requests may have met the cap meanwhile.
    pool_->reclaimer()->retry().NotifyReturn(size, Failure::Reason::kLimit);
  }
  return memory;
}

std::size_t BuddySource::Give(Allocation* memory, bool is_done) noexcept {
  const std::size_t bytes = memory->size();
  if (!is_done) {
    Offer(memory);
    return 0;
  }
  const std::size_t given = pool_->Return(memory);
  held_bytes_ -= bytes;
  return given;
}

void BuddySource::Offer(Allocation* memory) noexcept {
  held_bytes_ -= memory->size();
  pool_->Offer(memory, *stream_);
}

}  // namespace strata
