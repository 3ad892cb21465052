#include "server/web/web_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vivace::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;

TEST(WebFiles, ThePageAndWhatItNamesAreThere) {
  const WebFile* page = FindWebFile("index.html");
  ASSERT_NE(page, nullptr);
  EXPECT_THAT(page->bytes, ::testing::StartsWith("<!doctype html>"));
  for (const std::string_view name : {"style.css", "main.js"}) {
    EXPECT_THAT(page->bytes, HasSubstr("/web/" + std::string(name)));
    EXPECT_NE(FindWebFile(name), nullptr);
  }
}

TEST(WebFiles, AreNamedExactly) {
  for (const std::string_view name : {"", "README.md", "../web/main.js", "main.js\n", "MAIN.JS"}) {
    EXPECT_EQ(FindWebFile(name), nullptr) << name;
  }
}

TEST(WebFiles, NothingFromElsewhereRuns) {
  const Headers headers = WebFileHeaders(*FindWebFile("main.js"));
  EXPECT_THAT(headers, ::testing::Contains(Pair("content-type", "text/javascript; charset=utf-8")));
  EXPECT_THAT(headers, ::testing::Contains(
                           Pair("content-security-policy", HasSubstr("default-src 'none'"))));
  for (const WebFile& file : WebFiles()) {
    EXPECT_EQ(file.bytes.find("https:"), std::string_view::npos) << file.name;
  }
}

}  // namespace
}  // namespace vivace::server
