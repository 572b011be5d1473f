#include "strata/strategy/virtual_memory/sharing/exported_memory.h"

#include <unistd.h>

namespace strata {

ExportedMemory::ExportedMemory(ExportedMemory&& other) noexcept
    : pieces_(std::exchange(other.pieces_, {})),
      owner_(std::move(other.owner_)),
      pin_(std::move(other.pin_)) {}

ExportedMemory& ExportedMemory::operator=(ExportedMemory&& other) noexcept {
  if (this != &other) {
    Close();
    pieces_ = std::exchange(other.pieces_, {});
    owner_ = std::move(other.owner_);
    pin_ = std::move(other.pin_);
  }
  return *this;
}

void ExportedMemory::Close() noexcept {
  for (const SharedPiece& piece : pieces_) {
    if (piece.fd >= 0) close(piece.fd);
  }
  pieces_.clear();
  pin_.reset();
  owner_.reset();
}

}  // namespace strata
