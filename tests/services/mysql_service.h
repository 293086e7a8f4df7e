// SPDX-License-Identifier: Apache-2.0
//
// MySqlService: a MariaDB server of the tests' own; see mysql_service, which makes it.
//
//   Called from   any thread.
//   Suspends      never; all but `address` block the OS thread for as long as a server takes.
//   Lifetime      the server ends with the object, or with the process.

#ifndef BOBBIN_TESTS_SERVICES_MYSQL_SERVICE_H_
#define BOBBIN_TESTS_SERVICES_MYSQL_SERVICE_H_

#include <string>
#include <string_view>

#include <bobbin/db/mysql_server.h>

#include "tests/services/database_service.h"

namespace bobbin::test {

class MySqlService : public DatabaseService {
 public:
  // The one that all tests of a run share: of the folder that BOBBIN_TEST_MYSQL names, or else of
  // this process. Nobody may stop it.
  static const db::MySqlServer& Shared();
  // One of its files.
  static std::string SharedFile(std::string_view name);

  // A server that may be stopped.
  MySqlService();

  const db::MySqlServer& server() const { return server_; }

 private:
  static const std::string& SharedFolder();

  db::MySqlServer server_;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SERVICES_MYSQL_SERVICE_H_
