// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include "bench/compare/text.h"

namespace bobbin::compare {
namespace {

constexpr size_t kLabelWidth = 15;
constexpr size_t kCellWidth = 11;
constexpr size_t kLoneCellWidth = 18;  // "1,000,000 threads" stands above it.
constexpr size_t kRatioWidth = 7;
constexpr size_t kGapWidth = 2;

// One line of a block.
struct Line {
  std::string_view label;
  double (*figure)(const Figures& figures);
  std::string (*text)(double figure);
  bool more_is_better = false;
};

std::string Whole(double figure) { return Grouped(static_cast<uint64_t>(figure)); }

constexpr std::array kLines = {
    Line{"operations/s", [](const Figures& f) { return f.operations_per_second; }, Rounded, true},
    Line{"p50", [](const Figures& f) { return f.latency_p50_us; }, Duration},
    Line{"p99", [](const Figures& f) { return f.latency_p99_us; }, Duration},
    Line{"p99.9", [](const Figures& f) { return f.latency_p999_us; }, Duration},
    Line{"CPU/operation", [](const Figures& f) { return f.cpu_us_per_operation; }, Duration},
    Line{"switches/op", [](const Figures& f) { return f.switches_per_operation(); }, Rounded},
    Line{"memory/thread", [](const Figures& f) { return f.resident_bytes_per_unit; }, Size},
    Line{"OS threads", [](const Figures& f) { return static_cast<double>(f.os_threads_peak); },
         Whole},
};

// The results at one concurrency; a kind that was not wanted has none.
struct Panel {
  size_t concurrency = 0;
  const TrialResult* virtual_threads = nullptr;
  const TrialResult* platform_threads = nullptr;

  bool has_both() const { return virtual_threads != nullptr && platform_threads != nullptr; }
  size_t cell_width() const { return has_both() ? kCellWidth : kLoneCellWidth; }
  size_t width() const {
    return kGapWidth + (has_both() ? 2 * kCellWidth + kRatioWidth : kLoneCellWidth);
  }
};

std::vector<Panel> PanelsOf(std::span<const TrialResult> results) {
  std::vector<Panel> panels;
  for (const TrialResult& result : results) {
    if (panels.empty() || panels.back().concurrency != result.trial.concurrency) {
      panels.push_back({.concurrency = result.trial.concurrency});
    }
    (result.trial.kind == Kind::kVirtual ? panels.back().virtual_threads
                                         : panels.back().platform_threads) = &result;
  }
  return panels;
}

bool IsMeasured(const TrialResult* result) {
  return result != nullptr && result->outcome == Outcome::kMeasured;
}

std::string Cell(const Line& line, const TrialResult& result) {
  return IsMeasured(&result) ? line.text(line.figure(result.figures)) : "-";
}

std::string Ratio(const Line& line, const Panel& panel) {
  if (!IsMeasured(panel.virtual_threads) || !IsMeasured(panel.platform_threads)) return "";
  const double ours = line.figure(panel.virtual_threads->figures);
  const double theirs = line.figure(panel.platform_threads->figures);
  const double better = line.more_is_better ? ours : theirs;
  const double than = line.more_is_better ? theirs : ours;
  if (than <= 0) return "";
  // Beyond what could be meant: the other side has nearly none.
  const double ratio = better / than;
  return ratio >= 10'000 ? ">9,999" : Rounded(ratio);
}

std::string Right(std::string_view text, size_t width) {
  return fmt::format("{:>{}}", text, width);
}

void Append(std::string& block, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  block += line + "\n";
}

std::string Heading(const Panel& panel) {
  const std::string threads = Threads(panel.concurrency);
  if (!panel.has_both()) return Right(threads, kLoneCellWidth);
  return fmt::format("{:-^{}}", " " + threads + " ", 2 * kCellWidth + kRatioWidth);
}

// The panels that stand side by side.
std::string RenderRow(std::span<const Panel> panels) {
  std::string block;
  std::string concurrencies = Right("", kLabelWidth + kGapWidth);
  std::string kinds = concurrencies;
  for (const Panel& panel : panels) {
    concurrencies += Right("", kGapWidth) + Heading(panel);
    kinds += Right("", kGapWidth);
    if (panel.virtual_threads != nullptr) kinds += Right("VIRTUAL", panel.cell_width());
    if (panel.platform_threads != nullptr) kinds += Right("PLATFORM", panel.cell_width());
    if (panel.has_both()) kinds += Right("ratio", kRatioWidth);
  }
  Append(block, std::move(concurrencies));
  Append(block, std::move(kinds));

  for (const Line& line : kLines) {
    std::string text =
        fmt::format("{:<{}}", fmt::format("  {}", line.label), kLabelWidth + kGapWidth);
    for (const Panel& panel : panels) {
      text += Right("", kGapWidth);
      for (const TrialResult* result : {panel.virtual_threads, panel.platform_threads}) {
        if (result != nullptr) text += Right(Cell(line, *result), panel.cell_width());
      }
      if (panel.has_both()) text += Right(Ratio(line, panel), kRatioWidth);
    }
    Append(block, std::move(text));
  }
  return block;
}

std::string UpperCase(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

// From here on the figures say more about the other programs.
constexpr double kShareOfOthersMax = 0.1;

// What to know about the figures, and why some are missing.
std::string RenderNotes(std::span<const TrialResult> results) {
  std::string notes;
  for (const TrialResult& result : results) {
    if (result.outcome == Outcome::kMeasured) continue;
    std::string_view what = result.message;
    if (result.outcome == Outcome::kInterrupted) what = "interrupted";
    notes += fmt::format("  {}, {}: {}{}\n", UpperCase(KindName(result.trial.kind)),
                         Threads(result.trial.concurrency),
                         result.outcome == Outcome::kFailed ? "FAILED: " : "", what);
  }
  double share = 0;
  for (const TrialResult& result : results) share = std::max(share, result.cpu_share_of_others);
  if (share > kShareOfOthersMax) {
    notes += fmt::format(
        "  Other programs took up to {:.0f} % of the CPUs. They hold up few threads more than "
        "many.\n",
        share * 100);
  }
  return notes;
}

}  // namespace

std::string RenderTable(const Workload& workload, std::span<const TrialResult> results,
                        size_t columns) {
  std::string block =
      fmt::format("{}: {}; latency is {}\n", workload.name, workload.title, workload.latency);
  if (!results.empty() && results.front().outcome == Outcome::kUnavailable) {
    return block + fmt::format("\n  Not done: {}\n", results.front().message);
  }
  const std::vector<Panel> panels = PanelsOf(results);
  size_t first = 0;
  while (first < panels.size()) {
    size_t width = kLabelWidth + kGapWidth + panels[first].width();
    size_t last = first + 1;
    while (last < panels.size() && width + panels[last].width() <= columns) {
      width += panels[last++].width();
    }
    block += "\n" + RenderRow(std::span(panels).subspan(first, last - first));
    first = last;
  }
  if (const std::string notes = RenderNotes(results); !notes.empty()) block += "\n" + notes;
  return block;
}

}  // namespace bobbin::compare
