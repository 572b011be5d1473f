#include "strata/tools/bench/child_process.h"

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace strata::tools {
namespace {

constexpr std::string_view kPreload = "LD_PRELOAD=";

std::vector<std::string> Environment(const std::string& preload) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.substr(0, kPreload.size()) != kPreload) result.emplace_back(text);
  }
  if (!preload.empty()) result.push_back(std::string(kPreload) + preload);
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string ErrorText(int error) {
  return std::generic_category().message(error);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command,
                           const std::string& preload) {
  int sockets[2] = {-1, -1};
  // A socket instead of pipes: a write to an ended process is an error, not a
  // signal.
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    throw std::runtime_error("no socket: " + ErrorText(errno));
  }
  std::vector<std::string> arguments = command;
  std::vector<std::string> environment = Environment(preload);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, sockets[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, sockets[1], STDOUT_FILENO);
  const int error =
      posix_spawn(&pid_, command.at(0).c_str(), &actions, nullptr,
                  Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(sockets[1]);
  socket_ = sockets[0];
  if (error != 0) {
    close(socket_);
    throw std::runtime_error("cannot start " + command[0] + ": " +
                             ErrorText(error));
  }
}

ChildProcess::~ChildProcess() {
  close(socket_);
  if (pid_ == -1) return;
  kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) == -1 && errno == EINTR) {
  }
}

std::string ChildProcess::HowItEnded() {
  int status = 0;
  while (waitpid(pid_, &status, 0) == -1 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) {
    return "it was ended by signal " + std::to_string(WTERMSIG(status));
  }
  return "it ended with exit code " + std::to_string(WEXITSTATUS(status));
}

void ChildProcess::Send(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    // The process has ended; its last output can still be read.
    if (count < 0 && errno != EINTR) return;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void ChildProcess::Receive(std::chrono::milliseconds timeout) {
  pollfd readable = {socket_, POLLIN, 0};
  if (poll(&readable, 1, static_cast<int>(timeout.count())) <= 0) return;
  char buffer[4096];
  const ssize_t count = recv(socket_, buffer, sizeof buffer, 0);
  if (count > 0) {
    unread_.append(buffer, static_cast<std::size_t>(count));
  } else if (count == 0 || errno != EINTR) {
    throw std::runtime_error(HowItEnded());
  }
}

std::string ChildProcess::Ask(const std::string& line,
                              std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  if (pid_ == -1) throw std::runtime_error("it has ended");
  Send(line + "\n");
  const Clock::time_point deadline = Clock::now() + timeout;
  std::size_t end = unread_.find('\n');
  while (end == std::string::npos) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      throw std::runtime_error("it did not answer in " +
                               std::to_string(timeout.count()) + " ms");
    }
    Receive(left);
    end = unread_.find('\n');
  }
  std::string answer = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return answer;
}

}  // namespace strata::tools
