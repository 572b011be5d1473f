// What the functions of the stand-in driver do beyond the CUDA platform's
// needs; the conformance suite runs over it for the rest.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/platform/simdriver/sim_driver_info.h"
#include "strata/tests/simdriver/driver_library.h"

namespace strata {
namespace {

CUmemAllocationProp PropOfDevice() {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return prop;
}

CUfunction NewFunction(const DriverLibrary& driver, const char* name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuModuleLoadData, 2000)(
                &module, "the image is not read"),
            CUDA_SUCCESS);
  EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuModuleGetFunction, 2000)(
                &function, module, name),
            CUDA_SUCCESS);
  return function;
}

CUresult Launch(const DriverLibrary& driver, CUfunction function,
                CUstream stream, unsigned threads = 32) {
  return STRATA_DRIVER_FUNCTION(driver, cuLaunchKernel, 4000)(
      function, 1, 1, 1, threads, 1, 1, 0, stream, nullptr, nullptr);
}

TEST(SimDriverCallsTest, ReservedFieldsMustBeZero) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const auto create = STRATA_DRIVER_FUNCTION(driver, cuMemCreate, 10020);
    const auto pool_create =
        STRATA_DRIVER_FUNCTION(driver, cuMemPoolCreate, 11020);
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp prop = PropOfDevice();
    EXPECT_EQ(create(&handle, 2 * kMebibyte, &prop, 0), CUDA_SUCCESS);
    EXPECT_EQ(create(&handle, 2 * kMebibyte, &prop, 1),
              CUDA_ERROR_INVALID_VALUE);
    prop.allocFlags.reserved[3] = 1;
    EXPECT_EQ(create(&handle, 2 * kMebibyte, &prop, 0),
              CUDA_ERROR_INVALID_VALUE);
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(pool_create(&pool, &props), CUDA_SUCCESS);
    props.reserved[sizeof(props.reserved) - 1] = 1;
    EXPECT_EQ(pool_create(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr range = 0;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemAddressReserve, 10020)(
                  &range, 2 * kMebibyte, 0, 0, 1),
              CUDA_ERROR_INVALID_VALUE);
    CUgraph graph = nullptr;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuGraphCreate, 10000)(&graph, 1),
              CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(SimDriverCallsTest, MemoryRunsOut) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const auto allocate = STRATA_DRIVER_FUNCTION(driver, cuMemAlloc, 3020);
    CUdeviceptr ptr = 0;
    EXPECT_EQ(allocate(&ptr, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(allocate(&ptr, 257 * kMebibyte), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(allocate(&ptr, 256 * kMebibyte), CUDA_SUCCESS);
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemFree, 3020)(ptr),
              CUDA_SUCCESS);
  });
}

// Memory of one device is freed in the context of another.
TEST(SimDriverCallsTest, FreesMemoryOfAnotherDevice) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(0), CUDA_SUCCESS);
    CUdeviceptr ptr = 0;
    ASSERT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemAlloc, 3020)(&ptr, 512),
              CUDA_SUCCESS);
    ASSERT_EQ(driver.Start(1), CUDA_SUCCESS);
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemFree, 3020)(ptr),
              CUDA_SUCCESS);
  });
}

TEST(SimDriverCallsTest, BytesComeBack) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    std::array<char, 16> text = {"fifteen letters"};
    std::array<char, 16> back = {};
    CUdeviceptr ptr = 0;
    ASSERT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemAlloc, 3020)(&ptr, 512),
              CUDA_SUCCESS);
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemcpyHtoD, 3020)(
                  ptr, text.data(), text.size()),
              CUDA_SUCCESS);
    EXPECT_EQ(
        STRATA_DRIVER_FUNCTION(driver, cuMemcpyDtoD, 3020)(ptr + 64, ptr, 16),
        CUDA_SUCCESS);
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemcpyDtoH, 3020)(
                  back.data(), ptr + 64, back.size()),
              CUDA_SUCCESS);
    EXPECT_EQ(back, text);
  });
}

