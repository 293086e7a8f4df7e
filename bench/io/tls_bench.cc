// SPDX-License-Identifier: Apache-2.0
//
// TLS: handshakes, and bytes one way, over a socket pair. Tls/Raw... is OpenSSL with sockets that
// block, a thread of the system on either side; the others are virtual threads on one carrier or
// on two. With one carrier both sides share a CPU, and a time is that of both.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "openssl/pem.h"
#include "openssl/ssl.h"

#include <bobbin/core/channel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/clock.h>
#include <bobbin/core/deadline.h>
#include <bobbin/io/io.h>
#include <bobbin/io/tls_stream.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "bench/support/on_virtual_thread.h"
#include "tests/services/test_authority.h"

namespace bobbin::bench {
namespace {

using test::TestAuthority;

constexpr size_t kPieceBytes = size_t{64} << 10;

std::array<int, 2> SocketPair() {
  std::array<int, 2> fds;
  BOBBIN_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0,
               "two sockets");
  return fds;
}

const io::TlsCertificate& Certificate() {
  static const io::TlsCertificate certificate = TestAuthority::Default().Issue();
  return certificate;
}

// --- OpenSSL by itself

SSL_CTX* RawServer() {
  static SSL_CTX* const context = [] {
    SSL_CTX* const made = ::SSL_CTX_new(TLS_server_method());
    BIO* const chain = ::BIO_new_mem_buf(Certificate().chain_pem.data(), -1);
    BIO* const key = ::BIO_new_mem_buf(Certificate().key_pem.data(), -1);
    X509* const own = ::PEM_read_bio_X509(chain, nullptr, nullptr, nullptr);
    EVP_PKEY* const secret = ::PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
    BOBBIN_CHECK(::SSL_CTX_use_certificate(made, own) == 1, "its certificate");
    BOBBIN_CHECK(::SSL_CTX_use_PrivateKey(made, secret) == 1, "its key");
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
    ::EVP_PKEY_free(secret);
    ::X509_free(own);
    ::BIO_free(key);
    ::BIO_free(chain);
    return made;
  }();
  return context;
}

SSL_CTX* RawClient() {
  static SSL_CTX* const context = [] {
    SSL_CTX* const made = ::SSL_CTX_new(TLS_client_method());
    BIO* const root = ::BIO_new_mem_buf(TestAuthority::Default().root_pem().data(), -1);
    X509* const believed = ::PEM_read_bio_X509(root, nullptr, nullptr, nullptr);
    ::X509_STORE_add_cert(::SSL_CTX_get_cert_store(made), believed);
    ::SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
    ::X509_free(believed);
    ::BIO_free(root);
    return made;
  }();
  return context;
}

struct RawStream {
  RawStream(SSL_CTX* context, int descriptor) : fd(descriptor), ssl(::SSL_new(context)) {
    ::SSL_set_fd(ssl, fd);
  }
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;
  ~RawStream() {
    ::SSL_free(ssl);
    ::close(fd);
  }
  int fd;
  SSL* ssl;
};

void RawHandshake(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {
    const std::array<int, 2> fds = SocketPair();
    std::thread other([&] {
      RawStream server(RawServer(), fds[1]);
      BOBBIN_CHECK(::SSL_accept(server.ssl) == 1, "it shakes hands");
    });
    {
      RawStream client(RawClient(), fds[0]);
      ::SSL_set1_host(client.ssl, "localhost");
      BOBBIN_CHECK(::SSL_connect(client.ssl) == 1, "it shakes hands");
      other.join();
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(RawHandshake)->Name("Tls/RawHandshake")->UseRealTime();

void RawBytes(benchmark::State& state) {
  const std::array<int, 2> fds = SocketPair();
  std::thread other([&] {
    RawStream server(RawServer(), fds[1]);
    BOBBIN_CHECK(::SSL_accept(server.ssl) == 1, "it shakes hands");
    std::vector<std::byte> buffer(kPieceBytes);
    while (::SSL_read(server.ssl, buffer.data(), kPieceBytes) > 0) {
    }
  });
  {
    RawStream client(RawClient(), fds[0]);
    BOBBIN_CHECK(::SSL_connect(client.ssl) == 1, "it shakes hands");
    const std::vector<std::byte> piece(kPieceBytes);
    for ([[maybe_unused]] auto _ : state) {
      BOBBIN_CHECK(::SSL_write(client.ssl, piece.data(), kPieceBytes) == kPieceBytes, "it is sent");
    }
    ::SSL_shutdown(client.ssl);
  }
  other.join();
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kPieceBytes));
}
BENCHMARK(RawBytes)->Name("Tls/RawBytes")->UseRealTime();

// --- Streams of ours

RuntimeOptions OnCarriers(int carriers) {
  return {.carriers = carriers, .poller = io::AutoPoller()};
}

io::TlsServerContext Server() {
  return io::TlsServerContext::Make({.certificates = {Certificate()}}).value();
}
io::TlsClientContext Client(size_t sessions_max) {
  return io::TlsClientContext::Make(
             {.roots_pem = TestAuthority::Default().root_pem(), .sessions_max = sessions_max})
      .value();
}

// `sessions_max`: 0 has every handshake be a full one.
void Handshakes(benchmark::State& state, size_t sessions_max) {
  OnVirtualThread(OnCarriers(static_cast<int>(state.range(0))), [&] {
    const io::TlsServerContext server = Server();
    const io::TlsClientContext client = Client(sessions_max);
    for ([[maybe_unused]] auto _ : state) {
      const std::array<int, 2> fds = SocketPair();
      VirtualThread other = Spawn({.placement = Placement::kSpread}, [&] {
        auto stream = io::TlsStream::Accept(server, io::TcpStream::Adopt(fds[1]));
        BOBBIN_CHECK(stream.ok(), "it shakes hands");
        const std::array<std::byte, 1> byte{};
        BOBBIN_CHECK(stream->WriteAll(byte).ok(), "it is sent");
      });
      auto stream = io::TlsStream::Connect(client, "localhost", io::TcpStream::Adopt(fds[0]));
      BOBBIN_CHECK(stream.ok(), "it shakes hands");
      // With the tickets.
      std::array<std::byte, 1> byte;
      BOBBIN_CHECK(stream->ReadExact(byte).ok(), "it comes");
      BOBBIN_CHECK(other.Join().ok(), "it did all");
    }
  });
  state.SetItemsProcessed(state.iterations());
}
void FullHandshake(benchmark::State& state) { Handshakes(state, 0); }
void ResumedHandshake(benchmark::State& state) { Handshakes(state, 16); }
BENCHMARK(FullHandshake)->Name("Tls/Handshake")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(ResumedHandshake)->Name("Tls/ResumedHandshake")->Arg(1)->Arg(2)->UseRealTime();

void StreamBytes(benchmark::State& state) {
  OnVirtualThread(OnCarriers(static_cast<int>(state.range(0))), [&] {
    const io::TlsServerContext server = Server();
    const std::array<int, 2> fds = SocketPair();
    VirtualThread other = Spawn({.placement = Placement::kSpread}, [&] {
      auto stream = io::TlsStream::Accept(server, io::TcpStream::Adopt(fds[1]));
      BOBBIN_CHECK(stream.ok(), "it shakes hands");
      std::vector<std::byte> buffer(kPieceBytes);
      while (stream->Read(buffer).value_or(0) > 0) {
      }
    });
    auto stream = io::TlsStream::Connect(Client(0), "localhost", io::TcpStream::Adopt(fds[0]));
    BOBBIN_CHECK(stream.ok(), "it shakes hands");
    const std::vector<std::byte> piece(kPieceBytes);
    for ([[maybe_unused]] auto _ : state) {
      BOBBIN_CHECK(stream->WriteAll(piece).ok(), "it is sent");
    }
    BOBBIN_CHECK(stream->ShutdownWrite().ok(), "its end is said");
    BOBBIN_CHECK(other.Join().ok(), "it has got all");
  });
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kPieceBytes));
}
BENCHMARK(StreamBytes)->Name("Tls/Bytes")->Arg(1)->Arg(2)->UseRealTime();

