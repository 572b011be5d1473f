#include "strata/platform/sim/memory/byte_effects.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "strata/platform/sim/bytes/kept_bytes.h"

namespace strata::sim {
namespace {

using Piece = AddressSpace::Piece;

// Calls `visit(piece)` for each piece of the range that stores bytes.
template <class Visit>
void VisitPieces(const AddressSpace& space, DevicePtr ptr, std::uint64_t bytes,
                 Visit visit) {
  while (bytes > 0) {
    Piece piece = space.At(ptr);
    piece.count = std::min(piece.count, bytes);
    if (piece.bytes != nullptr || piece.kept != nullptr) visit(piece);
    ptr += piece.count;
    bytes -= piece.count;
  }
}

// The known bytes of `piece` go to `to`, zeros elsewhere. Returns the number of
// unknown bytes.
std::uint64_t Read(const Piece& piece, char* to) {
  if (piece.bytes != nullptr) {
    std::memmove(to, piece.bytes, piece.count);
    return 0;
  }
  std::memset(to, 0, piece.count);
  std::uint64_t unknown_bytes = piece.count;
  if (piece.kept == nullptr) return unknown_bytes;
  for (const auto& part : piece.kept->FindRead({piece.offset, piece.count})) {
    std::memcpy(to + (part.offset - piece.offset), part.bytes, part.count);
    unknown_bytes -= part.count;
  }
  return unknown_bytes;
}

// Moves the kept bytes of `from` to `to`, which has as many bytes.
void MoveKept(const Piece& to, const Piece& from) {
  std::vector<KeptBytes::Part> parts;
  if (from.kept != nullptr) {
    parts = from.kept->Find({from.offset, from.count});
  }
  // Copy the bytes first, because the target may overlap the source.
  std::vector<std::vector<char>> bytes;
  for (const auto& part : parts) {
    bytes.emplace_back(part.bytes, part.bytes + part.count);
  }
  to.kept->Drop({to.offset, to.count});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    to.kept->Move(parts[i], parts[i].offset - from.offset + to.offset,
                  bytes[i].data());
  }
}

// `is_small`: whether the copy is small as a whole (IsSmall). `to` and `from`
// are a part of it.
std::uint64_t CopyPiece(const Piece& to, const Piece& from, bool is_small) {
  if (to.bytes != nullptr) return Read(from, to.bytes);
  if (from.bytes == nullptr) {
    MoveKept(to, from);
  } else if (is_small) {
    to.kept->Write(to.offset, from.bytes, from.count);
  } else {
    to.kept->Drop({to.offset, to.count});
  }
  return 0;
}

bool IsSmall(std::uint64_t bytes) {
  return bytes <= KeptBytes::kMostWriteBytes;
}

// Writes to a range: `fill(char*, count)` makes the bytes of each piece.
template <class Fill>
void Write(const AddressSpace& space, DevicePtr ptr, std::uint64_t bytes,
           Fill fill) {
  VisitPieces(space, ptr, bytes, [&](const Piece& piece) {
    if (piece.bytes != nullptr) {
      fill(piece.bytes, piece.count);
    } else if (IsSmall(bytes)) {
      std::array<char, KeptBytes::kMostWriteBytes> made;
      fill(made.data(), piece.count);
      piece.kept->Write(piece.offset, made.data(), piece.count);
    } else {
      piece.kept->Drop({piece.offset, piece.count});
    }
  });
}

}  // namespace

std::uint64_t CopyBytes(const AddressSpace& space, DevicePtr target,
                        DevicePtr source, std::uint64_t bytes) {
  std::uint64_t unknown_bytes = 0;
  VisitPieces(space, target, bytes, [&](Piece to) {
    while (to.count > 0) {
      Piece from = space.At(source);
      from.count = std::min(from.count, to.count);
      Piece part = to;
      part.count = from.count;
      unknown_bytes += CopyPiece(part, from, IsSmall(bytes));
      if (to.bytes != nullptr) to.bytes += from.count;
      to.offset += from.count;
      to.count -= from.count;
      source += from.count;
    }
  });
  return unknown_bytes;
}

void FillBytes(const AddressSpace& space, DevicePtr ptr, int value,
               std::uint64_t bytes) {
  Write(space, ptr, bytes, [value](char* at, std::uint64_t count) {
    std::memset(at, value, count);
  });
}

void FillWords(const AddressSpace& space, DevicePtr ptr, std::uint64_t pattern,
               std::uint64_t bytes) {
  Write(space, ptr, bytes, [pattern](char* at, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; i += sizeof pattern) {
      std::memcpy(at + i, &pattern, sizeof pattern);
    }
  });
}

void ForgetBytes(const AddressSpace& space, DevicePtr ptr,
                 std::uint64_t bytes) {
  VisitPieces(space, ptr, bytes, [](const Piece& piece) {
    if (piece.kept != nullptr) piece.kept->Drop({piece.offset, piece.count});
  });
}

}  // namespace strata::sim
