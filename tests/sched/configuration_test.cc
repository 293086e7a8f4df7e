// SPDX-License-Identifier: Apache-2.0

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/sched/configuration.h>
#include <bobbin/sched/configuration_key.h>

#include "tests/io/temporary_directory.h"
#include "tests/support/bobbin_test.h"
#include "tests/support/status_matchers.h"

namespace bobbin {
namespace {

using test::IsOkAndHolds;
using test::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using UnknownKeys = ConfigurationOptions::UnknownKeys;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;

enum class Colour { kRed, kGreen };

const ConfigurationKey<std::string> kGreeting({.name = "shop.greeting", .fallback = "hello"});
const ConfigurationKey<int64_t> kCount(
    {.name = "shop.count", .meaning = "How many.", .fallback = 7, .min = 1, .max = 99});
const ConfigurationKey<bool> kIsOpen({.name = "shop.is-open", .fallback = false});
const ConfigurationKey<absl::Duration> kEvery({.name = "shop.every",
                                               .meaning = "How often.",
                                               .fallback = absl::Seconds(25),
                                               .min = absl::Milliseconds(1)});
const ConfigurationKey<Colour> kColour({.name = "shop.colour",
                                        .fallback = Colour::kRed,
                                        .words = {
                                            {{"red", Colour::kRed}, {"green", Colour::kGreen}}}});
const ConfigurationKey<std::string> kUrl({.name = "shop.url",
                                          .default_text = "depends",
                                          .environment = "DATABASE_URL"});
const ConfigurationKey<int64_t> kPin({.name = "shop.pin", .fallback = 1, .is_secret = true});
const ConfigurationPattern<int64_t> kShelves(
    {.name = "bobbin.test.shelf.<name>.boards", .fallback = 3, .min = 1, .max = 9});

// The files of a program, and what it makes of them.
class Files {
 public:
  void Write(const std::string& name, std::string_view text) {
    std::ofstream(folder_ / name) << text;
  }
  absl::StatusOr<Configuration> Load(ConfigurationOptions options = {}) {
    options.folder = folder_.path();
    if (!options.environment) options.environment.emplace();
    if (options.warn == nullptr) {
      options.warn = [this](std::string_view warning) { warnings_.emplace_back(warning); };
    }
    return Configuration::Load(std::move(options));
  }
  Configuration Loaded(ConfigurationOptions options = {}) {
    absl::StatusOr<Configuration> loaded = Load(std::move(options));
    EXPECT_OK(loaded);
    return loaded.ok() ? *std::move(loaded) : Configuration();
  }
  std::string Mistakes(ConfigurationOptions options = {}) {
    const absl::StatusOr<Configuration> loaded = Load(std::move(options));
    EXPECT_THAT(loaded, StatusIs(kInvalid));
    return std::string(MessageOf(loaded.status()));
  }
  const std::vector<std::string>& warnings() const { return warnings_; }
  const test::TemporaryDirectory& folder() const { return folder_; }

