// SPDX-License-Identifier: Apache-2.0
//
// TcpProxy: stands between a client and a server on this machine, and spoils what they say.
//
// It has an OS thread of its own, so that it goes on whatever the runtime under test does.
//
//   Called from   any thread.
//   Suspends      never.
//
// Example:
//   TcpProxy proxy(server_port);
//   proxy.Stall();  // From now on nothing gets through.

#ifndef BOBBIN_TESTS_DB_TCP_PROXY_H_
#define BOBBIN_TESTS_DB_TCP_PROXY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <list>
#include <string>
#include <thread>

namespace bobbin::test {

class TcpProxy {
 public:
  explicit TcpProxy(int server_port);
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;
  // Ends all connections.
  ~TcpProxy();

  int port() const { return port_; }
  // Nothing gets through, and nobody new is connected further, until Resume.
  void Stall() { Set(Mode::kStalled); }
  void Resume() { Set(Mode::kOpen); }
  // The same from when so many bytes have come from clients; the last of them are not passed on.
  void StallBehind(size_t bytes) { stall_behind_ = bytes; }
  bool is_stalled() const { return mode_ == Mode::kStalled; }
  // Resets all connections that there are.
  void Cut() { Order(cuts_); }
  // Tells all clients that their server will say nothing more, and lets them go on.
  void HalfClose() { Order(half_closes_); }
  // What comes is passed on in pieces of so many bytes, each after a pause of a millisecond.
  void PassInPieces(size_t bytes) { piece_bytes_ = bytes; }
  // Connections that there are.
  int connections() const { return connections_; }
  // Those that came, in all.
  int accepted() const { return accepted_; }

 private:
  enum class Mode { kOpen, kStalled };
  struct Link {
    int client = -1;
    int server = -1;
    std::array<std::string, 2> kept;  // To the server, to the client.
    std::array<bool, 2> is_ended = {false, false};
  };

  void Set(Mode mode);
  void Order(std::atomic<int>& order);
  void Run();
  void Accept();
  // Whether the link goes on.
  bool Pass(Link& link, int direction, bool is_readable);
  void Close(Link& link, bool is_reset);

  const int server_port_;
  int port_ = 0;
  int listener_ = -1;
  int wake_ = -1;
  std::atomic<Mode> mode_{Mode::kOpen};
  std::atomic<int> cuts_{0};
  std::atomic<int> half_closes_{0};
  std::atomic<size_t> piece_bytes_{0};
  std::atomic<size_t> stall_behind_{0};  // 0: never.
  size_t from_clients_bytes_ = 0;
  std::atomic<int> connections_{0};
  std::atomic<int> accepted_{0};
  std::atomic<bool> is_ending_{false};
  std::list<Link> links_;
  std::thread thread_;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_DB_TCP_PROXY_H_
