// SPDX-License-Identifier: Apache-2.0
//
// ClientExchange: one request on one connection, and its response.
//
//   Called from   one thread at a time.
//   Suspends      Run and ReadBody.

#ifndef BOBBIN_IO_SRC_HTTP_CLIENT_EXCHANGE_H_
#define BOBBIN_IO_SRC_HTTP_CLIENT_EXCHANGE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/io/http/client.h>

#include "io/src/http/client_pool.h"
#include "io/src/http/head.h"
#include "io/src/http/url.h"

namespace bobbin::io::http::internal {

class ClientExchange {
 public:
  explicit ClientExchange(ClientPool::Lease lease) : lease_(std::move(lease)) {}
  ClientExchange(const ClientExchange&) = delete;
  ClientExchange& operator=(const ClientExchange&) = delete;
  ~ClientExchange();

  // Sends the request and waits for the header of its response. REQUIRES: the lease has a
  // connection.
  absl::Status Run(ClientRequest& request, const Url& url);
  // Whether a byte of a response has come.
  bool has_answer() const { return has_answer_; }
  ClientPool::Lease& lease() { return lease_; }

  const ResponseHead& head() const { return lease_.connection->head; }
  absl::StatusOr<size_t> ReadBody(std::span<std::byte> buffer);
  // Reads a short body for nothing, so that the connection can be used again.
  void PassBody();

 private:
  void AppendHead(const ClientRequest& request, const Url& url, BodyOutput::Framing framing,
                  uint64_t bytes);
  absl::Status SendBody(ClientRequest& request, BodyOutput::Framing framing, uint64_t bytes);
  // Whether the server wants the body.
  absl::StatusOr<bool> AwaitContinue();
  // Waits for a head; one of an interim response, too.
  absl::Status ReceiveHead();
  // The same, past interim ones.
  absl::Status ReceiveFinalHead();
  absl::Status BeginBody(std::string_view method);

  ClientPool::Lease lease_;
  bool has_answer_ = false;
  // Whether the connection can be used again once the body has been read.
  bool is_reusable_ = false;
};

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_CLIENT_EXCHANGE_H_
