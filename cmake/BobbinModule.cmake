# SPDX-License-Identifier: Apache-2.0
#
# What the folders of this project declare, one function each:
#
#   bobbin_module   a library with a public and a private half, installed and exported
#   bobbin_test     a test executable, one ctest entry for each of its cases
#   bobbin_bench    one file of the benchmark executable
#
# Files are listed by hand. A file that no list names fails tests/tidy.

include_guard(GLOBAL)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
include(GoogleTest)

set(BOBBIN_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/bobbin")

# How our own files are compiled. Linked PRIVATE and never exported: who uses the libraries
# inherits none of it. As a part of another project the warnings stay warnings, for its compiler
# may know some that ours do not.
add_library(bobbin_build_options INTERFACE)
target_compile_options(bobbin_build_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${PROJECT_IS_TOP_LEVEL}>:-Werror>)
# Private files are included by their path from the root: "core/src/task.h".
target_include_directories(bobbin_build_options INTERFACE "${PROJECT_SOURCE_DIR}")

# bobbin_module(<name> [TARGET <target>] HEADERS... SOURCES... [NATIVE...] [SIMULATED...]
#               [PUBLIC...] [PRIVATE...])
#
# Makes the library bobbin::<target> out of the folder it is called in; <target> is <name>, unless
# the folder holds more than one. HEADERS are the public ones, below include/. PUBLIC and PRIVATE
# are the libraries it links.
#
# A module with SIMULATED sources is also a part of bobbin::testing, which has those in the place of
# the NATIVE ones; see bobbin_simulated_library.
#
# Each library is a component of the installed package, with an export file of its own, so that
# finding one does not ask for what only another one needs. bobbin-config.cmake.in says what that
# is.
function(bobbin_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TARGET"
    "HEADERS;SOURCES;NATIVE;SIMULATED;PUBLIC;PRIVATE")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "bobbin_module(${name}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  if(NOT arg_TARGET)
    set(arg_TARGET ${name})
  endif()
  set(library bobbin_${arg_TARGET})

  add_library(${library} STATIC ${arg_SOURCES} ${arg_NATIVE})
  add_library(bobbin::${arg_TARGET} ALIAS ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${arg_TARGET})
  target_sources(${library} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${arg_HEADERS})
  target_compile_features(${library} PUBLIC cxx_std_20)
  target_link_libraries(${library}
    PUBLIC ${arg_PUBLIC}
    PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:bobbin_build_options>)

  bobbin_build_kind(${library} native)
  bobbin_install_library(${arg_TARGET})

  if(arg_SIMULATED)
    list(TRANSFORM arg_SOURCES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
    list(TRANSFORM arg_SIMULATED PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
    set_property(GLOBAL APPEND PROPERTY bobbin_simulated_sources ${arg_SOURCES} ${arg_SIMULATED})
    set_property(GLOBAL APPEND PROPERTY bobbin_simulated_includes
      "${CMAKE_CURRENT_SOURCE_DIR}/include")
    list(FILTER arg_PUBLIC EXCLUDE REGEX "^bobbin::")
    set_property(GLOBAL APPEND PROPERTY bobbin_simulated_public ${arg_PUBLIC})
    set_property(GLOBAL APPEND PROPERTY bobbin_simulated_private ${arg_PRIVATE})
  endif()
endfunction()

# Every library is of one kind, and a program that links two kinds is refused: the same names would
# mean different code.
function(bobbin_build_kind library kind)
  set_target_properties(${library} PROPERTIES
    INTERFACE_BOBBIN_BUILD_KIND ${kind}
    COMPATIBLE_INTERFACE_STRING BOBBIN_BUILD_KIND)
endfunction()

# Makes the library a component of the installed package.
function(bobbin_install_library target)
  install(TARGETS bobbin_${target} EXPORT bobbin-${target} FILE_SET HEADERS)
  install(EXPORT bobbin-${target}
    FILE bobbin-${target}-targets.cmake
    NAMESPACE bobbin::
    DESTINATION "${BOBBIN_PACKAGE_DIR}")
endfunction()

# bobbin_simulated_library(<target> HEADERS...)
#
# Makes the library bobbin::<target>: the modules so far that have a simulated half, all in one,
# compiled with BOBBIN_SIMULATED, which whoever links it inherits. HEADERS are those that no other
# library has, below include/.
function(bobbin_simulated_library target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS")
  set(library bobbin_${target})
  foreach(what IN ITEMS sources includes public private)
    get_property(${what} GLOBAL PROPERTY bobbin_simulated_${what})
    list(REMOVE_DUPLICATES ${what})
  endforeach()

  add_library(${library} STATIC ${sources})
  add_library(bobbin::${target} ALIAS ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${target} UNITY_BUILD_MODE GROUP)
  # In a unity build never two modules in one file: they name things alike.
  set(index 0)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH module "${PROJECT_SOURCE_DIR}" "${source}")
    string(REGEX REPLACE "/.*" "" module "${module}")
    math(EXPR batch "${index} / 8")
    math(EXPR index "${index} + 1")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${module}_${batch})
    if(source MATCHES "/simulator\\.cc$")
      # Its classes have members of types that only it knows: GCC takes that in a file of its own.
      set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  target_sources(${library} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${arg_HEADERS})
  target_include_directories(${library} PUBLIC "$<BUILD_INTERFACE:${includes}>")
  target_compile_features(${library} PUBLIC cxx_std_20)
  target_compile_definitions(${library} PUBLIC BOBBIN_SIMULATED=1)
  # It makes thousands of runs: unoptimised, it would make them five times as long.
  target_compile_options(${library} PRIVATE $<$<CONFIG:Debug>:-O1>)
  target_link_libraries(${library}
    PUBLIC ${public}
    PRIVATE ${private} $<BUILD_INTERFACE:bobbin_build_options>)
  bobbin_build_kind(${library} simulated)
  bobbin_install_library(${target})
endfunction()

# Makes what find_package(bobbin COMPONENTS ...) reads. Called once, after the modules.
function(bobbin_install_package)
  configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/bobbin-config.cmake.in" "${PROJECT_BINARY_DIR}/bobbin-config.cmake"
    INSTALL_DESTINATION "${BOBBIN_PACKAGE_DIR}"
    NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/bobbin-config-version.cmake"
    COMPATIBILITY SameMajorVersion)
  install(
    FILES
      "${PROJECT_BINARY_DIR}/bobbin-config.cmake"
      "${PROJECT_BINARY_DIR}/bobbin-config-version.cmake"
    DESTINATION "${BOBBIN_PACKAGE_DIR}")
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
endfunction()

# bobbin_test(<module> <name> [LABELS...] [LIBS...] [TIMEOUT <seconds>] [SERIAL])
#
# Makes an executable out of tests/<module>/<name>_test.cc and registers each of its cases as
# `<module>.<Suite>.<Case>`, with the label <module> and those in LABELS. It links the module of
# that name, if there is one, LIBS, and the support library. TIMEOUT bounds one case. SERIAL cases
# measure, or need every CPU: nothing else runs beside them.
function(bobbin_test module name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "SERIAL" "TIMEOUT" "LABELS;LIBS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "bobbin_test(${module} ${name}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)  # A hanging case ends itself long before, and says where it hangs.
  endif()
  if(TARGET bobbin::${module})
    list(PREPEND arg_LIBS bobbin::${module})
  endif()
  set(test ${module}_${name}_test)

  add_executable(${test} "${PROJECT_SOURCE_DIR}/tests/${module}/${name}_test.cc")
  target_link_libraries(${test} PRIVATE bobbin_test_options ${arg_LIBS} bobbin_test_support)

  gtest_discover_tests(${test}
    TEST_PREFIX ${module}.
    TEST_LIST ${test}_cases
    NO_PRETTY_TYPES NO_PRETTY_VALUES
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${arg_SERIAL})

  # A list of labels does not survive PROPERTIES, above. ctest reads this once it knows the cases.
  set(labels ${module} ${arg_LABELS})
  set(labels_file "${CMAKE_CURRENT_BINARY_DIR}/${test}_labels.cmake")
  file(WRITE "${labels_file}"
    "set_tests_properties(\${${test}_cases} PROPERTIES LABELS \"${labels}\")\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${labels_file}")
endfunction()

# bobbin_bench(<module> <name> [LIBS...])
#
# Adds bench/<module>/<name>_bench.cc to the one benchmark executable, bobbin_bench, so that a
# figure and the baseline it is compared with come from the same run of the same program.
function(bobbin_bench module name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "LIBS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "bobbin_bench(${module} ${name}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  if(TARGET bobbin::${module})
    list(PREPEND arg_LIBS bobbin::${module})
  endif()

  if(NOT TARGET bobbin_bench)
    find_package(benchmark REQUIRED)
    add_executable(bobbin_bench)
    target_link_libraries(bobbin_bench PRIVATE bobbin_build_options benchmark::benchmark_main)
    set_target_properties(bobbin_bench PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
  endif()
  target_sources(bobbin_bench PRIVATE "${PROJECT_SOURCE_DIR}/bench/${module}/${name}_bench.cc")
  target_link_libraries(bobbin_bench PRIVATE ${arg_LIBS})
endfunction()
