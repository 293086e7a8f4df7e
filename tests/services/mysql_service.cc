// SPDX-License-Identifier: Apache-2.0

#include "tests/services/mysql_service.h"

#include <cstdlib>
#include <iostream>
#include <string>

namespace bobbin::test {

namespace {

db::MySqlServer ServerOf(const std::string& folder) {
  const auto server = db::MySqlServer::Parse(DatabaseService::AddressIn(folder));
  if (!server.ok()) {
    std::cerr << "there is no address of a server in " << folder << "\n";
    std::abort();
  }
  return *server;
}

}  // namespace

const db::MySqlServer& MySqlService::Shared() {
  static const db::MySqlServer server = [] {
    if (const char* const shared = std::getenv("BOBBIN_TEST_MYSQL")) return ServerOf(shared);
    static const MySqlService own;
    return own.server();
  }();
  return server;
}

MySqlService::MySqlService() : DatabaseService(BOBBIN_MYSQL_SERVICE), server_(ServerOf(folder())) {}

}  // namespace bobbin::test
