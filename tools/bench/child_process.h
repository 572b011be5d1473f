#ifndef STRATA_TOOLS_BENCH_CHILD_PROCESS_H_
#define STRATA_TOOLS_BENCH_CHILD_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace strata::tools {

// A child process that answers each line on its standard input with a line on
// its standard output.
//
// Threads: one.
// Lifetime: the process ends with this object. It is killed if it does not end
//   by itself.
class ChildProcess {
 public:
  // Runs `command` (a path and its arguments) in this process's environment,
  // but with LD_PRELOAD set to `preload`, or not set if that is empty.
  //
  // Errors: std::runtime_error if it cannot be started.
  ChildProcess(const std::vector<std::string>& command,
               const std::string& preload);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  // Sends `line` and waits for the answer. Both are without the end of line.
  //
  // Errors: std::runtime_error saying how the process ended ("it ended with
  //   exit code 1"), or that it did not answer in `timeout`.
  std::string Ask(const std::string& line, std::chrono::milliseconds timeout);

 private:
  void Send(std::string_view text);
  // Appends received text to unread_, if any arrives in time.
  void Receive(std::chrono::milliseconds timeout);
  // Waits for the end of the process, which has closed its side.
  std::string HowItEnded();

  pid_t pid_ = -1;  // -1: the process has ended
  int socket_ = -1;
  std::string unread_;  // received after the last answer
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_CHILD_PROCESS_H_
