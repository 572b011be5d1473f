#ifndef STRATA_EXAMPLES_EAGER_MLP_RUNTIME_H_
#define STRATA_EXAMPLES_EAGER_MLP_RUNTIME_H_

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "strata/examples/eager_mlp/gpu_launch.h"
#include "strata/facade/allocator_facade.h"
#include "strata/platform/device.h"
#include "strata/platform/device_work.h"
#include "strata/tensor/device_context.h"
#include "strata/tensor/tensor.h"

namespace eager_mlp {

// Throws strata::DeviceError with the text `what` unless `status` is a success.
void Check(strata::Status status, const char* what);

inline strata::DevicePtr AddressOf(const void* data) {
  return reinterpret_cast<strata::DevicePtr>(data);
}

// A stream for one scope, with a context that allocates for it.
class OwnStream {
 public:
  explicit OwnStream(strata::AllocatorFacade& facade);
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream();

  strata::Stream stream() const { return stream_; }
  const strata::DeviceContext& context() const { return *context_; }

 private:
  strata::AllocatorFacade& facade_;
  strata::Stream stream_;
  std::unique_ptr<strata::DeviceContext> context_;
};

// The device as a tensor program uses it: a computing stream, a copying stream,
// and kernels.
//
// Model: all memory comes from the facade. On a GPU the compiled kernels run.
//   On the simulated device they run as host functions that declare the ranges
//   they read and write.
// Errors: strata::DeviceError, and the errors of allocation.
// Threads: one.
// Lifetime: tensors may outlive it; the facade must outlive it.
class Runtime {
 public:
  explicit Runtime(strata::AllocatorFacade& facade);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  strata::AllocatorFacade& facade() const { return facade_; }
  strata::Device& device() const { return device_; }
  strata::Stream compute() const { return compute_.stream(); }
  strata::Stream copy() const { return copy_.stream(); }

  // Float tensors: for the computing stream, for the copying stream, and in
  // pinned host memory.
  strata::Tensor Make(strata::Shape shape) const;
  strata::Tensor MakeForCopy(strata::Shape shape) const;
  strata::Tensor MakePinned(strata::Shape shape) const;

  // Submits a kernel of kernels.h to the computing stream.
  template <class Kernel>
  void Launch(Kernel kernel);
  // Submits a copy of all of `source`, which is as large as `target`.
  void Copy(const strata::Tensor& target, const strata::Tensor& source,
            strata::Stream stream) const;
  // Makes later work of `later` wait for the work submitted to `earlier` so
  // far.
  void Order(strata::Stream earlier, strata::Stream later) const;
  // Records in the allocator that `stream` used `tensor` of another stream. No
  // work submitted later to `stream` uses it.
  void EndUse(const strata::Tensor& tensor, strata::Stream stream) const;

  // Waits for all submitted work.
  void Synchronize();
  // The arguments of the kernels launched since the last Synchronize(). A graph
  // with these kernels needs them during its lifetime.
  std::vector<std::shared_ptr<void>> TakeArguments() {
    return std::exchange(arguments_, {});
  }

 private:
  template <class Kernel>
  static void RunOnHost(void* argument, void* const* ranges);
  void Submit(const strata::WorkRange* ranges, std::size_t count,
              strata::HostKernel run, std::shared_ptr<void> argument);
  void NoteLaunch(int result, const strata::WorkRange* ranges,
                  std::size_t count);

  strata::AllocatorFacade& facade_;
  strata::Device& device_;
  OwnStream compute_;
  OwnStream copy_;
  strata::Event event_;  // recorded and waited for in one call
  std::vector<std::shared_ptr<void>> arguments_;
};

template <class Kernel>
void Runtime::RunOnHost(void* argument, void* const* ranges) {
  Kernel kernel = *static_cast<const Kernel*>(argument);
  kernel.Operands([&ranges](auto*& operand, int /*count*/) {
    operand = static_cast<std::remove_reference_t<decltype(operand)>>(*ranges);
    ++ranges;
  });
  for (int i = 0; i < kernel.size(); ++i) kernel(i);
}

template <class Kernel>
void Runtime::Launch(Kernel kernel) {
  std::array<strata::WorkRange, strata::kMaxWorkRanges> ranges;
  std::size_t count = 0;
  kernel.Operands([&](auto* operand, int elements) {
    using Element = std::remove_pointer_t<decltype(operand)>;
    ranges[count++] = {AddressOf(operand),
                       static_cast<std::size_t>(elements) * sizeof(float),
                       !std::is_const_v<Element>};
  });
  if (device_.caps().simulated) {
    Submit(ranges.data(), count, &RunOnHost<Kernel>,
           std::make_shared<Kernel>(kernel));
  } else {
    NoteLaunch(LaunchOnGpu(kernel, compute().handle), ranges.data(), count);
  }
}

}  // namespace eager_mlp

#endif  // STRATA_EXAMPLES_EAGER_MLP_RUNTIME_H_
