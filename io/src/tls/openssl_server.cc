// SPDX-License-Identifier: Apache-2.0

#include "io/src/tls/openssl_server.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "openssl/err.h"
#include "openssl/x509v3.h"
#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/core/status.h>

#include "io/src/stream_access.h"
#include "io/src/tls/tls_transport.h"

namespace bobbin::io::internal {

namespace {

// As ALPN writes it. Other versions are nothing that http::Server answers.
constexpr std::string_view kHttpAlpn = "\x08http/1.1\x08http/1.0";

std::string LowerCase(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  std::string lower(name);
  absl::AsciiStrToLower(&lower);
  return lower;
}

// Calls `use` with what it consists of, as OpenSSL takes it; whether OpenSSL agrees.
template <typename Use>
bool Install(const Identity& identity, Use use) {
  STACK_OF(X509)* const signers = sk_X509_new_null();
  for (const auto& signer : identity.signers) sk_X509_push(signers, signer.get());
  const bool is_good = use(identity.certificate.get(), identity.key.get(), signers) == 1;
  sk_X509_free(signers);
  return is_good;
}

// What an identity is for, as ServerSetup::names_ has it.
std::vector<std::string> NamesOf(const Identity& identity) {
  std::vector<std::string> names;
  auto* const found = static_cast<GENERAL_NAMES*>(
      ::X509_get_ext_d2i(identity.certificate.get(), NID_subject_alt_name, nullptr, nullptr));
  if (found == nullptr) return names;
  const auto text = [](const ASN1_STRING* bytes) {
    return std::string_view(reinterpret_cast<const char*>(::ASN1_STRING_get0_data(bytes)),
                            static_cast<size_t>(::ASN1_STRING_length(bytes)));
  };
  for (int i = 0; i < sk_GENERAL_NAME_num(found); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(found, i);
    if (name->type == GEN_DNS) names.push_back(LowerCase(text(name->d.dNSName)));
    if (name->type == GEN_IPADD) names.push_back(std::string(" ").append(text(name->d.iPAddress)));
  }
  ::GENERAL_NAMES_free(found);
  return names;
}

}  // namespace

// --- ServerSetup

absl::StatusOr<std::shared_ptr<const ServerSetup>> ServerSetup::Make(
    const TlsServerOptions& options) {
  auto setup = std::make_shared<ServerSetup>();
  BOBBIN_RETURN_IF_ERROR(setup->Prepare(options));
  return setup;
}

absl::Status ServerSetup::Prepare(const TlsServerOptions& options) {
  const auto bad = [](std::string_view why) {
    return MakeStatus(absl::StatusCode::kInvalidArgument, fmt::format("tls server: {}", why));
  };
  if (options.certificates.empty()) return bad("it has no certificate");
  BOBBIN_ASSIGN_OR_RETURN(alpn_, AlpnWire(options.alpn));
  handshakes_ = options.handshakes;
  const NoSuspendScope own_error_queue;
  context_ = MakeContext(TLS_server_method(), options.version_min);
  SSL_CTX* const context = context_.get();

  const auto use = [](SSL_CTX* where, const Identity& identity) {
    ::ERR_clear_error();
    return Install(identity, [&](X509* own, EVP_PKEY* key, STACK_OF(X509) * signers) {
      return ::SSL_CTX_use_cert_and_key(where, own, key, signers, 1);
    });
  };
  for (const TlsCertificate& pem : options.certificates) {
    BOBBIN_ASSIGN_OR_RETURN(Identity identity, Identity::Read(pem));
    // In a handshake it would be too late to find out that, say, its key is too short.
    const OpenSslPtr<SSL_CTX> trial = MakeContext(TLS_server_method(), options.version_min);
    if (!use(trial.get(), identity)) return bad(TakeOpenSslError().text);
    identities_.push_back(std::move(identity));
  }
  AddNames();
  default_ = Default();
  for (const Identity* identity : default_) {
    if (!use(context, *identity)) return bad(TakeOpenSslError().text);
  }
  ::SSL_CTX_set_tlsext_servername_callback(context, ChooseCertificate);
  ::SSL_CTX_set_tlsext_servername_arg(context, this);
  ::SSL_CTX_set_alpn_select_cb(context, ChooseProtocol, this);

  // Sessions are kept by the clients alone.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  constexpr std::string_view kSessions = "bobbin";
  ::SSL_CTX_set_session_id_context(
      context, reinterpret_cast<const unsigned char*>(kSessions.data()), kSessions.size());
  if (options.tickets == SessionTickets::kNone) {
    ::SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    ::SSL_CTX_set_num_tickets(context, 0);
  }

  if (options.client_certificates == ClientCertificates::kNotAsked) return absl::OkStatus();
  BOBBIN_ASSIGN_OR_RETURN(const auto roots,
                          ReadCertificates("client roots", options.client_roots_pem));
  AddRoots(context, roots);
  for (const auto& root : roots) ::SSL_CTX_add_client_CA(context, root.get());
  const bool is_required = options.client_certificates == ClientCertificates::kRequired;
  ::SSL_CTX_set_verify(
      context, SSL_VERIFY_PEER | (is_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
  return absl::OkStatus();
}

void ServerSetup::AddNames() {
  for (size_t i = 0; i < identities_.size(); ++i) {
    for (const std::string& name : NamesOf(identities_[i])) names_[name].push_back(i);
  }
}

void ServerSetup::Add(const std::string& name, Choice& choice) const {
  const auto found = names_.find(name);
  if (found == names_.end()) return;
  for (const size_t i : found->second) {
    const auto kind = [](const Identity& one) { return ::EVP_PKEY_get_base_id(one.key.get()); };
    const Identity& next = identities_[i];
    const bool is_new = std::none_of(choice.begin(), choice.end(), [&](const Identity* other) {
      return kind(*other) == kind(next);
    });
    if (is_new) choice.push_back(&next);
  }
}

ServerSetup::Choice ServerSetup::Find(std::string_view name) const {
  const std::string lower = LowerCase(name);
  Choice choice;
  Add(lower, choice);
  const size_t dot = lower.find('.');
  if (dot != lower.npos) Add("*" + lower.substr(dot), choice);
  return choice.empty() ? default_ : choice;
}

ServerSetup::Choice ServerSetup::Default() const {
  Choice choice = {&identities_.front()};
  for (const std::string& name : NamesOf(identities_.front())) Add(name, choice);
  return choice;
}

int ServerSetup::ChooseCertificate(SSL* ssl, int* /*alert*/, void* setup) {
  const char* const name = ::SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == nullptr) return SSL_TLSEXT_ERR_NOACK;
  const auto& self = *static_cast<const ServerSetup*>(setup);
  const Choice choice = self.Find(name);
  if (choice == self.default_) return SSL_TLSEXT_ERR_OK;
  ::SSL_certs_clear(ssl);
  for (const Identity* identity : choice) {
    const bool is_used =
        Install(*identity, [ssl](X509* own, EVP_PKEY* key, STACK_OF(X509) * signers) {
          return ::SSL_use_cert_and_key(ssl, own, key, signers, 1);
        });
    if (!is_used) return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  return SSL_TLSEXT_ERR_OK;
}

int ServerSetup::ChooseProtocol(SSL* ssl, const unsigned char** chosen, unsigned char* chosen_bytes,
                                const unsigned char* offered, unsigned offered_bytes,
                                void* /*setup*/) {
  const std::string_view choice = TlsChannel::Of(ssl).alpn_choice();
  if (choice.empty()) return SSL_TLSEXT_ERR_NOACK;
  unsigned char* found = nullptr;
  const int result = ::SSL_select_next_proto(
      &found, chosen_bytes, reinterpret_cast<const unsigned char*>(choice.data()),
      static_cast<unsigned>(choice.size()), offered, offered_bytes);
  if (result != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

// --- OpenSslServer

std::shared_ptr<const ServerSetup> OpenSslServer::setup() const {
  MutexLock lock(mutex_);
  return setup_;
}

absl::Status OpenSslServer::Renew(const TlsServerOptions& options) const {
  BOBBIN_ASSIGN_OR_RETURN(std::shared_ptr<const ServerSetup> next, ServerSetup::Make(options));
  MutexLock lock(mutex_);
  // The keys of tickets: what was issued with them is good for the next one, too.
  std::array<unsigned char, 256> keys;
  const long bytes = SSL_CTX_get_tlsext_ticket_keys(setup_->context(), nullptr, 0);
  BOBBIN_CHECK(bytes > 0 && bytes <= static_cast<long>(keys.size()), "OpenSSL has other keys");
  SSL_CTX_get_tlsext_ticket_keys(setup_->context(), keys.data(), bytes);
  SSL_CTX_set_tlsext_ticket_keys(next->context(), keys.data(), bytes);
  ::OPENSSL_cleanse(keys.data(), keys.size());
  setup_ = std::move(next);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TlsChannel>> OpenSslServer::Open(Socket& socket) const {
  const std::shared_ptr<const ServerSetup> current = setup();
  return Open(socket, *current, current->alpn());
}

absl::StatusOr<std::unique_ptr<TlsChannel>> OpenSslServer::Open(Socket& socket,
                                                                const ServerSetup& setup,
                                                                std::string_view alpn) const {
  OpenSslPtr<SSL> ssl(::SSL_new(setup.context()));
  BOBBIN_CHECK(ssl != nullptr, "OpenSSL has no memory");
  ::SSL_set_accept_state(ssl.get());
  auto channel = std::make_unique<TlsChannel>(socket, std::move(ssl), alpn);
  if (const absl::Status done = channel->Handshake(setup.handshakes()); !done.ok()) {
    counters_.CountFailed();
    return MakeStatus(done.code(), fmt::format("tls handshake: {}", MessageOf(done)));
  }
  counters_.CountDone(*channel);
  return channel;
}

absl::StatusOr<std::unique_ptr<http::internal::Transport>> OpenSslServer::Accept(
    TcpStream& stream) const {
  const std::shared_ptr<const ServerSetup> current = setup();
  BOBBIN_ASSIGN_OR_RETURN(auto channel, Open(StreamAccess::SocketOf(stream), *current, kHttpAlpn));
  return std::make_unique<TlsTransport>(stream, std::move(channel), TlsTransport::CutOff::kIsAnEnd);
}

}  // namespace bobbin::io::internal
