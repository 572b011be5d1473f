// A program with flags of its own, two of them with names of Strata's options.
// Strata reads those two, and leaves gflags as it is.

#include <gflags/gflags.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "strata/facade/flags.h"

DEFINE_string(allocator_strategy, "direct", "The program's own help.");
DEFINE_uint64(strata_sim_seed, 77, "The program's own seed.");
DEFINE_int32(host_number, 1, "A flag that Strata does not know.");

namespace GFLAGS_NAMESPACE {
extern void (*gflags_exitfunc)(int);
}  // namespace GFLAGS_NAMESPACE

#define EXPECT(condition)                                          \
  do {                                                             \
    if (!(condition)) {                                            \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      std::exit(1);                                                \
    }                                                              \
  } while (0)

namespace {

void ExitOfProgram(int code) { std::exit(code); }

bool IsDefined(const char* name) {
  std::string value;
  return gflags::GetCommandLineOption(name, &value);
}

void ExpectFlagsOfProgramAreRead() {
  EXPECT(!IsDefined("strata_platform"));
  EXPECT((strata::ParseCommandLine({"--strata_platform=sim", "other"}) ==
          std::vector<std::string>{"other"}));
  EXPECT(IsDefined("strata_platform"));
  strata::Options options = strata::OptionsFromFlags();
  EXPECT(options.platform.platform == "sim");
  EXPECT(options.allocator_strategy == "direct");
  EXPECT(options.platform.sim_seed == 77);
  FLAGS_allocator_strategy = "bfc";
  strata::ParseCommandLine({"--strata_sim_seed=5", "--host_number=2"});
  options = strata::OptionsFromFlags();
  EXPECT(options.allocator_strategy == "bfc");
  EXPECT(options.platform.sim_seed == 5 && FLAGS_strata_sim_seed == 5);
  EXPECT(FLAGS_host_number == 2);
}

void ExpectGflagsIsAsItWas() {
  EXPECT(gflags::ProgramInvocationName() == std::string("name_of_program"));
  EXPECT(GFLAGS_NAMESPACE::gflags_exitfunc == &ExitOfProgram);
  gflags::CommandLineFlagInfo info;
  EXPECT(gflags::GetCommandLineFlagInfo("allocator_strategy", &info));
  EXPECT(info.description == "The program's own help.");
  EXPECT(info.default_value == "direct");
}

void ExpectAnotherTypeIsRefused() {
  static int value = 1;
  static int initial = 1;
  gflags::FlagRegisterer("strata_sim_devices", "", "here", &value, &initial);
  try {
    strata::OptionsFromFlags();
    EXPECT(false);
  } catch (const std::invalid_argument& error) {
    EXPECT(
        std::string(error.what()).find("strata_sim_devices with type int32") !=
        std::string::npos);
  }
  EXPECT(!IsDefined("strata_platform"));
}

}  // namespace

int main(int argc, char** argv) {
  int one = 1;
  char name[] = "name_of_program";
  char* arguments[] = {name, nullptr};
  char** pointers = arguments;
  gflags::ParseCommandLineFlags(&one, &pointers, true);
  GFLAGS_NAMESPACE::gflags_exitfunc = &ExitOfProgram;
  if (argc > 1 && argv[1] == std::string("another_type")) {
    ExpectAnotherTypeIsRefused();
  } else {
    ExpectFlagsOfProgramAreRead();
  }
  ExpectGflagsIsAsItWas();
  return 0;
}
