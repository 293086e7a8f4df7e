// SPDX-License-Identifier: Apache-2.0
//
// Collector: sends what OtlpSpans makes to a collector of OpenTelemetry.
//
//   Called from   PostTo: any thread. What it returns: virtual, platform and foreign threads, one
//                 at a time; OtlpSpans does it on a thread of its own.
//   Suspends      What it returns, as Client::Send. PostTo never.
//   Cancellation  as Client::Send.
//   Errors        Of what it returns. UNAVAILABLE: there is no connection, or the collector says
//                 502, 503 or 504. RESOURCE_EXHAUSTED: it says 429. These OtlpSpans tries again.
//                 INVALID_ARGUMENT: it says anything else that is not 2xx. UNAUTHENTICATED: over
//                 TLS, it is not who it should be; it gets nothing. FAILED_PRECONDITION: https, and
//                 there is no context for it.
//   Cost          The connection is kept for the next body.
//
// Example:
//   const auto spans = bobbin::OtlpSpans::Make(
//       {.send = bobbin::io::http::PostTo({.url = "http://127.0.0.1:4318/v1/traces"}),
//        .service_name = "shop"});

#ifndef BOBBIN_IO_HTTP_COLLECTOR_H_
#define BOBBIN_IO_HTTP_COLLECTOR_H_

#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include <bobbin/io/http/fields.h>
#include <bobbin/io/tls_client_context.h>

namespace bobbin::io::http {

struct CollectorOptions {
  std::string url = "http://127.0.0.1:4318/v1/traces";
  // Beside Content-Type: an Authorization, for example.
  Fields fields = {};
  // For https: whom it believes, and who it is for a collector that asks. Holds nothing: there is
  // no https.
  TlsClientContext tls = {};
};

absl::AnyInvocable<absl::Status(std::string_view body)> PostTo(CollectorOptions options);

}  // namespace bobbin::io::http

#endif  // BOBBIN_IO_HTTP_COLLECTOR_H_
