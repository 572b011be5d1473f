#ifndef STRATA_TESTS_TESTING_MODELS_FACADE_MODEL_H_
#define STRATA_TESTS_TESTING_MODELS_FACADE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/facade/allocator_facade.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/testing/choices.h"
#include "strata/tests/testing/layers/live_ranges.h"

namespace strata {

struct FacadeModelOptions {
  std::string facade;  // in the format of Options::Parse
  std::uint64_t seed = 1;
  // Makes the choices instead of the seed. Must outlive the model.
  std::optional<std::string_view> bytes;
  std::uint64_t device_memory_bytes = std::uint64_t{256} << 20;
  // Device calls may fail. Requests may then fail with DeviceError, or although
  //   there is memory.
  bool has_faults = false;
};

// The device calls that can fail without a loss of memory or objects.
std::vector<DeviceCall> HarmlessFaults();

// Random operations on a facade over two simulated devices, compared with a
// naive model of its contents.
//
// Model: a list of live allocations, and sums over it. Step() does one
//   operation and compares the facade with the model. A difference is a test
//   failure; its message has the seed and the number of the operation.
// Threads: one.
class FacadeModel {
 public:
  static constexpr int kDevices = 2;

  explicit FacadeModel(const FacadeModelOptions& options);

  SimPlatform& platform() const { return *platform_; }
  AllocatorFacade& facade() const { return *facade_; }
  std::uint64_t refusals() const { return refusals_; }
  // True if the bytes that make the choices are used up.
  bool exhausted() const { return choices_.exhausted(); }

  void Step();
  // Makes a later device call fail: one of HarmlessFaults().
  void AddFault();
  void ClearFaults();
  // Compares the statistics of every place.
  void Check();
  // Frees and releases everything, and expects that nothing is held.
  void FreeEverything();
  // Expects that each stream in turn can allocate half of its device, or of its
  // limit.
  void ExpectUsable();
  // Destroys the facade. Expects that nothing leaks but `lost_events` events,
  // which the facade failed to destroy.
  void Finish(std::uint64_t lost_events = 0);

 private:
  // for each device, besides the legacy stream
  static constexpr std::size_t kStreams = 3;
  static constexpr std::size_t kNaturalAlignment = 256;  // of device memory
  // More than any simulated device of these tests has.
  static constexpr std::size_t kAbsurdBytes = std::size_t{1} << 40;

  struct Live {
    AllocationPtr allocation;
    Place place;
    Stream stream;  // stream of the allocation
    std::size_t bytes = 0;
  };
  struct PlaceSums {
    std::uint64_t live = 0;
    std::uint64_t allocations = 0;
    std::uint64_t requested_bytes = 0;
    std::uint64_t in_use_bytes = 0;
    std::uint64_t peak_in_use_bytes = 0;
  };

  std::size_t Below(std::size_t bound) { return choices_.Below(bound); }
  bool OneIn(std::size_t n) { return Below(n) == 0; }
  std::string Where() const;

  Place AnyPlace();
  Stream AnyStream(int device);
  Stream StreamFor(Place place);
  std::size_t AnySize(Place place);
  Request AnyRequest(Place place);

  void Allocate();
  AllocationPtr Ask(Place place, const Request& request, Stream stream);
  void Note(AllocationPtr allocation, Place place, const Request& request,
            Stream stream);
  void NoteRefusal(Place place, const Request& request, const Failure& failure);
  // A request was refused for lack of memory: expects that there is none.
  void ExpectExhausted(Place place, const Request& request,
                       const Failure& failure);
  // Bytes in use that the allocation accounts for.
  std::size_t HeldBytes(const Allocation& allocation) const;
  void Free(std::size_t index, bool on_another_stream);
  void FreeMany();
  void Mark();
  void Release();
  void ReplaceStream();
  void Look();
  void CheckPlace(Place place);
  void CheckBlocks(Place place);
  void CheckDevice(int device);

  const FacadeModelOptions options_;
  Choices choices_;
  std::shared_ptr<SimPlatform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;
  std::vector<std::vector<Stream>> streams_;  // by device
  std::vector<Live> live_;
  LiveRanges ranges_;
  std::map<Place, PlaceSums> sums_;
  std::uint64_t step_ = 0;
  std::uint64_t refusals_ = 0;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_MODELS_FACADE_MODEL_H_
