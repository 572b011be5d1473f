// The stand-in of the CUDA runtime: streams, captures and kernels of a program.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "strata/platform/cuda/cuda_work_arguments.h"
#include "strata/tests/simdriver/runtime_library.h"

namespace strata {
namespace {

// Stand for functions that a compiler makes for kernels; only their addresses
// are used.
char g_image[1];
char g_kernel_stub[1];
char g_work_stub[1];
char g_variable[1];

// The work of a compiler's constructor.
void** Register(const RuntimeLibrary& runtime) {
  void** const handle =
      STRATA_RUNTIME_FUNCTION(runtime, __cudaRegisterFatBinary)(g_image);
  const auto add = [&](const char* stub, const char* name) {
    STRATA_RUNTIME_FUNCTION(runtime, __cudaRegisterFunction)
    (handle, stub, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr,
     nullptr);
  };
  add(g_kernel_stub, "_Z6kernelPf");
  add(g_work_stub, "strata_work");
  STRATA_RUNTIME_FUNCTION(runtime, __cudaRegisterVar)
  (handle, g_variable, nullptr, "variable", 0, 16, 0, 0);
  STRATA_RUNTIME_FUNCTION(runtime, __cudaRegisterFatBinaryEnd)(handle);
  return handle;
}

TEST(SimRuntimeLaunchTest, KernelsAreKnownByTheirStubs) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    void** const handle = Register(runtime);
    const auto launch = STRATA_RUNTIME_FUNCTION(runtime, cudaLaunchKernel);
    EXPECT_EQ(launch(g_kernel_stub, 1, 32, nullptr, 0, nullptr), cudaSuccess);
    EXPECT_EQ(runtime.Info().skipped_kernels, 1u);
    const char* name = nullptr;
    EXPECT_EQ(
        STRATA_RUNTIME_FUNCTION(runtime, cudaFuncGetName)(&name, g_kernel_stub),
        cudaSuccess);
    EXPECT_STREQ(name, "_Z6kernelPf");
    EXPECT_EQ(launch(g_variable, 1, 32, nullptr, 0, nullptr),
              cudaErrorInvalidDeviceFunction);
    STRATA_RUNTIME_FUNCTION(runtime, __cudaUnregisterFatBinary)(handle);
    EXPECT_EQ(launch(g_kernel_stub, 1, 32, nullptr, 0, nullptr),
              cudaErrorInvalidDeviceFunction);
  });
}

TEST(SimRuntimeLaunchTest, RegistrationStartsNothing) {
  WithDriver([](const DriverLibrary& driver) {
    const RuntimeLibrary runtime;
    Register(runtime);
    int count = 0;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuDeviceGetCount, 2000)(&count),
              CUDA_ERROR_NOT_INITIALIZED);
  });
}

TEST(SimRuntimeLaunchTest, WrongShapesAreRefused) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    Register(runtime);
    const auto launch = STRATA_RUNTIME_FUNCTION(runtime, cudaLaunchKernel);
    EXPECT_EQ(launch(g_kernel_stub, 0, 32, nullptr, 0, nullptr),
              cudaErrorInvalidConfiguration);
    EXPECT_EQ(launch(g_kernel_stub, 1, dim3(64, 32), nullptr, 0, nullptr),
              cudaErrorInvalidConfiguration);
    EXPECT_EQ(runtime.Info().skipped_kernels, 0u);
  });
}

TEST(SimRuntimeLaunchTest, AHandleOfAKernelLaunchesIt) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    Register(runtime);
    cudaKernel_t kernel = nullptr;
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, __cudaGetKernel)(&kernel,
                                                                g_kernel_stub),
              cudaSuccess);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, __cudaLaunchKernel)(
                  kernel, 1, 32, nullptr, 0, nullptr),
              cudaSuccess);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaLaunchKernel)(
                  kernel, 1, 32, nullptr, 0, nullptr),
              cudaSuccess);
    cudaLaunchConfig_t config = {};
    config.gridDim = 1;
    config.blockDim = 32;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaLaunchKernelExC)(
                  &config, g_kernel_stub, nullptr),
              cudaSuccess);
    EXPECT_EQ(runtime.Info().skipped_kernels, 3u);
  });
}

