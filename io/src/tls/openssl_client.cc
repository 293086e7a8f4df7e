// SPDX-License-Identifier: Apache-2.0

#include "io/src/tls/openssl_client.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "openssl/err.h"
#include "openssl/x509v3.h"
#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/core/status.h>
#include <bobbin/io/file_system.h>

#include "io/src/socket_options.h"
#include "io/src/stream_access.h"
#include "io/src/tls/tls_transport.h"

namespace bobbin::io::internal {

namespace {

constexpr std::string_view kHttp11Alpn = "\x08http/1.1";

// Where systems keep the roots that they believe: Debian, Fedora, SUSE, Alpine.
constexpr std::array<std::string_view, 4> kSystemRoots = {
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

absl::StatusOr<std::string> ReadSystemRoots() {
  // As OpenSSL itself has it.
  if (const char* const own = std::getenv("SSL_CERT_FILE"); own != nullptr) return ReadFile(own);
  for (const std::string_view path : kSystemRoots) {
    absl::StatusOr<std::string> roots = ReadFile(path);
    if (roots.ok() || !absl::IsNotFound(roots.status())) return roots;
  }
  return MakeStatus(absl::StatusCode::kNotFound,
                    fmt::format("tls client: no roots in {}", fmt::join(kSystemRoots, ", ")));
}

}  // namespace

// --- SessionCache

OpenSslPtr<SSL_SESSION> SessionCache::Take(const std::string& server) {
  MutexLock lock(mutex_);
  const auto found = servers_.find(server);
  if (found == servers_.end() || found->second.sessions.empty()) return nullptr;
  auto& sessions = found->second.sessions;
  found->second.used = ++uses_;
  if (::SSL_SESSION_get_protocol_version(sessions.back().get()) < TLS1_3_VERSION) {
    ::SSL_SESSION_up_ref(sessions.back().get());
    return OpenSslPtr<SSL_SESSION>(sessions.back().get());
  }
  OpenSslPtr<SSL_SESSION> newest = std::move(sessions.back());
  sessions.pop_back();
  return newest;
}

void SessionCache::Keep(const std::string& server, OpenSslPtr<SSL_SESSION> session) {
  if (servers_max_ == 0) return;
  MutexLock lock(mutex_);
  if (!servers_.contains(server) && servers_.size() >= servers_max_) DropTheOldest();
  Server& entry = servers_[server];
  entry.used = ++uses_;
  if (entry.sessions.size() == kSessionsPerServer) entry.sessions.erase(entry.sessions.begin());
  entry.sessions.push_back(std::move(session));
}

void SessionCache::DropTheOldest() {
  const auto oldest =
      std::min_element(servers_.begin(), servers_.end(),
                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  servers_.erase(oldest);
}

// --- OpenSslClient

absl::StatusOr<std::shared_ptr<const OpenSslClient>> OpenSslClient::Make(
    const TlsClientOptions& options) {
  auto client = std::make_shared<OpenSslClient>(options.sessions_max);
  BOBBIN_RETURN_IF_ERROR(client->Prepare(options));
  return client;
}

absl::Status OpenSslClient::Prepare(const TlsClientOptions& options) {
  is_verifying_ = options.server_certificates == ServerCertificates::kVerified;
  keeps_sessions_ = options.sessions_max > 0;
  BOBBIN_ASSIGN_OR_RETURN(alpn_, AlpnWire(options.alpn));
  std::string roots_pem = options.roots_pem;
  if (is_verifying_ && roots_pem.empty()) {
    BOBBIN_ASSIGN_OR_RETURN(roots_pem, ReadSystemRoots());
  }

  const NoSuspendScope own_error_queue;
  context_ = MakeContext(TLS_client_method(), options.version_min);
  SSL_CTX* const context = context_.get();
  if (is_verifying_) {
    BOBBIN_ASSIGN_OR_RETURN(const auto roots, ReadCertificates("roots", roots_pem));
    AddRoots(context, roots);
    ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  }
  if (options.certificate.has_value()) {
    BOBBIN_ASSIGN_OR_RETURN(const Identity identity, Identity::Read(*options.certificate));
    ::ERR_clear_error();
    bool is_used = ::SSL_CTX_use_certificate(context, identity.certificate.get()) == 1 &&
                   ::SSL_CTX_use_PrivateKey(context, identity.key.get()) == 1;
    for (const auto& signer : identity.signers) {
      is_used = is_used && SSL_CTX_add1_chain_cert(context, signer.get()) == 1;
    }
    if (!is_used) {
      return MakeStatus(absl::StatusCode::kInvalidArgument,
                        fmt::format("tls client: {}", TakeOpenSslError().text));
    }
  }
  SSL_CTX_set_session_cache_mode(context, keeps_sessions_
                                              ? SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL
                                              : SSL_SESS_CACHE_OFF);
  ::SSL_CTX_sess_set_new_cb(context, TakeSession);
  return absl::OkStatus();
}

int OpenSslClient::TakeSession(SSL* ssl, SSL_SESSION* session) {
  TlsChannel::Of(ssl).TakeSession(OpenSslPtr<SSL_SESSION>(session));
  return 1;  // It is the channel's now.
}

absl::Status OpenSslClient::Expect(SSL* ssl, std::string_view host) const {
  if (host.ends_with('.')) host.remove_suffix(1);
  const std::string name(host);
  const auto bad = [&] {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("tls handshake with {}: that is no name", name));
  };
  if (name.empty() || name.find('\0') != name.npos) return bad();
  X509_VERIFY_PARAM* const expected = ::SSL_get0_param(ssl);
  const bool is_address = ::X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str()) == 1;
  ::ERR_clear_error();
  if (is_address) return absl::OkStatus();
  ::SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (::SSL_set1_host(ssl, name.c_str()) != 1) return bad();
  // An address is not asked for: there are no certificates to choose from by it.
  if (SSL_set_tlsext_host_name(ssl, name.c_str()) != 1) return bad();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TlsChannel>> OpenSslClient::Open(Socket& socket,
                                                                std::string_view host,
                                                                std::string_view alpn) const {
  OpenSslPtr<SSL> ssl(::SSL_new(context_.get()));
  BOBBIN_CHECK(ssl != nullptr, "OpenSSL has no memory");
  ::SSL_set_connect_state(ssl.get());
  BOBBIN_RETURN_IF_ERROR(Expect(ssl.get(), host));
  if (!alpn.empty()) {
    ::SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(alpn.data()),
                          static_cast<unsigned>(alpn.size()));
  }

