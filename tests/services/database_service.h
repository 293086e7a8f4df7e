// SPDX-License-Identifier: Apache-2.0
//
// DatabaseService: a server that a test starts in a folder of its own, and may end and start again,
// by a script that knows which server it is: SCRIPT start|pause|kill|resume|stop FOLDER. The script
// leaves the server's address in the folder's file `conninfo`.
//
//   Called from   any thread.
//   Suspends      never; each call blocks the OS thread until the script has ended.
//   Errors        A script that fails ends the process.

#ifndef BOBBIN_TESTS_SERVICES_DATABASE_SERVICE_H_
#define BOBBIN_TESTS_SERVICES_DATABASE_SERVICE_H_

#include <string>
#include <string_view>

namespace bobbin::test {

class DatabaseService {
 public:
  // Starts a server.
  explicit DatabaseService(std::string script);
  DatabaseService(const DatabaseService&) = delete;
  DatabaseService& operator=(const DatabaseService&) = delete;
  ~DatabaseService();

  void Pause();   // Ends the server.
  void Kill();    // Ends it as a crash would.
  void Resume();  // Starts it again.

  const std::string& folder() const { return folder_; }
  // The address that the script has left in a folder.
  static std::string AddressIn(const std::string& folder);

 private:
  void Call(std::string_view verb) const;

  const std::string script_;
  const std::string folder_;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_SERVICES_DATABASE_SERVICE_H_
