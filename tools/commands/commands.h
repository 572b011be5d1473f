#ifndef STRATA_TOOLS_COMMANDS_COMMANDS_H_
#define STRATA_TOOLS_COMMANDS_COMMANDS_H_

namespace strata::tools {

// The subcommands of `strata`. Each receives the arguments after its name and
// returns the exit code. An exception ends the program with what() on stderr
// and exit code 2.

int RunReplay(int argc, char** argv);
int RunBench(int argc, char** argv);
int RunCheck(int argc, char** argv);
int RunInfo(int argc, char** argv);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_COMMANDS_COMMANDS_H_
