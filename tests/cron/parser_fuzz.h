// SPDX-License-Identifier: Apache-2.0
//
// Parser fuzz: one text for the parser, whatever it is.
//
//   Called from   any thread.

#ifndef BOBBIN_TESTS_CRON_PARSER_FUZZ_H_
#define BOBBIN_TESTS_CRON_PARSER_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bobbin::test {

// Parses `text`, and aborts if what comes of it contradicts itself.
void ParseAnything(std::string_view text);

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_CRON_PARSER_FUZZ_H_
