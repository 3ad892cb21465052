#include "server/openai/reports.h"

namespace vivace::server {
namespace {

template <typename List, typename Write>
void WriteList(std::string_view key, const List& list, JsonWriter* w, Write write) {
  if (list.empty()) return;
  w->Key(key);
  w->BeginArray();
  for (const auto& item : list) write(item);
  w->EndArray();
}

}  // namespace

void WriteReports(const Reports& reports, JsonWriter* w) {
  const bool quiet =
      reports.empty() && reports.truncated_tokens == 0 && !reports.steered && !reports.deadline;
  if (quiet) return;
  w->Key("vivace");
  w->BeginObject();
  WriteList("ignored", reports.ignored, w, [&](const std::string& name) { w->String(name); });
  WriteList("clamped", reports.clamped, w, [&](const Reports::Clamped& clamped) {
    w->BeginObject();
    w->KeyString("name", clamped.name);
    w->KeyInt("wanted", clamped.wanted);
    w->KeyInt("given", clamped.given);
    w->EndObject();
  });
  WriteList("renamed", reports.renamed, w, [&](const Reports::Renamed& renamed) {
    w->BeginObject();
    w->KeyString("alias", renamed.alias);
    w->KeyString("name", renamed.name);
    w->EndObject();
  });
  if (reports.truncated_tokens > 0) w->KeyInt("truncated_prompt_tokens", reports.truncated_tokens);
  if (reports.steered) {
    w->Key("steered");
    w->Bool(true);
  }
  if (reports.deadline) {
    w->Key("deadline");
    w->Bool(true);
  }
  w->EndObject();
}

}  // namespace vivace::server
