// SPDX-License-Identifier: Apache-2.0
//
// SlowVfs: while it is there, SQLite's files are written by way of it: a disk that can stall, and
// that knows who has used it.
//
//   Called from   any thread; one SlowVfs at a time, made while no database is open.
//   Suspends      never; whoever writes while it is stalled blocks his OS thread.

#ifndef BOBBIN_TESTS_DB_SLOW_VFS_H_
#define BOBBIN_TESTS_DB_SLOW_VFS_H_

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "gtest/gtest.h"
#include <sqlite3.h>

#include <bobbin/core/role.h>

namespace bobbin::test {

class SlowVfs {
 public:
  SlowVfs() : base_(*sqlite3_vfs_find(nullptr)) {
    current_ = this;
    vfs_ = base_;
    vfs_.zName = "slow";
    vfs_.pNext = nullptr;
    vfs_.xOpen = &Open;
    EXPECT_EQ(sqlite3_vfs_register(&vfs_, 1), SQLITE_OK);
  }
  SlowVfs(const SlowVfs&) = delete;
  SlowVfs& operator=(const SlowVfs&) = delete;
  ~SlowVfs() {
    Go();
    sqlite3_vfs_unregister(&vfs_);
    current_ = nullptr;
  }

  // From now on whoever writes waits for Go.
  void Stall() { is_stalled_ = true; }
  void Go() { is_stalled_ = false; }
  // How many OS threads wait in a write.
  int stalled() const { return stalled_; }
  // A bit for each role whose thread has written.
  uint32_t roles() const { return roles_; }

 private:
  static int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
    const int code = current_->base_.xOpen(&current_->base_, name, file, flags, out);
    if (code != SQLITE_OK || file->pMethods == nullptr) return code;
    file->pMethods = current_->Slowed(file->pMethods);
    return code;
  }

  // The same methods, but for those that write. Files that are locked have others than those that
  // are not.
  const sqlite3_io_methods* Slowed(const sqlite3_io_methods* methods) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& slowed = slowed_[methods];
    if (slowed != nullptr) return slowed.get();
    slowed = std::make_unique<sqlite3_io_methods>(*methods);
    write_ = methods->xWrite;
    sync_ = methods->xSync;
    slowed->xWrite = [](sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
      current_->Touch();
      return current_->write_.load()(file, bytes, size, at);
    };
    slowed->xSync = [](sqlite3_file* file, int how) {
      current_->Touch();
      return current_->sync_.load()(file, how);
    };
    return slowed.get();
  }

  void Touch() {
    roles_ |= 1U << static_cast<uint32_t>(CurrentRole());
    ++stalled_;
    while (is_stalled_) usleep(100);
    --stalled_;
  }

  inline static SlowVfs* current_ = nullptr;

  sqlite3_vfs& base_;
  sqlite3_vfs vfs_ = {};
  std::mutex mutex_;  // Of `slowed_`.
  std::map<const sqlite3_io_methods*, std::unique_ptr<sqlite3_io_methods>> slowed_;
  // The same for all kinds.
  std::atomic<decltype(sqlite3_io_methods::xWrite)> write_{nullptr};
  std::atomic<decltype(sqlite3_io_methods::xSync)> sync_{nullptr};
  std::atomic<bool> is_stalled_{false};
  std::atomic<int> stalled_{0};
  std::atomic<uint32_t> roles_{0};
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_DB_SLOW_VFS_H_
