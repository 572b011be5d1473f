#include "strata/allocation/error.h"

#include <utility>

#include "strata/allocation/allocator.h"
#include "strata/base/size.h"

namespace strata {
namespace {

class LayerCollector final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& layer) override {
    layers_.push_back(OutOfMemory::LayerReport{layer.name(), layer.stats()});
  }
  std::vector<OutOfMemory::LayerReport> Take() { return std::move(layers_); }

 private:
  std::vector<OutOfMemory::LayerReport> layers_;
};

std::string WithAdvice(const Failure& failure, const std::string& advice) {
  std::string text = failure.ToString();
  if (!advice.empty()) text.append(". ").append(advice);
  return text;
}

}  // namespace

BadAlloc::BadAlloc(const Failure& failure)
    : BadAlloc(failure, failure.ToString()) {}

BadAlloc::BadAlloc(const Failure& failure, std::string text)
    : failure_(failure), text_(std::move(text)) {}

OutOfMemory::OutOfMemory(const Failure& failure,
                         std::vector<LayerReport> layers,
                         const std::string& advice)
    : BadAlloc(failure, WithAdvice(failure, advice)),
      layers_(std::move(layers)),
      advice_(advice) {}

DeviceError::DeviceError(const Failure& failure, const std::string& text)
    : std::runtime_error(text), failure_(failure) {}

DeviceError::DeviceError(const std::string& text, Status status)
    : std::runtime_error(text + ": " + ToString(status)) {
  failure_.reason = Failure::Reason::kDevice;
  failure_.status = status;
}

std::string Advice(const Failure& failure) {
  if (failure.reason != Failure::Reason::kLimit ||
      failure.device_total_bytes == 0) {
    return "";
  }
  // The detail names the reason; a higher limit would not help.
  if (failure.detail[0] != '\0') return "";
  const std::size_t needed = failure.reserved_bytes + failure.rounded_bytes;
  // The limit that failed counts other bytes: a higher limit would not help.
  if (needed <= failure.limit_bytes) return "";
  if (failure.device_free_bytes < failure.rounded_bytes) return "";
  const std::size_t missing = needed - failure.limit_bytes;
  // Limits are set in MiB. Rounding down would make the advice wrong.
  const std::size_t mebibytes = (missing + Mebibytes(1) - 1) / Mebibytes(1);
  const std::string limit =
      *failure.limit_flag == '\0' ? "a limit" : failure.limit_flag;
  return "The device has room: with what is held now, " + limit +
         " higher by " + std::to_string(mebibytes) +
         " MiB would have met this request.";
}

void ThrowFailure(const Failure& failure, const Allocator& outermost) {
  switch (failure.reason) {
    case Failure::Reason::kBadRequest:
      throw std::invalid_argument(failure.ToString());
    case Failure::Reason::kDevice:
      throw DeviceError(failure, failure.ToString());
    case Failure::Reason::kDeviceMemory:
    case Failure::Reason::kHostMemory:
    case Failure::Reason::kLimit:
    case Failure::Reason::kBudget: {
      LayerCollector collector;
      outermost.Accept(collector);
      throw OutOfMemory(failure, collector.Take(), Advice(failure));
    }
    default:
      throw BadAlloc(failure);
  }
}

}  // namespace strata
