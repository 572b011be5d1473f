#include "strata/strategy/virtual_memory/sharing/imported_memory.h"

#include <stdexcept>

#include "strata/allocation/error.h"
#include "strata/base/log.h"
#include "strata/platform/calls/device_call.h"
#include "strata/strategy/virtual_memory/address_range.h"

namespace strata {
namespace {

// More does not fit into the address space.
constexpr std::size_t kMostHandleSum = std::size_t{1} << 47;

// "piece 2 of 3", for the piece of index 1.
std::string NameOf(std::size_t index, const std::vector<SharedPiece>& pieces) {
  return "piece " + std::to_string(index + 1) + " of " +
         std::to_string(pieces.size());
}

// Throws unless the parts are contiguous when their handles are mapped
// contiguously.
void CheckPieces(const std::vector<SharedPiece>& pieces) {
  if (pieces.empty()) {
    throw std::invalid_argument("Import: there are no pieces");
  }
  std::size_t handle_bytes = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const SharedPiece& piece = pieces[i];
    const bool is_first = i == 0;
    const bool is_last = i + 1 == pieces.size();
    if (piece.fd < 0 || piece.bytes == 0 || piece.handle_bytes == 0 ||
        piece.handle_bytes % kPageBytes != 0 ||
        piece.offset >= piece.handle_bytes ||
        piece.bytes > piece.handle_bytes - piece.offset ||
        (!is_first && piece.offset != 0) ||
        (!is_last && piece.offset + piece.bytes != piece.handle_bytes) ||
        piece.handle_bytes > kMostHandleSum - handle_bytes) {
      throw std::invalid_argument("Import: " + NameOf(i, pieces) +
                                  " is not in the list of an export");
    }
    handle_bytes += piece.handle_bytes;
  }
}

void Require(const std::string& name, DeviceCall call, Status status) {
  if (status == Status::kSuccess) return;
  throw DeviceError("Import: " + name + ": " + DeviceCallName(call), status);
}

}  // namespace

ImportedMemory& ImportedMemory::operator=(ImportedMemory&& other) noexcept {
  if (this == &other) return *this;
  Close();
  owner_ = std::move(other.owner_);
  device_ = std::exchange(other.device_, nullptr);
  range_ = std::exchange(other.range_, 0);
  range_bytes_ = std::exchange(other.range_bytes_, 0);
  mapped_bytes_ = std::exchange(other.mapped_bytes_, 0);
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

ImportedMemory ImportedMemory::Map(
    std::shared_ptr<void> owner, Device& device,
    const std::vector<SharedPiece>& pieces,
    const std::vector<AccessDescriptor>& access) {
  CheckPieces(pieces);
  ImportedMemory memory;
  memory.owner_ = std::move(owner);
  memory.device_ = &device;
  memory.MapAll(pieces, access);
  return memory;
}

void ImportedMemory::MapAll(const std::vector<SharedPiece>& pieces,
                            const std::vector<AccessDescriptor>& access) {
  std::size_t range_bytes = 0;
  for (const SharedPiece& piece : pieces) range_bytes += piece.handle_bytes;
  const std::string all = std::to_string(pieces.size()) + " pieces";
  Require(all, DeviceCall::kReserveRange,
          device_->ReserveRange(&range_, range_bytes, kPageBytes, 0));
  range_bytes_ = range_bytes;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    MapNext(pieces[i], NameOf(i, pieces));
    bytes_ += pieces[i].bytes;
  }
  Require(
      all, DeviceCall::kSetAccess,
      device_->SetAccess(range_, range_bytes_, access.data(), access.size()));
  data_ = reinterpret_cast<std::byte*>(range_) + pieces.front().offset;
}

void ImportedMemory::MapNext(const SharedPiece& piece,
                             const std::string& name) {
  Shareable shareable;
  shareable.fd = piece.fd;
  MemHandle handle;
  Require(name, DeviceCall::kImportMemory,
          device_->ImportMemory(&handle, ShareType::kPosixFd, shareable));
  const Status status =
      device_->MapRange(range_ + mapped_bytes_, piece.handle_bytes, 0, handle);
  if (status == Status::kSuccess) mapped_bytes_ += piece.handle_bytes;
  // A mapping holds the memory. Released twice if the first call fails, because
  // a remaining reference would hold the memory for ever.
  Status released = device_->ReleaseMemory(handle);
  if (released != Status::kSuccess) released = device_->ReleaseMemory(handle);
  Require(name, DeviceCall::kMapRange, status);
  Require(name, DeviceCall::kReleaseMemory, released);
}

void ImportedMemory::Close() noexcept {
  const auto log = [&](const char* call, Status status) {
    STRATA_LOG_IF(Error, status != Status::kSuccess)
        << "imported memory: " << call << " of " << range_bytes_
        << " bytes failed (" << status << "); they are lost";
    return status == Status::kSuccess;
  };
  const bool is_unmapped =
      mapped_bytes_ == 0 ||
      log("unmapping", device_->UnmapRange(range_, mapped_bytes_));
  if (is_unmapped && range_bytes_ != 0) {
    log("freeing the addresses", device_->FreeRange(range_, range_bytes_));
  }
  device_ = nullptr;
  range_ = 0;
  range_bytes_ = 0;
  mapped_bytes_ = 0;
  data_ = nullptr;
  bytes_ = 0;
  owner_.reset();
}

}  // namespace strata
