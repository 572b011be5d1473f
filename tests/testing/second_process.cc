#include "strata/tests/testing/second_process.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <vector>

namespace strata {
namespace {

// Descriptor of the connection in the second process.
constexpr int kParentFd = 200;

// This process's environment without the settings of its own test run.
std::vector<char*> Environment() {
  std::vector<char*> variables;
  for (char** at = environ; *at != nullptr; ++at) {
    if (std::strncmp(*at, "GTEST_", 6) != 0) variables.push_back(*at);
  }
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

PeerSocket::~PeerSocket() { close(fd_); }

int PeerSocket::FromParent() { return kParentFd; }

bool PeerSocket::Send(std::uint64_t word) {
  return send(fd_, &word, sizeof word, MSG_NOSIGNAL) == sizeof word;
}

bool PeerSocket::Receive(std::uint64_t* word) {
  return recv(fd_, word, sizeof *word, MSG_WAITALL) == sizeof *word;
}

bool PeerSocket::SendDescriptor(int fd) {
  char byte = 0;
  iovec data = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return sendmsg(fd_, &message, MSG_NOSIGNAL) == 1;
}

int PeerSocket::ReceiveDescriptor() {
  int fd = -1;
  char byte = 0;
  iovec data = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(fd_, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

struct SecondProcess::Ends {
  int ours = -1;
  int theirs = -1;
};

SecondProcess::Ends SecondProcess::NewEnds() {
  int ends[2] = {-1, -1};
  socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
  return {ends[0], ends[1]};
}

SecondProcess::SecondProcess(const std::string& test)
    : SecondProcess(NewEnds(), test) {}

SecondProcess::SecondProcess(const Ends& ends, const std::string& test)
    : socket_(ends.ours) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends.theirs, kParentFd);
  // The name of the file: valgrind cannot run a program by the name of the
  // link.
  std::string program = std::filesystem::read_symlink("/proc/self/exe");
  std::string filter = "--gtest_filter=" + test;
  std::string disabled = "--gtest_also_run_disabled_tests";
  std::string brief = "--gtest_brief=1";
  char* const arguments[] = {program.data(), filter.data(), disabled.data(),
                             brief.data(), nullptr};
  if (posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments,
                  Environment().data()) != 0) {
    process_ = -1;
  }
  posix_spawn_file_actions_destroy(&actions);
  close(ends.theirs);
}

SecondProcess::~SecondProcess() { Kill(); }

bool SecondProcess::Join() {
  int status = 0;
  const pid_t process = process_;
  process_ = -1;
  return process > 0 && waitpid(process, &status, 0) == process &&
         WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void SecondProcess::Kill() {
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  Join();
}

}  // namespace strata