TEST(SimRuntimeLaunchTest, OurOwnKernelIsCarriedOut) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    Register(runtime);
    void* ptr = nullptr;
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMalloc)(&ptr, 16),
              cudaSuccess);
    cuda::CudaWorkArguments arguments = {};
    arguments.pattern = 77;
    arguments.count = 1;
    arguments.ranges[0] = {reinterpret_cast<std::uint64_t>(ptr), 2, 1};
    void* parameters[] = {&arguments};
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaLaunchKernel)(
                  g_work_stub, 1, 32, parameters, 0, nullptr),
              cudaSuccess);
    std::array<std::uint64_t, 2> words{};
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMemcpy)(
                  words.data(), ptr, 16, cudaMemcpyDeviceToHost),
              cudaSuccess);
    EXPECT_EQ(words[1], 77u);
  });
}

TEST(SimRuntimeLaunchTest, ConfigurationsStackUp) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    const auto push =
        STRATA_RUNTIME_FUNCTION(runtime, __cudaPushCallConfiguration);
    const auto pop =
        STRATA_RUNTIME_FUNCTION(runtime, __cudaPopCallConfiguration);
    EXPECT_EQ(push(dim3(2), dim3(64), 3, nullptr), 0u);
    EXPECT_EQ(push(dim3(5), dim3(32), 0, cudaStreamLegacy), 0u);
    dim3 grid;
    dim3 block;
    std::size_t shared_bytes = 9;
    cudaStream_t stream = nullptr;
    EXPECT_EQ(pop(&grid, &block, &shared_bytes, &stream), cudaSuccess);
    EXPECT_EQ(grid.x, 5u);
    EXPECT_EQ(stream, cudaStreamLegacy);
    EXPECT_EQ(pop(&grid, &block, &shared_bytes, &stream), cudaSuccess);
    EXPECT_EQ(block.x, 64u);
    EXPECT_EQ(shared_bytes, 3u);
    EXPECT_EQ(pop(&grid, &block, &shared_bytes, &stream),
              cudaErrorMissingConfiguration);
  });
}

TEST(SimRuntimeLaunchTest, KernelsHavePlausibleAttributes) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    Register(runtime);
    cudaFuncAttributes attributes;
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaFuncGetAttributes)(
                  &attributes, g_kernel_stub),
              cudaSuccess);
    EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
    EXPECT_GT(attributes.numRegs, 0);
    EXPECT_EQ(attributes.binaryVersion, 90);
    EXPECT_GT(attributes.maxDynamicSharedSizeBytes, 0);
    for (const int threads : {1, 256, 1024}) {
      int blocks = 0;
      EXPECT_EQ(STRATA_RUNTIME_FUNCTION(
                    runtime, cudaOccupancyMaxActiveBlocksPerMultiprocessor)(
                    &blocks, g_kernel_stub, threads, 0),
                cudaSuccess);
      EXPECT_GE(blocks, 1);
    }
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaFuncSetAttribute)(
                  g_kernel_stub, cudaFuncAttributeMaxDynamicSharedMemorySize,
                  100 << 10),
              cudaSuccess);
  });
}

TEST(SimRuntimeLaunchTest, VariablesAreMemoryOfTheDevice) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    Register(runtime);
    std::size_t bytes = 0;
    EXPECT_EQ(
        STRATA_RUNTIME_FUNCTION(runtime, cudaGetSymbolSize)(&bytes, g_variable),
        cudaSuccess);
    EXPECT_EQ(bytes, 16u);
    const int written = 41;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMemcpyToSymbol)(
                  g_variable, &written, 4, 12, cudaMemcpyHostToDevice),
              cudaSuccess);
    void* ptr = nullptr;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaGetSymbolAddress)(
                  &ptr, g_variable),
              cudaSuccess);
    int read = 0;
    EXPECT_EQ(
        STRATA_RUNTIME_FUNCTION(runtime, cudaMemcpy)(
            &read, static_cast<char*>(ptr) + 12, 4, cudaMemcpyDeviceToHost),
        cudaSuccess);
    EXPECT_EQ(read, 41);
    read = 0;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMemcpyFromSymbol)(
                  &read, g_variable, 4, 12, cudaMemcpyDeviceToHost),
              cudaSuccess);
    EXPECT_EQ(read, 41);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaMemcpyToSymbol)(
                  g_variable, &written, 4, 13, cudaMemcpyHostToDevice),
              cudaErrorInvalidValue);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaGetSymbolAddress)(
                  &ptr, g_kernel_stub),
              cudaErrorInvalidSymbol);
  });
}

