// SPDX-License-Identifier: Apache-2.0

#include "tests/io/faulty_kernel.h"

#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <initializer_list>

#include <liburing.h>

namespace bobbin::test {

namespace {

Faults faults;
std::atomic<bool> is_faulty{false};
std::atomic<uint64_t> random_state{0};
std::atomic<uint64_t> fault_count{0};

uint64_t NextRandom() {
  uint64_t z = random_state.fetch_add(0x9e3779b97f4a7c15) + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Whether this call goes wrong in that way.
bool Fails(bool Faults::*kind) {
  if (!is_faulty.load() || !(faults.*kind) || NextRandom() % faults.one_in != 0) return false;
  ++fault_count;
  return true;
}

int OneOf(std::initializer_list<int> errors) {
  return errors.begin()[NextRandom() % errors.size()];
}

// Sets errno, for the caller to return.
ssize_t Fail(int error) {
  errno = error;
  return -1;
}

size_t Shortened(size_t bytes) { return bytes < 2 ? bytes : 1 + NextRandom() % bytes; }

bool IsStream(int fd) {
  int type = SOCK_DGRAM;
  socklen_t bytes = sizeof(type);
  ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes);
  return type == SOCK_STREAM;
}

// The same for one of several parts, or for the only one, which `part` then holds. A datagram is
// never cut.
void MaybeShorten(int fd, msghdr& message, iovec& part) {
  if (message.msg_iovlen == 0 || !IsStream(fd) || !Fails(&Faults::has_short_transfers)) return;
  if (message.msg_iovlen > 1) {
    message.msg_iovlen = Shortened(message.msg_iovlen);
  } else {
    part = message.msg_iov[0];
    part.iov_len = Shortened(part.iov_len);
    message.msg_iov = &part;
  }
}

bool IsPipe(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

// Whether a short read of it may hide more.
bool MayReadLess(int fd) {
  int family = AF_INET;
  socklen_t bytes = sizeof(family);
  ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &bytes);
  return family == AF_UNIX;
}

// The last events that were told, of this thread, that is of one carrier's epoll.
struct ToldEvents {
  std::array<epoll_event, 64> events{};
  size_t count = 0;
};
thread_local ToldEvents told;

int AddStaleEvents(epoll_event* events, int count, int count_max) {
  if (count < 0) return count;
  const int fresh = count;
  while (told.count > 0 && count < count_max && Fails(&Faults::has_stale_events)) {
    const size_t known = std::min(told.count, told.events.size());
    events[count++] = told.events[NextRandom() % known];
  }
  for (int i = 0; i < fresh; ++i) told.events[told.count++ % told.events.size()] = events[i];
  return count;
}

// The ring of this thread, whose entries are not yet submitted.
thread_local io_uring* own_ring = nullptr;

// What no kernel knows, and nobody has registered.
constexpr uint16_t kUnknownFlag = 1u << 14;
constexpr uint16_t kMissingGroup = 4711;

// Spoils what is to be submitted, and returns how many entries are.
unsigned SpoilEntries(unsigned count) {
  const io_uring_sq& queue = own_ring->sq;
  for (unsigned i = 0; i < count; ++i) {
    io_uring_sqe& entry = queue.sqes[(*queue.khead + i) & queue.ring_mask];
    const bool is_transfer = entry.opcode == IORING_OP_RECV || entry.opcode == IORING_OP_SEND ||
                             entry.opcode == IORING_OP_SEND_ZC;
    if (is_transfer && Fails(&Faults::has_short_transfers)) {
      entry.len = static_cast<uint32_t>(Shortened(entry.len));
    }
    const bool goes_on = entry.opcode == IORING_OP_RECVMSG && entry.ioprio != 0;
    if ((goes_on || entry.opcode == IORING_OP_SEND_ZC) && Fails(&Faults::has_unknown_requests)) {
      entry.ioprio |= kUnknownFlag;
    }
    const bool chooses = (entry.flags & IOSQE_BUFFER_SELECT) != 0;
    if (chooses && Fails(&Faults::has_missing_buffers)) entry.buf_group = kMissingGroup;
    const bool is_message = entry.opcode == IORING_OP_RECVMSG || entry.opcode == IORING_OP_SENDMSG;
    if (is_message && !goes_on) {
      // Whoever made the message makes it anew for the next call.
      auto& message = *reinterpret_cast<msghdr*>(entry.addr);
      MaybeShorten(entry.fd, message, message.msg_iov[0]);
    }
    const bool is_cancel = entry.opcode == IORING_OP_ASYNC_CANCEL;
    if ((is_cancel || i > 0) && Fails(&Faults::has_late_submissions)) return i;
  }
  return count;
}

}  // namespace

FaultyKernel::FaultyKernel(const Faults& wanted, uint64_t seed) {
  faults = wanted;
  random_state = seed;
  fault_count = 0;
  is_faulty = true;
}

FaultyKernel::~FaultyKernel() { is_faulty = false; }

uint64_t FaultyKernel::count() const { return fault_count; }

}  // namespace bobbin::test

// --- In the place of the C library's and liburing's

using bobbin::test::Fail;
using bobbin::test::Fails;
using bobbin::test::Faults;

