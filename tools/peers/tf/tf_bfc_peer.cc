#include "strata/tools/peers/tf/tf_bfc_peer.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>

#include "strata/base/size.h"
#include "strata/tools/peers/registry.h"

namespace strata::peers {
namespace {

constexpr std::size_t kTfUnitBytes = 256;                 // R1
constexpr std::size_t kMostWastedBytes = Mebibytes(128);  // R10
constexpr std::size_t kFirstRegionBytes = Mebibytes(2);   // R15

std::size_t LimitOf(Device& device, const TfBfcOptions& options) {
  if (options.memory_limit_bytes != 0) return options.memory_limit_bytes;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  RequireSuccess(device.MemGetInfo(&free_bytes, &total_bytes),
                 DeviceCall::kMemGetInfo);
  return total_bytes;
}

std::size_t FirstHint(std::size_t limit_bytes, const TfBfcOptions& options) {
  return AlignUp(options.allow_growth ? std::min(limit_bytes, kFirstRegionBytes)
                                      : limit_bytes,
                 kTfUnitBytes);
}

}  // namespace

TfBfcPeer::TfBfcPeer(Device& device, const TfBfcOptions& options)
    : device_(device),
      options_(options),
      limit_bytes_(LimitOf(device, options)),
      bins_(kBins, Bin(ChunkLess(&chunks_))),
      hint_bytes_(FirstHint(limit_bytes_, options)) {}

TfBfcPeer::~TfBfcPeer() {
  // A failure shows as a leak of the device.
  for (const TfBfcRegions::Region& region : regions_.List()) {
    device_.MemFree(region.begin);
  }
}

bool TfBfcPeer::Allocate(std::size_t bytes, const Stream& stream,
                         PeerBlock* block) {
  if (bytes == 0) {  // R2
    *block = PeerBlock{};
    return true;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const DevicePtr address = AllocateLocked(bytes, 0);
  if (address == 0) return false;
  const Chunk& chunk = chunks_[regions_.HandleOf(address)];
  *block = {address, chunk.bytes, stream, nullptr};
  return true;
}

void TfBfcPeer::Free(const PeerBlock& block) {
  if (block.address != 0) DeallocateRaw(block.address);
}

PeerStats TfBfcPeer::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

TfBfcPeaks TfBfcPeer::peaks() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peaks_;
}

DevicePtr TfBfcPeer::AllocateRaw(std::size_t bytes,
                                 std::uint64_t freed_before) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return AllocateLocked(bytes, freed_before);
}

// R7.
DevicePtr TfBfcPeer::AllocateLocked(std::size_t bytes,
                                    std::uint64_t freed_before) {
  const std::optional<std::size_t> rounded =
      CheckedAlignUp(bytes, kTfUnitBytes);
  if (!rounded) return 0;
  const auto find = [&] { return Find(*rounded, bytes, freed_before); };
  if (!waiting_.empty()) MergeStamped(0);
  DevicePtr address = find();
  if (address == 0 && Extend(*rounded)) address = find();
  if (address == 0 && freed_before == 0 && !waiting_.empty() &&
      MergeStamped(*rounded)) {
    address = find();
  }
  if (address == 0 && FreeIdleRegions(*rounded) && Extend(*rounded)) {
    address = find();
  }
  return address;
}

// R8, R9, R12. The walk is linear in each bin, as in the original.
DevicePtr TfBfcPeer::Find(std::size_t rounded, std::size_t bytes,
                          std::uint64_t freed_before) {
  for (int bin = BinOf(rounded); bin < kBins; ++bin) {
    for (const Handle handle : bins_[static_cast<std::size_t>(bin)]) {
      if (chunks_[handle].bytes < rounded) continue;
      if (freed_before != 0 && freed_before < chunks_[handle].freed_at) {
        continue;
      }
      RemoveFromBin(handle);
      const std::size_t size = chunks_[handle].bytes;
      if (size >= 2 * rounded || size - rounded >= kMostWastedBytes) {  // R10
        Split(handle, rounded);
      }
      Chunk& chunk = chunks_[handle];
      chunk.requested_bytes = bytes;
      chunk.allocation_id = next_id_++;
      ++stats_.allocations;
      stats_.in_use_bytes += chunk.bytes;
      peaks_.in_use_bytes = std::max(peaks_.in_use_bytes, stats_.in_use_bytes);
      peaks_.allocation_bytes =
          std::max<std::uint64_t>(peaks_.allocation_bytes, chunk.bytes);
      return chunk.address;
    }
  }
  return 0;
}

