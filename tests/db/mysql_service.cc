// SPDX-License-Identifier: Apache-2.0

#include "tests/db/mysql_service.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace bobbin::test {

namespace {

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

db::MySqlServer ServerOf(const std::string& folder) {
  const auto server = db::MySqlServer::Parse(FirstLineOf(folder + "/conninfo"));
  if (!server.ok()) {
    std::cerr << "there is no address of a server in " << folder << "\n";
    std::abort();
  }
  return *server;
}

const std::string& SharedFolder() {
  static const std::string folder = [] {
    if (const char* const shared = std::getenv("BOBBIN_TEST_MYSQL")) return std::string(shared);
    return std::string();
  }();
  return folder;
}

}  // namespace

const db::MySqlServer& MySqlService::Shared() {
  static const db::MySqlServer server = [] {
    if (!SharedFolder().empty()) return ServerOf(SharedFolder());
    static const MySqlService own;
    return own.server();
  }();
  return server;
}

MySqlService::MySqlService() : folder_(MakeFolder()) {
  Call("start");
  server_ = ServerOf(folder_);
}

MySqlService::~MySqlService() {
  Call("stop");
  std::filesystem::remove_all(folder_);
}

void MySqlService::Pause() { Call("pause"); }
void MySqlService::Kill() { Call("kill"); }
void MySqlService::Resume() { Call("resume"); }

void MySqlService::Call(std::string_view verb) const {
  std::string program = BOBBIN_MYSQL_SERVICE;
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

}  // namespace bobbin::test
