// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/io/file.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/temporary_directory.h"
#include "tests/support/bobbin_test.h"
#include "tests/support/thread_probe.h"

namespace bobbin::test {
namespace {

using io::File;
using io::FileAccess;
using io::FileCreation;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::HasSubstr;

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }
std::span<std::byte> RoomIn(std::string& text) { return std::as_writable_bytes(std::span(text)); }

// A text that repeats itself only after a prime number of bytes.
std::string Pattern(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + i % 23);
  return text;
}

File OpenNew(const std::string& path, FileAccess access = FileAccess::kReadWrite) {
  auto file = File::Open(path, {.access = access, .creation = FileCreation::kIfMissing});
  EXPECT_OK(file);
  return *std::move(file);
}

std::string ReadBack(File& file, size_t bytes, uint64_t offset = 0) {
  std::string text(bytes, '?');
  auto got = file.ReadAt(RoomIn(text), offset);
  EXPECT_OK(got);
  text.resize(got.value_or(0));
  return text;
}

// The two ends of a pipe, as files.
struct PipeFiles {
  PipeFiles() {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    reader = File::Adopt(fds[0], "pipe");
    writer = File::Adopt(fds[1], "pipe");
    reader_fd = fds[0];
  }
  int Unread() const {
    int bytes = 0;
    EXPECT_EQ(::ioctl(reader_fd, FIONREAD, &bytes), 0);
    return bytes;
  }
  File reader;
  File writer;
  int reader_fd;
};

// Keeps every platform thread of files busy until it is told to let go.
class BusyLane {
 public:
  BusyLane() {
    for (size_t i = 0; i < PlatformPoolOptions{}.threads; ++i) {
      group_.Spawn([this] {
        return RunBlocking([this] {
          busy_.fetch_add(1);
          return go_.Wait();
        });
      });
    }
    AwaitTrue([this] { return busy_.load() == PlatformPoolOptions{}.threads; });
  }
  void LetGo() {
    go_.Set();
    EXPECT_OK(group_.Wait());
  }

 private:
  Event go_;
  std::atomic<size_t> busy_{0};  // Counted by the bodies.
  TaskGroup group_;
};

BOBBIN_TEST(FileTest, ReadsWhatWasWritten) {
  const TemporaryDirectory directory;
  for (const size_t bytes : {size_t{0}, size_t{1}, File::kInlineBytesMax - 1, File::kInlineBytesMax,
                             File::kInlineBytesMax + 1, size_t{3} << 20}) {
    File file = OpenNew(directory / std::to_string(bytes));
    const std::string text = Pattern(bytes);
    EXPECT_OK(file.WriteAt(BytesOf(text), 0));
    EXPECT_EQ(ReadBack(file, bytes), text);
    EXPECT_EQ(ReadBack(file, bytes + 100), text) << "a read ends where the file ends";
    EXPECT_EQ(ReadBack(file, 10, bytes), "");
    if (bytes > 5) {
      EXPECT_EQ(ReadBack(file, bytes, 5), text.substr(5));
    }
    EXPECT_OK(file.Close());
  }
}

BOBBIN_FOREIGN_TEST(FileTest, ThreadsThatMayBlockUseItThemselves) {
  const TemporaryDirectory directory;
  File file = OpenNew(directory / "f");
  EXPECT_OK(file.WriteAt(BytesOf("hello"), 0));
  EXPECT_EQ(ReadBack(file, 5), "hello");
  EXPECT_OK(file.Sync());
  EXPECT_OK(file.Close());
  EXPECT_EQ(runtime().Statistics().blocking.threads_peak, 0);
}

