#include "server/openapi.h"

#include <algorithm>
#include <vector>

#include "server/json/json_writer.h"
#include "server/json/strict_json.h"
#include "server/openapi_answers.h"
#include "server/params/table.h"

namespace vivace::server {
namespace {

constexpr std::string_view kErrors =
    R"("OpenAiError":{"type":"object","required":["error"],"properties":{"error":{"type":"object",)"
    R"("required":["message","type","param","code"],"properties":{"message":{"type":"string"},)"
    R"("type":{"type":"string"},"param":{"type":["string","null"]},)"
    R"("code":{"type":["string","null"]}}}}},)"
    R"("AnthropicError":{"type":"object","required":["type","error"],"properties":{)"
    R"("type":{"const":"error"},"error":{"type":"object","required":["type","message"],)"
    R"("properties":{"type":{"type":"string"},"message":{"type":"string"}}}}})";

struct EndpointName {
  Endpoint endpoint;
  std::string_view schema;
};
constexpr EndpointName kRequestSchemas[] = {{kChat, "ChatRequest"},
                                            {kCompletions, "CompletionRequest"},
                                            {kResponses, "ResponsesRequest"},
                                            {kMessages, "MessagesRequest"},
                                            {kTokenize, "TokenizeRequest"},
                                            {kDetokenize, "DetokenizeRequest"},
                                            {kCountTokens, "CountTokensRequest"},
                                            {kEmbeddings, "EmbeddingsRequest"},
                                            {kRerank, "RerankRequest"},
                                            {kScore, "ScoreRequest"}};

std::string SchemaOf(EndpointSet endpoint) {
  for (const EndpointName& name : kRequestSchemas) {
    if (name.endpoint == endpoint) return std::string(name.schema);
  }
  return fmt::format("Request{}", endpoint);
}

// A bound that is no bound of the type's is left out.
void WriteBound(std::string_view key, int64_t bound, JsonWriter* w) {
  if (bound != INT64_MIN && bound != INT64_MAX) w->KeyInt(key, bound);
}

// The members of a schema that say the type.
struct TypeWriter {
  JsonWriter* w;
  bool nullable;

