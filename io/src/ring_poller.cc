// SPDX-License-Identifier: Apache-2.0

#include "io/src/ring_poller.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/internal/os.h>
#include <bobbin/core/status.h>

#include "io/src/limits.h"
#include "io/src/op_call.h"
#include "io/src/uring_constants.h"

namespace bobbin::io::internal {

namespace {

// How many completions ahead the thread of one is fetched. Not tuned; without both fetches an echo
// among a thousand connections costs twice the user time.
constexpr uint32_t kThreadsAhead = 4;

// What a poll says that there is room, or that a call will tell why there never will be.
constexpr int32_t kRoom = POLLOUT | POLLERR | POLLHUP;

constexpr bool IsLasting(OpCode code) noexcept {
  return code == OpCode::kAccept || code == OpCode::kReceiveAhead;
}

Op* RecordOf(const io_uring_cqe& completion) noexcept {
  return reinterpret_cast<Op*>(completion.user_data & kAddressMask);
}

// Fetching from a null address does nothing.
void PrefetchRecord(const io_uring_cqe& completion) noexcept {
  const auto* const record = reinterpret_cast<const char*>(RecordOf(completion));
  __builtin_prefetch(record, 1);
  __builtin_prefetch(record + bobbin::internal::kCacheLineBytes, 1);
}

void PrefetchThread(const io_uring_cqe& completion) noexcept {
  const Op* const op = RecordOf(completion);
  if (op != nullptr && !IsLasting(op->code())) static_cast<const ParkedOp*>(op)->Prefetch();
}

}  // namespace

RingPoller::~RingPoller() {
  BOBBIN_CHECK(in_flight_ == 0, "a ring is closed while the kernel has operations of it");
}

absl::Status RingPoller::Start() {
  owner_ = static_cast<uintptr_t>(pthread_self());
  BOBBIN_RETURN_IF_ERROR(ring_.Open(
      {.submission = options_.submission_entries, .completion = options_.completion_entries}));
  const Ring::Entries got = ring_.entries();
  const bool is_small =
      got.submission < options_.submission_entries || got.completion < options_.completion_entries;
  small_queues_.set(is_small ? 1 : 0);
  if (!options_.forces_eventfd_wake && SendMessage() >= 0) return absl::OkStatus();
  doorbell_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (!doorbell_.is_open()) return ErrnoStatus(errno, "io_uring: eventfd");
  doorbell_state_ = DoorbellState::kDown;
  ArmDoorbell();
  return absl::OkStatus();
}

PollerStatistics RingPoller::Statistics() const noexcept {
  return {.early_submits = ring_.early_submits(),
          .deferred = deferred_ever_.value(),
          .overflows = ring_.overflows(),
          .memory_pauses = ring_.memory_pauses(),
          .accept_pauses = accept_pauses(),
          .small_queues = small_queues_.value(),
          .copied_sends = copied_sends()};
}

void RingPoller::CheckOwner() const noexcept {
  BOBBIN_DCHECK(owner_ == static_cast<uintptr_t>(pthread_self()),
                "a ring belongs to the OS thread that opened it");
}

// --- Operations

bool RingPoller::DoOrStart(ParkedOp& op) noexcept {
  if (op.code_ == OpCode::kReceivePooled) return DoOrStartPooled(op);
  if ((IsSend(op.code_) || IsAlwaysCall(op.code_)) && TakeTurnForCall(op)) {
    const int32_t result = MakeCall(op);
    if (result != -EAGAIN) {
      op.set_result(result);
      return true;
    }
    Start(op, Op::Step::kLook);
    return false;
  }
  const bool begins_with_look = op.code_ == OpCode::kAwaitWritable || IsAlwaysCall(op.code_);
  Start(op, begins_with_look ? Op::Step::kLook : Op::Step::kCall);
  return false;
}

bool RingPoller::DoOrStartPooled(ParkedOp& op) noexcept {
  BufferPool& pool = Pool();
  pool.TakeReturned();
  auto& slot = *static_cast<PooledSlot*>(op.data_);
  if (__builtin_expect(std::exchange(slot.is_readable, false), 0)) {
    const int32_t received = CallPooled(op);
    if (received != -EAGAIN) {
      op.set_result(received);
      return true;
    }
  }
  // Without a buffer nobody calls before a look: whoever did would pass those who wait for theirs.
  Start(op, pool.has_queued() ? Op::Step::kCall : Op::Step::kLook);
  return false;
}

void RingPoller::StartAccept(AcceptOp& op) noexcept {
  op.SetMode(AcceptOp::Mode::kWaits);
  Start(op, Op::Step::kCall);
}

bool RingPoller::CanReceiveAhead() noexcept {
  BufferPool& pool = Pool();
  pool.TakeReturned();
  return pool.has_queued() && !is_stopping_;
}

void RingPoller::StartReceiveAhead(DatagramOp& op) noexcept { Start(op, Op::Step::kCall); }

void RingPoller::Start(Op& op, Op::Step step) noexcept {
  CheckOwner();
  BOBBIN_DCHECK(op.stage_ == Op::Stage::kIdle, "an operation is started twice");
  op.poller_ = this;
  op.generation_ = ++generation_;
  op.is_cancel_wanted_ = false;
  ++in_flight_;
  Submit(op, step);
}

void RingPoller::Submit(Op& op, Op::Step step) noexcept {
  op.step_ = step;
  if (__builtin_expect(!deferred_.empty(), 0) || !Prepare(op)) {
    op.stage_ = Op::Stage::kDeferred;
    deferred_.PushBack(op);
    deferred_ever_.add(1);
    return;
  }
  op.stage_ = Op::Stage::kInFlight;
}

bool RingPoller::Prepare(Op& op) noexcept {
  io_uring_sqe* const entry = ring_.NextEntry();
  if (entry == nullptr) return false;
  if (__builtin_expect(op.step_ != Op::Step::kCall, 0)) {
    io_uring_prep_poll_add(entry, op.fd(), IsReceive(op.code_) ? POLLIN : POLLOUT);
    if (op.step_ == Op::Step::kWatch) entry->len = IORING_POLL_ADD_MULTI;
    entry->user_data = op.user_data();
    return true;
  }
  switch (op.code_) {
    case OpCode::kReceive:
      // Not POLL_FIRST: under load the data is often there by the time the kernel looks, and a look
      // in vain costs less than to wait for what is there.
      io_uring_prep_recv(entry, op.fd(), op.data_, op.bytes_, 0);
      break;
    case OpCode::kSend:
      io_uring_prep_send(entry, op.fd(), op.data_, op.bytes_, MSG_DONTWAIT | MSG_NOSIGNAL);
      break;
    case OpCode::kReceivePooled:
      io_uring_prep_recv(entry, op.fd(), nullptr, op.bytes_, 0);
      entry->flags |= IOSQE_BUFFER_SELECT;
      entry->buf_group = BufferPool::kGroup;
      break;
    case OpCode::kReceiveAhead:
      io_uring_prep_recvmsg_multishot(entry, op.fd(), static_cast<msghdr*>(op.data_), 0);
      entry->flags |= IOSQE_BUFFER_SELECT;
      entry->buf_group = BufferPool::kGroup;
      break;
    case OpCode::kReceiveMessage:
      io_uring_prep_recvmsg(entry, op.fd(), static_cast<msghdr*>(op.data_), MSG_CMSG_CLOEXEC);
      break;
    case OpCode::kSendMessage:
      io_uring_prep_sendmsg(entry, op.fd(), static_cast<const msghdr*>(op.data_),
                            MSG_DONTWAIT | MSG_NOSIGNAL);
      break;
    case OpCode::kSendZeroCopy: {
      const std::span<const std::byte> rest = static_cast<const ZeroCopySend*>(op.data_)->rest;
      io_uring_prep_send_zc(entry, op.fd(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                            kSendReportCopies);
      break;
    }
    case OpCode::kConnect:
      io_uring_prep_connect(entry, op.fd(), static_cast<const sockaddr*>(op.data_), op.bytes_);
      break;
    case OpCode::kAccept:
      io_uring_prep_multishot_accept(entry, op.fd(), nullptr, nullptr, SOCK_CLOEXEC);
      break;
    case OpCode::kAwaitReadable:
      io_uring_prep_poll_add(entry, op.fd(), POLLIN);
      break;
    case OpCode::kRead:
    case OpCode::kWrite:
    case OpCode::kReceiveBatch:
    case OpCode::kAwaitWritable:
      BOBBIN_DCHECK(false, "there is nothing to call");
      break;
  }
  entry->user_data = op.user_data();
  return true;
}

bool RingPoller::IsEnding(const Op& op) noexcept {
  return op.code_ == OpCode::kSendZeroCopy && static_cast<const ZeroCopySend*>(op.data_)->is_ending;
}

void RingPoller::EndOp(Op& op) noexcept {
  CheckOwner();
  if (op.stage_ == Op::Stage::kDeferred) {
    // The kernel has never heard of it, or of this step.
    deferred_.Remove(op);
    if (op.code_ == OpCode::kSendZeroCopy) return EndZeroCopy(op, -ECANCELED);
    Finish(op, -ECANCELED);
  } else if (!op.is_linked() && !IsEnding(op) && !PrepareCancel(op)) {
    deferred_.PushBack(op);
  }
}

bool RingPoller::PrepareCancel(Op& op) noexcept {
  // Entries are executed in order: the kernel knows the operation before it reads this, and an
  // operation that gets the same address later comes after it.
  io_uring_sqe* const entry = ring_.NextEntry();
  if (entry == nullptr) return false;
  io_uring_prep_cancel64(entry, op.user_data(), 0);
  entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
  entry->user_data = static_cast<uint64_t>(Tag::kCancel);
  return true;
}

void RingPoller::PrepareDeferred() noexcept {
  if (__builtin_expect(doorbell_state_ == DoorbellState::kDown, 0)) ArmDoorbell();
  while (Op* const op = deferred_.Front()) {
    const bool is_start = op->stage_ == Op::Stage::kDeferred;
    if (!(is_start ? Prepare(*op) : PrepareCancel(*op))) return;
    deferred_.Remove(*op);
    op->stage_ = Op::Stage::kInFlight;
  }
}

// --- Completions

void RingPoller::Poll() noexcept {
  CheckOwner();
  calls_ = 0;
  TakePosted();
  // Once something has completed, what is still deferred can wait: its virtual threads run first,
  // and the enter that submits what they prepare runs deferred work, too.
  for (int round = 0; round < kPollRoundsMax; ++round) {
    if (ring_.prepared() != 0 || ring_.has_deferred()) ring_.Collect();
    if (TakeCompletions() != 0) return;
    if (ring_.prepared() == 0 && !ring_.has_deferred()) return;
  }
}

void RingPoller::PollUntil(Deadline until) noexcept {
  CheckOwner();
  if (ring_.completions() != 0 || MustNotSleep()) return Poll();
  calls_ = 0;
  TakePosted();
  // On one CPU nothing comes while a carrier looks.
  const bool looks = short_sleeps_.should_look() && bobbin::internal::OthersRunMeanwhile();
  if (!looks || !LookForEnd(until)) Sleep(until);
  TakeCompletions();
  TakePosted();
}

void RingPoller::Sleep(Deadline until) noexcept {
  const MonotonicTime begin = MonotonicNow();
  ring_.Wait(until);
  short_sleeps_.AfterSleep(MonotonicNow() - begin);
}

bool RingPoller::LookForEnd(Deadline until) noexcept {
  if (ring_.prepared() != 0) ring_.Collect();
  const MonotonicTime end = MonotonicNow() + ShortSleeps::kLookMax;
  while (true) {
    if (ring_.has_deferred()) ring_.Collect();
    if (ring_.completions() != 0) break;
    const MonotonicTime now = MonotonicNow();
    if (until.HasPassed(now)) return true;
    if (now >= end) {
      short_sleeps_.AfterLook(false);
      return false;
    }
    bobbin::internal::PauseSpin();
  }
  short_sleeps_.AfterLook(true);
  return true;
}

uint32_t RingPoller::TakeCompletions() noexcept {
  // With many connections all that a completion leads to is cold: fetch the records of the whole
  // batch, then each thread a few completions ahead.
  const uint32_t count = ring_.completions();
  for (uint32_t i = 0; i < count; ++i) PrefetchRecord(ring_.completion(i));
  for (uint32_t i = 0; i < count; ++i) {
    if (i + kThreadsAhead < count) PrefetchThread(ring_.completion(i + kThreadsAhead));
    Dispatch(ring_.completion(i));
  }
  ring_.Consume(count);
  if (__builtin_expect(MustNotSleep(), 0)) PrepareDeferred();
  return count;
}

void RingPoller::Dispatch(const io_uring_cqe& completion) noexcept {
  switch (static_cast<Tag>(completion.user_data & kTagMask)) {
    case Tag::kOp:
      break;
    case Tag::kCancel:
    case Tag::kMessage:
      return;
    case Tag::kDoorbell:
      doorbell_state_ = is_stopping_ ? DoorbellState::kUnused : DoorbellState::kDown;
      if (!is_stopping_) ArmDoorbell();
      return;
  }
  Op& op = *RecordOf(completion);
  BOBBIN_CHECK(op.magic_ == Op::kMagic && op.poller_ == this && op.stage_ != Op::Stage::kIdle &&
                   op.user_data() == completion.user_data,
               "a completion for an operation that has ended");
  if (__builtin_expect(op.code_ == OpCode::kSendZeroCopy, 0)) return AfterZeroCopy(op, completion);
  if (op.code_ == OpCode::kReceiveAhead) {
    return AfterDatagram(static_cast<DatagramOp&>(op), completion);
  }
  if ((completion.flags & IORING_CQE_F_MORE) != 0) {
    if (op.code_ != OpCode::kAccept) return OnWatched(op, completion.res);
    return static_cast<AcceptOp&>(op).OnAccept(completion.res, false);
  }
  if (__builtin_expect(op.is_linked(), 0)) deferred_.Remove(op);  // Its cancel comes too late.
  if (__builtin_expect(op.code_ == OpCode::kReceivePooled, 0)) return AfterPooled(op, completion);
  const bool has_no_room = completion.res == -EAGAIN && IsSend(op.code_);
  if (__builtin_expect(op.step_ != Op::Step::kCall || has_no_room, 0)) {
    return AfterStep(op, completion.res);
  }
  Finish(op, completion.res);
}

void RingPoller::OnWatched(Op& op, int32_t result) noexcept {
  if ((result & kRoom) == 0 || op.is_linked()) return;
  // The watch may see room more than once before it ends: a second cancel finds nothing.
  if (!PrepareCancel(op)) deferred_.PushBack(op);
}

void RingPoller::AfterPooled(Op& op, const io_uring_cqe& completion) noexcept {
  BufferPool& pool = Pool();
  const int32_t result = completion.res;
  if ((completion.flags & IORING_CQE_F_BUFFER) != 0) {
    std::byte* const buffer = pool.TakeChosen(completion.flags >> IORING_CQE_BUFFER_SHIFT);
    if (result > 0) {
      *static_cast<PooledSlot*>(op.data_) = {.pool = &pool, .buffer = buffer};
    } else {
      pool.GiveBack(buffer);
    }
  }
  const bool is_call = op.step_ == Op::Step::kCall;
  if (is_call && result != -ENOBUFS) return Finish(op, result);
  if (op.is_cancel_wanted_) return Finish(op, -ECANCELED);
  if (is_call) return Submit(op, pool.TakeReturned() ? Op::Step::kCall : Op::Step::kLook);
  // There are bytes: whoever wanted them asks for them anew.
  static_cast<PooledSlot*>(op.data_)->is_readable = result >= 0;
  Finish(op, result < 0 ? result : -EAGAIN);
}

void RingPoller::AfterDatagram(DatagramOp& op, const io_uring_cqe& completion) noexcept {
  PooledSlot lent;
  if ((completion.flags & IORING_CQE_F_BUFFER) != 0) {
    BufferPool& pool = Pool();
    lent = {.pool = &pool, .buffer = pool.TakeChosen(completion.flags >> IORING_CQE_BUFFER_SHIFT)};
  }
  if (lent.pool != nullptr && completion.res < 0) {
    std::exchange(lent.pool, nullptr)->GiveBack(std::exchange(lent.buffer, nullptr));
  }
  const bool is_last = (completion.flags & IORING_CQE_F_MORE) == 0;
  if (is_last) {
    if (op.is_linked()) deferred_.Remove(op);  // Its cancel comes too late.
    op.stage_ = Op::Stage::kIdle;
    --in_flight_;
  }
  op.OnDatagram(completion.res, lent, is_last);
}

void RingPoller::AfterZeroCopy(Op& op, const io_uring_cqe& completion) noexcept {
  auto& send = *static_cast<ZeroCopySend*>(op.data_);
  const int32_t result = completion.res;
  const bool has_more = (completion.flags & IORING_CQE_F_MORE) != 0;
  if ((completion.flags & IORING_CQE_F_NOTIF) != 0) {
    if ((static_cast<uint32_t>(result) & kNotifiedCopied) != 0) CountCopiedSend();
    if (--send.held == 0 && send.is_ending) EndZeroCopy(op, send.error);
    return;
  }
  const bool is_call = op.step_ == Op::Step::kCall;
  if (has_more && !is_call) return OnWatched(op, result);
  if (op.is_linked()) deferred_.Remove(op);  // Its cancel comes too late.
  if (has_more) ++send.held;
  if (is_call && result > 0) send.rest = send.rest.subspan(static_cast<size_t>(result));
  if (send.rest.empty()) return EndZeroCopy(op, 0);
  if (op.is_cancel_wanted_) return EndZeroCopy(op, -ECANCELED);

  if (result == -EAGAIN && is_call) return Submit(op, Op::Step::kLook);
  if (result == -EINTR) return Submit(op, op.step_);
  const bool is_look = op.step_ == Op::Step::kLook;
  if (is_look && result >= 0 && (result & kRoom) == 0) return Submit(op, Op::Step::kWatch);
  // A watch that has seen room was taken back.
  const bool was_watched = op.step_ == Op::Step::kWatch && result == -ECANCELED;
  if (result < 0 && !was_watched) return EndZeroCopy(op, result);
  Submit(op, Op::Step::kCall);
}

void RingPoller::EndZeroCopy(Op& op, int32_t error) noexcept {
  auto& send = *static_cast<ZeroCopySend*>(op.data_);
  op.stage_ = Op::Stage::kInFlight;
  send.is_ending = true;
  send.error = error;
  if (send.held != 0) return;
  const int32_t sent = static_cast<int32_t>(op.bytes_ - send.rest.size());
  Finish(op, sent > 0 ? sent : error);
}

void RingPoller::AfterStep(Op& op, int32_t result) noexcept {
  if (op.is_cancel_wanted_) return Finish(op, -ECANCELED);
  const bool is_look = op.step_ == Op::Step::kLook;
  if (op.step_ == Op::Step::kCall) return Submit(op, Op::Step::kLook);
  if (IsAlwaysCall(op.code_) && result >= 0) {
    const int32_t made = MakeCall(op);
    if (made == -EAGAIN && IsOver(result)) return Finish(op, -ESHUTDOWN);
    return made == -EAGAIN ? Submit(op, Op::Step::kLook) : Finish(op, made);
  }
  if (is_look && result >= 0 && (result & kRoom) == 0) return Submit(op, Op::Step::kWatch);
  // A watch that has seen room was taken back.
  if (result < 0 && (is_look || result != -ECANCELED)) return Finish(op, result);
  // A send is made anew by whoever wanted it.
  Finish(op, IsSend(op.code_) ? -EAGAIN : POLLOUT);
}

void RingPoller::Finish(Op& op, int32_t result) noexcept {
  op.stage_ = Op::Stage::kIdle;
  --in_flight_;
  // From here on the record is its owner's.
  if (op.code_ == OpCode::kAccept) {
    static_cast<AcceptOp&>(op).OnAccept(result, true);
  } else if (op.code_ == OpCode::kReceiveAhead) {
    static_cast<DatagramOp&>(op).OnDatagram(result, {}, true);
  } else {
    static_cast<ParkedOp&>(op).Complete(result);
  }
}

bool RingPoller::TakeTurnForCall(const ParkedOp& op) noexcept {
  if (op.carrier().has_ready()) return false;
  if (ring_.prepared() != 0 || ring_.completions() != 0 || ring_.has_deferred()) return false;
  return ++calls_ <= kCallsPerPollMax;
}

// --- Waking

int RingPoller::SendMessage() noexcept {
  io_uring_sqe message{};
  message.opcode = IORING_OP_MSG_RING;
  message.fd = ring_.fd();
  message.addr = IORING_MSG_DATA;
  message.off = static_cast<uint64_t>(Tag::kMessage);
  return io_uring_register(static_cast<unsigned>(-1), kRegisterSendMessage, &message, 1);
}

void RingPoller::ArmDoorbell() noexcept {
  io_uring_sqe* const entry = ring_.NextEntry();
  if (entry == nullptr) return;  // MustNotSleep, and the next poll tries again.
  io_uring_prep_read(entry, doorbell_.get(), &doorbell_count_, sizeof(doorbell_count_), 0);
  entry->user_data = static_cast<uint64_t>(Tag::kDoorbell);
  doorbell_state_ = DoorbellState::kArmed;
}

void RingPoller::Wake() noexcept {
  if (doorbell_.is_open()) {
    const uint64_t one = 1;
    BOBBIN_CHECK(::write(doorbell_.get(), &one, sizeof(one)) == sizeof(one),
                 "the doorbell is gone");
    return;
  }
  int result;
  // The kernel allocates the message: that it has no memory is no reason to lose it.
  while ((result = SendMessage()) == -ENOMEM || result == -EAGAIN) sched_yield();
  BOBBIN_CHECK(result >= 0, fmt::format("io_uring: message: error {}", -result));
}

// --- The end

void RingPoller::CancelAll() noexcept {
  CheckOwner();
  is_stopping_ = true;
  if (doorbell_state_ == DoorbellState::kDown) doorbell_state_ = DoorbellState::kUnused;
  while (Op* const op = deferred_.Front()) {
    if (op->stage_ == Op::Stage::kDeferred) {
      CancelOp(*op);
    } else {
      deferred_.Remove(*op);
    }
  }
  io_uring_sqe* const entry = ring_.NextEntry();
  if (entry == nullptr) return;  // Called again.
  io_uring_prep_cancel64(entry, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
  entry->user_data = static_cast<uint64_t>(Tag::kCancel);
}

void RingPoller::Stop() noexcept {
  TakePosted();
  // The kernel must not write to the doorbell's count when the poller is gone.
  while (doorbell_state_ == DoorbellState::kArmed) {
    CancelAll();
    ring_.Wait(Deadline::After(std::chrono::milliseconds(10)));
    TakeCompletions();
  }
  ClosePool(&ring_);
  BOBBIN_CHECK(in_flight_ == 0, "a carrier ends while the kernel has operations of it");
  ring_.Disown();
}

}  // namespace bobbin::io::internal
