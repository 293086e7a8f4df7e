// SPDX-License-Identifier: Apache-2.0

#include "io/src/resolver_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <optional>
#include <utility>

#include "io/src/file_descriptor.h"
#include "io/src/host_name.h"

namespace bobbin::io::internal {

namespace {

constexpr uint16_t kDnsPort = 53;
// As the C library has them.
constexpr size_t kServersMax = 3;
constexpr size_t kSearchMax = 16;
constexpr int kDotsMax = 15;
constexpr int kAttemptSecondsMax = 30;
constexpr int kAttemptsMax = 5;
// More than that is no such file.
constexpr size_t kFileBytesMax = 16 << 20;
// The clock of a file system may tick that coarsely.
constexpr int64_t kUnsettledNanoseconds = 2'000'000'000;

// Takes the next word off `line`; empty at its end.
std::string_view TakeWord(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\r\f\v";
  const size_t begin = std::min(line.find_first_not_of(kBlanks), line.size());
  const size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

// Calls `use` with each line of `text`, without what follows one of `comment_marks`.
template <typename Use>
void ForEachLine(std::string_view text, std::string_view comment_marks, Use use) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    use(line.substr(0, line.find_first_of(comment_marks)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// The number of an option such as `ndots:2`, from 0 to `max`.
std::optional<int> OptionNumber(std::string_view option, std::string_view name, int max) {
  if (!option.starts_with(name) || !option.substr(name.size()).starts_with(':')) return {};
  const std::string_view digits = option.substr(name.size() + 1);
  int number = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || stop != digits.data() + digits.size() || number < 0) return {};
  return std::min(number, max);
}

void TakeOptions(std::string_view line, ResolvConf& conf) {
  for (std::string_view option = TakeWord(line); !option.empty(); option = TakeWord(line)) {
    if (const auto dots = OptionNumber(option, "ndots", kDotsMax)) conf.dots_min = *dots;
    if (const auto seconds = OptionNumber(option, "timeout", kAttemptSecondsMax)) {
      conf.attempt = std::chrono::seconds(std::max(*seconds, 1));
    }
    if (const auto attempts = OptionNumber(option, "attempts", kAttemptsMax)) {
      conf.attempts = std::max(*attempts, 1);
    }
    if (option == "rotate") conf.rotates = true;
    if (option == "use-vc") conf.uses_tcp = true;
  }
}

void TakeServer(std::string_view word, ResolvConf& conf) {
  if (conf.servers.size() == kServersMax) return;
  absl::StatusOr<SocketAddress> server = SocketAddress::Parse(word, kDnsPort);
  if (!server.ok()) server = SocketAddress::Parse(word);
  if (server.ok()) conf.servers.push_back(*server);
}

void TakeSearch(std::string_view line, size_t suffixes_max, ResolvConf& conf) {
  conf.search.clear();
  for (std::string_view suffix = TakeWord(line); !suffix.empty(); suffix = TakeWord(line)) {
    if (conf.search.size() == suffixes_max) return;
    if (suffix == "." || CheckHostName(suffix).ok()) conf.search.push_back(CanonicalName(suffix));
  }
}

int64_t Nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

int64_t WallClockNow() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return Nanoseconds(now);
}

FileVersion VersionOf(const struct stat& stat) {
  const int64_t changed = std::max(Nanoseconds(stat.st_mtim), Nanoseconds(stat.st_ctim));
  return {.device = stat.st_dev,
          .number = stat.st_ino,
          .bytes = stat.st_size,
          .modified = Nanoseconds(stat.st_mtim),
          .changed = Nanoseconds(stat.st_ctim),
          .is_settled = WallClockNow() - changed > kUnsettledNanoseconds};
}

FileVersion VersionAt(const std::string& path) {
  struct stat stat {};
  return ::stat(path.c_str(), &stat) == 0 ? VersionOf(stat) : FileVersion();
}

struct Contents {
  std::string text;
  FileVersion version;
};

Contents Read(const std::string& path) {
  Contents contents;
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat stat {};
  if (!fd.is_open() || ::fstat(fd.get(), &stat) != 0) return contents;
  contents.version = VersionOf(stat);
  std::array<char, 16384> piece;
  while (contents.text.size() < kFileBytesMax) {
    const ssize_t count = ::read(fd.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    contents.text.append(piece.data(), static_cast<size_t>(count));
  }
  return contents;
}

bool IsUnchanged(const FileVersion& known, const std::string& path) {
  return known.is_settled && known == VersionAt(path);
}

}  // namespace

ResolvConf ResolvConf::Parse(std::string_view text) {
  ResolvConf conf;
  ForEachLine(text, "#;", [&conf](std::string_view line) {
    const std::string_view keyword = TakeWord(line);
    if (keyword == "nameserver") TakeServer(TakeWord(line), conf);
    // The last of these two counts.
    if (keyword == "domain") TakeSearch(line, 1, conf);
    if (keyword == "search") TakeSearch(line, kSearchMax, conf);
    if (keyword == "options") TakeOptions(line, conf);
  });
  if (conf.servers.empty()) conf.servers.push_back(*SocketAddress::Parse("127.0.0.1", kDnsPort));
  return conf;
}

Hosts ParseHosts(std::string_view text) {
  Hosts hosts;
  ForEachLine(text, "#", [&hosts](std::string_view line) {
    const absl::StatusOr<SocketAddress> address = SocketAddress::Parse(TakeWord(line), 0);
    if (!address.ok()) return;
    for (std::string_view name = TakeWord(line); !name.empty(); name = TakeWord(line)) {
      std::vector<SocketAddress>& addresses = hosts[CanonicalName(name)];
      if (std::find(addresses.begin(), addresses.end(), *address) == addresses.end()) {
        addresses.push_back(*address);
      }
    }
  });
  return hosts;
}

std::shared_ptr<const ResolverFiles> ResolverFiles::LoadIfChanged(
    const std::string& resolv_conf_path, const std::string& hosts_path,
    std::shared_ptr<const ResolverFiles> known) {
  if (known != nullptr && IsUnchanged(known->resolv_conf_version, resolv_conf_path) &&
      IsUnchanged(known->hosts_version, hosts_path)) {
    return known;
  }
  Contents resolv_conf = Read(resolv_conf_path);
  Contents hosts = Read(hosts_path);
  auto files = std::make_shared<ResolverFiles>();
  files->resolv_conf = ResolvConf::Parse(resolv_conf.text);
  files->hosts = ParseHosts(hosts.text);
  files->resolv_conf_text = std::move(resolv_conf.text);
  files->hosts_text = std::move(hosts.text);
  files->resolv_conf_version = resolv_conf.version;
  files->hosts_version = hosts.version;
  return files;
}

}  // namespace bobbin::io::internal