  void Type(std::string_view type) const {
    w->Key("type");
    if (!nullable) return w->String(type);
    w->BeginArray();
    w->String(type);
    w->String("null");
    w->EndArray();
  }
  void operator()(const IntField& f) const {
    Type("integer");
    WriteBound("minimum", f.min, w);
    WriteBound("maximum", f.max, w);
  }
  void operator()(const NumberField& f) const {
    Type("number");
    w->Key(f.min_excluded ? "exclusiveMinimum" : "minimum");
    w->Float(static_cast<float>(f.min));
    w->Key("maximum");
    w->Float(static_cast<float>(f.max));
  }
  void operator()(const BoolField&) const { Type("boolean"); }
  void operator()(const StringField& f) const {
    Type("string");
    w->KeyInt("maxLength", static_cast<int64_t>(f.max_bytes));
  }
  void operator()(const CustomField& f) const {
    if (f.schema.size() <= 2) return;  // "{}"
    w->Key("anyOf");
    w->BeginArray();
    w->Literal(f.schema);
    if (nullable) w->Literal(R"({"type":"null"})");
    w->EndArray();
  }
  // Null means absent; false, where it asks for nothing.
  void operator()(const RefusedField& f) const {
    w->Key("enum");
    w->Literal(!std::isnan(f.passes) ? fmt::format("[null,{}]", f.passes)
               : f.false_passes      ? "[null,false]"
                                     : "[null]");
  }
  void operator()(const IgnoredField&) const {}
};

// Where the documented default is a value and not a description.
void WriteDefault(const ParamRow& row, JsonWriter* w) {
  if (std::holds_alternative<CustomField>(row.field)) return;
  const auto value = ParseStrictJson(row.default_value);
  if (!value || !(value->is_number() || value->is_bool())) return;
  w->Key("default");
  w->Literal(row.default_value);
}

std::string Description(const ParamRow& row) {
  if (const auto* refused = std::get_if<RefusedField>(&row.field)) {
    return fmt::format("Refused: {}.", refused->why);
  }
  if (std::holds_alternative<IgnoredField>(row.field)) {
    return fmt::format("Ignored and reported. {}", row.doc);
  }
  return std::string(row.doc);
}

void WriteProperty(const ParamRow& row, std::string_view name, std::string description,
                   JsonWriter* w) {
  w->Key(name);
  w->BeginObject();
  std::visit(TypeWriter{w, row.default_value != "required"}, row.field);
  WriteDefault(row, w);
  w->KeyString("description", description);
  if (std::holds_alternative<RefusedField>(row.field)) {
    w->Key("deprecated");
    w->Bool(true);
  }
  w->EndObject();
}

void WriteRequestSchema(Endpoint endpoint, std::string_view name, JsonWriter* w) {
  std::vector<std::string_view> required;
  w->Key(name);
  w->BeginObject();
  w->KeyString("type", "object");
  w->Key("properties");
  w->BeginObject();
  for (const ParamRow& row : ParamTable()) {
    if ((row.endpoints & endpoint) == 0) continue;
    WriteProperty(row, row.name, Description(row), w);
    if (row.default_value == "required" && endpoint != kTokenize) required.push_back(row.name);
    if (row.alias.empty()) continue;
    WriteProperty(row, row.alias, fmt::format("Another name of {}.", row.name), w);
  }
  w->EndObject();
  if (endpoint == kMessages) required.push_back("max_tokens");
  w->Key("required");
  w->BeginArray();
  for (const std::string_view member : required) w->String(member);
  w->EndArray();
  // Members without a row are reported, not refused.
  w->Key("additionalProperties");
  w->Bool(true);
  w->EndObject();
}

void WriteErrorAnswer(std::string_view status, std::string_view what, ErrorShape shape,
                      JsonWriter* w) {
  const bool anthropic = shape == ErrorShape::kAnthropic;
  w->Key(status);
  w->Literal(fmt::format(
      R"({{"description":"{}","content":{{"application/json":{{"schema":{{"$ref":"#/components/schemas/{}"}}}}}}}})",
      what, anthropic ? "AnthropicError" : "OpenAiError"));
}

// What a route answers with, by its media types.
void WriteAnswer(const Route& route, JsonWriter* w) {
  const bool streams = FindParam("stream", static_cast<Endpoint>(route.parameters)) != nullptr;
  const AnswerKind* answer = FindAnswer(route.path);
  w->Key("200");
  w->BeginObject();
  w->KeyString("description", route.summary);
  w->Key("content");
  w->BeginObject();
  if (answer == nullptr || !answer->name.empty()) {
    w->Key("application/json");
    w->Literal(
        answer == nullptr
            ? std::string(R"({"schema":{"type":"object"}})")
            : fmt::format(R"({{"schema":{{"$ref":"#/components/schemas/{}"}}}})", answer->name));
  } else {
    for (std::string_view left = answer->media_types; !left.empty();) {
      const size_t end = std::min(left.find(' '), left.size());
      w->Key(left.substr(0, end));
      w->Literal(R"({"schema":{"type":"string"}})");
      left.remove_prefix(std::min(end + 1, left.size()));
    }
  }
  if (streams) {
    w->Key("text/event-stream");
    w->Literal(R"({"schema":{"type":"string"}})");
  }
  w->EndObject();
  w->EndObject();
}

// Every status that a route may answer with; 408 and 431 are of the connection and of no route.
void WriteErrors(const Route& route, JsonWriter* w) {
  const bool body = route.parameters != 0;
  const bool probe = route.path == "/health" || route.path == "/ready";
  const auto write = [&](std::string_view status, std::string_view what) {
    WriteErrorAnswer(status, what, route.errors, w);
  };
  write("400", "Refused; the message says why");
  if (route.access != AccessLevel::kOpen) {
    write("401", "A key is missing, or is none of this server's");
    write("403", "This key does not open this");
  }
  if (body || route.path.ends_with("/*")) write("404", "There is nothing of this name");
  write("413", "The body is too large");
  if (body) write("415", "The body must be JSON");
  write("500", "The server failed");
  if (body || probe) write("503", "Full, late or shutting down; see Retry-After");
  if (body) write("504", "The deadline passed before there was any output");
}

// One operation, such as "post".
void WriteOperation(const Route& route, JsonWriter* w) {
  std::string method(route.method);
  for (char& c : method) c = static_cast<char>(c + ('a' - 'A'));
  w->Key(method);
  w->BeginObject();
  w->KeyString("summary", route.summary);
  if (route.path.ends_with("/*")) {
    w->Key("parameters");
    w->Literal(
        R"([{"name":"id","in":"path","required":true,"schema":{"type":"string","minLength":1}}])");
  }
  if (route.parameters != 0) {
    w->Key("requestBody");
    w->Literal(fmt::format(
        R"({{"required":true,"content":{{"application/json":{{"schema":{{"$ref":"#/components/schemas/{}"}}}}}}}})",
        SchemaOf(route.parameters)));
  }
  w->Key("responses");
  w->BeginObject();
  WriteAnswer(route, w);
  WriteErrors(route, w);
  w->EndObject();
  w->EndObject();
}

std::string ShownPath(std::string_view path) {
  if (!path.ends_with("/*")) return std::string(path);
  path.remove_suffix(1);
  return fmt::format("{}{{id}}", path);
}

void WritePaths(std::span<const Route> routes, JsonWriter* w) {
  std::vector<std::string_view> written;
  for (const Route& route : routes) {
    if (std::find(written.begin(), written.end(), route.path) != written.end()) continue;
    written.push_back(route.path);
    w->Key(ShownPath(route.path));
    w->BeginObject();
    for (const Route& same : routes) {
      if (same.path == route.path) WriteOperation(same, w);
    }
    w->EndObject();
  }
}

}  // namespace

std::string OpenApiDocument(std::span<const Route> routes, std::string_view version) {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.KeyString("openapi", "3.1.0");
  w.Key("info");
  w.BeginObject();
  w.KeyString("title", "Vivace");
  w.KeyString("version", version);
  w.EndObject();
  w.Key("paths");
  w.BeginObject();
  WritePaths(routes, &w);
  w.EndObject();
  w.Key("components");
  w.BeginObject();
  w.Key("schemas");
  w.BeginObject();
  EndpointSet seen = 0;
  for (const Route& route : routes) {
    if (route.parameters == 0 || (seen & route.parameters) != 0) continue;
    seen = static_cast<EndpointSet>(seen | route.parameters);
    WriteRequestSchema(static_cast<Endpoint>(route.parameters), SchemaOf(route.parameters), &w);
  }
  for (const AnswerSchema& answer : AnswerSchemas()) {
    w.Key(answer.name);
    w.Literal(answer.schema);
  }
  w.Literal(kErrors);
  w.EndObject();
  w.EndObject();
  w.EndObject();
  return out;
}

}  // namespace vivace::server
