// SPDX-License-Identifier: Apache-2.0
//
// Tsv: the tables in data/: a line of names, then a row a line, its columns between tabs.
//
//   Called from   any thread.

#ifndef BOBBIN_TESTS_CRON_TSV_H_
#define BOBBIN_TESTS_CRON_TSV_H_

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace bobbin::test {

struct TsvRow {
  int line = 0;
  std::vector<std::string> columns;

  const std::string& operator[](size_t column) const { return columns.at(column); }
};

// The rows of data/`name`, without the first line.
inline std::vector<TsvRow> ReadTsv(const std::string& name) {
  std::vector<TsvRow> rows;
  std::ifstream file(std::string(BOBBIN_CRON_DATA) + "/" + name);
  EXPECT_TRUE(file.is_open()) << name;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    if (++number == 1) continue;
    TsvRow row;
    row.line = number;
    for (size_t begin = 0; begin <= line.size();) {
      const size_t end = std::min(line.find('\t', begin), line.size());
      row.columns.push_back(line.substr(begin, end - begin));
      begin = end + 1;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_CRON_TSV_H_
