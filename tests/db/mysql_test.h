// SPDX-License-Identifier: Apache-2.0
//
// What the tests of MySQL have in common: a database of their own on the server that all share, and
// pools that work in it.
//
//   Called from   threads that may wait, next to a runtime with an I/O poller.

#ifndef BOBBIN_TESTS_DB_MYSQL_TEST_H_
#define BOBBIN_TESTS_DB_MYSQL_TEST_H_

#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/db/mysql_pool.h>

#include "tests/services/mysql_service.h"
#include "tests/io/io_test.h"

namespace bobbin::test {

inline db::MySqlPool MustOpen(db::MySqlPoolOptions options) {
  absl::StatusOr<db::MySqlPool> pool = db::MySqlPool::Open(std::move(options));
  BOBBIN_CHECK(pool.ok(), MessageOf(pool.status()));
  return *std::move(pool);
}

// A pool on the shared server, in the database that is there from the start.
inline db::MySqlPool OpenMySql(size_t connections_max = 4) {
  return MustOpen({.server = MySqlService::Shared(), .connections_max = connections_max});
}

// A database of its own, gone at the end.
class MySqlDatabase {
 public:
  MySqlDatabase() {
    static std::atomic<int> count{0};
    name_ = "t" + std::to_string(getpid()) + "_" + std::to_string(++count);
    Run("create database " + name_);
  }
  MySqlDatabase(const MySqlDatabase&) = delete;
  MySqlDatabase& operator=(const MySqlDatabase&) = delete;
  ~MySqlDatabase() { Run("drop database " + name_); }

  db::MySqlServer server() const {
    db::MySqlServer server = MySqlService::Shared();
    server.database = name_;
    return server;
  }
  db::MySqlPool Open(size_t connections_max = 4) const {
    return MustOpen({.server = server(), .connections_max = connections_max});
  }
  // With a table `t(n int)`.
  db::MySqlPool OpenWithTable(size_t connections_max = 4) const {
    db::MySqlPool pool = Open(connections_max);
    EXPECT_OK(pool.ExecuteScript("create table t(n int)"));
    return pool;
  }

 private:
  static void Run(const std::string& sql) {
    db::MySqlPool pool = OpenMySql(1);
    EXPECT_OK(pool.ExecuteScript(db::UncheckedSql(sql)));
  }

  std::string name_;
};

// The shared server by another way.
inline db::MySqlServer SharedBy(int port) {
  db::MySqlServer server = MySqlService::Shared();
  server.port = static_cast<uint16_t>(port);
  return server;
}

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_DB_MYSQL_TEST_H_