TEST(SimRuntimeLaunchTest, ManagedVariablesAreMadeBeforeTheirFirstUse) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    void** const handle = Register(runtime);
    void* variable = nullptr;
    STRATA_RUNTIME_FUNCTION(runtime, __cudaRegisterManagedVar)
    (handle, &variable, nullptr, "managed", 0, 4, 0, 0);
    EXPECT_EQ(variable, nullptr);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, __cudaInitModule)(handle), 1);
    ASSERT_NE(variable, nullptr);
    *static_cast<int*>(variable) = 5;
    cudaPointerAttributes attributes;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaPointerGetAttributes)(
                  &attributes, variable),
              cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
    // Once.
    void* const first = variable;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, __cudaInitModule)(handle), 1);
    EXPECT_EQ(variable, first);
  });
}

TEST(SimRuntimeLaunchTest, TheVariantDecidesWhatTheNullStreamIs) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    Register(runtime);
    const auto query = STRATA_RUNTIME_FUNCTION(runtime, cudaStreamQuery);
    // Lazy progress: work waits for a call that waits for it.
    ASSERT_EQ(STRATA_RUNTIME_VARIANT(runtime, cudaLaunchKernel, ptsz)(
                  g_kernel_stub, 1, 32, nullptr, 0, nullptr),
              cudaSuccess);
    EXPECT_EQ(query(cudaStreamPerThread), cudaErrorNotReady);
    EXPECT_EQ(
        STRATA_RUNTIME_VARIANT(runtime, cudaStreamSynchronize, ptsz)(nullptr),
        cudaSuccess);
    EXPECT_EQ(query(cudaStreamPerThread), cudaSuccess);
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaLaunchKernel)(
                  g_kernel_stub, 1, 32, nullptr, 0, nullptr),
              cudaSuccess);
    EXPECT_EQ(query(cudaStreamLegacy), cudaErrorNotReady);
    // Also in a function that only forwards to the driver.
    EXPECT_EQ(query(nullptr), cudaErrorNotReady);
    EXPECT_EQ(STRATA_RUNTIME_VARIANT(runtime, cudaStreamQuery, ptsz)(nullptr),
              cudaSuccess);
  });
}

TEST(SimRuntimeLaunchTest, CapturesMakeGraphs) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    Register(runtime);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaStreamCreateWithFlags)(
                  &stream, cudaStreamNonBlocking),
              cudaSuccess);
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaStreamBeginCapture)(
                  stream, cudaStreamCaptureModeRelaxed),
              cudaSuccess);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaLaunchKernel)(
                    g_kernel_stub, 1, 32, nullptr, 0, stream),
                cudaSuccess);
    }
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;  // NOLINT
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* last = nullptr;
    const cudaGraphEdgeData* edges = nullptr;
    std::size_t count = 0;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaStreamGetCaptureInfo)(
                  stream, &status, &id, &graph, &last, &edges, &count),
              cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    EXPECT_NE(id, 0u);
    ASSERT_EQ(count, 1u);
    const cudaGraphNode_t second = last[0];
    EXPECT_EQ(edges[0].type, 0);
    cudaGraph_t captured = nullptr;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaStreamEndCapture)(stream,
                                                                     &captured),
              cudaSuccess);
    EXPECT_EQ(captured, graph);
    const auto nodes = STRATA_RUNTIME_FUNCTION(runtime, cudaGraphGetNodes);
    EXPECT_EQ(nodes(graph, nullptr, &count), cudaSuccess);
    ASSERT_EQ(count, 2u);
    std::array<cudaGraphNode_t, 3> found;
    found.fill(second);
    count = found.size();
    EXPECT_EQ(nodes(graph, found.data(), &count), cudaSuccess);
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(found[1], second);
    EXPECT_EQ(found[2], nullptr);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaGraphGetRootNodes)(
                  graph, nullptr, &count),
              cudaSuccess);
    EXPECT_EQ(count, 1u);
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaGraphInstantiateWithFlags)(
                  &exec, graph, cudaGraphInstantiateFlagUseNodePriority),
              cudaSuccess);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaGraphLaunch)(exec, stream),
              cudaSuccess);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaStreamSynchronize)(stream),
              cudaSuccess);
  });
}

