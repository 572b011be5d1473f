// Tensors on a device: one buffer for a batch and its halves, an output that
// keeps its memory from step to step, and the allocations of each step.
//
// usage: tensor [--strata_allocation_log_file=FILE] [any flag of `strata info`]

#include "strata/tensor/tensor.h"

#include <cstdio>
#include <exception>

#include "strata/allocation/diagnostics/annotation.h"
#include "strata/allocation/diagnostics/tracking_allocator.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/flags.h"
#include "strata/tensor/device_context.h"

namespace {

using strata::DataType;
using strata::Shape;
using strata::Tensor;

void Step(const strata::DeviceContext& context, int step,
          strata::DenseTensor& output) {
  strata::SetAnnotationStep(step);
  const strata::ScopedAnnotation op("MatMul");
  const auto tracker = strata::TrackingAllocator::Make(context.GetAllocator());

  const Tensor batch = Tensor::Make(*tracker, DataType::kFloat16, {32, 1024});
  const Tensor first = batch.Slice(0, 16);
  const Tensor second = batch.Slice(16, 32);
  std::printf("step %d: halves share memory: %s\n", step,
              first.SharesBufferWith(second) ? "yes" : "no");

  output.Resize(Shape({32, 512 + step}));
  context.Alloc<float>(output, std::size_t{128} << 10);
  std::printf("step %d: %zu bytes for the batch, output at %p\n", step,
              tracker->sizes().peak_bytes, output.data());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (!strata::ParseCommandLine({argv + 1, argv + argc}).empty()) {
      std::fprintf(stderr, "usage: tensor [FLAGS]\n");
      return 2;
    }
    strata::AllocatorFacade facade(strata::OptionsFromFlags());
    const strata::Place gpu = strata::DevicePlace(0);
    const strata::DeviceContext context(facade, gpu,
                                        facade.GetDefaultStream(gpu));
    strata::DenseTensor output;
    for (int step = 0; step < 3; ++step) Step(context, step, output);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tensor: %s\n", error.what());
    return 1;
  }
}
