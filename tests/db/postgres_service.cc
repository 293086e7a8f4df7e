// SPDX-License-Identifier: Apache-2.0

#include "tests/db/postgres_service.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace bobbin::test {

namespace {

constexpr std::string_view kPortKey = "port=";

std::string FirstLineOf(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

std::string MakeFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "bobbin-test-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) {
    std::cerr << "no folder for tests can be made at " << path << "\n";
    std::abort();
  }
  return path;
}

}  // namespace

const std::string& PostgresService::SharedFolder() {
  static const std::string folder = []() -> std::string {
    if (const char* const given = std::getenv("BOBBIN_TEST_POSTGRES")) return given;
    static const PostgresService own;
    return own.folder_;
  }();
  return folder;
}

const std::string& PostgresService::SharedConninfo() {
  static const std::string conninfo = FirstLineOf(SharedFile("conninfo"));
  return conninfo;
}

std::string PostgresService::SharedFile(std::string_view name) {
  return SharedFolder() + "/" + std::string(name);
}

PostgresService::PostgresService() : folder_(MakeFolder()) {
  Call("start");
  conninfo_ = FirstLineOf(folder_ + "/conninfo");
}

PostgresService::~PostgresService() {
  Call("stop");
  std::filesystem::remove_all(folder_);
}

int PostgresService::port() const { return PortOf(conninfo_); }
void PostgresService::Pause() { Call("pause"); }
void PostgresService::Kill() { Call("kill"); }
void PostgresService::Resume() { Call("resume"); }

void PostgresService::Call(std::string_view verb) const {
  std::string program = BOBBIN_POSTGRES_SERVICE;
  std::string verb_text(verb);
  std::string folder = folder_;
  char* const arguments[] = {program.data(), verb_text.data(), folder.data(), nullptr};
  pid_t child = 0;
  int status = 0;
  if (::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0 ||
      ::waitpid(child, &status, 0) != child || status != 0) {
    std::cerr << program << " " << verb << " has failed\n";
    std::abort();
  }
}

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
