// Reads streams of named events (Responses, Anthropic's messages), for tests.
#pragma once

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <vector>

namespace vivace::server::testing {

// Each event is "event: TYPE\ndata: JSON\n\n", with TYPE in the JSON as well.
struct TypedEvents {
  explicit TypedEvents(const std::string& text) {
    size_t at = 0;
    while (at < text.size()) {
      const size_t line = text.find("\ndata: ", at);
      const size_t end = text.find("\n\n", at);
      if (text.compare(at, 7, "event: ") != 0 || line > end || end == std::string::npos) {
        ADD_FAILURE() << "not an event: " << text.substr(at);
        return;
      }
      types.push_back(text.substr(at + 7, line - at - 7));
      data.push_back(boost::json::parse(text.substr(line + 7, end - line - 7)));
      EXPECT_EQ(data.back().at("type").as_string(), types.back());
      at = end + 2;
    }
  }

  std::vector<std::string> types;
  std::vector<boost::json::value> data;
};

}  // namespace vivace::server::testing
