// SPDX-License-Identifier: Apache-2.0

#include "bench/baseline/raw_multishot_server.h"

#include <poll.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <liburing.h>

#include "bench/baseline/raw_ring.h"
#include "bench/baseline/raw_server.h"
#include "bench/echo/server_meter.h"
#include "bench/echo/socket_address.h"

namespace bobbin::bench {
namespace {

// The kernel takes them in turn, so all of them are in use all the time: few stay warm in the
// cache. Of 128, 256, 512 and 1024, 256 were the fastest at 1000 connections.
constexpr unsigned kBuffers = 1024;
constexpr size_t kColourBytes = 64;
constexpr size_t kQueueBytes = kBuffers * sizeof(io_uring_buf);
constexpr uint16_t kGroup = 1;

// What a completion is for, in the two low bits of its user data; the descriptor is above.
enum class Operation : uint64_t { kAccept, kReceive, kSend, kStop };

uint64_t Tag(int fd, Operation operation) {
  return (static_cast<uint64_t>(fd) << 2) | static_cast<uint64_t>(operation);
}

constexpr uint16_t kNoBuffer = kBuffers;

// What was received and is not sent yet: a queue of buffers, of which the first one is being sent.
struct Connection {
  uint16_t first = kNoBuffer;
  uint16_t last = kNoBuffer;
  uint32_t sent = 0;  // Of the first.
  bool is_receiving = false;
  bool has_ended = false;  // Nothing will be received any more.
};

class RawMultishotServer {
 public:
  explicit RawMultishotServer(const RawServerParts& parts)
      : buffer_bytes_(parts.options.buffer_bytes), listener_(parts.listener), stop_(parts.stop) {}
  RawMultishotServer(const RawMultishotServer&) = delete;
  RawMultishotServer& operator=(const RawMultishotServer&) = delete;
  ~RawMultishotServer() {
    if (queue_ != nullptr) ::munmap(queue_, kQueueBytes);
  }

  // Returns the error text, empty if the ring is ready.
  std::string Open();

  // Serves until the stop descriptor is readable.
  std::string Serve();

  ServerMeter& meter() { return meter_; }

 private:
  struct Buffer {
    uint32_t bytes = 0;
    uint16_t next = kNoBuffer;
  };

  void Dispatch(const io_uring_cqe& completion);
  void Accept();
  void Receive(int fd);
  void Send(int fd);
  void OnAccepted(int result, bool is_last);
  void OnReceived(int fd, const io_uring_cqe& completion);
  void OnSent(int fd, int result);
  void Close(int fd);

  std::byte* At(uint16_t buffer) {
    return memory_.data() + buffer * (buffer_bytes_ + kColourBytes);
  }
  void Append(Connection& connection, uint16_t buffer);
  void DropFirst(Connection& connection);
  void GiveBack(uint16_t buffer);
  // Publishes what was given back, and has those receive again that found no buffer.
  void EndTurn();

