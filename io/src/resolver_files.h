// SPDX-License-Identifier: Apache-2.0
//
// ResolverFiles: what resolv.conf and the hosts file say.
//
// A file that is missing or cannot be read says nothing: then the name server of this host is
// asked. Lines that mean nothing are passed over, as everywhere else. Beyond what the system reads,
// a name server may have a port: `nameserver 127.0.0.1:5353`, `nameserver [::1]:5353`.
//
//   Called from   Parse...: any thread. LoadIfChanged: platform and foreign threads.
//   Suspends      LoadIfChanged blocks the OS thread.

#ifndef BOBBIN_IO_SRC_RESOLVER_FILES_H_
#define BOBBIN_IO_SRC_RESOLVER_FILES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include <bobbin/io/address.h>

namespace bobbin::io::internal {

struct ResolvConf {
  static ResolvConf Parse(std::string_view text);

  std::vector<SocketAddress> servers;
  std::vector<std::string> search;  // Canonical.
  int dots_min = 1;
  std::chrono::seconds attempt{5};
  int attempts = 2;
  bool rotates = false;   // Whether the servers take turns at being the first.
  bool uses_tcp = false;  // Whether all questions go over TCP.
};

// By canonical name, in the order of the file.
using Hosts = absl::flat_hash_map<std::string, std::vector<SocketAddress>>;
Hosts ParseHosts(std::string_view text);

// Tells a file from the one that had its name before.
struct FileVersion {
  uint64_t device = 0;
  uint64_t number = 0;
  int64_t bytes = -1;    // -1: there is none.
  int64_t modified = 0;  // In nanoseconds, here and below.
  int64_t changed = 0;
  // Whether a later change would have to show: not if the file was changed right before.
  bool is_settled = true;

  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

struct ResolverFiles {
  // What the files say now: `known`, if nothing has changed since.
  static std::shared_ptr<const ResolverFiles> LoadIfChanged(
      const std::string& resolv_conf_path, const std::string& hosts_path,
      std::shared_ptr<const ResolverFiles> known);

  bool SaysTheSameAs(const ResolverFiles& other) const {
    return resolv_conf_text == other.resolv_conf_text && hosts_text == other.hosts_text;
  }

  ResolvConf resolv_conf;
  Hosts hosts;
  std::string resolv_conf_text;
  std::string hosts_text;
  FileVersion resolv_conf_version;
  FileVersion hosts_version;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_RESOLVER_FILES_H_
