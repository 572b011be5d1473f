#ifndef STRATA_ALLOCATION_DECORATOR_H_
#define STRATA_ALLOCATION_DECORATOR_H_

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "strata/allocation/allocator.h"

namespace strata {

// A layer that adds one promise to an underlying allocator. It owns the
// underlying allocator and forwards every call. Override the functions that
// differ.
//
// Cost: one predicted virtual call per forwarded call.
class Decorator : public Allocator {
 public:
  // Errors: std::invalid_argument if `underlying` is null.
  explicit Decorator(std::shared_ptr<Allocator> underlying)
      : underlying_(std::move(underlying)) {
    if (underlying_ == nullptr) {
      throw std::invalid_argument("a decorator needs an underlying allocator");
    }
  }

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override {
    return underlying_->TryAllocate(request, failure);
  }
  void DoFree(Allocation* allocation) noexcept override {
    underlying_->DoFree(allocation);
  }
  std::size_t Release() noexcept override { return underlying_->Release(); }
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override {
    return underlying_->RecordStream(allocation, stream);
  }
  bool RecordUse(Allocation* allocation, Stream stream,
                 Event event) noexcept override {
    return underlying_->RecordUse(allocation, stream, event);
  }
  void EraseStream(Allocation* allocation, Stream stream) noexcept override {
    underlying_->EraseStream(allocation, stream);
  }
  void StreamDestroyed(Stream stream) noexcept override {
    underlying_->StreamDestroyed(stream);
  }

  Allocator* underlying() const override { return underlying_.get(); }
  Place place() const override { return underlying_->place(); }
  Stream stream() const override { return underlying_->stream(); }
  std::size_t max_alignment() const override {
    return underlying_->max_alignment();
  }
  std::size_t natural_alignment() const override {
    return underlying_->natural_alignment();
  }
  Stats stats() const override { return underlying_->stats(); }
  void ResetPeak() override { underlying_->ResetPeak(); }
  void Accept(AllocatorVisitor& visitor) const override {
    visitor.VisitLayer(*this);
    underlying_->Accept(visitor);
  }
  Reclaimer* reclaimer() const override { return underlying_->reclaimer(); }
  HitPath* hit_path() override { return underlying_->hit_path(); }
  bool returns_handles() const override {
    return underlying_->returns_handles();
  }
  std::size_t unreturned_bytes() const override {
    return underlying_->unreturned_bytes();
  }
  void AppendUnreturned(std::vector<BlockInfo>& blocks) const override {
    underlying_->AppendUnreturned(blocks);
  }

 protected:
  const std::shared_ptr<Allocator>& shared_underlying() const {
    return underlying_;
  }

 private:
  std::shared_ptr<Allocator> underlying_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATOR_H_
