// Values of device memory: bytes that the program wrote, reads of others, and
// the time of kernels.

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "strata/platform/simdriver/sim_driver_info.h"
#include "strata/tests/simdriver/driver_library.h"

namespace strata {
namespace {

constexpr char kDefaults[] = "memory=256MiB";

CUdeviceptr Alloc(const DriverLibrary& driver, std::size_t bytes) {
  CUdeviceptr ptr = 0;
  EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemAlloc, 3020)(&ptr, bytes),
            CUDA_SUCCESS);
  return ptr;
}

void Write(const DriverLibrary& driver, CUdeviceptr ptr,
           const std::string& text) {
  EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemcpyHtoD, 3020)(ptr, text.data(),
                                                               text.size()),
            CUDA_SUCCESS);
}

// The bytes at `ptr`; '.' stands for zero.
std::string Read(const DriverLibrary& driver, CUdeviceptr ptr,
                 std::size_t bytes) {
  std::string text(bytes, '?');
  EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemcpyDtoH, 3020)(text.data(), ptr,
                                                               bytes),
            CUDA_SUCCESS);
  for (char& c : text) c = c == 0 ? '.' : c;
  return text;
}

SimDriverInfo InfoOf(const DriverLibrary& driver) {
  SimDriverInfo info;
  EXPECT_EQ(driver.Get<SimDriverInfoFunction>(kSimDriverInfoName,
                                              CUDA_VERSION)(&info),
            0);
  return info;
}

std::string ReportOf(const DriverLibrary& driver, std::size_t bytes = 4096) {
  std::vector<char> text(bytes);
  const auto write = reinterpret_cast<SimDriverReportFunction>(
      driver.Exported(kSimDriverReportName));
  EXPECT_EQ(write(text.data(), bytes), CUDA_SUCCESS);
  return text.data();
}

CUfunction NewFunction(const DriverLibrary& driver) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuModuleLoadData, 2000)(
                &module, "the image is not read"),
            CUDA_SUCCESS);
  EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuModuleGetFunction, 2000)(
                &function, module, "any"),
            CUDA_SUCCESS);
  return function;
}

// The time of `launches` kernels between two events, in ms.
float KernelTime(const DriverLibrary& driver, int launches) {
  const auto create = STRATA_DRIVER_FUNCTION(driver, cuEventCreate, 2000);
  const auto record = STRATA_DRIVER_FUNCTION(driver, cuEventRecord, 2000);
  const CUfunction function = NewFunction(driver);
  std::array<CUevent, 2> events = {};
  for (CUevent& event : events) {
    EXPECT_EQ(create(&event, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  }
  EXPECT_EQ(record(events[0], nullptr), CUDA_SUCCESS);
  for (int i = 0; i < launches; ++i) {
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuLaunchKernel, 4000)(
                  function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_SUCCESS);
  }
  EXPECT_EQ(record(events[1], nullptr), CUDA_SUCCESS);
  EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuEventSynchronize, 2000)(events[1]),
            CUDA_SUCCESS);
  float ms = 0;
  EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuEventElapsedTime, 2000)(
                &ms, events[0], events[1]),
            CUDA_SUCCESS);
  return ms;
}

TEST(SimDriverDataTest, SmallWritesComeBack) {
  WithDriver(kDefaults, nullptr, [](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const CUdeviceptr ptr = Alloc(driver, kMebibyte);
    Write(driver, ptr + 1, "abc");
    EXPECT_EQ(Read(driver, ptr, 5), ".abc.");
    EXPECT_EQ(
        STRATA_DRIVER_FUNCTION(driver, cuMemcpyDtoD, 3020)(ptr + 64, ptr, 5),
        CUDA_SUCCESS);
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemsetD8, 3020)(ptr + 2, 'z', 1),
              CUDA_SUCCESS);
    EXPECT_EQ(Read(driver, ptr, 5), ".azc.");
    EXPECT_EQ(Read(driver, ptr + 64, 5), ".abc.");
    // The two bytes of an element differ. Such a fill is not stored.
    EXPECT_EQ(
        STRATA_DRIVER_FUNCTION(driver, cuMemsetD16, 3020)(ptr + 2, 0x0102, 1),
        CUDA_SUCCESS);
    EXPECT_EQ(Read(driver, ptr, 5), ".a...");
    // The kernel does nothing here, but a real one may have written a result of
    // up to 8 bytes.
    Write(driver, ptr, "0123456789");
    KernelTime(driver, 1);
    EXPECT_EQ(Read(driver, ptr, 10), "0123456789");
    EXPECT_EQ(Read(driver, ptr, 8), "........");
    Write(driver, ptr, std::string(4097, 'a'));
    EXPECT_EQ(Read(driver, ptr, 5), ".....");
    EXPECT_EQ(InfoOf(driver).phantom_memory, 1u);
  });
}

