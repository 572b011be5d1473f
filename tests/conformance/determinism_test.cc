// The influence of a seed, and the cost of a large device: cuda_semantics.md
// T87, T89, T90.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "strata/platform/calls/call_record.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/testing/devices/device_fixture.h"
#include "strata/tests/testing/models/random_program.h"

namespace strata {
namespace {

constexpr int kSteps = 400;

// Everything that an observer sees of a program, as text.
std::string TraceOf(const PlatformOptions& options) {
  SimPlatform platform(options);
  std::ostringstream trace;
  platform.device(0).SetCallObserver([&trace](const CallRecord& call) {
    trace << DeviceCallName(call.call) << ' ' << call.device << ' ' << call.ptr
          << ' ' << call.bytes << ' ' << call.value << ' ' << call.stream_uid
          << ' ' << ToString(call.status) << ' ' << call.time_ns << ' '
          << call.thread << '\n';
  });
  RandomProgram(&platform, 87).Run(kSteps);
  return trace.str();
}

void WriteAll(int fd, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t bytes =
        write(fd, text.data() + written, text.size() - written);
    if (bytes <= 0) _exit(1);
    written += static_cast<std::size_t>(bytes);
  }
}

// The result of `make` in a child process. Identities are unique in a process,
// so two traces of one process differ in them.
std::string InChild(const std::function<std::string()>& make) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    WriteAll(ends[1], make());
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  ssize_t bytes = 0;
  while ((bytes = read(ends[0], buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return text;
}

PlatformOptions SeededOptions(std::uint64_t seed) {
  PlatformOptions options;
  options.platform = "sim";
  options.sim_memory_bytes = std::uint64_t{256} << 20;
  options.sim_progress = "seeded";
  options.sim_data = "backed";
  options.sim_seed = seed;
  return options;
}

class DeterminismTest : public ::testing::TestWithParam<DeviceConfig> {};

INSTANTIATE_TEST_SUITE_P(Devices, DeterminismTest,
                         ::testing::ValuesIn(SimulatedDevices()), NameOfDevice);

TEST_P(DeterminismTest, T87OneSeedGivesOneTrace) {
  const auto trace = [] { return TraceOf(GetParam().options); };
  const std::string first = InChild(trace);
  EXPECT_GT(first.size(), std::size_t{kSteps});
  EXPECT_EQ(first, InChild(trace));
}

TEST_P(DeterminismTest, T87OneResultUnderEveryPolicy) {
  PlatformOptions plain = GetParam().options;
  plain.sim_progress = "inline";
  SimPlatform expected(plain);
  SimPlatform platform(GetParam().options);
  EXPECT_EQ(RandomProgram(&platform, 87).Run(kSteps),
            RandomProgram(&expected, 87).Run(kSteps));
}

TEST_P(DeterminismTest, T89FreeingPolicyLeavesTheAddresses) {
  std::set<std::string> addresses;
  for (const char* free : {"sync", "nosync", "seeded"}) {
    PlatformOptions options = GetParam().options;
    options.sim_free = free;
    SimPlatform platform(options);
    RandomProgram program(&platform, 89);
    program.Run(kSteps);
    addresses.insert(program.addresses());
  }
  EXPECT_EQ(addresses.size(), 1u);
}

TEST(SeedTest, T87SeedsChangeTheTrace) {
  std::set<std::string> traces;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    traces.insert(InChild([=] { return TraceOf(SeededOptions(seed)); }));
  }
  EXPECT_GT(traces.size(), 1u);
}

TEST(SeedTest, T87SeedsLeaveTheResult) {
  std::set<std::string> results;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimPlatform platform(SeededOptions(seed));
    results.insert(RandomProgram(&platform, 87).Run(kSteps));
  }
  EXPECT_EQ(results.size(), 1u);
}

std::size_t ResidentKibibytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stoul(line.substr(6));
  }
  return 0;
}

// The test for MemAlloc is in sim_device_memory_test.cc.
TEST(LargeDeviceTest, T90AMillionPoolBlocksOf80GiBLeaveTheHostItsMemory) {
  constexpr int kBlocks = 1'000'000;
  PlatformOptions options;
  options.platform = "sim";
  SimPlatform platform(options);
  Device& device = platform.device(0);
  MemPool pool;
  ASSERT_EQ(device.DefaultMemPool(&pool), Status::kSuccess);
  const Stream stream = device.PerThreadStream();
  const std::size_t before = ResidentKibibytes();
  ASSERT_GT(before, 0u);
  std::vector<DevicePtr> live(20000, 0);
  for (std::size_t i = 0; i < kBlocks; ++i) {
    DevicePtr& slot = live[i * 7919 % live.size()];
    if (slot != 0) {
      ASSERT_EQ(device.FreeAsync(slot, stream), Status::kSuccess);
    }
    const std::size_t bytes = i % 16 == 0 ? std::size_t{6} << 20 : 40000;
    ASSERT_EQ(device.MallocFromPoolAsync(&slot, bytes, pool, stream),
              Status::kSuccess);
  }
  EXPECT_LT(ResidentKibibytes(), before + 200 * 1024);
  for (const DevicePtr ptr : live) {
    ASSERT_EQ(device.FreeAsync(ptr, stream), Status::kSuccess);
  }
  ASSERT_EQ(device.Synchronize(), Status::kSuccess);
  EXPECT_EQ(platform.LeakReport(), "");
}

}  // namespace
}  // namespace strata
