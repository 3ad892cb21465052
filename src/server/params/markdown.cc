#include <iterator>

#include "server/params/table.h"

namespace vivace::server {
namespace {

std::string EndpointNames(EndpointSet endpoints) {
  std::string names;
  const auto add = [&](Endpoint endpoint, std::string_view name) {
    if ((endpoints & endpoint) == 0) return;
    if (!names.empty()) names += ", ";
    names += name;
  };
  add(kChat, "chat");
  add(kCompletions, "completions");
  add(kResponses, "responses");
  add(kMessages, "messages");
  add(kCountTokens, "count_tokens");
  add(kTokenize, "tokenize");
  add(kDetokenize, "detokenize");
  add(kEmbeddings, "embeddings");
  add(kRerank, "rerank");
  add(kScore, "score");
  return names;
}

struct TypeText {
  std::string operator()(const IntField& f) const {
    return fmt::format("integer, {} to {}", f.min, f.max);
  }
  std::string operator()(const NumberField& f) const {
    return fmt::format("number, {}{} to {}", f.min_excluded ? "above " : "", f.min, f.max);
  }
  std::string operator()(const BoolField&) const { return "boolean"; }
  std::string operator()(const StringField& f) const {
    return fmt::format("string of up to {} bytes", f.max_bytes);
  }
  std::string operator()(const CustomField& f) const { return std::string(f.type); }
  std::string operator()(const RefusedField& f) const {
    if (!std::isnan(f.passes)) return fmt::format("refused, unless {}", f.passes);
    return f.false_passes ? "refused, unless false" : "refused";
  }
  std::string operator()(const IgnoredField& f) const {
    return f.false_passes ? "ignored, reported unless false" : "ignored, reported";
  }
};

}  // namespace

std::string ParamTableMarkdown() {
  std::string page =
      "# Request parameters\n\n"
      "Made from the table that the server reads requests with. Each parameter is honoured, "
      "refused "
      "with a 400\nthat names it, or ignored and reported (header `x-vivace-ignored`, member "
      "`vivace.ignored`); so is every\nmember that is not listed. What is clamped, and a name that "
      "is another's, is reported likewise; `strict`\nrefuses all of these. `null` means "
      "absent.\n\n"
      "| name | endpoints | type | default | what it does |\n|---|---|---|---|---|\n";
  for (const ParamRow& row : ParamTable()) {
    std::string name = fmt::format("`{}`", row.name);
    if (!row.alias.empty()) name += fmt::format(", `{}`", row.alias);
    std::string_view doc = row.doc;
    if (const auto* refused = std::get_if<RefusedField>(&row.field)) doc = refused->why;
    fmt::format_to(std::back_inserter(page), "| {} | {} | {} | {} | {} |\n", name,
                   EndpointNames(row.endpoints), std::visit(TypeText{}, row.field),
                   row.default_value, doc);
  }
  return page;
}

}  // namespace vivace::server
