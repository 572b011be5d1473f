#ifndef STRATA_PLATFORM_SIM_DEVICE_SIM_WORK_H_
#define STRATA_PLATFORM_SIM_DEVICE_SIM_WORK_H_

#include <cstddef>
#include <cstdint>

#include "strata/platform/device_work.h"
#include "strata/platform/stream.h"

namespace strata::sim {

class SimDevice;

// Work on a simulated device. Its accesses are checked, and its bytes move if
// the device stores bytes.
class SimWork final : public DeviceWork {
 public:
  explicit SimWork(SimDevice* device) : device_(device) {}

  Status Enqueue(Stream stream, const WorkRange* ranges, std::size_t count,
                 std::uint64_t busy_ns, std::uint64_t pattern) override;
  Status Launch(Stream stream, const WorkRange* ranges, std::size_t count,
                HostKernel kernel, void* argument) override;

 private:
  SimDevice* const device_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_DEVICE_SIM_WORK_H_
