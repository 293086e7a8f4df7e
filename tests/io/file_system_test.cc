// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/io/file_system.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>

#include "tests/io/temporary_directory.h"
#include "tests/support/bobbin_test.h"

namespace bobbin::test {
namespace {

using io::DirectoryEntry;
using io::Existing;
using io::FileKind;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

void Fill(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

std::string Contents(const std::string& path) {
  auto text = io::ReadFile(path);
  EXPECT_OK(text);
  return text.value_or("?");
}

std::vector<std::string> NamesIn(const TemporaryDirectory& directory) {
  std::vector<std::string> names;
  auto entries = io::ListDirectory(directory.path());
  EXPECT_OK(entries);
  for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
  return names;
}

BOBBIN_TEST(FileSystemTest, ADirectoryIsListedByName) {
  const TemporaryDirectory directory;
  EXPECT_THAT(NamesIn(directory), ElementsAre());
  Fill(directory / "b", "");
  EXPECT_OK(io::MakeDirectory(directory / "a"));
  EXPECT_EQ(::symlink("b", (directory / "c").c_str()), 0);
  EXPECT_EQ(::mkfifo((directory / "d").c_str(), 0600), 0);
  auto entries = io::ListDirectory(directory.path());
  ASSERT_OK(entries);
  EXPECT_THAT(*entries, ElementsAre(DirectoryEntry{"a", FileKind::kDirectory},
                                    DirectoryEntry{"b", FileKind::kFile},
                                    DirectoryEntry{"c", FileKind::kLink},
                                    DirectoryEntry{"d", FileKind::kPipe}));
  EXPECT_EQ(io::ListDirectory(directory / "b").status().message(),
            "list " + (directory / "b") + ": not a directory");
}

BOBBIN_FOREIGN_TEST(FileSystemTest, ManyEntriesAreAllListed) {
  const TemporaryDirectory directory;
  const size_t files = static_cast<size_t>(Rounds(1000));
  for (size_t i = 0; i < files; ++i) Fill(directory / ("file-" + std::to_string(i)), "");
  EXPECT_EQ(NamesIn(directory).size(), files);
}

BOBBIN_TEST(FileSystemTest, StatFollowsLinksOrTellsOfThemselves) {
  const TemporaryDirectory directory;
  Fill(directory / "f", "12345");
  EXPECT_EQ(::symlink("f", (directory / "l").c_str()), 0);
  auto followed = io::Stat(directory / "l");
  ASSERT_OK(followed);
  EXPECT_EQ(followed->kind, FileKind::kFile);
  EXPECT_EQ(followed->size, 5);
  auto itself = io::Stat(directory / "l", io::Links::kThemselves);
  ASSERT_OK(itself);
  EXPECT_EQ(itself->kind, FileKind::kLink);
  EXPECT_EQ(io::Stat(directory / "none").status().code(), absl::StatusCode::kNotFound);
}

BOBBIN_TEST(FileSystemTest, DirectoriesComeAndGo) {
  const TemporaryDirectory directory;
  EXPECT_OK(io::MakeDirectory(directory / "d"));
  EXPECT_EQ(io::MakeDirectory(directory / "d").code(), absl::StatusCode::kAlreadyExists);
  Fill(directory / "d/f", "");
  EXPECT_EQ(io::RemoveDirectory(directory / "d").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_OK(io::RemoveFile(directory / "d/f"));
  EXPECT_EQ(io::RemoveFile(directory / "d/f").code(), absl::StatusCode::kNotFound);
  EXPECT_OK(io::RemoveDirectory(directory / "d"));
  EXPECT_THAT(NamesIn(directory), ElementsAre());
}

BOBBIN_TEST(FileSystemTest, ARenameReplacesOrKeeps) {
  const TemporaryDirectory directory;
  Fill(directory / "a", "new");
  Fill(directory / "b", "old");
  EXPECT_EQ(io::Rename(directory / "a", directory / "b", Existing::kKept).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Contents(directory / "b"), "old");
  EXPECT_OK(io::Rename(directory / "a", directory / "b"));
  EXPECT_EQ(Contents(directory / "b"), "new");
  EXPECT_OK(io::Rename(directory / "b", directory / "c", Existing::kKept));
  EXPECT_THAT(NamesIn(directory), ElementsAre("c"));
}

BOBBIN_TEST(FileSystemTest, ACopyHasContentsAndPermissions) {
  const TemporaryDirectory directory;
  const std::string text(3'000'000, 'x');
  Fill(directory / "from", text);
  EXPECT_EQ(::chmod((directory / "from").c_str(), 0751), 0);
  EXPECT_OK(io::CopyFile(directory / "from", directory / "to"));
  EXPECT_EQ(Contents(directory / "to"), text);
  EXPECT_EQ(io::Stat(directory / "to")->permissions, 0751);

  Fill(directory / "other", "old");
  EXPECT_EQ(io::CopyFile(directory / "from", directory / "other", Existing::kKept).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Contents(directory / "other"), "old");
  EXPECT_OK(io::CopyFile(directory / "from", directory / "new", Existing::kKept));
  EXPECT_OK(io::CopyFile(directory / "from", directory / "other"));
  EXPECT_EQ(Contents(directory / "other"), text);
  EXPECT_THAT(NamesIn(directory), ElementsAre("from", "new", "other", "to"));
}

BOBBIN_TEST(FileSystemTest, FilesThatTheKernelMakesUpAreCopied) {
  const TemporaryDirectory directory;
  EXPECT_OK(io::CopyFile("/proc/version", directory / "version"));
  EXPECT_THAT(Contents(directory / "version"), HasSubstr("Linux"));
  EXPECT_EQ(Contents(directory / "version"), Contents("/proc/version"));
}

BOBBIN_TEST(FileSystemTest, ACopyThatFailsLeavesNothing) {
  const TemporaryDirectory directory;
  EXPECT_OK(io::MakeDirectory(directory / "d"));
  Fill(directory / "f", "x");
  EXPECT_FALSE(io::CopyFile(directory / "d", directory / "g").ok());
  EXPECT_FALSE(io::CopyFile(directory / "f", directory / "d").ok());
  EXPECT_FALSE(io::CopyFile(directory / "none", directory / "g").ok());
  const absl::Status status = io::CopyFile(directory / "f", directory / "none/g");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(NamesIn(directory), ElementsAre("d", "f"));
}

BOBBIN_TEST(FileSystemTest, ACopyThatIsEndedLeavesWhatWasThere) {
  const TemporaryDirectory directory;
  EXPECT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  // Opened both ways, it does not wait for anybody, and never ends.
  const int both = ::open((directory / "pipe").c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(::write(both, "x", 1), 1);
  Fill(directory / "to", "old");
  {
    const DeadlineScope scope(milliseconds(20));
    EXPECT_EQ(io::CopyFile(directory / "pipe", directory / "to").code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  ::close(both);
  EXPECT_EQ(Contents(directory / "to"), "old");
  EXPECT_THAT(NamesIn(directory), ElementsAre("pipe", "to"));
}

BOBBIN_TEST(FileSystemTest, AFileIsReadUpToABound) {
  const TemporaryDirectory directory;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{2'500'000}}) {
    const std::string text(bytes, 'x');
    Fill(directory / "f", text);
    EXPECT_EQ(Contents(directory / "f"), text);
    EXPECT_EQ(io::ReadFile(directory / "f", bytes).value_or("?"), text);
    if (bytes == 0) continue;
    const absl::Status status = io::ReadFile(directory / "f", bytes - 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()), HasSubstr("longer than"));
  }
  EXPECT_GT(Contents("/proc/self/maps").size(), 4096) << "it has no size before it is read";
}

BOBBIN_TEST(FileSystemTest, AReplacementKeepsPermissions) {
  const TemporaryDirectory directory;
  EXPECT_OK(io::ReplaceFile(directory / "f", "one", 0600));
  EXPECT_EQ(io::Stat(directory / "f")->permissions, 0600);
  EXPECT_EQ(::chmod((directory / "f").c_str(), 0640), 0);
  EXPECT_OK(io::ReplaceFile(directory / "f", "two", 0600));
  EXPECT_EQ(io::Stat(directory / "f")->permissions, 0640);
  EXPECT_EQ(Contents(directory / "f"), "two");
  EXPECT_OK(io::MakeDirectory(directory / "d"));
  EXPECT_FALSE(io::ReplaceFile(directory / "d", "x").ok());
  EXPECT_THAT(NamesIn(directory), ElementsAre("d", "f"));
}

BOBBIN_TEST(FileSystemTest, WhoeverLooksFindsTheOldContentsOrTheNew) {
  const TemporaryDirectory directory;
  const std::string path = directory / "f";
  const std::string versions[] = {std::string(100'000, 'a'), std::string(50'000, 'b')};
  EXPECT_OK(io::ReplaceFile(path, versions[0]));
  std::atomic<bool> is_over{false};
  VirtualThread writer = Spawn([&]() -> absl::Status {
    for (int i = 1; !is_over; ++i) BOBBIN_RETURN_IF_ERROR(io::ReplaceFile(path, versions[i % 2]));
    return absl::OkStatus();
  });
  for (int i = 0; i < Rounds(40); ++i) {
    const std::string found = Contents(path);
    ASSERT_TRUE(found == versions[0] || found == versions[1]) << found.size();
  }
  is_over = true;
  EXPECT_OK(writer.Join());
  EXPECT_THAT(NamesIn(directory), ElementsAre("f"));
}

// The request comes at every instant: what the answer says is what is there.
BOBBIN_TEST(FileSystemTest, AReplacementThatIsEndedHasNotHappened) {
  const TemporaryDirectory directory;
  const std::string path = directory / "f";
  std::string present(1'000'000, '.');
  EXPECT_OK(io::ReplaceFile(path, present));
  int ended = 0;
  for (int i = 0; i < Rounds(100); ++i) {
    const std::string next(1'000'000, static_cast<char>('a' + i % 26));
    VirtualThread replacing = Spawn([&] { return io::ReplaceFile(path, next); });
    const uint64_t instant = i % 4 == 0 ? 0 : random().Below(50'000);
    for (uint64_t turns = 0; turns < instant; ++turns) Yield();
    replacing.Cancel();
    const absl::Status status = replacing.Join();
    if (status.ok()) present = next;
    if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
      ++ended;
    }
    ASSERT_TRUE(Contents(path) == present) << status;
  }
  EXPECT_GT(ended, 0);
  EXPECT_THAT(NamesIn(directory), ElementsAre("f"));
}

BOBBIN_TEST(FileSystemTest, ANameWithAZeroByteIsRefused) {
  const TemporaryDirectory directory;
  Fill(directory / "a", "x");
  const std::string name = directory / std::string_view("a\0b", 3);
  const auto is_refused = [](const absl::Status& status) {
    return status.code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(is_refused(io::RemoveFile(name)));
  EXPECT_TRUE(is_refused(io::Rename(directory / "a", name)));
  EXPECT_TRUE(is_refused(io::CopyFile(directory / "a", name)));
  EXPECT_TRUE(is_refused(io::ReplaceFile(name, "y")));
  EXPECT_TRUE(is_refused(io::ReadFile(name).status()));
  EXPECT_EQ(Contents(directory / "a"), "x");
}

}  // namespace
}  // namespace bobbin::test
