#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_SHARING_PEER_ACCESS_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_SHARING_PEER_ACCESS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/allocation/reclaim/call_gate.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/status.h"

namespace strata {

// The devices that may access the mapped memory of a place.
//
// Model: a list of devices, and the strategies that map memory there. A
//   strategy grants access to the listed devices with each mapping. A device
//   that is added later gets access to the existing mappings.
// Threads: any thread. Enable calls the strategies with a lock held that only
//   Enable acquires.
class PeerAccess {
 public:
  // A list of devices. Immutable: Enable replaces it.
  struct Grants {
    std::uint64_t version = 0;  // Each change of the list adds one.
    std::vector<AccessDescriptor> devices;
  };
  using GrantsPtr = std::shared_ptr<const Grants>;

  // A strategy that maps memory.
  class Mapper {
   public:
    Mapper() = default;
    Mapper(const Mapper&) = delete;
    Mapper& operator=(const Mapper&) = delete;
    virtual ~Mapper() = default;
    // Applies grants() to every mapping with an earlier version.
    virtual Status ApplyGrants() noexcept = 0;
  };

  // For memory of `owner`; at first, only `owner` has access.
  //
  // Errors: std::bad_alloc, here and in functions without noexcept.
  explicit PeerAccess(Location owner);

  GrantsPtr grants() const;
  std::uint64_t version() const;

  // Calls `mapper` until Remove, which waits for calls in flight.
  void Add(Mapper& mapper);
  void Remove(const Mapper& mapper) noexcept;

  // Adds `peer` and applies the list. If a device call fails, removes `peer`
  // again; some mappings may still grant it access. Waits for another Enable.
  Status Enable(Location peer);

 private:
  struct Entry {
    Mapper* mapper = nullptr;
    CallGate gate;  // Closed once the mapper is removed.
  };

  static Status Apply(
      const std::vector<std::shared_ptr<Entry>>& mappers) noexcept;

  // Held by Enable, so that it returns after the access of the peer is set, and
  // reports only failures for its own peer, if two threads enable peers.
  std::mutex enable_mutex_;
  mutable std::mutex mutex_;
  GrantsPtr grants_;                             // guarded by mutex_
  std::vector<std::shared_ptr<Entry>> mappers_;  // guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_SHARING_PEER_ACCESS_H_
