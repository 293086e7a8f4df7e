// SPDX-License-Identifier: Apache-2.0
//
// Lines: a connection that is spoken to in lines, as by SMTP.
//
//   Called from   one virtual thread at a time.
//   Suspends      ReadLine and Write.
//   Errors        OUT_OF_RANGE: the peer has finished. RESOURCE_EXHAUSTED: the line is too long.

#ifndef BOBBIN_DOCS_EXAMPLES_SHOP_LINES_H_
#define BOBBIN_DOCS_EXAMPLES_SHOP_LINES_H_

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/status.h>
#include <bobbin/io/tcp.h>

namespace shop {

class Lines {
 public:
  explicit Lines(bobbin::io::TcpStream& stream) : stream_(stream) {}

  // The next line, without its CR LF.
  absl::StatusOr<std::string> ReadLine() {
    while (true) {
      const size_t end = buffer_.find("\r\n");
      if (end != buffer_.npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 2);
        return line;
      }
      if (buffer_.size() > kLineBytesMax) return absl::ResourceExhaustedError("a line too long");
      std::array<std::byte, 4096> more;
      BOBBIN_ASSIGN_OR_RETURN(const size_t received, stream_.Read(more));
      if (received == 0) return absl::OutOfRangeError("the peer has finished");
      buffer_.append(reinterpret_cast<const char*>(more.data()), received);
    }
  }
  absl::Status Write(std::string_view text) {
    return stream_.WriteAll(std::as_bytes(std::span(text)));
  }

 private:
  static constexpr size_t kLineBytesMax = 4096;

  bobbin::io::TcpStream& stream_;
  std::string buffer_;
};

}  // namespace shop

#endif  // BOBBIN_DOCS_EXAMPLES_SHOP_LINES_H_
