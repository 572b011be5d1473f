#ifndef STRATA_PLATFORM_SIM_GRAPHS_USER_OBJECTS_H_
#define STRATA_PLATFORM_SIM_GRAPHS_USER_OBJECTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/status.h"

namespace strata::sim {

// A reference to a user object. The destructor of the object is due after the
// last reference is dropped.
using UserObjectRef = std::shared_ptr<const void>;

// Objects of callers that graphs keep alive.
//
// Model: a caller holds a number of references under the object's handle.
//   Graphs, their instances and running launches hold references of their own.
//   When the last reference is dropped, the object's destructor enters a queue.
//   The next call on any device empties the queue. Handles are never reused.
// Errors: the Status of the Device entry point that each method implements.
// Threads: externally synchronised. References may be dropped under the same
//   lock. RunDestructors is called without the lock.
// Source: cuda_semantics.md C29.
class UserObjectTable {
 public:
  UserObjectTable();
  UserObjectTable(const UserObjectTable&) = delete;
  UserObjectTable& operator=(const UserObjectTable&) = delete;

  // Creates an object with one reference, which the caller holds.
  UserObject Create(int device, void* pointer, HostFunction destroy);
  // kInvalidValue unless the caller holds a reference. `move` moves the
  // reference of the caller.
  Status Retain(UserObject object, bool move, UserObjectRef* reference);
  Status Release(UserObject object);

  // True if RunDestructors has destructors to run. Any thread.
  bool has_due() const { return queue_->count.load() != 0; }
  // Acquires `mutex` only to empty the queue. Devices refuse calls meanwhile.
  void RunDestructors(std::mutex* mutex);

  // Number of objects created on `device` whose destructors are not due.
  std::uint64_t live_count(int device) const;

 private:
  struct Due {
    void* pointer;
    HostFunction destroy;
  };
  // Outlives the table while references exist.
  struct Queue {
    std::vector<Due> due;
    std::atomic<std::size_t> count{0};
  };
  struct Entry {
    int device;
    std::uint64_t callers;  // references
    UserObjectRef held;     // while callers is not 0
    std::weak_ptr<const void> alive;
  };

  std::shared_ptr<Queue> queue_;
  std::unordered_map<void*, Entry> entries_;
  std::uintptr_t made_ = 0;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_GRAPHS_USER_OBJECTS_H_
