// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/check.h>
#include <bobbin/io/tls_client_context.h>
#include <bobbin/io/tls_server_context.h>

#include "io/src/tls_seam.h"

namespace bobbin::io {

TlsStatistics TlsServerContext::Statistics() const {
  BOBBIN_CHECK(server_ != nullptr, "this TlsServerContext holds nothing");
  return server_->Statistics();
}

TlsStatistics TlsClientContext::Statistics() const {
  BOBBIN_CHECK(client_ != nullptr, "this TlsClientContext holds nothing");
  return client_->Statistics();
}

}  // namespace bobbin::io
