#include "tune/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace vivace::tune {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

class JournalTest : public ::testing::Test {
 protected:
  ~JournalTest() override { std::filesystem::remove(path_); }

  static json::object Header(int model = 1) {
    return {{"model", {{"digest", model}}}, {"machine", "this one"}, {"traffic", {{"rate", 2.5}}}};
  }
  // The journal with two trials in it.
  void Write() {
    auto journal = Journal::Open(path_, Header());
    ASSERT_TRUE(journal) << journal.error().message;
    EXPECT_FALSE(journal->resumed());
    ASSERT_TRUE(journal->Append("trial", {{"number", 1}}));
    ASSERT_TRUE(journal->Append("trial", {{"number", 2}}));
  }
  std::string Text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void SetText(const std::string& text) const { std::ofstream(path_) << text; }
  std::string OpenFault(const json::object& header = Header()) const {
    const auto journal = Journal::Open(path_, header);
    return journal ? "" : journal.error().message;
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("vivace_journal_" + std::to_string(getpid())))
          .string();
};

TEST_F(JournalTest, GoesOnWhereItEnded) {
  Write();
  auto journal = Journal::Open(path_, Header());
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_TRUE(journal->resumed());
  EXPECT_FALSE(journal->dropped_line());
  ASSERT_EQ(journal->entries().size(), 2u);
  EXPECT_EQ(journal->entries()[1].at("number"), json::value(2));
  EXPECT_EQ(journal->entries()[1].at("kind"), json::value("trial"));
}

TEST_F(JournalTest, ALineThatWasCutOffIsDropped) {
  Write();
  const std::string whole = Text();
  for (const size_t cut : {1u, 5u, 20u}) {
    SetText(whole.substr(0, whole.size() - cut));
    auto journal = Journal::Open(path_, Header());
    ASSERT_TRUE(journal) << journal.error().message;
    EXPECT_TRUE(journal->dropped_line());
    ASSERT_EQ(journal->entries().size(), 1u);
    ASSERT_TRUE(journal->Append("trial", {{"number", 3}}));
    EXPECT_THAT(Text(), HasSubstr("}\n{\"kind\":\"trial\",\"number\":3}\n"));
  }
}

TEST_F(JournalTest, OfAnotherModelIsRefusedAndLeftAlone) {
  Write();
  const std::string before = Text();
  EXPECT_THAT(OpenFault(Header(2)), HasSubstr("the model differs; give another --out"));
  EXPECT_EQ(Text(), before);
}

TEST_F(JournalTest, OfAnotherVersionIsRefused) {
  Write();
  std::string text = Text();
  text.replace(text.find("\"version\":2"), 11, "\"version\":0");
  SetText(text);
  EXPECT_THAT(OpenFault(), HasSubstr("the version of the format differs"));
}

TEST_F(JournalTest, WhatIsNoJournalIsLeftAlone) {
  for (const std::string text :
       {"not a journal", "not a journal\n", "{\"journal\":\"other\",\"version\":1}\n", "[1]\n"}) {
    SetText(text);
    EXPECT_THAT(OpenFault(), HasSubstr("is no journal of `vivace tune`")) << text;
    EXPECT_EQ(Text(), text);
  }
}

TEST_F(JournalTest, AHeaderThatWasCutOffBeginsAnew) {
  Write();
  SetText(Text().substr(0, 30));
  auto journal = Journal::Open(path_, Header());
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_FALSE(journal->resumed());
  EXPECT_TRUE(journal->dropped_line());
}

TEST_F(JournalTest, DamageInTheMiddleIsNamed) {
  Write();
  std::string text = Text();
  text.replace(text.find("{\"kind\""), 3, "???");
  SetText(text);
  EXPECT_THAT(OpenFault(), HasSubstr("line 2 is damaged"));
}

TEST_F(JournalTest, OneProcessAtATime) {
  const auto journal = Journal::Open(path_, Header());
  ASSERT_TRUE(journal);
  EXPECT_THAT(OpenFault(), HasSubstr("in use by another"));
}

TEST_F(JournalTest, ItsFolderMustBeThere) {
  const auto journal = Journal::Open("/nonexistent/folder/journal", Header());
  ASSERT_FALSE(journal);
  EXPECT_THAT(journal.error().message, HasSubstr("/nonexistent/folder/journal"));
}

}  // namespace
}  // namespace vivace::tune