// R11. The rest may touch a free chunk that it must not join yet.
void TfBfcPeer::Split(Handle handle, std::size_t bytes) {
  const Handle rest_handle = NewChunk();
  Chunk& chunk = chunks_[handle];
  Chunk& rest = chunks_[rest_handle];
  rest.address = chunk.address + bytes;
  rest.bytes = chunk.bytes - bytes;
  rest.freed_at = chunk.freed_at;
  rest.previous = handle;
  rest.next = chunk.next;
  chunk.bytes = bytes;
  chunk.next = rest_handle;
  if (rest.next != kNone) chunks_[rest.next].previous = rest_handle;
  regions_.SetHandle(rest.address, rest_handle);
  InsertIntoBin(rest_handle);
}

// R45.
void TfBfcPeer::DeallocateRaw(DevicePtr address) {
  Deallocate(address);
  const std::lock_guard<std::mutex> lock(retry_mutex_);
  freed_.notify_all();
}

// R29.
void TfBfcPeer::Deallocate(DevicePtr address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Handle handle = regions_.HandleOf(address);
  Chunk& chunk = chunks_[handle];
  stats_.in_use_bytes -= chunk.bytes;
  chunk.allocation_id = kFree;
  chunk.requested_bytes = 0;
  if (options_.timestamps) {
    chunk.freed_at = ++frees_;
    InsertIntoBin(handle);
    waiting_.push_back(address);
  } else {
    InsertIntoBin(Coalesce(handle, /*ignores_stamps=*/false));
  }
}

void TfBfcPeer::SetSafeFrontier(std::uint64_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  safe_frontier_ = std::max(safe_frontier_, count);  // R37
}

// R3.
int TfBfcPeer::BinOf(std::size_t bytes) {
  const std::size_t units = std::max(bytes, kTfUnitBytes) / kTfUnitBytes;
  return std::min(kBins - 1, static_cast<int>(std::bit_width(units)) - 1);
}

TfBfcPeer::Handle TfBfcPeer::NewChunk() {
  if (unused_ == kNone) {
    chunks_.emplace_back();
    return chunks_.size() - 1;
  }
  const Handle handle = unused_;
  unused_ = chunks_[handle].next;
  chunks_[handle] = Chunk{};
  return handle;
}

void TfBfcPeer::DeleteChunk(Handle handle) {
  regions_.SetHandle(chunks_[handle].address, kNone);
  chunks_[handle] = Chunk{};
  chunks_[handle].next = unused_;
  unused_ = handle;
}

void TfBfcPeer::InsertIntoBin(Handle handle) {
  const int bin = BinOf(chunks_[handle].bytes);
  chunks_[handle].bin = bin;
  bins_[static_cast<std::size_t>(bin)].insert(handle);
}

void TfBfcPeer::RemoveFromBin(Handle handle) {
  bins_[static_cast<std::size_t>(chunks_[handle].bin)].erase(handle);
  chunks_[handle].bin = kNoBin;
}

// R30.
void TfBfcPeer::Merge(Handle first, Handle second) {
  Chunk& left = chunks_[first];
  const Chunk& right = chunks_[second];
  left.bytes += right.bytes;
  left.freed_at = std::max(left.freed_at, right.freed_at);
  left.next = right.next;
  if (left.next != kNone) chunks_[left.next].previous = first;
  DeleteChunk(second);
}

bool TfBfcPeer::IsJoinable(Handle handle, bool ignores_stamps) const {
  if (handle == kNone || chunks_[handle].in_use()) return false;
  return ignores_stamps || chunks_[handle].freed_at == 0;
}

TfBfcPeer::Handle TfBfcPeer::Coalesce(Handle handle, bool ignores_stamps) {
  if (!ignores_stamps && chunks_[handle].freed_at > 0) return handle;
  const Handle next = chunks_[handle].next;
  if (IsJoinable(next, ignores_stamps)) {
    RemoveFromBin(next);
    Merge(handle, next);
  }
  const Handle previous = chunks_[handle].previous;
  if (!IsJoinable(previous, ignores_stamps)) return handle;
  RemoveFromBin(previous);
  Merge(previous, handle);
  return previous;
}

std::unique_ptr<Peer> MakeTfBfcPeer(Device& device) {
  return std::make_unique<TfBfcPeer>(device, TfBfcOptions{});
}

}  // namespace strata::peers
