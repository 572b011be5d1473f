#include "strata/platform/host/host_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "strata/platform/sim/device/sim_platform.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NodeListTest, ReadsWhatTheKernelWrites) {
  EXPECT_THAT(ParseNodeList("0"), ElementsAre(0));
  EXPECT_THAT(ParseNodeList("0-2,5"), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(ParseNodeList("1,3-3,7-8"), ElementsAre(1, 3, 7, 8));
}

TEST(NodeListTest, TakesNothingFromAnyOtherText) {
  for (const char* text : {"", "x", "0,", ",0", "0-", "-1", "2-1", "0 1",
                           "0-1025", "1024", "99999999999999999999"}) {
    EXPECT_THAT(ParseNodeList(text), IsEmpty()) << text;
  }
}

// A tree like /sys with the files that a test writes.
class HostSystemTest : public ::testing::Test {
 protected:
  HostSystemTest()
      : root_(std::filesystem::path(::testing::TempDir()) /
              ("strata_sys_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(root_);
  }
  ~HostSystemTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  std::shared_ptr<HostSystem> Host() { return MakeHostSystem(root_.string()); }

 private:
  const std::filesystem::path root_;
};

TEST_F(HostSystemTest, FindsTheNodesThatHaveMemory) {
  Write("devices/system/node/online", "0-3");
  Write("devices/system/node/has_memory", "0,2");
  EXPECT_THAT(Host()->NumaNodes(), ElementsAre(0, 2));
}

TEST_F(HostSystemTest, AnOlderKernelTellsOnlyWhichNodesAreThere) {
  Write("devices/system/node/online", "0-1");
  EXPECT_THAT(Host()->NumaNodes(), ElementsAre(0, 1));
}

TEST_F(HostSystemTest, WithoutSuchFilesThereAreNoNodes) {
  EXPECT_THAT(Host()->NumaNodes(), IsEmpty());
}

TEST_F(HostSystemTest, TheMemoryOfAContainerIsItsLimit) {
  const std::uint64_t machine = Host()->MemoryBytes();
  EXPECT_GT(machine, 0U);
  Write("fs/cgroup/memory.max", "1048576");
  EXPECT_EQ(Host()->MemoryBytes(), 1048576U);
  Write("fs/cgroup/memory.max", "max");
  EXPECT_EQ(Host()->MemoryBytes(), machine);
  Write("fs/cgroup/memory.max", "9223372036854771712");
  EXPECT_EQ(Host()->MemoryBytes(), machine);
}

TEST(LinuxHostTest, RefusesANodeThatCannotBe) {
  EXPECT_EQ(MakeHostSystem()->PreferNode(nullptr, 0, -1), EINVAL);
  EXPECT_EQ(MakeHostSystem()->PreferNode(nullptr, 0, 1024), EINVAL);
}

// One separate page.
class Page {
 public:
  Page()
      : data_(mmap(nullptr, HostPageBytes(), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() { munmap(data_, HostPageBytes()); }
  void* data() const { return data_; }

 private:
  void* data_;
};

TEST(LinuxHostTest, AsksTheKernelForANodesMemory) {
  const std::shared_ptr<HostSystem> host = MakeHostSystem();
  const std::vector<int> nodes = host->NumaNodes();
  if (nodes.empty()) GTEST_SKIP() << "the kernel tells of no NUMA node";
  const Page page;
  const int error =
      host->PreferNode(page.data(), HostPageBytes(), nodes.front());
  if (error == EPERM || error == ENOSYS) {
    GTEST_SKIP() << "the kernel does not let this process choose nodes";
  }
  EXPECT_EQ(error, 0);
  // For a missing node, the kernel returns an error; the code does not check.
  EXPECT_NE(host->PreferNode(page.data(), HostPageBytes(), 1023), 0);
}

TEST(LinuxHostTest, LocksAndUnlocksAPage) {
  const std::shared_ptr<HostSystem> host = MakeHostSystem();
  const Page page;
  const int error = host->Lock(page.data(), HostPageBytes());
  if (error == EPERM || error == ENOMEM || error == EAGAIN) {
    GTEST_SKIP() << "this process may lock no memory";
  }
  EXPECT_EQ(error, 0);
  EXPECT_EQ(host->Unlock(page.data(), HostPageBytes()), 0);
}

TEST(LinuxHostTest, IsTheHostOfAPlatform) {
  PlatformOptions options;
  SimPlatform platform(options);
  EXPECT_EQ(platform.host()->MemoryBytes(), MakeHostSystem()->MemoryBytes());
}

}  // namespace
}  // namespace strata
