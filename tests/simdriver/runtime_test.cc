// The stand-in of the CUDA runtime: names, errors, devices and memory.

#include <gtest/gtest.h>

#include <array>
#include <regex>
#include <string>
#include <thread>

#include "strata/tests/simdriver/header_matches.h"
#include "strata/tests/simdriver/runtime_library.h"

namespace strata {
namespace {

TEST(SimRuntimeTest, ExportsEveryFunctionOfTheHeader) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    const int names = ForEachMatch(
        "cuda_runtime_api.h", "CUDARTAPI (cuda[A-Za-z0-9_]+)\\(",
        [&](const std::smatch& match) {
          EXPECT_NE(runtime.Find(match[1].str().c_str()), nullptr) << match[1];
        });
    EXPECT_GT(names, 300);
    const int variants = ForEachMatch(
        "cuda_runtime_api.h",
        "#define (cuda[A-Za-z0-9]+) +__CUDART_API_(PTDS|PTSZ)\\(",
        [&](const std::smatch& match) {
          const std::string suffix = match[2] == "PTDS" ? "_ptds" : "_ptsz";
          const std::string name = match[1].str() + suffix;
          EXPECT_NE(runtime.Find(name.c_str()), nullptr) << name;
        });
    EXPECT_GT(variants, 50);
  });
}

TEST(SimRuntimeTest, LoadingStartsNothing) {
  WithDriver([](const DriverLibrary& driver) {
    const RuntimeLibrary runtime;
    int count = 0;
    const auto get_count =
        STRATA_DRIVER_FUNCTION(driver, cuDeviceGetCount, 2000);
    EXPECT_EQ(get_count(&count), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaGetDeviceCount)(&count),
              cudaSuccess);
    EXPECT_EQ(get_count(&count), CUDA_SUCCESS);
    EXPECT_EQ(count, 2);
  });
}

TEST(SimRuntimeTest, UnimplementedFunctionsAreRefusedAndCounted) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMallocArray)(
                  nullptr, nullptr, 1, 1, 0),
              cudaErrorNotSupported);
    cudaIpcMemHandle_t handle;
    EXPECT_EQ(
        STRATA_RUNTIME_FUNCTION(runtime, cudaIpcGetMemHandle)(&handle, nullptr),
        cudaErrorNotSupported);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaGetLastError)(),
              cudaErrorNotSupported);
    const SimDriverInfo info = runtime.Info();
    EXPECT_EQ(info.unimplemented_calls, 2u);
    EXPECT_STREQ(info.last_unimplemented, "cudaIpcGetMemHandle");
  });
}

TEST(SimRuntimeTest, TheLastErrorIsTheThreads) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    const auto set = STRATA_RUNTIME_FUNCTION(runtime, cudaSetDevice);
    const auto last = STRATA_RUNTIME_FUNCTION(runtime, cudaGetLastError);
    const auto peek = STRATA_RUNTIME_FUNCTION(runtime, cudaPeekAtLastError);
    EXPECT_EQ(set(7), cudaErrorInvalidDevice);
    std::thread([&] { EXPECT_EQ(peek(), cudaSuccess); }).join();
    EXPECT_EQ(set(0), cudaSuccess);
    EXPECT_EQ(peek(), cudaErrorInvalidDevice);
    EXPECT_EQ(last(), cudaErrorInvalidDevice);
    EXPECT_EQ(last(), cudaSuccess);
  });
}

TEST(SimRuntimeTest, NamesErrors) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    const auto name = STRATA_RUNTIME_FUNCTION(runtime, cudaGetErrorName);
    const auto text = STRATA_RUNTIME_FUNCTION(runtime, cudaGetErrorString);
    EXPECT_STREQ(name(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
    EXPECT_STREQ(text(cudaErrorMemoryAllocation), "out of memory");
    EXPECT_STREQ(text(cudaErrorInvalidDeviceFunction),
                 "invalid device function");
    EXPECT_STREQ(text(static_cast<cudaError_t>(12345)),
                 "unrecognized error code");
  });
}

