#include "strata/platform/cuda/cuda_work.h"

#include <algorithm>
#include <array>

#include "strata/platform/cuda/cuda_types.h"
#include "strata/platform/cuda/cuda_work_arguments.h"

namespace strata::cuda {

// cuda_work_kernel.cu as PTX, for all GPUs and for those of compute capability
// 9.0 and newer. The build generates the sources that define them.
extern const char* const kCudaWorkPtx;
extern const char* const kCudaWorkPtx90;

namespace {

constexpr unsigned kThreadsPerBlock = 256;
// Enough to saturate the memory of a large GPU. Low enough that the work of
// several streams runs at the same time.
constexpr std::size_t kMaxBlocks = 128;
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

}  // namespace

CudaWork::CudaWork(const CudaDriver& driver, CudaDevice& device)
    : driver_(driver), device_(device) {
  CudaContextScope scope(device_.context());
  loaded_ = scope.status();
  if (loaded_ != Status::kSuccess) return;
  // The constructor may run while the thread captures. During a capture nothing
  // is loaded unless the thread is relaxed (cuda_semantics.md C17).
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  loaded_ = ToStatus(driver_.ThreadExchangeStreamCaptureMode(&mode));
  if (loaded_ != Status::kSuccess) return;
  loaded_ = Load();
  driver_.ThreadExchangeStreamCaptureMode(&mode);
}

CudaWork::~CudaWork() {
  CudaContextScope scope(device_.context());
  if (module_ != nullptr) driver_.ModuleUnload(module_);
}

Status CudaWork::Load() {
  CUresult result = driver_.ModuleLoadData(
      &module_, CanLaunchEarly() ? kCudaWorkPtx90 : kCudaWorkPtx);
  if (result == CUDA_SUCCESS) {
    result = driver_.ModuleGetFunction(&kernel_, module_, "strata_work");
  }
  return result == CUDA_SUCCESS ? WarmUp() : ToStatus(result);
}

Status CudaWork::WarmUp() {
  CUstream stream = nullptr;
  CUresult result = driver_.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return ToStatus(result);
  Status status = Submit(stream, nullptr, 0, 0, 0, false);
  if (status == Status::kSuccess) {
    status = ToStatus(driver_.StreamSynchronize(stream));
  }
  result = driver_.StreamDestroy(stream);
  return status == Status::kSuccess ? ToStatus(result) : status;
}

Status CudaWork::Submit(CUstream stream, const WorkRange* ranges,
                        std::size_t count, std::uint64_t busy_ns,
                        std::uint64_t pattern, bool is_early) {
  CudaWorkArguments arguments = {};
  arguments.busy_ns = busy_ns;
  arguments.pattern = pattern;
  arguments.count = count;
  std::size_t most_words = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t words = ranges[i].bytes / kWordBytes;
    most_words = std::max(most_words, words);
    arguments.ranges[i] = {ranges[i].ptr, words, ranges[i].write ? 1u : 0u};
  }
  const auto blocks = static_cast<unsigned>(
      std::clamp<std::size_t>(most_words / kThreadsPerBlock, 1, kMaxBlocks));
  std::array<void*, 1> parameters = {&arguments};
  return ToStatus(LaunchKernel(stream, blocks, parameters.data(), is_early));
}

CUresult CudaWork::LaunchKernel(CUstream stream, unsigned blocks,
                                void** parameters, bool is_early) const {
  if (!is_early) {
    return driver_.LaunchKernel(kernel_, blocks, 1, 1, kThreadsPerBlock, 1, 1,
                                0, stream, parameters, nullptr);
  }
  CUlaunchAttribute early = {};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config = {};
  config.gridDimX = blocks;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kThreadsPerBlock;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  return driver_.LaunchKernelEx(&config, kernel_, parameters, nullptr);
}

Status CudaWork::Enqueue(Stream stream, const WorkRange* ranges,
                         std::size_t count, std::uint64_t busy_ns,
                         std::uint64_t pattern) {
  return Run(stream, ranges, count, busy_ns, pattern, /*is_early=*/false);
}

Status CudaWork::EnqueueEarly(Stream stream, const WorkRange* ranges,
                              std::size_t count, std::uint64_t busy_ns,
                              std::uint64_t pattern) {
  return Run(stream, ranges, count, busy_ns, pattern, CanLaunchEarly());
}

Status CudaWork::Run(const Stream& stream, const WorkRange* ranges,
                     std::size_t count, std::uint64_t busy_ns,
                     std::uint64_t pattern, bool is_early) {
  if (loaded_ != Status::kSuccess) return loaded_;
  if (!IsValidWork(ranges, count)) return Status::kInvalidValue;
  const Status status = device_.CheckStream(stream);
  if (status != Status::kSuccess) return status;
  CudaContextScope scope(device_.context());
  if (scope.status() != Status::kSuccess) return scope.status();
  const Status launched =
      Submit(ToCuda(stream), ranges, count, busy_ns, pattern, is_early);
  if (launched == Status::kSuccess) NoteUses(device_, stream, ranges, count);
  return launched;
}

}  // namespace strata::cuda
