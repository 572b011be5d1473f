// A minimal decorator outside the tree: it limits the live allocations of each
// place. The chains of a place share one count.

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "strata/allocation/decorator.h"
#include "strata/allocation/decorators/registered/decorator_factories.h"

namespace {

using strata::Failure;

struct LiveCount {
  std::atomic<std::uint64_t> live{0};
};

class QuotaDecorator final : public strata::Decorator {
 public:
  QuotaDecorator(std::shared_ptr<Allocator> below,
                 std::shared_ptr<LiveCount> count, std::uint64_t most)
      : Decorator(std::move(below)), count_(std::move(count)), most_(most) {}

  strata::Allocation* TryAllocate(const strata::Request& request,
                                  Failure& failure) noexcept override {
    if (count_->live.fetch_add(1) < most_) {
      strata::Allocation* one = Decorator::TryAllocate(request, failure);
      if (one == nullptr) --count_->live;
      return one;
    }
    --count_->live;
    failure = Failure();
    failure.reason = Failure::Reason::kBudget;
    failure.layer = name();
    failure.place = place();
    failure.requested_bytes = request.bytes;
    return nullptr;
  }
  void DoFree(strata::Allocation* allocation) noexcept override {
    Decorator::DoFree(allocation);
    --count_->live;
  }
  const char* name() const override { return "quota"; }
  strata::HitPath* hit_path() override { return nullptr; }  // sees every call

 private:
  const std::shared_ptr<LiveCount> count_;
  const std::uint64_t most_;
};

std::shared_ptr<strata::Allocator> MakeQuota(
    std::shared_ptr<strata::Allocator> below,
    const strata::DecoratorSettings& settings,
    const strata::ChainContext& context) {
  return std::make_shared<QuotaDecorator>(
      std::move(below), context.Shared<LiveCount>(strata::ServiceScope::kPlace),
      settings.Get<std::uint64_t>("most_live"));
}

STRATA_REGISTER_DECORATOR("quota", strata::Below("stat"), &MakeQuota,
                          {"most_live", "Uint64", "1000000",
                           "Most allocations of a place at a time."});

}  // namespace
