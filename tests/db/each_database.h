// SPDX-License-Identifier: Apache-2.0
//
// EachDatabase: the same test on each kind of database, on an empty one of its own.
//
//   Called from   threads that may wait, next to a runtime with an I/O poller.

#ifndef BOBBIN_TESTS_DB_EACH_DATABASE_H_
#define BOBBIN_TESTS_DB_EACH_DATABASE_H_

#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/db/database.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/db/sqlite.h>

#include "tests/db/pg_test.h"

namespace bobbin::test {

// A folder of its own, gone at the end, for a SQLite file.
class SqliteFolder {
 public:
  SqliteFolder() {
    std::string folder = (std::filesystem::temp_directory_path() / "bobbin-db-XXXXXX").string();
    BOBBIN_CHECK(::mkdtemp(folder.data()) != nullptr, "no folder for tests can be made");
    folder_ = folder;
  }
  SqliteFolder(const SqliteFolder&) = delete;
  SqliteFolder& operator=(const SqliteFolder&) = delete;
  ~SqliteFolder() { std::filesystem::remove_all(folder_); }

  std::string path() const { return (folder_ / "test.db").string(); }

 private:
  std::filesystem::path folder_;
};

// Its file does not outlive a power failure, and need not.
inline std::unique_ptr<db::Database> OpenSqliteFile(const std::string& path) {
  absl::StatusOr<db::Sqlite> sqlite =
      db::Sqlite::Open({.path = path,
                        .durability = db::SqliteDurability::kSinceCheckpoint,
                        // A machine that is busy may let the other process wait.
                        .busy_wait_max = std::chrono::seconds(60)});
  BOBBIN_CHECK(sqlite.ok(), MessageOf(sqlite.status()));
  return std::make_unique<db::Sqlite>(*std::move(sqlite));
}

inline std::unique_ptr<db::Database> OpenPostgres(const std::string& conninfo,
                                                  size_t connections_max = 8) {
  return std::make_unique<db::PgPool>(
      MustOpen({.server = {.conninfo = conninfo}, .connections_max = connections_max}));
}

inline void OnEachDatabase(const std::function<void(db::Database&)>& body) {
  {
    SCOPED_TRACE("sqlite");
    const SqliteFolder folder;
    const std::unique_ptr<db::Database> sqlite = OpenSqliteFile(folder.path());
    body(*sqlite);
  }
  {
    SCOPED_TRACE("postgres");
    const Schema schema;
    const std::unique_ptr<db::Database> postgres = OpenPostgres(schema.conninfo());
    body(*postgres);
  }
}

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_DB_EACH_DATABASE_H_
