// The routes, as tables.
#include "server/service/service.h"

namespace vivace::server {
namespace {

constexpr AccessLevel kOpen = AccessLevel::kOpen;
constexpr AccessLevel kMetrics = AccessLevel::kMetrics;
constexpr AccessLevel kAdmin = AccessLevel::kAdmin;

// Work for the engine, or for prep threads.
struct Work {
  std::string_view path;
  Endpoint endpoint;  // whose parameters its body has
  std::string_view summary;
};

constexpr std::string_view kChatSummary = "Answer a chat";
constexpr std::string_view kTextSummary = "Continue a text";
constexpr std::string_view kRerankSummary = "Documents by nearness to a query";

constexpr Work kGenerating[] = {
    {"/v1/chat/completions", kChat, kChatSummary},
    {"/v1/completions", kCompletions, kTextSummary},
    {"/v1/responses", kResponses, "Answer a chat; OpenAI's newer shape, nothing is stored"},
    {"/v1/messages", kMessages, "Answer a chat; Anthropic's shape"},
    {"/chat/completions", kChat, kChatSummary},
    {"/completions", kCompletions, kTextSummary},
    {"/responses", kResponses, kChatSummary},
};

constexpr Work kEmbedding[] = {
    {"/v1/embeddings", kEmbeddings, "Texts to vectors"},
    {"/embeddings", kEmbeddings, "Texts to vectors"},
    {"/v1/rerank", kRerank, kRerankSummary},
    {"/v2/rerank", kRerank, kRerankSummary},
    {"/rerank", kRerank, kRerankSummary},
    {"/v1/score", kScore, "How near texts are"},
    {"/score", kScore, "How near texts are"},
};

struct Prep : Work {
  Result<TextAnswer> (*answer)(std::string_view body, const ServedModel& model);
};

constexpr Prep kPrepared[] = {
    {{"/v1/messages/count_tokens", kCountTokens, "The length of a chat's prompt"},
     AnswerCountTokens},
    {{"/v1/chat/completions/render", kChat, "The prompt of a chat, as text and token ids"},
     AnswerRender},
    {{"/apply-template", kChat, "The prompt of a chat, as text"}, AnswerApplyTemplate},
    {{"/tokenize", kTokenize, "Text or chat to token ids"}, AnswerTokenize},
    {{"/detokenize", kDetokenize, "Token ids to text"}, AnswerDetokenize},
};

Route RouteOf(const Work& work,
              std::function<void(ExchangePtr exchange, std::string_view tail)> handle) {
  return {"POST",       work.path,    true, std::move(handle), ShapeOfPath(work.path),
          work.summary, work.endpoint};
}

}  // namespace

// Answered at once.
struct Service::Small {
  std::string_view method, path;
  void (Service::*answer)(Exchange& exchange, std::string_view tail);
  std::string_view summary;
  AccessLevel access = AccessLevel::kKey;
};

std::vector<Route> Service::MakeRoutes() {
  static constexpr Small kSmall[] = {
      {"GET", "/v1/models", &Service::ListModels, "The served model"},
      {"GET", "/models", &Service::ListModels, "The served model"},
      {"GET", "/v1/models/*", &Service::ShowModel, "One name of the served model"},
      {"GET", "/health", &Service::ShowReadiness, "Takes requests", kOpen},
      {"GET", "/ready", &Service::ShowReadiness, "Takes requests", kOpen},
      {"GET", "/live", &Service::SayOk, "The process answers", kOpen},
      {"GET", "/metrics", &Service::ShowMetrics, "Prometheus", kMetrics},
      {"GET", "/version", &Service::ShowVersion, "The version"},
      {"GET", "/openapi.json", &Service::ShowOpenApi, "This document"},
      {"POST", "/reset_prefix_cache", &Service::ResetPrefixCache, "Forget cached prefixes", kAdmin},
      {"GET", "/v1/requests", &Service::ListRequests,
       "Requests under way, and the last that ended"},
      {"GET", "/v1/requests/*", &Service::ShowRequest,
       "What happened to one request: its id and /timeline"},
      {"GET", "/", &Service::ShowPage, "The web page", kOpen},
      {"GET", "/web/*", &Service::ShowWebFile, "A file of the web page", kOpen},
  };
  std::vector<Route> routes;
  for (const Work& work : kGenerating) {
    routes.push_back(RouteOf(
        work, [this, endpoint = work.endpoint](const ExchangePtr& exchange, std::string_view) {
          Generate(endpoint, exchange);
        }));
  }
  for (const Prep& prep : kPrepared) {
    routes.push_back(
        RouteOf(prep, [this, answer = prep.answer](const ExchangePtr& exchange, std::string_view) {
          AnswerInPrep(answer, exchange);
        }));
  }
  for (const Work& work : kEmbedding) {
    routes.push_back(RouteOf(
        work, [this, endpoint = work.endpoint](const ExchangePtr& exchange, std::string_view) {
          Embed(endpoint, exchange);
        }));
  }
  for (const Small& small : kSmall) {
    const auto handle = [this, answer = small.answer](const ExchangePtr& exchange,
                                                      std::string_view tail) {
      (this->*answer)(*exchange, tail);
    };
    routes.push_back({small.method, small.path, false, handle, ErrorShape::kOpenAi, small.summary,
                      0, small.access});
  }
  return routes;
}

}  // namespace vivace::server
