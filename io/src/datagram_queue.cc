// SPDX-License-Identifier: Apache-2.0

#include "io/src/datagram_queue.h"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <liburing.h>

#include <bobbin/core/role.h>
#include <bobbin/io/pooled_bytes.h>
#include <bobbin/io/udp.h>

#include "io/src/buffer_pool.h"
#include "io/src/io_poller.h"
#include "io/src/limits.h"

namespace bobbin::io::internal {

using bobbin::internal::SpinLockHolder;
using bobbin::internal::Thread;
using bobbin::internal::Waiter;
using bobbin::internal::WaitKind;
using bobbin::internal::WaitNumber;
using bobbin::internal::WaitObject;
using bobbin::internal::Wake;
using bobbin::internal::WakeList;

void ReleaseDatagramQueue::operator()(DatagramQueue* queue) const noexcept { queue->Release(); }

namespace {

constexpr WaitKind kReceiveWait = {"receive", WaitObject::kDescriptor};

// A buffer begins with what the kernel says of the datagram, and its peer's name.
constexpr size_t kNameBytes = sizeof(sockaddr_in6);
constexpr size_t kHeadBytes = sizeof(io_uring_recvmsg_out) + kNameBytes;
static_assert(kHeadBytes + UdpSocket::kAheadBytesMax == PooledBytes::kBytesMax);

// Whether the operation has ended for a reason that is nobody's business: it is started anew.
bool IsForNobody(int32_t result) noexcept {
  return result >= 0 || result == -ECANCELED || result == -ENOBUFS || result == -EINTR ||
         result == -EAGAIN;
}

}  // namespace

DatagramQueue::DatagramQueue(Socket& socket)
    : DatagramOp(socket.pollable(), shape_), socket_(socket) {
  shape_.msg_namelen = kNameBytes;
}

DatagramQueueHandle DatagramQueue::Make(Socket& socket) {
  auto queue = std::make_shared<DatagramQueue>(socket);
  queue->owned_self_ = queue;
  return DatagramQueueHandle(queue.get());
}

Result DatagramQueue::Receive(Thread& self, std::span<mmsghdr> messages) {
  // The owner may go while this waits.
  const std::shared_ptr<DatagramQueue> stay = shared_from_this();
  while (true) {
    if (self.ShouldStop()) return WhyStopped(self);
    IoPoller* const here = self.role() == Role::kVirtual ? &CurrentIoPoller() : nullptr;
    const bool can_start = here != nullptr && here->CanReceiveAhead();
    std::array<Arrived, UdpSocket::kBatchMax> taken;
    size_t count = 0;
    bool starts = false;
    bool must_call = false;
    Waiter waiter(kReceiveWait, WaitNumber(fd()));
    {
      SpinLockHolder hold(lock_);
      if (is_closing_) return -ESHUTDOWN;
      for (; count < messages.size() && !arrived_.empty(); ++count) {
        taken[count] = arrived_.front();
        arrived_.pop_front();
      }
      if (count == 0 && error_ != 0) return std::exchange(error_, 0);
      if (stage_ == Stage::kIdle && can_start && !is_refused_ && arrived_.size() <= kAheadResume) {
        stage_ = Stage::kRunning;
        starts = true;
      }
      must_call = count == 0 && stage_ == Stage::kIdle;
      if (count == 0 && !must_call) waiters_.PushBack(waiter);
    }
    if (starts) StartOp(*here);
    for (size_t i = 0; i < count; ++i) CopyOut(taken[i], messages[i]);
    if (count != 0) return static_cast<Result>(count);
    if (must_call) return socket_.ReceiveMessages(self, messages);

    const Wake wake = waiter.Park();
    if (wake == Wake::kNotified) continue;
    SpinLockHolder hold(lock_);
    waiters_.Forget(waiter);
    return StoppedBy(wake);
  }
}

void DatagramQueue::CopyOut(const Arrived& arrived, mmsghdr& message) noexcept {
  io_uring_recvmsg_out head;
  std::memcpy(&head, arrived.buffer, sizeof(head));
  msghdr& told = message.msg_hdr;
  const iovec& room = *told.msg_iov;
  const size_t payload = arrived.bytes - kHeadBytes;
  message.msg_len = static_cast<unsigned>(std::min(payload, room.iov_len));
  // The bytes of an empty buffer may be nowhere.
  if (message.msg_len != 0) {
    std::memcpy(room.iov_base, arrived.buffer + kHeadBytes, message.msg_len);
  }
  told.msg_flags = static_cast<int>(head.flags);
  if (payload > room.iov_len) told.msg_flags |= MSG_TRUNC;
  told.msg_namelen = static_cast<socklen_t>(
      std::min({size_t{head.namelen}, kNameBytes, size_t{told.msg_namelen}}));
  std::memcpy(told.msg_name, arrived.buffer + sizeof(head), told.msg_namelen);
  arrived.pool->GiveBack(arrived.buffer);
}

void DatagramQueue::StartOp(IoPoller& here) noexcept {
  op_use_.emplace(socket_, Socket::User::kGuest);
  op_self_ = shared_from_this();
  // One that is closing lets nobody in; its closer ends the wait.
  const bool is_in = op_use_->ok();
  if (is_in) here.StartReceiveAhead(*this);
  bool is_late = false;
  {
    SpinLockHolder hold(lock_);
    if (is_in) {
      op_poller_ = &here;
      is_late = is_closing_;
    } else {
      stage_ = Stage::kIdle;
    }
  }
  if (is_late) here.CancelOp(*this);
  if (is_in) return;
  op_use_.reset();
  op_self_.reset();
}

void DatagramQueue::OnDatagram(int32_t result, const PooledSlot& lent, bool is_last) noexcept {
  IoPoller& here = *poller();
  WakeList woken;
  bool is_wanted = false;
  bool must_stop = false;
  // Once it is idle, another carrier may start it.
  std::shared_ptr<DatagramQueue> self;
  if (is_last) {
    self = std::move(op_self_);
    op_use_.reset();
  }
  {
    SpinLockHolder hold(lock_);
    is_wanted = lent.pool != nullptr && !is_closing_;
    if (is_wanted) {
      arrived_.push_back(
          {.pool = lent.pool, .buffer = lent.buffer, .bytes = static_cast<size_t>(result)});
    }
    if (is_last) {
      op_poller_ = nullptr;
      stage_ = Stage::kIdle;
      TakeEnd(result);
    } else if (stage_ == Stage::kRunning && arrived_.size() >= kAheadMax) {
      stage_ = Stage::kStopping;
      must_stop = true;
    }
    if (Waiter* const waiter = waiters_.ClaimFront()) woken.Add(*waiter);
  }
  woken.Dispatch();
  if (lent.pool != nullptr && !is_wanted) lent.pool->GiveBack(lent.buffer);
  if (must_stop) here.CancelOp(*this);
}

void DatagramQueue::TakeEnd(int32_t result) noexcept {
  if (IsForNobody(result)) return;
  if (result == -EINVAL || result == -EOPNOTSUPP) {
    is_refused_ = true;
  } else {
    error_ = result;
  }
}

void DatagramQueue::Close() noexcept {
  WakeList woken;
  std::deque<Arrived> unwanted;
  {
    SpinLockHolder hold(lock_);
    if (std::exchange(is_closing_, true)) return;
    unwanted.swap(arrived_);
    if (Waiter* const waiter = waiters_.ClaimFront()) woken.Add(*waiter);
    if (op_poller_ != nullptr) {
      // Its last completion needs the lock: until then the poller stays.
      posted_self_ = shared_from_this();
      op_poller_->PostCancel(*this);
    }
  }
  woken.Dispatch();
  for (const Arrived& arrived : unwanted) arrived.pool->GiveBack(arrived.buffer);
}

void DatagramQueue::Release() noexcept {
  const std::shared_ptr<DatagramQueue> last = std::move(owned_self_);
  Close();
}

void DatagramQueue::OnPostedCancel() noexcept {
  const std::shared_ptr<DatagramQueue> last = std::move(posted_self_);
}

}  // namespace bobbin::io::internal
