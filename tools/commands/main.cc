// strata: the command line.

#include <fcntl.h>
#include <glog/logging.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "strata/allocation/error.h"
#include "strata/base/recording_file.h"
#include "strata/tools/commands/commands.h"

namespace strata::tools {
namespace {

constexpr const char* kVersion = "0.1.0";

struct Command {
  const char* name;
  int (*run)(int argc, char** argv);
  const char* summary;
};

constexpr Command kCommands[] = {
    {"replay", &RunReplay,
     "memory and time of recorded allocations, per strategy"},
    {"bench", &RunBench, "cost of an allocation and its free on the host"},
    {"check", &RunCheck, "hazards in the recorded calls of a program"},
    {"info", &RunInfo, "devices, strategies, layers and flags of this build"},
};

void PrintUsage(std::FILE* out) {
  std::fputs("usage: strata COMMAND [arguments]\n\n", out);
  for (const Command& command : kCommands) {
    std::fprintf(out, "  %-8s %s\n", command.name, command.summary);
  }
  std::fputs(
      "\n`strata COMMAND --help` says more; `strata --version` the "
      "version.\n",
      out);
}

const Command* FindCommand(std::string_view name) {
  for (const Command& command : kCommands) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

int Main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--version" || name == "version") {
    std::printf("strata %s\n", kVersion);
    return 0;
  }
  const bool wants_help = name == "help" || name == "--help" || name == "-h";
  if (wants_help && argc == 2) {
    PrintUsage(stdout);
    return 0;
  }
  if (wants_help) {
    char help[] = "--help";
    char* arguments[] = {help, nullptr};
    if (const Command* command = FindCommand(argv[2])) {
      return command->run(1, arguments);
    }
  }
  if (const Command* command = FindCommand(name)) {
    return command->run(argc - 2, argv + 2);
  }
  if (!name.empty()) {
    std::fprintf(stderr, "strata: unknown command '%s'\n",
                 argv[wants_help ? 2 : 1]);
  }
  PrintUsage(stderr);
  return 2;
}

}  // namespace
}  // namespace strata::tools

namespace {

// Opens /dev/null in place of each standard stream that is closed. Otherwise
// the next file would get the number of that stream, and receive its output.
// Writes to a closed stdout still fail, because it is opened for reading.
void KeepStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() returns the lowest free number: this one.
    if (open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY) !=
        stream) {
      std::_Exit(2);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  KeepStandardStreams();
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_WARNING;
  google::InitGoogleLogging(argv[0]);
  try {
    const int code = strata::tools::Main(argc, argv);
    // stdio drops data that could not be written.
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      std::fprintf(stderr, "strata: stdout: %s\n",
                   errno != 0 ? std::strerror(errno) : "cannot be written");
    } else if (strata::RecordingFile::incomplete() == 0) {
      return code;
    }
  } catch (const strata::BadAlloc& error) {
    std::fprintf(stderr, "strata: %s\n", error.what());
  } catch (const std::bad_alloc&) {
    std::fputs("strata: the host is out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "strata: %s\n", error.what());
  }
  return 2;
}
