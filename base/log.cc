#include "strata/base/log.h"

#include <glog/logging.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "strata/base/fork_lock.h"

namespace strata {
namespace {

struct Target {
  LogCallback callback;
  int running = 0;  // threads that execute it; guarded by Redirection::mutex_
};

// The target of the callback that the thread executes, or null.
thread_local constinit const Target* t_inside = nullptr;

// The callback, and the number of threads that execute it.
class Redirection {
 public:
  static Redirection& Instance() {
    // Never destroyed: destructors of static objects may still log. No heap
    // memory: a message may be about its end.
    alignas(Redirection) static std::byte memory[sizeof(Redirection)];
    static auto* const redirection = new (memory) Redirection;
    return *redirection;
  }

  void Set(LogCallback callback) {
    std::shared_ptr<Target> next;
    if (callback != nullptr) {
      next = std::make_shared<Target>();
      next->callback = std::move(callback);
    }
    std::unique_lock<std::mutex> lock(mutex_);
    target_.swap(next);
    // `next` is the previous target.
    if (next == nullptr) return;
    idle_.wait(lock, [&] { return next->running <= OwnRunning(*next); });
    lock.unlock();
  }

  // Returns false if there is no callback for this thread.
  bool Pass(const LogEntry& entry) noexcept {
    if (t_inside != nullptr) return false;
    std::shared_ptr<Target> target = Enter();
    if (target == nullptr) return false;
    t_inside = target.get();
    target->callback(entry);
    t_inside = nullptr;
    const std::unique_lock<std::mutex> lock(mutex_);
    Leave(target);
    return true;
  }

 private:
  Redirection() : fork_lock_(mutex_, [] { Instance().KeepOwnThread(); }) {}

  std::shared_ptr<Target> Enter() noexcept {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (target_ != nullptr) ++target_->running;
    return target_;
  }
  // Ends an Enter(), with mutex_ held. Set() destroys the callback that it
  // replaces, so the reference is released before Set() can continue. If the
  // callback replaced itself, the reference is the last one and stays: a
  // destructor may log, and so needs mutex_.
  void Leave(std::shared_ptr<Target>& target) noexcept {
    --target->running;
    if (target.use_count() > 1) target.reset();
    idle_.notify_all();
  }
  // Number of executions of `target` by the calling thread.
  static int OwnRunning(const Target& target) noexcept {
    return t_inside == &target ? 1 : 0;
  }
  // A forked child has no other threads.
  void KeepOwnThread() noexcept {
    if (target_ != nullptr) target_->running = OwnRunning(*target_);
  }

  std::mutex mutex_;
  std::condition_variable idle_;
  std::shared_ptr<Target> target_;  // guarded by mutex_
  const ForkLock fork_lock_;
};

void WriteToGlog(LogSeverity severity, const char* file, int line,
                 std::string_view text) {
  switch (severity) {
    case LogSeverity::kInfo:
      google::LogMessage(file, line, google::GLOG_INFO).stream() << text;
      break;
    case LogSeverity::kWarning:
      google::LogMessage(file, line, google::GLOG_WARNING).stream() << text;
      break;
    case LogSeverity::kError:
      google::LogMessage(file, line, google::GLOG_ERROR).stream() << text;
      break;
    case LogSeverity::kFatal:
      google::LogMessageFatal(file, line).stream() << text;
  }
}

const char* WithoutFolder(const char* file) {
  const char* const slash = std::strrchr(file, '/');
  return slash == nullptr ? file : slash + 1;
}

}  // namespace

void SetLogCallback(LogCallback callback) {
  Redirection::Instance().Set(std::move(callback));
}

bool IsVerbose(int level) noexcept { return FLAGS_v >= level; }

LogText::int_type LogText::overflow(int_type next) {
  const std::string_view before = text();
  try {
    std::string longer(2 * before.size(), '\0');
    std::copy(before.begin(), before.end(), longer.begin());
    more_.swap(longer);
  } catch (const std::bad_alloc&) {
    return traits_type::eof();
  }
  // `before` refers to first_ or to the former more_.
  const auto used = static_cast<int>(before.size());
  setp(more_.data(), more_.data() + more_.size() - 1);
  pbump(used);
  if (traits_type::eq_int_type(next, traits_type::eof())) return 0;
  return sputc(traits_type::to_char_type(next));
}

LogMessage::LogMessage(LogSeverity severity, const char* file, int line)
    : severity_(severity), file_(file), line_(line), stream_(&text_) {}

void LogMessage::Write() noexcept {
  const char* const file = std::exchange(file_, nullptr);
  if (file == nullptr) return;
  const LogEntry entry{severity_, WithoutFolder(file), line_, text_.c_str()};
  if (!Redirection::Instance().Pass(entry)) {
    WriteToGlog(severity_, file, line_, text_.text());
  }
}

FatalLogMessage::~FatalLogMessage() {
  Write();
  std::abort();
}

}  // namespace strata
