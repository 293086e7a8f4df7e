// SPDX-License-Identifier: Apache-2.0

#include "tests/services/postgres_service.h"

#include <cstdlib>

namespace bobbin::test {

namespace {

constexpr std::string_view kPortKey = "port=";

}  // namespace

const std::string& PostgresService::SharedFolder() {
  static const std::string folder = []() -> std::string {
    if (const char* const given = std::getenv("BOBBIN_TEST_POSTGRES")) return given;
    static const PostgresService own;
    return own.folder();
  }();
  return folder;
}

const std::string& PostgresService::SharedConninfo() {
  static const std::string conninfo = AddressIn(SharedFolder());
  return conninfo;
}

std::string PostgresService::SharedFile(std::string_view name) {
  return SharedFolder() + "/" + std::string(name);
}

PostgresService::PostgresService()
    : DatabaseService(BOBBIN_POSTGRES_SERVICE), conninfo_(AddressIn(folder())) {}

int PostgresService::port() const { return PortOf(conninfo_); }

int PortOf(std::string_view conninfo) {
  const size_t at = conninfo.find(kPortKey);
  return at == conninfo.npos ? 0 : std::atoi(conninfo.data() + at + kPortKey.size());
}

std::string WithPort(std::string_view conninfo, int port) {
  std::string text(conninfo);
  const size_t at = text.find(kPortKey) + kPortKey.size();
  return text.replace(at, text.find(' ', at) - at, std::to_string(port));
}

}  // namespace bobbin::test
