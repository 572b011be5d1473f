#ifndef STRATA_TESTS_TESTING_DEVICES_UNSAFE_CALLS_H_
#define STRATA_TESTS_TESTING_DEVICES_UNSAFE_CALLS_H_

#include <cstddef>
#include <vector>

#include "strata/platform/device.h"

namespace strata {

// The objects that a call needs, one of each kind, created on request. A step
// that fails fails the test.
class CallSubject {
 public:
  static constexpr std::size_t kBytes = std::size_t{2} << 20;

  explicit CallSubject(Device* of) : device(*of) {}

  void Nothing() {}
  void NewStream();
  void EndStream();
  void NewEvent();
  void EndEvent();
  void NewMemory();
  void EndMemory();
  void NewHost();
  void EndHost();
  void NewPageable() { pageable.resize(kBytes); }
  void Register();
  void Unregister();
  void NewPool();
  void EndPool();
  void NewStreamAndPool();
  void EndStreamAndPool();
  void NewBlock();  // of a pool
  void EndBlock();
  void NewRange();
  void EndRange();
  void NewHandle();
  void EndHandle();
  void NewRangeAndHandle();
  void EndRangeAndHandle();
  void NewMapping();
  void EndMapping();
  void NewGraph();
  void EndGraph();
  void NewExec();  // and its graph
  void EndExec();
  void NewStreamAndExec();
  void EndStreamAndExec();

  Device& device;
  Stream stream;
  Event event;
  DevicePtr ptr = 0;
  void* host = nullptr;
  std::vector<unsigned char> pageable;
  MemPool pool;
  MemHandle handle;
  Graph graph;
  GraphExec exec;
};

// A call that a capture may refuse although it does not use the capturing
// stream.
struct UnsafeCall {
  using Step = void (CallSubject::*)();

  const char* name;
  bool (*available)(const Caps& caps);
  Step prepare;  // nothing may be capturing
  Status (*call)(CallSubject& subject);
  Step undo_made;     // undoes a successful call
  Step undo_refused;  // undoes a refused call
};

// The calls that CUDA documents as potentially unsafe (cuda_semantics.md C19),
// as seen on a GPU: docs/gpu/2026-11-26.md.
std::vector<UnsafeCall> CallsKnownToBeUnsafe();
// The calls that are safe on a GPU.
std::vector<UnsafeCall> CallsKnownToBeSafe();

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_UNSAFE_CALLS_H_
