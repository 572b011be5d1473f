#ifndef STRATA_TOOLS_CHILD_PROCESS_H_
#define STRATA_TOOLS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

// A process of our own that answers each line with a line: what is written to
// its standard input, and read from its standard output.
//
// Threads: one.
// Lifetime: the process ends with this object, killed if need be.
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

  // Sends `line` and waits for the answer; neither with its end of line.
  //
  // Errors: std::runtime_error saying how the process ended ("it ended with
  //   exit code 1"), or that it did not answer in `timeout`.
  std::string Ask(const std::string& line, std::chrono::milliseconds timeout);

 private:
  void Send(std::string_view text);
  // Appends what comes, if anything does in time, to unread_.
  void Receive(std::chrono::milliseconds timeout);
  // Waits for the process, which has closed its side, to end.
  std::string HowItEnded();

  pid_t pid_ = -1;  // -1: has ended
  int socket_ = -1;
  std::string unread_;  // received, after the last answer
};

}  // namespace strata

#endif  // STRATA_TOOLS_CHILD_PROCESS_H_
