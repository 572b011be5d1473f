#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_SHARING_IMPORTED_MEMORY_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_SHARING_IMPORTED_MEMORY_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strata/platform/device.h"
#include "strata/strategy/virtual_memory/sharing/exported_memory.h"

namespace strata {

// Memory of another process, mapped in this process.
//
// Model: the handles of the pieces are mapped at consecutive addresses. The
//   memory belongs to the exporting process; no limit of this process counts
//   it.
// Threads: not thread-safe.
// Lifetime: holds the platform of the device. Destroy it when all work that
//   uses the memory is done, because that unmaps it.
class ImportedMemory {
 public:
  ImportedMemory() = default;
  ImportedMemory(ImportedMemory&& other) noexcept { *this = std::move(other); }
  ImportedMemory& operator=(ImportedMemory&& other) noexcept;
  ~ImportedMemory() { Close(); }

  // Maps `pieces` with access for the devices of `access`. The caller may close
  // the descriptors afterwards. `owner` keeps the device alive.
  //
  // Errors: std::invalid_argument if `pieces` is no list of ExportedMemory;
  //   DeviceError. Both name the piece; DeviceError also names the device call.
  // Cost: a device call for the addresses, three for each piece, one for the
  //   access.
  static ImportedMemory Map(std::shared_ptr<void> owner, Device& device,
                            const std::vector<SharedPiece>& pieces,
                            const std::vector<AccessDescriptor>& access);

  // The first byte of the exported allocation; null after Close().
  void* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  // Unmaps the memory.
  void Close() noexcept;

 private:
  // Imports and maps the next piece; errors name it `name`.
  void MapNext(const SharedPiece& piece, const std::string& name);
  void MapAll(const std::vector<SharedPiece>& pieces,
              const std::vector<AccessDescriptor>& access);

  std::shared_ptr<void> owner_;
  Device* device_ = nullptr;
  DevicePtr range_ = 0;
  std::size_t range_bytes_ = 0;
  std::size_t mapped_bytes_ = 0;  // From the start of the range.
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_SHARING_IMPORTED_MEMORY_H_