 private:
  test::TemporaryDirectory folder_;
  std::vector<std::string> warnings_;
};

ConfigurationEntry EntryOf(const Configuration& configuration, std::string_view key) {
  for (ConfigurationEntry& entry : configuration.Entries()) {
    if (entry.key == key) return std::move(entry);
  }
  return {};
}

TEST(ConfigurationTest, WithoutFilesThereAreTheDefaults) {
  Files files;
  for (const Configuration& configuration : {Configuration(), files.Loaded()}) {
    EXPECT_THAT(configuration.Get(kGreeting), IsOkAndHolds("hello"));
    EXPECT_THAT(configuration.Get(kCount), IsOkAndHolds(7));
    EXPECT_THAT(configuration.Get(kIsOpen), IsOkAndHolds(false));
    EXPECT_THAT(configuration.Get(kEvery), IsOkAndHolds(absl::Seconds(25)));
    EXPECT_THAT(configuration.Get(kColour), IsOkAndHolds(Colour::kRed));
    EXPECT_THAT(configuration.GetFor(kShelves, "books"), IsOkAndHolds(3));
    EXPECT_THAT(configuration.Find(kCount), IsOkAndHolds(std::nullopt));
    EXPECT_THAT(configuration.Get(kUrl), StatusIs(kNotFound));
    EXPECT_THAT(MessageOf(configuration.Get(kUrl).status()), HasSubstr("SHOP_URL"));
    EXPECT_EQ(configuration.profile(), "");
  }
}

TEST(ConfigurationTest, EachTypeIsRead) {
  Files files;
  files.Write("application.properties",
              "shop.greeting = good  morning \n"
              "shop.count = 12 \n"
              "shop.is-open = True\n"
              "shop.every = PT1M\n"
              "shop.colour = GREEN\n");
  const Configuration configuration = files.Loaded();
  EXPECT_THAT(configuration.Get(kGreeting), IsOkAndHolds("good  morning "));
  EXPECT_THAT(configuration.Get(kCount), IsOkAndHolds(12));
  EXPECT_THAT(configuration.Get(kIsOpen), IsOkAndHolds(true));
  EXPECT_THAT(configuration.Get(kEvery), IsOkAndHolds(absl::Minutes(1)));
  EXPECT_THAT(configuration.Get(kColour), IsOkAndHolds(Colour::kGreen));
  for (const auto& [text, period] :
       std::vector<std::pair<std::string, absl::Duration>>{{"10s", absl::Seconds(10)},
                                                           {"500ms", absl::Milliseconds(500)},
                                                           {"250", absl::Milliseconds(250)},
                                                           {"1h30m", absl::Minutes(90)}}) {
    EXPECT_THAT(files.Loaded({.values = {{"shop.every", text}}}).Get(kEvery), IsOkAndHolds(period));
  }
}

TEST(ConfigurationTest, TheStrongestSourceWinsAndIsTold) {
  Files files;
  files.Write("application.properties",
              "shop.greeting = file\nshop.count = 11\nbobbin.profile=dev\n");
  files.Write("application-dev.properties", "\nshop.greeting = profile\n");
  const auto expect = [](const Configuration& configuration, std::string_view value,
                         std::string_view origin) {
    EXPECT_THAT(configuration.Get(kGreeting), IsOkAndHolds(value));
    EXPECT_EQ(EntryOf(configuration, "shop.greeting").origin, origin);
  };

  expect(files.Loaded({.values = {{"bobbin.profile", ""}}}), "file", "application.properties:1");
  expect(files.Loaded(), "profile", "application-dev.properties:2");
  const ConfigurationValues environment = {{"SHOP_GREETING", "environment"}};
  expect(files.Loaded({.environment = environment}), "environment", "environment SHOP_GREETING");
  expect(files.Loaded({.values = {{"shop.greeting", "program"}}, .environment = environment}),
         "program", "the program");
  EXPECT_THAT(files.Loaded().Get(kCount), IsOkAndHolds(11));
  EXPECT_EQ(files.Loaded().profile(), "dev");
  EXPECT_EQ(EntryOf(files.Loaded(), "shop.colour").origin, "default");
  EXPECT_EQ(EntryOf(files.Loaded(), "shop.colour").value, "red");
}

TEST(ConfigurationTest, TheEnvironmentNamesKeysWithUnderscores) {
  Files files;
  const Configuration configuration =
      files.Loaded({.environment = {{{"BOBBIN_TEST_SHELF_BOOK_SHOP_BOARDS", "5"},
                                     {"SHOP_IS_OPEN", "true"},
                                     {"BOBBIN_PROFILE", "prod"},
                                     {"BOBBIN_NOBODY_KNOWS", "1"}}}});
  EXPECT_THAT(configuration.GetFor(kShelves, "book-shop"), IsOkAndHolds(5));
  EXPECT_THAT(configuration.Get(kIsOpen), IsOkAndHolds(true));
  EXPECT_EQ(configuration.profile(), "prod");
  EXPECT_THAT(files.warnings(), IsEmpty());
}

TEST(ConfigurationTest, TheProcessHasAnEnvironment) {
  ASSERT_EQ(setenv("SHOP_COUNT", "42", 1), 0);
  const auto configuration = Configuration::Load({.folder = ""});
  ASSERT_EQ(unsetenv("SHOP_COUNT"), 0);
  ASSERT_OK(configuration);
  EXPECT_THAT(configuration->Get(kCount), IsOkAndHolds(42));
}

TEST(ConfigurationTest, AKeyMayHaveAnotherVariable) {
  Files files;
  files.Write("application.properties", "shop.url = file\n");
  EXPECT_THAT(files.Loaded({.environment = {{{"DATABASE_URL", "theirs"}}}}).Get(kUrl),
              IsOkAndHolds("theirs"));
  EXPECT_THAT(
      files.Loaded({.environment = {{{"DATABASE_URL", "theirs"}, {"SHOP_URL", "own"}}}}).Get(kUrl),
      IsOkAndHolds("own"));
}

TEST(ConfigurationTest, BlankCountsAsNotSetButForText) {
  Files files;
  files.Write("application.properties", "shop.count =\nshop.colour = \\ \nshop.greeting =\n");
  const Configuration configuration = files.Loaded();
  EXPECT_THAT(configuration.Get(kCount), IsOkAndHolds(7));
  EXPECT_THAT(configuration.Find(kColour), IsOkAndHolds(std::nullopt));
  EXPECT_THAT(configuration.Get(kGreeting), IsOkAndHolds(""));
}

TEST(ConfigurationTest, LoadRefusesEveryBadValueAndSaysWhereItStandsAndWhatIsAllowed) {
  Files files;
  files.Write("application.properties",
              "shop.count = 100\n"
              "shop.is-open = maybe\n"
              "shop.every = 0\n"
              "shop.colour = blue\n"
              "bobbin.test.shelf.books.boards = many\n"
              "shop.pin = hush\n");
  EXPECT_EQ(files.Mistakes(),
            "configuration bobbin.test.shelf.books.boards = \"many\" (application.properties:5): "
            "allowed is a whole number from 1 to 9\n"
            "configuration shop.colour = \"blue\" (application.properties:4): "
            "allowed is red or green\n"
            "configuration shop.count = \"100\" (application.properties:1): "
            "allowed is a whole number from 1 to 99\n"
            "configuration shop.every = \"0\" (application.properties:3): "
            "allowed is a length of time (10s, PT1M, 500) from 1ms on\n"
            "configuration shop.is-open = \"maybe\" (application.properties:2): "
            "allowed is true or false\n"
            "configuration shop.pin = \"******\" (application.properties:6): "
            "allowed is a whole number, 0 or more");
  EXPECT_THAT(
      files.Mistakes(
          {.values = {{"shop.is-open", "true"}}, .environment = {{{"SHOP_COUNT", "9.5"}}}}),
      AllOf(HasSubstr("configuration shop.count = \"9.5\" (environment SHOP_COUNT): allowed is"),
            Not(HasSubstr("shop.is-open"))));
}

TEST(ConfigurationTest, ABadValueOfTheEnvironmentForANameIsRefusedWhenItIsRead) {
  Files files;
  const Configuration configuration =
      files.Loaded({.environment = {{{"BOBBIN_TEST_SHELF_BOOKS_BOARDS", "x"}}}});
  EXPECT_THAT(MessageOf(configuration.GetFor(kShelves, "books").status()),
              HasSubstr("(environment BOBBIN_TEST_SHELF_BOOKS_BOARDS): allowed is a whole number"));
}

TEST(ConfigurationTest, MistakesInFilesAreToldWithTheirLines) {
  Files files;
  files.Write("application.properties", "bobbin.profile = dev\na = \\u12\nb=1\nb=2\n");
  files.Write("application-dev.properties", "a = \xFF\nbobbin.profile = x\n");
  EXPECT_EQ(files.Mistakes(),
            "application.properties:2: \\u is followed by four hexadecimal digits\n"
            "application.properties:4: \"b\" is set in line 3 already\n"
            "application-dev.properties:1: it is not UTF-8\n"
            "application-dev.properties:2: bobbin.profile is set in the file of a profile");
}

TEST(ConfigurationTest, NotAllOfManyMistakesAreTold) {
  Files files;
  std::string text;
  for (int i = 0; i < 100; ++i) text += "=\n";
  files.Write("application.properties", text);
  EXPECT_THAT(files.Mistakes(), AllOf(HasSubstr("properties:20:"), HasSubstr("\nand 80 more"),
                                      Not(HasSubstr("properties:21:"))));
}

TEST(ConfigurationTest, AProfileIsNoPath) {
  Files files;
  EXPECT_THAT(
      files.Mistakes({.values = {{"bobbin.profile", "../x"}}}),
      HasSubstr("configuration bobbin.profile = \"../x\" (the program): a profile is made"));
}

TEST(ConfigurationTest, AFileThatCannotBeReadIsAnError) {
  Files files;
  std::filesystem::create_directory(files.folder() / "application.properties");
  EXPECT_FALSE(files.Load().ok());
  std::filesystem::remove(files.folder() / "application.properties");
  files.Write("application.properties", std::string(2'000'000, '#'));
  EXPECT_THAT(files.Mistakes(), HasSubstr("it has more than 1000000 bytes"));
}

TEST(ConfigurationTest, PlaceholdersAreReplacedWhenAValueIsRead) {
  Files files;
  files.Write("application.properties",
              "host = db\n"
              "port = ${PORT:5432}\n"
              "shop.url = pg://${host}:${port}/${base:a:b}${base:}\n"
              "shop.count = ${host.count:3}\n"
              "nobody.reads = ${nothing}\n");
  const Configuration configuration = files.Loaded();
  EXPECT_THAT(configuration.Get(kUrl), IsOkAndHolds("pg://db:5432/a:b"));
  EXPECT_THAT(configuration.Get(kCount), IsOkAndHolds(3));
  EXPECT_THAT(configuration.Resolve("<${host}>"), IsOkAndHolds("<db>"));
  EXPECT_THAT(MessageOf(configuration.Text("nobody.reads").status()),
              AllOf(HasSubstr("configuration nobody.reads (application.properties:5): "),
                    HasSubstr("\"nothing\" has no value")));
  // A variable of that very name comes first; its value, and the program's, are taken as they are.
  const Configuration with_environment =
      files.Loaded({.values = {{"base", "${host}"}}, .environment = {{{"host", "${x}"}}}});
  EXPECT_THAT(with_environment.Get(kUrl), IsOkAndHolds("pg://${x}:5432/${host}${host}"));
}

TEST(ConfigurationTest, ReferencesInACircleAndTooDeepOnesAreRefused) {
  Files files;
  files.Write("application.properties",
              "a = ${b}\nb = x${c}\nc = ${a}\nself = ${self:1}\n"
              "d0 = ${d1}\nd1 = ${d2}\nd2 = ${d3}\nd3 = ${d4}\nd4 = ${d5}\nd5 = ${d6}\n"
              "d6 = ${d7}\nd7 = ${d8}\nd8 = ${d9}\nd9 = end\n");
  const Configuration configuration = files.Loaded();
  EXPECT_THAT(MessageOf(configuration.Text("a").status()),
              HasSubstr("configuration a (application.properties:1): it refers to itself: "
                        "a -> b -> c -> a"));
  EXPECT_THAT(configuration.Text("self"), StatusIs(kInvalid));
  EXPECT_THAT(configuration.Text("d1"), IsOkAndHolds("end"));
  EXPECT_THAT(MessageOf(configuration.Text("d0").status()), HasSubstr("more than 8 deep"));
}

TEST(ConfigurationTest, SecretsAreNeverShown) {
  Files files;
  files.Write("application.properties",
              "mail.password = hush${nothing}\n"
              "db.Secret = hush\n"
              "shop.pin = 1234\n"
              "plain = user=x password=hush\n"
              "derived = <${api.token}>\n"
              "api.token = hush\n"
              "shop.url = pg://ann:hush@db/x\n"
              "shop.greeting = hi\n");
  const Configuration configuration = files.Loaded();
  EXPECT_EQ(EntryOf(configuration, "shop.url").value, "pg://ann:******@db/x");
  EXPECT_EQ(EntryOf(configuration, "shop.greeting").value, "hi");
  EXPECT_EQ(EntryOf(configuration, "shop.pin").value, "******");
  const std::string all = configuration.ToString() +
                          std::string(MessageOf(configuration.Text("mail.password").status()));
  EXPECT_THAT(all, Not(HasSubstr("hush")));
  EXPECT_THAT(all, Not(HasSubstr("1234")));
  EXPECT_THAT(configuration.Text("derived"), IsOkAndHolds("<hush>"));
  for (const char* key : {"db.Secret", "derived", "shop.url", "plain"}) {
    EXPECT_THAT(MessageOf(configuration.Refuse(key, "no")), Not(HasSubstr("hush"))) << key;
  }
}

TEST(ConfigurationTest, UnknownKeysOfOursAreWarnedAboutWithTheNearest) {
  Files files;
  files.Write("application.properties",
              "bobbin.profle = x\n"
              "bobbin.test.shelf.books.board = 1\n"
              "bobbin.something.else.entirely = 1\n"
              "their.key = 1\n");
  files.Loaded();
  EXPECT_THAT(
      files.warnings(),
      ElementsAre("configuration bobbin.profle (application.properties:1): nothing in this "
                  "program knows this key; is it bobbin.profile?",
                  "configuration bobbin.something.else.entirely (application.properties:3): "
                  "nothing in this program knows this key",
                  "configuration bobbin.test.shelf.books.board (application.properties:2): "
                  "nothing in this program knows this key; is it "
                  "bobbin.test.shelf.books.boards?"));
  EXPECT_THAT(files.Mistakes({.unknown_keys = UnknownKeys::kRefuse}), HasSubstr("bobbin.profle"));
}

TEST(ConfigurationTest, TheNamesOfAPatternAreFound) {
  Files files;
  files.Write("application.properties",
              "bobbin.test.shelf.books.boards = 1\nbobbin.test.shelf.a.b.boards = 2\n");
  const Configuration configuration =
      files.Loaded({.values = {{"bobbin.test.shelf.toys.boards", "4"}}});
  EXPECT_THAT(configuration.NamesOf(kShelves), ElementsAre("a.b", "books", "toys"));
  EXPECT_THAT(configuration.GetFor(kShelves, "a.b"), IsOkAndHolds(2));
  EXPECT_EQ(EntryOf(configuration, "bobbin.test.shelf.toys.boards").value, "4");
}

BOBBIN_TEST(ConfigurationTest, AVirtualThreadMayLoadIt) {
  Files files;
  files.Write("application.properties", "shop.count = 8\n");
  EXPECT_THAT(files.Loaded().Get(kCount), IsOkAndHolds(8));
}

TEST(ConfigurationKeyTest, TheTableHasEveryKey) {
  EXPECT_EQ(ConfigurationTable("shop.c"),
            "| key | takes | default | |\n|---|---|---|---|\n"
            "| `shop.colour` | red or green | red |  |\n"
            "| `shop.count` | a whole number from 1 to 99 | 7 | How many. |\n");
  EXPECT_THAT(KnownConfigurationKeys("shop.url"),
              ElementsAre(Field(&ConfigurationKeyInfo::fallback, "depends")));
}

TEST(ConfigurationKeyDeathTest, APatternHasANameAndAKeyHasNone) {
  EXPECT_DEATH((ConfigurationPattern<bool>({.name = "a.b"})), "a pattern has <name> in it");
  EXPECT_DEATH((ConfigurationKey<bool>({.name = "a.<name>.b"})), "is a ConfigurationPattern");
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The keys that stand in the code, wherever it is, stand in the document.
TEST(ConfigurationDocumentTest, ItListsEveryKeyOfTheCode) {
  namespace fs = std::filesystem;
  const fs::path root = BOBBIN_SOURCE_DIR;
  const std::string document = ReadAll(root / "docs/configuration.md");
  static const std::regex key(R"(\.name = "(bobbin\.[^"]+)\")");
  int keys = 0;
  for (const char* module : {"core", "sched", "io", "cron", "db"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / module)) {
      if (!entry.is_regular_file()) continue;
      const std::string text = ReadAll(entry.path());
      if (text.find("ConfigurationKey<") == text.npos &&
          text.find("ConfigurationPattern<") == text.npos) {
        continue;
      }
      for (std::sregex_iterator match(text.begin(), text.end(), key), end; match != end; ++match) {
        EXPECT_THAT(document, HasSubstr("| `" + match->str(1) + "` |")) << entry.path();
        ++keys;
      }
    }
  }
  EXPECT_GT(keys, 0);
}

// Its table is the one that the code makes, as far as the code is in this program.
TEST(ConfigurationDocumentTest, ItsTableIsTheOneOfTheCode) {
  const std::string document =
      ReadAll(std::filesystem::path(BOBBIN_SOURCE_DIR) / "docs/configuration.md");
  for (const ConfigurationKeyInfo& info : KnownConfigurationKeys("bobbin.")) {
    if (info.name.starts_with("bobbin.test.")) continue;
    const std::string table = ConfigurationTable(info.name);
    const std::string row = table.substr(table.find("| `"));
    EXPECT_THAT(document, HasSubstr(row.substr(0, row.find('\n') + 1)));
  }
}

}  // namespace
}  // namespace bobbin
