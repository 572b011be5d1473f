#ifndef STRATA_TESTS_TOOLS_PEERS_PEER_FIXTURE_H_
#define STRATA_TESTS_TOOLS_PEERS_PEER_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "strata/platform/calls/call_record.h"
#include "strata/platform/platform_options.h"
#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tools/peers/peer.h"

namespace strata::peers {

// A simulated device for a peer. The test fails if the peer leaves allocations
// on it.
class PeerTestDevice {
 public:
  explicit PeerTestDevice(std::uint64_t memory_bytes)
      : platform_(OptionsOf(memory_bytes)) {
    device().SetCallObserver(
        [this](const CallRecord& record) { calls_.push_back(record); });
  }
  PeerTestDevice(const PeerTestDevice&) = delete;
  PeerTestDevice& operator=(const PeerTestDevice&) = delete;
  ~PeerTestDevice() {
    device().SetCallObserver(nullptr);
    for (const Stream& stream : streams_) device().StreamDestroy(stream);
    EXPECT_EQ(platform_.LeakReport(), "");
  }

  SimDevice& device() { return platform_.sim_device(0); }
  Stream legacy() { return device().LegacyStream(); }
  Stream NewStream() {
    Stream stream;
    EXPECT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
              Status::kSuccess);
    streams_.push_back(stream);
    return stream;
  }

  // Returns and clears the sizes of the calls of this kind, refused calls
  // included.
  std::vector<std::uint64_t> TakeBytes(DeviceCall call) {
    std::vector<std::uint64_t> bytes;
    for (const CallRecord& record : calls_) {
      if (record.call == call) bytes.push_back(record.bytes);
    }
    calls_.clear();
    return bytes;
  }
  std::uint64_t Count(DeviceCall call) { return device().CallCount(call); }
  std::uint64_t used_bytes() {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    EXPECT_EQ(device().MemGetInfo(&free_bytes, &total_bytes), Status::kSuccess);
    return total_bytes - free_bytes;
  }

 private:
  static PlatformOptions OptionsOf(std::uint64_t memory_bytes) {
    PlatformOptions options;
    options.platform = "sim";
    options.sim_memory_bytes = memory_bytes;
    return options;
  }

  SimPlatform platform_;
  std::vector<CallRecord> calls_;
  std::vector<Stream> streams_;
};

// A block of `bytes` bytes. Its address is 0 if there is no memory.
inline PeerBlock Take(Peer& peer, std::size_t bytes, const Stream& stream) {
  PeerBlock block;
  if (!peer.Allocate(bytes, stream, &block)) block = PeerBlock{};
  return block;
}

}  // namespace strata::peers

#endif  // STRATA_TESTS_TOOLS_PEERS_PEER_FIXTURE_H_
