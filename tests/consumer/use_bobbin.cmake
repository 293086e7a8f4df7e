# SPDX-License-Identifier: Apache-2.0
#
# Uses bobbin in one of two WAYs, from an empty SCRATCH folder. Any step that fails ends the script.

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY COMMAND_ECHO STDOUT)
endfunction()

set(configure "${CMAKE_COMMAND}" -G Ninja "-DCMAKE_CXX_COMPILER=${COMPILER}"
  -S "${CMAKE_CURRENT_LIST_DIR}/project" -B "${SCRATCH}/build")
file(REMOVE_RECURSE "${SCRATCH}")

if(WAY STREQUAL "installed")
  run("${CMAKE_COMMAND}" --install "${BOBBIN_BUILD}" --prefix "${SCRATCH}/prefix")
  run(${configure} "-DCMAKE_PREFIX_PATH=${SCRATCH}/prefix")
  run("${CMAKE_COMMAND}" --build "${SCRATCH}/build")
  run("${SCRATCH}/build/consumer")
  run("${SCRATCH}/build/due")
  run("${SCRATCH}/build/simulated")
  run("${SCRATCH}/prefix/bin/bobbin-cron" check "0 0 9 * * *")
else()
  # Whether every target is found from outside shows when the project is configured; compiling all
  # of bobbin once more would show nothing new.
  run(${configure} "-DBOBBIN_SOURCE=${BOBBIN_SOURCE}")
endif()
