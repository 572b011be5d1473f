#include "strata/examples/eager_mlp/runtime.h"

#include "strata/allocation/error.h"
#include "strata/platform/platform.h"

namespace eager_mlp {

using strata::DataType;
using strata::Shape;
using strata::Status;
using strata::Stream;
using strata::Tensor;

namespace {

constexpr strata::Place kPlace = strata::DevicePlace(0);

}  // namespace

void Check(Status status, const char* what) {
  if (status != Status::kSuccess) throw strata::DeviceError(what, status);
}

OwnStream::OwnStream(strata::AllocatorFacade& facade) : facade_(facade) {
  strata::Device& device = facade.platform().device(0);
  Check(device.StreamCreate(&stream_, strata::kStreamNonBlocking),
        "create a stream");
  context_ = std::make_unique<strata::DeviceContext>(facade, kPlace, stream_);
}

OwnStream::~OwnStream() {
  facade_.StreamDestroyed(stream_);
  facade_.platform().device(0).StreamDestroy(stream_);
}

Runtime::Runtime(strata::AllocatorFacade& facade)
    : facade_(facade),
      device_(facade.platform().device(0)),
      compute_(facade),
      copy_(facade) {
  Check(device_.EventCreate(&event_, strata::kEventDisableTiming),
        "create an event");
}

Runtime::~Runtime() {
  device_.Synchronize();
  device_.EventDestroy(event_);
}

Tensor Runtime::Make(Shape shape) const {
  return Tensor::Make(compute_.context().GetAllocator(), DataType::kFloat32,
                      std::move(shape));
}
Tensor Runtime::MakeForCopy(Shape shape) const {
  return Tensor::Make(copy_.context().GetAllocator(), DataType::kFloat32,
                      std::move(shape));
}
Tensor Runtime::MakePinned(Shape shape) const {
  return Tensor::Make(compute_.context().GetPinnedAllocator(),
                      DataType::kFloat32, std::move(shape));
}

void Runtime::Submit(const strata::WorkRange* ranges, std::size_t count,
                     strata::HostKernel run, std::shared_ptr<void> argument) {
  arguments_.push_back(std::move(argument));
  Check(facade_.platform().work(0)->Launch(compute(), ranges, count, run,
                                           arguments_.back().get()),
        "launch a kernel");
}

void Runtime::NoteLaunch(int result, const strata::WorkRange* ranges,
                         std::size_t count) {
  Check(static_cast<Status>(result), "launch a kernel");
  // For a trace of the device calls.
  strata::NoteUses(device_, compute(), ranges, count);
}

void Runtime::Copy(const Tensor& target, const Tensor& source,
                   Stream stream) const {
  Check(device_.MemcpyAsync(AddressOf(target.data()), AddressOf(source.data()),
                            source.size_bytes(), stream),
        "copy");
}

void Runtime::Order(Stream earlier, Stream later) const {
  Check(device_.EventRecord(event_, earlier, 0), "record an event");
  Check(device_.StreamWaitEvent(later, event_, 0), "wait for an event");
}

void Runtime::EndUse(const Tensor& tensor, Stream stream) const {
  Check(device_.EventRecord(event_, stream, 0), "record an event");
  facade_.RecordUse(*tensor.allocation(), stream, event_);
}

void Runtime::Synchronize() {
  Check(device_.StreamSynchronize(copy()), "wait for copies");
  Check(device_.StreamSynchronize(compute()), "wait for kernels");
  arguments_.clear();
}

}  // namespace eager_mlp
