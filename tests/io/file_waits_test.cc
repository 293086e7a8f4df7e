// SPDX-License-Identifier: Apache-2.0
//
// The waits for files, one by one, as docs/waits.md lists them.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include <bobbin/core/event.h>
#include <bobbin/io/file.h>
#include <bobbin/io/file_system.h>
#include <bobbin/sched/internal/blocking_call.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/runtime.h>

#include "tests/io/busy_lane.h"
#include "tests/io/temporary_directory.h"
#include "tests/support/bobbin_test.h"
#include "tests/support/thread_probe.h"
#include "tests/support/wait_walk.h"

namespace bobbin::test {
namespace {

using internal::BlockingLane;
using io::File;
using io::FileAccess;
using io::FileCreation;

struct Scene {
  Scene() {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_GE(fd, 0);
    EXPECT_EQ(::ftruncate(fd, 10), 0);
    EXPECT_EQ(::mkdir((directory / "d").c_str(), 0700), 0);
    file = File::Adopt(fd, path);
  }
  TemporaryDirectory directory;
  const std::string path = directory / "f";
  std::optional<File> file;
  std::optional<BusyLane> busy;
  // Larger than what is read on the spot.
  std::vector<std::byte> buffer{File::kInlineBytesMax + 1};
};

template <typename Call>
std::function<WaitStage(Runtime&)> WhileBusy(BlockingLane lane, Call call) {
  return [lane, call](Runtime& runtime) -> WaitStage {
    auto scene = std::make_shared<Scene>();
    scene->busy.emplace(runtime, lane);
    return {.wait = [scene, call] { return call(*scene); },
            .satisfy = [scene] { scene->busy->LetGo(); },
            .waiters = Waiters::kVirtual};
  };
}
template <typename Call>
std::function<WaitStage(Runtime&)> WhileBusy(Call call) {
  return WhileBusy(BlockingLane::kGeneral, call);
}

// A named pipe, which somebody opens at last.
WaitStage OpeningAPipe(Runtime&) {
  struct Named {
    Named() { EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0); }
    ~Named() { ::close(other); }
    TemporaryDirectory directory;
    const std::string path = directory / "pipe";
    int other = -1;
  };
  auto named = std::make_shared<Named>();
  return {.wait = [named] { return File::Open(named->path).status(); },
          .satisfy = [named] { named->other = ::open(named->path.c_str(), O_RDWR | O_CLOEXEC); },
          .waiters = Waiters::kVirtual};
}

// A pipe; the test has the other end.
struct Pipe {
  explicit Pipe(bool reads) {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    file = File::Adopt(fds[reads ? 0 : 1], "pipe");
    other = fds[reads ? 1 : 0];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() { ::close(other); }
  File file;
  int other;
};

WaitStage ReadingAPipe(Runtime&) {
  auto pipe = std::make_shared<Pipe>(true);
  return {.wait =
              [pipe] {
                std::array<std::byte, 1> byte;
                return pipe->file.Read(byte).status();
              },
          .satisfy = [pipe] { EXPECT_EQ(::write(pipe->other, "x", 1), 1); },
          .waiters = Waiters::kVirtual};
}

WaitStage WritingAPipe(Runtime&) {
  auto pipe = std::make_shared<Pipe>(false);
  EXPECT_EQ(::fcntl(pipe->other, F_SETPIPE_SZ, 4096), 4096);
  const std::vector<std::byte> page(4096);
  EXPECT_OK(pipe->file.Write(page));
  return {.wait = [pipe] { return pipe->file.Write(std::array<std::byte, 1>()); },
          .satisfy =
              [pipe] {
                std::array<std::byte, 4096> room;
                EXPECT_EQ(::read(pipe->other, room.data(), room.size()), 4096);
              },
          .waiters = Waiters::kVirtual};
}

// From a named pipe that somebody holds open.
WaitStage Copying(Runtime&) {
  struct Held {
    Held() {
      EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
      holder = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
      EXPECT_EQ(::write(holder, "x", 1), 1);
    }
    bool IsEmpty() const {
      int bytes = 0;
      EXPECT_EQ(::ioctl(holder, FIONREAD, &bytes), 0);
      return bytes == 0;
    }
    TemporaryDirectory directory;
    const std::string path = directory / "pipe";
    int holder = -1;
  };
  auto held = std::make_shared<Held>();
  return {.wait = [held] { return io::CopyFile(held->path, held->directory / "copy"); },
          .satisfy = [held] { ::close(held->holder); },
          .waiters = Waiters::kVirtual,
          .again = Again::kIsNotDone,
          .has_begun = [held] { return held->IsEmpty(); }};
}

const WaitStages& Stages() {
  static const WaitStages stages = {
      {"File::Open", WhileBusy([](Scene& scene) { return File::Open(scene.path).status(); })},
      {"File::Open, running", OpeningAPipe},
      {"File::OpenTemporary", WhileBusy([](Scene& scene) {
         return File::OpenTemporary(scene.directory.path()).status();
       })},
      {"File::ReadAt",
       WhileBusy([](Scene& scene) { return scene.file->ReadAt(scene.buffer, 0).status(); })},
      {"File::WriteAt",
       WhileBusy([](Scene& scene) { return scene.file->WriteAt(scene.buffer, 0); })},
      {"File::Read",
       WhileBusy([](Scene& scene) { return scene.file->Read(scene.buffer).status(); })},
      {"File::Read, running", ReadingAPipe},
      {"File::Write", WhileBusy([](Scene& scene) { return scene.file->Write(scene.buffer); })},
      {"File::Write, running", WritingAPipe},
      {"File::Sync",
       WhileBusy(BlockingLane::kSync, [](Scene& scene) { return scene.file->Sync(); })},
      {"File::Stat", WhileBusy([](Scene& scene) { return scene.file->Stat().status(); })},
      {"File::Resize", WhileBusy([](Scene& scene) { return scene.file->Resize(5); })},
      {"File::Close", WhileBusy([](Scene& scene) { return scene.file->Close(); })},
      {"File::~File", WhileBusy([](Scene& scene) {
         scene.file.reset();
         return absl::OkStatus();
       })},
      {"Stat", WhileBusy([](Scene& scene) { return io::Stat(scene.path).status(); })},
      {"ListDirectory", WhileBusy([](Scene& scene) {
         return io::ListDirectory(scene.directory.path()).status();
       })},
      {"MakeDirectory",
       WhileBusy([](Scene& scene) { return io::MakeDirectory(scene.directory / "new"); })},
      {"RemoveDirectory",
       WhileBusy([](Scene& scene) { return io::RemoveDirectory(scene.directory / "d"); })},
      {"RemoveFile", WhileBusy([](Scene& scene) { return io::RemoveFile(scene.path); })},
      {"Rename",
       WhileBusy([](Scene& scene) { return io::Rename(scene.path, scene.directory / "g"); })},
      {"CopyFile",
       WhileBusy([](Scene& scene) { return io::CopyFile(scene.path, scene.directory / "g"); })},
      {"CopyFile, running", Copying},
      {"ReadFile", WhileBusy([](Scene& scene) { return io::ReadFile(scene.path).status(); })},
      {"ReplaceFile", WhileBusy(BlockingLane::kSync,
                                [](Scene& scene) { return io::ReplaceFile(scene.path, "new"); })},
  };
  return stages;
}

BOBBIN_FOREIGN_TEST(FileWaitsTest, EachWaitAnswersAsTheTableSays) {
  WalkWaits("files", Stages(), runtime());
}

}  // namespace
}  // namespace bobbin::test
