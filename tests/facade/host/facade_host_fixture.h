#ifndef STRATA_TESTS_FACADE_HOST_FACADE_HOST_FIXTURE_H_
#define STRATA_TESTS_FACADE_HOST_FACADE_HOST_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/devices/fake_host.h"

namespace strata {

// Simulated devices on a host that the test defines.
class FakeHostPlatform final : public Platform {
 public:
  FakeHostPlatform(std::shared_ptr<SimPlatform> sim,
                   std::shared_ptr<HostSystem> host)
      : sim_(std::move(sim)), host_(std::move(host)) {}

  const char* name() const override { return sim_->name(); }
  int device_count() const override { return sim_->device_count(); }
  Device& device(int ordinal) override { return sim_->device(ordinal); }
  std::shared_ptr<HostSystem> host() override { return host_; }

 private:
  std::shared_ptr<SimPlatform> sim_;
  std::shared_ptr<HostSystem> host_;
};

class FacadeHostTest : public FacadeFixture {
 protected:
  static constexpr Place kPinned = PinnedPlace(0);

  // A facade on the host host_.
  AllocatorFacade& BuildOnFakeHost(const std::string& options) {
    facade_ = std::make_unique<AllocatorFacade>(
        Options::Parse(options),
        std::make_shared<FakeHostPlatform>(platform_, host_));
    return *facade_;
  }
  std::uint64_t PinCalls() { return Count(DeviceCall::kMallocHost); }

  std::shared_ptr<FakeHost> host_ = std::make_shared<FakeHost>();
};

}  // namespace strata

#endif  // STRATA_TESTS_FACADE_HOST_FACADE_HOST_FIXTURE_H_
