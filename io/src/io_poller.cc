// SPDX-License-Identifier: Apache-2.0

#include "io/src/io_poller.h"

#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <typeinfo>
#include <utility>

#include <bobbin/core/check.h>
#include <bobbin/sched/internal/current_poller.h>

#include "io/src/epoll_poller.h"
#include "io/src/ring_poller.h"

namespace bobbin::io::internal {

namespace {
// Comparing types takes two loads; asking for a base class would take a search.
bool DoesIo(const Poller& poller) noexcept {
  return typeid(poller) == typeid(RingPoller) || typeid(poller) == typeid(EpollPoller);
}
}  // namespace

void IoPoller::CancelOp(Op& op) noexcept {
  BOBBIN_DCHECK(op.poller_ == this && op.stage_ != Op::Stage::kIdle, "nothing to cancel");
  if (op.is_cancel_wanted_) return;
  op.is_cancel_wanted_ = true;
  EndOp(op);
}

void IoPoller::MakePool() {
  pool_ = std::make_unique<BufferPool>().release();
  AttachPool(*pool_);
}

void IoPoller::ClosePool(Ring* ring) noexcept {
  if (BufferPool* const pool = std::exchange(pool_, nullptr)) pool->Close(ring);
}

int32_t IoPoller::CallPooled(const Op& op) noexcept {
  BufferPool& pool = Pool();
  std::byte* const buffer = pool.Take();
  const ssize_t received = ::recv(op.fd(), buffer, op.bytes(), MSG_DONTWAIT);
  const int error = received < 0 ? errno : 0;
  if (received > 0) {
    *static_cast<PooledSlot*>(op.data()) = {.pool = &pool, .buffer = buffer};
  } else {
    pool.GiveBack(buffer);
  }
  return error != 0 ? -error : static_cast<int32_t>(received);
}

void IoPoller::PostCancel(LastingOp& op) noexcept {
  LastingOp* first = posted_.load();
  do {
    op.next_posted_ = first;
  } while (!posted_.compare_exchange_weak(first, &op));
  Wake();
}

void IoPoller::CancelPosted() noexcept {
  LastingOp* next = nullptr;
  for (LastingOp* op = posted_.exchange(nullptr); op != nullptr; op = next) {
    next = op->next_posted_;
    if (op->stage_ != Op::Stage::kIdle) CancelOp(*op);
    op->OnPostedCancel();
  }
}

IoPoller& CurrentIoPoller() noexcept {
  Poller* const poller = bobbin::internal::CurrentPoller();
  BOBBIN_CHECK(poller != nullptr && DoesIo(*poller),
               "this runtime has no poller for I/O: start it with "
               "RuntimeOptions{.poller = bobbin::io::AutoPoller()}");
  return static_cast<IoPoller&>(*poller);
}

}  // namespace bobbin::io::internal
