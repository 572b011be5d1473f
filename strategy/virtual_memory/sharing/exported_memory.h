#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_SHARING_EXPORTED_MEMORY_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_SHARING_EXPORTED_MEMORY_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/platform/status.h"

namespace strata {

// A part of exported memory: bytes of one handle.
//
// Units: bytes.
struct SharedPiece {
  int fd = -1;  // Descriptor of the whole handle.
  std::size_t handle_bytes = 0;
  std::size_t offset = 0;  // Offset of the part in the handle.
  std::size_t bytes = 0;
};

// Memory of an allocation in a form that other processes can import.
//
// Model: the pieces cover the allocation in address order. While this object
//   lives, the handles stay mapped at their addresses and count as reserved,
//   even after the free of the allocation. An importer of a handle sees all of
//   it, including other blocks.
// Threads: not thread-safe.
// Lifetime: any; may exceed the lifetime of the facade.
class ExportedMemory {
 public:
  ExportedMemory() = default;
  // Owns the descriptors of `pieces`. Destroys `pin` at the end.
  ExportedMemory(std::vector<SharedPiece> pieces, std::shared_ptr<void> pin)
      : pieces_(std::move(pieces)), pin_(std::move(pin)) {}
  ExportedMemory(ExportedMemory&& other) noexcept;
  ExportedMemory& operator=(ExportedMemory&& other) noexcept;
  ~ExportedMemory() { Close(); }

  // Holds `owner` until the handles are unpinned.
  void set_owner(std::shared_ptr<void> owner) { owner_ = std::move(owner); }

  // Empty after Close().
  const std::vector<SharedPiece>& pieces() const { return pieces_; }
  // Closes the descriptors and unpins the handles. Call it when every importer
  // has closed, or none will import. If the stream or the facade has ended,
  // this releases the memory, which may wait for streams. Do not call it during
  // a capture or in a visitor.
  void Close() noexcept;

 private:
  std::vector<SharedPiece> pieces_;
  std::shared_ptr<void> owner_;
  std::shared_ptr<void> pin_;
};

// Addresses that are mapped without a hole.
struct AddressSpan {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

// The mapped addresses of the handles of an allocation; nullopt if it has no
// handles. The mapping stays while the allocation lives.
std::optional<AddressSpan> MappedSpanOf(const Allocation& allocation);

// Exports the handles of a live allocation. kNotSupported if it has none, or if
// their device cannot export them; else the status of the device call that
// failed. On failure nothing has changed.
//
// Errors: std::bad_alloc.
// Cost: a device call for each handle.
Status ExportMapped(const Allocation& allocation, ExportedMemory* exported);

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_SHARING_EXPORTED_MEMORY_H_
