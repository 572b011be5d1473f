#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_IMPORTED_MEMORY_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_IMPORTED_MEMORY_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strata/platform/device.h"
#include "strata/strategy/virtual_memory/exported_memory.h"

namespace strata {

// Memory of another process, mapped in this one.
//
// Model: the handles of the pieces lie at addresses one after the other. It is
//   memory of the process that exported it: no limit of this one counts it.
// Threads: none.
// Lifetime: the platform of the device is held. Destroy it when all work that
//   uses the memory is done: that unmaps it.
class ImportedMemory {
 public:
  ImportedMemory() = default;
  ImportedMemory(ImportedMemory&& other) noexcept { *this = std::move(other); }
  ImportedMemory& operator=(ImportedMemory&& other) noexcept;
  ~ImportedMemory() { Close(); }

  // Maps `pieces`, whose descriptors the caller may close then, so that the
  // devices of `access` may use them. `owner` keeps the device alive.
  //
  // Errors: std::invalid_argument if `pieces` is no list of ExportedMemory;
  //   DeviceError. Both name the piece, the second also the device call.
  // Cost: a device call for the addresses, three for each piece, one for the
  //   access.
  static ImportedMemory Map(std::shared_ptr<void> owner, Device& device,
                            const std::vector<SharedPiece>& pieces,
                            const std::vector<AccessDescriptor>& access);

  // The first byte of the exported allocation; null once it is closed.
  void* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  // Unmaps the memory.
  void Close() noexcept;

 private:
  // Imports and maps the next piece, which errors call `name`.
  void MapNext(const SharedPiece& piece, const std::string& name);
  void MapAll(const std::vector<SharedPiece>& pieces,
              const std::vector<AccessDescriptor>& access);

  std::shared_ptr<void> owner_;
  Device* device_ = nullptr;
  DevicePtr range_ = 0;
  std::size_t range_bytes_ = 0;
  std::size_t mapped_bytes_ = 0;  // from the start of the range
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_IMPORTED_MEMORY_H_
