#include "server/openapi_answers.h"

#include <algorithm>
#include <iterator>

namespace vivace::server {
namespace {

constexpr AnswerSchema kSchemas[] = {
    {"Usage", R"({"type":"object","required":["prompt_tokens","total_tokens"],"properties":{)"
              R"("prompt_tokens":{"type":"integer","minimum":0},)"
              R"("completion_tokens":{"type":"integer","minimum":0},)"
              R"("total_tokens":{"type":"integer","minimum":0}}})"},
    {"Reports",
     R"({"description":"What of the request was not taken as it was given","type":"object",)"
     R"("properties":{"ignored":{"type":"array","items":{"type":"string"}},)"
     R"("clamped":{"type":"array","items":{"type":"object"}},)"
     R"("renamed":{"type":"array","items":{"type":"object"}},)"
     R"("truncated_prompt_tokens":{"type":"integer"},"steered":{"type":"boolean"},)"
     R"("deadline":{"type":"boolean"}}})"},
    {"ChatAnswer",
     R"({"type":"object","required":["id","object","created","model","choices","usage"],)"
     R"("properties":{"id":{"type":"string"},"object":{"const":"chat.completion"},)"
     R"("created":{"type":"integer"},"model":{"type":"string"},)"
     R"("choices":{"type":"array","minItems":1,"items":{"type":"object",)"
     R"("required":["index","message","finish_reason"],"properties":{"index":{"type":"integer"},)"
     R"("message":{"type":"object","required":["role","content"],"properties":{)"
     R"("role":{"const":"assistant"},"content":{"type":["string","null"]},)"
     R"("tool_calls":{"type":"array"}}},)"
     R"("logprobs":{"type":["object","null"]},)"
     R"("finish_reason":{"enum":["stop","length","tool_calls"]}}}},)"
     R"("usage":{"$ref":"#/components/schemas/Usage"},)"
     R"("vivace":{"$ref":"#/components/schemas/Reports"}}})"},
    {"CompletionAnswer",
     R"({"type":"object","required":["id","object","created","model","choices","usage"],)"
     R"("properties":{"id":{"type":"string"},"object":{"const":"text_completion"},)"
     R"("created":{"type":"integer"},"model":{"type":"string"},)"
     R"("choices":{"type":"array","minItems":1,"items":{"type":"object",)"
     R"("required":["index","text","finish_reason"],"properties":{"index":{"type":"integer"},)"
     R"("text":{"type":"string"},"logprobs":{"type":["object","null"]},)"
     R"("finish_reason":{"enum":["stop","length"]}}}},)"
     R"("usage":{"$ref":"#/components/schemas/Usage"},)"
     R"("vivace":{"$ref":"#/components/schemas/Reports"}}})"},
    {"ResponsesAnswer",
     R"({"type":"object","required":["id","object","created_at","status","model","output","usage"],)"
     R"("properties":{"id":{"type":"string"},"object":{"const":"response"},)"
     R"("created_at":{"type":"integer"},"status":{"enum":["completed","incomplete"]},)"
     R"("model":{"type":"string"},"error":{"type":"null"},)"
     R"("output":{"type":"array","items":{"type":"object","required":["id","type","status"],)"
     R"("properties":{"id":{"type":"string"},)"
     R"("type":{"enum":["message","reasoning","function_call"]}}}},)"
     R"("usage":{"type":"object","required":["input_tokens","output_tokens","total_tokens"]},)"
     R"("vivace":{"$ref":"#/components/schemas/Reports"}}})"},
    {"MessagesAnswer",
     R"({"type":"object","required":["id","type","role","model","content","stop_reason",)"
     R"("stop_sequence","usage"],"properties":{"id":{"type":"string"},"type":{"const":"message"},)"
     R"("role":{"const":"assistant"},"model":{"type":"string"},"content":{"type":"array",)"
     R"("items":{"type":"object","required":["type"],"properties":{)"
     R"("type":{"enum":["text","thinking","tool_use"]}}}},)"
     R"("stop_reason":{"enum":["end_turn","max_tokens","stop_sequence","tool_use"]},)"
     R"("stop_sequence":{"type":["string","null"]},)"
     R"("usage":{"type":"object","required":["input_tokens","output_tokens"]},)"
     R"("vivace":{"$ref":"#/components/schemas/Reports"}}})"},
    {"CountTokensAnswer", R"({"type":"object","required":["input_tokens"],"properties":{)"
                          R"("input_tokens":{"type":"integer","minimum":0}}})"},
    {"RenderAnswer",
     R"({"type":"object","required":["model","prompt","token_ids","count","max_model_len"],)"
     R"("properties":{"prompt":{"type":"string"},)"
     R"("token_ids":{"type":"array","items":{"type":"integer"}},"count":{"type":"integer"}}})"},
    {"PromptAnswer",
     R"({"type":"object","required":["prompt"],"properties":{"prompt":{"type":"string"}}})"},
    {"TokenizeAnswer",
     R"({"type":"object","required":["count","max_model_len","tokens","token_strs"],)"
     R"("properties":{"count":{"type":"integer"},"max_model_len":{"type":"integer"},)"
     R"("tokens":{"type":"array","items":{"type":"integer"}},)"
     R"("token_strs":{"type":["array","null"],"items":{"type":"string"}}}})"},
    {"EmbeddingsAnswer",
     R"({"type":"object","required":["id","object","created","model","data","usage"],)"
     R"("properties":{"object":{"const":"list"},"data":{"type":"array","minItems":1,)"
     R"("items":{"type":"object","required":["object","index","embedding"],"properties":{)"
     R"("object":{"const":"embedding"},"index":{"type":"integer"},)"
     R"("embedding":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"number"}}]}}}},)"
     R"("usage":{"$ref":"#/components/schemas/Usage"},)"
     R"("vivace":{"$ref":"#/components/schemas/Reports"}}})"},
    {"RerankAnswer",
     R"({"type":"object","required":["id","model","usage","results"],"properties":{)"
     R"("results":{"type":"array","items":{"type":"object",)"
     R"("required":["index","relevance_score"],"properties":{"index":{"type":"integer"},)"
     R"("relevance_score":{"type":"number","minimum":-1.001,"maximum":1.001}}}},)"
     R"("usage":{"$ref":"#/components/schemas/Usage"},)"
     R"("vivace":{"$ref":"#/components/schemas/Reports"}}})"},
    {"ScoreAnswer",
     R"({"type":"object","required":["id","object","created","model","data","usage"],)"
     R"("properties":{"object":{"const":"list"},"data":{"type":"array","items":{"type":"object",)"
     R"("required":["index","object","score"],"properties":{"index":{"type":"integer"},)"
     R"("object":{"const":"score"},"score":{"type":"number"}}}},)"
     R"("usage":{"$ref":"#/components/schemas/Usage"},)"
     R"("vivace":{"$ref":"#/components/schemas/Reports"}}})"},
    {"Model", R"({"type":"object","required":["id","object","created","owned_by","max_model_len"],)"
              R"("properties":{"id":{"type":"string"},"object":{"const":"model"},)"
              R"("created":{"type":"integer"},"max_model_len":{"type":"integer"}}})"},
    {"Models",
     R"({"type":"object","required":["object","data"],"properties":{"object":{"const":"list"},)"
     R"("data":{"type":"array","items":{"$ref":"#/components/schemas/Model"}}}})"},
    {"Status", R"({"type":"object","required":["status"],"properties":{"status":{"const":"ok"}}})"},
    {"Version",
     R"({"type":"object","required":["version"],"properties":{"version":{"type":"string"}}})"},
    {"OpenApi", R"({"type":"object","required":["openapi","info","paths"]})"},
    {"RequestRow",
     R"({"type":"object","required":["id","path","state","status","outcome","prompt_tokens",)"
     R"("output_tokens","times"],"properties":{"id":{"type":"string"},"path":{"type":"string"},)"
     R"("state":{"enum":["waiting","prefill","decode","ended"]},)"
     R"("status":{"type":["integer","null"]},"outcome":{"type":["string","null"]},)"
     R"("times":{"type":"object"}}})"},
    {"Requests",
     R"({"type":"object","required":["object","data"],"properties":{"object":{"const":"list"},)"
     R"("data":{"type":"array","items":{"$ref":"#/components/schemas/RequestRow"}}}})"},
    {"Timeline", R"({"allOf":[{"$ref":"#/components/schemas/RequestRow"},{"type":"object",)"
                 R"("required":["summary","events"],"properties":{"summary":{"type":"string"},)"
                 R"("events":{"type":"array","items":{"type":"object"}}}}]})"},
};

constexpr AnswerKind kAnswers[] = {
    {"/v1/chat/completions", "ChatAnswer"},
    {"/chat/completions", "ChatAnswer"},
    {"/v1/completions", "CompletionAnswer"},
    {"/completions", "CompletionAnswer"},
    {"/v1/responses", "ResponsesAnswer"},
    {"/responses", "ResponsesAnswer"},
    {"/v1/messages", "MessagesAnswer"},
    {"/v1/messages/count_tokens", "CountTokensAnswer"},
    {"/v1/chat/completions/render", "RenderAnswer"},
    {"/apply-template", "PromptAnswer"},
    {"/v1/embeddings", "EmbeddingsAnswer"},
    {"/embeddings", "EmbeddingsAnswer"},
    {"/v1/rerank", "RerankAnswer"},
    {"/v2/rerank", "RerankAnswer"},
    {"/rerank", "RerankAnswer"},
    {"/v1/score", "ScoreAnswer"},
    {"/score", "ScoreAnswer"},
    {"/tokenize", "TokenizeAnswer"},
    {"/detokenize", "PromptAnswer"},
    {"/v1/models", "Models"},
    {"/models", "Models"},
    {"/v1/models/*", "Model"},
    {"/health", "Status"},
    {"/ready", "Status"},
    {"/live", "Status"},
    {"/metrics", "", "text/plain"},
    {"/version", "Version"},
    {"/openapi.json", "OpenApi"},
    {"/reset_prefix_cache", "Status"},
    {"/v1/requests", "Requests"},
    {"/v1/requests/*", "Timeline"},
    {"/", "", "text/html"},
    {"/web/*", "", "text/html text/css text/javascript application/octet-stream"},
};

}  // namespace

std::span<const AnswerSchema> AnswerSchemas() { return kSchemas; }

const AnswerKind* FindAnswer(std::string_view path) {
  const auto found = std::find_if(std::begin(kAnswers), std::end(kAnswers),
                                  [path](const AnswerKind& answer) { return answer.path == path; });
  return found == std::end(kAnswers) ? nullptr : &*found;
}

}  // namespace vivace::server