BOBBIN_TEST(FileTest, PartsAreOneAfterAnother) {
  const TemporaryDirectory directory;
  File file = OpenNew(directory / "f");
  // More than one system call takes, some of them empty.
  const std::string text = Pattern(40'000);
  std::vector<std::span<const std::byte>> parts;
  for (size_t at = 0, i = 0; at < text.size(); ++i) {
    const size_t bytes = std::min(i * 7 % 400, text.size() - at);
    parts.push_back(BytesOf(text).subspan(at, bytes));
    at += bytes;
  }
  ASSERT_GT(parts.size(), 130);
  EXPECT_OK(file.WriteAt(parts, 3));
  EXPECT_EQ(ReadBack(file, text.size() + 3), std::string(3, '\0') + text);

  std::string again(text.size() + 50, '?');
  std::vector<std::span<std::byte>> buffers;
  for (size_t at = 0, i = 0; at < again.size(); ++i) {
    const size_t bytes = std::min(i * 11 % 500, again.size() - at);
    buffers.push_back(RoomIn(again).subspan(at, bytes));
    at += bytes;
  }
  auto got = file.ReadAt(buffers, 3);
  ASSERT_OK(got);
  EXPECT_EQ(*got, text.size());
  EXPECT_EQ(again, text + std::string(50, '?'));
}

BOBBIN_TEST(FileTest, ASmallReadFromMemoryIsDoneOnTheSpot) {
  const TemporaryDirectory directory;
  File file = OpenNew(directory / "f");
  const std::string text = Pattern(File::kInlineBytesMax);
  EXPECT_OK(file.WriteAt(BytesOf(text), 0));
  {
    const int fd = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    char byte;
    const iovec vector = {&byte, 1};
    const bool can_it = ::preadv2(fd, &vector, 1, 0, RWF_NOWAIT) == 1;
    const int error = can_it ? 0 : errno;
    ::close(fd);
    if (!can_it) GTEST_SKIP() << "this file system reads nothing on the spot: errno " << error;
  }
  BusyLane busy;
  EXPECT_EQ(ReadBack(file, text.size()), text);
  EXPECT_EQ(ReadBack(file, 100, text.size()), "");
  std::string first(10, '?');
  auto got = file.Read(RoomIn(first));
  EXPECT_OK(got);
  EXPECT_EQ(first, text.substr(0, 10));
  busy.LetGo();
}

BOBBIN_TEST(FileTest, SyncDoesNotWaitBehindReads) {
  const TemporaryDirectory directory;
  File file = OpenNew(directory / "f");
  EXPECT_OK(file.WriteAt(BytesOf("x"), 0));
  BusyLane busy;
  EXPECT_OK(file.Sync());
  EXPECT_OK(file.Sync(io::SyncScope::kEverything));
  EXPECT_GE(runtime().Statistics().syncing.completed, 2);
  busy.LetGo();
}

BOBBIN_TEST(FileTest, WhatFailsNamesTheFileAndTheCause) {
  const TemporaryDirectory directory;
  const std::string missing = directory / "missing";
  const absl::Status status = File::Open(missing).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "open " + missing + ": no such file or directory");

  File file = OpenNew(directory / "f", FileAccess::kWrite);
  std::string room(3, '?');
  EXPECT_THAT(std::string(file.ReadAt(RoomIn(room), 0).status().message()),
              HasSubstr("read " + file.path() + ": "));
}

BOBBIN_TEST(FileTest, ANameWithAZeroByteIsRefused) {
  const TemporaryDirectory directory;
  const std::string name = directory / std::string_view("a\0b", 3);
  const absl::Status status =
      File::Open(name, {.access = FileAccess::kWrite, .creation = FileCreation::kIfMissing})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a\\000b"));
  EXPECT_NE(::access((directory / "a").c_str(), F_OK), 0);
}

BOBBIN_TEST(FileTest, CreationDecidesWhatBecomesOfAFileThatIsThere) {
  const TemporaryDirectory directory;
  const std::string path = directory / "f";
  const auto open = [&](FileCreation creation) {
    return File::Open(path, {.access = FileAccess::kReadWrite, .creation = creation});
  };
  EXPECT_EQ(open(FileCreation::kNever).status().code(), absl::StatusCode::kNotFound);
  auto made = open(FileCreation::kMustBeNew);
  ASSERT_OK(made);
  EXPECT_OK(made->WriteAt(BytesOf("old"), 0));
  EXPECT_EQ(open(FileCreation::kMustBeNew).status().code(), absl::StatusCode::kAlreadyExists);
  auto kept = open(FileCreation::kIfMissing);
  ASSERT_OK(kept);
  EXPECT_EQ(ReadBack(*kept, 10), "old");
  auto emptied = open(FileCreation::kEmptied);
  ASSERT_OK(emptied);
  EXPECT_EQ(ReadBack(*emptied, 10), "");
}

