// SPDX-License-Identifier: Apache-2.0

#include "io/src/ring.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/status.h>

#include "io/src/limits.h"
#include "io/src/uring_constants.h"

namespace bobbin::io::internal {

namespace {

// How long to let pass when the kernel has no memory for a request.
constexpr int kMemoryPauseMilliseconds = 1;

// What bobbin cannot do without; all of it is in Linux 6.1.
constexpr uint32_t kSetupFlags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                 IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
                                 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
constexpr uint32_t kFeatures = IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE |
                               IORING_FEAT_FAST_POLL | IORING_FEAT_EXT_ARG | IORING_FEAT_CQE_SKIP;

absl::Status Refused(absl::StatusCode code, std::string_view why) {
  return MakeStatus(code, fmt::format("io_uring: {}", why));
}

// 0: anybody may; 1: a group may; 2: nobody may; -1: this kernel does not know the setting.
int DisabledSetting() {
  int value = -1;
  std::ifstream("/proc/sys/kernel/io_uring_disabled") >> value;
  return value;
}

// Why io_uring_setup failed, and what would help.
absl::Status SetupStatus(int error) {
  switch (error) {
    case EPERM:
    case EACCES: {
      const int setting = DisabledSetting();
      if (setting == 1 || setting == 2) {
        return Refused(
            absl::StatusCode::kPermissionDenied,
            fmt::format("refused by the sysctl kernel.io_uring_disabled, which is {}", setting));
      }
      return Refused(absl::StatusCode::kPermissionDenied,
                     "refused, probably by a seccomp filter such as a container's default profile "
                     "(the sysctl kernel.io_uring_disabled does not forbid it)");
    }
    case ENOSYS:
      return Refused(absl::StatusCode::kUnimplemented,
                     "this kernel has none, or a seccomp filter hides it");
    case EINVAL:
      return Refused(absl::StatusCode::kUnimplemented, "this kernel is too old; 6.1 is needed");
    case EMFILE:
    case ENFILE:
      return Refused(absl::StatusCode::kResourceExhausted,
                     "no descriptor left for a ring; raise RLIMIT_NOFILE");
    case ENOMEM:
      return Refused(absl::StatusCode::kResourceExhausted,
                     "no memory for even a small ring; raise RLIMIT_MEMLOCK or the memory limit");
    default:
      return ErrnoStatus(error, "io_uring: set up");
  }
}

}  // namespace

Ring::~Ring() {
  if (is_open_) io_uring_queue_exit(&ring_);
}

absl::Status Ring::SetUp(Entries wanted) {
  while (true) {
    io_uring_params parameters{};
    parameters.flags = kSetupFlags;
    parameters.cq_entries = wanted.completion;
    const int result = io_uring_queue_init_params(wanted.submission, &ring_, &parameters);
    if (result == 0) return absl::OkStatus();
    const bool is_smallest =
        wanted.submission <= kRingEntriesMin && wanted.completion <= 2 * kRingEntriesMin;
    if (result != -ENOMEM || is_smallest) return SetupStatus(-result);
    wanted.submission = std::max(wanted.submission / 2, kRingEntriesMin);
    wanted.completion = std::max(wanted.completion / 2, 2 * kRingEntriesMin);
  }
}

absl::Status Ring::Open(Entries wanted) {
  BOBBIN_CHECK(!is_open_, "a ring is opened once");
  BOBBIN_RETURN_IF_ERROR(SetUp(wanted));
  is_open_ = true;
  if ((ring_.features & kFeatures) != kFeatures) return SetupStatus(EINVAL);

  entries_ = ring_.sq.sqes;
  submission_mask_ = ring_.sq.ring_entries - 1;
  kernel_submission_tail_ = ring_.sq.ktail;
  kernel_submission_head_ = ring_.sq.khead;
  flags_ = ring_.sq.kflags;
  completions_ = ring_.cq.cqes;
  completion_mask_ = ring_.cq.ring_mask;
  completion_tail_ = ring_.cq.ktail;
  kernel_completion_head_ = ring_.cq.khead;
  // Entry i of the queue is always entry i of the array: publishing is then one store.
  for (uint32_t i = 0; i <= submission_mask_; ++i) ring_.sq.array[i] = i;

  // A child of fork must not share the queues. The rest makes it faster, or safer, where it works.
  io_uring_ring_dontfork(&ring_);
  enter_fd_ = ring_.ring_fd;
  if (io_uring_register_ring_fd(&ring_) == 1) {
    enter_fd_ = ring_.enter_ring_fd;
    enter_flags_ |= IORING_ENTER_REGISTERED_RING;
  }
  // Should an operation ever need a kernel thread, there is one, not one for each connection.
  unsigned iowq_threads_max[2] = {1, 1};
  io_uring_register_iowq_max_workers(&ring_, iowq_threads_max);
  if ((ring_.features & kFeatureNoIowait) != 0) wait_flags_ |= kEnterNoIowait;
  return TryEnter();
}

void Ring::Disown() {
  if (is_open_ && (enter_flags_ & IORING_ENTER_REGISTERED_RING) != 0) {
    io_uring_unregister_ring_fd(&ring_);
  }
}

absl::Status Ring::TryEnter() {
  // A wait that is over before it begins: where absolute times are known, it says so.
  __kernel_timespec past{.tv_sec = 0, .tv_nsec = 1};
  io_uring_getevents_arg argument{};
  argument.ts = reinterpret_cast<uint64_t>(&past);
  const int result = io_uring_enter2(
      static_cast<unsigned>(enter_fd_), 0, 1,
      enter_flags_ | IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG | kEnterAbsoluteTimer,
      reinterpret_cast<sigset_t*>(&argument), sizeof(argument));
  has_absolute_timer_ = result == -ETIME;
  // Some filters let a ring be set up, but not used.
  const bool is_refused = result == -EPERM || result == -EACCES || result == -ENOSYS;
  return is_refused ? SetupStatus(-result) : absl::OkStatus();
}

int Ring::Enter(uint32_t wanted, uint32_t flags, const void* argument, size_t argument_bytes) {
  // Pairs with the kernel's acquire: the entries are complete.
  std::atomic_ref(*kernel_submission_tail_).store(submission_tail_, std::memory_order_release);
  // relaxed: a count.
  const uint32_t state = std::atomic_ref(*flags_).load(std::memory_order_relaxed);
  if (__builtin_expect((state & IORING_SQ_CQ_OVERFLOW) != 0, 0)) overflows_.add(1);
  const int result =
      io_uring_enter2(static_cast<unsigned>(enter_fd_), prepared(), wanted, flags | enter_flags_,
                      static_cast<sigset_t*>(const_cast<void*>(argument)), argument_bytes);
  // relaxed: the kernel moved it in this thread's own system call.
  submission_head_ = std::atomic_ref(*kernel_submission_head_).load(std::memory_order_relaxed);
  if (__builtin_expect(result >= 0, 1)) return result;

  // All of these are everyday: a signal, a deadline, completions to take first, no memory just now.
  const bool is_known = result == -EINTR || result == -ETIME || result == -EBUSY ||
                        result == -EAGAIN || result == -ENOMEM;
  BOBBIN_CHECK(is_known, fmt::format("io_uring: enter: error {}", -result));
  return result;
}

bool Ring::RegisterBuffers(void* entries, uint32_t count, uint16_t group) {
  io_uring_buf_reg wanted{};
  wanted.ring_addr = reinterpret_cast<uint64_t>(entries);
  wanted.ring_entries = count;
  wanted.bgid = group;
  return io_uring_register_buf_ring(&ring_, &wanted, 0) == 0;
}

void Ring::UnregisterBuffers(uint16_t group) { io_uring_unregister_buf_ring(&ring_, group); }

void Ring::Submit() {
  if (prepared() != 0) Enter(0, 0, nullptr, _NSIG / 8);
}

bool Ring::MakeRoom() {
  early_submits_.add(1);
  Submit();
  return prepared() <= submission_mask_;
}

void Ring::Collect() { Enter(0, IORING_ENTER_GETEVENTS, nullptr, _NSIG / 8); }

void Ring::Wait(Deadline until) {
  uint32_t flags = IORING_ENTER_GETEVENTS | wait_flags_;
  int result;
  if (until.is_never()) {
    result = Enter(1, flags, nullptr, _NSIG / 8);
  } else {
    int64_t nanoseconds = until.nanoseconds();
    if (has_absolute_timer_) {
      flags |= kEnterAbsoluteTimer;
    } else {
      nanoseconds -= MonotonicNow().time_since_epoch().count();
      // A wait of no length is ten times as dear as no wait.
      if (nanoseconds <= 0) return Collect();
    }
    constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;
    const __kernel_timespec time{.tv_sec = nanoseconds / kNanosecondsPerSecond,
                                 .tv_nsec = nanoseconds % kNanosecondsPerSecond};
    io_uring_getevents_arg argument{};
    argument.ts = reinterpret_cast<uint64_t>(&time);
    result = Enter(1, flags | IORING_ENTER_EXT_ARG, &argument, sizeof(argument));
  }
  // Without memory for requests the kernel does not wait, either. The carrier has nothing else to
  // do and tries again at once: the pause keeps it from spinning, and it is counted.
  if (__builtin_expect(result == -EAGAIN || result == -ENOMEM, 0)) {
    memory_pauses_.add(1);
    ::poll(nullptr, 0, kMemoryPauseMilliseconds);
  }
}

}  // namespace bobbin::io::internal
