#ifndef STRATA_ALLOCATION_DECORATORS_DECORATOR_OPTIONS_H_
#define STRATA_ALLOCATION_DECORATORS_DECORATOR_OPTIONS_H_

#include <map>
#include <memory>
#include <mutex>
#include <typeindex>
#include <utility>

#include "strata/allocation/guard/guard_settings.h"
#include "strata/allocation/option_fields.h"
#include "strata/allocation/option_values.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/base/clock.h"
#include "strata/platform/place.h"
#include "strata/platform/platform.h"

namespace strata {

// State that the layers of a place or of a facade share: one object per type.
//
// Model: the first Get() of a type makes the object, unless the owner of the
//   place or facade has set one. It lives until this object and all layers that
//   hold it are gone.
// Errors: Get() throws the exceptions of the constructor, and nothing changes.
// Threads: any thread. A lock is held while a constructor runs, so a
//   constructor makes no device call and does not call Get().
class SharedServices {
 public:
  template <class Service, class... Args>
  std::shared_ptr<Service> Get(Args&&... args) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = services_.find(typeid(Service));
    if (found != services_.end()) {
      return std::static_pointer_cast<Service>(found->second);
    }
    auto service = std::make_shared<Service>(std::forward<Args>(args)...);
    services_.emplace(typeid(Service), service);
    return service;
  }

  // Call it before any layer asks for the Service. Errors: std::bad_alloc.
  template <class Service>
  void Set(std::shared_ptr<Service> service) {
    const std::lock_guard<std::mutex> guard(mutex_);
    services_[typeid(Service)] = std::move(service);
  }
  // Null if there is none.
  template <class Service>
  std::shared_ptr<Service> Find() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = services_.find(typeid(Service));
    return found != services_.end()
               ? std::static_pointer_cast<Service>(found->second)
               : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::type_index, std::shared_ptr<void>> services_;  // by mutex_
};

// Options of the layers that record calls; options.def describes each field.
struct RecordingOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/allocation/diagnostics/options.def"
#undef STRATA_OWN_OPTION
};

class Reclaimer;

// The decorators of a chain and their options. The options.def of each folder
// describes its fields.
struct DecoratorOptions : RecordingOptions, GuardOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/allocation/decorators/options.def"
#undef STRATA_OWN_OPTION

  // Options of registered decorators that flags set.
  OptionTexts registered_texts;

  // True if a thread may own the lock of a stream. False if the system has no
  // ProcessBarrier. This is logged once if `stream_lock` is "biased".
  //
  // Errors: std::invalid_argument if `stream_lock` is none of the known locks.
  bool biased_lock() const;
};

// Errors: std::invalid_argument that names the invalid option, or two options
//   that contradict each other.
void CheckDecoratorOptions(const DecoratorOptions& options);

// The chains that share a service: those of a place, or of all places of a
// facade.
enum class ServiceScope { kPlace, kFacade };

// Objects that the layers of one chain share. Members may be null in a chain
// built by hand; then a layer makes its own.
//
// Services: the facade sets TimelineTable and CaptureHolds, the place sets
//   DeferredFrees. Layers add services of their own by Shared().
struct ChainContext {
  Place place;
  std::shared_ptr<Platform> platform;
  std::shared_ptr<ChainStream> stream;
  std::shared_ptr<Reclaimer> reclaimer;  // of the place
  std::shared_ptr<SharedServices> place_services;
  std::shared_ptr<SharedServices> facade_services;
  Clock* clock = &Clock::Steady();  // for waits and time stamps

  // The Service of `scope`. The first call in the scope makes it from `args`;
  // in a chain built by hand, each call does.
  template <class Service, class... Args>
  std::shared_ptr<Service> Shared(ServiceScope scope, Args&&... args) const {
    const auto& services = ServicesOf(scope);
    return services != nullptr
               ? services->Get<Service>(std::forward<Args>(args)...)
               : std::make_shared<Service>(std::forward<Args>(args)...);
  }
  // The Service of `scope`; null if none was made or set.
  template <class Service>
  std::shared_ptr<Service> Find(ServiceScope scope) const {
    const auto& services = ServicesOf(scope);
    return services != nullptr ? services->Find<Service>() : nullptr;
  }
  const std::shared_ptr<SharedServices>& ServicesOf(ServiceScope scope) const {
    return scope == ServiceScope::kPlace ? place_services : facade_services;
  }
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_DECORATOR_OPTIONS_H_
