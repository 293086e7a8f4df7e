// SPDX-License-Identifier: Apache-2.0

#include "io/src/epoll_poller.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/internal/dispatcher.h>
#include <bobbin/core/status.h>

#include "io/src/connect.h"
#include "io/src/op_call.h"

namespace bobbin::io::internal {

namespace {

// What an event of the doorbell carries, which is no descriptor's number.
constexpr uint64_t kDoorbell = std::numeric_limits<uint32_t>::max();
constexpr int kWatchShift = 32;
constexpr uint64_t kDescriptorMask = std::numeric_limits<uint32_t>::max();

constexpr uint32_t kReading = EPOLLIN | EPOLLRDHUP | EPOLLPRI;
constexpr uint32_t kWriting = EPOLLOUT;
// What is reported once, and stays.
constexpr uint32_t kEndings = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;

// What an operation has the kernel report. Endings are reported in any case.
uint32_t InterestOf(OpCode code) noexcept {
  switch (code) {
    case OpCode::kReceive:
    case OpCode::kReceiveMessage:
    case OpCode::kRead:
    case OpCode::kReceiveBatch:
    case OpCode::kReceivePooled:
    case OpCode::kAccept:
    case OpCode::kAwaitReadable:
    case OpCode::kReceiveAhead:
      return kReading;
    case OpCode::kSend:
    case OpCode::kSendMessage:
    case OpCode::kWrite:
    case OpCode::kConnect:
    case OpCode::kAwaitWritable:
    case OpCode::kSendZeroCopy:
      return kWriting;
  }
  return 0;
}

}  // namespace

EpollPoller::~EpollPoller() {
  BOBBIN_CHECK(in_flight_ == 0, "a poller is destroyed while it has operations");
}

absl::Status EpollPoller::Start() {
  owner_ = static_cast<uintptr_t>(pthread_self());
  epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.is_open()) return ErrnoStatus(errno, "epoll: create");
  doorbell_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (!doorbell_.is_open()) return ErrnoStatus(errno, "epoll: eventfd");
  // Each ring is an edge: nobody has to take the count out.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = kDoorbell}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, doorbell_.get(), &event) != 0) {
    return ErrnoStatus(errno, "epoll: add");
  }
  return absl::OkStatus();
}

void EpollPoller::CheckOwner() const noexcept {
  BOBBIN_DCHECK(owner_ == static_cast<uintptr_t>(pthread_self()),
                "a poller belongs to the OS thread that started it");
}

// --- Operations

bool EpollPoller::DoOrStart(ParkedOp& op) noexcept {
  CheckOwner();
  int32_t result = -EAGAIN;
  if (TakeTurnForCall(op)) {
    result = Try(op);
    if (result == -EAGAIN) {
      Begin(op);
      result = Await(op);
      if (__builtin_expect(result == 0, 1)) return false;
      op.stage_ = Op::Stage::kIdle;
      --in_flight_;
    }
    op.set_result(result);
    return true;
  }
  Begin(op);
  Defer(op);
  return false;
}

void EpollPoller::StartAccept(AcceptOp& op) noexcept {
  CheckOwner();
  op.SetMode(AcceptOp::Mode::kReturns);
  Begin(op);
  Defer(op);
}

void EpollPoller::Begin(Op& op) noexcept {
  BOBBIN_DCHECK(op.stage_ == Op::Stage::kIdle, "an operation is started twice");
  op.poller_ = this;
  op.is_cancel_wanted_ = false;
  ++in_flight_;
}

void EpollPoller::Defer(Op& op) noexcept {
  op.stage_ = Op::Stage::kDeferred;
  deferred_.PushBack(op);
}

bool EpollPoller::TakeTurnForCall(const ParkedOp& op) noexcept {
  const uint32_t picks = op.carrier().picks();
  if (picks != picks_) {
    picks_ = picks;
    calls_ = 0;
  }
  return ++calls_ <= kCallsInARowMax;
}

int32_t EpollPoller::Try(ParkedOp& op) noexcept {
  if (IsReceive(op.code_)) return TryReceive(op);
  if (op.code_ == OpCode::kConnect && op.stage_ == Op::Stage::kInFlight) {
    return static_cast<int32_t>(ConnectOutcome(op.fd()));
  }
  return MakeCall(op);
}

