// SPDX-License-Identifier: Apache-2.0

#include "io/src/tls/tls_channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <limits>

#include "openssl/bio.h"
#include "openssl/err.h"
#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/check.h>
#include <bobbin/core/no_suspend.h>
#include <bobbin/core/status.h>

#include "io/src/result.h"

namespace bobbin::io::internal {

namespace {

// Sealed in one turn and written by one system call. Not tuned.
constexpr size_t kSealedMax = 4 * Plaintext::kRecordBytesMax;
// What a record is longer than what it carries, at most: its header, its type and its tag; in TLS
// 1.2 with CBC an IV, a MAC and a padding.
constexpr size_t kRecordOverheadMax = 256;
// Received at once where more comes than a buffer of the pool holds. Not tuned.
constexpr size_t kBulkBytes = size_t{32} << 10;
// Not yet sent, with what a write has left (kSealedMax, and what its records are longer): beyond it
// a peer asks for answers, and takes none. Not tuned.
constexpr size_t kOutputMax = 2 * kSealedMax;

}  // namespace

// --- Turns

TlsChannel::Turn::Turn(TlsChannel& channel, User user) : channel_(channel), user_(user) {
  const auto bit = static_cast<uint8_t>(user);
  // Pairs with the release in the destructor: the reader before this one is done.
  is_in_ = (channel.users_.fetch_or(bit, std::memory_order_acquire) & bit) == 0;
}

TlsChannel::Turn::~Turn() {
  if (!is_in_) return;
  const auto bit = static_cast<uint8_t>(user_);
  // Pairs with the acquire in the constructor.
  channel_.users_.fetch_and(static_cast<uint8_t>(~bit), std::memory_order_release);
}

absl::Status TlsChannel::Turn::Refusal() const {
  const std::string_view what = user_ == User::kReader ? "read" : "write";
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    fmt::format("tls {}: another thread is in a {} of this stream", what, what));
}

// --- OpenSSL's view of memory

const BIO_METHOD* TlsChannel::Memory() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made =
        ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "bobbin's memory");
    ::BIO_meth_set_read(made, ReadInput);
    ::BIO_meth_set_write(made, WriteOutput);
    ::BIO_meth_set_ctrl(made, Control);
    return made;
  }();
  return method;
}