// One fill whose bytes are all the same, and two that no fill of bytes can do.
TEST(SimDriverCallsTest, FillsRepeatTheirElement) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const auto fill2 = STRATA_DRIVER_FUNCTION(driver, cuMemsetD16, 3020);
    const auto fill4 = STRATA_DRIVER_FUNCTION(driver, cuMemsetD32, 3020);
    CUdeviceptr ptr = 0;
    ASSERT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemAlloc, 3020)(&ptr, 512),
              CUDA_SUCCESS);
    EXPECT_EQ(fill4(ptr, 0x07070707, 4), CUDA_SUCCESS);
    EXPECT_EQ(fill4(ptr + 4, 0x01020304, 2), CUDA_SUCCESS);
    EXPECT_EQ(fill2(ptr + 12, 0x0506, 1), CUDA_SUCCESS);
    EXPECT_EQ(fill4(ptr + 2, 0x01020304, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(fill4(ptr, 0x01020304, ~std::size_t{0} / 2),
              CUDA_ERROR_INVALID_VALUE);
    std::array<std::uint32_t, 4> words = {};
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemcpyDtoH, 3020)(words.data(),
                                                                 ptr, 16),
              CUDA_SUCCESS);
    const std::array<std::uint32_t, 4> expected = {0x07070707, 0x01020304,
                                                   0x01020304, 0x07070506};
    EXPECT_EQ(words, expected);
  });
}

TEST(SimDriverCallsTest, OccupancyIsNeverZero) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const CUfunction function = NewFunction(driver, "any");
    const auto blocks = STRATA_DRIVER_FUNCTION(
        driver, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050);
    for (const int threads : {1, 32, 1024}) {
      int count = 0;
      EXPECT_EQ(blocks(&count, function, threads, 0), CUDA_SUCCESS);
      EXPECT_GE(count, 1);
    }
    int grid = 0;
    int block = 0;
    EXPECT_EQ(
        STRATA_DRIVER_FUNCTION(driver, cuOccupancyMaxPotentialBlockSize, 6050)(
            &grid, &block, function, nullptr, 0, 0),
        CUDA_SUCCESS);
    EXPECT_GE(grid, 1);
    EXPECT_GE(block, 1);
  });
}

TEST(SimDriverCallsTest, ModulesComeFromFilesThatExist) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const auto load = STRATA_DRIVER_FUNCTION(driver, cuModuleLoad, 2000);
    CUmodule module = nullptr;
    EXPECT_EQ(load(&module, "/proc/self/exe"), CUDA_SUCCESS);
    CUfunction function = nullptr;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuModuleGetFunction, 2000)(
                  &function, module, "any"),
              CUDA_SUCCESS);
    EXPECT_EQ(load(&module, "/no such file"), CUDA_ERROR_FILE_NOT_FOUND);
  });
}

TEST(SimDriverCallsTest, KernelsOfTheProgramAreWorkThatDoesNothing) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const CUfunction function = NewFunction(driver, "any");
    CUstream stream = nullptr;
    ASSERT_EQ(STRATA_DRIVER_FUNCTION(driver, cuStreamCreate, 2000)(&stream, 1),
              CUDA_SUCCESS);
    EXPECT_EQ(Launch(driver, function, stream, 1025), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(Launch(driver, function, stream, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(Launch(driver, function, stream), CUDA_SUCCESS);
    // Lazy progress: it waits for somebody who waits for it.
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuStreamQuery, 2000)(stream),
              CUDA_ERROR_NOT_READY);
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuStreamSynchronize, 2000)(stream),
              CUDA_SUCCESS);
    SimDriverInfo info;
    ASSERT_EQ(driver.Get<SimDriverInfoFunction>(kSimDriverInfoName,
                                                CUDA_VERSION)(&info),
              0);
    EXPECT_EQ(info.skipped_kernels, 1u);
    EXPECT_EQ(info.phantom_memory, 0u);
  });
}