int32_t EpollPoller::TryReceive(const ParkedOp& op) noexcept {
  Watch& watch = WatchOf(op);
  if (watch.is_drained) return -EAGAIN;
  const int32_t result = op.code_ == OpCode::kReceivePooled ? CallPooled(op) : MakeCall(op);
  const bool is_short = result > 0 && result < static_cast<int32_t>(op.bytes_);
  watch.is_drained =
      is_short && !watch.has_more_behind && op.pollable_.short_read == ShortRead::kMeansNoMore;
  return result;
}

void EpollPoller::EndOp(Op& op) noexcept {
  CheckOwner();
  if (op.stage_ == Op::Stage::kDeferred) return;
  LeaveWatch(op);
  Defer(op);
}

void EpollPoller::Finish(Op& op, int32_t result) noexcept {
  op.stage_ = Op::Stage::kIdle;
  --in_flight_;
  // From here on the record is its owner's.
  if (op.code_ == OpCode::kAccept) {
    static_cast<AcceptOp&>(op).OnAccept(result, true);
  } else {
    static_cast<ParkedOp&>(op).Complete(result);
  }
}

// --- Watches

Watch& EpollPoller::WatchOf(const Op& op) noexcept {
  Watch& watch = watches_.At(op.fd());
  const uint64_t serial = op.pollable_.serial;
  if (__builtin_expect(watch.serial != serial, 0)) {
    // The number's last owner has closed it, and the kernel has forgotten it.
    watch.serial = serial;
    watch.interest = 0;
    watch.is_drained = watch.has_more_behind = false;
  }
  return watch;
}

int32_t EpollPoller::Await(Op& op) noexcept {
  Watch& watch = WatchOf(op);
  const uint32_t interest = watch.interest | InterestOf(op.code_);
  if (__builtin_expect(watch.interest != interest, 0)) {
    if (const int32_t error = MakeKnown(watch, op.fd(), interest); error != 0) return error;
  }
  op.stage_ = Op::Stage::kInFlight;
  watch.waiting.PushBack(op);
  ++waiting_;
  return 0;
}

int32_t EpollPoller::MakeKnown(Watch& watch, int fd, uint32_t interest) noexcept {
  const bool is_new = watch.interest == 0;
  if (is_new) ++watch.generation;
  const uint64_t data = uint64_t{watch.generation} << kWatchShift | static_cast<uint32_t>(fd);
  epoll_event event{.events = interest | EPOLLET, .data = {.u64 = data}};
  // Either way it reports at once what is there already.
  const auto tell = [&](int how) {
    return ::epoll_ctl(epoll_.get(), how, fd, &event) == 0 ? 0 : -errno;
  };
  int32_t error = tell(is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD);
  // Known already: the file has been waited for under this number before, as somebody else's.
  if (error == -EEXIST) error = tell(EPOLL_CTL_MOD);
  // Unknown: its owner has closed it meanwhile, and the number is another file's.
  if (error == -ENOENT) error = tell(EPOLL_CTL_ADD);
  if (error == 0) watch.interest = interest;
  return error;
}

void EpollPoller::LeaveWatch(Op& op) noexcept {
  Watch& watch = watches_.At(op.fd());
  watch.waiting.Remove(op);
  --waiting_;
  if (watch.serial != Pollable::kForeign || !watch.waiting.empty()) return;
  // Whoever owns it may close it next, and nobody would tell. If that has been done, this fails.
  epoll_event unused{};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, op.fd(), &unused);
  watch.interest = 0;
}

// --- Events

void EpollPoller::Poll() noexcept {
  CheckOwner();
  TakePosted();
  TryDeferred();
  if (waiting_ == 0) return;
  TakeEvents(::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), 0));
}

void EpollPoller::PollUntil(Deadline until) noexcept {
  CheckOwner();
  TakePosted();
  if (!deferred_.empty()) return Poll();
  TakeEvents(Sleep(until));
  TakePosted();
}

int EpollPoller::Sleep(Deadline until) noexcept {
  constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;
  constexpr int64_t kNanosecondsPerMillisecond = 1'000'000;
  const int count = static_cast<int>(events_.size());
  if (until.is_never()) return ::epoll_wait(epoll_.get(), events_.data(), count, -1);
  const int64_t now = MonotonicNow().time_since_epoch().count();
  const int64_t left = std::max(until.nanoseconds() - now, int64_t{0});
  if (has_nanoseconds_) {
    const timespec time{.tv_sec = left / kNanosecondsPerSecond,
                        .tv_nsec = left % kNanosecondsPerSecond};
    const int taken = ::epoll_pwait2(epoll_.get(), events_.data(), count, &time, nullptr);
    if (taken >= 0 || (errno != ENOSYS && errno != EPERM)) return taken;
    has_nanoseconds_ = false;
  }
  // Rounded up: a timer that is early would have to sleep again.
  const int64_t milliseconds = (left + kNanosecondsPerMillisecond - 1) / kNanosecondsPerMillisecond;
  constexpr int64_t kLongest = std::numeric_limits<int>::max();
  return ::epoll_wait(epoll_.get(), events_.data(), count,
                      static_cast<int>(std::min(milliseconds, kLongest)));
}