  const size_t buffer_bytes_;
  ServerMeter meter_;
  std::vector<std::byte> memory_;
  std::vector<Buffer> buffers_;
  io_uring_buf_ring* queue_ = nullptr;
  int given_back_ = 0;                   // Since the last EndTurn.
  std::vector<Connection> connections_;  // By descriptor.
  std::vector<int> starved_;             // Their receive found no buffer.
  const int listener_;
  const int stop_;
  bool is_accepting_ = false;
  bool is_stopping_ = false;
  RawRing ring_;  // Ends before the memory that its requests name.
};

std::string RawMultishotServer::Open() {
  if (std::string error = ring_.Open(); !error.empty()) return error;
  void* const mapped =
      ::mmap(nullptr, kQueueBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return "io_uring buffers: " + ErrorText(errno);
  queue_ = static_cast<io_uring_buf_ring*>(mapped);
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<uint64_t>(mapped);
  registration.ring_entries = kBuffers;
  registration.bgid = kGroup;
  const int result = io_uring_register_buf_ring(&ring_.ring(), &registration, 0);
  if (result < 0) return "io_uring buffers: " + ErrorText(-result);

  memory_.resize(kBuffers * (buffer_bytes_ + kColourBytes));
  buffers_.resize(kBuffers);
  for (uint16_t buffer = 0; buffer < kBuffers; ++buffer) GiveBack(buffer);
  EndTurn();
  return "";
}

std::string RawMultishotServer::Serve() {
  Accept();
  io_uring_sqe* entry = ring_.NextEntry();
  io_uring_prep_poll_add(entry, stop_, POLLIN);
  entry->user_data = Tag(stop_, Operation::kStop);

  while (!is_stopping_) {
    if (std::string error = ring_.Wait(); !error.empty()) return error;
    ring_.Reap([this](const io_uring_cqe& completion) { Dispatch(completion); });
    EndTurn();
  }
  return "";
}

void RawMultishotServer::Dispatch(const io_uring_cqe& completion) {
  const int fd = static_cast<int>(completion.user_data >> 2);
  switch (static_cast<Operation>(completion.user_data & 3)) {
    case Operation::kReceive:
      return OnReceived(fd, completion);
    case Operation::kSend:
      return OnSent(fd, completion.res);
    case Operation::kAccept:
      return OnAccepted(completion.res, (completion.flags & IORING_CQE_F_MORE) == 0);
    case Operation::kStop:
      is_stopping_ = true;
      return;
  }
}

void RawMultishotServer::Accept() {
  io_uring_sqe* entry = ring_.NextEntry();
  io_uring_prep_multishot_accept(entry, listener_, nullptr, nullptr, SOCK_CLOEXEC);
  entry->user_data = Tag(listener_, Operation::kAccept);
  is_accepting_ = true;
}

void RawMultishotServer::Receive(int fd) {
  io_uring_sqe* entry = ring_.NextEntry();
  io_uring_prep_recv_multishot(entry, fd, nullptr, 0, 0);
  entry->flags |= IOSQE_BUFFER_SELECT;
  entry->buf_group = kGroup;
  entry->user_data = Tag(fd, Operation::kReceive);
  connections_[static_cast<size_t>(fd)].is_receiving = true;
}

void RawMultishotServer::Send(int fd) {
  const Connection& connection = connections_[static_cast<size_t>(fd)];
  io_uring_sqe* entry = ring_.NextEntry();
  io_uring_prep_send(entry, fd, At(connection.first) + connection.sent,
                     buffers_[connection.first].bytes - connection.sent, MSG_NOSIGNAL);
  entry->user_data = Tag(fd, Operation::kSend);
}

void RawMultishotServer::OnAccepted(int result, bool is_last) {
  if (result >= 0) {
    const size_t index = static_cast<size_t>(result);
    if (index >= connections_.size()) connections_.resize(index + 1);
    connections_[index] = {};
    meter_.OnOpen();
    Receive(result);
  }
  if (!is_last) return;
  // Out of descriptors or memory: asking again at once would spin. The next close asks.
  is_accepting_ = false;
  const bool is_exhausted =
      result == -EMFILE || result == -ENFILE || result == -ENOBUFS || result == -ENOMEM;
  if (!is_exhausted) Accept();
}

void RawMultishotServer::OnReceived(int fd, const io_uring_cqe& completion) {
  Connection& connection = connections_[static_cast<size_t>(fd)];
  connection.is_receiving = (completion.flags & IORING_CQE_F_MORE) != 0;
  if (completion.res > 0) {
    meter_.OnReceive(static_cast<size_t>(completion.res));
    const auto buffer = static_cast<uint16_t>(completion.flags >> IORING_CQE_BUFFER_SHIFT);
    buffers_[buffer] = {.bytes = static_cast<uint32_t>(completion.res)};
    const bool is_idle = connection.first == kNoBuffer;
    Append(connection, buffer);
    if (is_idle) Send(fd);
    if (!connection.is_receiving) Receive(fd);
  } else if (completion.res == -ENOBUFS) {
    starved_.push_back(fd);
  } else {
    connection.has_ended = true;
    if (connection.first == kNoBuffer) Close(fd);
  }
}

void RawMultishotServer::OnSent(int fd, int result) {
  Connection& connection = connections_[static_cast<size_t>(fd)];
  if (result < 0) {
    while (connection.first != kNoBuffer) DropFirst(connection);
    // The receive meets the end, too, and closes.
    if (connection.is_receiving) return;
    return Close(fd);
  }
  connection.sent += static_cast<uint32_t>(result);
  if (connection.sent == buffers_[connection.first].bytes) DropFirst(connection);
  if (connection.first != kNoBuffer) return Send(fd);
  if (connection.has_ended) Close(fd);
}

void RawMultishotServer::Close(int fd) {
  meter_.OnClose();
  connections_[static_cast<size_t>(fd)].has_ended = true;
  ::close(fd);
  if (!is_accepting_) Accept();
}

void RawMultishotServer::Append(Connection& connection, uint16_t buffer) {
  if (connection.first == kNoBuffer) {
    connection.first = buffer;
  } else {
    buffers_[connection.last].next = buffer;
  }
  connection.last = buffer;
}

void RawMultishotServer::DropFirst(Connection& connection) {
  const uint16_t buffer = connection.first;
  connection.first = buffers_[buffer].next;
  connection.sent = 0;
  GiveBack(buffer);
}

void RawMultishotServer::GiveBack(uint16_t buffer) {
  io_uring_buf_ring_add(queue_, At(buffer), static_cast<unsigned>(buffer_bytes_), buffer,
                        io_uring_buf_ring_mask(kBuffers), given_back_++);
}

void RawMultishotServer::EndTurn() {
  if (given_back_ == 0) return;
  io_uring_buf_ring_advance(queue_, std::exchange(given_back_, 0));
  for (const int fd : std::exchange(starved_, {})) {
    const Connection& connection = connections_[static_cast<size_t>(fd)];
    if (!connection.is_receiving && !connection.has_ended) Receive(fd);
  }
}

}  // namespace

int RunRawMultishotServer(const ServerOptions& options) {
  return RunRawServer<RawMultishotServer>("raw-multishot", options);
}

}  // namespace bobbin::bench
