// SPDX-License-Identifier: Apache-2.0

#include "io/src/listener.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/io/internal/handles.h>
#include <bobbin/sched/internal/notice.h>
#include <bobbin/sched/sleep.h>

#include "io/src/blocking.h"
#include "io/src/io_poller.h"
#include "io/src/limits.h"
#include "io/src/result.h"

namespace bobbin::io::internal {

using bobbin::internal::Current;
using bobbin::internal::SpinLockHolder;
using bobbin::internal::Thread;
using bobbin::internal::Waiter;
using bobbin::internal::WaitKind;
using bobbin::internal::WaitNumber;
using bobbin::internal::WaitObject;
using bobbin::internal::Wake;
using bobbin::internal::WakeList;

void ReleaseListener::operator()(Listener* listener) const noexcept { listener->Release(); }

namespace {

constexpr WaitKind kAcceptWait = {"accept", WaitObject::kDescriptor};

// The process, or the system, is out of something: asking again at once would spin.
bool IsShortage(Result result) {
  return result == -EMFILE || result == -ENFILE || result == -ENOBUFS || result == -ENOMEM;
}

// The trouble of one connection, which is gone; the next one may be well. accept(2) lists them.
bool IsOfOneConnection(Result result) {
  switch (-result) {
    case ECONNABORTED:
    case EINTR:
    case EAGAIN:
    case EPERM:
    case EPROTO:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
      return true;
    default:
      return false;
  }
}

}  // namespace

// --- Threads that want a connection

absl::StatusOr<FileDescriptor> Listener::Accept() {
  Thread& self = Current();
  self.CheckMayWait();
  if (self.ShouldStop()) return self.StopStatus();
  if (!Enter()) return ClosedStatus("accept");
  Result result = Attempt(self);
  while (result == kRetry || result == kPause || IsOfOneConnection(result)) {
    if (result == kPause) result = Pause();
    if (result != kStoppedByDeadline && result != kStoppedByCancel) result = Attempt(self);
  }
  Leave();
  if (result >= 0) return FileDescriptor(static_cast<int>(result));
  return result == kClosed ? ClosedStatus("accept") : ResultStatus(result, "accept");
}

Result Listener::Attempt(Thread& self) {
  if (self.ShouldStop()) return WhyStopped(self);
  const bool is_virtual = self.role() == Role::kVirtual;
  Waiter waiter(kAcceptWait, WaitNumber(fd()));
  int fd = -1;
  bool starts_op = false;
  bool asks_itself = false;
  {
    SpinLockHolder hold(lock_);
    if (is_closing_) return kClosed;
    if (!queued_.empty()) {
      fd = queued_.front();
      queued_.pop_front();
    }
    if (acceptor_ == Acceptor::kNobody && is_virtual && queued_.size() <= kAcceptedResume) {
      acceptor_ = Acceptor::kPoller;
      ++users_;
      starts_op = true;
    } else if (acceptor_ == Acceptor::kNobody && !is_virtual && fd < 0) {
      acceptor_ = Acceptor::kOsThread;
      asks_itself = true;
    }
    if (fd < 0 && !asks_itself) waiters_.PushBack(waiter);
  }
  if (starts_op) StartOp(CurrentIoPoller());
  if (fd >= 0) return fd;
  if (asks_itself) return AskBlocking(self);

  const Wake wake = waiter.Park();
  if (wake == Wake::kNotified) return waiter.amount;
  SpinLockHolder hold(lock_);
  waiters_.Forget(waiter);
  return StoppedBy(wake);
}

Result Listener::AskBlocking(Thread& self) {
  SetMode(Mode::kReturns);
  int bell = kNoBell;
  Result result = 0;
  if (shutdown_ == Shutdown::kIsNotNoticed) {
    SpinLockHolder hold(lock_);
    if (!bell_.is_open()) bell_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
    bell = bell_.get();
    if (!bell_.is_open()) result = -EMFILE;
    if (is_closing_) result = -ECANCELED;
  }
  if (result == 0) result = BlockingAccept(self, fd(), bell);
  SpinLockHolder hold(lock_);
  acceptor_ = Acceptor::kNobody;
  if (result < 0 && is_closing_) return kClosed;
  if (!IsShortage(result)) return result;
  acceptor_ = Acceptor::kPausing;
  return kPause;
}

Result Listener::Pause() {
  if (Current().role() == Role::kVirtual) CurrentIoPoller().CountAcceptPause();
  if (pauses_.fetch_add(1) == 0) {
    bobbin::internal::Tell(
        {.text = fmt::format(
             "accept {}: out of descriptors or memory; peers wait until there are some again",
             name_),
         .fields = {{"listener", name_}}});
  }
  const absl::Status status = SleepFor(kAcceptPause);
  SpinLockHolder hold(lock_);
  acceptor_ = Acceptor::kNobody;
  if (status.ok()) return kRetry;
  return absl::IsDeadlineExceeded(status) ? kStoppedByDeadline : kStoppedByCancel;
}

// --- The poller

void Listener::OnAccept(int32_t result, bool is_last) noexcept {
  IoPoller& here = *poller();  // Once nobody is the acceptor, another carrier may start the record.
  WakeList woken;
  int stranger = -1;
  bool must_stop = false;
  bool must_start = false;
  {
    SpinLockHolder hold(lock_);
    if (result >= 0) stranger = Deliver(result, woken);
    if (is_last) {
      op_poller_ = nullptr;
      must_start = NextAcceptor(result, !here.is_stopping(), woken);
    } else if (acceptor_ == Acceptor::kPoller && queued_.size() >= kAcceptedMax) {
      acceptor_ = Acceptor::kStopping;
      must_stop = true;
    }
  }
  woken.Dispatch();
  if (stranger >= 0) ::close(stranger);
  if (must_stop) here.CancelOp(*this);
  if (must_start) {
    StartOp(here);
  } else if (is_last) {
    Drop(1, false);
  }
}

int Listener::Deliver(int fd, WakeList& woken) {
  if (is_closing_) return fd;
  if (Waiter* const waiter = waiters_.ClaimFront()) {
    waiter->amount = fd;
    woken.Add(*waiter);
  } else {
    queued_.push_back(fd);
  }
  return -1;
}

bool Listener::NextAcceptor(int32_t result, bool may_start, WakeList& woken) {
  acceptor_ = Acceptor::kNobody;
  if (is_closing_) return false;
  if (IsShortage(result)) {
    if (TellFirst(kPause, woken)) acceptor_ = Acceptor::kPausing;
    return false;
  }
  if (result < 0 && result != -ECANCELED && !IsOfOneConnection(result)) {
    // Nothing that asking again would change: all hear of it, and the next to come asks again.
    TellAll(result, woken);
    return false;
  }
  if (waiters_.empty()) return false;
  if (!may_start) {
    TellFirst(kRetry, woken);
    return false;
  }
  acceptor_ = Acceptor::kPoller;
  return true;
}

bool Listener::TellFirst(Result what, WakeList& woken) {
  Waiter* const waiter = waiters_.ClaimFront();
  if (waiter == nullptr) return false;
  waiter->amount = what;
  woken.Add(*waiter);
  return true;
}

void Listener::TellAll(Result what, WakeList& woken) {
  while (TellFirst(what, woken)) {
  }
}

// --- Users, and the end

bool Listener::Enter() {
  SpinLockHolder hold(lock_);
  if (is_closing_) return false;
  ++users_;
  return true;
}

void Listener::Leave() noexcept {
  WakeList woken;
  {
    SpinLockHolder hold(lock_);
    if (acceptor_ == Acceptor::kNobody && !is_closing_) TellFirst(kRetry, woken);
  }
  woken.Dispatch();
  Drop(1, false);
}

void Listener::Close() noexcept {
  WakeList woken;
  std::deque<int> unwanted;
  {
    SpinLockHolder hold(lock_);
    if (is_closing_) return;
    is_closing_ = true;
    ++users_;
    TellAll(kClosed, woken);
    unwanted.swap(queued_);
    if (shutdown_ == Shutdown::kIsNotNoticed) EndAccepts();
  }
  path_.Remove();
  woken.Dispatch();
  for (const int fd : unwanted) ::close(fd);
  // Ends the poller's operation and accept(2).
  ::shutdown(fd(), SHUT_RDWR);
  Drop(1, false);
}

void Listener::StartOp(IoPoller& here) noexcept {
  here.StartAccept(*this);
  bool is_late = false;
  {
    SpinLockHolder hold(lock_);
    op_poller_ = &here;
    is_late = is_closing_ && shutdown_ == Shutdown::kIsNotNoticed;
  }
  if (is_late) here.CancelOp(*this);
}

void Listener::EndAccepts() noexcept {
  if (op_poller_ != nullptr) {
    // Its last completion needs the lock: until then the poller stays.
    ++users_;
    op_poller_->PostCancel(*this);
  }
  const uint64_t one = 1;
  if (bell_.is_open() && ::write(bell_.get(), &one, sizeof(one)) != sizeof(one)) {
    BOBBIN_CHECK(false, "the bell is gone");
  }
}

void Listener::OnPostedCancel() noexcept { Drop(1, false); }

void Listener::Release() noexcept {
  Close();
  Drop(0, true);
}

void Listener::Drop(uint32_t users, bool is_owner) noexcept {
  const int descriptor = fd();
  bool must_close;
  bool must_free;
  {
    SpinLockHolder hold(lock_);
    users_ -= users;
    if (is_owner) is_owned_ = false;
    must_close = users != 0 && users_ == 0 && is_closing_;
    must_free = users_ == 0 && !is_owned_;
  }
  if (must_close) ::close(descriptor);
  if (must_free) const std::unique_ptr<Listener> last(this);
}

}  // namespace bobbin::io::internal
