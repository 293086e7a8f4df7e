# SPDX-License-Identifier: Apache-2.0
#
# Builds TARGET in BUILD_DIR, which has to fail with the message that the first line of SOURCE
# expects.

file(STRINGS "${SOURCE}" first_line LIMIT_COUNT 1)
string(REGEX REPLACE "^// EXPECT[^:]*: " "" expected "${first_line}")

execute_process(
  COMMAND "${CMAKE_COMMAND}" --build "${BUILD_DIR}" --target "${TARGET}"
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output
  RESULT_VARIABLE result)

if(result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, and must not.")
endif()
if(NOT output MATCHES "${expected}")
  message(FATAL_ERROR "${SOURCE} fails, but without this message:\n  ${expected}\n${output}")
endif()