extern "C" {

ssize_t recv(int fd, void* data, size_t bytes, int flags) {
  if (Fails(&Faults::has_interruptions)) return Fail(EINTR);
  if (bobbin::test::MayReadLess(fd) && Fails(&Faults::has_short_transfers)) {
    bytes = bobbin::test::Shortened(bytes);
  }
  return syscall(SYS_recvfrom, fd, data, bytes, flags, nullptr, nullptr);
}

ssize_t send(int fd, const void* data, size_t bytes, int flags) {
  if (Fails(&Faults::has_interruptions)) return Fail(EINTR);
  if (Fails(&Faults::has_short_transfers)) bytes = bobbin::test::Shortened(bytes);
  return syscall(SYS_sendto, fd, data, bytes, flags, nullptr, 0);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (Fails(&Faults::has_interruptions)) return Fail(EINTR);
  msghdr copy = *message;
  iovec part;
  if (bobbin::test::MayReadLess(fd)) bobbin::test::MaybeShorten(fd, copy, part);
  const long received = syscall(SYS_recvmsg, fd, &copy, flags);
  message->msg_namelen = copy.msg_namelen;
  message->msg_controllen = copy.msg_controllen;
  message->msg_flags = copy.msg_flags;
  return received;
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (Fails(&Faults::has_interruptions)) return Fail(EINTR);
  msghdr copy = *message;
  iovec part;
  bobbin::test::MaybeShorten(fd, copy, part);
  return syscall(SYS_sendmsg, fd, &copy, flags);
}

int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* time) {
  if (Fails(&Faults::has_interruptions)) return static_cast<int>(Fail(EINTR));
  if (Fails(&Faults::has_short_transfers)) {
    count = static_cast<unsigned>(bobbin::test::Shortened(count));
  }
  return static_cast<int>(syscall(SYS_recvmmsg, fd, messages, count, flags, time));
}

ssize_t read(int fd, void* data, size_t bytes) {
  if (bobbin::test::is_faulty.load() && bobbin::test::IsPipe(fd)) {
    if (Fails(&Faults::has_interruptions)) return Fail(EINTR);
    if (Fails(&Faults::has_short_transfers)) bytes = bobbin::test::Shortened(bytes);
  }
  return syscall(SYS_read, fd, data, bytes);
}

ssize_t pwritev2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  iovec part = parts[0];
  if (bobbin::test::is_faulty.load() && count == 1 && bobbin::test::IsPipe(fd)) {
    if (Fails(&Faults::has_interruptions)) return Fail(EINTR);
    if (Fails(&Faults::has_short_transfers)) part.iov_len = bobbin::test::Shortened(part.iov_len);
    parts = &part;
  }
  // The upper half of the offset has an argument of its own.
  return syscall(SYS_pwritev2, fd, parts, count, offset, offset >> 32, flags);
}

int accept4(int fd, sockaddr* address, socklen_t* bytes, int flags) {
  if (Fails(&Faults::has_interruptions)) return static_cast<int>(Fail(EINTR));
  if (Fails(&Faults::has_failing_accepts)) {
    return static_cast<int>(
        Fail(bobbin::test::OneOf({EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED, EPROTO})));
  }
  return static_cast<int>(syscall(SYS_accept4, fd, address, bytes, flags));
}

int epoll_wait(int epoll, epoll_event* events, int count_max, int milliseconds) {
  if (Fails(&Faults::has_interruptions)) return static_cast<int>(Fail(EINTR));
  const long count = syscall(SYS_epoll_pwait, epoll, events, count_max, milliseconds, nullptr, 0);
  return bobbin::test::AddStaleEvents(events, static_cast<int>(count), count_max);
}

int epoll_pwait2(int epoll, epoll_event* events, int count_max, const timespec* time,
                 const sigset_t* signals) {
  if (Fails(&Faults::has_interruptions)) return static_cast<int>(Fail(EINTR));
  const long count = syscall(SYS_epoll_pwait2, epoll, events, count_max, time, signals, _NSIG / 8);
  return bobbin::test::AddStaleEvents(events, static_cast<int>(count), count_max);
}

int io_uring_queue_init_params(unsigned entries, io_uring* ring, io_uring_params* parameters) {
  using Call = int(unsigned, io_uring*, io_uring_params*);
  static auto* const call = reinterpret_cast<Call*>(dlsym(RTLD_NEXT, "io_uring_queue_init_params"));
  const int result = call(entries, ring, parameters);
  if (result == 0) bobbin::test::own_ring = ring;
  return result;
}

int io_uring_enter2(unsigned fd, unsigned to_submit, unsigned wanted, unsigned flags,
                    sigset_t* signals, size_t bytes) {
  if (bobbin::test::is_faulty.load()) {
    if (Fails(&Faults::has_interruptions)) return -EINTR;
    if (Fails(&Faults::has_shortages)) return -bobbin::test::OneOf({EAGAIN, EBUSY, ENOMEM});
    const unsigned submitted = bobbin::test::SpoilEntries(to_submit);
    if (submitted < to_submit) {
      // A kernel that submits a part does not wait for completions.
      to_submit = submitted;
      wanted = 0;
      flags &= ~static_cast<unsigned>(IORING_ENTER_GETEVENTS);
    }
  }
  const long result = syscall(SYS_io_uring_enter, fd, to_submit, wanted, flags, signals, bytes);
  return result < 0 ? -errno : static_cast<int>(result);
}

}  // extern "C"
