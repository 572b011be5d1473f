#ifndef STRATA_TESTS_TESTING_SECOND_PROCESS_H_
#define STRATA_TESTS_TESTING_SECOND_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace strata {

// One end of a connection between two processes: words, and descriptors.
//
// Model: false, or no descriptor, once the other process has ended.
class PeerSocket {
 public:
  explicit PeerSocket(int fd) : fd_(fd) {}
  PeerSocket(const PeerSocket&) = delete;
  PeerSocket& operator=(const PeerSocket&) = delete;
  ~PeerSocket();

  // In a process that SecondProcess has started: the connection to the other.
  static int FromParent();

  bool Send(std::uint64_t word);
  bool Receive(std::uint64_t* word);
  bool SendDescriptor(int fd);
  // The caller closes it; -1 if there is none.
  int ReceiveDescriptor();

 private:
  const int fd_;
};

// A process that runs one test of this binary, which has DISABLED_ in its name
// so that nobody else runs it.
class SecondProcess {
 public:
  explicit SecondProcess(const std::string& test);
  SecondProcess(const SecondProcess&) = delete;
  SecondProcess& operator=(const SecondProcess&) = delete;
  // Ends the process unless it was joined.
  ~SecondProcess();

  PeerSocket& socket() { return socket_; }
  // Waits for the process; whether its test has passed.
  bool Join();
  // Ends the process at once.
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
