// SPDX-License-Identifier: Apache-2.0
//
// Blocking: calls that hold up their OS thread go to a platform thread.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/runtime.h>

using namespace std::chrono_literals;

namespace {

// [run-blocking]
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  return bobbin::RunBlocking([&]() -> absl::StatusOr<std::string> {
    std::ifstream file(path, std::ios::binary);  // On a platform thread; the caller is parked.
    if (!file) return absl::NotFoundError("open " + path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  });
}
// [/run-blocking]

// [pool]
class Thumbnails {
 public:
  absl::StatusOr<size_t> Render(const std::string& photo) {
    return pool_.RunBlocking([&] { return RenderWithOldLibrary(photo); });
  }

 private:
  static size_t RenderWithOldLibrary(const std::string& photo);

  bobbin::PlatformPool pool_{{.name = "thumbnails", .threads = 2, .queue_max = 256}};
};
// [/pool]

size_t Thumbnails::RenderWithOldLibrary(const std::string& photo) {
  bobbin::CheckMayBlock("RenderWithOldLibrary");
  return photo.size();
}

// [request-stop]
absl::Status Scan(bobbin::PlatformPool& pool) {
  std::atomic<bool> stop{false};  // Set by the caller, read by the body.
  const auto request_stop = [&stop] { stop.store(true); };
  return pool.RunBlocking({.request_stop = request_stop}, [&]() -> absl::Status {
    while (!stop.load()) std::this_thread::sleep_for(1ms);  // One step of a long scan.
    return absl::CancelledError("scan: stopped half-way");
  });
}
// [/request-stop]

absl::Status Main() {
  BOBBIN_ASSIGN_OR_RETURN(const std::string text, ReadFile("/proc/self/status"));
  fmt::print("{} bytes\n", text.size());
  const absl::Status missing = ReadFile("/no/such/file").status();
  if (!absl::IsNotFound(missing)) return absl::InternalError("the file cannot be there");

  Thumbnails thumbnails;
  BOBBIN_ASSIGN_OR_RETURN(const size_t rendered, thumbnails.Render("a.jpg"));
  if (rendered != 5) return absl::InternalError("5 bytes");

  bobbin::PlatformPool pool({.name = "scan", .threads = 1});
  bobbin::DeadlineScope scope(20ms);
  const absl::Status stopped = Scan(pool);
  fmt::print("{}\n", stopped.ToString());
  return absl::IsCancelled(stopped) ? absl::OkStatus() : absl::InternalError("it must stop");
}

}  // namespace

int main() { return bobbin::Run(Main); }
