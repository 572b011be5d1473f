#ifndef STRATA_TESTS_TESTING_MODELS_RANDOM_PROGRAM_H_
#define STRATA_TESTS_TESTING_MODELS_RANDOM_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "strata/platform/device.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/stream.h"

namespace strata {

// A program for one simulated device. It allocates and frees buffers, and fills
// and copies them in several streams.
//
// Model: an event orders each use of a buffer behind the previous one, so the
//   final contents do not depend on the time at which work runs. The answers of
//   queries do.
// Threads: one.
// Lifetime: the platform must outlive it.
class RandomProgram {
 public:
  RandomProgram(SimPlatform* platform, std::uint64_t seed);

  // Does `steps` random steps, waits, and releases everything. Returns a line
  // for each buffer at the end, with its first word if the device stores bytes.
  std::string Run(int steps);
  // The allocated addresses, in order.
  const std::string& addresses() const { return addresses_; }

 private:
  static constexpr std::size_t kBuffers = 6;

  struct Buffer {
    DevicePtr ptr = 0;
    std::size_t bytes = 0;
    Event last_use;
  };

  void SetUp();
  std::string TearDown();
  void Step();
  void Replace(Buffer* buffer);
  void Fill(Buffer* buffer, const Stream& stream);
  void Copy(Buffer* target, Buffer* source, const Stream& stream);
  void Order(const Stream& stream, const Buffer& buffer);
  std::uint64_t FirstWord(const Buffer& buffer);
  std::size_t Draw(std::size_t end) { return random_() % end; }

  SimPlatform& platform_;
  Device& device_;
  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::vector<Buffer> buffers_;
  std::string addresses_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_MODELS_RANDOM_PROGRAM_H_
