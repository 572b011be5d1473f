#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_PEER_ACCESS_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_PEER_ACCESS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/allocation/call_gate.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/status.h"

namespace strata {

// Which devices may access the mapped memory of a place.
//
// Model: a list of devices, and the strategies that map memory there. A
//   strategy grants the list with each mapping; a device that is added later
//   is granted the mappings that exist.
// Threads: any thread. While a strategy is called, a lock is held that only
//   Enable takes.
class PeerAccess {
 public:
  // A list; replaced, never changed.
  struct Grants {
    std::uint64_t version = 0;  // of the list: each change adds one
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
    // Grants grants() to every mapping that has an earlier version.
    virtual Status ApplyGrants() noexcept = 0;
  };

  // The memory of `owner`, which alone may access it.
  //
  // Errors: std::bad_alloc, as of the functions that do not say noexcept.
  explicit PeerAccess(Location owner);

  GrantsPtr grants() const;
  std::uint64_t version() const;

  // `mapper` is called until Remove, which waits for calls in flight.
  void Add(Mapper& mapper);
  void Remove(const Mapper& mapper) noexcept;

  // Adds `peer`, and applies the list. If a call of the device fails, `peer` is
  // removed again; then mappings may still be granted to it. Waits for another
  // Enable.
  Status Enable(Location peer);

 private:
  struct Entry {
    Mapper* mapper = nullptr;
    CallGate gate;  // closed once it is removed
  };

  // Replaces the list by one without `peer`, or, with `access`, by one that
  // ends with it.
  void Replace(Location peer, bool access);
  Status Apply();

  // So that Enable returns once the access of a peer is set, also when two
  // threads enable it, and a failure is that of the own peer.
  std::mutex enable_mutex_;
  mutable std::mutex mutex_;
  GrantsPtr grants_;                             // guarded by mutex_
  std::vector<std::shared_ptr<Entry>> mappers_;  // guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_PEER_ACCESS_H_
