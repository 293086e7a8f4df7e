// SPDX-License-Identifier: Apache-2.0

#include "tests/io/dns_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include <bobbin/core/check.h>

namespace bobbin::test {

using WireBytes = std::string;

struct WireQuestion {
  WireBytes number;  // Two bytes.
  WireBytes bytes;   // Name, type and class as they came.
  DnsAsked asked;
};

namespace {

constexpr uint8_t kTypeA = 1, kTypeCname = 5, kTypeSoa = 6, kTypeAaaa = 28;
constexpr size_t kHeaderBytes = 12;

void PutNumber(uint32_t number, int bytes, WireBytes& out) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(number >> 8 * i & 255);
}

void PutName(std::string_view name, WireBytes& out) {
  while (!name.empty()) {
    const std::string_view label = name.substr(0, name.find('.'));
    out += static_cast<char>(label.size());
    out += label;
    name.remove_prefix(std::min(label.size() + 1, name.size()));
  }
  out += '\0';
}

void PutRecord(std::string_view name, uint8_t type, uint32_t keep, const WireBytes& data,
               WireBytes& out) {
  PutName(name, out);
  PutNumber(type, 2, out);
  PutNumber(1, 2, out);
  PutNumber(keep, 4, out);
  PutNumber(static_cast<uint32_t>(data.size()), 2, out);
  out += data;
}

WireBytes NameBytes(std::string_view name) {
  WireBytes bytes;
  PutName(name, bytes);
  return bytes;
}

// The address, if it is of that family.
WireBytes AddressBytes(const std::string& text, bool is_ipv6) {
  std::array<char, 16> bytes;
  if (inet_pton(is_ipv6 ? AF_INET6 : AF_INET, text.c_str(), bytes.data()) != 1) return {};
  return {bytes.data(), is_ipv6 ? size_t{16} : size_t{4}};
}

WireQuestion ParseQuestion(const WireBytes& message, bool is_over_tcp) {
  WireQuestion question;
  question.number = message.substr(0, 2);
  size_t at = kHeaderBytes;
  while (at < message.size() && message[at] != 0) {
    const auto length = static_cast<size_t>(message[at]);
    if (!question.asked.name.empty()) question.asked.name += '.';
    question.asked.name += message.substr(at + 1, length);
    at += length + 1;
  }
  BOBBIN_CHECK(at + 5 <= message.size(), "c-ares sends whole questions");
  question.asked.is_ipv6 = message[at + 2] == static_cast<char>(kTypeAaaa);
  question.asked.is_over_tcp = is_over_tcp;
  question.bytes = message.substr(kHeaderBytes, at + 5 - kHeaderBytes);
  return question;
}

WireBytes Header(const WireQuestion& question, uint8_t code, bool is_truncated, uint32_t answers,
                 uint32_t authorities) {
  WireBytes out = question.number;
  out += static_cast<char>(is_truncated ? 0x83 : 0x81);
  out += static_cast<char>(0x80 | code);
  PutNumber(1, 2, out);
  PutNumber(answers, 2, out);
  PutNumber(authorities, 2, out);
  PutNumber(0, 2, out);
  return out + question.bytes;
}

WireBytes Answer(const WireQuestion& question, const DnsReply& reply) {
  const bool is_truncated = reply.delivery == DnsReply::Delivery::kTruncated ||
                            reply.delivery == DnsReply::Delivery::kHungUp;
  if (is_truncated && !question.asked.is_over_tcp) return Header(question, 0, true, 0, 0);
  WireBytes records;
  uint32_t count = 0;
  if (reply.delivery == DnsReply::Delivery::kLooping) {
    // The name is a pointer to itself.
    const size_t at = kHeaderBytes + question.bytes.size();
    PutNumber(static_cast<uint32_t>(0xc000 | at), 2, records);
    PutNumber(question.asked.is_ipv6 ? kTypeAaaa : kTypeA, 2, records);
    PutNumber(1, 2, records);
    PutNumber(60, 4, records);
    PutNumber(0, 2, records);
    return Header(question, 0, false, 1, 0) + records;
  }
  const std::string owner = reply.alias.empty() ? question.asked.name : reply.alias;
  if (!reply.alias.empty()) {
    PutRecord(question.asked.name, kTypeCname, reply.keep, NameBytes(reply.alias), records);
    ++count;
  }
  for (const std::string& text : reply.addresses) {
    const WireBytes address = AddressBytes(text, question.asked.is_ipv6);
    if (address.empty()) continue;
    PutRecord(owner, question.asked.is_ipv6 ? kTypeAaaa : kTypeA, reply.keep, address, records);
    ++count;
  }
  uint32_t authorities = 0;
  if (reply.keep_nothing) {
    WireBytes soa = NameBytes("ns.test") + NameBytes("admin.test");
    for (const uint32_t number : {1u, 2u, 3u, 4u, *reply.keep_nothing}) PutNumber(number, 4, soa);
    PutRecord("test", kTypeSoa, *reply.keep_nothing, soa, records);
    authorities = 1;
  }
  if (reply.delivery == DnsReply::Delivery::kCut) records.resize(records.size() - 3);
  return Header(question, reply.code, false, count, authorities) + records;
}

WireBytes Nonsense(const WireQuestion& question, DnsNonsense kind) {
  const DnsReply wrong{.addresses = {"203.0.113.66", "2001:db8::66"}};
  WireQuestion other = question;
  switch (kind) {
    case DnsNonsense::kWrongNumber:
      other.number[1] = static_cast<char>(other.number[1] ^ 0x55);
      return Answer(other, wrong);
    case DnsNonsense::kWrongQuestion:
      other.bytes[1] = other.bytes[1] == 'z' ? 'y' : 'z';
      return Answer(other, wrong);
    case DnsNonsense::kGarbage:
      return WireBytes(40, '\xff');
    case DnsNonsense::kShort:
      return question.number + "x";
  }
  return {};
}

}  // namespace

