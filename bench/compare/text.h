// SPDX-License-Identifier: Apache-2.0
//
// Text: numbers as people read them.

#ifndef BOBBIN_BENCH_COMPARE_TEXT_H_
#define BOBBIN_BENCH_COMPARE_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bobbin::compare {

// "1,234,567".
std::string Grouped(uint64_t number);

// "1,000 threads", "1 platform thread".
std::string Threads(uint64_t count, std::string_view kind = {});

// At least three digits that count, and no more after the point than that takes: "0.0123", "1.23",
// "12.3", "1,234".
std::string Rounded(double number);

// A duration given in microseconds: "850 ns", "12.3 us", "1.23 ms", "2.05 s".
std::string Duration(double microseconds);

// "640 B", "12.3 KiB", "1.50 MiB".
std::string Size(double bytes);

// The parts of `text` between commas, spaces around them left out.
std::vector<std::string_view> SplitAtCommas(std::string_view text);

// "a, b, c".
std::string Listed(const std::vector<std::string_view>& words);

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_TEXT_H_