TEST(SimRuntimeTest, TheFirstCallThatNeedsAContextMakesIt) {
  WithDriver([](const DriverLibrary& driver) {
    const RuntimeLibrary runtime;
    const auto is_active = [&](CUdevice device) {
      unsigned flags = 0;
      int active = -1;
      EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuDevicePrimaryCtxGetState,
                                       7000)(device, &flags, &active),
                CUDA_SUCCESS);
      return active;
    };
    int device = -1;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaGetDevice)(&device),
              cudaSuccess);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(is_active(0), 0);
    void* ptr = nullptr;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMalloc)(&ptr, 1),
              cudaSuccess);
    EXPECT_EQ(is_active(0), 1);
    EXPECT_EQ(is_active(1), 0);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaSetDevice)(1), cudaSuccess);
    EXPECT_EQ(is_active(1), 1);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaGetDevice)(&device),
              cudaSuccess);
    EXPECT_EQ(device, 1);
    // Another thread starts with device 0.
    std::thread([&] {
      EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaGetDevice)(&device),
                cudaSuccess);
      EXPECT_EQ(device, 0);
    }).join();
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaDeviceReset)(), cudaSuccess);
    EXPECT_EQ(is_active(1), 0);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaDeviceSynchronize)(),
              cudaSuccess);
    EXPECT_EQ(is_active(1), 1);
  });
}

TEST(SimRuntimeTest, FollowsTheContextOfTheDriver) {
  WithDriver([](const DriverLibrary& driver) {
    const RuntimeLibrary runtime;
    ASSERT_EQ(driver.Start(1), CUDA_SUCCESS);
    int device = -1;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaGetDevice)(&device),
              cudaSuccess);
    EXPECT_EQ(device, 1);
    void* ptr = nullptr;
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMalloc)(&ptr, 1),
              cudaSuccess);
    cudaPointerAttributes attributes;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaPointerGetAttributes)(
                  &attributes, ptr),
              cudaSuccess);
    EXPECT_EQ(attributes.device, 1);
    EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
    EXPECT_EQ(attributes.devicePointer, ptr);
    EXPECT_EQ(attributes.hostPointer, nullptr);
  });
}

TEST(SimRuntimeTest, DescribesTheDevice) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    // The structure is the caller's: nothing behind it may be written.
    struct {
      cudaDeviceProp properties;
      std::array<unsigned char, 64> behind;
    } found;
    found.behind.fill(0x5a);
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaGetDeviceProperties)(
                  &found.properties, 1),
              cudaSuccess);
    EXPECT_EQ(found.behind[0], 0x5a);
    EXPECT_STREQ(found.properties.name, "Strata simulated GPU");
    EXPECT_EQ(found.properties.totalGlobalMem, 256 * kMebibyte);
    EXPECT_EQ(found.properties.major, 9);
    EXPECT_EQ(found.properties.warpSize, 32);
    EXPECT_EQ(found.properties.maxGridSize[1], 65535);
    EXPECT_EQ(found.properties.multiProcessorCount, 132);
    EXPECT_EQ(found.properties.sharedMemPerMultiprocessor, 228u << 10);
    int value = 0;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaDeviceGetAttribute)(
                  &value, cudaDevAttrMultiProcessorCount, 0),
              cudaSuccess);
    EXPECT_EQ(value, 132);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaGetDeviceProperties)(
                  &found.properties, 2),
              cudaErrorInvalidDevice);
  });
}

TEST(SimRuntimeTest, NothingIsNoAllocation) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    void* ptr = &ptr;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMalloc)(&ptr, 0),
              cudaSuccess);
    EXPECT_EQ(ptr, nullptr);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaFree)(nullptr), cudaSuccess);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaFreeHost)(nullptr),
              cudaSuccess);
    EXPECT_EQ(
        STRATA_RUNTIME_FUNCTION(runtime, cudaMalloc)(&ptr, kMebibyte << 9),
        cudaErrorMemoryAllocation);
    EXPECT_EQ(ptr, nullptr);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMalloc)(nullptr, 1),
              cudaErrorInvalidValue);
  });
}

