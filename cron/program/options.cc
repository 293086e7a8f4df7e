// SPDX-License-Identifier: Apache-2.0

#include "cron/program/options.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"

#include <bobbin/core/status.h>

namespace bobbin::cron::program {

namespace {

constexpr const char* kDescription =
    "When is a cron expression due? Expressions have six fields: second minute hour day-of-month\n"
    "month day-of-week, or are a macro such as @daily.";
constexpr const char* kFooter =
    "Times are written as 2026-11-30, 2026-11-30T02:30, 2026-11-30T02:30:00 or\n"
    "2026-11-30T02:30:00+01:00, or now; without an offset they are in the zone.\n"
    "Exit status: 0 all is well, 1 an expression, a zone or a time is wrong, 2 the command line "
    "is.";

absl::Status Wrong(std::string_view message) {
  return MakeStatus(absl::StatusCode::kInvalidArgument, message);
}

// An expression may begin with a dash, but it is no option: it goes behind "--". It is told apart
// by its blanks, or by being nothing but the dash.
std::vector<std::string> WithExpressionLast(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  std::vector<std::string> expressions;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool is_expression =
        argument == "-" || (argument.starts_with('-') && !argument.starts_with("--") &&
                            argument.find_first_of(" \t") != argument.npos);
    (is_expression ? expressions : arguments).emplace_back(argument);
  }
  if (!expressions.empty()) {
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), expressions.begin(), expressions.end());
  }
  return arguments;
}

class CommandLine {
 public:
  CommandLine() : app_(kDescription, "bobbin-cron") {
    app_.require_subcommand(0, 1);
    app_.footer(kFooter);
    app_.set_version_flag("--version", "bobbin-cron " BOBBIN_VERSION);

    CLI::App* const next = Add(Command::kNext, "next", "The next runs");
    AddWhen(*next);
    AddCount(*next, "How many runs (1)");
    AddBatch(*next, "expression TAB zone TAB start; each is printed with the next run behind it");

    CLI::App* const previous = Add(Command::kPrevious, "previous", "The runs before, latest first");
    AddWhen(*previous);
    AddCount(*previous, "How many runs (1)");

    CLI::App* const between = Add(Command::kBetween, "between", "All runs of a span");
    AddWhen(*between);
    between->add_option("--to", options_.to, "Where the span ends")->type_name("TIME")->required();
    AddCount(*between, "At most so many");

    CLI::App* const explain =
        Add(Command::kExplain, "explain", "What an expression means, and its next runs");
    AddWhen(*explain);

    CLI::App* const check = Add(Command::kCheck, "check", "Whether an expression is right");
    AddBatch(*check, "an expression; ok, or error TAB field TAB message, is printed for each");
  }

  absl::StatusOr<Options> Parse(int argc, const char* const* argv) {
    std::vector<std::string> arguments = WithExpressionLast(argc, argv);
    std::reverse(arguments.begin(), arguments.end());  // As the library wants them.
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::CallForHelp&) {
      options_.help = app_.help();
      return options_;
    } catch (const CLI::CallForVersion&) {
      options_.command = Command::kVersion;
      return options_;
    } catch (const CLI::ParseError& error) {
      return Wrong(error.what());
    }
    BOBBIN_RETURN_IF_ERROR(ReadPolicies());
    for (const auto& [command, app] : commands_) {
      if (!app->parsed()) continue;
      options_.command = command;
      const bool has_expression = app->count("EXPRESSION") > 0;
      if (options_.is_batch && has_expression) {
        return Wrong("with --tsv expressions come from standard input");
      }
      if (!options_.is_batch && !has_expression) return Wrong("EXPRESSION is missing");
      return options_;
    }
    return Wrong("a command is missing");
  }

 private:
  CLI::App* Add(Command command, const char* name, const char* description) {
    CLI::App* const app = app_.add_subcommand(name, description);
    app->add_option("EXPRESSION", options_.expression, "Six fields in one argument, or a macro");
    commands_[command] = app;
    return app;
  }

  void AddWhen(CLI::App& app) {
    app.add_option("--zone", options_.zone, "Europe/Berlin, +05:30, UTC (UTC)")->type_name("ZONE");
    app.add_option("--from", options_.from, "Where to begin (now)")->type_name("TIME");
    app.add_option("--repeated", repeated_,
                   "Times that come twice run: first, both, intervals (first)")
        ->type_name("WHEN");
    app.add_option("--skipped", skipped_, "Times that do not come: skip, or run after (skip)")
        ->type_name("WHEN");
  }

  void AddCount(CLI::App& app, const char* description) {
    app.add_option("-n", options_.count, description)->type_name("N")->check(CLI::PositiveNumber);
  }

  void AddBatch(CLI::App& app, const std::string& line) {
    app.add_flag("--tsv", options_.is_batch, "Read lines from standard input: " + line);
  }

  absl::Status ReadPolicies() {
    if (repeated_ == "both") {
      options_.repeated = Repeated::kBoth;
    } else if (repeated_ == "intervals") {
      options_.repeated = Repeated::kIntervalsInBoth;
    } else if (repeated_ != "first") {
      return Wrong("--repeated must be first, both or intervals");
    }
    if (skipped_ == "after") {
      options_.skipped = Skipped::kFirstInstantAfter;
    } else if (skipped_ != "skip") {
      return Wrong("--skipped must be skip or after");
    }
    return absl::OkStatus();
  }

  CLI::App app_;
  std::map<Command, CLI::App*> commands_;
  std::string repeated_ = "first";
  std::string skipped_ = "skip";
  Options options_;
};

}  // namespace

absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv) {
  return CommandLine().Parse(argc, argv);
}

}  // namespace bobbin::cron::program
