# SPDX-License-Identifier: Apache-2.0
#
# What bobbin-compare promises to those who start it: figures, JSON, messages, exit codes.
#
#   cmake -DPROGRAM=<bobbin-compare> -DDIRECTORY=<for files> -P compare_test.cmake

cmake_minimum_required(VERSION 3.25)

file(MAKE_DIRECTORY "${DIRECTORY}")

function(check_that what)
  if(${ARGN})
    return()
  endif()
  message(SEND_ERROR "not so: ${what}\nit said: ${output}${errors}")
endfunction()

# Runs the program; sets code, output and errors.
macro(run_compare)
  execute_process(COMMAND "${PROGRAM}" ${ARGN}
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE errors)
endmacro()

# Refused: exit code 2, nothing but one line, which matches.
function(expect_refusal expected)
  run_compare(${ARGN})
  check_that("'${ARGN}' ends with 2, not ${code}" code EQUAL 2)
  check_that("'${ARGN}' prints nothing" output MATCHES "^$")
  check_that("'${ARGN}' says '${expected}'"
    errors MATCHES "^bobbin-compare: [^\n]*${expected}[^\n]*\n$")
endfunction()

# A figure of a result is a number in a range.
function(check_figure result name least most)
  string(JSON type ERROR_VARIABLE missing TYPE "${result}" figures ${name})
  check_that("${name} is a number" type STREQUAL "NUMBER")
  string(JSON figure GET "${result}" figures ${name})
  check_that("${name} is ${figure}, from ${least} to ${most}"
    figure GREATER_EQUAL least AND figure LESS_EQUAL most)
endfunction()

# Every workload on both kinds, small.
set(report "${DIRECTORY}/report.json")
file(REMOVE "${report}")
run_compare(wait echo async sqlite postgres mysql cpu
  --concurrency 8 --seconds 0.5 --json "${report}")
check_that("all workloads run" code EQUAL 0)
check_that("nothing is said on standard error" errors MATCHES "^$")
foreach(word IN ITEMS "wait:" "echo:" "async:" "sqlite:" "postgres:" "mysql:" "cpu:"
    "VIRTUAL +PLATFORM +ratio" "8 threads"
    "operations/s" "p50" "p99" "p99.9" "CPU/operation" "switches/op" "memory/thread" "OS threads")
  check_that("the table has ${word}" output MATCHES "${word}")
endforeach()

file(READ "${report}" json)
string(JSON count LENGTH "${json}" results)
check_that("14 results, not ${count}" count EQUAL 14)
string(JSON cpus GET "${json}" machine cpus)
check_that("there are CPUs" cpus GREATER 0)
foreach(field IN ITEMS cpu kernel compiler io)
  string(JSON text GET "${json}" machine ${field})
  check_that("the machine has a ${field}" text MATCHES ".")
endforeach()
set(order wait virtual wait platform echo virtual echo platform async virtual async platform
  sqlite virtual sqlite platform postgres virtual postgres platform
  mysql virtual mysql platform cpu virtual cpu platform)
foreach(index RANGE 13)
  string(JSON result GET "${json}" results ${index})
  string(JSON status GET "${result}" status)
  check_that("result ${index} is measured" status STREQUAL "measured")
  list(POP_FRONT order expected_workload expected_kind)
  string(JSON workload GET "${result}" workload)
  string(JSON kind GET "${result}" kind)
  check_that("result ${index} is ${expected_workload}, ${expected_kind}"
    workload STREQUAL expected_workload AND kind STREQUAL expected_kind)
  string(JSON concurrency GET "${result}" concurrency)
  check_that("8 threads, not ${concurrency}" concurrency EQUAL 8)
  check_figure("${result}" operations 1 1000000000)
  check_figure("${result}" operations_per_second 1 1000000000)
  check_figure("${result}" latency_p50_us 0 10000000)
  string(JSON p50 GET "${result}" figures latency_p50_us)
  check_figure("${result}" latency_p99_us ${p50} 10000000)
  string(JSON p99 GET "${result}" figures latency_p99_us)
  check_figure("${result}" latency_p999_us ${p99} 10000000)
  check_figure("${result}" os_threads_peak 1 1000)
  check_figure("${result}" resident_bytes_per_unit 0 1000000000)
  check_figure("${result}" context_switches_per_operation 0 1000)
  check_figure("${result}" cpu_us_per_operation 0 1000000)
  string(JSON threads GET "${result}" figures os_threads_peak)
  if(kind STREQUAL "platform")
    check_that("8 platform threads are OS threads" threads GREATER 8)
  endif()
