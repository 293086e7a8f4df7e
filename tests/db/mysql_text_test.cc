// SPDX-License-Identifier: Apache-2.0

#include "db/src/mysql_text.h"

#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/bobbin_test.h"

namespace bobbin::db::internal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

MySqlText Translate(std::string_view sql) { return TranslateMySql(sql, Backslashes::kEscape); }

TEST(MySqlTextTest, APlaceBecomesAQuestionMark) {
  const MySqlText text = Translate("select $2, $1+$2 from t where a=$12");
  EXPECT_EQ(text.text, "select ?, ?+? from t where a=?");
  EXPECT_THAT(text.values, ElementsAre(1, 0, 1, 11));
  EXPECT_EQ(text.value_count, 12U);
}

TEST(MySqlTextTest, WhatOnlyLooksLikeAPlaceStays) {
  for (const std::string_view sql :
       {"select '$1'", "select \"$1\"", "select `$1`", "select 'it''s $1'", "select 'it\\'s $1'",
        "select 1 -- $1", "select 1 --\t$1", "select 1 # $1", "select /* $1 */ 1", "select a$1",
        "select $", "select $a", "select $0", "select '", "select /* $1", "select '\\"}) {
    const MySqlText text = Translate(sql);
    EXPECT_EQ(text.text, sql);
    EXPECT_THAT(text.values, IsEmpty()) << sql;
  }
}

TEST(MySqlTextTest, WhatOnlyLooksLikeACommentIsNone) {
  EXPECT_EQ(Translate("select 1--$1").text, "select 1--?");
  EXPECT_EQ(Translate("select 1 # $1\n + $1").text, "select 1 # $1\n + ?");
  EXPECT_EQ(Translate("select /*! $1 */").text, "select /*! ? */");
  EXPECT_EQ(Translate("select /* ' */ $1 /* ' */").text, "select /* ' */ ? /* ' */");
}

TEST(MySqlTextTest, ABackslashMayMeanItself) {
  constexpr std::string_view kSql = "select '\\', $1, '\\'";
  EXPECT_EQ(Translate(kSql).text, "select '\\', $1, '\\'");
  EXPECT_EQ(TranslateMySql(kSql, Backslashes::kMeanThemselves).text, "select '\\', ?, '\\'");
  EXPECT_EQ(Translate("select `\\`, $1").text, "select `\\`, ?");
}

TEST(MySqlTextTest, WhatAStatementMayLeaveBehindIsSeen) {
  for (const std::string_view sql :
       {"select 1", " Select 'get_lock @x'", "insert into t values ($1)",
        "with a as (select 1) "
        "select * from a",
        "create table t(n int)", "select 1 /* @ */", "update t set get_locks = 1",
        "start transaction", "", "-- nothing", "select 1; select 2"}) {
    EXPECT_EQ(Translate(sql).residue, Residue::kNone) << sql;
  }
  for (const std::string_view sql :
       {"set names utf8mb4", "select @x", "select @@sql_mode", "select GET_LOCK('a', 1)",
        "create temporary table t(n int)", "call p()", "select 1; set @x = 1", "lock tables t read",
        "insert into t values (last_insert_id(7))", "(select 1); prepare s from 'select 1'"}) {
    EXPECT_EQ(Translate(sql).residue, Residue::kSession) << sql;
  }
  EXPECT_EQ(Translate("use main").residue, Residue::kDatabase);
  EXPECT_EQ(Translate("select 1; USE main; set @x = 1").residue, Residue::kDatabase);
  EXPECT_EQ(Translate("select 1 from t use index (a)").residue, Residue::kNone);
}

TEST(MySqlTextTest, WhatItChangesAndWhatItMayReturnIsSeen) {
  EXPECT_TRUE(Translate("Replace into t values (1)").is_change);
  EXPECT_FALSE(Translate("select 'insert'").is_change);
  EXPECT_TRUE(Translate("select * from t").has_star);
  EXPECT_FALSE(Translate("select '*' /* * */ from t").has_star);
}

}  // namespace
}  // namespace bobbin::db::internal