// --- What a storm of handshakes does to others

// A virtual thread that sleeps for a millisecond, again and again, on the one carrier, while OS
// threads connect as fast as they can: an iteration is one such sleep, and the counters say how
// much too late it ended.
void Storm(benchmark::State& state, bool has_pool) {
  constexpr int kClients = 16;
  OnVirtualThread(OnCarriers(1), [&] {
    PlatformPool pool({.name = "handshakes", .threads = 2});
    const io::TlsServerContext server =
        io::TlsServerContext::Make(
            {.certificates = {Certificate()}, .handshakes = has_pool ? &pool : nullptr})
            .value();
    auto [sender, receiver] = MakeChannel<int>({.capacity = kClients});
    std::atomic<bool> is_over{false};
    std::atomic<int64_t> handshakes{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back([&, to = sender]() mutable {
        while (!is_over) {
          const std::array<int, 2> fds = SocketPair();
          BOBBIN_CHECK(to.Send(fds[1]).ok(), "it is taken");
          RawStream client(RawClient(), fds[0]);
          BOBBIN_CHECK(::SSL_connect(client.ssl) == 1, "it shakes hands");
          ++handshakes;
        }
      });
    }
    { const Sender<int> last = std::move(sender); }  // The clients' are left.
    VirtualThread acceptor = Spawn([&server, sockets = std::move(receiver)]() mutable {
      TaskGroup group;
      for (const int fd : sockets) {
        group.Spawn([&server, fd] {
          io::TlsStream::Accept(server, io::TcpStream::Adopt(fd)).status().IgnoreError();
        });
      }
      group.Wait().IgnoreError();
    });

    std::vector<int64_t> late;
    for ([[maybe_unused]] auto _ : state) {
      const MonotonicTime due = MonotonicNow() + std::chrono::milliseconds(1);
      BOBBIN_CHECK(SleepUntil(Deadline::At(due)).ok(), "nobody stops it");
      late.push_back((MonotonicNow() - due).count());
    }
    is_over = true;
    BOBBIN_CHECK(acceptor.Join().ok(), "all have gone");
    for (std::thread& client : clients) client.join();

    std::sort(late.begin(), late.end());
    const auto at = [&](double part) {
      return static_cast<double>(
          late[static_cast<size_t>(part * static_cast<double>(late.size() - 1))]);
    };
    state.counters["late_p50_us"] = at(0.5) / 1000;
    state.counters["late_p99_us"] = at(0.99) / 1000;
    state.counters["late_max_us"] = at(1) / 1000;
    state.counters["handshakes"] =
        benchmark::Counter(static_cast<double>(handshakes), benchmark::Counter::kIsRate);
  });
}
void StormOnCarrier(benchmark::State& state) { Storm(state, false); }
void StormOnPool(benchmark::State& state) { Storm(state, true); }
BENCHMARK(StormOnCarrier)->Name("Tls/Storm/OnCarrier")->Iterations(1000)->UseRealTime();
BENCHMARK(StormOnPool)->Name("Tls/Storm/OnPool")->Iterations(1000)->UseRealTime();

}  // namespace
}  // namespace bobbin::bench
