// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/io/http/client.h>
#include <bobbin/io/http/collector.h>

namespace bobbin::io::http {

namespace {

absl::StatusCode CodeOf(int status) {
  switch (status) {
    case 429:
      return absl::StatusCode::kResourceExhausted;
    case 502:
    case 503:
    case 504:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInvalidArgument;
  }
}

}  // namespace

absl::AnyInvocable<absl::Status(std::string_view body)> PostTo(CollectorOptions options) {
  options.fields.Set("Content-Type", "application/json");
  auto client = std::make_unique<Client>(ClientOptions{.tls = options.tls});
  return [options = std::move(options),
          client = std::move(client)](std::string_view body) -> absl::Status {
    BOBBIN_ASSIGN_OR_RETURN(ClientResponse response, client->Send({.method = "POST",
                                                                   .url = options.url,
                                                                   .fields = options.fields,
                                                                   .body = std::string(body)}));
    // Read to its end, so that the connection is kept.
    BOBBIN_RETURN_IF_ERROR(response.ReadAll().status());
    if (response.status() / 100 == 2) return absl::OkStatus();
    return MakeStatus(CodeOf(response.status()), fmt::format("post to {}: the collector says {}",
                                                             options.url, response.status()));
  };
}

}  // namespace bobbin::io::http
