// SPDX-License-Identifier: Apache-2.0
//
// PostgresService: a PostgreSQL server of the tests' own; see postgres_service, which makes it.
//
//   Called from   any thread.
//   Suspends      never; all but `conninfo` block the OS thread for as long as a server takes.
//   Lifetime      the server ends with the object, or with the process.

#ifndef BOBBIN_TESTS_SERVICES_POSTGRES_SERVICE_H_
#define BOBBIN_TESTS_SERVICES_POSTGRES_SERVICE_H_

#include <string>
#include <string_view>

#include "tests/services/database_service.h"

namespace bobbin::test {

class PostgresService : public DatabaseService {
 public:
  // The one that all tests of a run share: of the folder that BOBBIN_TEST_POSTGRES names, or else
  // of this process. Nobody may stop it.
  static const std::string& SharedConninfo();

  // Of the same server: a certificate file of its folder.
  static std::string SharedFile(std::string_view name);

  // A server that may be stopped.
  PostgresService();

  const std::string& conninfo() const { return conninfo_; }
  int port() const;

 private:
  static const std::string& SharedFolder();

  std::string conninfo_;
};

// The port in a conninfo of a service, and the same conninfo with another one.
int PortOf(std::string_view conninfo);
std::string WithPort(std::string_view conninfo, int port);

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SERVICES_POSTGRES_SERVICE_H_
