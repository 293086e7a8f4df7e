// SPDX-License-Identifier: Apache-2.0
//
// TlsChannel: one connection as OpenSSL sees it, and a socket as what it is sent over.
//
// An SSL object is not for two threads at a time, and a connection has two: one that reads and one
// that writes. So all of OpenSSL's work is done with the mutex held, and OpenSSL never waits: it
// reads from a piece of memory (input_) and writes to another (output_), through a BIO of ours.
// Whoever has to wait for the socket does so without the mutex.
//
//   reader   locks; SSL_read; unlocks. If that wants more: receives; locks; puts it into input_;
//            and again
//   writer   locks; sends what is left of before; SSL_write, some records; sends them; unlocks
//
// Sending (SendOutput) takes output_ away, unlocks, writes it to the socket, and locks again. What
// the socket has not taken when a deadline or a cancel ends that goes back to the front of output_:
// its records have their numbers, and nothing can be sent before them. The writer goes on until
// output_ is empty. The reader has something to send only where the peer has changed its keys and
// wants this side's changed, too, has broken the protocol, or has asked for what is refused. Then
// it sends as much as the socket takes at once (SendAtOnce): waiting is for writers, and a peer
// that takes nothing is read all the same. But answers have a bound, for who asks and never takes
// any.
//
// Why nothing stays unsent that the peer needs. Where the writer is sending (is_sending_), it looks
// again, with the mutex held, before it stops, and takes along what the reader has added. Otherwise
// the reader has sent it, or the socket is full: then it goes before the next write. No answer is
// needed before that: new keys count from the next record on.
//
// Why no error is another connection's. OpenSSL's errors are queued by OS thread. Each call is made
// by Run, which empties the queue, calls, looks, and empties it again, inside a NoSuspendScope.
//
// Memory at rest: none of the channel's. What is received waits in a buffer of the carrier's pool,
// and is received into a buffer of its own only while more comes than that holds. Output is freed
// when it was sent, and OpenSSL frees its own buffers (SSL_MODE_RELEASE_BUFFERS).
//
//   Called from   one reader and one writer at a time, virtual, platform or foreign; Close and
//                 IsQuiet: any thread.
//   Suspends      Handshake, Read, ReadPooled, Write, ShutdownWrite.
//   Cancellation  They return CANCELLED or DEADLINE_EXCEEDED; see TlsStream.
//   Lifetime      The socket must outlive it.

#ifndef BOBBIN_IO_SRC_TLS_TLS_CHANNEL_H_
#define BOBBIN_IO_SRC_TLS_TLS_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "openssl/ssl.h"

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/mutex.h>
#include <bobbin/io/pooled_bytes.h>
#include <bobbin/io/progress.h>
#include <bobbin/sched/platform_pool.h>

#include "io/src/socket.h"
#include "io/src/tls/openssl.h"
#include "io/src/tls/plaintext.h"

namespace bobbin::io::internal {

class TlsChannel {
 public:
  using KeepSession = absl::AnyInvocable<void(OpenSslPtr<SSL_SESSION>)>;

  // `ssl` is told whether it is the client or the server. `alpn`, as it goes over the wire, is what
  // a server chooses from in the handshake. Sessions that the peer has given are passed to
  // `keep_session`, outside of OpenSSL.
  TlsChannel(Socket& socket, OpenSslPtr<SSL> ssl, std::string_view alpn = {},
             KeepSession keep_session = {});
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;

  // With a pool its steps are computed there. REQUIRES: nobody else uses it yet.
  absl::Status Handshake(PlatformPool* pool = nullptr);

  absl::StatusOr<size_t> Read(std::span<std::byte> buffer);
  absl::Status ReadExact(std::span<std::byte> buffer);
  // Waits without a buffer; empty at the end.
  absl::StatusOr<PooledBytes> ReadPooled();
  // Some of it: one turn.
  absl::StatusOr<size_t> Write(std::span<const std::span<const std::byte>> parts);
  // All of it.
  Progress WriteCounted(std::span<const std::span<const std::byte>> parts);
  absl::Status ShutdownWrite();
  // Says goodbye, if that goes without waiting, and closes the socket.
  void Close();