BOBBIN_TEST(FileTest, StatTellsWhatItIs) {
  const TemporaryDirectory directory;
  const mode_t mask = ::umask(022);
  auto file = File::Open(directory / "f", {.access = FileAccess::kWrite,
                                           .creation = FileCreation::kMustBeNew,
                                           .permissions = 0666});
  ::umask(mask);
  ASSERT_OK(file);
  EXPECT_OK(file->WriteAt(BytesOf("12345"), 0));
  auto stat = file->Stat();
  ASSERT_OK(stat);
  EXPECT_EQ(stat->kind, io::FileKind::kFile);
  EXPECT_EQ(stat->size, 5);
  EXPECT_EQ(stat->permissions, 0644);
  EXPECT_EQ(stat->links, 1);
  EXPECT_EQ(stat->user, ::geteuid());
  struct stat expected {};
  ASSERT_EQ(::stat(file->path().c_str(), &expected), 0);
  EXPECT_EQ(stat->inode, expected.st_ino);
  EXPECT_EQ(absl::ToTimespec(stat->modified).tv_sec, expected.st_mtim.tv_sec);
  EXPECT_EQ(absl::ToTimespec(stat->modified).tv_nsec, expected.st_mtim.tv_nsec);
  EXPECT_OK(file->Resize(2));
  EXPECT_EQ(file->Stat()->size, 2);
}

BOBBIN_TEST(FileTest, EachAppendIsOnePiece) {
  const TemporaryDirectory directory;
  constexpr size_t kLineBytes = 1000;
  const int writers = 8;
  const int lines = Rounds(100);
  TaskGroup group;
  for (int i = 0; i < writers; ++i) {
    group.Spawn([&, i]() -> absl::Status {
      File file = OpenNew(directory / "log", FileAccess::kAppend);
      const std::string line = std::string(kLineBytes - 1, static_cast<char>('a' + i)) + "\n";
      for (int n = 0; n < lines; ++n) BOBBIN_RETURN_IF_ERROR(file.Write(BytesOf(line)));
      return file.Close();
    });
  }
  EXPECT_OK(group.Wait());
  File file = OpenNew(directory / "log");
  const size_t bytes = kLineBytes * static_cast<size_t>(writers) * static_cast<size_t>(lines);
  const std::string log = ReadBack(file, bytes + 1);
  ASSERT_EQ(log.size(), bytes);
  for (size_t at = 0; at < bytes; at += kLineBytes) {
    const std::string line = log.substr(at, kLineBytes);
    ASSERT_EQ(line, std::string(kLineBytes - 1, line[0]) + "\n");
  }
}

BOBBIN_TEST(FileTest, ATemporaryFileHasNoName) {
  const TemporaryDirectory directory;
  auto file = File::OpenTemporary(directory.path());
  ASSERT_OK(file);
  EXPECT_OK(file->WriteAt(BytesOf("secret"), 0));
  EXPECT_EQ(ReadBack(*file, 6), "secret");
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  EXPECT_EQ(File::OpenTemporary(directory / "missing").status().code(),
            absl::StatusCode::kNotFound);
}

// --- What is slow.

BOBBIN_TEST(FileTest, ACarrierGoesOnWhileAFileIsSlow) {
  const TemporaryDirectory directory;
  const std::string path = directory / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  ThreadProbe probe;
  std::atomic<bool> has_read{false};
  // As many as there are carriers and more: all of them wait in the kernel, for the opening of a
  // pipe that nobody else opens.
  TaskGroup group;
  for (int i = 0; i < 3; ++i) {
    group.Spawn([&, i]() -> absl::Status {
      if (i == 0) probe.Attach();
      BOBBIN_ASSIGN_OR_RETURN(File file, File::Open(path));
      std::string text(1, '?');
      BOBBIN_ASSIGN_OR_RETURN(const size_t got, file.Read(RoomIn(text)));
      has_read = true;
      return got == 1 ? absl::OkStatus() : absl::InternalError("no byte");
    });
  }
  probe.AwaitParked();
  for (int i = 0; i < 50; ++i) EXPECT_OK(SleepFor(milliseconds(1)));
  EXPECT_FALSE(has_read.load());
  auto writer = File::Open(path, {.access = FileAccess::kWrite});
  ASSERT_OK(writer);
  EXPECT_OK(writer->Write(BytesOf("abc")));
  EXPECT_OK(group.Wait());
}

