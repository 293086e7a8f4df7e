// SPDX-License-Identifier: Apache-2.0
//
// What the tests of PostgreSQL have in common: a schema of their own on the server that all share,
// and pools that work in it.
//
//   Called from   threads that may wait, next to a runtime with an I/O poller.

#ifndef BOBBIN_TESTS_DB_PG_TEST_H_
#define BOBBIN_TESTS_DB_PG_TEST_H_

#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/db/pg_pool.h>

#include "tests/services/postgres_service.h"
#include "tests/io/io_test.h"

namespace bobbin::test {

inline db::PgPool MustOpen(db::PgPoolOptions options) {
  absl::StatusOr<db::PgPool> pool = db::PgPool::Open(std::move(options));
  BOBBIN_CHECK(pool.ok(), MessageOf(pool.status()));
  return *std::move(pool);
}

// A schema of its own, gone at the end. Tables without another schema's name are in it.
class Schema {
 public:
  Schema() {
    static std::atomic<int> count{0};
    name_ = "t" + std::to_string(getpid()) + "_" + std::to_string(++count);
    Run("create schema " + name_);
  }
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;
  ~Schema() { Run("drop schema " + name_ + " cascade"); }

  const std::string& name() const { return name_; }
  std::string conninfo() const { return Inside(PostgresService::SharedConninfo()); }
  // The same by another way to the server.
  std::string ConninfoBy(int port) const { return WithPort(conninfo(), port); }

  db::PgPool Open(size_t connections_max = 4) const {
    return MustOpen({.server = {.conninfo = conninfo()}, .connections_max = connections_max});
  }
  // With a table `t(n int)`.
  db::PgPool OpenWithTable(size_t connections_max = 4) const {
    db::PgPool pool = Open(connections_max);
    EXPECT_OK(pool.ExecuteScript("create table t(n int)"));
    return pool;
  }

 private:
  std::string Inside(const std::string& conninfo) const {
    return conninfo + " options='-c search_path=" + name_ + "'";
  }
  void Run(const std::string& sql) {
    auto pool = MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}});
    EXPECT_OK(pool.ExecuteScript(db::UncheckedSql(sql)));
  }

  std::string name_;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_DB_PG_TEST_H_