int TlsChannel::ReadInput(BIO* bio, char* data, int bytes) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  TlsChannel& channel = *static_cast<TlsChannel*>(::BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const size_t moved = std::min(static_cast<size_t>(bytes), channel.input_.size());
  if (moved == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  std::copy_n(channel.input_.data(), moved, reinterpret_cast<std::byte*>(data));
  channel.input_ = channel.input_.subspan(moved);
  return static_cast<int>(moved);
}

int TlsChannel::WriteOutput(BIO* bio, const char* data, int bytes) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  TlsChannel& channel = *static_cast<TlsChannel*>(::BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto* const begin = reinterpret_cast<const std::byte*>(data);
  channel.output_.insert(channel.output_.end(), begin, begin + bytes);
  return bytes;
}

long TlsChannel::Control(BIO* /*bio*/, int what, long /*number*/, void* /*pointer*/) {
  return what == BIO_CTRL_FLUSH ? 1 : 0;
}

template <typename Call>
TlsChannel::Step TlsChannel::Run(Call call) {
  const NoSuspendScope own_error_queue;
  ::ERR_clear_error();
  const int result = call();
  Step step = Step::kDone;
  if (result <= 0) {
    switch (::SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        step = Step::kWantsInput;
        break;
      case SSL_ERROR_ZERO_RETURN:
        step = Step::kEnd;
        break;
      default:
        step = Step::kFailed;
        failure_ = TakeOpenSslError();
    }
  }
  if (::ERR_peek_error() != 0) ::ERR_clear_error();
  return step;
}

// --- Beginning

TlsChannel::TlsChannel(Socket& socket, OpenSslPtr<SSL> ssl, std::string_view alpn,
                       KeepSession keep_session)
    : socket_(socket),
      alpn_choice_(alpn),
      keep_session_(std::move(keep_session)),
      ssl_(std::move(ssl)) {
  BIO* const memory = ::BIO_new(Memory());
  BOBBIN_CHECK(memory != nullptr, "OpenSSL has no memory");
  ::BIO_set_data(memory, this);
  ::BIO_set_init(memory, 1);
  ::SSL_set_bio(ssl_.get(), memory, memory);
  ::SSL_set_ex_data(ssl_.get(), 0, this);
}

TlsChannel::Step TlsChannel::HandshakeStep() {
  MutexLock lock(mutex_);
  return Run([this] { return ::SSL_do_handshake(ssl_.get()); });
}

absl::Status TlsChannel::Handshake(PlatformPool* pool) {
  // The client speaks first.
  if (::SSL_is_server(ssl_.get()) == 1) BOBBIN_RETURN_IF_ERROR(Receive());
  while (true) {
    absl::StatusOr<Step> computed = Step::kFailed;
    if (pool == nullptr) {
      computed = HandshakeStep();
    } else {
      computed = pool->RunBlocking([this] { return HandshakeStep(); });
    }
    BOBBIN_ASSIGN_OR_RETURN(const Step step, computed);
    {
      MutexLock lock(mutex_);
      if (step == Step::kFailed || step == Step::kEnd) {
        SendAtOnce();
        return HandshakeFailure();
      }
      const absl::Status sent = SendAll();
      // A client may have said all, and gone, before a server sends its tickets: it can be read.
      const bool is_only_tickets = step == Step::kDone && ::SSL_is_server(ssl_.get()) == 1;
      if (!sent.ok() && !(is_only_tickets && absl::IsUnavailable(sent))) return sent;
      if (step == Step::kDone) {
        is_established_ = true;
        break;
      }
    }
    BOBBIN_RETURN_IF_ERROR(Receive());
  }
  KeepSessions();
  return absl::OkStatus();
}

absl::Status TlsChannel::HandshakeFailure() const {
  if (failure_.text.empty()) {
    return MakeStatus(absl::StatusCode::kUnavailable, "the peer has ended the connection");
  }
  if (failure_.reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    return MakeStatus(absl::StatusCode::kUnauthenticated, "the peer has no certificate");
  }
  if (failure_.reason != SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return MakeStatus(absl::StatusCode::kUnavailable, failure_.text);
  }
  return MakeStatus(
      absl::StatusCode::kUnauthenticated,
      fmt::format("the peer's certificate is not good: {}",
                  ::X509_verify_cert_error_string(::SSL_get_verify_result(ssl_.get()))));
}

absl::Status TlsChannel::Failure(std::string_view operation) const {
  return MakeStatus(absl::StatusCode::kUnavailable,
                    fmt::format("tls {}: {}", operation, failure_.text));
}

// --- Reading

absl::StatusOr<size_t> TlsChannel::Read(std::span<std::byte> buffer) {
  const Turn turn(*this, User::kReader);
  if (!turn.ok()) return turn.Refusal();
  return ReadAsReader(buffer);
}

absl::Status TlsChannel::ReadExact(std::span<std::byte> buffer) {
  const Turn turn(*this, User::kReader);
  if (!turn.ok()) return turn.Refusal();
  for (size_t have = 0; have < buffer.size();) {
    BOBBIN_ASSIGN_OR_RETURN(const size_t read, ReadAsReader(buffer.subspan(have)));
    if (read == 0) {
      return MakeStatus(
          absl::StatusCode::kOutOfRange,
          fmt::format("tls read: the peer ended after {} of {} bytes", have, buffer.size()));
    }
    have += read;
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> TlsChannel::ReadAsReader(std::span<std::byte> buffer) {
  if (buffer.empty()) return size_t{0};
  const int wanted =
      static_cast<int>(std::min(buffer.size(), size_t{std::numeric_limits<int>::max()}));
  while (true) {
    Step step;
    int read = 0;
    bool has_sessions;
    {
      MutexLock lock(mutex_);
      if (socket_.is_closing()) return ClosedStatus("tls read");
      if (!failure_.text.empty()) return Failure("read");
      const size_t sealed = output_.size();
      step = Run([&] { return read = ::SSL_read(ssl_.get(), buffer.data(), wanted); });
      if (input_.empty()) {
        pooled_ = PooledBytes();
        bulk_.reset();
      }
      if (output_.size() > sealed) SendAtOnce();
      if (output_.size() > kOutputMax && step != Step::kFailed) {
        failure_.text = "the peer takes no answers";
        step = Step::kFailed;
      }
      if (step == Step::kFailed) return Failure("read");
      has_sessions = !fresh_sessions_.empty();
    }
    if (has_sessions) KeepSessions();
    if (step == Step::kDone) return static_cast<size_t>(read);
    if (step == Step::kEnd) return size_t{0};
    BOBBIN_RETURN_IF_ERROR(Receive());
  }
}

absl::StatusOr<PooledBytes> TlsChannel::ReadPooled() {
  const Turn turn(*this, User::kReader);
  if (!turn.ok()) return turn.Refusal();
  if (IsDrained()) BOBBIN_RETURN_IF_ERROR(Receive());
  return Socket::FillPooled([this](std::span<std::byte> buffer) { return ReadAsReader(buffer); });
}

absl::Status TlsChannel::Receive() {
  // Under the mutex what has come is put where OpenSSL finds it; waiting is done without.
  std::unique_ptr<std::byte[]> bulk;
  PooledBytes pooled;
  std::span<const std::byte> received;
  if (more_comes_) {
    bulk = std::make_unique_for_overwrite<std::byte[]>(kBulkBytes);
    BOBBIN_ASSIGN_OR_RETURN(const size_t bytes, socket_.Read({bulk.get(), kBulkBytes}));
    received = {bulk.get(), bytes};
    more_comes_ = bytes == kBulkBytes;
  } else {
    BOBBIN_ASSIGN_OR_RETURN(pooled, socket_.ReadPooled());
    received = pooled.bytes();
    more_comes_ = received.size() == PooledBytes::kBytesMax;
  }
  if (received.empty()) {
    was_cut_off_.store(true, std::memory_order_release);  // Pairs with was_cut_off.
    return MakeStatus(absl::StatusCode::kUnavailable,
                      "tls read: the connection was cut off: its end was not said");
  }
  MutexLock lock(mutex_);
  input_ = received;
  pooled_ = std::move(pooled);
  bulk_ = std::move(bulk);
  return absl::OkStatus();
}

void TlsChannel::KeepSessions() {
  std::vector<OpenSslPtr<SSL_SESSION>> sessions;
  {
    MutexLock lock(mutex_);
    sessions.swap(fresh_sessions_);
  }
  if (!keep_session_) return;
  for (OpenSslPtr<SSL_SESSION>& session : sessions) keep_session_(std::move(session));
}

// --- Writing

absl::StatusOr<size_t> TlsChannel::Write(std::span<const std::span<const std::byte>> parts) {
  const Turn turn(*this, User::kWriter);
  if (!turn.ok()) return turn.Refusal();
  Plaintext plaintext(parts);
  MutexLock lock(mutex_);
  BOBBIN_RETURN_IF_ERROR(SendAll());
  if (plaintext.is_done()) return size_t{0};
  BOBBIN_ASSIGN_OR_RETURN(const size_t sealed, Seal(plaintext));
  BOBBIN_RETURN_IF_ERROR(SendAll());
  return sealed;
}

Progress TlsChannel::WriteCounted(std::span<const std::span<const std::byte>> parts) {
  const Turn turn(*this, User::kWriter);
  if (!turn.ok()) return {.bytes = 0, .status = turn.Refusal()};
  Plaintext plaintext(parts);
  Progress progress;
  MutexLock lock(mutex_);
  progress.status = SendAll();
  while (progress.status.ok() && !plaintext.is_done()) {
    const absl::StatusOr<size_t> sealed = Seal(plaintext);
    progress.bytes += sealed.value_or(0);
    progress.status = sealed.ok() ? SendAll() : sealed.status();
  }
  return progress;
}

absl::StatusOr<size_t> TlsChannel::Seal(Plaintext& plaintext) {
  // What was not sealed need not be sent: who is to stop does not begin.
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  if (socket_.is_closing()) return ClosedStatus("tls write");
  if (!failure_.text.empty()) return Failure("write");
  if (is_finished_) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "tls write: this side has said that it has finished");
  }
  const size_t wanted = plaintext.Left(kSealedMax);
  const size_t records = (wanted + Plaintext::kRecordBytesMax - 1) / Plaintext::kRecordBytesMax;
  output_.reserve(wanted + records * kRecordOverheadMax);
  size_t sealed = 0;
  while (sealed < wanted) {
    const std::span<const std::byte> record = plaintext.Next();
    const Step step = Run(
        [&] { return ::SSL_write(ssl_.get(), record.data(), static_cast<int>(record.size())); });
    if (step != Step::kDone) {
      // OpenSSL takes all, for output_ does, and waits for nothing that a peer might send.
      if (failure_.text.empty()) failure_.text = "it wants to read before it can write";
      return Failure("write");
    }
    sealed += record.size();
  }
  return sealed;
}

absl::Status TlsChannel::SendAll() {
  while (!output_.empty()) {
    if (!failure_.text.empty()) {
      // What is left is of use only where it goes by itself, as an alert.
      SendAtOnce();
      return Failure("write");
    }
    BOBBIN_RETURN_IF_ERROR(SendOutput());
  }
  return absl::OkStatus();
}

absl::Status TlsChannel::SendOutput() {
  is_sending_ = true;
  std::vector<std::byte> piece;
  piece.swap(output_);
  mutex_.unlock();
  Progress sent = socket_.WriteCounted(piece);
  mutex_.lock();
  is_sending_ = false;
  if (sent.bytes < piece.size()) {
    const auto rest = piece.begin() + static_cast<std::ptrdiff_t>(sent.bytes);
    output_.insert(output_.begin(), rest, piece.end());
  }
  return std::move(sent.status);
}

void TlsChannel::SendAtOnce() {
  if (is_sending_ || output_.empty()) return;  // Who is sending takes it along.
  const Socket::Use use(socket_, Socket::User::kWriter);
  if (!use.ok()) return;
  const ssize_t sent =
      ::send(socket_.fd(), output_.data(), output_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) output_.erase(output_.begin(), output_.begin() + sent);
  if (output_.empty()) std::vector<std::byte>().swap(output_);
}

// --- The end

absl::Status TlsChannel::ShutdownWrite() {
  const Turn turn(*this, User::kWriter);
  if (!turn.ok()) return turn.Refusal();
  {
    MutexLock lock(mutex_);
    if (socket_.is_closing()) return ClosedStatus("tls shut down");
    if (!failure_.text.empty()) return Failure("shut down");
    BOBBIN_RETURN_IF_ERROR(SendAll());
    if (!is_finished_) {
      is_finished_ = true;
      Run([this] { return ::SSL_shutdown(ssl_.get()) >= 0 ? 1 : -1; });
    }
    BOBBIN_RETURN_IF_ERROR(SendAll());
  }
  // All is said. That the socket has gone meanwhile is the next read's to tell.
  socket_.Shutdown(SHUT_WR).IgnoreError();
  return absl::OkStatus();
}

void TlsChannel::Close() {
  if (mutex_.try_lock()) {
    if (is_established_ && !is_finished_ && failure_.text.empty() && !is_sending_ &&
        output_.empty()) {
      is_finished_ = true;
      Run([this] { return ::SSL_shutdown(ssl_.get()) >= 0 ? 1 : -1; });
      // A part of it that does not go is of no use to the peer, and no harm.
      SendAtOnce();
      output_.clear();
    }
    mutex_.unlock();
  }
  socket_.Close();
}

// --- Looking

bool TlsChannel::IsDrained() const {
  if (was_cut_off() || !mutex_.try_lock()) return false;
  const bool is_drained = failure_.text.empty() && input_.empty() &&
                          ::SSL_has_pending(ssl_.get()) == 0 &&
                          (::SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) == 0;
  mutex_.unlock();
  return is_drained;
}

TlsVersion TlsChannel::version() const {
  return ::SSL_version(ssl_.get()) == TLS1_3_VERSION ? TlsVersion::kTls13 : TlsVersion::kTls12;
}

std::string_view TlsChannel::alpn() const {
  const unsigned char* protocol = nullptr;
  unsigned bytes = 0;
  ::SSL_get0_alpn_selected(ssl_.get(), &protocol, &bytes);
  return {reinterpret_cast<const char*>(protocol), bytes};
}

std::string_view TlsChannel::server_name() const {
  const char* const name = ::SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name);
  return name != nullptr ? name : std::string_view();
}

std::string TlsChannel::peer_certificate_pem() const {
  const OpenSslPtr<X509> certificate(::SSL_get1_peer_certificate(ssl_.get()));
  return CertificatePem(certificate.get());
}

}  // namespace bobbin::io::internal