BOBBIN_TEST(FileTest, OpeningANamedPipeEndsWhenItIsToStop) {
  const TemporaryDirectory directory;
  const std::string path = directory / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  {
    const DeadlineScope scope(milliseconds(5));
    EXPECT_EQ(File::Open(path).status().code(), absl::StatusCode::kDeadlineExceeded);
  }
  ThreadProbe probe;
  VirtualThread opener = Spawn([&] {
    probe.Attach();
    return File::Open(path).status();
  });
  probe.AwaitParked();
  opener.Cancel();
  EXPECT_EQ(opener.Join().code(), absl::StatusCode::kCancelled);
}

// A reader whose deadline passes at every instant of a read: what it got is what is gone.
BOBBIN_TEST(FileTest, AByteIsEitherReturnedOrStillThere) {
  PipeFiles pipe;
  std::atomic<bool> is_over{false};
  int put = 0;
  VirtualThread writer = Spawn([&, random = random().Fork()]() mutable -> absl::Status {
    while (!is_over) {
      BOBBIN_RETURN_IF_ERROR(pipe.writer.Write(BytesOf("x")));
      ++put;
      BOBBIN_RETURN_IF_ERROR(SleepFor(microseconds(random.Below(300))));
    }
    return absl::OkStatus();
  });
  size_t got = 0;
  int expired = 0;
  for (int i = 0; i < Rounds(2000); ++i) {
    // Larger than what is read on the spot.
    std::string room(File::kInlineBytesMax + 1, '?');
    const DeadlineScope scope(microseconds(random().Below(200)));
    auto read = pipe.reader.Read(RoomIn(room));
    if (read.ok()) {
      got += *read;
      EXPECT_EQ(room.substr(0, *read), std::string(*read, 'x'));
    } else {
      EXPECT_EQ(read.status().code(), absl::StatusCode::kDeadlineExceeded);
      ++expired;
      EXPECT_EQ(room, std::string(room.size(), '?'));
    }
  }
  is_over = true;
  EXPECT_OK(writer.Join());
  EXPECT_EQ(got + static_cast<size_t>(pipe.Unread()), static_cast<size_t>(put));
  EXPECT_GT(expired, 0);
}

BOBBIN_TEST(FileTest, WhatWaitsForAThreadIsTakenBack) {
  const TemporaryDirectory directory;
  File file = OpenNew(directory / "f");
  BusyLane busy;
  {
    const DeadlineScope scope(milliseconds(5));
    EXPECT_EQ(file.WriteAt(BytesOf("late"), 0).code(), absl::StatusCode::kDeadlineExceeded);
  }
  busy.LetGo();
  EXPECT_EQ(file.Stat()->size, 0);
}

BOBBIN_TEST(FileTest, ManyMayWaitForAThread) {
  const TemporaryDirectory directory;
  File file = OpenNew(directory / "f");
  EXPECT_OK(file.WriteAt(BytesOf(Pattern(File::kInlineBytesMax + 1)), 0));
  // More than the queue of a pool is bounded to.
  const int readers = 2 * static_cast<int>(PlatformPoolOptions{}.queue_max);
  TaskGroup group;
  BusyLane busy;
  for (int i = 0; i < readers; ++i) group.Spawn([&] { return file.Stat().status(); });
  AwaitTrue([&] {
    return runtime().Statistics().blocking.queued == static_cast<size_t>(readers);
  });
  busy.LetGo();
  EXPECT_OK(group.Wait());
}

BOBBIN_TEST(FileTest, AFileIsClosedAlsoByAThreadThatIsToStop) {
  const TemporaryDirectory directory;
  VirtualThread thread = Spawn([&] {
    File file = OpenNew(directory / "f");
    File other = OpenNew(directory / "g");
    const DeadlineScope over(Deadline::After(milliseconds(0)));
    EXPECT_FALSE(CheckStop().ok());
    EXPECT_OK(file.Close());
  });
  EXPECT_OK(thread.Join());  // Descriptors that stay open fail the test.
}

// --- Bugs.

TEST(FileDeathTest, AFileThatIsClosedUnderItsUserAborts) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        Runtime runtime({.carriers = 1});
        PipeFiles pipe;
        ThreadProbe probe;
        VirtualThread reader = runtime.Spawn([&] {
          probe.Attach();
          std::string text(1, '?');
          return pipe.reader.Read(RoomIn(text)).status();
        });
        probe.AwaitParked();
        static_cast<void>(pipe.reader.Close());
      },
      "closed while it is used");
}

TEST(FileDeathTest, AFileThatHoldsNothingAborts) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(static_cast<void>(File().Sync()), "this File holds no file");
}

}  // namespace
}  // namespace bobbin::test