TEST(SimDriverCallsTest, AKernelInACaptureIsANode) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const CUfunction function = NewFunction(driver, "any");
    CUstream stream = nullptr;
    ASSERT_EQ(STRATA_DRIVER_FUNCTION(driver, cuStreamCreate, 2000)(&stream, 1),
              CUDA_SUCCESS);
    ASSERT_EQ(STRATA_DRIVER_FUNCTION(driver, cuStreamBeginCapture, 10010)(
                  stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_SUCCESS);
    EXPECT_EQ(Launch(driver, function, stream), CUDA_SUCCESS);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    const CUgraphNode* nodes = nullptr;
    std::size_t count = 0;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuStreamGetCaptureInfo, 11030)(
                  stream, &status, &id, nullptr, &nodes, &count),
              CUDA_SUCCESS);
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(count, 1u);
    cuuint64_t same = 0;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuStreamGetCaptureInfo, 10010)(
                  stream, &status, &same),
              CUDA_SUCCESS);
    EXPECT_EQ(same, id);
    CUgraph graph = nullptr;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuStreamEndCapture, 10000)(stream,
                                                                        &graph),
              CUDA_SUCCESS);
    // The three forms of one function.
    CUgraphExec exec = nullptr;
    CUgraphNode failed = nullptr;
    std::array<char, 8> log = {};
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuGraphInstantiateWithFlags,
                                     11040)(&exec, graph, 8),
              CUDA_SUCCESS);
    using Logged =
        CUresult (*)(CUgraphExec*, CUgraph, CUgraphNode*, char*, std::size_t);
    EXPECT_EQ(driver.Get<Logged>("cuGraphInstantiate", 11000)(
                  &exec, graph, &failed, log.data(), log.size()),
              CUDA_SUCCESS);
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuGraphInstantiateWithParams,
                                     12000)(&exec, graph, &params),
              CUDA_SUCCESS);
    EXPECT_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
    EXPECT_EQ(
        STRATA_DRIVER_FUNCTION(driver, cuGraphLaunch, 10000)(exec, stream),
        CUDA_SUCCESS);
  });
}

TEST(SimDriverCallsTest, TheNullStreamDependsOnTheVariant) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const auto id_of = [&](CUstream stream, cuuint64_t flags) {
      unsigned long long id = 0;  // NOLINT(google-runtime-int)
      EXPECT_EQ(driver.Get<PFN_cuStreamGetId_v12000>("cuStreamGetId", 12000,
                                                     flags)(stream, &id),
                CUDA_SUCCESS);
      return id;
    };
    EXPECT_EQ(id_of(nullptr, 0), id_of(CU_STREAM_LEGACY, 2));
    EXPECT_EQ(id_of(nullptr, 2), id_of(CU_STREAM_PER_THREAD, 0));
    EXPECT_NE(id_of(nullptr, 0), id_of(nullptr, 2));
  });
}

