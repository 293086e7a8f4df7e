// SPDX-License-Identifier: Apache-2.0
//
// Output: what is to be sent on a connection, gathered. BodyOutput: a body on its way there.
//
//   Called from   one thread at a time.
//   Suspends      Flush, and what calls it.
//   Cancellation  as Transport::Write; after a failure all that follows fails in the same way.

#ifndef BOBBIN_IO_SRC_HTTP_OUTPUT_H_
#define BOBBIN_IO_SRC_HTTP_OUTPUT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include <bobbin/io/http/body_writer.h>

#include "io/src/http/transport.h"

namespace bobbin::io::http::internal {

class Output {
 public:
  // As much is gathered, and more is sent from where it lies. Not tuned.
  static constexpr size_t kGatheredMax = size_t{16} << 10;

  // `write_duration`: how long it waits for the peer's side to take something.
  Output(Transport& transport, std::chrono::nanoseconds write_duration)
      : transport_(transport), write_duration_(write_duration) {}

  // Where to append.
  std::string& gathered() { return gathered_; }
  bool is_empty() const { return gathered_.empty(); }
  // Appends it, or sends it behind what has been gathered.
  absl::Status Append(std::string_view bytes);
  // Sends what has been gathered.
  absl::Status Flush() { return gathered_.empty() ? absl::OkStatus() : Send({}); }
  // Holds no memory until there is something again. REQUIRES: nothing is gathered.
  void Release() { std::string().swap(gathered_); }
  // Sends if enough has been gathered.
  absl::Status FlushIfFull() {
    return gathered_.size() < kGatheredMax ? absl::OkStatus() : Send({});
  }

 private:
  absl::Status Send(std::string_view last);

  Transport& transport_;
  const std::chrono::nanoseconds write_duration_;
  std::string gathered_;
  absl::Status failure_;
};

class BodyOutput final : public BodyWriter {
 public:
  enum class Framing { kLength, kChunked, kToEnd, kNone };

  // `bytes`: with kLength, how many there will be.
  BodyOutput(Output& output, Framing framing, uint64_t bytes)
      : output_(output), left_(bytes), framing_(framing) {}

  absl::Status Write(std::string_view bytes) override;
  absl::Status Flush() override { return output_.Flush(); }
  // After the last Write.
  absl::Status Finish();

 private:
  Output& output_;
  uint64_t left_;
  const Framing framing_;
};

// Appends a number, and a field. REQUIRES: the field is one.
void AppendNumber(uint64_t number, std::string& text);
void AppendField(std::string_view name, std::string_view value, std::string& text);

}  // namespace bobbin::io::http::internal

#endif  // BOBBIN_IO_SRC_HTTP_OUTPUT_H_
