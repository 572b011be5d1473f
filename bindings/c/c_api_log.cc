// The C ABI: the messages of the library.

#include "strata/base/log.h"
#include "strata/bindings/c/c_api_call.h"

strata_status strata_set_log_callback(strata_log_callback callback,
                                      void* context) {
  static_assert(STRATA_LOG_INFO ==
                static_cast<int>(strata::LogSeverity::kInfo));
  static_assert(STRATA_LOG_FATAL ==
                static_cast<int>(strata::LogSeverity::kFatal));
  return strata::GuardCall("strata_set_log_callback", [&] {
    if (callback == nullptr) return strata::SetLogCallback(nullptr);
    strata::SetLogCallback([=](const strata::LogEntry& entry) {
      callback(context, static_cast<int32_t>(entry.severity), entry.file,
               entry.line, entry.message);
    });
  });
}