struct DnsServer::State {
  struct Held {
    WireQuestion question;
    DnsReply reply;
    int fd;
    sockaddr_in peer;
  };

  void Run();
  void TakeDatagram();
  // False when the peer has ended.
  bool TakeFromConnection(int fd);
  void Serve(const WireQuestion& question, int fd, const sockaddr_in& peer);
  void Send(const WireQuestion& question, const DnsReply& reply, int fd, const sockaddr_in& peer);
  void SendBytes(const WireBytes& bytes, bool is_over_tcp, int fd, const sockaddr_in& peer);

  Handler handler;
  io::SocketAddress address;
  int udp = -1;
  int tcp = -1;
  int wake = -1;
  std::vector<int> connections;  // The server's thread only.
  std::vector<Held> held;        // The server's thread only.

  std::mutex mutex;
  std::vector<DnsAsked> asked;       // Guarded by `mutex`.
  std::atomic<bool> is_over{false};  // Both written by the test.
  std::atomic<bool> is_released{false};
  std::thread thread;
};

void DnsServer::State::SendBytes(const WireBytes& bytes, bool is_over_tcp, int fd,
                                 const sockaddr_in& peer) {
  if (!is_over_tcp) {
    ::sendto(fd, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&peer),
             sizeof(peer));
    return;
  }
  WireBytes framed;
  PutNumber(static_cast<uint32_t>(bytes.size()), 2, framed);
  framed += bytes;
  ::send(fd, framed.data(), framed.size(), MSG_NOSIGNAL);
}

void DnsServer::State::Send(const WireQuestion& question, const DnsReply& reply, int fd,
                            const sockaddr_in& peer) {
  const bool is_over_tcp = question.asked.is_over_tcp;
  for (const DnsNonsense kind : reply.before) {
    SendBytes(Nonsense(question, kind), is_over_tcp, fd, peer);
  }
  if (reply.delivery == DnsReply::Delivery::kDropped) return;
  if (reply.delivery == DnsReply::Delivery::kHungUp && is_over_tcp) {
    ::shutdown(fd, SHUT_RDWR);
    return;
  }
  SendBytes(Answer(question, reply), is_over_tcp, fd, peer);
}

void DnsServer::State::Serve(const WireQuestion& question, int fd, const sockaddr_in& peer) {
  {
    const std::lock_guard lock(mutex);
    asked.push_back(question.asked);
  }
  const DnsReply reply = handler(question.asked);
  if (reply.delivery == DnsReply::Delivery::kHeld && !is_released) {
    held.push_back({question, reply, fd, peer});
    return;
  }
  Send(question, reply, fd, peer);
}

