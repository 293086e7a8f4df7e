// SPDX-License-Identifier: Apache-2.0
//
// ExitAfterParsing, Refuse: how the programs that measure read their command line, and refuse it.
//
// Exit codes: 0 for --help, 2 for wrong options. What was wrong stands on standard error, in one
// line that begins with the program's name.
//
// Example:
//   CLI::App app("Measures an echo server over TCP.", "bobbin_echo_load");
//   app.add_option("--port", port, "port of the server")->required();
//   if (const std::optional<int> code = ExitAfterParsing(app, argc, argv)) return *code;
//   if (port == 0) return Refuse(app, "port 0: nobody listens there");

#ifndef BOBBIN_BENCH_SUPPORT_COMMAND_LINE_H_
#define BOBBIN_BENCH_SUPPORT_COMMAND_LINE_H_

#include <cstdio>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

namespace bobbin::bench {

// Says why not. Returns the program's exit code.
inline int Refuse(const CLI::App& app, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), why.c_str());
  return 2;
}

// Sets what `app` has options for. Returns an exit code if the program is to end with that.
inline std::optional<int> ExitAfterParsing(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return Refuse(app, error.what());
  }
  return std::nullopt;
}

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_SUPPORT_COMMAND_LINE_H_
