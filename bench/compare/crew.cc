// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/crew.h"

#include <pthread.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

#include <bobbin/core/mutex.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/spawn.h>

#include "bench/compare/memory_reserve.h"

namespace bobbin::compare {
namespace {

// Enough for every body here, SQLite included, and little enough for ten thousands of threads.
constexpr size_t kPlatformStackBytes = size_t{128} << 10;

// The system keeps this much of a thread's name.
constexpr size_t kThreadNameBytes = 15;

class VirtualCrew final : public Crew {
 public:
  explicit VirtualCrew(std::unique_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
  ~VirtualCrew() override { static_cast<void>(runtime_->AwaitIdle()); }

  absl::Status Start(std::string_view name, Body body) override {
    const SpawnOptions options{.name = name, .placement = Placement::kSpread};
    auto run = [body = std::move(body)]() mutable { std::move(body)(); };
    // The first members come from outside, of which there are a few; the many are started by
    // members.
    if (CurrentRole() != Role::kVirtual) {
      runtime_->Spawn(options, std::move(run)).Detach();
      return absl::OkStatus();
    }
    BOBBIN_ASSIGN_OR_RETURN(VirtualThread member, TrySpawn(options, std::move(run)));
    std::move(member).Detach();
    return absl::OkStatus();
  }

  void Join() override { static_cast<void>(runtime_->AwaitIdle()); }

 private:
  std::unique_ptr<Runtime> runtime_;
};

class PlatformCrew final : public Crew {
 public:
  PlatformCrew() {
    pthread_attr_init(&attributes_);
    pthread_attr_setstacksize(&attributes_, kPlatformStackBytes);
  }
  ~PlatformCrew() override {
    JoinAll();
    pthread_attr_destroy(&attributes_);
  }

  absl::Status Start(std::string_view name, Body body) override {
    if (reserve_.IsSpent()) {
      return MakeStatus(absl::StatusCode::kResourceExhausted, "start a thread: no memory");
    }
    auto start = std::make_unique<Body>(std::move(body));
    pthread_t thread;
    if (const int error = pthread_create(&thread, &attributes_, &Run, start.get()); error != 0) {
      return MakeStatus(absl::StatusCode::kResourceExhausted,
                        MessageOf(ErrnoStatus(error, "start a thread")));
    }
    static_cast<void>(start.release());  // The thread owns it now.
    pthread_setname_np(thread, std::string(name.substr(0, kThreadNameBytes)).c_str());
    MutexLock lock(mutex_);
    threads_.push_back(thread);
    return absl::OkStatus();
  }

  void Join() override { JoinAll(); }

 private:
  static void* Run(void* start) {
    const std::unique_ptr<Body> body(static_cast<Body*>(start));
    std::move (*body)();
    return nullptr;
  }

  void JoinAll() {
    // A member that started others noted them before it ended.
    while (true) {
      std::vector<pthread_t> threads;
      {
        MutexLock lock(mutex_);
        threads.swap(threads_);
      }
      if (threads.empty()) return;
      for (const pthread_t thread : threads) pthread_join(thread, nullptr);
    }
  }

  const MemoryReserve reserve_;
  pthread_attr_t attributes_;
  Mutex mutex_;
  std::vector<pthread_t> threads_ ABSL_GUARDED_BY(mutex_);  // Not yet joined.
};

}  // namespace

absl::StatusOr<std::unique_ptr<Crew>> MakeCrew(Kind kind) {
  if (kind == Kind::kPlatform) return std::make_unique<PlatformCrew>();
  BOBBIN_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime, Runtime::Create(MeasuredRuntime()));
  return std::make_unique<VirtualCrew>(std::move(runtime));
}

RuntimeOptions MeasuredRuntime() { return {.poller = io::AutoPoller(), .watchdog = {.limit = {}}}; }

}  // namespace bobbin::compare