  TlsChannel::KeepSession keep;
  if (keeps_sessions_) {
    // A session is of a server, whatever names it has: its certificate is not looked at again.
    uint16_t port = 0;
    if (const Socket::Use use(socket, Socket::User::kGuest); use.ok()) {
      const absl::StatusOr<SocketAddress> peer = PeerAddress(socket.fd());
      if (peer.ok()) port = peer->port();
    }
    std::string server = fmt::format("{} {}", host, port);
    absl::AsciiStrToLower(&server);
    if (const OpenSslPtr<SSL_SESSION> session = sessions_.Take(server); session != nullptr) {
      ::SSL_set_session(ssl.get(), session.get());
    }
    keep = [self = shared_from_this(),
            server = std::move(server)](OpenSslPtr<SSL_SESSION> session) {
      self->sessions_.Keep(server, std::move(session));
    };
  }

  auto channel =
      std::make_unique<TlsChannel>(socket, std::move(ssl), std::string_view(), std::move(keep));
  if (const absl::Status done = channel->Handshake(); !done.ok()) {
    counters_.CountFailed();
    return MakeStatus(done.code(), fmt::format("tls handshake with {}: {}", host, MessageOf(done)));
  }
  counters_.CountDone(*channel);
  return channel;
}

absl::StatusOr<std::unique_ptr<http::internal::Transport>> OpenSslClient::Connect(
    TcpStream& stream, std::string_view host) const {
  BOBBIN_ASSIGN_OR_RETURN(auto channel, Open(StreamAccess::SocketOf(stream), host, kHttp11Alpn));
  return std::make_unique<TlsTransport>(stream, std::move(channel),
                                        TlsTransport::CutOff::kIsAnError);
}

}  // namespace bobbin::io::internal
