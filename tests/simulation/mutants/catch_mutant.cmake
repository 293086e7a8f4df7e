# SPDX-License-Identifier: Apache-2.0
#
# Brings the copy of the tree in SCRATCH up to date, plants PATCH, builds, and runs the cases that
# it names: they must fail, and say what it expects. Without PATCH all of them must pass.

set(copy "${SCRATCH}/source")
set(build "${SCRATCH}/build")

# What differs is what the last mistake was planted in, or what somebody has edited. A copy is as
# old as it is, so that the build notices.
file(GLOB_RECURSE files RELATIVE "${SOURCE}"
  "${SOURCE}/core/*" "${SOURCE}/sched/*" "${SOURCE}/cmake/*")
foreach(file IN LISTS files ITEMS
    CMakeLists.txt CHANGES.md LICENSE
    tests/simulation/executor_interleaving_test.cc tests/simulation/interleaving_test.cc)
  get_filename_component(folder "${copy}/${file}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  file(COPY_FILE "${SOURCE}/${file}" "${copy}/${file}" ONLY_IF_DIFFERENT)
endforeach()

set(filter "*")
if(PATCH)
  file(READ "${PATCH}" text)
  if(NOT text MATCHES "\nExpect: ([^\n]+)\nTests: ([^\n]+)\n")
    message(FATAL_ERROR "${PATCH}: neither `Expect:` nor `Tests:`")
  endif()
  set(expected "${CMAKE_MATCH_1}")
  set(filter "${CMAKE_MATCH_2}")
  execute_process(COMMAND patch --silent --strip=1 --no-backup-if-mismatch "--input=${PATCH}"
    WORKING_DIRECTORY "${copy}" COMMAND_ERROR_IS_FATAL ANY)
endif()

if(NOT EXISTS "${build}/build.ninja")
  execute_process(COMMAND "${CMAKE_COMMAND}" -G Ninja "-DCMAKE_CXX_COMPILER=${COMPILER}"
      "-DBOBBIN_SOURCE=${copy}" -S "${CMAKE_CURRENT_LIST_DIR}/project" -B "${build}"
    COMMAND_ERROR_IS_FATAL ANY)
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${build}" COMMAND_ERROR_IS_FATAL ANY)

execute_process(COMMAND "${build}/mutant_test" "--gtest_filter=${filter}" --gtest_fail_fast
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT PATCH)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "it fails without a mistake:\n${output}")
  endif()
elseif(result EQUAL 0)
  message(FATAL_ERROR "the mistake is not found")
elseif(NOT output MATCHES "a simulation fails: [^\n]*(${expected})")
  message(FATAL_ERROR "the report is not `${expected}`:\n${output}")
endif()
