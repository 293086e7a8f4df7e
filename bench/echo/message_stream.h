// SPDX-License-Identifier: Apache-2.0
//
// MessageStream: what one client connection has sent and what must come back, without any I/O.
//
// Every message has a place in a circle of `depth` places. It is written there when it is due, sent
// from there, and stays there until its echo has arrived, so that each byte of the echo is compared
// with the byte that was sent. Messages carry their number and their connection's: a lost, doubled,
// reordered or misdirected message is a wrong byte.
//
//   Called from  one thread.
//   Cost         A message: one store of its number and one comparison of its bytes.

#ifndef BOBBIN_BENCH_ECHO_MESSAGE_STREAM_H_
#define BOBBIN_BENCH_ECHO_MESSAGE_STREAM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace bobbin::bench {

class MessageStream {
 public:
  // `places` has room for `due_at.size()` messages of equal size; both spans must outlive the
  // stream. REQUIRES: at least one message of at least one byte.
  MessageStream(uint32_t connection, std::span<std::byte> places, std::span<uint64_t> due_at);

  // Makes new messages, due at `now`, until `depth` are in flight.
  void Fill(uint64_t now) {
    while (in_flight_ < due_at_.size()) MakeNext(now);
  }

  // The bytes to send next: those of messages made, up to the end of the circle. Empty: none.
  std::span<const std::byte> Unsent() const {
    return places_.subspan(send_position_,
                           std::min(unsent_bytes_, places_.size() - send_position_));
  }

  void OnSent(size_t bytes) {
    send_position_ += bytes;
    if (send_position_ == places_.size()) send_position_ = 0;
    unsent_bytes_ -= bytes;
  }

  // Compares `bytes` with what must come back next and calls `on_message(due_at)` for each message
  // that they complete. Returns false at the first wrong byte, and for a byte nobody sent.
  template <typename OnMessage>
  [[nodiscard]] bool OnReceived(std::span<const std::byte> bytes, OnMessage&& on_message) {
    while (!bytes.empty()) {
      if (in_flight_ == 0) return false;
      const size_t begin = receive_place_ * message_bytes_ + receive_offset_;
      const size_t taken = std::min(message_bytes_ - receive_offset_, bytes.size());
      if (std::memcmp(places_.data() + begin, bytes.data(), taken) != 0) return false;
      bytes = bytes.subspan(taken);
      receive_offset_ += taken;
      if (receive_offset_ < message_bytes_) break;
      receive_offset_ = 0;
      on_message(due_at_[receive_place_]);
      receive_place_ = Next(receive_place_);
      --in_flight_;
    }
    return true;
  }

  size_t in_flight() const { return in_flight_; }

 private:
  void MakeNext(uint64_t now) {
    std::byte* message = places_.data() + make_place_ * message_bytes_;
    const uint64_t number = connection_mark_ + ++made_;
    std::memcpy(message, &number, std::min(sizeof(number), message_bytes_));
    due_at_[make_place_] = now;
    make_place_ = Next(make_place_);
    unsent_bytes_ += message_bytes_;
    ++in_flight_;
  }

  size_t Next(size_t place) const { return place + 1 == due_at_.size() ? 0 : place + 1; }

  std::span<std::byte> places_;
  std::span<uint64_t> due_at_;
  size_t message_bytes_;
  uint64_t connection_mark_;

  uint64_t made_ = 0;
  size_t in_flight_ = 0;
  size_t make_place_ = 0;
  size_t unsent_bytes_ = 0;
  size_t send_position_ = 0;
  size_t receive_place_ = 0;
  size_t receive_offset_ = 0;
};

}  // namespace bobbin::bench

#endif  // BOBBIN_BENCH_ECHO_MESSAGE_STREAM_H_
