// A strategy from outside the tree: registered by a macro, selected by name,
// and used through a facade.

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "strata/allocation/decorator.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/flags.h"
#include "strata/strategy/factory_registry.h"
#include "strata/strategy/registry.h"
#include "strata/tensor/tensor.h"

namespace {

// Forwards every request to the system, and counts.
class CountingStrategy final : public strata::Decorator {
 public:
  using strata::Decorator::Decorator;

  strata::Allocation* TryAllocate(const strata::Request& request,
                                  strata::Failure& failure) noexcept override {
    ++requests;
    return Decorator::TryAllocate(request, failure);
  }
  const char* name() const override { return "counting"; }
  strata::HitPath* hit_path() override { return nullptr; }

  static inline int requests = 0;
};

std::shared_ptr<strata::Allocator> MakeCounting(
    std::shared_ptr<strata::ChunkPool> pool,
    std::shared_ptr<strata::ChainStream> stream,
    const strata::StrategyOptions& options) {
  return std::make_shared<CountingStrategy>(
      strata::MakeDirectAllocator(std::move(pool), std::move(stream), options));
}

STRATA_REGISTER_STRATEGY("counting", 100, &MakeCounting);

}  // namespace

int main(int argc, char** argv) {
  strata::ParseCommandLine({argv + 1, argv + argc});
  strata::AllocatorFacade facade(strata::OptionsFromFlags());
  strata::Allocator& chain = facade.GetAllocator(strata::DevicePlace(0));
  const strata::Tensor tensor(chain, strata::DataType::kFloat32, {2, 3});
  std::printf("%s: %d request(s), %zu bytes\n",
              facade.options().Strategy().c_str(), CountingStrategy::requests,
              tensor.size_bytes());
  return tensor.IsInitialized() && CountingStrategy::requests == 1 ? 0 : 1;
}
