#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_EXPORTED_MEMORY_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_EXPORTED_MEMORY_H_

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
  int fd = -1;  // a descriptor of the whole handle
  std::size_t handle_bytes = 0;
  std::size_t offset = 0;  // of the part in the handle
  std::size_t bytes = 0;
};

// Memory of an allocation as other processes can import it.
//
// Model: the pieces cover the allocation in the order of its addresses. While
//   this lives, the handles behind them stay mapped where they are, and count
//   as reserved, even if the allocation is freed. Whoever imports a handle
//   sees all of it, also the blocks beside the allocation.
// Threads: none.
// Lifetime: any; also longer than that of the facade.
class ExportedMemory {
 public:
  ExportedMemory() = default;
  // Owns the descriptors of `pieces`. Destroys `pin` at the end.
  ExportedMemory(std::vector<SharedPiece> pieces, std::shared_ptr<void> pin)
      : pieces_(std::move(pieces)), pin_(std::move(pin)) {}
  ExportedMemory(ExportedMemory&& other) noexcept;
  ExportedMemory& operator=(ExportedMemory&& other) noexcept;
  ~ExportedMemory() { Close(); }

  // Keeps `owner` until the handles are unpinned.
  void set_owner(std::shared_ptr<void> owner) { owner_ = std::move(owner); }

  // Empty once it is closed.
  const std::vector<SharedPiece>& pieces() const { return pieces_; }
  // The importers have closed, or never will import: closes the descriptors and
  // unpins the handles. If their stream or facade has ended, the memory is
  // released, which may wait for streams: not beside a capture, nor in a
  // visitor.
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

// The handles behind an allocation, one after the other; nothing if none are.
// They stay there as long as the allocation lives.
std::optional<AddressSpan> MappedSpanOf(const Allocation& allocation);

// Exports the handles behind a live allocation. kNotSupported if it lies in
// none, or if their device cannot export them; else the status of the call
// that failed. Then nothing has changed.
//
// Errors: std::bad_alloc. Cost: a device call for each handle.
Status ExportMapped(const Allocation& allocation, ExportedMemory* exported);

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_EXPORTED_MEMORY_H_
