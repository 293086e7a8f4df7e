// SPDX-License-Identifier: Apache-2.0
//
// Address fuzz: one text for the parsers of addresses, whatever it is.
//
//   Called from   any thread.

#ifndef BOBBIN_TESTS_IO_ADDRESS_FUZZ_H_
#define BOBBIN_TESTS_IO_ADDRESS_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bobbin::test {

// Parses `text` as an address, and aborts if what comes of it contradicts itself.
void ParseAnyAddress(std::string_view text);

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_IO_ADDRESS_FUZZ_H_