void EpollPoller::TakeEvents(int taken) noexcept {
  const int error = taken < 0 ? errno : 0;
  BOBBIN_CHECK(error == 0 || error == EINTR, fmt::format("epoll: wait: error {}", error));
  for (int i = 0; i < taken; ++i) Dispatch(events_[static_cast<size_t>(i)]);
}

void EpollPoller::Dispatch(const epoll_event& event) noexcept {
  if (event.data.u64 == kDoorbell) return;
  Watch& watch = watches_.At(static_cast<int>(event.data.u64 & kDescriptorMask));
  if (watch.generation != event.data.u64 >> kWatchShift) return;
  if ((event.events & kEndings) != 0) watch.has_more_behind = true;
  if ((event.events & (EPOLLIN | kEndings)) != 0) watch.is_drained = false;
  Op* next = nullptr;
  for (Op* op = watch.waiting.Front(); op != nullptr; op = next) {
    next = watch.waiting.Next(*op);
    if ((event.events & (InterestOf(op->code_) | EPOLLHUP | EPOLLERR)) != 0) {
      TryAgain(*op, event.events);
    }
  }
}

void EpollPoller::TryAgain(Op& op, uint32_t events) noexcept {
  if (op.code_ == OpCode::kAccept) return TakeConnections(static_cast<AcceptOp&>(op));
  int32_t result = Try(static_cast<ParkedOp&>(op));
  if (result == -EAGAIN) {
    if (op.code_ != OpCode::kReceiveBatch || !IsOver(static_cast<int32_t>(events))) return;
    result = -ESHUTDOWN;
  }
  LeaveWatch(op);
  Finish(op, result);
}

void EpollPoller::TakeConnections(AcceptOp& op) noexcept {
  for (int i = 0; i < kAcceptsPerPollMax; ++i) {
    const int accepted = ::accept4(op.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    const int32_t result = accepted < 0 ? -errno : accepted;
    if (result == -EAGAIN) return;
    if (result < 0) {
      LeaveWatch(op);
      return Finish(op, result);
    }
    op.OnAccept(result, false);
    if (op.is_cancel_wanted_) return;
  }
  // Of those that are left no event will tell.
  LeaveWatch(op);
  Defer(op);
}

void EpollPoller::TryDeferred() noexcept {
  // Those that are deferred meanwhile come behind the last one, and wait for the next poll.
  for (size_t left = in_flight_ - waiting_; left > 0; --left) TryDeferred(*deferred_.PopFront());
}

void EpollPoller::TryDeferred(Op& op) noexcept {
  if (op.is_cancel_wanted_) return Finish(op, -ECANCELED);
  int32_t result = -EAGAIN;
  if (op.code_ != OpCode::kAccept) result = Try(static_cast<ParkedOp&>(op));
  if (result == -EAGAIN) result = Await(op);
  if (op.stage_ != Op::Stage::kInFlight) return Finish(op, result);
  if (op.code_ == OpCode::kAccept) TakeConnections(static_cast<AcceptOp&>(op));
}

// --- Waking

void EpollPoller::Wake() noexcept {
  const uint64_t one = 1;
  BOBBIN_CHECK(::write(doorbell_.get(), &one, sizeof(one)) == sizeof(one), "the doorbell is gone");
}

// --- The end

void EpollPoller::CancelAll() noexcept {
  CheckOwner();
  is_stopping_ = true;
  deferred_.ForEach([](Op& op) { op.is_cancel_wanted_ = true; });
  watches_.ForEach([this](Watch& watch) {
    while (Op* const op = watch.waiting.Front()) CancelOp(*op);
  });
}

void EpollPoller::Stop() noexcept {
  TakePosted();
  ClosePool(nullptr);
  BOBBIN_CHECK(in_flight_ == 0, "a carrier ends while its poller has operations");
}

}  // namespace bobbin::io::internal
