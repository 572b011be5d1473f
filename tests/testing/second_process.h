#ifndef STRATA_TESTS_TESTING_SECOND_PROCESS_H_
#define STRATA_TESTS_TESTING_SECOND_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace strata {

// One end of a connection between two processes. It transfers words and
// descriptors.
//
// Model: calls return false, or no descriptor, after the other process has
//   ended.
class PeerSocket {
 public:
  explicit PeerSocket(int fd) : fd_(fd) {}
  PeerSocket(const PeerSocket&) = delete;
  PeerSocket& operator=(const PeerSocket&) = delete;
  ~PeerSocket();

  // In a process that SecondProcess started: the connection to the parent.
  static int FromParent();

  bool Send(std::uint64_t word);
  bool Receive(std::uint64_t* word);
  bool SendDescriptor(int fd);
  // The caller closes the descriptor. Returns -1 if there is none.
  int ReceiveDescriptor();

 private:
  const int fd_;
};

// A process that runs one test of this binary. The test has DISABLED_ in its
// name, so that a normal run skips it.
class SecondProcess {
 public:
  explicit SecondProcess(const std::string& test);
  SecondProcess(const SecondProcess&) = delete;
  SecondProcess& operator=(const SecondProcess&) = delete;
  // Kills the process unless it was joined.
  ~SecondProcess();

  PeerSocket& socket() { return socket_; }
  // Waits for the process. Returns true if its test passed.
  bool Join();
  // Kills the process at once.
  void Kill();

 private:
  struct Ends;
  SecondProcess(const Ends& ends, const std::string& test);
  static Ends NewEnds();

  PeerSocket socket_;
  pid_t process_ = -1;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_SECOND_PROCESS_H_
