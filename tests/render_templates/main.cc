// Renders many templates in one process, for tests/e2e/test_jinja_differential.py: each line of the
// standard input is {"template": TEXT, "variables": {NAME: VALUE}}, each line of the standard
// output
// {"text": TEXT} or {"reason": SLUG, "message": TEXT}. The moment is that of
// tests/oracles/jinja_oracle.py: 4 July 2026, 15:05:09.
#include <boost/json.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "support/oracle_time.h"
#include "text/jinja/template.h"

namespace {

namespace json = boost::json;
using vivace::RenderedPrompt;
using vivace::Result;
using vivace::jinja::Template;
using vivace::jinja::Variable;

Result<RenderedPrompt> Render(const json::object& job) {
  const json::string& source = job.at("template").as_string();
  VIVACE_ASSIGN(const Template parsed, Template::Parse({source.data(), source.size()}));
  std::vector<Variable> variables;
  for (const auto& member : job.at("variables").as_object()) {
    variables.push_back({{member.key().data(), member.key().size()}, &member.value(), false});
  }
  return parsed.Render(variables, vivace::testing::OracleTime());
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    const auto prompt = Render(json::parse(line).as_object());
    json::object answer;
    if (prompt) {
      answer = {{"text", prompt->text}};
    } else {
      answer = {{"reason", prompt.error().reason}, {"message", prompt.error().message}};
    }
    std::cout << json::serialize(answer) << '\n';
  }
  return 0;
}