TEST(SimDriverCallsTest, UnknownHandlesAreRefused) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    CUstream stream = nullptr;
    ASSERT_EQ(STRATA_DRIVER_FUNCTION(driver, cuStreamCreate, 2000)(&stream, 0),
              CUDA_SUCCESS);
    ASSERT_EQ(STRATA_DRIVER_FUNCTION(driver, cuStreamDestroy, 4000)(stream),
              CUDA_SUCCESS);
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuStreamQuery, 2000)(stream),
              CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuStreamDestroy, 4000)(stream),
              CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(Launch(driver, reinterpret_cast<CUfunction>(&stream), nullptr),
              CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuEventQuery,
                                     2000)(reinterpret_cast<CUevent>(&stream)),
              CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST(SimDriverCallsTest, PointersAreDescribed) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(1), CUDA_SUCCESS);
    CUdeviceptr ptr = 0;
    ASSERT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemAlloc, 3020)(&ptr, 512),
              CUDA_SUCCESS);
    const auto attribute =
        STRATA_DRIVER_FUNCTION(driver, cuPointerGetAttribute, 4000);
    int device = -1;
    EXPECT_EQ(attribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ptr),
              CUDA_SUCCESS);
    EXPECT_EQ(device, 1);
    CUdeviceptr begin = 0;
    std::size_t bytes = 0;
    EXPECT_EQ(attribute(&begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, ptr + 9),
              CUDA_SUCCESS);
    EXPECT_EQ(begin, ptr);
    EXPECT_EQ(attribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, ptr + 9),
              CUDA_SUCCESS);
    EXPECT_EQ(bytes, 512u);
    CUcontext context = nullptr;
    CUcontext current = nullptr;
    EXPECT_EQ(attribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, ptr),
              CUDA_SUCCESS);
    STRATA_DRIVER_FUNCTION(driver, cuCtxGetCurrent, 4000)(&current);
    EXPECT_EQ(context, current);
    int local = 0;
    EXPECT_EQ(attribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                        reinterpret_cast<CUdeviceptr>(&local)),
              CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(SimDriverCallsTest, AnAddressHasARange) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    CUdeviceptr ptr = 0;
    ASSERT_EQ(
        STRATA_DRIVER_FUNCTION(driver, cuMemAlloc, 3020)(&ptr, 3 * kMebibyte),
        CUDA_SUCCESS);
    const auto range =
        STRATA_DRIVER_FUNCTION(driver, cuMemGetAddressRange, 3020);
    CUdeviceptr begin = 0;
    std::size_t bytes = 0;
    EXPECT_EQ(range(&begin, &bytes, ptr + 2 * kMebibyte + 5), CUDA_SUCCESS);
    EXPECT_EQ(begin, ptr);
    EXPECT_EQ(bytes, 3 * kMebibyte);
    EXPECT_EQ(range(&begin, nullptr, ptr + 3 * kMebibyte),
              CUDA_ERROR_NOT_FOUND);
  });
}

TEST(SimDriverCallsTest, EventsHaveTimes) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const auto create = STRATA_DRIVER_FUNCTION(driver, cuEventCreate, 2000);
    const auto record = STRATA_DRIVER_FUNCTION(driver, cuEventRecord, 2000);
    CUevent start = nullptr;
    CUevent end = nullptr;
    ASSERT_EQ(create(&start, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    ASSERT_EQ(create(&end, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    ASSERT_EQ(record(start, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(record(end, nullptr), CUDA_SUCCESS);
    float ms = 0;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuEventElapsedTime, 2000)(
                  &ms, start, end),
              CUDA_SUCCESS);
    EXPECT_GT(ms, 0);
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuEventElapsedTime, 2000)(
                  &ms, start, nullptr),
              CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST(SimDriverCallsTest, ContextsKeepTheirLimits) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const auto get = STRATA_DRIVER_FUNCTION(driver, cuCtxGetLimit, 3010);
    const auto set = STRATA_DRIVER_FUNCTION(driver, cuCtxSetLimit, 3010);
    std::size_t value = 0;
    EXPECT_EQ(get(&value, CU_LIMIT_MALLOC_HEAP_SIZE), CUDA_SUCCESS);
    EXPECT_EQ(value, 8 * kMebibyte);
    EXPECT_EQ(set(CU_LIMIT_MALLOC_HEAP_SIZE, 0), CUDA_SUCCESS);
    EXPECT_EQ(get(&value, CU_LIMIT_MALLOC_HEAP_SIZE), CUDA_SUCCESS);
    EXPECT_EQ(value, 0u);
    EXPECT_EQ(get(&value, CU_LIMIT_MAX), CUDA_ERROR_UNSUPPORTED_LIMIT);
    EXPECT_EQ(set(CU_LIMIT_MAX, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
  });
}

}  // namespace
}  // namespace strata