void DnsServer::State::TakeDatagram() {
  std::array<char, 4096> buffer;
  sockaddr_in peer{};
  socklen_t bytes = sizeof(peer);
  const ssize_t count = ::recvfrom(udp, buffer.data(), buffer.size(), MSG_DONTWAIT,
                                   reinterpret_cast<sockaddr*>(&peer), &bytes);
  if (count <= static_cast<ssize_t>(kHeaderBytes)) return;
  Serve(ParseQuestion(WireBytes(buffer.data(), static_cast<size_t>(count)), false), udp, peer);
}

bool DnsServer::State::TakeFromConnection(int fd) {
  std::array<uint8_t, 2> length;
  if (::recv(fd, length.data(), 2, MSG_WAITALL) != 2) return false;
  WireBytes message(static_cast<size_t>(length[0] << 8 | length[1]), '\0');
  if (::recv(fd, message.data(), message.size(), MSG_WAITALL) !=
      static_cast<ssize_t>(message.size())) {
    return false;
  }
  Serve(ParseQuestion(message, true), fd, {});
  return true;
}

void DnsServer::State::Run() {
  while (!is_over) {
    std::vector<pollfd> entries = {{udp, POLLIN, 0}, {tcp, POLLIN, 0}, {wake, POLLIN, 0}};
    for (const int fd : connections) entries.push_back({fd, POLLIN, 0});
    ::poll(entries.data(), entries.size(), -1);
    if (entries[0].revents != 0) TakeDatagram();
    for (size_t i = 3; i < entries.size(); ++i) {
      if (entries[i].revents == 0 || TakeFromConnection(entries[i].fd)) continue;
      std::erase(connections, entries[i].fd);
      std::erase_if(held, [&](const Held& one) { return one.fd == entries[i].fd; });
      ::close(entries[i].fd);
    }
    if (entries[1].revents != 0) {
      const int fd = ::accept4(tcp, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) connections.push_back(fd);
    }
    if (entries[2].revents != 0) {
      uint64_t count = 0;
      BOBBIN_CHECK(::read(wake, &count, sizeof(count)) == sizeof(count), "eventfd");
    }
    if (is_released) {
      for (const Held& one : std::exchange(held, {})) {
        Send(one.question, one.reply, one.fd, one.peer);
      }
    }
  }
  for (const int fd : connections) ::close(fd);
}

DnsServer::DnsServer(Handler handler) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.handler = std::move(handler);
  sockaddr_in local{};
  local.sin_family = AF_INET;
  local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const address = reinterpret_cast<sockaddr*>(&local);
  // Another program may have the one that is free for UDP for TCP.
  while (state.tcp < 0) {
    local.sin_port = 0;
    socklen_t bytes = sizeof(local);
    const int udp = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int tcp = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    BOBBIN_CHECK(::bind(udp, address, bytes) == 0, "bind");
    BOBBIN_CHECK(::getsockname(udp, address, &bytes) == 0, "getsockname");
    if (::bind(tcp, address, bytes) == 0 && ::listen(tcp, 64) == 0) {
      state.udp = udp;
      state.tcp = tcp;
    } else {
      ::close(udp);
      ::close(tcp);
    }
  }
  state.address = *io::SocketAddress::FromSockaddr(address, sizeof(local));
  state.wake = ::eventfd(0, EFD_CLOEXEC);
  state.thread = std::thread([&state] { state.Run(); });
}

DnsServer::~DnsServer() {
  state_->is_over = true;
  const uint64_t one = 1;
  BOBBIN_CHECK(::write(state_->wake, &one, sizeof(one)) == sizeof(one), "eventfd");
  state_->thread.join();
  ::close(state_->udp);
  ::close(state_->tcp);
  ::close(state_->wake);
}

const io::SocketAddress& DnsServer::address() const { return state_->address; }

std::vector<DnsAsked> DnsServer::asked() const {
  const std::lock_guard lock(state_->mutex);
  return state_->asked;
}

size_t DnsServer::CountOf(const std::string& name) const {
  const std::vector<DnsAsked> all = asked();
  return static_cast<size_t>(
      std::count_if(all.begin(), all.end(), [&](const DnsAsked& one) { return one.name == name; }));
}

std::vector<std::string> DnsServer::names() const {
  std::vector<std::string> names;
  for (const DnsAsked& one : asked()) {
    if (names.empty() || names.back() != one.name) names.push_back(one.name);
  }
  return names;
}

void DnsServer::Release() {
  state_->is_released = true;
  const uint64_t one = 1;
  BOBBIN_CHECK(::write(state_->wake, &one, sizeof(one)) == sizeof(one), "eventfd");
}

}  // namespace bobbin::test
