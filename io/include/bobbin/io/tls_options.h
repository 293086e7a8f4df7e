// SPDX-License-Identifier: Apache-2.0
//
// TlsVersion, TlsStatistics: what TLS contexts of servers and of clients share.
//
//   Called from   any thread.
//   Suspends      never.

#ifndef BOBBIN_IO_TLS_OPTIONS_H_
#define BOBBIN_IO_TLS_OPTIONS_H_

#include <cstdint>

namespace bobbin::io {

enum class TlsVersion : uint8_t { kTls12, kTls13 };

// Of the connections of a context, ever.
struct TlsStatistics {
  uint64_t handshakes = 0;  // That were completed.
  uint64_t resumed = 0;     // Of them: that went on with the keys of an earlier connection.
  uint64_t failed = 0;      // That were not completed, for whatever reason.
};

}  // namespace bobbin::io

#endif  // BOBBIN_IO_TLS_OPTIONS_H_
