// SPDX-License-Identifier: Apache-2.0

#include "tests/services/database_service.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <utility>

namespace bobbin::test {

namespace {

std::string MakeFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "bobbin-test-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) {
    std::cerr << "no folder for tests can be made at " << path << "\n";
    std::abort();
  }
  return path;
}

}  // namespace

DatabaseService::DatabaseService(std::string script)
    : script_(std::move(script)), folder_(MakeFolder()) {
  Call("start");
}

DatabaseService::~DatabaseService() {
  Call("stop");
  std::filesystem::remove_all(folder_);
}

void DatabaseService::Pause() { Call("pause"); }
void DatabaseService::Kill() { Call("kill"); }
void DatabaseService::Resume() { Call("resume"); }

std::string DatabaseService::AddressIn(const std::string& folder) {
  std::string line;
  std::getline(std::ifstream(folder + "/conninfo"), line);
  return line;
}

void DatabaseService::Call(std::string_view verb) const {
  std::string program = script_;
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
