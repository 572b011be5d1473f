#ifndef STRATA_TESTS_TESTING_DEVICES_FAULTED_STATE_H_
#define STRATA_TESTS_TESTING_DEVICES_FAULTED_STATE_H_

#include <string>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/stream.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {

// The state of simulated devices that callers can see, as text: memory in use,
// leaks, attributes of pools, access to mapped addresses, captures, pending
// work of streams and, while nothing is captured, of events.
//
// Model: covers the objects that were added and not removed.
// Threads: one.
class FaultedState {
 public:
  explicit FaultedState(SimPlatform* sim) : sim_(sim) {}

  void Add(const Stream& stream) { Append(streams_, stream); }
  void Add(Event event) { Append(events_, event); }
  // A pool may be added more than once.
  void Add(MemPool pool, int device);
  // The access of `ptr` can be queried.
  void AddMapped(DevicePtr ptr) { Append(mapped_, ptr); }
  // The stream began a capture.
  void AddCapture(const Stream& stream) { Append(captures_, stream); }

  void End(const Stream& stream);
  void End(Event event);
  void End(MemPool pool);
  void EndMapped(DevicePtr ptr, std::size_t bytes);
  void EndCapture(const Stream& stream) { std::erase(captures_, stream); }

  // Makes device calls. None of them fails or affects a capture.
  std::string Snapshot() const;

 private:
  struct Pool {
    MemPool pool;
    int device = 0;

    friend bool operator==(const Pool&, const Pool&) = default;
  };

  template <class Element>
  static void Append(std::vector<Element>& list, const Element& added) {
    const HeapFailure::Pause pause;  // the failure is meant for the caller
    list.push_back(added);
  }
  std::string Text() const;
  std::string OfDevice(int ordinal) const;
  std::string OfStream(const Stream& stream) const;
  std::string OfPool(const Pool& pool) const;
  std::string OfMapped(DevicePtr ptr) const;

  SimPlatform* const sim_;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::vector<Pool> pools_;
  std::vector<DevicePtr> mapped_;
  std::vector<Stream> captures_;  // capturing streams, by their origins
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_FAULTED_STATE_H_
