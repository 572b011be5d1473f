#ifndef STRATA_BASE_LOG_H_
#define STRATA_BASE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

#include "strata/base/require_cxx20.h"

namespace strata {

enum class LogSeverity : std::uint8_t { kInfo, kWarning, kError, kFatal };

// One message of the library. The texts live as long as the call that passes
// them.
struct LogEntry {
  LogSeverity severity = LogSeverity::kInfo;
  const char* file = "";     // source file, without its folder
  int line = 0;              // line in that file
  const char* message = "";  // text without a line feed at its end
};

using LogCallback = std::function<void(const LogEntry&)>;

// Passes every message of this copy of the library to `callback`. Null restores
// the default: glog, with its flags.
//
// Model: glog's levels do not apply to a callback, except --v: messages of a
//   level above it are not made. A message that the callback causes goes to
//   glog. The process ends after the callback for a kFatal message returns.
//   After the call no other thread executes or destroys the previous callback.
// Errors: std::bad_alloc; then nothing has changed.
// Threads: any thread, also inside the callback. Several threads may execute
//   the callback at once. It must not throw. It may call the library.
void SetLogCallback(LogCallback callback);

// True if messages of STRATA_VLOG(level) are made: if glog's --v is at least
// `level`.
bool IsVerbose(int level) noexcept;

// The text of a message, in a buffer that needs no heap memory for short
// messages. Text for which there is no memory is dropped.
class LogText final : public std::streambuf {
 public:
  // One byte is left for c_str().
  LogText() { setp(first_, first_ + sizeof first_ - 1); }
  LogText(const LogText&) = delete;
  LogText& operator=(const LogText&) = delete;

  std::string_view text() const {
    return {pbase(), static_cast<std::size_t>(pptr() - pbase())};
  }
  const char* c_str() {
    *pptr() = '\0';
    return pbase();
  }

 protected:
  int_type overflow(int_type next) override;

 private:
  char first_[1000];
  std::string more_;  // the whole text, if first_ is too small
};

// A message that is written when it is destroyed. Use the macros.
class LogMessage {
 public:
  LogMessage(LogSeverity severity, const char* file, int line);
  LogMessage(const LogMessage&) = delete;
  LogMessage& operator=(const LogMessage&) = delete;
  ~LogMessage() { Write(); }

  std::ostream& stream() { return stream_; }

 protected:
  // Writes the text, once.
  void Write() noexcept;

 private:
  LogSeverity severity_;
  const char* file_;  // null: written
  int line_;
  LogText text_;
  std::ostream stream_;
};

// A message after which the process ends.
class FatalLogMessage final : public LogMessage {
 public:
  FatalLogMessage(const char* file, int line)
      : LogMessage(LogSeverity::kFatal, file, line) {}
  FatalLogMessage(const FatalLogMessage&) = delete;
  FatalLogMessage& operator=(const FatalLogMessage&) = delete;
  [[noreturn]] ~FatalLogMessage();
};

// Gives both branches of the expression STRATA_LOG_IF the type void.
struct LogVoid {
  void operator&(std::ostream& /*stream*/) const {}
};

}  // namespace strata

// STRATA_LOG(Error) << "text"; also Info and Warning.
#define STRATA_LOG(severity)                                                   \
  ::strata::LogMessage(::strata::LogSeverity::k##severity, __FILE__, __LINE__) \
      .stream()
#define STRATA_LOG_IF(severity, condition) \
  !(condition) ? static_cast<void>(0)      \
               : ::strata::LogVoid() & STRATA_LOG(severity)
// A message of this level; see IsVerbose.
#define STRATA_VLOG(level) STRATA_LOG_IF(Info, ::strata::IsVerbose(level))
// STRATA_FATAL << "text": the process ends.
#define STRATA_FATAL ::strata::FatalLogMessage(__FILE__, __LINE__).stream()

#endif  // STRATA_BASE_LOG_H_
