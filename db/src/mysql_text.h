// SPDX-License-Identifier: Apache-2.0
//
// MySqlText: a statement's text as a MySQL server takes it, and what can be seen from it.
//
// The server has no numbers for the places of values: each `$1` outside of quotes and comments
// becomes a `?`, and the list says whose value goes there.
//
//   Called from   any thread.
//   Suspends      never.
//   Cost          a pass over the text.

#ifndef BOBBIN_DB_SRC_MYSQL_TEXT_H_
#define BOBBIN_DB_SRC_MYSQL_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bobbin::db::internal {

// What a statement may leave behind in its session, beside its transaction.
enum class Residue : uint8_t {
  kNone,
  kSession,   // Variables, locks, temporary tables: a reset of the connection takes them away.
  kDatabase,  // Which database names are looked up in: nothing takes that back.
};

struct MySqlText {
  std::string text;
  std::vector<size_t> values;  // For each `?` the index of its value.
  size_t value_count = 0;      // The largest number, `$3`: 3.
  Residue residue = Residue::kNone;
  bool is_change = false;  // It begins with insert, replace, update or delete.
  bool has_star = false;   // What columns it has may change with its tables.
};

// How the server reads backslashes in strings: sql_mode has a say in it.
enum class Backslashes : uint8_t { kEscape, kMeanThemselves };

MySqlText TranslateMySql(std::string_view sql, Backslashes backslashes);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_MYSQL_TEXT_H_
