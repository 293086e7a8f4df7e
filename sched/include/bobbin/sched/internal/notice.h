// SPDX-License-Identifier: Apache-2.0
//
// Tell: what the libraries have to say to whoever runs the program: a task has failed and nobody
// hears of it, a carrier is held, descriptors have run out.
//
// Where SetLogging has given the log a sink it is a line of the log, with fields. Else it goes to
// standard error, after "bobbin: ", whatever the level.
//
//   Called from   any thread, the monitor's among them, without a lock.
//   Suspends      as Log does.

#ifndef BOBBIN_SCHED_INTERNAL_NOTICE_H_
#define BOBBIN_SCHED_INTERNAL_NOTICE_H_

#include <string>
#include <string_view>
#include <vector>

#include <bobbin/sched/attribute.h>
#include <bobbin/sched/log.h>

namespace bobbin::internal {

struct Notice {
  LogLevel level = LogLevel::kWarning;
  // Says it all: standard error gets no fields.
  std::string_view text = {};
  std::vector<Attribute> fields = {};
  // Lines with their ends that belong to it. In the log they are the field "stack".
  std::string_view stack = {};
};

void Tell(Notice notice);

}  // namespace bobbin::internal

#endif  // BOBBIN_SCHED_INTERNAL_NOTICE_H_
