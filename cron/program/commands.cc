// SPDX-License-Identifier: Apache-2.0

#include "cron/program/commands.h"

#include <algorithm>
#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/cron/expression.h>
#include <bobbin/cron/schedule.h>
#include <bobbin/cron/zone.h>

#include "cron/program/time_text.h"

namespace bobbin::cron::program {

namespace {

absl::StatusOr<Schedule> ScheduleOf(const Options& options) {
  BOBBIN_ASSIGN_OR_RETURN(const Expression expression, Expression::Parse(options.expression));
  BOBBIN_ASSIGN_OR_RETURN(const absl::TimeZone zone, FindZone(options.zone));
  return Schedule({.expression = expression,
                   .zone = zone,
                   .repeated = options.repeated,
                   .skipped = options.skipped});
}

// How the wall clock stands beside a change of the clocks, where it does.
std::string_view NoteOf(Occurrence::Pass pass) {
  switch (pass) {
    case Occurrence::Pass::kOnly:
      return "";
    case Occurrence::Pass::kFirst:
      return "  (the first of two passes)";
    case Occurrence::Pass::kSecond:
      return "  (the second of two passes)";
    case Occurrence::Pass::kAfterGap:
      return "  (in the place of skipped times)";
  }
  return "";
}

absl::Status Walk(const Options& options, std::ostream& output) {
  BOBBIN_ASSIGN_OR_RETURN(const Schedule schedule, ScheduleOf(options));
  BOBBIN_ASSIGN_OR_RETURN(absl::Time time, ParseInstant(options.from, schedule.zone()));
  const bool is_forward = options.command == Command::kNext;
  for (int64_t i = 0; i < std::max<int64_t>(options.count, 1); ++i) {
    const std::optional<Occurrence> run =
        is_forward ? schedule.Next(time) : schedule.Previous(time);
    if (!run) {
      output << "none\n";
      break;
    }
    output << FormatInstant(run->time, schedule.zone()) << '\n';
    time = run->time;
  }
  return absl::OkStatus();
}

absl::Status Between(const Options& options, std::ostream& output) {
  BOBBIN_ASSIGN_OR_RETURN(const Schedule schedule, ScheduleOf(options));
  BOBBIN_ASSIGN_OR_RETURN(const absl::Time from, ParseInstant(options.from, schedule.zone()));
  BOBBIN_ASSIGN_OR_RETURN(const absl::Time to, ParseInstant(options.to, schedule.zone()));
  int64_t count = 0;
  for (const Occurrence& run : schedule.Between(from, to)) {
    output << FormatInstant(run.time, schedule.zone()) << '\n';
    // A reader that has seen enough ends it, as head does.
    if (++count == options.count || !output) break;
  }
  return absl::OkStatus();
}

absl::Status Explain(const Options& options, std::ostream& output) {
  BOBBIN_ASSIGN_OR_RETURN(const Schedule schedule, ScheduleOf(options));
  BOBBIN_ASSIGN_OR_RETURN(absl::Time time, ParseInstant(options.from, schedule.zone()));
  const Expression& expression = schedule.expression();
  output << expression.Describe() << "\n\n";

  const std::string text = expression.ToString();
  std::string_view rest = text;
  for (size_t i = 0; i < kFieldCount; ++i) {
    const std::string_view field = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(field.size() + 1, rest.size()));
    output << fmt::format("  {:<13} {:<16} of {}\n", NameOf(static_cast<Field>(i)), field,
                          AllowedIn(static_cast<Field>(i)));
  }

  output << fmt::format("\nnext, in {}:\n", schedule.zone().name());
  constexpr int kRunsShown = 5;
  for (int i = 0; i < kRunsShown; ++i) {
    const std::optional<Occurrence> run = schedule.Next(time);
    if (!run) {
      output << "  none: clocks are put forward each time\n";
      break;
    }
    output << "  " << absl::FormatTime("%a ", run->time, schedule.zone())
           << FormatInstant(run->time, schedule.zone()) << NoteOf(run->pass) << '\n';
    time = run->time;
  }
  return absl::OkStatus();
}

absl::Status Check(const Options& options, std::ostream& output) {
  BOBBIN_RETURN_IF_ERROR(Expression::Parse(options.expression).status());
  output << "ok\n";
  return absl::OkStatus();
}

// The next run for a line of a batch: a time, or "none".
absl::StatusOr<std::string> NextOfLine(const Options& options, std::string_view line) {
  std::vector<std::string_view> columns;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('\t', begin), line.size());
    columns.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  if (columns.size() != 3) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        fmt::format("there are {} columns where 3 are needed: expression, zone, start",
                    columns.size()));
  }
  // What never comes true has no next run: here that is an answer.
  if (WhyNever(columns[0])) return "none";
  Options of_line = options;
  of_line.expression = columns[0];
  of_line.zone = columns[1];
  BOBBIN_ASSIGN_OR_RETURN(const Schedule schedule, ScheduleOf(of_line));
  BOBBIN_ASSIGN_OR_RETURN(const absl::Time start, ParseInstant(columns[2], schedule.zone()));
  const std::optional<Occurrence> run = schedule.Next(start);
  return run ? FormatInstant(run->time, schedule.zone()) : "none";
}

std::string CheckOfLine(std::string_view line) {
  const std::optional<Mistake> mistake = FindMistake(line);
  if (!mistake) return "ok";
  return fmt::format("error\t{}\t{}", mistake->field_name(), mistake->Text(line));
}

absl::Status Batch(const Options& options, std::istream& input, std::ostream& output) {
  for (std::string line; std::getline(input, line) && output;) {
    if (line.ends_with('\r')) line.pop_back();
    if (options.command == Command::kCheck) {
      output << CheckOfLine(line) << '\n';
      continue;
    }
    const absl::StatusOr<std::string> next = NextOfLine(options, line);
    output << line << '\t';
    if (next.ok()) {
      output << *next << '\n';
    } else {
      output << "error: " << MessageOf(next.status()) << '\n';
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunCommand(const Options& options, std::istream& input, std::ostream& output) {
  if (options.is_batch) return Batch(options, input, output);
  switch (options.command) {
    case Command::kHelp:
      output << options.help;
      return absl::OkStatus();
    case Command::kVersion:
      output << "bobbin-cron " BOBBIN_VERSION "\n";
      return absl::OkStatus();
    case Command::kNext:
    case Command::kPrevious:
      return Walk(options, output);
    case Command::kBetween:
      return Between(options, output);
    case Command::kExplain:
      return Explain(options, output);
    case Command::kCheck:
      return Check(options, output);
  }
  return absl::OkStatus();
}

}  // namespace bobbin::cron::program