  // Whether everything that was received has been read, and nothing is wrong.
  bool IsDrained() const;
  // Whether a read has met an end that was not said.
  bool was_cut_off() const {
    return was_cut_off_.load(std::memory_order_acquire);  // Pairs with the release in Receive.
  }

  // --- What the handshake has come to.

  TlsVersion version() const;
  std::string_view cipher() const { return ::SSL_get_cipher_name(ssl_.get()); }
  std::string_view alpn() const;
  std::string_view server_name() const;
  bool is_resumed() const { return ::SSL_session_reused(ssl_.get()) == 1; }
  std::string peer_certificate_pem() const;

  // --- For OpenSSL's callbacks, which run inside of Run.

  static TlsChannel& Of(const SSL* ssl) {
    return *static_cast<TlsChannel*>(::SSL_get_ex_data(ssl, 0));
  }
  std::string_view alpn_choice() const { return alpn_choice_; }
  void TakeSession(OpenSslPtr<SSL_SESSION> session) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    fresh_sessions_.push_back(std::move(session));
  }

 private:
  // How a call of OpenSSL's has ended.
  enum class Step : uint8_t {
    kDone,
    kWantsInput,
    kEnd,     // The peer has said that it has finished.
    kFailed,  // For good; failure_ says why.
  };
  enum class User : uint8_t { kReader = 1, kWriter = 2 };

  // The one reader, or the one writer, if `ok()`.
  class Turn {
   public:
    Turn(TlsChannel& channel, User user);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();
    bool ok() const { return is_in_; }
    absl::Status Refusal() const;

   private:
    TlsChannel& channel_;
    const User user_;
    bool is_in_;
  };

  static const BIO_METHOD* Memory();
  static int ReadInput(BIO* bio, char* data, int bytes);
  static int WriteOutput(BIO* bio, const char* data, int bytes);
  static long Control(BIO* bio, int what, long number, void* pointer);

  // Calls it, and says what came of it. `call` returns what OpenSSL does: positive for success.
  template <typename Call>
  Step Run(Call call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::StatusOr<size_t> ReadAsReader(std::span<std::byte> buffer);
  // Receives more. OUT_OF_RANGE: there is no more.
  absl::Status Receive();
  // Passes on what sessions have come.
  void KeepSessions();

  // Seals some records of it; how much that was. REQUIRES: output_ is empty.
  absl::StatusOr<size_t> Seal(Plaintext& plaintext) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The writer's: until all is sent.
  absl::Status SendAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One piece of it. Gives the mutex up meanwhile.
  absl::Status SendOutput() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As much of it as the socket takes now, if nobody else sends.
  void SendAtOnce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As far as OpenSSL comes with what it has.
  Step HandshakeStep() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status HandshakeFailure() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Failure(std::string_view operation) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Socket& socket_;
  const std::string_view alpn_choice_;
  KeepSession keep_session_;  // The reader's.

  // Who is inside, by User. Set and cleared by whoever enters and leaves; read likewise.
  bobbin::internal::Atomic<uint8_t> users_{0};
  // Set by the reader, once; read by who has it read.
  bobbin::internal::Atomic<bool> was_cut_off_{false};

  mutable Mutex mutex_;
  // Used with the mutex held, but for what never changes after the handshake.
  const OpenSslPtr<SSL> ssl_;
  // What was received and OpenSSL has not taken: a part of one of the two behind it. Written by the
  // reader.
  std::span<const std::byte> input_ ABSL_GUARDED_BY(mutex_);
  PooledBytes pooled_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<std::byte[]> bulk_ ABSL_GUARDED_BY(mutex_);
  // Whether the last piece filled its buffer, so that there is more. The reader's.
  bool more_comes_ = false;
  // Sealed, and not yet sent.
  std::vector<std::byte> output_ ABSL_GUARDED_BY(mutex_);
  bool is_sending_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_established_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;  // This side has said so.
  // What OpenSSL cannot go on after; without a text if all is well.
  OpenSslError failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<OpenSslPtr<SSL_SESSION>> fresh_sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_TLS_TLS_CHANNEL_H_
