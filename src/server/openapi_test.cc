#include "server/openapi.h"

#include <gtest/gtest.h>

#include <set>

#include "server/json/strict_json.h"
#include "server/params/table.h"

namespace vivace::server {
namespace {

std::vector<Route> SomeRoutes() {
  return {{"POST", "/v1/chat/completions", true, {}, ErrorShape::kOpenAi, "Chat", kChat},
          {"POST", "/v1/messages", true, {}, ErrorShape::kAnthropic, "Chat", kMessages},
          {"POST", "/v1/completions", true, {}, ErrorShape::kOpenAi, "Text", kCompletions},
          {"GET", "/v1/models/*", false, {}, ErrorShape::kOpenAi, "A model"},
          {"GET", "/metrics", false, {}, ErrorShape::kOpenAi, "Metrics"}};
}

// Names of the schemas that the document points at.
void CollectReferences(const json::value& value, std::set<std::string>* names) {
  if (const auto* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      if (key == "$ref") names->insert(std::string(member.get_string()));
      CollectReferences(member, names);
    }
  } else if (const auto* list = value.if_array()) {
    for (const json::value& item : *list) CollectReferences(item, names);
  }
}

// Strict JSON, so no member comes twice; every reference leads somewhere.
TEST(OpenApi, IsWhole) {
  const auto document = ParseStrictJson(OpenApiDocument(SomeRoutes(), "1.2.3"));
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ(document->at("openapi"), "3.1.0");
  EXPECT_EQ(document->at("info").at("version"), "1.2.3");
  std::set<std::string> references;
  CollectReferences(*document, &references);
  EXPECT_GE(references.size(), 5u);
  const json::object& schemas = document->at("components").at("schemas").get_object();
  for (const std::string& reference : references) {
    constexpr std::string_view kHome = "#/components/schemas/";
    ASSERT_TRUE(reference.starts_with(kHome)) << reference;
    EXPECT_TRUE(schemas.contains(reference.substr(kHome.size()))) << reference;
  }
  EXPECT_TRUE(document->at("paths").get_object().contains("/v1/models/{id}"));
}

// Every row of the table, with its alias, at the endpoints it belongs to.
TEST(OpenApi, HasEveryParameter) {
  const auto document = ParseStrictJson(OpenApiDocument(SomeRoutes(), "1"));
  ASSERT_TRUE(document);
  const std::pair<Endpoint, const char*> schemas[] = {
      {kChat, "ChatRequest"}, {kMessages, "MessagesRequest"}, {kCompletions, "CompletionRequest"}};
  for (const auto& [endpoint, name] : schemas) {
    const json::object& properties =
        document->at("components").at("schemas").at(name).at("properties").get_object();
    for (const ParamRow& row : ParamTable()) {
      if ((row.endpoints & endpoint) == 0) continue;
      EXPECT_TRUE(properties.contains(row.name)) << row.name;
      if (!row.alias.empty()) {
        EXPECT_TRUE(properties.contains(row.alias)) << row.alias;
      }
    }
  }
  const json::value& chat = document->at("components").at("schemas").at("ChatRequest");
  const json::value& temperature = chat.at("properties").at("temperature");
  EXPECT_EQ(temperature.at("type"), json::value({"number", "null"}));
  EXPECT_EQ(temperature.at("maximum").to_number<double>(), 100);
  EXPECT_EQ(temperature.at("default").to_number<double>(), 1);
  EXPECT_EQ(chat.at("properties").at("top_p").at("exclusiveMinimum").to_number<double>(), 0);
  EXPECT_EQ(chat.at("required"), json::value({"messages"}));
}

// Operations say every status, none of them "default", and what 200 looks like.
TEST(OpenApi, OperationsSayWhatTheyAnswer) {
  const auto document = ParseStrictJson(OpenApiDocument(SomeRoutes(), "1"));
  ASSERT_TRUE(document);
  const json::object& chat =
      document->at("paths").at("/v1/chat/completions").at("post").at("responses").get_object();
  for (const char* status :
       {"200", "400", "401", "403", "404", "413", "415", "500", "503", "504"}) {
    EXPECT_TRUE(chat.contains(status)) << status;
  }
  EXPECT_EQ(chat.at("200").at("content").at("application/json").at("schema").at("$ref"),
            "#/components/schemas/ChatAnswer");
  EXPECT_TRUE(chat.at("200").at("content").get_object().contains("text/event-stream"));
  for (const auto& [path, operations] : document->at("paths").get_object()) {
    for (const auto& [method, operation] : operations.get_object()) {
      EXPECT_FALSE(operation.at("responses").get_object().contains("default")) << path;
    }
  }
  EXPECT_TRUE(document->at("paths")
                  .at("/metrics")
                  .at("get")
                  .at("responses")
                  .at("200")
                  .at("content")
                  .get_object()
                  .contains("text/plain"));
}

// A schema of a shape of its own is JSON.
TEST(OpenApi, OwnShapesHaveSchemas) {
  int described = 0;
  for (const ParamRow& row : ParamTable()) {
    const auto* field = std::get_if<CustomField>(&row.field);
    if (field == nullptr) continue;
    const auto schema = ParseStrictJson(field->schema);
    ASSERT_TRUE(schema) << row.name;
    EXPECT_TRUE(schema->is_object()) << row.name;
    described += schema->get_object().empty() ? 0 : 1;
  }
  EXPECT_GT(described, 15);
}

}  // namespace
}  // namespace vivace::server
