// Descriptors of a device's memory for other platforms, here in one process.

#include "strata/platform/sim/bytes/frame_exports.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/platform/sim/memory/virtual_fixture.h"
#include "strata/tests/testing/devices/statuses.h"

namespace strata::sim {
namespace {

constexpr std::uint64_t kFileFrames = 4;

class FrameExportsTest : public ::testing::Test {
 protected:
  FrameExportsTest() : fd_(memfd_create("frame_exports_test", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_, kFileFrames * kFrameBytes), 0);
  }
  ~FrameExportsTest() override { close(fd_); }

  static FrameRecord RecordOf(std::vector<PhysicalRun> runs) {
    FrameRecord record;
    for (const PhysicalRun& run : runs) record.bytes += run.bytes;
    record.runs = std::move(runs);
    return record;
  }

  const int fd_;
  FrameExports exports_{fd_, kFileFrames* kFrameBytes};
};

TEST_F(FrameExportsTest, DescriptorTellsItsParts) {
  const FrameRecord record =
      RecordOf({{kFrameBytes, kFrameBytes}, {3 * kFrameBytes, kFrameBytes}});
  const int fd = exports_.Export(7, record);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(exports_.Find(fd), 7u);
  const auto read = FrameRecord::Read(fd);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->bytes, 2 * kFrameBytes);
  ASSERT_EQ(read->runs.size(), 2u);
  EXPECT_EQ(read->runs[1].offset, 3 * kFrameBytes);
  close(fd);
}

TEST_F(FrameExportsTest, ObjectIsExportedUntilItsLastDescriptorIsClosed) {
  EXPECT_FALSE(exports_.IsExported(1));
  const FrameRecord record = RecordOf({{0, kFrameBytes}});
  const int first = exports_.Export(1, record);
  const int second = exports_.Export(1, record);
  const int copy = dup(first);
  close(first);
  close(second);
  EXPECT_TRUE(exports_.IsExported(1));
  close(copy);
  EXPECT_FALSE(exports_.IsExported(1));
}

TEST_F(FrameExportsTest, RecordsOfForgottenObjectsMakeRoom) {
  const FrameRecord record = RecordOf({{0, kFrameBytes}});
  const int first = exports_.Export(1, record);
  const int other = exports_.Export(2, record);
  const off_t place = lseek(first, 0, SEEK_CUR);
  EXPECT_NE(lseek(other, 0, SEEK_CUR), place);
  close(first);
  exports_.Forget(1);
  const int third = exports_.Export(3, record);
  EXPECT_EQ(lseek(third, 0, SEEK_CUR), place);
  EXPECT_EQ(exports_.Find(other), 2u);
  close(other);
  close(third);
}

TEST_F(FrameExportsTest, OtherFilesAreNoRecords) {
  EXPECT_FALSE(FrameRecord::Read(fd_).has_value());
  EXPECT_FALSE(FrameRecord::Read(-1).has_value());
  // A part beyond the end of the file.
  const int fd = exports_.Export(
      1, RecordOf({{(kFileFrames + 9) * kFrameBytes, kFrameBytes}}));
  EXPECT_FALSE(FrameRecord::Read(fd).has_value());
  close(fd);
}

class ForeignMemoryTest : public VirtualFixture {
 protected:
  ForeignMemoryTest() : VirtualFixture("backed") {}

  static PlatformOptions OtherOptions(const char* data) {
    PlatformOptions options = SimOptions(1, 8);
    options.sim_data = data;
    return options;
  }
  Shareable Exported(std::uint64_t frames) {
    const MemHandle handle = Create(frames, 0, ShareType::kPosixFd);
    Shareable shareable;
    EXPECT_EQ(device().ExportMemory(handle, ShareType::kPosixFd, &shareable),
              kOk);
    EXPECT_EQ(device().ReleaseMemory(handle), kOk);
    return shareable;
  }
};

TEST_F(ForeignMemoryTest, ImportOfAnotherPlatformKeepsTheMemory) {
  const std::uint64_t free_frames = FreeFrames();
  const Shareable shareable = Exported(2);
  {
    SimPlatform other(OtherOptions("backed"));
    MemHandle imported;
    ASSERT_EQ(other.sim_device(0).ImportMemory(&imported, ShareType::kPosixFd,
                                               shareable),
              kOk);
    close(shareable.fd);
    EXPECT_EQ(FreeFrames(), free_frames - 2);
    // It can be exported again, also to its owner.
    Shareable again;
    ASSERT_EQ(
        other.sim_device(0).ExportMemory(imported, ShareType::kPosixFd, &again),
        kOk);
    MemHandle back;
    EXPECT_EQ(device().ImportMemory(&back, ShareType::kPosixFd, again), kOk);
    EXPECT_EQ(device().ReleaseMemory(back), kOk);
    close(again.fd);
    EXPECT_EQ(other.sim_device(0).ReleaseMemory(imported), kOk);
    EXPECT_EQ(FreeFrames(), free_frames);
    EXPECT_EQ(other.sim_device(0).Leaks(), SimLeaks{});
  }
}

TEST_F(ForeignMemoryTest, DeviceWithoutBytesImportsNone) {
  const Shareable shareable = Exported(1);
  SimPlatform other(OtherOptions("phantom"));
  MemHandle imported;
  EXPECT_EQ(other.sim_device(0).ImportMemory(&imported, ShareType::kPosixFd,
                                             shareable),
            kBad);
  close(shareable.fd);
}

}  // namespace
}  // namespace strata::sim
