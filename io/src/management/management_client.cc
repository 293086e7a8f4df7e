// SPDX-License-Identifier: Apache-2.0

#include "io/src/management/management_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

namespace bobbin::io::internal {

namespace {

// Whether the call may be made again when poll says so.
bool IsPassing(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

short ManagementClient::events() const { return state_ == State::kWriting ? POLLOUT : POLLIN; }

void ManagementClient::Refuse(const ManagementAnswer& answer) { Begin(answer.Text()); }

void ManagementClient::GoOn(const ManagementPages& pages) {
  if (state_ == State::kReading) Read(pages);
  if (state_ == State::kWriting) Write();
  if (state_ == State::kLingering) Linger();
}

void ManagementClient::Expire() {
  if (state_ == State::kReading && !request_.empty()) {
    Begin(ManagementRefusal(408, "the request took too long").Text());
    Write();
  } else {
    state_ = State::kEnded;
  }
}

void ManagementClient::Begin(std::string answer) {
  answer_ = std::move(answer);
  state_ = State::kWriting;
  deadline_ = Deadline::After(options_.request_budget);
}

void ManagementClient::Read(const ManagementPages& pages) {
  std::array<char, 4096> buffer;
  const ssize_t received = recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (received < 0 && IsPassing(errno)) return;
  if (received <= 0) {
    state_ = State::kEnded;
    return;
  }
  request_.append(buffer.data(), static_cast<size_t>(received));

  using Scan = http::internal::HeadScan::State;
  const Scan scanned = scan_.Scan(request_);
  if (scanned == Scan::kMalformed) {
    Begin(ManagementRefusal(400, "this is not a request of HTTP/1.1").Text());
  } else if ((scanned == Scan::kComplete ? scan_.bytes() : request_.size()) >
             options_.header_bytes_max) {
    Begin(ManagementRefusal(431, "the request's line and header are too long").Text());
  } else if (scanned == Scan::kComplete) {
    Begin(pages.Answer(std::string_view(request_).substr(0, scan_.bytes())).Text());
  }
}

void ManagementClient::Write() {
  while (written_ < answer_.size()) {
    const ssize_t sent = send(fd_.get(), answer_.data() + written_, answer_.size() - written_,
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && IsPassing(errno)) return;
    if (sent <= 0) {
      state_ = State::kEnded;
      return;
    }
    written_ += static_cast<size_t>(sent);
  }
  answer_ = {};
  shutdown(fd_.get(), SHUT_WR);
  state_ = State::kLingering;
}

void ManagementClient::Linger() {
  // So much at a time: a client that sends without end must not keep the others waiting.
  std::array<char, 16384> rest;
  const ssize_t received = recv(fd_.get(), rest.data(), rest.size(), MSG_DONTWAIT);
  if (received > 0 || (received < 0 && IsPassing(errno))) return;
  state_ = State::kEnded;
}

}  // namespace bobbin::io::internal
