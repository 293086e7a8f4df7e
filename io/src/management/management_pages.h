// SPDX-License-Identifier: Apache-2.0
//
// ManagementPages: what a management server answers to a request whose header is whole.
//
//   Called from   the management server's thread.
//   Suspends      blocks the OS thread while a dump is made, for its budget at most, and while
//                 somebody else takes a snapshot of the same metrics.

#ifndef BOBBIN_IO_SRC_MANAGEMENT_MANAGEMENT_PAGES_H_
#define BOBBIN_IO_SRC_MANAGEMENT_MANAGEMENT_PAGES_H_

#include <string>
#include <string_view>

#include <bobbin/io/management_server.h>
#include <bobbin/sched/dump.h>

#include "io/src/http/head.h"

namespace bobbin::io::internal {

// What is sent, with its header.
struct ManagementAnswer {
  int status = 200;
  std::string body = {};
  std::string_view content_type = "text/plain; charset=utf-8";
  // To HEAD: the header alone.
  bool is_head = false;

  std::string Text() const;
};

class ManagementPages {
 public:
  ManagementPages(Runtime& runtime, const ManagementOptions& options)
      : runtime_(runtime), options_(options) {}

  // REQUIRES: `head` is whole, as HeadScan finds it.
  ManagementAnswer Answer(std::string_view head) const;

 private:
  ManagementAnswer AnswerPage(const http::internal::RequestHead& head) const;
  // Adds to what /health says; whether all is well.
  bool AddLive(std::string& text) const;
  bool AddReady(std::string& text) const;
  ManagementAnswer Dump(DumpFormat format) const;
  std::string MetricsText() const;

  Runtime& runtime_;
  const ManagementOptions& options_;
};

// One line that says why.
ManagementAnswer ManagementRefusal(int status, std::string_view why);

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_MANAGEMENT_MANAGEMENT_PAGES_H_
