#include "server/openai/embedding_writer.h"

#include "server/json/json_writer.h"
#include "server/openai/embedding_vector.h"
#include "server/openai/reports.h"

namespace vivace::server {
namespace {

// Of a request that makes no output.
void WriteUsage(int64_t tokens, bool with_completion, JsonWriter* w) {
  w->Key("usage");
  w->BeginObject();
  w->KeyInt("prompt_tokens", tokens);
  if (with_completion) w->KeyInt("completion_tokens", 0);
  w->KeyInt("total_tokens", tokens);
  w->EndObject();
}

void BeginList(const AnswerIdentity& identity, JsonWriter* w) {
  w->BeginObject();
  w->KeyString("id", identity.id);
  w->KeyString("object", "list");
  w->KeyInt("created", identity.created_s);
  w->KeyString("model", identity.model);
  w->Key("data");
  w->BeginArray();
}

}  // namespace

std::string EmbeddingItem(size_t index, std::span<const float> embedding, bool base64) {
  std::string item;
  JsonWriter w(&item);
  w.BeginObject();
  w.KeyString("object", "embedding");
  w.KeyInt("index", static_cast<int64_t>(index));
  w.Key("embedding");
  if (base64) {
    w.String(EncodeBase64(embedding));
  } else {
    w.BeginArray();
    for (const float x : embedding) w.Float(x);
    w.EndArray();
  }
  w.EndObject();
  return item;
}

std::string EmbeddingsAnswer(const AnswerIdentity& identity, std::span<const std::string> items,
                             int64_t tokens, const RequestParams& params) {
  size_t bytes = 512;
  for (const std::string& item : items) bytes += item.size() + 1;
  std::string out;
  out.reserve(bytes);
  JsonWriter w(&out);
  BeginList(identity, &w);
  for (const std::string& item : items) w.Literal(item);
  w.EndArray();
  WriteUsage(tokens, false, &w);
  WriteReports(params, &w);
  w.EndObject();
  return out;
}

std::string RerankAnswer(const AnswerIdentity& identity, std::span<const RankedDocument> ranked,
                         int64_t tokens, const RequestParams& params) {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.KeyString("id", identity.id);
  w.KeyString("model", identity.model);
  WriteUsage(tokens, false, &w);
  w.Key("results");
  w.BeginArray();
  for (const RankedDocument& document : ranked) {
    w.BeginObject();
    w.KeyInt("index", static_cast<int64_t>(document.index));
    if (document.index < params.second_texts.size()) {
      w.Key("document");
      w.BeginObject();
      w.KeyString("text", params.second_texts[document.index]);
      w.EndObject();
    }
    w.Key("relevance_score");
    w.Float(document.score);
    w.EndObject();
  }
  w.EndArray();
  WriteReports(params, &w);
  w.EndObject();
  return out;
}

std::string ScoreAnswer(const AnswerIdentity& identity, std::span<const float> scores,
                        int64_t tokens, const RequestParams& params) {
  std::string out;
  JsonWriter w(&out);
  BeginList(identity, &w);
  for (size_t i = 0; i < scores.size(); ++i) {
    w.BeginObject();
    w.KeyInt("index", static_cast<int64_t>(i));
    w.KeyString("object", "score");
    w.Key("score");
    w.Float(scores[i]);
    w.EndObject();
  }
  w.EndArray();
  WriteUsage(tokens, true, &w);
  WriteReports(params, &w);
  w.EndObject();
  return out;
}

}  // namespace vivace::server
