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

const std::string& MySqlService::SharedFolder() {
  static const std::string folder = []() -> std::string {
    if (const char* const given = std::getenv("BOBBIN_TEST_MYSQL")) return given;
    static const MySqlService own;
    return own.folder();
  }();
  return folder;
}

const db::MySqlServer& MySqlService::Shared() {
  static const db::MySqlServer server = ServerOf(SharedFolder());
  return server;
}

std::string MySqlService::SharedFile(std::string_view name) {
  return SharedFolder() + "/" + std::string(name);
}

MySqlService::MySqlService() : DatabaseService(BOBBIN_MYSQL_SERVICE), server_(ServerOf(folder())) {}

}  // namespace bobbin::test