TEST(SimRuntimeTest, BytesComeBack) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    const auto copy = STRATA_RUNTIME_FUNCTION(runtime, cudaMemcpy2D);
    void* ptr = nullptr;
    std::size_t pitch = 0;
    ASSERT_EQ(
        STRATA_RUNTIME_FUNCTION(runtime, cudaMallocPitch)(&ptr, &pitch, 6, 2),
        cudaSuccess);
    EXPECT_EQ(pitch, 512u);
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMemset)(ptr, 9, 2 * pitch),
              cudaSuccess);
    const char text[] = "abcdefghijkl";
    EXPECT_EQ(copy(ptr, pitch, text, 6, 6, 2, cudaMemcpyHostToDevice),
              cudaSuccess);
    std::array<char, 2 * 512> bytes{};
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMemcpy)(
                  bytes.data(), ptr, bytes.size(), cudaMemcpyDeviceToHost),
              cudaSuccess);
    EXPECT_EQ(std::string(bytes.data(), 6), "abcdef");
    EXPECT_EQ(bytes[6], 9);
    EXPECT_EQ(std::string(bytes.data() + 512, 6), "ghijkl");
    EXPECT_EQ(copy(ptr, 3, text, 6, 6, 2, cudaMemcpyHostToDevice),
              cudaErrorInvalidPitchValue);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMemcpy)(
                  bytes.data(), ptr, 1, static_cast<cudaMemcpyKind>(7)),
              cudaErrorInvalidMemcpyDirection);
  });
}

TEST(SimRuntimeTest, KnowsMemoryOfTheHost) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    const auto describe =
        STRATA_RUNTIME_FUNCTION(runtime, cudaPointerGetAttributes);
    cudaPointerAttributes attributes;
    int local = 0;
    EXPECT_EQ(describe(&attributes, &local), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
    EXPECT_EQ(attributes.device, cudaInvalidDeviceId);
    void* pinned = nullptr;
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaHostAlloc)(
                  &pinned, 64, cudaHostAllocDefault),
              cudaSuccess);
    EXPECT_EQ(describe(&attributes, pinned), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
    EXPECT_EQ(attributes.hostPointer, pinned);
    void* managed = nullptr;
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMallocManaged)(
                  &managed, 64, cudaMemAttachGlobal),
              cudaSuccess);
    EXPECT_EQ(describe(&attributes, managed), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
  });
}

TEST(SimRuntimeTest, LimitsAreKept) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    const auto get = STRATA_RUNTIME_FUNCTION(runtime, cudaDeviceGetLimit);
    std::size_t value = 0;
    EXPECT_EQ(get(&value, cudaLimitStackSize), cudaSuccess);
    EXPECT_EQ(value, 1024u);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaDeviceSetLimit)(
                  cudaLimitStackSize, 4096),
              cudaSuccess);
    EXPECT_EQ(get(&value, cudaLimitStackSize), cudaSuccess);
    EXPECT_EQ(value, 4096u);
  });
}

TEST(SimRuntimeTest, PoolsTakeTheStructuresOfTheHeader) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = 1;
    props.maxSize = 4 * kMebibyte;
    cudaMemPool_t pool = nullptr;
    ASSERT_EQ(
        STRATA_RUNTIME_FUNCTION(runtime, cudaMemPoolCreate)(&pool, &props),
        cudaSuccess);
    const auto allocate =
        STRATA_RUNTIME_FUNCTION(runtime, cudaMallocFromPoolAsync);
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaSetDevice)(1), cudaSuccess);
    void* ptr = nullptr;
    EXPECT_EQ(allocate(&ptr, 4 * kMebibyte, pool, nullptr), cudaSuccess);
    void* other = nullptr;
    EXPECT_EQ(allocate(&other, 1, pool, nullptr), cudaErrorMemoryAllocation);
    cudaPointerAttributes attributes;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaPointerGetAttributes)(
                  &attributes, ptr),
              cudaSuccess);
    EXPECT_EQ(attributes.device, 1);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaFreeAsync)(ptr, nullptr),
              cudaSuccess);
  });
}

