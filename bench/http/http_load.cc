// SPDX-License-Identifier: Apache-2.0

#include "bench/http/http_load.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/echo/latency_histogram.h"
#include "bench/echo/load_ring.h"
#include "bench/echo/process_setup.h"
#include "bench/echo/socket_address.h"
#include "bench/echo/unique_fd.h"

namespace bobbin::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kStatusLine = "HTTP/1.1 200 OK\r\n";
constexpr size_t kReceiveBytesMax = 16384;

uint64_t Now() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
}

uint64_t Nanoseconds(double seconds) { return static_cast<uint64_t>(seconds * 1e9); }

// User and system time of the process, in seconds.
double CpuSeconds(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
  std::string skipped;
  double user = 0;
  double system = 0;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// Of a server and its children, which do the work of some.
double ServerCpuSeconds(int pid) {
  if (pid == 0) return 0;
  const std::string name = std::to_string(pid);
  double sum = CpuSeconds(name);
  std::ifstream children("/proc/" + name + "/task/" + name + "/children");
  for (std::string child; children >> child;) sum += CpuSeconds(child);
  return sum;
}

// The whole length of an answer of which `text` has the header; nothing where it does not.
std::optional<size_t> AnswerBytes(std::string_view text) {
  const size_t end = text.find("\r\n\r\n");
  if (end == text.npos) return std::nullopt;
  constexpr std::string_view kLength = "Content-Length: ";
  const size_t at = text.find(kLength);
  if (at == text.npos || at > end) return std::nullopt;
  size_t length = 0;
  std::from_chars(text.data() + at + kLength.size(), text.data() + end, length);
  return end + 4 + length;
}

struct Connection {
  UniqueFd fd;
  std::vector<uint64_t> sent_at;  // A ring: of the requests in flight, the oldest at `oldest`.
  size_t oldest = 0;
  std::string begin;  // Of the present answer, as far as it is looked at.
  size_t answer_bytes = 0;
  size_t have = 0;  // Of the present answer.
};

class HttpLoad {
 public:
  HttpLoad(const HttpLoadOptions& options, const SocketAddress& server)
      : options_(options),
        server_(server),
        request_("GET " + options.path + " HTTP/1.1\r\nHost: " + server.ToString() +
                 "\r\nUser-Agent: bobbin-http-load\r\nAccept: */*\r\n"
                 "Connection: keep-alive\r\n\r\n") {
    for (uint32_t i = 0; i < options.depth; ++i) requests_ += request_;
  }

  HttpLoadResult Run() {
    Prepare();
    if (result_.error.empty()) Exchange();
    for (Connection& connection : connections_) {
      if (connection.fd.is_open()) ::shutdown(connection.fd.get(), SHUT_RDWR);
    }
    return std::move(result_);
  }

 private:
  void Prepare() {
    result_.error = PinToCpu(options_.cpu);
    RaiseFileLimit();
    if (result_.error.empty()) result_.error = ring_.Open(kReceiveBytesMax);
    for (uint32_t i = 0; i < options_.connections && result_.error.empty(); ++i) {
      UniqueFd fd(::socket(server_.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
      const int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      if (::connect(fd.get(), server_.get(), server_.length()) != 0) {
        result_.error = "connect: " + ErrorText(errno);
      }
      connections_.push_back(
          {.fd = std::move(fd), .sent_at = std::vector<uint64_t>(options_.depth), .begin = {}});
    }
  }

  void Exchange() {
    now_ = Now();
    const uint64_t begin = now_ + Nanoseconds(options_.warmup_seconds);
    const uint64_t end = begin + Nanoseconds(options_.seconds);
    for (uint32_t i = 0; i < options_.connections; ++i) {
      Receive(i);
      std::fill(connections_[i].sent_at.begin(), connections_[i].sent_at.end(), now_);
      Send(i, options_.depth);
    }
    TurnUntil(begin);
    is_measuring_ = true;
    const double cpu_before = ServerCpuSeconds(options_.server_pid);
    const uint64_t measured_from = now_;
    TurnUntil(end);
    const double cpu = ServerCpuSeconds(options_.server_pid) - cpu_before;
    if (result_.requests == 0) return;
    const auto requests = static_cast<double>(result_.requests);
    result_.requests_per_second = requests * 1e9 / static_cast<double>(now_ - measured_from);
    result_.server_cpu_us_per_request = cpu * 1e6 / requests;
    result_.p50_us = static_cast<double>(times_.Quantile(0.5)) / 1000;
    result_.p99_us = static_cast<double>(times_.Quantile(0.99)) / 1000;
  }

  void TurnUntil(uint64_t end) {
    while (result_.error.empty() && now_ < end) {
      if (std::string error = ring_.Poll(); !error.empty()) result_.error = std::move(error);
      now_ = Now();
      ring_.Reap([this](const io_uring_cqe& completion) { Dispatch(completion); });
    }
  }

  void Dispatch(const io_uring_cqe& completion) {
    const auto index = static_cast<uint32_t>(completion.user_data >> 1);
    const bool is_send = (completion.user_data & 1) != 0;
    if (is_send) {
      if (completion.res <= 0) result_.error = "send: " + ErrorText(-completion.res);
      return;
    }
    if (completion.res > 0) OnReceived(index, ring_.Received(completion));
    if ((completion.flags & IORING_CQE_F_BUFFER) != 0) ring_.GiveBack(completion);
    if (completion.res == 0) {
      result_.error = "the server has closed a connection";
    } else if (completion.res < 0 && completion.res != -ENOBUFS) {
      result_.error = "receive: " + ErrorText(-completion.res);
    } else if ((completion.flags & IORING_CQE_F_MORE) == 0) {
      Receive(index);
    }
  }

  void OnReceived(uint32_t index, std::span<const std::byte> bytes) {
    Connection& connection = connections_[index];
    std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    uint32_t answered = 0;
    while (!rest.empty()) {
      if (connection.answer_bytes == 0) {
        // The first one: its header is looked at.
        connection.begin.append(rest);
        rest = {};
        const std::optional<size_t> length = AnswerBytes(connection.begin);
        if (!length.has_value()) return;
        connection.answer_bytes = *length;
        rest = connection.begin;
      }
      const size_t take = std::min(rest.size(), connection.answer_bytes - connection.have);
      if (connection.have < kStatusLine.size()) {
        const size_t looked = std::min(take, kStatusLine.size() - connection.have);
        if (rest.substr(0, looked) != kStatusLine.substr(connection.have, looked)) {
          result_.error = "an answer begins with " + std::string(rest.substr(0, looked));
          return;
        }
      }
      connection.have += take;
      rest.remove_prefix(take);
      if (connection.have < connection.answer_bytes) break;
      connection.have = 0;
      ++answered;
      if (is_measuring_) {
        times_.Add(now_ - connection.sent_at[connection.oldest]);
        ++result_.requests;
      }
      connection.sent_at[connection.oldest] = now_;
      connection.oldest = (connection.oldest + 1) % options_.depth;
    }
    if (answered > 0) Send(index, answered);
  }

  void Receive(uint32_t index) {
    io_uring_sqe* const entry = ring_.NextEntry();
    io_uring_prep_recv_multishot(entry, connections_[index].fd.get(), nullptr, 0, 0);
    entry->ioprio |= IORING_RECVSEND_POLL_FIRST;
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = LoadRing::kBufferGroup;
    entry->user_data = uint64_t{index} << 1;
  }

  // Short ones: the socket's buffer always has room for them.
  void Send(uint32_t index, uint32_t count) {
    io_uring_sqe* const entry = ring_.NextEntry();
    io_uring_prep_send(entry, connections_[index].fd.get(), requests_.data(),
                       request_.size() * count, MSG_NOSIGNAL);
    entry->user_data = uint64_t{index} << 1 | 1;
  }

  const HttpLoadOptions& options_;
  const SocketAddress& server_;
  const std::string request_;
  std::string requests_;  // As many as a connection has in flight.
  LoadRing ring_;
  std::vector<Connection> connections_;
  LatencyHistogram times_;
  HttpLoadResult result_;
  uint64_t now_ = 0;
  bool is_measuring_ = false;
};

}  // namespace

HttpLoadResult RunHttpLoad(const HttpLoadOptions& options) {
  const std::optional<SocketAddress> server = SocketAddress::Parse(options.host, options.port);
  if (!server.has_value()) return {.error = "host " + options.host + ": not a numeric address"};
  if (options.connections == 0 || options.depth == 0) {
    return {.error = "connections and depth: at least 1"};
  }
  return HttpLoad(options, *server).Run();
}

}  // namespace bobbin::bench
