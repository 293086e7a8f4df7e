// SPDX-License-Identifier: Apache-2.0
//
// HTTP fuzz: some bytes for what takes HTTP apart, whatever they are.
//
//   Called from   any thread.

#ifndef BOBBIN_TESTS_IO_HTTP_FUZZ_H_
#define BOBBIN_TESTS_IO_HTTP_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bobbin::test {

// Takes `bytes` for the head of a request and of a response, for a chunked body, and for a URL;
// aborts if what comes of it contradicts itself.
void ParseAnyHttp(std::string_view bytes);

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_IO_HTTP_FUZZ_H_