TEST(SimRuntimeTest, CurrentPoolServesAllocationsThatNameNone) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    const auto current = STRATA_RUNTIME_FUNCTION(runtime, cudaDeviceGetMemPool);
    const auto choose = STRATA_RUNTIME_FUNCTION(runtime, cudaDeviceSetMemPool);
    cudaMemPool_t standard = nullptr;
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaDeviceGetDefaultMemPool)(
                  &standard, 0),
              cudaSuccess);
    cudaMemPool_t found = nullptr;
    EXPECT_EQ(current(&found, 0), cudaSuccess);
    EXPECT_EQ(found, standard);
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool = nullptr;
    ASSERT_EQ(
        STRATA_RUNTIME_FUNCTION(runtime, cudaMemPoolCreate)(&pool, &props),
        cudaSuccess);
    // It belongs to device 0.
    EXPECT_EQ(choose(1, pool), cudaErrorInvalidValue);
    ASSERT_EQ(choose(0, pool), cudaSuccess);
    EXPECT_EQ(current(&found, 0), cudaSuccess);
    EXPECT_EQ(found, pool);
    void* ptr = nullptr;
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMallocAsync)(&ptr, kMebibyte,
                                                                nullptr),
              cudaSuccess);
    const auto get = STRATA_RUNTIME_FUNCTION(runtime, cudaMemPoolGetAttribute);
    std::uint64_t used = 0;
    EXPECT_EQ(get(pool, cudaMemPoolAttrUsedMemCurrent, &used), cudaSuccess);
    EXPECT_EQ(used, kMebibyte);
    EXPECT_EQ(get(standard, cudaMemPoolAttrUsedMemCurrent, &used), cudaSuccess);
    EXPECT_EQ(used, 0U);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaFreeAsync)(ptr, nullptr),
              cudaSuccess);
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMemPoolDestroy)(pool),
              cudaSuccess);
    EXPECT_EQ(current(&found, 0), cudaSuccess);
    EXPECT_EQ(found, standard);
  });
}

TEST(SimRuntimeTest, FindsFunctionsOfTheDriver) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    const auto find =
        STRATA_RUNTIME_FUNCTION(runtime, cudaGetDriverEntryPointByVersion);
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSuccess;
    EXPECT_EQ(find("cuMemCreate", &function, 12000, cudaEnableDefault, &result),
              cudaSuccess);
    EXPECT_NE(function, nullptr);
    EXPECT_EQ(find("cuNone", &function, 12000, cudaEnableDefault, &result),
              cudaSuccess);
    EXPECT_EQ(result, cudaDriverEntryPointSymbolNotFound);
    EXPECT_EQ(find("cuMemCreate", &function, CUDART_VERSION + 10000,
                   cudaEnableDefault, &result),
              cudaErrorInvalidValue);
    // The variant for a program in which the null stream is the thread's own.
    void* own = nullptr;
    EXPECT_EQ(
        find("cuStreamQuery", &function, 12000, cudaEnableDefault, &result),
        cudaSuccess);
    EXPECT_EQ(
        STRATA_RUNTIME_VARIANT(runtime, cudaGetDriverEntryPointByVersion, ptsz)(
            "cuStreamQuery", &own, 12000, cudaEnableDefault, &result),
        cudaSuccess);
    EXPECT_NE(own, function);
    int version = 0;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaRuntimeGetVersion)(&version),
              cudaSuccess);
    EXPECT_EQ(version, CUDART_VERSION);
  });
}

TEST(SimRuntimeTest, AForkedChildIsRefusedEveryCall) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    void* ptr = nullptr;
    const auto allocate = STRATA_RUNTIME_FUNCTION(runtime, cudaMalloc);
    const auto count = STRATA_RUNTIME_FUNCTION(runtime, cudaGetDeviceCount);
    const auto set = STRATA_RUNTIME_FUNCTION(runtime, cudaSetDevice);
    const auto last = STRATA_RUNTIME_FUNCTION(runtime, cudaGetLastError);
    const auto array = STRATA_RUNTIME_FUNCTION(runtime, cudaMallocArray);
    ASSERT_EQ(allocate(&ptr, 1), cudaSuccess);
    const pid_t child = fork();
    if (child == 0) {
      int number = 9;
      const bool refused =
          allocate(&ptr, 1) == cudaErrorInitializationError &&
          count(&number) == cudaErrorInitializationError && number == 0 &&
          set(0) == cudaErrorInitializationError &&
          array(nullptr, nullptr, 1, 1, 0) == cudaErrorInitializationError &&
          last() == cudaErrorInitializationError;
      _exit(refused ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(allocate(&ptr, 1), cudaSuccess);
  });
}

}  // namespace
}  // namespace strata