TEST(SimRuntimeLaunchTest, AThreadChoosesHowCapturesRefuseIt) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    const auto exchange =
        STRATA_RUNTIME_FUNCTION(runtime, cudaThreadExchangeStreamCaptureMode);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    EXPECT_EQ(exchange(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaStreamCreate)(&stream),
              cudaSuccess);
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaStreamBeginCapture)(
                  stream, cudaStreamCaptureModeGlobal),
              cudaSuccess);
    void* ptr = nullptr;
    const auto allocate = STRATA_RUNTIME_FUNCTION(runtime, cudaMalloc);
    EXPECT_EQ(allocate(&ptr, 1), cudaSuccess);
    EXPECT_EQ(exchange(&mode), cudaSuccess);
    EXPECT_EQ(allocate(&ptr, 1), cudaErrorStreamCaptureUnsupported);
  });
}

TEST(SimRuntimeLaunchTest, CallbacksRunInTheOrderOfTheirStream) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    std::vector<cudaError_t> seen;
    const auto callback = [](cudaStream_t, cudaError_t error, void* argument) {
      static_cast<std::vector<cudaError_t>*>(argument)->push_back(error);
    };
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaStreamAddCallback)(
                  nullptr, callback, &seen, 0),
              cudaSuccess);
    EXPECT_TRUE(seen.empty());
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaDeviceSynchronize)(),
              cudaSuccess);
    EXPECT_EQ(seen, std::vector<cudaError_t>{cudaSuccess});
  });
}

TEST(SimRuntimeLaunchTest, EventsHaveTimes) {
  WithRuntime([](const RuntimeLibrary& runtime) {
    Register(runtime);
    const auto create =
        STRATA_RUNTIME_FUNCTION(runtime, cudaEventCreateWithFlags);
    const auto record = STRATA_RUNTIME_FUNCTION(runtime, cudaEventRecord);
    const auto elapsed = STRATA_RUNTIME_FUNCTION(runtime, cudaEventElapsedTime);
    cudaEvent_t start = nullptr;
    cudaEvent_t end = nullptr;
    cudaEvent_t untimed = nullptr;
    ASSERT_EQ(create(&start, cudaEventDefault), cudaSuccess);
    ASSERT_EQ(create(&end, cudaEventDefault), cudaSuccess);
    ASSERT_EQ(create(&untimed, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(record(start, nullptr), cudaSuccess);
    float ms = -1;
    EXPECT_EQ(elapsed(&ms, start, end), cudaErrorInvalidResourceHandle);
    ASSERT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaLaunchKernel)(
                  g_kernel_stub, 1, 32, nullptr, 0, nullptr),
              cudaSuccess);
    ASSERT_EQ(record(end, nullptr), cudaSuccess);
    ASSERT_EQ(record(untimed, nullptr), cudaSuccess);
    EXPECT_EQ(elapsed(&ms, start, end), cudaErrorNotReady);
    EXPECT_EQ(STRATA_RUNTIME_FUNCTION(runtime, cudaEventSynchronize)(end),
              cudaSuccess);
    EXPECT_EQ(elapsed(&ms, start, end), cudaSuccess);
    EXPECT_GE(ms, 0.01f);  // of one kernel
    EXPECT_EQ(elapsed(&ms, start, untimed), cudaErrorInvalidResourceHandle);
  });
}

}  // namespace
}  // namespace strata
