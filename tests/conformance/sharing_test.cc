// Memory that another process imports: cuda_semantics.md V4, V11, T73.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "strata/tests/testing/devices/virtual_memory_fixture.h"
#include "strata/tests/testing/second_process.h"

namespace strata {
namespace {

class SharingConformanceTest : public VirtualMemoryFixture {
 protected:
  void SetUp() override {
    VirtualMemoryFixture::SetUp();
    if (IsSkipped()) return;
    if (!device().caps().share_fd) GTEST_SKIP() << "no descriptors of memory";
    if (!HasBytes()) GTEST_SKIP() << "a device without bytes shares none";
  }

  static std::string ImporterOfThisDevice() {
    const std::string name =
        ::testing::UnitTest::GetInstance()->current_test_info()->name();
    return "*SharingConformanceTest.DISABLED_Importer" +
           name.substr(name.find('/'));
  }

  MemHandle NewShared() {
    MemProperties properties;
    properties.share = ShareType::kPosixFd;
    MemHandle handle;
    EXPECT_EQ(device().CreateMemory(&handle, granule(), properties),
              Status::kSuccess);
    return handle;
  }
  void SendTo(PeerSocket& socket, MemHandle handle) {
    Shareable shareable;
    ASSERT_EQ(device().ExportMemory(handle, ShareType::kPosixFd, &shareable),
              Status::kSuccess);
    EXPECT_TRUE(socket.SendDescriptor(shareable.fd));
    close(shareable.fd);
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, SharingConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

// The other process of the tests below. Its memory ends with the process.
TEST_P(SharingConformanceTest, DISABLED_Importer) {
  PeerSocket socket(PeerSocket::FromParent());
  Shareable shareable;
  shareable.fd = socket.ReceiveDescriptor();
  ASSERT_GE(shareable.fd, 0);
  MemHandle handle;
  ASSERT_EQ(device().ImportMemory(&handle, ShareType::kPosixFd, shareable),
            Status::kSuccess);
  AtEnd([this, handle] { device().ReleaseMemory(handle); });
  close(shareable.fd);
  const DevicePtr range = NewRange(granule());
  Map(range, granule(), handle);
  Allow(range, granule());
  ExpectWords(range, granule(), kFirst);
  WriteNow(range, granule(), kSecond);
  EXPECT_TRUE(socket.Send(kSecond));
  std::uint64_t word = 0;
  while (socket.Receive(&word)) {
  }
}

TEST_P(SharingConformanceTest, V11TwoProcessesSeeOneAnothersBytes) {
  SecondProcess importer(ImporterOfThisDevice());
  const MemHandle handle = NewShared();
  AtEnd([this, handle] { device().ReleaseMemory(handle); });
  const DevicePtr range = NewRange(granule());
  Map(range, granule(), handle);
  Allow(range, granule());
  WriteNow(range, granule(), kFirst);
  SendTo(importer.socket(), handle);
  std::uint64_t word = 0;
  ASSERT_TRUE(importer.socket().Receive(&word));
  ExpectWords(range, granule(), kSecond);
}

TEST_P(SharingConformanceTest, V4MemoryLivesAsLongAsAnImportOfAnotherProcess) {
  STRATA_REQUIRE(sim() != nullptr, "others take a GPU's memory as well");
  const std::size_t free_bytes = FreeBytes();
  SecondProcess importer(ImporterOfThisDevice());
  const MemHandle handle = NewShared();
  const DevicePtr range = NewRange(granule());
  ASSERT_EQ(device().MapRange(range, granule(), 0, handle), Status::kSuccess);
  Allow(range, granule());
  WriteNow(range, granule(), kFirst);
  SendTo(importer.socket(), handle);
  std::uint64_t word = 0;
  ASSERT_TRUE(importer.socket().Receive(&word));
  ASSERT_EQ(device().UnmapRange(range, granule()), Status::kSuccess);
  ASSERT_EQ(device().ReleaseMemory(handle), Status::kSuccess);
  EXPECT_EQ(FreeBytes(), free_bytes - granule());
  // Also if the process ends without notice.
  importer.Kill();
  EXPECT_EQ(FreeBytes(), free_bytes);
}

}  // namespace
}  // namespace strata
