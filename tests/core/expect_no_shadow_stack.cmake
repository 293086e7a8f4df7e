# SPDX-License-Identifier: Apache-2.0
#
# Of ARCHIVE, the object that switches stacks must not be marked as fit for a shadow stack, whatever
# flags it is compiled with: a linker marks what it links only if all of it is marked.

execute_process(
  COMMAND "${READELF}" -n "${ARCHIVE}"
  OUTPUT_VARIABLE notes
  COMMAND_ERROR_IS_FATAL ANY)
string(FIND "${notes}" "(context.cc.o)" begin)
if(begin EQUAL -1)
  message(FATAL_ERROR "${ARCHIVE} holds no context.cc.o")
endif()
string(SUBSTRING "${notes}" ${begin} -1 notes)
string(REGEX REPLACE "\nFile: .*" "" notes "${notes}")
if(notes MATCHES "SHSTK")
  message(FATAL_ERROR "context.cc.o is marked as fit for a shadow stack:\n${notes}")
endif()