endforeach()

# One kind alone.
run_compare(wait --kind virtual --concurrency 4,8 --seconds 0.1)
check_that("one kind alone runs" code EQUAL 0)
check_that("it has no other column" NOT output MATCHES "PLATFORM| ratio")

# A server that is named and not there is a failure; one that cannot be started is not.
run_compare(postgres --concurrency 2 --seconds 0.1 --kind virtual
  --postgres "host=127.0.0.1 port=1 user=nobody dbname=none")
check_that("a server that does not answer is a failure" code EQUAL 1)
check_that("it says so" output MATCHES "VIRTUAL, 2 threads: FAILED: ")
run_compare(mysql --concurrency 2 --seconds 0.1 --kind virtual
  --mysql "mysql://nobody@127.0.0.1:1")
check_that("nor is the other one" code EQUAL 1)
check_that("it says so, too" output MATCHES "VIRTUAL, 2 threads: FAILED: ")
file(REMOVE "${report}")
execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env TMPDIR=${DIRECTORY}/none "${PROGRAM}"
    postgres --concurrency 2 --seconds 0.1 --json "${report}"
  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE errors)
check_that("a server that cannot be started is no failure" code EQUAL 0)
check_that("it says why" output MATCHES "Not done: [^\n]*${DIRECTORY}/none")
file(READ "${report}" json)
string(JSON status GET "${json}" results 1 status)
check_that("the report says that it was not there" status STREQUAL "unavailable")

# Threads run out: said, and no failure. More of them are not tried after that.
execute_process(
  COMMAND sh -c "ulimit -v 1000000; exec \"$0\" \"$@\"" "${PROGRAM}"
    wait --kind platform --concurrency 100000,200000 --seconds 0.1
  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE errors)
check_that("running out is no failure" code EQUAL 0)
foreach(threads IN ITEMS 100,000 200,000)
  check_that("it says how far it came"
    output MATCHES "PLATFORM, ${threads} threads: threads ran out at [0-9,]+\n")
endforeach()

# Help.
run_compare(--help)
check_that("--help is no mistake" code EQUAL 0)
foreach(word IN ITEMS "Usage: bobbin-compare"
    "wait" "echo" "async" "sqlite" "postgres" "mysql" "cpu"
    "--kind" "--concurrency" "--seconds" "--postgres" "--mysql" "--json")
  check_that("--help tells of ${word}" output MATCHES "${word}")
endforeach()

# Mistakes.
expect_refusal("unknown workload 'waits'.*wait, echo, async, sqlite, postgres, mysql, cpu" waits)
expect_refusal("--kind 'green'" wait --kind green)
expect_refusal("--kind ''" wait --kind virtual,)
expect_refusal("--concurrency '0'" wait --concurrency 0)
expect_refusal("--concurrency '-8'" wait --concurrency -8)
expect_refusal("--concurrency '8x'" wait --concurrency 8x)
expect_refusal("--concurrency '1000001'.* 1 to 1000000" wait --concurrency 8,1000001)
expect_refusal("--concurrency needs a value" wait --concurrency)
expect_refusal("--seconds '0'" wait --seconds 0)
expect_refusal("--seconds '-1'" wait --seconds -1)
expect_refusal("--seconds 'nan'" wait --seconds nan)
expect_refusal("--seconds 'soon'" wait --seconds soon)
expect_refusal("--postgres needs a value" postgres --postgres "")
expect_refusal("--mysql needs a value" mysql --mysql "")
expect_refusal("unknown option '--fast'" wait --fast)
expect_refusal("--json ${DIRECTORY}: is a directory" wait --json "${DIRECTORY}")
expect_refusal("--json ${DIRECTORY}/none/report.json: no such file"
  wait --json "${DIRECTORY}/none/report.json")