TEST(SimDriverDataTest, PhantomMemoryStoresNone) {
  WithDriver("memory=256MiB data=phantom", nullptr,
             [](const DriverLibrary& driver) {
               ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
               const CUdeviceptr ptr = Alloc(driver, kMebibyte);
               Write(driver, ptr, "abc");
               EXPECT_EQ(Read(driver, ptr, 3), "...");
             });
}

TEST(SimDriverDataTest, ReadsOfUnknownBytesAreCounted) {
  WithDriver(kDefaults, nullptr, [](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const CUdeviceptr ptr = Alloc(driver, kMebibyte);
    Write(driver, ptr, "abcd");
    EXPECT_EQ(InfoOf(driver).host_reads, 0u);
    Read(driver, ptr, 4);
    Read(driver, ptr, 5);
    Read(driver, ptr + 100, 1);
    EXPECT_EQ(InfoOf(driver).host_reads, 3u);
    EXPECT_EQ(InfoOf(driver).written_host_reads, 1u);
    // In another thread, and in a stream.
    std::thread([&] {
      ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
      char byte = 0;
      EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemcpyDtoHAsync, 3020)(
                    &byte, ptr, 1, nullptr),
                CUDA_SUCCESS);
    }).join();
    EXPECT_EQ(InfoOf(driver).host_reads, 4u);
    EXPECT_EQ(InfoOf(driver).written_host_reads, 2u);
    EXPECT_EQ(ReportOf(driver),
              "0 kernels did nothing\n"
              "4 copies to the host: 2 of bytes that the program wrote, "
              "2 of unknown bytes\n"
              "  2 of unknown bytes without a line\n");
    EXPECT_EQ(ReportOf(driver, 10), "0 kernels");
  });
}

// A library of CUDA may write any memory.
TEST(SimDriverDataTest, KernelsOfLibrariesMakeNumbersUnknown) {
  WithDriver("memory=256MiB devices=2", nullptr,
             [](const DriverLibrary& driver) {
               const auto note = reinterpret_cast<void (*)()>(
                   driver.Exported("cuStrataSimNoteKernel"));
               note();  // before cuInit
               ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
               const CUdeviceptr ptr = Alloc(driver, kMebibyte);
               Write(driver, ptr, "abcd");
               EXPECT_EQ(Read(driver, ptr, 4), "abcd");
               note();
               EXPECT_EQ(Read(driver, ptr, 4), "....");
               EXPECT_EQ(InfoOf(driver).written_host_reads, 1u);
               EXPECT_EQ(InfoOf(driver).skipped_kernels, 0u);
             });
}

// A refused copy reads nothing.
TEST(SimDriverDataTest, RefusedReadsDoNotCount) {
  WithDriver(kDefaults, nullptr, [](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const CUdeviceptr ptr = Alloc(driver, 512);
    char byte = 0;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemcpyDtoH, 3020)(
                  &byte, ptr + kMebibyte, 1),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(InfoOf(driver).host_reads, 0u);
  });
}

TEST(SimDriverDataTest, TheReportIsWrittenWhenTheProcessEnds) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe(ends.data()), 0);
  WithDriver("report=true", nullptr, [&](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    KernelTime(driver, 3);
    dup2(ends[1], STDERR_FILENO);
    std::exit(::testing::Test::HasFailure() ? 1 : 0);
  });
  std::string text(4096, '\0');
  const ssize_t count = read(ends[0], text.data(), text.size());
  ASSERT_GT(count, 0);
  EXPECT_NE(text.find("strata simdriver: process "), std::string::npos);
  EXPECT_NE(text.find("3 kernels did nothing\n"), std::string::npos);
  close(ends[0]);
  close(ends[1]);
}

TEST(SimDriverDataTest, KernelsTakeTimeUnderEachProgress) {
  for (const char* const options :
       {"memory=256MiB", "memory=256MiB progress=lazy",
        "memory=256MiB progress=seeded", "memory=256MiB progress=timed"}) {
    WithDriver(options, nullptr, [&](const DriverLibrary& driver) {
      ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
      const float ms = KernelTime(driver, 100);
      EXPECT_GE(ms, 1.0f) << options;
      EXPECT_LT(ms, 1.5f) << options;
    });
  }
}

TEST(SimDriverDataTest, AnOptionIsTheTimeOfAKernel) {
  struct Case {
    const char* options;
    float least_ms;
    float most_ms;
  };
  for (const Case& one :
       {Case{"kernel_time=2ms", 20, 20.5f}, Case{"kernel_time=300us", 3, 3.5f},
        Case{"kernel_time=0ns", 0, 0.5f}}) {
    WithDriver(one.options, nullptr, [&](const DriverLibrary& driver) {
      ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
      const float ms = KernelTime(driver, 10);
      EXPECT_GE(ms, one.least_ms) << one.options;
      EXPECT_LT(ms, one.most_ms) << one.options;
    });
  }
}

}  // namespace
}  // namespace strata
